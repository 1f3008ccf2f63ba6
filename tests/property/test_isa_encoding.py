"""Random forms with random values: encoded, decoded by iced-x86, and the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyclescope.isa.encode import encode, takes_index
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import load_table
from tests.unit.isa.decoding import Values, decoded, described, legal_numbers


class Forms(list[InstructionForm]):
    """Forms to choose from; hypothesis prints its strategies, which must not take all day."""

    def __repr__(self) -> str:
        return f"{len(self)} forms"


ENCODABLE = Forms(form for form in load_table("x86-64") if form.encoding is not None)
OLDER = Forms(form for form in ENCODABLE if "evex" not in form.attributes)
INDEXABLE = Forms(form for form in ENCODABLE if takes_index(form))
STACK_POINTER = 4
ADDRESSED = Forms(form for form in ENCODABLE if any(slot.part for slot in form.encoding.slots))


@st.composite
def registers(draw, form: InstructionForm) -> list[int]:
    """Legal numbers; different ones where the form needs that."""
    numbers: list[int] = []
    for pool in legal_numbers(form):
        taken = numbers if "unique_registers" in form.attributes else []
        numbers.append(draw(st.sampled_from([n for n in pool if n not in taken])))
    return numbers


@st.composite
def immediates(draw, form: InstructionForm) -> list[int]:
    values = []
    for op in form.operands:
        if op.kind in ("immediate", "branch") and op.cls != "1":
            half = 1 << op.width - 1
            values.append(draw(st.integers(-half, half - 1)) if op.width > 4 else draw(st.integers(0, 15)))
    return values


@st.composite
def displacement(draw, form: InstructionForm) -> int:
    assert form.encoding is not None
    if form.encoding.displacement is None:
        return 0
    _, size, scale = form.encoding.displacement
    half = 1 << min(8 * size, 32) - 1
    return draw(st.integers(-half, half - 1)) * scale


@st.composite
def instructions(draw, forms=ENCODABLE) -> tuple[InstructionForm, Values]:
    form = forms[draw(st.integers(0, len(forms) - 1))]
    index = None
    if takes_index(form) and draw(st.booleans()):
        index = draw(st.sampled_from([0, 1, 2, 3, 5, 6, 7]))
    values = Values(draw(registers(form)), draw(displacement(form)), draw(immediates(form)), index)
    return form, values


def there_and_back(form: InstructionForm, values: Values) -> tuple[object, object]:
    """What another decoder reads in the code, and what was asked for."""
    code = encode(form, *values)
    return decoded(form, code), described(form, values, len(code))


@given(instructions())
def test_any_form(one):
    read, asked = there_and_back(*one)
    assert read == asked


@given(instructions(OLDER))
def test_any_older_form(one):
    """EVEX forms are seven in ten; these get a turn of their own."""
    read, asked = there_and_back(*one)
    assert read == asked


@given(instructions(INDEXABLE))
def test_any_address(one):
    read, asked = there_and_back(*one)
    assert read == asked


@given(instructions(INDEXABLE))
def test_the_stack_pointer_as_a_base(one):
    form, values = one
    assert form.encoding is not None
    pairs = zip(values.registers, form.encoding.slots, strict=True)
    numbers = [STACK_POINTER if slot.part else number for number, slot in pairs]
    read, asked = there_and_back(form, values._replace(registers=numbers, index=None))
    assert read == asked


@given(instructions())
def test_values_reach_the_code(one):
    """Another register, displacement or immediate is another code."""
    form, values = one
    code = encode(form, *values)
    for place, pool in enumerate(legal_numbers(form)):
        other = next((n for n in pool if n != values.registers[place]), None)
        if other is not None:
            changed = [*values.registers[:place], other, *values.registers[place + 1 :]]
            assert encode(form, *values._replace(registers=changed)) != code
    if values.immediates:
        changed = [values.immediates[0] ^ 1, *values.immediates[1:]]
        if form.operands[-1].width != 4:
            assert encode(form, *values._replace(immediates=changed)) != code


@given(instructions(ADDRESSED), st.data())
def test_registers_that_are_no_base_or_index_are_refused(one, data):
    form, values = one
    assert form.encoding is not None
    places = [place for place, slot in enumerate(form.encoding.slots) if slot.part > 0]
    place = data.draw(st.sampled_from(places))
    legal = legal_numbers(form)[place]
    stacked = {STACK_POINTER} if takes_index(form) and values.index is None else set()
    number = data.draw(st.integers(0, 39).filter(lambda n: n not in {*legal, *stacked}))
    changed = [*values.registers[:place], number, *values.registers[place + 1 :]]
    with pytest.raises(ValueError):
        encode(form, *values._replace(registers=changed))
