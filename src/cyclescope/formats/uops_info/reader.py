"""Reading uops.info's `instructions.xml`, as published or as written by `uops_info`.

The file is read as a stream: the published one has over 100 MB. Document type definitions, with which
small files expand to huge ones, are refused (by defusedxml).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from cyclescope.formats.exchange import (
    Draft,
    FormatError,
    Imported,
    ImportRequest,
    cycles,
    operation,
    rate,
    shortened,
)
from cyclescope.formats.uops_info.writer import BETWEEN, EXTRAS, FLAGS_SET, SUFFIXES
from cyclescope.isa.dataflow import overwritten, sources, targets
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import load_table
from cyclescope.model.machine import Core, Operation

_PARTS = {suffix: part for part, suffix in SUFFIXES.items()} | {"_addr_VSIB": "index"}
_USAGE = re.compile(r"(\d+)\*(p|FP)([0-9A-Fa-f]+)")
_OWN_USAGE = re.compile(r"(\d+(?:\.\d+)?)\*p([^/+]+)(?:/(\d+(?:\.\d+)?))?")
_THROUGHPUTS = ("x_TP", "TP_unrolled", "TP_loop", "TP")
_SAID = re.compile(r"([^=;]+)=([\d.e+-]+?)(?:\.\.([\d.e+-]+?))?(?:~([\d.e+-]+?)\.\.([\d.e+-]+?))?$")


def read(path: Path, request: ImportRequest) -> Imported:
    """The machine of a file that the request names, or its only one. Raises FormatError."""
    column = request.column or _only_machine(path)
    draft = Draft(load_table("x86-64"), request)
    by_name = {form.uops_info: form for form in draft.table if form.uops_info}
    core: Core | None = None
    known = False
    for node in _instructions(path):
        architecture = _architecture(node, column)
        if architecture is None:
            continue
        known = True
        core = core or _core(architecture, draft)
        _add(draft, by_name.get(node.get("string", "")), node, architecture)
    if not known:
        raise FormatError(f"{path} has no machine {shortened(column)!r}", f"it has {_listed(path)}")
    return draft.imported(core)


def _instructions(path: Path) -> Iterator[Element]:
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import iterparse

    try:
        for _, node in iterparse(path, events=("end",), forbid_dtd=True):
            if node.tag == "instruction":
                yield node
                node.clear()
    except ParseError as error:
        raise FormatError(f"{path} is no XML: {error}") from None
    except DefusedXmlException:
        raise FormatError(f"{path} has a document type definition", "these are not read") from None


def _machines(path: Path) -> Iterator[str]:
    """Names of the machines, those of the first instructions first."""
    seen: set[str] = set()
    for node in _instructions(path):
        for name in (a.get("name", "") for a in node.iter("architecture")):
            if name not in seen:
                seen.add(name)
                yield name


def _only_machine(path: Path) -> str:
    found = list(_machines(path))
    if not found:
        raise FormatError(f"{path} has no machine", "there is no element `architecture` in an `instruction`")
    if len(found) > 1:
        raise FormatError(f"{path} has several machines", f"say {{column}} with one of {_listed(path)}")
    return found[0]


def _listed(path: Path) -> str:
    return shortened(", ".join(sorted(_machines(path))))


def _architecture(node: Element, name: str) -> Element | None:
    return next((a for a in node.iter("architecture") if a.get("name") == name), None)


def _core(architecture: Element, draft: Draft) -> Core | None:
    """The core of a file of ours; published ones say nothing of it."""
    for name in architecture.get("x_port_names", "").split():
        draft.port(name)
    width = architecture.get("x_width")
    try:
        return Core(cycles(width)) if width else None
    except ValueError as error:
        draft.refuse("x_width", str(error))
        return None


def _add(draft: Draft, form: InstructionForm | None, node: Element, architecture: Element) -> None:
    name = node.get("string", "")
    if form is None:
        draft.refuse(name, "no form has this name")
        return
    measurement = architecture.find("measurement")
    if measurement is not None:
        _add_measurement(draft, form, measurement)
    operands = _operands(node, form)
    if operands is None:
        draft.refuse(name, "its operands are not those of the form: no latencies")
        return
    for latency in architecture.iter("latency"):
        _add_latency(draft, form, latency, operands)


# --- measurements ------------------------------------------------------------------------------------


def _add_measurement(draft: Draft, form: InstructionForm, node: Element) -> None:
    found = [value for value in (_rate(draft, form, node, key) for key in _THROUGHPUTS) if value is not None]
    own = _rate(draft, form, node, "x_TP")
    if found:
        draft.add(form, throughput=own if own is not None else min(found))
    _add_slots(draft, form, node)
    _add_bounds(draft, form, node)
    usage = _own_usage(draft, node) if node.get("x_ports") else _usage(draft, form, node)
    if usage is not None:
        draft.add(form, operations=usage)
    draft.add(form, **{name: node.get(f"x_{name}", "") for name in EXTRAS})
    draft.add(form, **{name: node.get(f"x_{name}") == "1" for name in FLAGS_SET})


def _rate(draft: Draft, form: InstructionForm, node: Element, key: str) -> float | None:
    text = node.get(key)
    if text is None:
        return None
    try:
        return rate(text)
    except ValueError as error:
        draft.refuse(f"{form.id} {key}", str(error))
        return None


def _add_slots(draft: Draft, form: InstructionForm, node: Element) -> None:
    text = node.get("x_slots") or node.get("uops_retire_slots")
    if text is None:
        return
    try:
        draft.add(form, slots=cycles(text))
    except ValueError:
        draft.refuse(f"{form.id} slots", f"{shortened(text)} slots")


def _add_bounds(draft: Draft, form: InstructionForm, node: Element) -> None:
    """What is proved of throughput and slots, and other usages, in attributes of ours."""
    most = _rate(draft, form, node, "x_TP_most")
    if most is not None:
        draft.add(form, throughput_most=most)
    if node.get("x_slot_range"):
        try:
            least, _, most_slots = node.get("x_slot_range", "").partition("..")
            draft.add(form, slot_range=(cycles(least), cycles(most_slots)))
        except ValueError as error:
            draft.refuse(f"{form.id} slots", str(error))
    if node.get("x_alternatives"):
        draft.add(form, alternatives=tuple(node.get("x_alternatives", "").split(BETWEEN)))


def _usage(draft: Draft, form: InstructionForm, node: Element) -> tuple[Operation, ...] | None:
    """Port usage in the published notation, where it has every micro-operation."""
    text = node.get("ports", "")
    if not text:
        return None
    matches = [_USAGE.fullmatch(part) for part in text.split("+")]
    if not all(matches):
        draft.refuse(f"{form.id} ports", f"{shortened(text)!r} is no port usage")
        return None
    parts = [match.groups() for match in matches if match]
    if sum(int(count) for count, _, _ in parts) != _count(node):  # of AMD only the vector ports are known
        draft.refuse(f"{form.id} ports", f"{shortened(text)} does not have all of its micro-operations")
        return None
    return tuple(
        operation([f"{prefix.removeprefix('p')}{digit}" for digit in digits], int(count), draft)
        for count, prefix, digits in parts
    )


def _count(node: Element) -> int:
    text = node.get("uops", "")
    return int(text) if text.isdecimal() else -1


def _own_usage(draft: Draft, node: Element) -> tuple[Operation, ...] | None:
    text = node.get("x_ports", "")
    if text == "-":
        return ()
    matches = [_OWN_USAGE.fullmatch(part) for part in text.split("+")]
    if not all(matches):
        draft.refuse("x_ports", f"{shortened(text)!r} is no port usage")
        return None
    found = []
    for match in filter(None, matches):
        names = match[2].split(",") if "," in match[2] or match[2] in draft.ports else list(match[2])
        found.append(operation(names, float(match[1]), draft, float(match[3] or 1)))
    return tuple(found)


# --- latencies ---------------------------------------------------------------------------------------


def _operands(node: Element, form: InstructionForm) -> dict[str, int] | None:
    """The position of our operand by the file's number, -1 for the flags; None where they do not match."""
    explicit = [i for i, op in enumerate(form.operands) if not op.implicit]
    found: dict[str, int] = {}
    for operand in node.iter("operand"):
        number, kind = operand.get("idx", ""), operand.get("type")
        if kind == "flags":
            found[number] = -1
        elif operand.get("suppressed") != "1":
            if not explicit:
                return None
            found[number] = explicit.pop(0)
        else:
            position = _suppressed(operand, form)
            found |= {number: position} if position is not None else {}
    return None if explicit else found


def _suppressed(operand: Element, form: InstructionForm) -> int | None:
    memory = operand.get("type") == "mem"
    name = operand.get("base", "") if memory else (operand.text or "").strip()
    same_kind = ((i, op) for i, op in enumerate(form.operands) if op.implicit and op.is_memory == memory)
    return next((i for i, op in same_kind if name in (op.name.strip("[]"), op.fixed)), None)


def _add_latency(draft: Draft, form: InstructionForm, node: Element, operands: Mapping[str, int]) -> None:
    start, target = (operands.get(node.get(key, "")) for key in ("start_op", "target_op"))
    if start is None or target is None:
        draft.refuse(f"{form.id} latency", "from or to an operand that the form does not have")
        return
    for suffix, part in {"": "", **_PARTS}.items():
        if node.get(f"x_pairs{suffix}"):
            _add_spelled(draft, form, node.get(f"x_pairs{suffix}", ""))
            continue
        try:
            reach = _reach(node, suffix)
        except ValueError as error:
            draft.refuse(f"{form.id} latency {start} -> {target}", str(error))
            continue
        if reach is not None:
            for pair in _pairs(form, start, target, part):
                draft.latency(form, pair, *reach)


def _reach(node: Element, suffix: str) -> tuple[float, float] | None:
    """The least and the most of one group of attributes; an upper bound begins at 0."""
    plain, most = node.get(f"cycles{suffix}"), node.get(f"max_cycles{suffix}")
    name = "cycles" if plain is not None else "max_cycles"
    if plain is None and most is None:
        return None
    value = cycles(plain if plain is not None else most)
    if node.get(f"{name}{suffix}_is_upper_bound") == "1":
        return 0.0, value
    least = value if plain is not None else cycles(node.get(f"min_cycles{suffix}", "0"))
    if least > value:
        raise ValueError(f"from {least:g} to {value:g} cycles")
    return least, value


def _add_spelled(draft: Draft, form: InstructionForm, text: str) -> None:
    for said in text.split(";"):
        match = _SAID.fullmatch(said)
        if match is None:
            draft.refuse(f"{form.id} x_pairs", shortened(said))
            continue
        try:
            least, most = cycles(match[2]), cycles(match[3] or match[2])
            draft.latency(form, match[1], least, most)
            if match[4] is not None:
                draft.proved(form, match[1], cycles(match[4]), cycles(match[5]))
        except ValueError as error:
            draft.refuse(f"{form.id} {match[1]}", str(error))


def _pairs(form: InstructionForm, start: int, target: int, part: str) -> Iterator[str]:
    """Our pairs of two operands of the file; one value is that of all flags."""
    for source in sources(form):
        if source.operand != start or source.part not in (part, *([] if part else ["register", "flag"])):
            continue
        yield from (f"{source.name}->{t.name}" for t in targets(form) if t.operand == target)
    if start == target and not part:
        found = (pair for pair in overwritten(form) if pair.target.operand == target)
        yield from (f"{pair.source.name}->{pair.target.name}" for pair in found)
