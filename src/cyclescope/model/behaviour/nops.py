"""NOPs that take no slot of the front end, as they share that of what is right before them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from enum import Enum
from functools import cache

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import load_table
from cyclescope.model.facts import FUSION, CoreAnswer, Fact, fused_forms


class BeforeNop(Enum):
    """What an instruction works on, by which some cores tell whether a NOP behind it shares its slot."""

    GENERAL = "general registers"
    MEMORY = "memory and general registers"
    VECTORS = "vectors"


def is_nop(form: InstructionForm) -> bool:
    """Whether a form does nothing at all."""
    return "nop" in form.attributes or form.id == _plain(form.isa)


@cache
def _plain(isa: str) -> str:
    return instruction_set(isa).roles.nop


def before_nop(form: InstructionForm) -> BeforeNop:
    """What a form works on."""
    if form.vector_width:
        return BeforeNop.VECTORS
    return BeforeNop.MEMORY if form.memory >= 0 else BeforeNop.GENERAL


def trails(first: InstructionForm, second: InstructionForm, kinds: Container[BeforeNop]) -> bool:
    """Whether the second is a NOP that shares the slot of the first, where those of some kinds are shared."""
    return is_nop(second) and not is_nop(first) and before_nop(first) in kinds


def trailed(facts: Sequence[Fact], isa: str) -> frozenset[BeforeNop]:
    """Kinds of instructions all of which that were asked share their slots with a NOP behind them."""
    table = load_table(isa)
    answers: dict[BeforeNop, set[CoreAnswer]] = {}
    for fact in facts:
        if fact.probe == FUSION and fact.is_resolved:
            first, second = map(table.get, fused_forms(fact.subject))
            if first is not None and second is not None and is_nop(second):
                answers.setdefault(before_nop(first), set()).add(fact.answer)
    return frozenset(kind for kind, found in answers.items() if found == {CoreAnswer.FUSED})
