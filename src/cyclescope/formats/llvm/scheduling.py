"""A draft of a scheduling model of LLVM (TableGen), for a machine that LLVM has none of.

Ports are `ProcResource`s, sets of ports `ProcResGroup`s; all forms that cost the same share a `SchedWriteRes`
with latency, micro-operations and cycles of resources, zero idioms a `SchedWriteVariant` of that and of none.
Flags that take another time than the result have a `SchedWriteRes` without resources, a source that is needed
later than the first one a `SchedReadAdvance`: but for the rounding no pair becomes faster than it was
measured. Forms whose ports are not known are left out: the model is not complete.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import msgspec

from cyclescope.formats.exchange import Exported, FormatError, Item
from cyclescope.formats.llvm.operands import (
    LlvmOperand,
    implicit_results,
    implicit_sources,
    is_llvms,
    is_named,
    only,
    operands,
    results,
)
from cyclescope.formats.llvm.renaming import UNLIMITED, Renaming, renaming, renaming_lines, unsaid_lines
from cyclescope.formats.origin import origin
from cyclescope.formats.rates import with_rates
from cyclescope.isa.dataflow import is_old, pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import load_table
from cyclescope.model.behaviour.sizes import with_sizes
from cyclescope.model.machine import Core, FormCost, MachineModel, Operation

BEFORE = "LLVM_BEFORE_18"  # a macro for llvm-tblgen: cycles of resources had another name
NO_INSTANCES = "LLVM_BEFORE_22"  # another: nothing lists what a target has defined
# What a target's own classes cost is not known: without a word about them no target takes a model.
REST = f"""
#ifdef {BEFORE}
#define {NO_INSTANCES}
#endif
#ifndef {NO_INSTANCES}
// Of opcodes that are not above nothing is known.
foreach one = !instances<SchedWrite>() in
  if !not(!or(!isa<SchedWriteRes>(one), !isa<SchedWriteVariant>(one), !isa<WriteSequence>(one))) then
    def : WriteRes<one, []> {{ let Unsupported = 1; }}
foreach one = !instances<SchedRead>() in
  if !not(!or(!isa<SchedReadAdvance>(one), !isa<SchedReadVariant>(one))) then
    def : ReadAdvance<one, 0>;
#endif""".split("\n")
WIDTH = 100  # characters of a line
SPARE = 0.25  # of a cycle: what a count may be above a whole number and still be that one
UNKNOWN = "unknown"  # a core that has no name
_ENDS, _FLAGS = ("register", "flag"), "flags."
_PARTS = {0: "address", 2: "index"}  # of LLVM's five operands of memory


class _Class(msgspec.Struct, frozen=True):
    """What forms cost in whole cycles: by result, by sets of ports too, and how much later sources may come.

    `zero` is the predicate on operands that need no unit, "" where none do.
    `latencies` are of LLVM's results in their order; results behind the last one take the most of them.
    """

    latencies: tuple[int, ...]
    operations: int
    resources: tuple[tuple[tuple[int, ...], int], ...]
    advances: tuple[int, ...]
    zero: str = ""


def write(model: MachineModel) -> Exported:
    """The draft. Raises FormatError for machines without ports."""
    if not model.ports or model.core.width <= 0:
        raise FormatError(f"{model.name} has no ports", "a scheduling model is made of them")
    left: list[Item] = []
    measured = model
    model = with_rates(model, left)
    renamed = renaming(model)
    classes = _classes(model, left, renamed)
    if not classes:
        raise FormatError(f"{model.name} has no form whose ports are known", "")
    prefix = prefix_of(model.name)
    lines = (*_head(measured, prefix), *_lines(model, classes, renamed, prefix))
    text = "\n".join((*lines, *unsaid_lines(renamed, WIDTH), *_doubtful(model, classes)))
    return Exported(f"{text}\n", tuple(left))


def prefix_of(name: str) -> str:
    """The beginning of TableGen's names: of `AuthenticAMD 1a-2-1 znver5` that of the core, `Znver5`."""
    words = re.findall("[A-Za-z0-9]+", name)
    words = words[-1:] if words and words[-1] != UNKNOWN else words
    found = "".join(word[0].upper() + word[1:] for word in words)
    return found if found[:1].isalpha() else f"M{found}"


# --- classes -----------------------------------------------------------------------------------------


def _classes(model: MachineModel, left: list[Item], renamed: Renaming) -> Mapping[_Class, list[str]]:
    """LLVM's opcodes by what they cost; one of several forms what most of these do: of LEA the first may be a
    move.
    """
    forms: dict[str, list[tuple[str, _Class]]] = {}
    for form in load_table(model.isa):
        cost = model.forms.get(form.id)
        if cost is None:
            continue
        opcode = form.llvm
        if why := _why_not(form, cost):
            left.append(Item(form.id, why, opcode))
            continue
        one = msgspec.structs.replace(_class(form, cost), zero=renamed.zero(opcode))
        forms.setdefault(opcode, []).append((form.id, one))
    found: dict[_Class, list[str]] = {}
    for opcode, some in forms.items():
        usual = Counter(one for _, one in some).most_common(1)[0][0]
        found.setdefault(usual, []).append(opcode)
        said = next(name for name, one in some if one == usual)
        left += [
            Item(name, "LLVM has one opcode for several forms", opcode) for name, _ in some if name != said
        ]
    return found


def _why_not(form: InstructionForm, cost: FormCost) -> str:
    if not is_named(form):
        return "LLVM has no opcode of it alone"
    if cost.operations is None:
        return "its ports are not known"
    if _has_result(form) and not _latencies(form, cost):
        return "its latency is not known"
    return ""


def _has_result(form: InstructionForm) -> bool:
    """Whether what is computed of a register goes to one, or to the flags."""
    return any(p.source.part == "register" and p.target.part in _ENDS and not p.excluded for p in pairs(form))


def _class(form: InstructionForm, cost: FormCost) -> _Class:
    known, groups = _latencies(form, cost), _result_names(form)
    taken = _by_result(groups, known)
    ends = {target: cycles for names, cycles in zip(groups, taken, strict=False) for target in names}
    operations = cost.operations or ()
    slots = cost.slots if cost.slots is not None else sum(op.count for op in operations)
    return _Class(
        tuple(map(round, taken)), max(round(slots), 0), _resources(operations),
        _advances(form, known, {target: ends.get(target, max(taken)) for _, target in known}),
    )  # fmt: skip


def _latencies(form: InstructionForm, cost: FormCost) -> dict[tuple[str, str], float]:
    """The most cycles of a pair that ends in a register or in flags: of what is a range its most."""
    most = {**{name: high for name, (_, high) in cost.ranges.items()}, **cost.latencies}
    found = {}
    for pair in pairs(form):
        name = f"{pair.source.name}->{pair.target.name}"
        if pair.target.part in _ENDS and name in most and not is_old(pair.source.name):
            found[pair.source.name, pair.target.name] = most[name]
    return found


def _by_result(
    groups: Sequence[Collection[str]], known: Mapping[tuple[str, str], float]
) -> tuple[float, ...]:
    """The most cycles to each of LLVM's results; one number for all where the order of these is not known."""
    found = [_most(known, names) for names in groups]
    if len(set(found)) > 1 and None not in found:
        return tuple(cycles for cycles in found if cycles is not None)
    return (max(known.values(), default=1.0),)


def _most(known: Mapping[tuple[str, str], float], targets: Collection[str]) -> float | None:
    return max((cycles for (_, target), cycles in known.items() if target in targets), default=None)


def _result_names(form: InstructionForm) -> list[set[str]]:
    """Our names of LLVM's results, in order; none of AArch64 and RISC-V, nor with several fixed registers."""
    others = implicit_results(form)
    if is_llvms(form) or len(others) > 1:
        return []
    explicit = [{form.operands[one.position].name} for one in results(form)]
    known = {pair.target.name for pair in pairs(form) if pair.target.part in _ENDS}
    return [*explicit, known.difference(*explicit)] if others else explicit


def _resources(operations: Sequence[Operation]) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Whole cycles by sets of ports: what is no whole number is rounded up unless it is hardly above one."""
    cycles: dict[tuple[int, ...], float] = {}
    for op in operations:
        ports = tuple(sorted(set(op.ports)))
        cycles[ports] = cycles.get(ports, 0.0) + op.count * op.cycles
    return tuple((ports, max(math.ceil(sum_ - SPARE), 1)) for ports, sum_ in sorted(cycles.items()))


def _advances(
    form: InstructionForm, known: Mapping[tuple[str, str], float], ends: Mapping[str, float]
) -> tuple[int, ...]:  # fmt: skip
    """How many cycles later than the first source each one that is read may come, in LLVM's order.

    As many as all of its pairs allow, whose targets come after `ends` cycles: none becomes faster than it is.
    """
    if is_llvms(form):
        return ()
    read = operands(form)[len(results(form)) :]
    names = [_source(form, one) for one in read]
    names += [_FLAGS if name == "EFLAGS" else name for name in only(implicit_sources(form))]
    found = [round(_spare(name, known, ends)) for name in names]
    while found and found[-1] == 0:
        found.pop()
    return tuple(found)


def _spare(name: str, known: Mapping[tuple[str, str], float], ends: Mapping[str, float]) -> float:
    """By how much all pairs of a source are shorter than the time of their results."""
    spare = [
        ends[target] - cycles
        for (source, target), cycles in known.items()
        if source == name or (name == _FLAGS and source.startswith(_FLAGS))
    ]
    return min(spare, default=0.0)


def _source(form: InstructionForm, one: LlvmOperand) -> str:
    name = form.operands[one.position].name
    return f"{name}.{_PARTS[one.part]}" if one.part in _PARTS else name if one.part < 0 else "-"


# --- text --------------------------------------------------------------------------------------------


def _lines(
    model: MachineModel, classes: Mapping[_Class, list[str]], renamed: Renaming, prefix: str
) -> Iterator[str]:  # fmt: skip
    yield f"let SchedModel = {prefix}Model in {{"
    yield ""
    used = dict.fromkeys(ports for one in classes for ports, _ in one.resources)
    single = sorted({port for ports in used for port in ports})
    yield from (f"def {_port(model, prefix, (port,))} : ProcResource<1>;" for port in single)
    for ports in _groups(ports for ports in used if len(ports) > 1):
        members = ", ".join(_port(model, prefix, (port,)) for port in ports)
        yield f"def {_port(model, prefix, ports)} : ProcResGroup<[{members}]>;"
    yield ""
    yield from _write_class(prefix)
    later = sorted({cycles for one in classes for cycles in one.latencies[1:]})
    yield from (_result(prefix, cycles) for cycles in later)
    later = sorted({cycles for one in classes for cycles in one.advances if cycles})
    yield from (f"def {_advance(prefix, cycles)} : SchedReadAdvance<{cycles}>;" for cycles in later)
    yield ""
    ranked = sorted(classes.items(), key=lambda item: (-len(item[1]), item[1][0]))
    for number, (one, opcodes) in enumerate(ranked):
        yield from _definition(model, prefix, number, one, opcodes)
    yield from _queues(model, prefix)
    yield from renaming_lines(renamed, prefix, WIDTH)
    yield from REST
    yield f"}} // SchedModel = {prefix}Model"


def _groups(used: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Sets of ports, and the unions that TableGen asks for: of two that overlap there is one with both."""
    found = {frozenset(ports) for ports in used}
    while more := {a | b for a, b in combinations(found, 2) if a & b and not any(a | b <= c for c in found)}:
        found |= more
    return sorted(tuple(sorted(ports)) for ports in found)


def _head(model: MachineModel, prefix: str) -> Iterator[str]:
    core = with_sizes(model.core, model.facts)
    known = {
        "IssueWidth": round(core.width), "LoadLatency": round(core.load_latency),
        "MispredictPenalty": round(core.mispredict_penalty),
    }  # fmt: skip
    yield "// A draft of a scheduling model."
    yield from (f"// {_comment(line)}" for line in origin(model))
    yield "// The opcodes are those of LLVM 22. The queues in front of ports are not known."
    yield f"// Before LLVM 22: llvm-tblgen -D{NO_INSTANCES}, before LLVM 18: -D{BEFORE}"
    yield ""
    yield f"def {prefix}Model : SchedMachineModel {{"
    yield f"  let MicroOpBufferSize = {_in_flight(core)}"
    yield from (f"  let {name} = {value};" for name, value in known.items() if value)
    yield "  let CompleteModel = 0; // forms whose ports are not known are missing"
    yield "}"
    yield ""


def _in_flight(core: Core) -> str:
    """How many micro-operations wait to be executed: a model that does not say it issues in order."""
    if core.in_order:
        return "0; // in order"
    return f"{core.reorder_buffer};" if core.reorder_buffer else f"{UNLIMITED}; // not known: no limit"


def _queues(model: MachineModel, prefix: str) -> Iterator[str]:
    """Queues of loads and stores in flight; a resource that nothing uses has their size, as LLVM wants it."""
    core = with_sizes(model.core, model.facts)
    for kind, entries in (("Load", core.load_buffer), ("Store", core.store_buffer)):
        if entries:
            unit = f"{prefix}{kind}sInFlight"
            yield f"def {unit} : ProcResource<1> {{ let BufferSize = {entries}; }}"
            yield f"def {prefix}{kind}Queue : {kind}Queue<{unit}>;"


def _comment(text: str) -> str:
    """A text that stays within a line."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _write_class(prefix: str) -> Iterator[str]:
    yield f"class {prefix}Cost<list<ProcResourceKind> ports, list<int> cycles, int latency, int operations>"
    yield "    : SchedWriteRes<ports> {"
    yield f"#ifdef {BEFORE}"
    yield "  let ResourceCycles = cycles;"
    yield "#else"
    yield "  let ReleaseAtCycles = cycles;"
    yield "#endif"
    yield "  let Latency = latency;"
    yield "  let NumMicroOps = operations;"
    yield "}"
    yield ""


def _port(model: MachineModel, prefix: str, ports: Sequence[int]) -> str:
    names = [re.sub(r"\W", "_", model.ports[port]) for port in ports]
    return f"{prefix}Port{'_'.join(names)}"


def _result(prefix: str, cycles: int) -> str:
    return (
        f"def {prefix}Result{cycles} : SchedWriteRes<[]> {{ let Latency = {cycles}; let NumMicroOps = 0; }}"
    )


def _advance(prefix: str, cycles: int) -> str:
    return f"{prefix}Later{cycles}" if cycles > 0 else f"{prefix}Earlier{-cycles}"


def _definition(
    model: MachineModel, prefix: str, number: int, one: _Class, opcodes: Sequence[str]
) -> Iterator[str]:
    name = f"{prefix}Write{number}"
    ports = ", ".join(_port(model, prefix, ports) for ports, _ in one.resources)
    cycles = ", ".join(str(cycles) for _, cycles in one.resources)
    yield f"def {name} : {prefix}Cost<[{ports}], [{cycles}], {one.latencies[0]}, {one.operations}>;"
    if one.zero:
        yield f"def {name}Zero : {prefix}Cost<[], [], 0, {one.operations}>;"
        yield f"def {name}OrZero : SchedWriteVariant<["
        yield f"  SchedVar<MCSchedPredicate<{one.zero}>, [{name}Zero]>,"
        yield f"  SchedVar<NoSchedPred, [{name}]>"
        yield "]>;"
        name += "OrZero"
    more = [f"{prefix}Result{cycles}" for cycles in one.latencies[1:]]
    reads = [_advance(prefix, cycles) if cycles else "ReadDefault" for cycles in one.advances]
    yield from _wrapped(f"def : InstRW<[{', '.join([name, *more, *reads])}], (instrs", opcodes)
    yield ""


def _doubtful(model: MachineModel, classes: Mapping[_Class, list[str]]) -> Iterator[str]:
    """Opcodes whose ports are of low confidence, as a comment; none where nobody says how sure they are."""
    if not any(cost.confidence for cost in model.forms.values()):
        return
    sure = {name for name, cost in model.forms.items() if cost.confidence in ("high", "medium")}
    names = {form.llvm or form.id: form.id for form in reversed(load_table(model.isa).forms)}
    written = sorted(opcode for opcodes in classes.values() for opcode in opcodes)
    found = [opcode for opcode in written if names.get(opcode) not in sure]
    if found:
        yield ""
        yield f"// The ports of these {len(found)} of {len(written)} opcodes are of low confidence:"
        yield from _wrapped("//", found, end="", indent="//")


def _wrapped(start: str, opcodes: Sequence[str], end: str = ")>;", indent: str = "   ") -> Iterator[str]:
    """A list of opcodes in lines of a readable length."""
    line = start
    for n, opcode in enumerate(opcodes):
        word = f"{opcode}," if n < len(opcodes) - 1 else f"{opcode}{end}"
        if len(line) + len(word) + 1 > WIDTH:
            yield line
            line = indent
        line = f"{line} {word}"
    yield line
