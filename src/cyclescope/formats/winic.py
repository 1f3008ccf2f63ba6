"""WINIC's YAML: LLVM's opcode, latencies by LLVM's operand numbers, throughput with its bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

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
)
from cyclescope.formats.llvm.exegesis import longest
from cyclescope.formats.llvm.operands import is_named, untied_name
from cyclescope.formats.yaml_text import document
from cyclescope.isa.dataflow import pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table, load_table
from cyclescope.model.machine import FormCost, MachineModel

_KINDS = {"register": "register", "immediate": "immediate", "memory": "memory", "address": "memory"}
Ends = tuple[str, str]


def write(model: MachineModel) -> Exported:
    """A model as WINIC writes it, memory operands included as operands but not in latencies."""
    left: list[Item] = []
    parts = ["---\n"]
    named: dict[str, list[tuple[InstructionForm, FormCost]]] = {}
    for form in load_table(model.isa):
        cost = model.forms.get(form.id)
        if cost is None:
            continue
        if is_named(form):
            named.setdefault(form.llvm, []).append((form, cost))
        else:
            left.append(Item(form.id, "LLVM has no name for it"))
    for name, some in named.items():
        form, cost = _usual(some)
        left += [Item(f.id, "LLVM has one name for several forms", name) for f, _ in some if f is not form]
        memory = sum(".data" in pair or ".index" in pair for pair in (*cost.latencies, *cost.ranges))
        if memory:
            left.append(Item(form.id, "WINIC has no latencies from or to memory", f"{memory} pairs"))
        parts.append(_entry(form, cost))
    return Exported("".join(parts), tuple(left))


def _usual(some: Sequence[tuple[InstructionForm, FormCost]]) -> tuple[InstructionForm, FormCost]:
    """Of forms with one name one that is neither slow nor fast: of LEA, the first alone may be a move."""
    known = [one for one in some if one[1].throughput is not None] or some
    return sorted(known, key=lambda one: one[1].throughput or 0.0)[len(known) // 2]


def _entry(form: InstructionForm, cost: FormCost) -> str:
    lines = [f"- llvmName:        {form.llvm}", f"  name:            {form.mnemonic.lower()}", "  operands:"]
    for op in form.operands:
        if not op.implicit:
            lines += [
                f"    - class:           {_KINDS.get(op.kind, op.kind)}",
                f"      name:            {op.fixed or op.cls}",
                f"      read:            {_bool(op.read)}", f"      write:           {_bool(op.write)}",
            ]  # fmt: skip
    whole = longest(form, cost)
    lines.append(f"  latency:         {'null' if whole is None else exact(whole)}")
    lines.append("  operandLatencies:")
    for (source, target), (least, most) in _latencies(form, cost).items():
        lines += [
            f"    - sourceOperand:   '{source}'", f"      targetOperand:   '{target}'",
            f"      latencyMin:      {exact(least)}", f"      latencyMax:      {exact(most)}",
        ]  # fmt: skip
    value = "null" if cost.throughput is None else exact(cost.throughput)
    lines += [f"  {name + ':':16} {value}" for name in ("throughput", "throughputMin", "throughputMax")]
    return "\n".join(lines) + "\n"


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _latencies(form: InstructionForm, cost: FormCost) -> dict[Ends, tuple[float, float]]:
    """What is known by LLVM's operands; flags are one register there: from their least to their most."""
    found: dict[Ends, tuple[float, float]] = {}
    for ends, pair in _ends(form):
        known = cost.latencies.get(pair)
        reach = cost.ranges.get(pair) if known is None else (known, known)
        if reach is not None:
            least, most = found.get(ends, reach)
            found[ends] = min(least, reach[0]), max(most, reach[1])
    return found


def _ends(form: InstructionForm) -> Iterator[tuple[Ends, str]]:
    for pair in pairs(form):
        source, target = untied_name(form, pair.source), untied_name(form, pair.target)
        if source is not None and target is not None:
            yield (source, target), f"{pair.source.name}->{pair.target.name}"


# --- reading -----------------------------------------------------------------------------------------


class _Latency(msgspec.Struct, rename="camel"):
    source_operand: str
    target_operand: str
    latency_min: float | None = None
    latency_max: float | None = None


class _Entry(msgspec.Struct, rename="camel"):
    llvm_name: str
    operand_latencies: list[_Latency] | dict[str | int, dict[str | int, float | None]] | None = None
    throughput: float | None = None


def read(path: Path, request: ImportRequest) -> Imported:
    """The entries of a file; ranges whose least is more than their most are refused, and so on."""
    table = load_table(request.isa)
    draft = Draft(table, request)
    by_name = forms_by_name(table)
    found = document(path)
    if not isinstance(found, list):
        raise FormatError(f"{path} is no list of instructions", "WINIC writes one")
    for number, raw in enumerate(found, 1):
        try:
            entry = msgspec.convert(raw, _Entry)
        except msgspec.ValidationError as error:
            draft.refuse(f"entry {number}", str(error))
            continue
        forms = by_name.get(entry.llvm_name, [])
        if forms:
            _add(draft, forms, entry)
        elif entry.throughput is not None or entry.operand_latencies:
            draft.refuse(f"entry {number}: {entry.llvm_name}", "no form has this name")
    return draft.imported()


def forms_by_name(table: Table) -> dict[str, list[InstructionForm]]:
    """Forms by the name that WINIC has of them."""
    found: dict[str, list[InstructionForm]] = {}
    for form in filter(is_named, table):
        found.setdefault(form.llvm, []).append(form)
    return found


def _add(draft: Draft, forms: Sequence[InstructionForm], entry: _Entry) -> None:
    if entry.throughput is not None:
        try:
            value = rate(entry.throughput)
        except ValueError as error:
            draft.refuse(f"{entry.llvm_name} throughput", str(error))
        else:
            for form in forms:
                draft.add(form, throughput=value)
    for latency in _listed(entry):
        if latency.latency_min is None or latency.latency_max is None:
            continue
        ends = latency.source_operand, latency.target_operand
        found = [(form, pair) for form in forms for own, pair in _ends(form) if own == ends]
        try:
            add_latency(draft, found, latency.latency_min, latency.latency_max)
        except ValueError as error:
            draft.refuse(f"{forms[0].llvm} {ends[0]} -> {ends[1]}", str(error))


def _listed(entry: _Entry) -> Sequence[_Latency]:
    """Latencies as a list; the first versions had cycles by source and target."""
    found = entry.operand_latencies or ()
    if not isinstance(found, dict):
        return tuple(found)
    return [
        _Latency(str(source), str(target), value, value)
        for source, targets in found.items()
        for target, value in targets.items()
    ]


def add_latency(
    draft: Draft, found: Sequence[tuple[InstructionForm, str]], least: object, most: object
) -> None:
    """One latency, for every form that has such a pair. Raises ValueError with the reason."""
    low, high = cycles(least), cycles(most)
    if low > high:
        raise ValueError(f"from {low:g} to {high:g} cycles")
    if not found:
        raise ValueError("no such pair of operands")
    for form, pair in found:
        draft.latency(form, pair, low, high)
