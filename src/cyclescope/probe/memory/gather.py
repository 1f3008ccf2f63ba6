"""What do gathers and scatters take, by shape, mask, and the cache lines that they touch?

Several side by side, each to a register of its own, of elements that are all one, next to each other in a
line, or each in a line of its own, at other places of them or at the same; with a full mask, half of one, or
an empty one. Where an instruction clears its mask, that is copied again for each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cyclescope.model.facts import CoreAnswer
from cyclescope.probe.code import NUMBERS, PARALLEL, KernelLine, Setting, written
from cyclescope.probe.levels import precise
from cyclescope.probe.question import Model, Point, Probe, ProbeCase, ProbeVerdict, Readings

LINE_BYTES, VECTOR_BYTES = 64, 64
INDEX_REGISTER, VECTOR_MASK, MASK_REGISTER = 6, 7, 2  # registers: of indices; of a mask of vectors, and of K
_TARGETS, _COPIES, _MASKS = (0, 1, 2, 3), (8, 9, 10, 11), (1, 3, 4, 5)
_PART = "asked"
# Of what a scatter takes, as the core happens to begin: VPSCATTERDD of a Zen 4 takes 12.0 or 13.0 cycles for
# 8 elements, 22.1 or 23.0 for 16, for as long as both looks of a run.
SCATTERS_DIFFER = 0.05


class ElementPlaces(NamedTuple):
    """Where elements are: so many bytes and elements from one to the next; which of them are asked for."""

    name: str
    bytes: int
    elements: int = 0
    kept: str = "all"
    quick: bool = False


GATHERED_PLACES = (
    ElementPlaces("one element", 0),
    ElementPlaces("in one line", 0, 1, quick=True),
    ElementPlaces("in lines of their own", LINE_BYTES, 1, quick=True),
    ElementPlaces("in lines of their own, at one place of them", LINE_BYTES),
    ElementPlaces("in lines of their own, half of the mask", LINE_BYTES, 1, "half"),
    ElementPlaces("in lines of their own, an empty mask", LINE_BYTES, 1, "none"),
)


class Gathering(NamedTuple):
    """A gather or scatter: a text with @ for the register of data, and for what it does to its mask.

    `width` are bytes of an element. `masked` is what the mask is: a vector register, K, a predicate, v0.
    `copied` copies a mask, where the instruction clears it; `setup` runs once.
    """

    name: str
    form: str
    width: int
    masked: str
    stores: bool = False
    copied: str = ""
    setup: str = ""
    quick: bool = False


_VEX, _K = "VMOVAPS_28 (YMM, YMM)", "KMOVQ (K, K)"  # copies of masks
_E32 = "VSETVLI: a z #208"  # elements of 32 bits, as many as a register has
_SHAPES: Mapping[str, tuple[Gathering, ...]] = {
    "x86-64": (
        Gathering("VPGATHERDD of 4", "VPGATHERDD (XMM, VSIB_XMM, XMM)", 4, "vector", copied=_VEX),
        Gathering("VPGATHERDD of 8", "VPGATHERDD (YMM, VSIB_YMM, YMM)", 4, "vector", copied=_VEX, quick=True),
        Gathering("VPGATHERQQ of 4", "VPGATHERQQ (YMM, VSIB_YMM, YMM)", 8, "vector", copied=_VEX),
        Gathering("VPGATHERDD of 8, K", "VPGATHERDD (YMM, K, VSIB_YMM)", 4, "K", copied=_K),
        Gathering("VPGATHERDD of 16, K", "VPGATHERDD (ZMM, K, VSIB_ZMM)", 4, "K", copied=_K, quick=True),
        Gathering("VPGATHERQQ of 8, K", "VPGATHERQQ (ZMM, K, VSIB_ZMM)", 8, "K", copied=_K),
        Gathering("VPSCATTERDD of 8, K", "VPSCATTERDD (VSIB_YMM, K, YMM)", 4, "K", True, _K),
        Gathering("VPSCATTERDD of 16, K", "VPSCATTERDD (VSIB_ZMM, K, ZMM)", 4, "K", True, _K, quick=True),
        Gathering("VPSCATTERQQ of 8, K", "VPSCATTERQQ (VSIB_ZMM, K, ZMM)", 8, "K", True, _K),
    ),
    "aarch64": (
        Gathering("LD1W of 32 bits", "GLD1W_SXTW", 4, "predicate", quick=True),
        Gathering("LD1D of 64 bits", "GLD1D", 8, "predicate"),
        Gathering("ST1W of 32 bits", "SST1W_SXTW", 4, "predicate", stores=True),
    ),
    "riscv64": (
        Gathering("VLUXEI32 of 32 bits", "VLUXEI32_V", 4, "v0", setup=_E32, quick=True),
        Gathering("VSUXEI32 of 32 bits", "VSUXEI32_V", 4, "v0", stores=True, setup=_E32),
    ),
}  # fmt: skip


def _cases(isa: str) -> Iterator[ProbeCase]:
    for shape in _SHAPES.get(isa, ()):
        for spread in GATHERED_PLACES:
            point = gathered(isa, shape, spread)
            yield ProbeCase(f"{shape.name}, {spread.name}", (point,), shape.quick and spread.quick)


def gathered(isa: str, shape: Gathering, spread: ElementPlaces) -> Point:
    """Gathers side by side, with masks of their own where they clear them."""
    lines: list[KernelLine] = []
    for number in range(len(_TARGETS)):
        lines += _one(isa, shape, number)
    setup = written(isa, shape.setup) if shape.setup else ()
    return Point(_PART, tuple(lines), 0, PARALLEL, _setting(shape, spread), len(_TARGETS), setup)


def _one(isa: str, shape: Gathering, number: int) -> Iterator[KernelLine]:
    base, data = NUMBERS[isa]["p"], _TARGETS[number]
    if shape.masked == "K":
        yield KernelLine(shape.copied, (_MASKS[number], MASK_REGISTER))
        mask = _MASKS[number]
        yield KernelLine(
            shape.form,
            (base, INDEX_REGISTER, mask, data) if shape.stores else (data, mask, base, INDEX_REGISTER),
        )
    elif shape.masked == "vector":
        yield KernelLine(shape.copied, (_COPIES[number], VECTOR_MASK))
        yield KernelLine(shape.form, (data, base, INDEX_REGISTER, _COPIES[number]))
    elif shape.masked == "predicate":
        yield KernelLine(shape.form, (data, MASK_REGISTER, base, INDEX_REGISTER))
    else:
        yield KernelLine(shape.form, (data + 1, base, INDEX_REGISTER, 0))


def indices(width: int, spread: ElementPlaces) -> bytes:
    """A register of indices in bytes, for elements so wide."""
    count, step = VECTOR_BYTES // width, spread.bytes + spread.elements * width
    return struct.pack(f"<{count}{'i' if width == 4 else 'q'}", *[step * number for number in range(count)])


def _setting(shape: Gathering, spread: ElementPlaces) -> Setting:
    """Indices, and the mask in whatever holds it."""
    kept = {"all": (True, True), "half": (True, False), "none": (False, False)}[spread.kept]
    vectors = [(INDEX_REGISTER, indices(shape.width, spread))]
    if shape.masked == "vector":
        element = [b"\xff" * shape.width if one else bytes(shape.width) for one in kept]
        vectors.append((VECTOR_MASK, b"".join(element) * (VECTOR_BYTES // shape.width // 2)))
        return Setting(vectors=tuple(vectors))
    if shape.masked == "v0":
        vectors.append((0, bytes([kept[0] * 0x55 | kept[1] * 0xAA]) * VECTOR_BYTES))
        return Setting(vectors=tuple(vectors))
    bits = shape.width if shape.masked == "predicate" else 1  # a predicate has a bit per byte
    pair = kept[0] | kept[1] << bits
    mask = sum(pair << place for place in range(0, 64, 2 * bits))
    return Setting(vectors=tuple(vectors), masks=((MASK_REGISTER, mask),))


def _judge(case: ProbeCase, readings: Readings) -> ProbeVerdict:
    taken = precise(readings.get(_PART))
    return ProbeVerdict(CoreAnswer.VALUE, taken.with_error(SCATTERS_DIFFER) if _is_scatter(case) else taken)


def _is_scatter(case: ProbeCase) -> bool:
    """Whether its elements are stored."""
    forms = {line.form for point in case.points for line in point.lines}
    return any(shape.stores and shape.form in forms for some in _SHAPES.values() for shape in some)


PROBE = Probe(
    "gather",
    "What do gathers and scatters take, by shape, mask, and the cache lines that they touch?",
    Model.MATRIX,
    _cases,
    _judge,
    ("Agner Fog, test programs, gather",),
    events=("L1-dcache-loads",),
)
