"""From disagreements to findings: the smallest block that shows one, what it depends on, what that tells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from cyclescope.remarks.blocks import Disagrees
from cyclescope.session.search.drawing import (
    BlockDraw,
    Drawn,
    apart,
    code_of,
    elsewhere,
    padded,
    text_of_drawn,
)

FAR_OFF = 0.12  # relative: disagreements that are looked into; noise and intervals of models are less
_CYCLES = 0.08  # the same in cycles: a third of the shortest time of a block
_KEPT = 0.7  # of a disagreement that a smaller block has to have
_SAME = 0.5  # of a disagreement that a variant has, which shows the same
_MOST_SHRUNK = 4  # times as many blocks as findings are shrunk: many show the same
_LIKE = 3  # other forms that each instruction is replaced by
_LONG = 5  # bytes of an instruction of which no front end gets too few
Report = Callable[[str, int, int], None]


class CycleJudge(Protocol):
    """Says what blocks take; None of those that it cannot say."""

    name: str

    def cycles(self, codes: Sequence[bytes], loop: bool = False) -> list[float | None]:
        """Cycles of each, as copies or as loops."""
        ...


class Disagreement(msgspec.Struct, frozen=True):
    """What is predicted of a block, and what it takes; `by` is the natural logarithm of their ratio."""

    text: str
    code: str
    predicted: float
    taken: float

    @property
    def by(self) -> float:
        """How far off the prediction is: below 0 where it is too low."""
        return math.log(self.predicted / self.taken)

    @property
    def error(self) -> float:
        """Relative."""
        return self.predicted / self.taken - 1

    @property
    def is_far(self) -> bool:
        """Whether it is worth a look."""
        return abs(self.error) > FAR_OFF and abs(self.predicted - self.taken) > _CYCLES


class SearchExperiment(msgspec.Struct, frozen=True):
    """A variant of a block: what was changed, what it takes, and whether it shows the same."""

    change: str
    found: Disagreement | None
    shows: bool


class SearchFinding(msgspec.Struct, frozen=True):
    """The smallest block that shows a disagreement, what it depends on, and the effect that this speaks for.

    `seen` is how many drawn blocks came down to the same forms; `like` are mnemonics of other forms that show
    it, `unlike` of those that do not.
    """

    block: Disagreement
    effect: str
    seen: int
    experiments: tuple[SearchExperiment, ...]
    like: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()


class SearchResult(msgspec.Struct, frozen=True):
    """Findings, those that most blocks came down to first; blocks that were drawn, judged, and far off."""

    drawn: int
    judged: int
    far: int
    model: str
    reference: str
    findings: tuple[SearchFinding, ...]


class DisagreementSearch:
    """Looks for blocks on which two judges disagree."""

    def __init__(self, draw: BlockDraw, model: CycleJudge, reference: CycleJudge, report: Report) -> None:
        self._draw, self._model, self._reference, self._report = draw, model, reference, report

    def findings(self, count: int, most: int) -> SearchResult:
        """Draw so many blocks; at most `most` findings."""
        self._report("drawn blocks", 0, count)
        drawn = self._draw.blocks(count)
        judged = self._judged(drawn)
        far = sorted((pair for pair in judged if pair[1].is_far), key=lambda pair: -abs(pair[1].by))
        shrunk = self._shrunk(far[: _MOST_SHRUNK * most])
        groups: dict[tuple[str, ...], list[tuple[Drawn, Disagreement]]] = {}
        for block, found in shrunk:
            groups.setdefault(tuple(sorted(one.form.id for one in block)), []).append((block, found))
        chosen = sorted(groups.values(), key=lambda some: (-len(some), -abs(some[0][1].by)))[:most]
        findings = [self._finding(*some[0], len(some), n, len(chosen)) for n, some in enumerate(chosen)]
        return SearchResult(
            len(drawn), len(judged), len(far), self._model.name, self._reference.name, tuple(findings)
        )

    def _judged(self, blocks: Sequence[Drawn], loop: bool = False) -> list[tuple[Drawn, Disagreement]]:
        codes = [code_of(block) for block in blocks]
        both = zip(
            blocks, codes, self._model.cycles(codes, loop), self._reference.cycles(codes, loop), strict=True
        )
        return [
            (block, Disagreement(text_of_drawn(block), code.hex(), predicted, taken))
            for block, code, predicted, taken in both
            if predicted and taken
        ]

    # --- smaller blocks --------------------------------------------------------------------------

    def _shrunk(self, far: Sequence[tuple[Drawn, Disagreement]]) -> list[tuple[Drawn, Disagreement]]:
        """Every block without what it does not need; all of them one instruction shorter at a time."""
        done: list[tuple[Drawn, Disagreement]] = []
        current, rounds = list(far), 0
        while current:
            rounds += 1
            self._report("smaller blocks", rounds, rounds + max(len(block) for block, _ in current))
            shorter = [_without_one(block) for block, _ in current]
            judged = dict(self._judged(list(dict.fromkeys(b for some in shorter for b in some))))
            following = []
            for (block, found), some in zip(current, shorter, strict=True):
                same = [(b, judged[b]) for b in some if b in judged and _is_same(judged[b], found, _KEPT)]
                if same:
                    following.append(max(same, key=lambda pair: abs(pair[1].by)))
                else:
                    done.append((block, found))
            current = following
        return done

    # --- what it depends on -----------------------------------------------------------------------

    def _finding(self, block: Drawn, found: Disagreement, seen: int, number: int, of: int) -> SearchFinding:
        self._report("findings", number, of)
        variants = dict(_variants(block))
        experiments = [self._tried(change, made, found) for change, made in variants.items()]
        experiments.append(self._tried(Variation.AS_A_LOOP, block, found, loop=True))
        replaced = [
            (other.form.mnemonic, (*block[:n], other, *block[n + 1 :]))
            for n, one in enumerate(block)
            for other in self._draw.like(one, _LIKE)
        ]
        judged = dict(self._judged([made for _, made in replaced]))
        known = [(name, _is_same(judged[made], found, _SAME)) for name, made in replaced if made in judged]
        like, unlike = (tuple(dict.fromkeys(n for n, same in known if same is way)) for way in (True, False))
        return SearchFinding(found, effect_of(block, experiments), seen, tuple(experiments), like, unlike)

    def _tried(self, change: str, made: Drawn, like: Disagreement, loop: bool = False) -> SearchExperiment:
        judged = self._judged([made], loop)
        found = judged[0][1] if judged else None
        return SearchExperiment(change, found, found is not None and _is_same(found, like, _SAME))


def _without_one(block: Drawn) -> list[Drawn]:
    return [(*block[:n], *block[n + 1 :]) for n in range(len(block))] if len(block) > 1 else []


def _is_same(found: Disagreement, like: Disagreement, part: float) -> bool:
    """Whether a block is off in the same direction, and by such a part at least."""
    return found.by * like.by > 0 and abs(found.by) >= part * abs(like.by)


class Variation(StrEnum):
    """What can be changed of a block to see what a disagreement is of, in the words that users see."""

    LONG_ENCODINGS = "longer encodings"
    INDEPENDENT = "no result read by another"
    OTHER_PLACES = "other places in memory"
    AS_A_LOOP = "as a loop"


def _variants(block: Drawn) -> Iterator[tuple[str, Drawn]]:
    yield Variation.LONG_ENCODINGS, padded(block, _LONG)
    independent = apart(block)
    if independent is not None and independent != block:
        yield Variation.INDEPENDENT, independent
    moved = elsewhere(block)
    if moved != block:
        yield Variation.OTHER_PLACES, moved


def effect_of(block: Drawn, experiments: Sequence[SearchExperiment]) -> str:
    """What the experiments speak for."""
    gone = {one.change for one in experiments if one.found is not None and not one.shows}
    if Variation.LONG_ENCODINGS in gone:
        return Disagrees.ENCODINGS.value
    if Variation.OTHER_PLACES in gone:
        return Disagrees.SAME_PLACE.value
    if Variation.INDEPENDENT in gone:
        return Disagrees.RESULTS.value
    if Variation.AS_A_LOOP in gone:
        return Disagrees.COPIES.value
    if len({one.form.id for one in block}) == 1:
        return Disagrees.ONE_FORM.of(block[0].form.mnemonic).text
    return Disagrees.TOGETHER.value
