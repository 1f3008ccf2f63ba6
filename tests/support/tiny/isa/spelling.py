"""Nothing of the tiny instruction set is written otherwise than its table has it."""

from __future__ import annotations

from cyclescope.isa.find.spelling import Spelling

SPELLING = Spelling()
