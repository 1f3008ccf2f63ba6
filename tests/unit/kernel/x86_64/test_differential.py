from __future__ import annotations

import pytest

from cyclescope.isa.register import domain
from cyclescope.isa.table import load_table
from cyclescope.isa.x86_64.unmeasurable import unmeasurable
from cyclescope.kernel.differential import EXIT_SPACING
from cyclescope.kernel.state import CODE_BASE, FIRST_WINDOW, SECOND_WINDOW, STACK_TOP
from cyclescope.kernel.x86_64.differential import specimen
from cyclescope.kernel.x86_64.registers import X86RegisterRoles, physical

TABLE = load_table("x86-64")
LONGEST = EXIT_SPACING - 16  # bytes before the first exit, see native/differ.c


@pytest.fixture(scope="module")
def specimens():
    return [specimen(form) for form in TABLE if not unmeasurable(form)]


def occupied(subject):
    """Registers of a specimen, with repeats where two operands share one."""
    for (position, part), number in subject.numbers.items():
        op = subject.form.operands[position]
        if part == 2 and op.cls.startswith("VSIB_"):
            yield "v", number
        elif part:
            yield "r", number
        elif domain(op.cls) != "?":
            yield physical(op, number)


def test_every_form_that_can_run_has_a_short_kernel(specimens):
    assert all(0 < len(s.kernel.code) <= LONGEST for s in specimens)


def test_operands_have_registers_of_their_own(specimens):
    for subject in specimens:
        used = list(occupied(subject))
        assert len(used) == len(set(used)), subject.form.id
        assert not set(used) & X86RegisterRoles(subject.form).implicit, subject.form.id


def test_masks_are_never_register_0(specimens):
    masks = [
        number
        for subject in specimens
        for (position, _), number in subject.numbers.items()
        if subject.form.operands[position].cls == "K"
    ]
    assert masks
    assert 0 not in masks


def test_few_states_serve_all_forms(specimens):
    assert len({s.kernel.state for s in specimens}) < 500  # the runner holds 1024


@pytest.mark.parametrize(
    ("form", "register", "value"),
    [
        ("MOV (M64, R64)", 14, FIRST_WINDOW),
        ("MOVSB", 6, FIRST_WINDOW),
        ("MOVSB", 7, SECOND_WINDOW),
        ("LEAVE", 5, STACK_TOP),
        ("XLAT", 3, FIRST_WINDOW),
        ("JMP (R64)", 1, CODE_BASE + EXIT_SPACING),
        ("DIV (R64)", 2, 0),
        ("XGETBV", 1, 0),
    ],
)
def test_registers_start_with_what_the_form_needs(form, register, value):
    assert specimen(TABLE[form]).kernel.state.general[register] == value


def test_branches_lead_to_the_first_exit():
    code = specimen(TABLE["JMP (Rel8)"]).kernel.code
    assert len(code) + code[1] == EXIT_SPACING


def test_a_gather_tells_the_runner_its_index():
    subject = specimen(next(f for f in TABLE if "vsib" in f.attributes))
    index = next(number for (_, part), number in subject.numbers.items() if part == 2 and number != 14)
    assert subject.kernel.flags & 16
    assert subject.kernel.flags >> 8 == index


def test_mmx_forms_get_mmx_values():
    assert specimen(TABLE["EMMS"]).kernel.flags & 8
    assert not specimen(TABLE["FNINIT"]).kernel.flags & 8
