"""What a renamer does, as LLVM says it: moves, zero idioms, and what does not wait for its sources.

LLVM lists opcodes with a predicate on their operands. What it has no words for is kept with the reason: moves
with another number of sources than results, idioms with memory, or with constants that nobody asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

import msgspec

from cyclescope.formats.llvm.operands import (
    implicit_results,
    implicit_sources,
    is_llvms,
    opcode_forms,
    operands,
    results,
)
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import load_table
from cyclescope.model.behaviour.sizes import Registers, free_registers
from cyclescope.model.facts import (
    DEPENDENCY_BREAKING,
    ITSELF,
    MOVE_ELIMINATION,
    ZERO_IDIOMS,
    CoreAnswer,
)
from cyclescope.model.machine import FormCost, MachineModel

MOVES, ZEROS, BREAKING = "IsOptimizableRegisterMove", "IsZeroIdiomFunction", "IsDepBreakingFunction"
MEMBERS = {MOVES: "InstructionEquivalenceClass", ZEROS: "DepBreakingClass", BREAKING: "DepBreakingClass"}
IDIOMS = {ZEROS: "zero", BREAKING: "breaking"}
ALWAYS = "TruePred"
_PROBES = {MOVES: (MOVE_ELIMINATION,), ZEROS: (DEPENDENCY_BREAKING, ZERO_IDIOMS),
           BREAKING: (DEPENDENCY_BREAKING, ZERO_IDIOMS)}  # fmt: skip
_NO_OPCODE = "LLVM has no opcode of it alone"
UNLIMITED = 10_000  # registers: more than instructions in flight write on any core; LLVM wants a number
_TWO = 2  # registers: fewer are not compared
_MOST_MOVED = 2  # results: a move has one, an exchange two, and llvm-mca eliminates nothing else
_SIZED = {
    Registers.INTEGER: "Integers", Registers.VECTOR: "Vectors", Registers.FLOATING: "Floats",
}  # fmt: skip
# Register files: classes of operands, and LLVM's class with all registers that these are part of.
_FILES: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "x86-64": (
        (r"R(8[lh]|16|32|64)", "Integers", "GR64"), ("XMM", "Vectors", "VR128X"),
        ("YMM", "Vectors", "VR256X"), ("ZMM", "Vectors", "VR512"), ("K", "Masks", "VK64"),
        ("MM", "Mmx", "VR64"),
    ),
    "aarch64": (
        (r"GPR(32|64)(z|sp|common)?", "Integers", "GPR64"), (r"FPR(\d+)(Op)?|V(64|128)", "Vectors", "FPR128"),
        (r"ZPR\d+|Z_[bhsdq]", "Vectors", "ZPR"), (r"PPR\d+", "Masks", "PPR"),
    ),
    "riscv64": (
        ("GPR(NoX[02]|C)?", "Integers", "GPR"), ("FPR(16|32|64)C?", "Floats", "FPR64"),
        ("VR", "Vectors", "VR"),
    ),
}  # fmt: skip


class Said(msgspec.Struct, frozen=True):
    """What is said of an opcode: a function of LLVM's and the predicate on the operands."""

    function: str
    predicate: str


class Renaming(msgspec.Struct, frozen=True):
    """What is said by opcode; register files with their classes; why forms are not said, by the reason.

    `sizes` are the registers of those files of which that is known.
    """

    said: Mapping[str, Said]
    files: Mapping[str, list[str]]
    unsaid: Mapping[str, list[str]]
    sizes: Mapping[str, int] = {}

    def zero(self, opcode: str) -> str:
        """When an opcode needs no unit, "" for never."""
        found = self.said.get(opcode)
        return found.predicate if found and found.function == ZEROS else ""


def renaming(model: MachineModel) -> Renaming:
    """What probes found, and where they did not ask what the costs of forms say."""
    facts = {(f.probe, f.subject): f.answer for f in model.facts if f.is_resolved}
    said: dict[str, Said] = {}
    files: dict[str, dict[str, None]] = {}
    unsaid: dict[str, list[str]] = {}
    by_opcode = opcode_forms(load_table(model.isa))
    named = {form.id for forms in by_opcode.values() for form in forms}
    for name, cost in model.forms.items():
        if name not in named and (cost.eliminated or cost.idiom):
            unsaid.setdefault(_NO_OPCODE, []).append(name)
    for opcode, forms in by_opcode.items():
        known = [form for form in forms if form.id in model.forms]
        functions = [_function(form, model.forms[form.id], facts) for form in known]
        try:
            if any(functions):
                said[opcode] = _said(known, functions, facts)
            if any(functions) and functions[0] == MOVES:
                file, name = _file(known[0], model.isa)
                files.setdefault(file, {})[name] = None
        except _Unsaid as reason:
            said.pop(opcode, None)
            found = (form.id for form, function in zip(known, functions, strict=True) if function)
            unsaid.setdefault(str(reason), []).extend(found)
    sizes = {_SIZED[kind]: number for kind, number in free_registers(model.facts).items()}
    return Renaming(said, {file: list(classes) for file, classes in files.items()}, unsaid, sizes)


_Facts = Mapping[tuple[str, str], CoreAnswer]


class _Unsaid(Exception):
    """LLVM has no words for it."""


def _function(form: InstructionForm, cost: FormCost, facts: _Facts) -> str:
    """LLVM's function that knows the form, "" for none."""
    moved = facts.get((MOVE_ELIMINATION, form.id))
    if moved is CoreAnswer.ELIMINATED or (moved is None and cost.eliminated):
        return MOVES
    return _idiom(cost, facts.get((DEPENDENCY_BREAKING, form.id)), facts.get((ZERO_IDIOMS, form.id)))


def _said(forms: Sequence[InstructionForm], functions: Sequence[str], facts: _Facts) -> Said:
    """The one function and predicate of all forms of an opcode. Raises _Unsaid."""
    found = {Said(one, _when(form, one, facts)) for form, one in zip(forms, functions, strict=True) if one}
    if len(found) > 1 or not all(functions):
        raise _Unsaid("LLVM has one opcode for forms that differ")
    return found.pop()


def _when(form: InstructionForm, function: str, facts: _Facts) -> str:
    asked = any((probe, form.id) in facts for probe in _PROBES[function])
    if function == MOVES:
        itself = facts.get((MOVE_ELIMINATION, form.id + ITSELF)) is not CoreAnswer.EXECUTED
        return _when_moved(form, asked, itself)
    return _when_same(form, asked)


def _idiom(cost: FormCost, broken: CoreAnswer | None, idle: CoreAnswer | None) -> str:
    """LLVM's function: what waits is none, what waits for nothing and is executed breaks dependencies."""
    if broken is CoreAnswer.DEPENDENT:
        return ""
    zero = idle is CoreAnswer.ZERO or (idle is None and cost.idiom == IDIOMS[ZEROS])
    return ZEROS if zero else BREAKING if broken is not None or cost.idiom else ""


# --- predicates --------------------------------------------------------------------------------------


def _when_moved(form: InstructionForm, asked: bool, itself: bool) -> str:
    """When a move is eliminated; `itself`: also where both registers are one."""
    written, read, constants = _places(form)
    sources, targets = len(read), len(written)
    if not is_llvms(form):
        sources += len(implicit_sources(form))
        targets += len(implicit_results(form))
    if not written or sources != targets or targets > _MOST_MOVED or form.flags_written:
        raise _Unsaid("LLVM knows moves with as many sources as results, one or two, of registers")
    apart = [] if itself else [f"CheckNot<CheckSameRegOperand<{written[0]}, {read[0]}>>"]
    return _all([*apart, *_zeros(constants, asked)])


def _when_same(form: InstructionForm, asked: bool) -> str:
    """When all sources are one register."""
    _, read, constants = _places(form)
    if len(read) < _TWO:
        raise _Unsaid("LLVM compares registers that are operands, two or more")
    same = [f"CheckSameRegOperand<{read[0]}, {other}>" for other in read[1:]]
    return _all([*same, *_zeros(constants, asked)])


def _zeros(constants: list[int], asked: bool) -> list[str]:
    """Probes ask with constants that are zero; which ones a measurement had the model does not say."""
    if constants and not asked:
        raise _Unsaid("it has a constant, and for which ones it holds is not known")
    return [f"CheckZeroOperand<{place}>" for place in constants]


def _all(conditions: list[str]) -> str:
    if len(conditions) > 1:
        return f"CheckAll<[{', '.join(conditions)}]>"
    return conditions[0] if conditions else ALWAYS


def _places(form: InstructionForm) -> tuple[list[int], list[int], list[int]]:
    """LLVM's numbers of what is written, of registers that are read, and of constants. Raises _Unsaid."""
    if not is_llvms(form):
        shown = [form.operands[one.position] for one in operands(form)]
        first = len(results(form))
    else:
        shown = [op for op in form.operands if not op.implicit]
        first = sum(op.is_register and op.write for op in shown)
    read = [n for n, op in enumerate(shown) if n >= first and op.is_register]
    constants = [n for n, op in enumerate(shown) if n >= first and op.kind == "immediate"]
    if first + len(read) + len(constants) < len(shown):
        raise _Unsaid("it has an address, and of which kinds it holds is not said to LLVM")
    if len({shown[n].cls for n in read}) > 1:
        raise _Unsaid("its sources are registers of several kinds")
    return list(range(first)), read, constants


def _file(form: InstructionForm, isa: str) -> tuple[str, str]:
    """The register file of a move's result, and the class of registers. Raises _Unsaid."""
    target = next(op for op in form.operands if op.is_register and op.write)
    for pattern, file, name in _FILES[isa]:
        if re.fullmatch(pattern, target.cls):
            return file, name
    raise _Unsaid(f"LLVM has no register file of registers {target.cls}")


# --- text --------------------------------------------------------------------------------------------


def renaming_lines(found: Renaming, prefix: str, width: int) -> Iterator[str]:
    """The register files and the three functions, for the inside of a model, in lines of a width."""
    if found.files:
        yield "// Registers: so many results were in flight, which are those beside the registers in use."
        yield f"// {UNLIMITED} are no limit: how many there are is not known. Nor are moves per cycle."
    for file, classes in found.files.items():
        ones = ", ".join("1" for _ in classes)
        size = found.sizes.get(file, UNLIMITED)
        yield f"def {prefix}{file} : RegisterFile<{size}, [{', '.join(classes)}], [{ones}], [{ones}]>;"
    for function, member in MEMBERS.items():
        groups: dict[str, list[str]] = {}
        for opcode, one in found.said.items():
            if one.function == function:
                groups.setdefault(one.predicate, []).append(opcode)
        if groups:
            parts = [f"{member}<[{', '.join(opcodes)}], {when}>" for when, opcodes in groups.items()]
            yield ""
            yield f"def : {function}<["
            for part in parts[:-1]:
                yield from wrap(f"{part},", width, initial_indent="  ", subsequent_indent="    ")
            yield from wrap(parts[-1], width, initial_indent="  ", subsequent_indent="    ")
            yield "]>;"


def unsaid_lines(found: Renaming, width: int) -> Iterator[str]:
    """Comments with what is not said to LLVM: the reason, and the forms."""
    for reason, forms in found.unsaid.items():
        yield ""
        told = (f"Eliminated or an idiom, and not said to LLVM: {reason}:", "; ".join(forms))
        yield from (line for one in told for line in wrap(f"// {one}", width, subsequent_indent="// "))
