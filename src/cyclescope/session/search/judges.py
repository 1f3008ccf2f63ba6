"""Who says what blocks take: a predictor, or the machine."""

from __future__ import annotations

from collections.abc import Sequence

from cyclescope.backend.base import BlockBackend
from cyclescope.session.blocks import LOOP, UNROLLED, ProgramBlock, case_of
from cyclescope.session.predictors import BlockPredictor
from cyclescope.session.validation import Report, timed


class PredictorJudge:
    """A predictor."""

    def __init__(self, predictor: BlockPredictor, isa: str) -> None:
        self._predictor, self._isa = predictor, isa
        self.name = predictor.name

    def cycles(self, codes: Sequence[bytes], loop: bool = False) -> list[float | None]:
        """Predicted cycles."""
        notion = LOOP if loop else UNROLLED
        blocks = [case_of(ProgramBlock(code, isa=self._isa), notion).block for code in codes]
        return [answer.cycles for answer in self._predictor.answers(blocks)]


class MachineJudge:
    """A machine, which is timed: None of what is not clean."""

    def __init__(self, backend: BlockBackend, name: str, isa: str, report: Report) -> None:
        self._backend, self._isa, self._report = backend, isa, report
        self.name = name

    def cycles(self, codes: Sequence[bytes], loop: bool = False) -> list[float | None]:
        """Measured cycles."""
        notion = LOOP if loop else UNROLLED
        blocks = [ProgramBlock(code, isa=self._isa) for code in codes]
        found = timed(self._backend, blocks, notion, report=self._report)
        return [timing.cycles if timing.is_clean else None for _, timing in found]
