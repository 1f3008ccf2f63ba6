"""What is asked of the front end: its width, the length of encodings, and the slots of forms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from cyclescope.backend.base import Effort
from cyclescope.infer.ports.front_end import FrontEndFacts
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import Table
from cyclescope.kernel.chain import Unmeasurable
from cyclescope.measure.front_end import FrontEndPlanner
from cyclescope.measure.plan import Experiment
from cyclescope.measure.ports import COUNTED, INSTANCES, Filling, PortPlanner, Question

PROVING = Effort(rounds=4, want=8, target=40000.0)  # few, and everything stands on them
COUNTING = Effort(rounds=2, want=3, target=20000.0)  # rounds differ by 0.43 of what usual efforts leave
LONGEST_PAIR = 40.0  # cycles of two instances: longer ones would need thousands of blocking instructions
HIDING = 1.6  # times the slots that pass while the instances run alone: what else limits them does not show
LEAST_FILLERS = 6  # to an instance
FIRST_LOOK = 1, 11  # fillers more than hide the form: of different rests whatever the width
SECOND_LOOK = 4, 17, 31
EVEN_LOOK = 0, 3  # cycles of fillers more: loops that are whole cycles long whatever the form takes


def simple_forms(table: Table) -> list[InstructionForm]:
    """The forms by which the width is measured."""
    names = (name for some in instruction_set(table.isa).roles.simple.values() for name in some)
    return [table[name] for name in names if name in table]


def width_questions(table: Table, plans: PortPlanner, forms: Iterable[InstructionForm]) -> Iterator[Question]:
    """Loops that tell the width, and what the length of encodings costs."""
    planner = FrontEndPlanner(plans, table.isa)
    known = {form.id: form for form in forms}
    yield from planner.widths(known)
    yield from planner.lengths(known)


def narrow_questions(facts: FrontEndFacts, plans: PortPlanner) -> Iterator[Question]:
    """Loops that tell of which instructions a cycle takes fewer, where moves say that there may be some."""
    planner = FrontEndPlanner(plans, facts.table.isa)
    for form, each in facts.narrow_moves:
        others = map(facts.table.__getitem__, facts.of_files.values())
        yield from planner.narrow(facts.table[form], each, facts.table[facts.filler], others)


def slot_questions(
    facts: FrontEndFacts, plans: PortPlanner, forms: Iterable[InstructionForm]
) -> Iterator[Question]:
    """Every form among two numbers of fillers."""
    for form in forms:
        yield from _counts(facts, plans, form, FIRST_LOOK, COUNTED)


def second_slot_questions(
    facts: FrontEndFacts, plans: PortPlanner, forms: Iterable[InstructionForm]
) -> Iterator[Question]:
    """Forms whose slots are not proved: among three more, and more instances, and in loops of whole cycles.

    Some cores begin a cycle anew at some instructions: loops with loads take whole cycles on a Zen 5.
    """
    for form in forms:
        count = facts.counts.get(form.id)
        if count is not None and count.whole is None:
            yield from _counts(facts, plans, form, SECOND_LOOK, 2 * COUNTED)
            yield from _even_counts(facts, plans, form)


def _counts(
    facts: FrontEndFacts, plans: PortPlanner, form: InstructionForm, steps: Iterable[int], instances: int
) -> Iterator[Question]:
    """Instances of a form among numbers of fillers that hide what else limits them."""
    if (least := _least(facts, form, instances)) is not None:
        for step in steps:
            yield _count(facts, plans, form, instances, least + step)


def _even_counts(facts: FrontEndFacts, plans: PortPlanner, form: InstructionForm) -> Iterator[Question]:
    """As many instances as a cycle has slots, or a multiple, among as many fillers as some cycles have."""
    if not facts.width_fact.is_told:
        return
    width = round(facts.width)
    instances = width * math.ceil(2 * COUNTED / width)
    if (least := _least(facts, form, instances)) is not None:
        for cycles in EVEN_LOOK:
            yield _count(facts, plans, form, instances, width * (math.ceil(least / width) + cycles))


def _least(facts: FrontEndFacts, form: InstructionForm, instances: int) -> int | None:
    """How many slots of fillers hide what else limits a form; None where these would be too many."""
    alone = facts.alone.get(form.id, math.inf)
    each = facts.throughputs.get(form.id, alone)
    if longest_pair(facts, form) > LONGEST_PAIR:
        return None
    cycles = max(alone, COUNTED * each) * instances / COUNTED
    return max(math.ceil(HIDING * facts.width * cycles), LEAST_FILLERS * instances)


def longest_pair(facts: FrontEndFacts, form: InstructionForm) -> float:
    """Cycles of two instances: two that stay in buffers take less than those that leave them."""
    alone = facts.alone.get(form.id, math.inf)
    return max(alone, INSTANCES * facts.throughputs.get(form.id, alone))


def _count(
    facts: FrontEndFacts, plans: PortPlanner, form: InstructionForm, instances: int, slots: int
) -> Question:
    """Instances of a form among fillers of so many slots."""
    filling = Filling(facts.table[facts.filler], slots * facts.together, facts.together, facts.padding)
    return plans.slots(form, filling, instances)


def made(questions: Iterable[Question]) -> Iterator[Experiment]:
    """The experiments that can be made, each made when they are asked for: the backend measures meanwhile."""
    for question in questions:
        try:
            found = question.make()
        except Unmeasurable:
            continue
        if found is not None:
            yield found
