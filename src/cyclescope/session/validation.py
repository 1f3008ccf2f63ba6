"""Predictions of blocks against what they take: every block is there, with its number or its reason."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from cyclescope.analyze.decode.block import Block, BlockInstruction
from cyclescope.backend.base import BlockBackend, BlockEffort
from cyclescope.garbage import uncollected
from cyclescope.isa.registry import mnemonics
from cyclescope.measure.blocks import NONLINEAR, BlockTiming, failed, time_blocks
from cyclescope.model.machine import Borrowed
from cyclescope.remarks.blocks import OffBy, Untimed
from cyclescope.session.accuracy import Accuracy, PredictedTime, accuracy
from cyclescope.session.block_files import Timed
from cyclescope.session.blocks import KERNELS, BlockCase, ProgramBlock, case_of, cases, text_of
from cyclescope.session.predictors import (
    ANALYTIC,
    AblatedPredictor,
    BlockAnswer,
    BlockPredictor,
    cpu_seconds,
)

_FEWEST = 3  # blocks of a group that is told apart
NO_BOUND = "not predicted"
_LENGTHS = ((1, 4), (5, 10), (11, 20), (21, None))  # instructions

Report = Callable[[str, int, int], None]


class BlockRow(msgspec.Struct, frozen=True):
    """A block as it was timed and predicted; `groups` are the kinds of instructions that it has.

    `address` is where its code lies, 0 where that is not known.
    """

    text: str
    code: str
    where: str
    notion: str
    instructions: int
    timing: BlockTiming
    groups: tuple[str, ...]
    answers: dict[str, BlockAnswer]
    address: int = 0


class PredictorResult(msgspec.Struct, frozen=True):
    """A predictor on the clean blocks: `failures` of them have no answer, for `reasons`."""

    name: str
    model: str
    accuracy: Accuracy
    failures: int
    reasons: dict[str, int]
    cpu_seconds_per_1000: float


class BlockGroup(msgspec.Struct, frozen=True):
    """Some of the blocks: how far every predictor is off on them."""

    name: str
    blocks: int
    predictors: dict[str, Accuracy]


class Ablation(msgspec.Struct, frozen=True):
    """How far a predictor is off without what a probe found: on all blocks, and on those that it changes.

    `changed` are blocks whose prediction is another one without it.
    """

    probe: str
    predictor: str
    every: Accuracy
    every_without: Accuracy
    changed: Accuracy
    changed_without: Accuracy


class ValidationSection(msgspec.Struct, frozen=True):
    """All about the blocks in one notion.

    `counts` is by verdict, `reasons` how many blocks are not clean for each reason, by verdict. `ablations`
    are there where somebody asked for them.
    """

    notion: str
    rows: tuple[BlockRow, ...]
    counts: dict[str, int]
    reasons: dict[str, dict[str, int]]
    predictors: tuple[PredictorResult, ...]
    by_group: tuple[BlockGroup, ...]
    by_length: tuple[BlockGroup, ...]
    by_bound: tuple[BlockGroup, ...]
    ablations: tuple[Ablation, ...] = ()

    @property
    def clean(self) -> list[BlockRow]:
        """Rows that are judged."""
        return [row for row in self.rows if row.timing.is_clean]


class Validation(msgspec.Struct, frozen=True):
    """What came of it: `machine` is where blocks were timed, `model` what cyclescope computes with.

    `borrowed` says what of that is another core's.
    `absent` has predictors that are not there, with the reason; `problems` are lines of the input that are no
    blocks. `given` is how many blocks there were before a sample was drawn.
    """

    machine: str
    model: str
    sections: tuple[ValidationSection, ...]
    absent: dict[str, str] = {}
    problems: tuple[str, ...] = ()
    given: int = 0
    notes: tuple[str, ...] = ()
    borrowed: Borrowed | None = None


def sampled(blocks: Sequence[ProgramBlock], number: int, seed: int) -> list[ProgramBlock]:
    """So many of the blocks, drawn at random, in their order; all where `number` is 0 or too large."""
    if not number or number >= len(blocks):
        return list(blocks)
    chosen = random.Random(seed).sample(range(len(blocks)), number)  # noqa: S311 - a sample
    return [blocks[n] for n in sorted(chosen)]


def timed(
    backend: BlockBackend,
    blocks: Sequence[ProgramBlock],
    notion: str,
    effort: BlockEffort | None = None,
    report: Report = lambda what, done, of: None,
) -> list[tuple[BlockCase, BlockTiming]]:
    """Time blocks in a notion; those that cannot be have the reason."""
    found = cases(blocks, notion)
    kernels = [one.kernel for one in found if one.kernel is not None]
    timings = iter(time_blocks(backend, kernels, effort, lambda done, of: report(notion, done, of)))
    return [(one, failed(one.reason) if one.kernel is None else next(timings)) for one in found]


def known(timings: Sequence[Timed], notion: str) -> list[tuple[BlockCase, BlockTiming]]:
    """Blocks that were timed before."""
    return [(case_of(one.block, notion), one.timing) for one in timings if one.notion == notion]


def section(
    notion: str,
    found: Sequence[tuple[BlockCase, BlockTiming]],
    predictors: Sequence[BlockPredictor],
    report: Report = lambda what, done, of: None,
    ablated: Sequence[AblatedPredictor] = (),
) -> ValidationSection:
    """Predict all blocks that were timed, and compare; also by predictors that know less of the machine."""
    clean = [n for n, (_, timing) in enumerate(found) if timing.is_clean]
    blocks = [found[n][0].block for n in clean]
    answers: list[dict[str, BlockAnswer]] = [{} for _ in found]
    results = []
    for done, predictor in enumerate(predictors):
        report(predictor.name, done, len(predictors))
        taken: list[float] = []
        with uncollected(), cpu_seconds(taken):
            own = predictor.answers(blocks)
        for n, answer in zip(clean, own, strict=True):
            answers[n][predictor.name] = answer
        pairs = _pairs([found[n][1] for n in clean], own)
        results.append(_result(predictor, own, pairs, taken[0]))
    rows = tuple(_row(*pair, own) for pair, own in zip(found, answers, strict=True))
    names = [predictor.name for predictor in predictors]
    timings = [found[n][1] for n in clean]
    lines = []
    for done, one in enumerate(ablated):
        report(f"without {one.probe}", done, len(ablated))
        with_it = [answers[n][one.name] for n in clean]
        lines.append(_ablation(one, timings, with_it, one.predictor.answers(blocks)))
    return msgspec.structs.replace(_section(notion, rows, tuple(results), names), ablations=tuple(lines))


def _ablation(
    one: AblatedPredictor,
    timings: Sequence[BlockTiming],
    with_it: Sequence[BlockAnswer],
    without: Sequence[BlockAnswer],
) -> Ablation:
    """What a predictor says with and without a probe, on blocks that have both answers."""
    both = [n for n, pair in enumerate(zip(with_it, without, strict=True)) if None not in _cycles(pair)]
    changed = [n for n in both if with_it[n].cycles != without[n].cycles]
    told = [
        accuracy(_pairs([timings[n] for n in chosen], [answers[n] for n in chosen]))
        for chosen in (both, changed)
        for answers in (with_it, without)
    ]
    return Ablation(one.probe, one.name, *told)


def _cycles(answers: Iterable[BlockAnswer]) -> list[float | None]:
    return [answer.cycles for answer in answers]


def _pairs(timings: Sequence[BlockTiming], answers: Sequence[BlockAnswer]) -> list[PredictedTime]:
    both = zip(timings, answers, strict=True)
    return [PredictedTime(t.cycles, a.cycles, a.interval, a.lower) for t, a in both if a.cycles is not None]


def _result(
    predictor: BlockPredictor, answers: Sequence[BlockAnswer], pairs: Sequence[PredictedTime], seconds: float
) -> PredictorResult:
    reasons = Counter(answer.reason for answer in answers if answer.cycles is None)
    each = 1000 * seconds / len(answers) if answers else 0.0
    return PredictorResult(
        predictor.name, predictor.model, accuracy(pairs), reasons.total(), dict(reasons.most_common()), each
    )


def _row(case: BlockCase, timing: BlockTiming, answers: dict[str, BlockAnswer]) -> BlockRow:
    block = case.block
    return BlockRow(
        text_of(block), case.origin.code.hex(), case.origin.where, case.notion, len(block), timing,
        tuple(dict.fromkeys(groups_of(block))), answers, case.origin.address,
    )  # fmt: skip


def _section(
    notion: str, rows: tuple[BlockRow, ...], results: tuple[PredictorResult, ...], names: Sequence[str]
) -> ValidationSection:
    reasons: dict[str, Counter[str]] = {}
    for row in rows:
        if not row.timing.is_clean:
            reasons.setdefault(row.timing.verdict, Counter())[_kind(row.timing, notion)] += 1
    clean = [row for row in rows if row.timing.is_clean]
    return ValidationSection(
        notion, rows, dict(Counter(row.timing.verdict for row in rows)),
        {verdict: dict(found.most_common()) for verdict, found in reasons.items()}, results,
        _groups(clean, names, lambda row: row.groups),
        _groups(clean, names, lambda row: (length_of(row.instructions),), fewest=1),
        _groups(clean, names, lambda row: (bound_of(row),), fewest=1),
    )  # fmt: skip


def _kind(timing: BlockTiming, notion: str) -> str:
    """A reason without what is of one block alone."""
    if timing.verdict == NONLINEAR and notion != KERNELS:
        return Untimed.COPIES_DIFFER.value
    return timing.reason


def _groups(
    rows: Sequence[BlockRow],
    names: Sequence[str],
    of: Callable[[BlockRow], Iterable[str]],
    fewest: int = _FEWEST,
) -> tuple[BlockGroup, ...]:
    """The blocks by a property, the largest group first."""
    found: dict[str, list[BlockRow]] = {}
    for row in rows:
        for name in of(row):
            found.setdefault(name, []).append(row)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(
        BlockGroup(name, len(some), _each(some, names)) for name, some in ordered if len(some) >= fewest
    )


def _each(rows: Sequence[BlockRow], names: Sequence[str]) -> dict[str, Accuracy]:
    timings = [row.timing for row in rows]
    return {name: accuracy(_pairs(timings, [row.answers[name] for row in rows])) for name in names}


# --- kinds of blocks -------------------------------------------------------------------------------


def bound_of(row: BlockRow) -> str:
    """What the bounds say that the block is limited by."""
    found = row.answers.get(ANALYTIC) or next(iter(row.answers.values()), None)
    return found.bound if found is not None and found.bound else NO_BOUND


def length_of(instructions: int) -> str:
    """The length of a block in words."""
    for low, high in _LENGTHS:
        if high is None:
            return f"{low} or more"
        if instructions <= high:
            return f"{low} to {high}"
    raise AssertionError


def groups_of(block: Block) -> Iterator[str]:
    """The kinds of instructions that a block has, whatever the instruction set."""
    for one in block:
        if one.form is not None:
            yield from _kinds(one)


def _kinds(one: BlockInstruction) -> Iterator[str]:
    form = one.form
    assert form is not None
    memory = [op for op in form.operands if op.is_memory]
    reads, writes = any(op.read for op in memory), any(op.write for op in memory)
    if "stack" in form.attributes:
        yield "stack"
    elif reads and writes:
        yield "read, modify, write"
    elif reads:
        yield "load"
    elif writes:
        yield "store"
    if any(op.kind == "address" for op in form.operands):
        yield "address computed"
    yield from _calculations(one, bool(memory))


_FLOATS = ("f16", "bf16", "f32", "f64", "f80")
_SLOW = ("DIV", "SQRT", "REM")
_VECTORS = ("V", "Z", "XMM", "YMM", "ZMM", "MM")


def _calculations(one: BlockInstruction, memory: bool) -> Iterator[str]:
    form = one.form
    assert form is not None
    classes = {register[0] for register in one.registers if register}
    if any(word in form.mnemonic for word in _SLOW):
        yield "division or root"
    if classes & set(_VECTORS):
        yield "vector, floating point" if form.element in _FLOATS else "vector, integer"
    elif not memory and form.mnemonic.startswith(mnemonics("moving")):
        yield "move"
    elif "MUL" in form.mnemonic:
        yield "multiplication"
    if form.flags_read and classes:
        yield "reads flags"
    if any(op.kind == "branch" for op in form.operands):
        yield "branch"


# --- the worst -------------------------------------------------------------------------------------


class Miss(msgspec.Struct, frozen=True):
    """A block that a predictor is far off on: by how much, relative, and what that looks like."""

    row: BlockRow
    error: float
    explanation: str


_ALIKE = 0.03  # relative: a bound that is so near to what was measured may be what decides


def worst(part: ValidationSection, name: str, number: int) -> list[Miss]:
    """The blocks with the greatest relative errors of a predictor, too high or too low alike.

    What is predicted as nearly as bounds are told apart is no miss. The error is what the greater of measured
    and predicted is more than the other.
    """
    rows = [(row, row.answers[name]) for row in part.clean if row.answers[name].cycles is not None]
    off = [(_ratio(row.timing.cycles, answer.cycles or 0.0), row, answer) for row, answer in rows]
    ranked = sorted((one for one in off if one[0] > 1 + _ALIKE), key=lambda one: -one[0])
    return [
        Miss(row, (answer.cycles or 0.0) / row.timing.cycles - 1, explained(row.timing.cycles, answer))
        for _, row, answer in ranked[:number]
    ]


def _ratio(measured: float, predicted: float) -> float:
    low, high = sorted((measured, predicted))
    return high / low if low > 0 else float("inf")


def explained(measured: float, answer: BlockAnswer) -> str:
    """What an error looks like: which bound is too great, or that none is as great as what was measured."""
    predicted = answer.cycles or 0.0
    if not answer.bounds:
        return OffBy.NO_BOUNDS.of().text
    near = (n for n, c in answer.bounds.items() if abs(c - measured) <= _ALIKE * measured)
    like = [name for name in near if name != answer.bound]
    if predicted > measured:
        put = answer.bound, answer.bounds.get(answer.bound, predicted)
        why = OffBy.TOO_HIGH_LIKE.of(*put, like[0], measured) if like else OffBy.TOO_HIGH.of(*put)
    elif like:
        why = OffBy.LIKE_ANOTHER.of(like[0], answer.bound)
    else:
        why = OffBy.TOO_LOW.of(measured, answer.bound, predicted, measured - predicted)
    return why.text
