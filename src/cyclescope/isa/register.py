"""Registers: names of x86-64 by class and number, and what registers LLVM's names stand for."""

from __future__ import annotations

import re
from functools import cache

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set

_LEGACY = ("AX", "CX", "DX", "BX", "SP", "BP", "SI", "DI")
VECTOR_CLASSES = ("XMM", "YMM", "ZMM")
_VECTOR_INDEX = "VSIB_"  # memory by a vector of addresses
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
    return REGISTERS[name]


def _all_names() -> dict[str, tuple[str, int]]:
    counts = {
        "R8l": 16, "R16": 16, "R32": 16, "R64": 16, "XMM": 32, "YMM": 32, "ZMM": 32, "K": 8,
        "MM": 8, "ST": 8, "SEG": 6, "BND": 4, "TMM": 8, "CR": 16, "DR": 16,
    }  # fmt: skip
    names = {register_name(c, n): (c, n) for c, count in counts.items() for n in range(count)}
    names.update({register_name("R8h", n): ("R8h", n) for n in range(4, 8)})
    names.update({f"ST{n}": ("ST", n) for n in range(8)})
    return names


REGISTERS = _all_names()  # class and number by name; ST has two spellings


def domain(cls: str) -> str:
    """The physical register file of a class, as a one-letter name.

    `r` general registers, `h` high bytes, `v` vectors, `k` masks, `m` MMX, `x` x87 stack; other
    classes (segment, control, tile, bound registers) are `?`.
    """
    return _DOMAINS.get(cls, "?")


_DOMAINS = {
    **dict.fromkeys(GENERAL_CLASSES, "r"), **dict.fromkeys(VECTOR_CLASSES, "v"),
    "R8h": "h", "K": "k", "MM": "m", "ST": "x",
}  # fmt: skip


@cache
def register_files(form: InstructionForm) -> frozenset[str]:
    """The register files of a form's operands, those of a vector of addresses among them."""
    found = {op.file or domain(op.cls) for op in form.operands if op.is_register}
    return frozenset(found | {"v" for op in form.operands if op.cls.startswith(_VECTOR_INDEX)})


# --- AArch64 and RISC-V, by LLVM's names ------------------------------------------------------------

_FILES = {
    "X": "r", "W": "r", "B": "v", "H": "v", "S": "v", "D": "v", "Q": "v", "Z": "v", "V": "v", "P": "p",
    "PN": "p", "F": "f", "T": "t",
}  # fmt: skip
_OTHER_NAMES = {"FP": "X29", "LR": "X30", "WSP": "SP"}
_ZEROS = {"XZR", "WZR"}
_PART = re.compile(r"([A-Z]+?)(\d+)(?:M(\d))?")


@cache
def units(name: str, isa: str) -> tuple[str, ...]:
    """The registers behind LLVM's name of one or several: `r3` for W3 and X3, `v8`, `v9` for Q8_Q9 and V8M2.

    Letters are register files: `r` general, `v` vectors, `f` floating point of RISC-V, `p` predicates. The
    zero register is none. State has its own name (`NZCV`, `SP`, `ZA`).
    """
    found: list[str] = []
    for part in (_OTHER_NAMES.get(part, part) for part in name.split("_")):
        match = _PART.fullmatch(part)
        if match and match[1] in _FILES:
            first = int(match[2])
            zero = part == instruction_set(isa).registers.zero
            found += [f"{_FILES[match[1]]}{n}" for n in range(first, first + int(match[3] or 1)) if not zero]
        elif len(part) > 1 and part not in _ZEROS and part != "Pair":
            found.append("ZA" if part.startswith("ZA") else part)
    return tuple(found)


def file_of(names: tuple[str, ...]) -> str:
    """The register file of registers by LLVM's names; `?` for state."""
    letters = (re.sub(r"\d.*", "", name) for name in names if name not in ("", "SP", "WSP", "FP", "LR"))
    found = next(letters, "X" if names else "")
    return _FILES.get(found, "?")
