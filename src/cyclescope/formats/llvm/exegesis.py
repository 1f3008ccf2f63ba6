"""llvm-exegesis' YAML: one record per form, of latencies or of reciprocal throughputs.

`llvm-exegesis -mode=analysis` reads such a file and says where LLVM's scheduling model differs. A record
of a latency has one number: the most of all pairs of registers. Records have LLVM's opcode, an instruction
of it with operands, and its machine code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
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
from cyclescope.formats.llvm.operands import has_condition, has_rounding, is_named, operands
from cyclescope.formats.yaml_text import documents
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.register import register_name
from cyclescope.isa.table import load_table
from cyclescope.kernel.chain import Unmeasurable
from cyclescope.kernel.instruction import Instruction
from cyclescope.measure.plan import Planner
from cyclescope.model.machine import FormCost, MachineModel

LATENCY, THROUGHPUT = "latency", "inverse_throughput"
TRIPLES = {"x86-64": "x86_64-unknown-linux-gnu"}
RETURN = b"\xc3"
_ABSENT, _NEAREST = "%noreg", 4  # rounding as the control register says


def write_latencies(model: MachineModel) -> Exported:
    """One record per form with the most of its latencies. Raises FormatError."""
    return _write(model, LATENCY)


def write_throughputs(model: MachineModel) -> Exported:
    """One record per form with its reciprocal throughput. Raises FormatError."""
    return _write(model, THROUGHPUT)


def _write(model: MachineModel, mode: str) -> Exported:
    if model.isa not in TRIPLES:
        raise FormatError(f"llvm-exegesis' files are written for {', '.join(TRIPLES)} only",
                          f"{model.name} is {model.isa}")  # fmt: skip
    table = load_table(model.isa)
    planner = Planner(table, lambda _: True)
    left: list[Item] = []
    records = []
    for form in table:
        cost = model.forms.get(form.id)
        value = None if cost is None else _value(form, cost, mode)
        if cost is None or value is None:
            continue
        instruction = _instruction(planner, form)
        if instruction is None or not is_named(form) or "string" in form.attributes:
            left.append(Item(form.id, "LLVM has no name or no explicit operands for it"))
            continue
        records.append(_record(model, mode, instruction, value))
    if not records:
        what = mode.removeprefix("inverse_")
        raise FormatError(f"{model.name} has no {what} of a form that llvm-exegesis can name",
                          "choose another {format}")  # fmt: skip
    return Exported("".join(records), tuple(left))


def _value(form: InstructionForm, cost: FormCost, mode: str) -> float | None:
    return cost.throughput if mode == THROUGHPUT else longest(form, cost)


def longest(form: InstructionForm, cost: FormCost) -> float | None:
    """The most of a form's latencies between registers; from or to flags where there are no others.

    A chain through registers is what llvm-exegesis measures: no data in memory, no address.
    """
    outside = (".data", ".address", ".index", ".old")
    pairs = {pair: value for pair, value in cost.latencies.items() if not any(p in pair for p in outside)}
    values = [value for pair, value in pairs.items() if "flags." not in pair] or list(pairs.values())
    return max(values, default=None)


def _instruction(planner: Planner, form: InstructionForm) -> Instruction | None:
    """One instruction of a form as a latency kernel has it."""
    try:
        kernel = planner.probe_kernel(form)
    except Unmeasurable:
        return None
    found = [item for item in kernel.body if item.form is form] if kernel is not None else []
    return found[0] if found else None


def _record(model: MachineModel, mode: str, instruction: Instruction, value: float) -> str:
    spelled = " ".join((instruction.form.llvm, *_operands(instruction)))
    code = (instruction.code + RETURN).hex().upper()
    return (
        f"---\nmode:            {mode}\nkey:\n  instructions:\n    - '{spelled}'\n  config:          ''\n"
        f"  register_initial_values: []\ncpu_name:        {_cpu(model)}\n"
        f"llvm_triple:     {TRIPLES[model.isa]}\n"
        f"num_repetitions: 10000\nmeasurements:\n"
        f"  - {{ key: {mode}, value: {exact(value)}, per_snippet_value: {exact(value)} }}\n"
        f"error:           ''\ninfo:            {instruction.form.id!r}\nassembled_snippet: {code}\n...\n"
    )


def _cpu(model: MachineModel) -> str:
    """LLVM's name of the core, which this project's names of measured machines end in."""
    return model.name.split()[-1]


def _operands(instruction: Instruction) -> Iterator[str]:
    """Operands as llvm-exegesis spells them: registers, `i_0x10`, `%noreg`."""
    form = instruction.form
    slots = form.encoding.slots if form.encoding else ()
    number = {(slot.operand, slot.part): n for slot, n in zip(slots, instruction.registers, strict=False)}
    constants = iter(instruction.immediates or ())
    for operand in operands(form):
        op = form.operands[operand.position]
        if operand.part >= 0:
            yield _address_part(instruction, number, operand.position, operand.part)
        elif op.is_register:
            yield _register(op.cls, number[operand.position, 0])
        else:
            yield f"i_{next(constants, 0):#x}"
    if has_condition(form):
        yield f"i_{_condition(instruction.code):#x}"
    if has_rounding(form):
        yield f"i_{_NEAREST:#x}"


def _register(cls: str, number: int) -> str:
    return f"ST{number}" if cls == "ST" else register_name(cls, number)


def _address_part(
    instruction: Instruction, number: dict[tuple[int, int], int], position: int, part: int
) -> str:
    op = instruction.form.operands[position]
    if part == 0:
        return register_name("R64", number[position, 1]) if (position, 1) in number else _ABSENT
    if part == 1:
        return "i_0x1"
    if part == 2 and (position, 2) in number:
        cls = op.cls.removeprefix("VSIB_") if op.cls.startswith("VSIB_") else "R64"
        return register_name(cls, number[position, 2])
    return f"i_{instruction.displacement:#x}" if part == 3 else _ABSENT


def _condition(code: bytes) -> int:
    """The condition of a conditional jump, move or SETcc: the low bits of its opcode."""
    for first, second in pairwise(code):
        if first == 0x0F and second & 0xF0 in (0x40, 0x80, 0x90):
            return second & 0xF
    return next((byte & 0xF for byte in code if byte & 0xF0 == 0x70), 0)


# --- reading -----------------------------------------------------------------------------------------


class _Key(msgspec.Struct):
    instructions: list[str]


class _Measure(msgspec.Struct):
    key: str
    value: float


class _Record(msgspec.Struct):
    mode: str
    key: _Key
    measurements: list[_Measure]
    error: str | None = ""


def read(path: Path, request: ImportRequest) -> Imported:
    """The records of a file. Raises FormatError.

    A latency is taken for a pair only where the form has no more than one that it can be.
    """
    table = load_table(request.isa)
    draft = Draft(table, request)
    by_name: dict[str, list[InstructionForm]] = {}
    planner = Planner(table, lambda _: True)
    for form in filter(is_named, table):
        by_name.setdefault(_key(planner, form), []).append(form)
    for place, document in enumerate(documents(path), 1):
        try:
            record = msgspec.convert(document, _Record)
        except msgspec.ValidationError as error:
            draft.refuse(f"record {place}", str(error))
            continue
        _add(draft, by_name, place, record)
    return draft.imported()


def _key(planner: Planner, form: InstructionForm) -> str:
    """LLVM's name, with the condition where it is an operand: `CMOV64rr i_0x4`."""
    instruction = _instruction(planner, form) if has_condition(form) else None
    return f"{form.llvm} {list(_operands(instruction))[-1]}" if instruction else form.llvm


def _add(draft: Draft, by_name: dict[str, list[InstructionForm]], place: int, record: _Record) -> None:
    words = record.key.instructions[0].split() if record.key.instructions else []
    name = words[0] if words else ""
    forms = by_name.get(name) or by_name.get(f"{name} {words[-1]}" if words else "", [])
    where = f"record {place}: {name}"
    if record.error or not forms or len({i.split()[0] for i in record.key.instructions}) > 1:
        draft.refuse(
            where, record.error or ("no form has this name" if not forms else "several instructions")
        )
        return
    for measure in record.measurements:
        try:
            _take(draft, forms, measure)
        except ValueError as error:
            draft.refuse(where, str(error))


def _take(draft: Draft, forms: Sequence[InstructionForm], measure: _Measure) -> None:
    for form in forms:
        if measure.key == THROUGHPUT:
            draft.add(form, throughput=rate(measure.value))
        elif measure.key == LATENCY:
            pairs = draft.register_pairs(form)
            if len(pairs) != 1:
                raise ValueError(f"one latency for {len(pairs)} pairs of registers")
            draft.latency(form, pairs[0], *[cycles(measure.value)] * 2)
        else:
            raise ValueError(f"nothing is known of {measure.key!r}")
