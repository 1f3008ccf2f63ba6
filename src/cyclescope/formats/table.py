"""Our own table as CSV: one row per form, with names in LLVM and uops.info.

`latency` is `op1->op1=3;op2->op1=3`, a range `1..6`, with what is proved behind `~` where a value rests on a
convention; `ports` the port usage with the machine's names, as `cyclescope show` has it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from cyclescope.formats.exchange import (
    Draft,
    Exported,
    FormatError,
    Imported,
    ImportRequest,
    Item,
    cycles,
    exact,
    rate,
    shortened,
)
from cyclescope.formats.text import Rows
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import load_table
from cyclescope.model.machine import FormCost, MachineModel
from cyclescope.model.ports import notation

COLUMNS = ("form", "llvm", "uops_info", "throughput", "slots", "ports", "confidence", "latency", "note")
_LATENCY = re.compile(r"([^=;]+)=([^.~;]+(?:\.\d+)?)(?:\.\.([^~;]+))?(?:~(.+?)\.\.([^;]+))?")


def write(model: MachineModel) -> Exported:
    """A model as a table."""
    table = load_table(model.isa)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    left: list[Item] = []
    for name, cost in model.forms.items():
        writer.writerow(_row(name, cost, table.get(name), model))
        left += [Item(name, reason) for reason in _not_told(cost)]
    return Exported(stream.getvalue(), tuple(left))


def _not_told(cost: FormCost) -> Iterator[str]:
    """What a row has no column for."""
    told = {
        "no column for other port usages that fit as well": cost.alternatives,
        "no column for cycles of resources": cost.resources,
        "no column for idioms, moves at rename and microcode": cost.idiom
        or cost.eliminated
        or cost.microcoded,
    }
    return (reason for reason, value in told.items() if value)


def _row(name: str, cost: FormCost, form: InstructionForm | None, model: MachineModel) -> dict[str, str]:
    return {
        "form": name,
        "llvm": form.llvm if form else "",
        "uops_info": form.uops_info if form else "",
        "throughput": "" if cost.throughput is None else exact(cost.throughput),
        "slots": "" if cost.slots is None else exact(cost.slots),
        "ports": "" if cost.operations is None else notation(cost.operations, model.ports),
        "confidence": cost.confidence,
        "latency": latencies(cost),
        "note": cost.note,
    }


def latencies(cost: FormCost) -> str:
    """All latencies of a form in one cell."""
    parts = []
    for pair in dict.fromkeys((*cost.latencies, *cost.ranges)):
        value, reach = cost.latencies.get(pair), cost.ranges.get(pair)
        spelled = "" if reach is None else "..".join(map(exact, reach))
        parts.append(
            f"{pair}={spelled}" if value is None else f"{pair}={exact(value)}" + f"~{spelled}" * bool(reach)
        )
    return ";".join(parts)


def read(path: Path, request: ImportRequest) -> Imported:
    """A table that `write` made. Ports are refused: their names run into each other. Raises FormatError."""
    rows = Rows(path)
    if not {"form", "throughput", "latency"} <= rows.columns:
        raise FormatError(
            f"{path} is no table of cyclescope", "it needs columns form, throughput and latency"
        )
    draft = Draft(load_table(request.isa), request)
    for number, row in rows:
        form = draft.table.get(row["form"] or "")
        where = f"line {number}: {row['form']}"
        if form is None:
            draft.refuse(where, "no such form")
            continue
        try:
            _add(draft, form, row)
        except ValueError as error:
            draft.refuse(where, str(error))
    return draft.imported()


def _add(draft: Draft, form: InstructionForm, row: dict[str, str]) -> None:
    if row["throughput"]:
        draft.add(form, throughput=rate(row["throughput"]))
    if row.get("slots"):
        draft.add(form, slots=cycles(row["slots"]))
    if row.get("ports"):
        draft.refuse(form.id, "the ports of a table cannot be read back")
    draft.add(form, confidence=row.get("confidence") or "", note=row.get("note") or "")
    for part in filter(None, (row["latency"] or "").split(";")):
        match = _LATENCY.fullmatch(part)
        if match is None:
            raise ValueError(f"{shortened(part)!r} is no latency")
        draft.latency(form, match[1], cycles(match[2]), cycles(match[3] or match[2]))
        if match[4]:
            draft.proved(form, match[1], cycles(match[4]), cycles(match[5]))
