"""Words of reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from cyclescope.model.calibration import ALLOWED, NEAR, PREDICTED, ClaimCalibration, TriedMixes
from cyclescope.model.machine import (
    EVENLY,
    GROUPED,
    IDEAL,
    ROUND_ROBIN,
    STATIC,
    Borrowed,
    Halves,
    MachineModel,
    Narrow,
    Wakeup,
    Writeback,
)
from cyclescope.model.ports import port_set

FILE_TEXTS = {"v": "vectors", "k": "masks", "m": "MMX", "x": "x87", "f": "floating point", "p": "predicates"}
BINDING_TEXTS = {
    IDEAL: "operations get their ports when they start",
    STATIC: "operations get the least loaded of their ports at dispatch",
    ROUND_ROBIN: "operations get their ports in turn at dispatch",
    GROUPED: "operations dispatched together get different ports, those first that were least loaded",
    EVENLY: "operations get those of their ports at dispatch that got fewest so far",
}
_LONGEST = 200  # characters of a name
_Report = TypeVar("_Report", bound=msgspec.Struct)


def counted(number: int, what: str) -> str:
    """`1 form`, `2 forms`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def borrowing(borrowed: Borrowed) -> str:
    """`costs and ports of znver4, another core`; of single forms these instead of the costs."""
    return f"{listed(borrowed.forms or borrowed.what)} of {borrowed.core}, another core"


def with_lender(machine: str, borrowed: Sequence[Borrowed]) -> str:
    """`znver5, borrowed from znver4`, where there is one line for a machine; of some forms how many."""
    parts = (
        f"{counted(len(b.forms), 'form') + ' ' if b.forms else ''}borrowed from {b.core}" for b in borrowed
    )
    return ", ".join((machine, *parts))


def named(model: MachineModel) -> str:
    """A machine's name, with the core that it is borrowed from."""
    return with_lender(model.name, (model.borrowed,) if model.borrowed else ())


def borrowers(models: Iterable[MachineModel]) -> Iterator[str]:
    """`znver5 has costs and ports of znver4, another core`, for each that borrows."""
    yield from (f"{one.name} has {borrowing(one.borrowed)}" for one in models if one.borrowed)


def calibration_lines(known: ClaimCalibration | None) -> Iterator[str]:
    """What fresh mixes said of a machine's ports, a line each."""
    if known is None:
        return
    if known.lacks_mixes:
        yield (
            f"{known.disturbed} of {known.measured} fresh mixes were disturbed by other programs and judge "
            "nothing, so that less is sure: the same measure command draws others"
        )
    if not known.mixes:
        return
    near, (usual, most) = f"within {NEAR:.0%}", known.orders
    shares = _shares(known.mixes, PREDICTED)
    yield f"of fresh mixes {near} of what is predicted, by the least sure form: {shares}"
    if known.dealt.number:
        yield f"of those that depend on how ports are dealt out, no level's promise: {_held(known.dealt)}"
    if known.ports:
        yield (
            f"of those that ports of the least sure form decide {near} of what these allow in some order: "
            f"{_shares(known.ports, ALLOWED)}"
        )
    yield f"the same instructions in another order differ by {usual:.1%}, 1 mix in 20 by {most:.1%} or more"
    yield (
        f"{known.covered} of {known.claims} port usages were in a fresh mix, which refuted {known.refuted}: "
        "they have lost their confidence"
    )
    if known.doubted:
        yield (f"{known.doubted} more have lost some: fresh mixes of forms of their kind hold too seldom")


def calibration_line(known: ClaimCalibration | None) -> str:
    """The same in short: how many of the mixes of each level are predicted; "" where nothing is known."""
    first = next(calibration_lines(known), "")
    if known is None or known.lacks_mixes or not known.mixes:
        return first
    shares = ", ".join(f"{level} {held.share:.1%}" for level, held in known.mixes.items())
    return f"fresh mixes of instructions take what their ports predict within {NEAR:.0%}: {shares}"


def _shares(found: Mapping[str, TriedMixes], said: Mapping[str, float]) -> str:
    def shown(level: str, held: TriedMixes) -> str:
        promise = f"it says {100 * said[level]:g}%, " if level in said else ""
        return f"{level} {_held(held, promise)}"

    return ", ".join(shown(level, held) for level, held in found.items())


def _held(tried: TriedMixes, promise: str = "") -> str:
    return f"{tried.share:.1%} of {tried.number} ({promise}mean error {tried.error:.1%})"


def printable(text: str) -> str:
    """A text for a terminal: what would control it is written as an escape, a name of any length ends."""
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"
    return escaped(shown)


def escaped(text: str) -> str:
    """A text of any length without what would control a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)


def plain(report: _Report) -> _Report:
    """A report whose texts are all printable."""
    return msgspec.convert(_plain(msgspec.to_builtins(report)), type(report))


def _plain(value: object) -> object:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {_plain(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def single_text(single: Sequence[int], names: Sequence[str], ahead: bool) -> str:
    """Which ports get one operation in a cycle, and whether they are chosen for several at a time."""
    together = ", chosen so that most of its next ones find a port, too" if ahead else ""
    return f"each of {port_set(single, names)} gets one operation in a cycle of dispatch{together}"


def writeback_text(writeback: Writeback, names: Sequence[str]) -> str:
    """Which ports write one result in a cycle, and what passes those that wait for that."""
    if writeback.entries:
        some = port_set(writeback.ports, names)
        return f"{some} are got at dispatch; {writeback.entries} operations wait in front of each"
    cycles = f"{writeback.patience} cycle{'' if writeback.patience == 1 else 's'}"
    after = f"; younger ones start before what waits for that, for {cycles}" if writeback.patience else ""
    others = ", also of those that vector units send" if writeback.crossing else ""
    return f"each of {port_set(writeback.ports, names)} writes one result in a cycle{others}{after}"


def rotating_text(rotating: Sequence[int], names: Sequence[str]) -> str:
    """Which ports take operations in turn."""
    return f"{port_set(rotating, names)} take operations in turn, those first for which none waits"


def halves_text(halves: Halves, names: Sequence[str]) -> str:
    """Between which ports operations go to and fro."""
    first, second = port_set(halves.first, names), port_set(halves.second, names)
    astray = f", but for {halves.astray:.1%} of them" if halves.astray else ""
    late = f"; the last one is known {halves.late} cycles of dispatch late" if halves.late else ""
    return f"{first} and {second} are dealt out by turns to what is not for {second} alone{astray}{late}"


def narrow_text(narrow: Narrow) -> str:
    """Of which instructions a cycle takes fewer, and what shows it."""
    files = " or ".join(FILE_TEXTS.get(file, file) for file in narrow.files)
    beside = f"; with {narrow.beside} others loops take whole cycles for more" if narrow.beside else ""
    return f"{narrow.slots:g} slots a cycle of what has registers of {files}{beside} ({narrow.source})"


def wakeup_text(wakeup: Wakeup, names: Sequence[str]) -> str:
    """How results are announced, and on which ports."""
    where = " or ".join(port_set(some, names) for some in wakeup.clusters or (wakeup.ports,))
    parts = f", each operation in one of {where}" if wakeup.clusters else f" on {where}"
    unit = "operations" if wakeup.leading else "instructions"
    oldest = f"; which is the oldest is known to {wakeup.blur} {unit}" if wakeup.blur else ""
    lost = "; a port is lost to what would write a second result in a cycle" if wakeup.one_result else ""
    first = port_set(wakeup.leading, names)
    dealt = f"; what may use some of several gets those of {first} first" if wakeup.leading else ""
    so = f"{parts}{oldest}{lost}{dealt}"
    return f"what reads a result is woken up when it asks for a port, perhaps too early{so}"
