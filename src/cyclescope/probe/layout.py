"""Code with branches: where labels are, and what fills the bytes between pieces that are executed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from cyclescope.isa.table import Table, load_table
from cyclescope.probe.code import KernelLine, instruction, written

ALONE_IN_LOOP = 400  # instructions of a body that is not repeated, most of them never executed
TARGET = "@"  # in a branch's text: how far it goes


class Label(NamedTuple):
    """A place that branches lead to."""

    name: str


class Branch(NamedTuple):
    """A text with a constant @, which leads to a label."""

    text: str
    to: str


class Distance(NamedTuple):
    """A text with a constant @: bytes to a label, from another one, or on x86-64 from its own end."""

    text: str
    begin: str
    to: str


class Fill(NamedTuple):
    """What nobody executes, up to a multiple of so many bytes from the beginning."""

    bytes: int


Item = str | Label | Branch | Distance | Fill


class BranchReach(NamedTuple):
    """How branches of an instruction set count: so many bytes a step, from their own beginning or end."""

    step: int
    from_end: bool
    fillers: tuple[str, ...]  # longest first


_REACH: Mapping[str, BranchReach] = {
    "x86-64": BranchReach(
        1, True, ("MOV (R64, I64): a #0", "LEA_B_D32 (R64): a p", "NOP (R64): a", "NOP_90", "NOP")
    ),
    "aarch64": BranchReach(4, False, ("NOP",)),
    "riscv64": BranchReach(2, False, ("ADDI: z z #0", "C_NOP")),
}


def laid_out(isa: str, items: Iterable[Item]) -> tuple[KernelLine, ...]:
    """The lines of texts, branches with their distances. Raises ValueError for what reaches no label."""
    every = list(items)
    places, ends = _places(isa, every)
    lines: list[KernelLine] = []
    for item, (begin, end) in zip(every, ends, strict=True):
        if isinstance(item, Branch):
            lines.append(_branch(isa, item, begin, end, places))
        elif isinstance(item, Distance):
            first = end if _REACH[isa].from_end else places[item.begin]
            lines.append(_line(isa, item.text.replace(TARGET, f"{places[item.to] - first:+d}")))
        elif isinstance(item, Fill):
            lines += _filler(isa, end - begin)
        elif isinstance(item, str):
            lines.append(_line(isa, item))
    return tuple(lines)


def _places(isa: str, items: Sequence[Item]) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """Where labels are, and where every item begins and ends, in bytes."""
    at, labels, ends = 0, {}, []
    for item in items:
        begin = at
        if isinstance(item, Label):
            labels[item.name] = at
        elif isinstance(item, Fill):
            at += -at % item.bytes
        else:
            at += _bytes(isa, item if isinstance(item, str) else item.text.replace(TARGET, "+0"))
        ends.append((begin, at))
    return labels, ends


def _branch(isa: str, item: Branch, begin: int, end: int, places: Mapping[str, int]) -> KernelLine:
    reach = _REACH[isa]
    steps = (places[item.to] - (end if reach.from_end else begin)) // reach.step
    width = _width(isa, item.text)
    if width and not -(1 << (width - 1)) <= steps < 1 << (width - 1):
        raise ValueError(f"{item.text} does not reach so far")
    return _line(isa, item.text.replace(TARGET, str(steps & (1 << width) - 1 if width else steps)))


@cache
def _width(isa: str, text: str) -> int:
    """Bits of the distance in a form of bit fields, 0 for others, which know by themselves."""
    form = _table(isa)[text.partition(": ")[0]]
    return (
        next((f.values.width for f in reversed(form.bits.fields) if not f.is_register), 0) if form.bits else 0
    )


def _filler(isa: str, size: int) -> Iterable[KernelLine]:
    for text in _REACH[isa].fillers:
        count, size = divmod(size, _bytes(isa, text))
        yield from (_line(isa, text),) * count


@cache
def _line(isa: str, text: str) -> KernelLine:
    return written(isa, text)[0]


@cache
def _bytes(isa: str, text: str) -> int:
    return len(instruction(_table(isa), _line(isa, text)).code)


@cache
def _table(isa: str) -> Table:
    return load_table(isa)
