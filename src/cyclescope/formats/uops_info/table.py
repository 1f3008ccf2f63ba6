"""Reading uops.info's table as CSV: instruction, latency, throughput, micro-operations, ports.

The latency is a summary over all pairs of operands: `3` of each, `[1;≤6]` from the least to the most. A
throughput of `0.50 / 4.00` is what the ports allow and what was measured.
"""

from __future__ import annotations

import re
from pathlib import Path

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
from cyclescope.formats.text import Rows
from cyclescope.isa.dataflow import pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import load_table

COLUMNS = {"instruction", "latency", "throughput", "uops", "ports"}
_BOTH = re.compile(r"\[(≤?)([\d.]+);(≤?)([\d.]+)\]")
_ONE = re.compile(r"(≤?)([\d.]+)")
_PORTS = re.compile(r"(\d+)\*(p|FP)([0-9A-Fa-f]+)")


def read(path: Path, request: ImportRequest) -> Imported:
    """The rows of a table. Raises FormatError."""
    rows = Rows(path)
    missing = COLUMNS - rows.columns
    if missing:
        raise FormatError(f"{path} has no column {', '.join(sorted(missing))}", "it is no table of uops.info")
    draft = Draft(load_table("x86-64"), request)
    by_name = {form.uops_info: form for form in draft.table if form.uops_info}
    for number, row in rows:
        form = by_name.get((row["instruction"] or "").strip('" '))
        where = f"line {number}: {row['instruction']}"
        if form is None:
            draft.refuse(where, "no form has this name")
            continue
        for take in (_throughput, _latency, _usage):
            try:
                take(draft, form, {key: (row[key] or "").strip('" ') for key in COLUMNS})
            except ValueError as error:
                draft.refuse(where, str(error))
    return draft.imported()


def _throughput(draft: Draft, form: InstructionForm, row: dict[str, str]) -> None:
    """The first of two follows from the ports alone, the second was measured."""
    measured = row["throughput"].rpartition("/")[2].strip()
    if measured:
        draft.add(form, throughput=rate(measured))


def _latency(draft: Draft, form: InstructionForm, row: dict[str, str]) -> None:
    text = row["latency"]
    if not text:
        return
    one, both = _ONE.fullmatch(text), _BOTH.fullmatch(text)
    if one:
        most = cycles(one[2])
        least = 0.0 if one[1] else most
    elif both:
        most = cycles(both[4])
        least = 0.0 if both[1] or both[3] else cycles(both[2])
    else:
        raise ValueError(f"{shortened(text)!r} is no latency")
    for pair in pairs(form):
        if not pair.excluded:
            draft.latency(form, f"{pair.source.name}->{pair.target.name}", least, most)


def _usage(draft: Draft, form: InstructionForm, row: dict[str, str]) -> None:
    """Port usage that has every micro-operation: of AMD only the vector ports are known."""
    parts = [_PORTS.fullmatch(part) for part in row["ports"].split("+")] if row["ports"] else []
    found = [part for part in parts if part]
    if len(found) < len(parts):
        raise ValueError(f"{shortened(row['ports'])!r} is no port usage")
    if found and row["uops"].isdecimal() and sum(int(part[1]) for part in found) == int(row["uops"]):
        names = [[f"{part[2].removeprefix('p')}{digit}" for digit in part[3]] for part in found]
        usage = [operation(ports, int(part[1]), draft) for ports, part in zip(names, found, strict=True)]
        draft.add(form, operations=tuple(usage))
