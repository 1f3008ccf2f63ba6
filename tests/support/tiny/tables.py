"""The table of a fictitious instruction set of ten instructions, in the format of those that ship."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

REGISTERS = 32
_READ, _WRITE, _IMPLICIT = 1, 2, 8
_TARGET, _FIRST, _SECOND = range(7, 12), range(12, 17), range(17, 22)
_OFFSET = range(20, 32)
_OUT = ["op1", "register", "GPR", 64, _WRITE, "", "", ""]
_ONE, _TWO = ([name, "register", "GPR", 64, _READ, "", "", ""] for name in ("op2", "op3"))
_NUMBER = ["op3", "immediate", "imm12", 12, 0, "", "", ""]
_BASE = ["op2", "register", "GPR", 64, _READ, "", "", "base"]
_AWAY = ["op3", "immediate", "imm12", 12, 0, "", "", "offset"]
_PLACE = ["[op2]", "memory", "M64", 64, _READ | _IMPLICIT, "", "", ""]
_TESTED = ["op1", *_ONE[1:]]
_STORED = ["[op2]", "memory", "M64", 64, _WRITE | _IMPLICIT, "", "", ""]
_WAY = ["op2", "branch", "offset", 12, 0, "", "", ""]
_BINARY = ("{0}, {1}, {2}", [_OUT, _ONE, _TWO], [_TARGET, _FIRST, _SECOND], "rrr", [])
_MEMORY = "{0}, [{1}, {2}]"
# Text behind the mnemonic, operands, bits of the fields, what they are, attributes; the code is the place.
FORMS = {
    "NOP": ("", [], [], "", ["nop"]),
    "SET": ("{0}, {1}", [_OUT, ["op2", *_NUMBER[1:]]], [_TARGET, _OFFSET], "rn", []),
    "ADD": _BINARY,
    "SUB": _BINARY,
    "XOR": _BINARY,
    "MUL": _BINARY,
    "ADDI": ("{0}, {1}, {2}", [_OUT, _ONE, _NUMBER], [_TARGET, _FIRST, _OFFSET], "rrn", []),
    "LD": (_MEMORY, [_OUT, _BASE, _AWAY, _PLACE], [_TARGET, _FIRST, _OFFSET], "rrn", ["memory"]),
    "ST": (_MEMORY, [_TESTED, _BASE, _AWAY, _STORED], [_TARGET, _FIRST, _OFFSET], "rrn", ["memory"]),
    "BNZ": ("{0}, {1}", [_TESTED, _WAY], [_TARGET, _OFFSET], "rb", ["branch", "conditional_branch"]),
}


def write_table(folder: Path) -> None:
    """Write the table where the package of an instruction set has it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "forms.json.xz").write_bytes(lzma.compress(json.dumps(_table()).encode()))


def _table() -> dict[str, object]:
    names = [f"X{n}" for n in range(REGISTERS)]
    attributes: list[list[str]] = []
    signatures, layouts, places, fields, forms = [], [], [], [], []
    kinds = {"r": 0, "n": 1, "b": 2}
    for code, (name, (text, operands, positions, letters, own)) in enumerate(FORMS.items(), 1):
        first = len(fields)
        for place, (bits, letter) in enumerate(zip(positions, letters, strict=True)):
            fields.append([place, 0 if letter == "r" else 1, *bits])
        layouts.append(list(range(first, len(fields))))
        places.append([[place, kinds[letter]] for place, letter in enumerate(letters)])
        signatures.append(operands)
        attributes.append(own)
        number = code - 1
        line = f"{name.lower()} {text}".rstrip()
        forms.append(
            [name, line, number, number, [[], []], 0, number, "int", f"{code:x}", 0, 4, number]
        )  # fmt: skip
    return {
        "schema_version": 1, "isa": "tiny", "source": {"forms": "made up"}, "signatures": signatures,
        "features": [["BASE"]], "attributes": attributes, "values": [[[], names], [[], []]],
        "notations": [
            ["list", [f"r{n}" for n in range(REGISTERS)]], ["number", "", "", 1, 0, 1, 10, []],
            ["number", "", "", 4, 0, 1, 10, []],
        ],
        "fields": fields, "layouts": layouts, "places": places, "forms": forms,
    }  # fmt: skip
