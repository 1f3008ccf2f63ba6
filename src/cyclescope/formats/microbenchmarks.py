"""Reading the output of ibench and of asmbench, x86-64, in the shape in which OSACA imports it.

ibench prints a line per benchmark, `vaddpd-x_x_x-TP: 0.500 (clock cycles)`; asmbench three lines per
instruction, `vaddpd-x_x_x`, `Latency: 4.00 cycle`, `Throughput: 0.50 cycle`; OSACA has `cy` for the unit.
Operands are in AT&T's order: `r`, `x`, `y`, `z`, `i`, and `m` with the parts of an address (`mbis`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cyclescope.formats.exchange import Draft, Imported, ImportRequest, cycles, rate
from cyclescope.formats.spelled import Spelling, by_spelling
from cyclescope.formats.text import contents
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.table import load_table

_IBENCH = re.compile(r"\s*([\w.]+)(?:-([a-z_0-9]+))?-(TP|LT)\s*:\s*(-?[\w.+-]+)")
_NAME = re.compile(r"([\w.]+)(?:-([a-z_]+))?\s*")
_VALUE = re.compile(r"(Latency|Throughput):\s*(-?[\w.+-]+)\s*cy(?:cles?)?\s*")
_KINDS = {"R64": "r", "XMM": "x", "YMM": "y", "ZMM": "z"}
Reading = tuple[str, str, str, str]  # mnemonic, operands, TP or LT, value


def read_ibench(path: Path, request: ImportRequest) -> Imported:
    """What ibench printed. Raises FormatError."""
    lines = contents(path).splitlines()
    found = (match for match in map(_IBENCH.match, lines) if match)
    return _read(((m[1], m[2] or "", m[3], m[4]) for m in found), request)


def read_asmbench(path: Path, request: ImportRequest) -> Imported:
    """What asmbench printed. Raises FormatError."""
    return _read(_asmbench(contents(path).splitlines()), request)


def _asmbench(lines: Sequence[str]) -> Iterator[Reading]:
    name: re.Match[str] | None = None
    for line in lines:
        value = _VALUE.match(line)
        if value and name:
            yield name[1], name[2] or "", "LT" if value[1] == "Latency" else "TP", value[2]
        elif not value:
            name = _NAME.fullmatch(line)


def _read(readings: Iterator[Reading], request: ImportRequest) -> Imported:
    draft = Draft(load_table("x86-64"), request)
    forms = by_spelling(draft.table, _kind, backwards=True)
    for mnemonic, operands, quantity, value in readings:
        _add(draft, forms, mnemonic, operands, quantity, value)
    return draft.imported()


def _kind(op: Operand) -> str:
    if op.fixed:
        return ""
    if op.kind == "immediate":
        return "i" if op.cls != "1" else ""
    return "m" if op.is_memory and op.cls.removeprefix("M").isdecimal() else _KINDS.get(op.cls, "")


def _add(
    draft: Draft, forms: Mapping[Spelling, Sequence[InstructionForm]],
    mnemonic: str, operands: str, quantity: str, text: str,
) -> None:  # fmt: skip
    kinds = tuple("m" if word.startswith("m") else word for word in operands.split("_")) if operands else ()
    where = f"{mnemonic}-{operands}-{quantity}"
    matching = [form for form in forms.get((mnemonic.lower(), kinds), []) if "evex" not in form.attributes]
    try:
        if not matching:
            raise ValueError("no form has this name and operands")
        for form in matching:
            _take(draft, form, quantity, text)
    except ValueError as error:
        draft.refuse(where, str(error))


def _take(draft: Draft, form: InstructionForm, quantity: str, text: str) -> None:
    if quantity == "TP":
        draft.add(form, throughput=rate(text))
        return
    value, found = cycles(text), draft.register_pairs(form)
    for pair in found:  # one number for all sources: the most of them
        draft.latency(form, pair, value if len(found) == 1 else 0.0, value)
