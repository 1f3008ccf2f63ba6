"""WINIC's results as tables: a row per opcode of LLVM, or per pair of operands.

`llvm_name,value_min,value_max,status,flags,...` has throughputs, `llvm_name,pair,value_min,...` latencies,
with pairs such as `1:GR64->0:GR64` or `EFLAGS->0:GR64`. Rows without a value are no news; those that the
table has doubts about (`flags`) are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cyclescope.formats.exchange import Draft, FormatError, Imported, ImportRequest, rate, shortened
from cyclescope.formats.llvm.operands import tied_name
from cyclescope.formats.text import Rows
from cyclescope.formats.winic import add_latency, forms_by_name
from cyclescope.isa.dataflow import pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import load_table

COLUMNS = {"llvm_name", "value_min", "value_max"}
_PAIR = "pair"


def read(path: Path, request: ImportRequest) -> Imported:
    """The values of a table. Raises FormatError."""
    rows = Rows(path)
    missing = COLUMNS - rows.columns
    if missing:
        raise FormatError(f"{path} has no column {', '.join(sorted(missing))}", "it is no table of WINIC's")
    draft = Draft(load_table(request.isa), request)
    by_name = forms_by_name(draft.table)
    for number, row in rows:
        if not (row["value_min"] and row["value_max"]):
            continue
        where = f"line {number}: {row['llvm_name']}"
        try:
            _add(draft, by_name.get(row["llvm_name"] or "", ()), row)
        except ValueError as error:
            draft.refuse(where, str(error))
    return draft.imported()


def _add(draft: Draft, forms: Sequence[InstructionForm], row: Mapping[str, str]) -> None:
    if row.get("flags"):
        raise ValueError(f"the table has doubts: {shortened(row['flags'])}")
    if not forms:
        raise ValueError("no form has this name")
    if _PAIR in row:
        found = [(form, pair) for form in forms for pair in _pairs(form, *_ends(row[_PAIR]))]
        add_latency(draft, found, row["value_min"], row["value_max"])
        return
    least, most = rate(row["value_min"]), rate(row["value_max"])
    if least != most:
        raise ValueError("a range: it rests on what another instruction was taken to cost")
    for form in forms:
        draft.add(form, throughput=least)


def _ends(pair: str) -> tuple[str, str]:
    """Source and target as numbers of LLVM's operands or names of registers, without their classes."""
    source, arrow, target = pair.partition("->")
    if not arrow:
        raise ValueError(f"{shortened(pair)!r} is no pair of operands")
    return source.partition(":")[0], target.partition(":")[0]


def _pairs(form: InstructionForm, source: str, target: str) -> Iterator[str]:
    """Our names of a pair; what is read and written has two numbers, unlike in WINIC's YAML."""
    for pair in pairs(form):
        if (tied_name(form, pair.source, False), tied_name(form, pair.target, True)) == (source, target):
            yield f"{pair.source.name}->{pair.target.name}"
