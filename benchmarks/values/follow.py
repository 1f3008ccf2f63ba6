"""What a kernel has to show when values are followed through it; see docs/method/values.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from benchmarks.values.places import AnyPlaces, places_of
from benchmarks.values.tracer import (
    ADDRESS,
    AS_IT_IS,
    CHAIN,
    IDENTITY,
    LOADS,
    OTHER_MEMORY,
    STORES,
    STREAM,
    UNCOVERED,
    Event,
    Item,
    Job,
    Trace,
    Tracer,
)
from benchmarks.values.unreached import ONE_BY_ONE, is_repeated, why_unreached
from cyclescope.isa.dataflow import Node, Pair, is_old, pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.chain import Chain, Use
from cyclescope.kernel.differential import VALUES
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.locations import location_set, members, names
from cyclescope.measure.plan import Experiment, Planner

ROUNDS = 3
_ITERATIONS = 64
_UNTIL_DECAY = (
    1312  # a number of f64 that is doubled overflows after 1023, one that is halved is 0 after 1074
)
_DIVIDES = re.compile(r"([SU]|V?F|F|C\.)?V?F?(R?(DIV|REM)|SQRT)")  # estimates, RSQRT, come from a table
_FORMATS = {"f64": ("<d", 8, 0x10, 11, 52), "f32": ("<f", 4, 8, 8, 23), "f16": ("<e", 2, 5, 5, 10)}

DECAYS = "decays"
NOTHING = "the form changes nothing, whatever the values"
NO_VALUE = "no value passes from source to target, whatever the others are"
NO_DIFFERENCE = "other data make no difference"
# why there is no proof
STACK = "registers of the x87 and of MMX are a stack with tags, whose values the tracer does not change"
ZERO = "with the constant 0, which is part of the form, its values stay what they are"
NOT_BACK = "the tag does not come back"
MORE_LOADED = "loads more than one store has written"
REWRITTEN = "it stores all that it has read, also the bytes that it leaves as they are: values do not tell"
CONSTANT_FLAG = "the table has the flag as written, and the form always writes the same"
NO_NUMBER = "its first result is 0, infinite or no number of the type that it reads"


class Question(msgspec.Struct, frozen=True):
    """One kernel with what is to be seen of it."""

    form: InstructionForm
    source: str
    target: str
    variant: str
    job: Job
    address: bool  # what is followed is an address
    steady: frozenset[int]  # locations that no iteration may change
    operands: tuple[
        tuple[str, tuple[int, ...], int], ...
    ]  # type, locations and bytes of numbers that are read
    text: str


class Finding(msgspec.Struct, frozen=True):
    """Of one kernel: `problem` is "" where values prove it, with others than the kernel's where `hidden`."""

    form: str
    source: str
    target: str
    variant: str
    problem: str
    hidden: bool = False
    text: str = ""
    reason: str = ""  # why there is no proof, where the form's own values or operands tell


def findings(tracer: Tracer, planner: Planner, forms: Sequence[InstructionForm]) -> Iterator[Finding]:
    """One finding per kernel of some forms."""
    places = places_of(planner)
    questions = [q for form in forms for q in questions_of(planner, places, form)]
    traces = list(tracer.run([q.job for q in questions]))
    problems = [judged(q, t, names(tracer.isa)) for q, t in zip(questions, traces, strict=True)]
    again = [q for q, problem in zip(questions, problems, strict=True) if problem.endswith(DECAYS)]
    once = tracer.run([msgspec.structs.replace(q.job, iterations=1) for q in again])
    first = {id(q): trace for q, trace in zip(again, once, strict=True)}
    reached = {(q.form.id, q.target) for q, problem in zip(questions, problems, strict=True) if not problem}
    for question, trace, problem in zip(questions, traces, problems, strict=True):
        passes = not _flow_problem(question, trace)
        reason = why_none(question, problem, first.get(id(question)) if passes else None)
        if _is_constant(question, problem) and (question.form.id, question.target) not in reached:
            reason = reason or CONSTANT_FLAG
        yield Finding(
            question.form.id, question.source, question.target, question.variant, problem,
            hidden(question, trace), question.text, reason,
        )  # fmt: skip


def why_none(question: Question, problem: str, once: Trace | None = None) -> str:
    """Why a kernel has no proof, as its form's operands or its values after one iteration tell, or "".

    `once` is that iteration of a kernel that a tag passes through.
    """
    form = question.form
    if not problem:
        return ""
    if not form.attributes.isdisjoint(("x87", "mmx", "d3now")):
        return STACK
    if problem in (NOTHING, NO_VALUE, NO_DIFFERENCE) and any(op.cls == "0" for op in form.operands):
        return ZERO
    if problem in (NO_VALUE, NO_DIFFERENCE, NOTHING, NOT_BACK) and (
        why := why_unreached(form, question.source, question.target)
    ):
        return why
    if problem.endswith(MORE_LOADED) and is_repeated(form):
        return ONE_BY_ONE
    if problem.endswith(MORE_LOADED) and _rewrites(form):
        return REWRITTEN
    return NO_NUMBER if once is not None and _makes_none(question, once) else ""


def _rewrites(form: InstructionForm) -> bool:
    """Whether a form of x86-64 changes memory in place: what it writes is as wide as what it reads."""
    return form.bits is None and any(op.is_memory and op.read and op.write for op in form.operands)


def _is_constant(question: Question, problem: str) -> bool:
    """Whether no value passes to a flag; where none does from any source, it is always the same."""
    return question.target.startswith("flags.") and problem == NO_VALUE


def _makes_none(question: Question, once: Trace) -> bool:
    """Whether numbers are 0, infinite or none after one iteration already, and none is denormal."""
    found = []
    for element, locations, size in question.operands:
        if element in _FORMATS:
            before, after = (
                b"".join(values[n] for n in locations)[: size or None] for values in (once.first, once.last)
            )
            if usual(element, before) and not usual(element, after):
                found.append(is_denormal(element, after))
    return bool(found) and not any(found)


# --- questions -------------------------------------------------------------------------------------


def questions_of(planner: Planner, places: AnyPlaces, form: InstructionForm) -> Iterator[Question]:
    """Every kernel that `measure` runs for a form."""
    by_name = {(pair.source.name, pair.target.name): pair for pair in pairs(form)}
    for chain, made in zip(planner.plan(form).chains, planner.latency(form), strict=True):
        if not is_old(chain.source):  # of a value that is overwritten nothing arrives
            yield _chain(places, form, chain, made, by_name[chain.source, chain.target])
    for (stream, _), made in zip(planner.sequences(form).streams, planner.throughput(form), strict=True):
        if form.attributes.isdisjoint(("branch", "call", "return")):
            yield _stream(places, form, stream.items, made)


def _chain(places: AnyPlaces, form: InstructionForm, chain: Chain, made: Experiment, pair: Pair) -> Question:
    tested = [isinstance(item, Use) for item in chain.items]
    items = tuple(
        _tested(places, made, instruction, [pair.source], [pair.target]) if use
        else helper(instruction, places.alternates(instruction, made.kernel.body))
        for use, instruction in zip(tested, made.kernel.body, strict=True)
    )  # fmt: skip
    return _question(places, form, made, items, tested, CHAIN, pair.source)


def helper(instruction: Instruction, alternates: tuple[bytes, ...] = ()) -> Item:
    """An instruction beside the form, and its code with one other operand each."""
    return Item(instruction.code, alternates=alternates, uses=_accesses(instruction))


def _stream(
    places: AnyPlaces, form: InstructionForm, plan: Iterable[Use | Instruction], made: Experiment
) -> Question:
    tested = [isinstance(item, Use) for item in plan]
    uses = [n for n, use in enumerate(tested) if use]
    looked_at = {uses[0], uses[-1]}
    sources, targets = places.data(form)
    sources = [] if form.mnemonic.startswith("CSRR") else sources  # their data go to where no operand is
    items = tuple(
        _tested(places, made, instruction, sources, targets) if n in looked_at and sources and targets
        else Item(instruction.code)
        for n, instruction in enumerate(made.kernel.body)
    )  # fmt: skip
    return _question(places, form, made, items, tested, STREAM, None)


def _tested(
    places: AnyPlaces,
    made: Experiment,
    instruction: Instruction,
    sources: Sequence[Node],
    targets: Sequence[Node],
) -> Item:
    general = made.kernel.state.general
    found = [
        location_set(place for node in nodes for place in places.of(instruction, node, general, written))
        for nodes, written in ((sources, False), (targets, True))
    ]
    address = ADDRESS * any(_leads(instruction.form, node) for node in sources)
    return Item(instruction.code, True, *found, uses=address | _accesses(instruction))


def _leads(form: InstructionForm, node: Node) -> bool:
    """Whether memory is found by what is in a node, which may be a register of its own: RDI of STOSQ."""
    if node.part in ("address", "index"):
        return True
    name = form.operands[node.operand].fixed if node.part == "register" else ""
    return bool(name) and any(op.fixed == name for op in form.operands if op.is_memory and op.implicit)


def _accesses(instruction: Instruction) -> int:
    memory = [op for op in instruction.form.operands if op.is_memory]
    return STORES * any(op.write for op in memory) | LOADS * any(op.read for op in memory)


def _question(
    places: AnyPlaces, form: InstructionForm, made: Experiment, items: tuple[Item, ...],
    tested: Sequence[bool], kind: int, source: Node | None,
) -> Question:  # fmt: skip
    kernel = made.kernel
    first = next(instruction for instruction, use in zip(kernel.body, tested, strict=True) if use)
    operands = tuple(places.numbers(first, kernel.state.general))
    steady = set(places.steady(first, kernel.body, kernel.state.general))
    if source is not None and (source.operand < 0 or form.operands[source.operand].role != "mask"):
        steady -= set(places.of(first, source, kernel.state.general, True))
    report = sorted({place for _, found, _ in operands for place in found})
    kept = location_set(n for i, use in zip(kernel.body, tested, strict=True) if use for n in places.kept(i))
    job = Job(
        kind, items, kernel.state, places.setup(kernel), VALUES.get(places.element(form), 0),
        kept, tuple(report), places.memory(kernel.body),
        _UNTIL_DECAY if any(element in _FORMATS for element, _, _ in operands) else _ITERATIONS,
    )  # fmt: skip
    address = source is not None and _leads(form, source)
    return Question(
        form, made.source, made.target, made.variant, job, address, frozenset(steady), operands, kernel.text()
    )


# --- judging ---------------------------------------------------------------------------------------


def judged(question: Question, trace: Trace, called: Sequence[str]) -> str:
    """What is wrong with a kernel, or ""."""
    if trace.fault:
        return f"does not run: {trace.fault}"
    changed = sorted(question.steady & set(members(trace.changed)))
    if changed:
        return f"{', '.join(called[n] for n in changed)} not as at the start"
    if question.variant.startswith("same register") and question.job.kind == STREAM:
        return ""  # one register for both sources, to see whether the core knows the result
    return _values_problem(question, trace) or _flow_problem(question, trace)


def _flow_problem(question: Question, trace: Trace) -> str:
    """What keeps a tag from passing, or ""."""
    judge = _chain_problem if question.job.kind == CHAIN else _stream_problem
    return judge(question, trace.events)


def _chain_problem(question: Question, events: Sequence[Event]) -> str:
    items = question.job.items
    for event in events:
        where = "the form" if items[event.item].tested else f"instruction {event.item + 1}"
        if event.flags & IDENTITY:
            return f"{where} changes nothing, whatever the values"
        if event.flags & UNCOVERED:
            return f"{where} {MORE_LOADED}"
        if not event.before:
            return NOT_BACK
        if not event.after and items[event.item].tested:
            return NO_VALUE
        if not event.after:
            return f"the tag is lost at {where}"
    through = sum(items[event.item].tested for event in events)
    return "" if through == ROUNDS * sum(item.tested for item in items) else NOT_BACK


def hidden(question: Question, trace: Trace) -> bool:
    """Whether the form passes a tag on with other values in its other operands only."""
    items = question.job.items
    return any(items[e.item].tested and e.mode not in (AS_IT_IS, OTHER_MEMORY) for e in trace.events)


def _stream_problem(question: Question, events: Sequence[Event]) -> str:
    for event in events:
        if event.flags & IDENTITY:
            return NOTHING
        if not event.after:
            return NO_DIFFERENCE
    return ""


def _values_problem(question: Question, trace: Trace) -> str:
    divides = _DIVIDES.match(question.form.mnemonic)
    for element, locations, size in question.operands:
        before, after = (
            b"".join(values[n] for n in locations)[: size or None] for values in (trace.first, trace.last)
        )
        if divides and before != after:
            return "the operands of a division change"
        if element in _FORMATS and usual(element, before) and not usual(element, after):
            return f"a number of {element} {DECAYS}"
    return ""


def is_denormal(element: str, values: bytes) -> bool:
    """Whether the first number is so small that arithmetic may take longer."""
    _, size, _, exponent, fraction = _FORMATS[element]
    bits = int.from_bytes(values[:size], "little")
    return not bits >> fraction & (1 << exponent) - 1 and bool(bits & (1 << fraction) - 1)


def usual(element: str, values: bytes) -> bool:
    """Whether the first number is neither 0, denormal, infinite nor NaN."""
    _, size, _, exponent, fraction = _FORMATS[element]
    bits = int.from_bytes(values[:size], "little") >> fraction & (1 << exponent) - 1
    return 0 < bits < (1 << exponent) - 1
