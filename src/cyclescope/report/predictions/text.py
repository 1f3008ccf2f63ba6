"""Predictions as text and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from cyclescope.analyze.predict.effects import EFFECTS
from cyclescope.analyze.predict.prediction import (
    CRITICAL_PATH,
    FRONT_END,
    IN_ORDER,
    LOOP_CARRIED,
    PORTS,
    PORTS_FIXED,
    SCHEDULED,
    InstructionCost,
    NotPredicted,
    Prediction,
)
from cyclescope.model.machine import ASSUMED, EXTRACTED, MEASURED, Provenance
from cyclescope.report.tables import aligned
from cyclescope.report.words import borrowing, counted, listed, plain, with_lender

SCHEMA_VERSION = 1
WORDS = {
    PORTS: "ports", PORTS_FIXED: "ports, split evenly", FRONT_END: "front end",
    LOOP_CARRIED: "loop-carried dependency", CRITICAL_PATH: "critical path", IN_ORDER: "in-order issue",
    SCHEDULED: "scheduler",
    **{effect.name: effect.words for effect in EFFECTS},
}  # fmt: skip
_SPREADS = {
    EXTRACTED: "if the model is off by as much as 8 of 10 of LLVM's costs are",
    MEASURED: "if the model is off by as much as 8 of 10 blocks on measured models are",
}
BORROWED = "if costs that LLVM has of {core} hold here as well as 8 of 10 do on their own core"
MOST_CHAINS = 8
_WIDEST = 60  # characters of an instruction
_BOLD, _RED, _OFF = "\033[1m", "\033[31m", "\033[0m"


def analysis_text(prediction: Prediction) -> str:
    """The whole report; colours are ANSI codes, which `click.echo` drops where there is no terminal."""
    prediction = plain(prediction)
    parts = [
        _head(prediction),
        "\n".join(beside(prediction)),
        _bounds(prediction),
        _table(prediction),
        _chains(prediction),
        _notes(prediction),
    ]
    return "\n\n".join(part for part in parts if part)


def analysis_json(prediction: Prediction) -> str:
    """The prediction, with what follows from it."""
    data = {"schema_version": SCHEMA_VERSION} | msgspec.to_builtins(prediction)
    gap = prediction.gap
    data["derived"] = {
        "throughput": prediction.throughput,
        "alone": prediction.alone,
        "next": {"bound": gap[0], "below": gap[1]} if gap else None,
        "per_unit": prediction.per_unit,
        "unmatched": prediction.unmatched,
    }
    return msgspec.json.encode(data).decode()


def regions_text(found: Sequence[Prediction]) -> str:
    """The reports of several regions, one behind the other."""
    return "\n\n\n".join(map(analysis_text, found))


def regions_json(found: Sequence[Prediction]) -> str:
    """The predictions of several regions."""
    rows = [msgspec.json.decode(analysis_json(one)) for one in found]
    return msgspec.json.encode({"schema_version": SCHEMA_VERSION, "regions": rows}).decode()


# --- head --------------------------------------------------------------------------------------------


def origin(provenance: Provenance) -> str:
    """`LLVM scheduling models 22.1.8`, `measured 2026-11-21 on ...`."""
    source = provenance.source or provenance.kind
    if provenance.kind == "measured" and provenance.date:
        return f"{source}, {provenance.date}"
    return " ".join(filter(None, (source, provenance.version)))


def _head(found: Prediction) -> str:
    lines = summary_lines(found)
    cycles, rest = lines[2].split(" ", 1)
    return "\n".join([*lines[:2], "", f"{_BOLD}{cycles}{_OFF} {rest}", *lines[3:]])


def summary_lines(found: Prediction) -> list[str]:
    """Machine, block, expected cycles with their bound, cycles per unit of work, bracket, interval."""
    name, *how = bound_words(found, found.bottleneck).split(",")  # "ports, split evenly"
    bound = ",".join([" ".join((name, *found.full)), *how])
    as_seen = "simulated in order" if IN_ORDER in found.bounds else "with ports chosen at dispatch"
    upper = "not simulated" if found.upper is None else f"{found.upper:.2f} {as_seen}"
    lines = [
        machine_line(found),
        _where(found),
        f"{found.cycles:.2f} cycles per iteration, bound by: {bound}",
    ]
    if found.per_unit is not None:
        lines.append(f"{found.per_unit:.2f} cycles per unit of work, {found.unroll_factor:g} in an iteration")
    elif found.elements and found.elements > 1:
        each = f"{found.cycles / found.elements:.2f} cycles per element"
        lines.append(f"{each}: pointers move by {found.pointer_increment} bytes, {found.elements} elements")
    elif found.pointer_increment and found.elements is None:
        moved = f"pointers move by {found.pointer_increment} bytes"
        lines.append(f"{moved}; how many elements these are is not known")
    lines.append(f"at least {found.lower:.2f}{_condition(found)}; {upper}")
    if reason := _spread(found):
        lines.append(f"{found.interval[0]:.2f} to {found.interval[1]:.2f} {reason}")
    return lines


def beside(found: Prediction) -> list[str]:
    """What the block takes on this machine, and what changes would make of it, where that was asked."""
    lines = []
    for one in found.measured:
        way = (
            "as copies one after the other"
            if one.notion == "unrolled"
            else "as a loop with a counter in place of its end"
        )
        if one.cycles is None:
            lines.append(f"not measured here {way}: {one.reason}")
            continue
        lines.append(f"{one.cycles:.2f} measured here {way}{_off(one.predicted, one.cycles)}")
    for change in found.what_if:
        saved = change.cycles - found.cycles
        word = bound_words(found, change.bottleneck)
        lines.append(f"{change.cycles:.2f} with {change.what} ({saved:+.2f}), bound by: {word}")
    return lines


def _off(predicted: float | None, cycles: float) -> str:
    """How far off is what is predicted of the same code."""
    if predicted is None or not cycles:
        return ""
    return f": {predicted:.2f} is predicted of that, {100 * (predicted / cycles - 1):+.1f} % off"


def machine_line(found: Prediction) -> str:
    """The machine and where its numbers are from; what is another core's before all else."""
    whole = [borrowed for borrowed in found.borrowed if not borrowed.forms]
    with_ = f" with {listed([*map(borrowing, whole)])}" if whole else ""
    line = f"{found.machine} ({found.isa}){with_}, from {origin(found.provenance)}"
    parts = (f"{borrowing(one)}, from {one.source}" for one in found.borrowed if one.forms)
    return "; ".join((line, *parts))


def bound_words(found: Prediction, bound: str) -> str:
    """A bound's name; of the front end with its width where that is only assumed."""
    if bound == FRONT_END and found.width.kind == ASSUMED:
        return f"{WORDS[bound]} (assumed width {found.width.slots:g})"
    return WORDS[bound]


def _condition(found: Prediction) -> str:
    """What has to hold for the lower bound."""
    cores = dict.fromkeys(borrowed.core for borrowed in found.borrowed)
    return f" if what is borrowed of {listed([*cores])} holds" if cores else ""


def _spread(found: Prediction) -> str:
    """What has to hold for the interval, "" where nothing is known of how far the model is off."""
    if whole := [borrowed.core for borrowed in found.borrowed if not borrowed.forms]:
        return BORROWED.format(core=listed(whole))
    return _SPREADS.get(found.provenance.kind, "")


def _where(found: Prediction) -> str:
    """`a.s, innermost loop .L3 (lines 2 to 6), 5 instructions`."""
    name = "" if found.name in found.found else found.name
    count = "" if "instruction" in found.found else counted(len(found.instructions), "instruction")
    return ", ".join(filter(None, (found.source, name, found.found, count)))


def _bounds(found: Prediction) -> str:
    """Every bound alone, and how far it is from the greatest."""
    rows = [("if this alone were the bound", "cycles", "")]
    for name, cycles in found.alone.items():
        distance = "" if name == found.bottleneck else f"{cycles - found.cycles:+.2f}"
        rows.append((bound_words(found, name), f"{cycles:.2f}", distance))
    rows += [(f"({words})", f"{cycles:.2f}", "") for words, cycles in no_bounds(found)]
    return "\n".join(aligned(rows, (0,)))


def no_bounds(found: Prediction) -> list[tuple[str, float]]:
    """What is told besides bounds: the other split of ports, the critical path, with `fixed` both kinds."""
    rows = [(f"{WORDS[CRITICAL_PATH]} of one iteration", found.cp)]
    if not found.fixed:
        return [(WORDS[PORTS_FIXED], found.bounds[PORTS_FIXED]), *rows]
    by_operand = f"{WORDS[CRITICAL_PATH]}, with latencies of operand pairs", found.bounds[CRITICAL_PATH]
    return [(WORDS[PORTS], found.bounds[PORTS]), *rows, by_operand]


# --- table -------------------------------------------------------------------------------------------


def _table(found: Prediction) -> str:
    """Ports, critical path and loop-carried dependency by line, and the sums."""
    totals = found.ports_fixed if found.fixed else found.ports
    ports = [name for name, cycles in totals.items() if cycles]
    where = where_columns(found)
    head = [*where, *ports, "CP", "LCD", "instruction"]
    rows = [[*where_cells(row, where), *_cells(found, row, ports), _shown(row)] for row in found.instructions]
    sums = [[*[""] * (len(where) - 1), *row] for row in sum_rows(found, ports)]
    first, *lines = aligned([head, *rows, *sums], (len(head) - 1,))
    shown = [_marked(row, line) for row, line in zip(found.instructions, lines, strict=False)]
    return "\n".join([first, *shown, *lines[len(rows) :]])


def where_columns(found: Prediction) -> list[str]:
    """Heads of the columns that say where an instruction is: its line, or its address and source line."""
    if any(row.line for row in found.instructions):
        return ["line"]
    placed = any(row.place for row in found.instructions)
    return ["source", "address"] if placed else ["address"]


def where_cells(row: InstructionCost, columns: Sequence[str]) -> list[str]:
    """The cells of these columns."""
    place = f"{row.place.file.rpartition('/')[2]}:{row.place.line}" if row.place else ""
    address = "" if row.address is None else f"{row.address:x}"
    cells = {"line": str(row.line or ""), "source": place, "address": address}
    return [cells[name] for name in columns]


def sum_rows(found: Prediction, ports: Sequence[str]) -> list[list[str]]:
    """Sums by port, critical path and slowest chain, of an iteration and of a unit of work."""
    totals = found.ports_fixed if found.fixed else found.ports
    sums = [*(totals[port] for port in ports), found.cp, found.lcd]
    rows = [["sum", *(f"{cycles:.2f}" for cycles in sums), ""]]
    if found.unroll_factor:
        rows.append(["unit", *(f"{cycles / found.unroll_factor:.2f}" for cycles in sums), ""])
    return rows


def _cells(found: Prediction, row: InstructionCost, ports: Sequence[str]) -> list[str]:
    used = row.ports_fixed if found.fixed else row.ports
    cells = [f"{used[port]:.2f}" if used.get(port) else "" for port in ports]
    return [*cells, _cycles(row.critical_path), _cycles(row.loop_carried)]


def _cycles(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _shown(row: InstructionCost) -> str:
    text = " ".join(row.text.split())
    text = text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
    remarks = ", ".join((*row.remarks, *(("UNKNOWN, left out",) if row.ignored else ())))
    return f"{text}  [{remarks}]" if remarks else text


def _marked(row: InstructionCost, line: str) -> str:
    """Bold on the critical path, red in the slowest loop-carried chain."""
    codes = (_BOLD if row.critical_path is not None else "") + (_RED if row.loop_carried is not None else "")
    return f"{codes}{line}{_OFF}" if codes else line


# --- below -------------------------------------------------------------------------------------------


def _chains(found: Prediction) -> str:
    if not found.loop_carried:
        return ""
    lines = ["loop-carried dependencies"]
    for chain in found.loop_carried[:MOST_CHAINS]:
        over = f" over {chain.iterations} iterations" if chain.iterations > 1 else ""
        lines.append(f"{chain.cycles:8.2f}  {_members(found, chain.lines, chain.instructions)}{over}")
    if len(found.loop_carried) > MOST_CHAINS:
        lines.append(f"          and {len(found.loop_carried) - MOST_CHAINS} more")
    return "\n".join(lines)


def _members(found: Prediction, lines: Sequence[int], instructions: Sequence[int]) -> str:
    if any(lines):
        return f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
    return "; ".join(found.instructions[n].text for n in instructions)


def _notes(found: Prediction) -> str:
    return "\n".join(f"note: {note}" for note in found.notes)


# --- several machines --------------------------------------------------------------------------------

_COMPARED = (PORTS, FRONT_END, LOOP_CARRIED)


def comparison_text(found: Iterable[Prediction | NotPredicted]) -> str:
    """A line per machine, with the core that it is borrowed from; what of it is borrowed comes first."""
    shown = [plain(one) for one in found]
    compared = (*(WORDS[name] for name in _COMPARED), WORDS[CRITICAL_PATH])
    head = ("machine", "cycles", "upper", *compared, "bound by")
    rows = [head, *map(_row, shown)]
    lines = [machine_line(one) for one in shown if isinstance(one, Prediction) and one.borrowed]
    return "\n".join([*lines, *aligned(rows, (0, len(head) - 1))])


def _row(one: Prediction | NotPredicted) -> tuple[str, ...]:
    name = with_lender(one.machine, one.borrowed)
    if isinstance(one, NotPredicted):
        return (name, *("",) * (len(_COMPARED) + 3), one.problem)
    upper = "" if one.upper is None else f"{one.upper:.2f}"
    cells = (f"{cycles:.2f}" for cycles in (*(one.bounds[name] for name in _COMPARED), one.cp))
    return (name, f"{one.cycles:.2f}", upper, *cells, bound_words(one, one.bottleneck))


def comparison_json(found: Iterable[Prediction | NotPredicted]) -> str:
    """The predictions by machine."""
    rows = [
        msgspec.to_builtins(one) if isinstance(one, NotPredicted) else msgspec.json.decode(analysis_json(one))
        for one in found
    ]
    return msgspec.json.encode({"schema_version": SCHEMA_VERSION, "machines": rows}).decode()
