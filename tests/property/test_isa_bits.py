"""AArch64 and RISC-V: random forms with random legal values, encoded, decoded, and the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyclescope.isa.decode import TableDecoder, decoder
from cyclescope.isa.table import load_table

TABLES = {isa: load_table(isa) for isa in ("aarch64", "riscv64")}
COMMON = {isa: [f for f in table if "optional" not in f.attributes] for isa, table in TABLES.items()}


@st.composite
def instructions(draw, every=COMMON):
    """(ISA, form, legal values of its fields)"""
    isa = draw(st.sampled_from(sorted(every)))
    form = every[isa][draw(st.integers(0, len(every[isa]) - 1))]
    return isa, form, tuple(draw(st.sampled_from(f.values.legal)) for f in form.bits.fields)


@settings(max_examples=600)
@given(instructions())
def test_decoding_undoes_encoding(one):
    isa, form, values = one
    code = form.bits.encode(values)
    found = decoder(isa).decode(code)
    assert (found.form.id, found.values, found.length) == (form.id, values, len(code))


@given(instructions({isa: list(table) for isa, table in TABLES.items()}))
def test_optional_extensions_decode_where_they_are_asked_for(one):
    isa, form, values = one
    only = TableDecoder(TABLES[isa], form.features) if "optional" in form.attributes else decoder(isa)
    assert form.bits.matches(int.from_bytes(form.bits.encode(values), "little"))
    assert only.decode(form.bits.encode(values)) is not None


@given(instructions(), st.data())
def test_values_that_are_not_legal_are_refused(one, data):
    _, form, values = one
    if not values:
        return
    place = data.draw(st.integers(0, len(values) - 1))
    field = form.bits.fields[place]
    wrong = [v for v in (-1, 1 << len(field.positions)) if v not in field.values.allowed]
    wrong += sorted(set(range(min(64, 1 << len(field.positions)))) - set(field.values.legal[:64]))[:4]
    value = data.draw(st.sampled_from([v for v in wrong if v not in field.values.allowed]))
    with pytest.raises(ValueError, match="no legal value"):
        form.bits.encode([*values[:place], value, *values[place + 1 :]])


@given(instructions())
def test_every_instruction_can_be_written(one):
    isa, form, values = one
    text = decoder(isa).decode(form.bits.encode(values)).text
    assert text.split()[0].upper().partition(".")[0] == form.mnemonic.partition(".")[0]
    assert "{0}" not in text


@given(st.sampled_from(sorted(TABLES)), st.binary(min_size=8, max_size=8))
def test_any_bytes_decode_to_what_encodes_to_them(isa, code):
    found = decoder(isa).decode(code)
    if found is not None:
        again = int.from_bytes(found.form.bits.encode(found.values), "little")
        word = int.from_bytes(code[: found.length], "little")
        told = found.form.bits.mask | sum(f.insert(-1) for f in found.form.bits.fields)
        assert again & told == word & told  # other bits should be as encoded, but no CPU looks
