"""Every encoding template, filled in, decodes to its form and to the values it was filled with."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from cyclescope.isa.encode import encode, takes_index
from cyclescope.isa.form import InstructionForm
from tests.unit.isa.decoding import Values, choices, decoded, described, legal_numbers

LONGEST = 15
SEED = random.SystemRandom().randrange(1 << 30)
IMMEDIATE_LIMITS = {"0": (0, 0, 0), "I8": (1, 127, -128), "Rel8": (1, 127, -128)}


@pytest.fixture(scope="module")
def templates(table) -> list[InstructionForm]:
    return [form for form in table if form.encoding is not None]


def immediates(form: InstructionForm, turn: int) -> list[int]:
    """Small, largest and smallest values of what the template holds."""
    values = []
    for op in form.operands:
        if op.kind in ("immediate", "branch") and op.cls != "1":
            half = 1 << op.width - 1
            values.append(IMMEDIATE_LIMITS.get(op.cls, (3, half - 1, -half))[turn])
    return [v & 0xF if form.operands[-1].width == 4 else v for v in values]


def displacement(form: InstructionForm, turn: int) -> int:
    """Zero, the largest and the smallest displacement."""
    if form.encoding is None or form.encoding.displacement is None:
        return 0
    _, size, scale = form.encoding.displacement
    half = 1 << min(8 * size, 32) - 1
    return (0, half - 1, -half)[turn] * scale


def mismatches(form: InstructionForm, every: Iterator[Values]) -> dict[str, object]:
    """What decodes to something else, by the machine code."""
    wrong = {}
    for values in every:
        code = encode(form, *values)
        wanted, got = described(form, values, len(code)), decoded(form, code)
        if got != wanted or len(code) > LONGEST:
            wrong[f"{form.id}: {code.hex()}"] = (values, got, wanted)
    return wrong


def check(forms: list[InstructionForm], choose) -> None:
    wrong: dict[str, object] = {}
    for form in forms:
        wrong |= mismatches(form, choose(form))
    assert wrong == {}


def test_registers(templates):
    """Lowest, highest and mixed register numbers."""
    check(templates, lambda f: (Values(r, 0, immediates(f, 0)) for r in choices(f, 3)))


@pytest.mark.parametrize("turn", [1, 2])
def test_immediates_and_displacements(templates, turn):
    def values(form):
        for registers in choices(form, 2):
            yield Values(registers, displacement(form, turn), immediates(form, turn))

    check(templates, values)


def test_an_added_index(templates):
    def values(form):
        for turn, registers in enumerate(choices(form, 3)):
            yield Values(registers, displacement(form, turn), immediates(form, 0), (0, 5, 7)[turn])

    indexed = [form for form in templates if takes_index(form)]
    assert len(indexed) > 8000
    check(indexed, values)


@pytest.mark.parametrize("parts", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_every_legal_register_of_every_slot(templates, parts):
    """One form per layout and kind of encoding, or one of some of them drawn anew; every register number."""
    kinds = {(f.signature, f.encoding.slots, f.attributes): f for f in templates}
    print(f"seed {SEED}")  # noqa: T201 - to repeat it
    forms = random.Random(SEED).sample(list(kinds.values()), len(kinds) // parts)

    def values(form):
        first = next(choices(form, 1))
        for slot, pool in enumerate(legal_numbers(form)):
            for number in pool:
                if number not in first and "unique_registers" not in form.attributes:
                    registers = [*first[:slot], number, *first[slot + 1 :]]
                    yield Values(registers, 0, immediates(form, 0))

    check(forms, values)


def test_forms_without_a_template(table):
    """Hints and relics that have none; everything else must have one."""
    missing = {form.id for form in table if form.encoding is None}
    others = {"XBEGIN (Rel16)", "MONTMUL_0FA6C0 [MONTMUL_64]", "MOVDIR64B (R32, M512)", "ENQCMD (R32, M512)"}
    reserved = {i for i in missing if i.startswith("RESERVEDNOP_")}
    assert missing - reserved == others
    assert len(reserved) == 14
