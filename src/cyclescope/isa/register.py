"""Register names of x86-64 by class and number."""

from __future__ import annotations

from functools import cache

_LEGACY = ("AX", "CX", "DX", "BX", "SP", "BP", "SI", "DI")
VECTOR_CLASSES = ("XMM", "YMM", "ZMM")
GENERAL_CLASSES = ("R8l", "R8h", "R16", "R32", "R64")


@cache
def register_name(cls: str, number: int) -> str:
    """Upper-case name of register `number` of a class: (`R32`, 0) is `EAX`."""
    if cls in GENERAL_CLASSES:
        return _general(cls, number)
    if cls == "ST":
        return f"ST({number})"
    if cls == "SEG":
        return ("ES", "CS", "SS", "DS", "FS", "GS")[number]
    return f"{cls}{number}"


def _general(cls: str, number: int) -> str:
    if cls == "R8h":
        return ("AH", "CH", "DH", "BH")[number - 4]
    if number >= 8:
        return f"R{number}" + {"R64": "", "R32": "D", "R16": "W", "R8l": "B"}[cls]
    name = _LEGACY[number]
    if cls == "R8l":
        return name[0] + "L" if number < 4 else name + "L"
    return {"R64": "R", "R32": "E", "R16": ""}[cls] + name


@cache
def register_number(name: str) -> tuple[str, int]:
    """Class and number of a register by its (upper-case) name. Raises KeyError if unknown."""
    return _BY_NAME[name]


def _all_names() -> dict[str, tuple[str, int]]:
    counts = {
        "R8l": 16, "R16": 16, "R32": 16, "R64": 16, "XMM": 32, "YMM": 32, "ZMM": 32, "K": 8,
        "MM": 8, "ST": 8, "SEG": 6, "BND": 4, "TMM": 8, "CR": 16, "DR": 16,
    }  # fmt: skip
    names = {register_name(c, n): (c, n) for c, count in counts.items() for n in range(count)}
    names.update({register_name("R8h", n): ("R8h", n) for n in range(4, 8)})
    names.update({f"ST{n}": ("ST", n) for n in range(8)})
    return names


_BY_NAME = _all_names()


def domain(cls: str) -> str:
    """The physical register file of a class, as a one-letter name.

    `r` general registers, `h` high bytes, `v` vectors, `k` masks, `m` MMX, `x` x87 stack; other
    classes (segment, control, tile, bound registers) are `?`.
    """
    if cls in VECTOR_CLASSES:
        return "v"
    table = {"R8l": "r", "R16": "r", "R32": "r", "R64": "r", "R8h": "h", "K": "k", "MM": "m", "ST": "x"}
    return table.get(cls, "?")
