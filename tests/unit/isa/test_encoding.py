"""The encoder by hand-checked bytes, and what it refuses."""

from __future__ import annotations

import pytest

from cyclescope.isa.encode import default_immediates, encode, takes_index


@pytest.mark.parametrize(
    ("form_id", "arguments", "code"),
    [
        ("IMUL (R64, R64)", {"registers": (0, 3)}, "480fafc3"),
        ("ADD_01 (R64, R64)", {"registers": (8, 15)}, "4d01f8"),
        ("ADD_00 (R8h, R8l)", {"registers": (4, 3)}, "00dc"),  # add ah, bl
        ("ADD (R32, I8)", {"registers": (1,), "immediates": (-1,)}, "4083c1ff"),
        ("MOV (R64, I64)", {"registers": (9,), "immediates": (1,)}, "49b90100000000000000"),
        ("MOV (R64, M64)", {"registers": (3, 14), "displacement": -8}, "498b5ef8"),
        ("MOV (R64, M64)", {"registers": (3, 14), "index": 5}, "498b5c2e00"),
        ("LEA_B_IS_D8 (R64)", {"registers": (0, 1, 2), "displacement": 16}, "488d445110"),
        ("VPADDD (YMM, YMM, YMM)", {"registers": (1, 2, 3)}, "c5edfecb"),
        ("VPADDD (YMM, YMM, YMM)", {"registers": (1, 2, 13)}, "c4c16dfecd"),
        ("VADDPS_Z (ZMM, K, ZMM, ZMM)", {"registers": (31, 7, 30, 29)}, "62010cc758fd"),
        ("VADDPS_ER (ZMM, ZMM, ZMM)", {"registers": (0, 1, 2)}, "62f1741858c2"),
        ("VADDPS (ZMM, ZMM, M512)", {"registers": (0, 1, 2), "displacement": 128}, "62f17448584202"),
        ("PUSH (R64)", {"registers": (12,)}, "4154"),
        ("MOV (R64, M64)", {"registers": (9, 4), "displacement": 16}, "4c8b4c2410"),  # RSP as a base
        ("ADD (M64, I8)", {"registers": (4,), "immediates": (1,)}, "488344240001"),
        ("VADDPS (XMM, XMM, M128)", {"registers": (1, 9, 4), "displacement": 16}, "c4e130584c2410"),
        ("JZ (Rel8)", {"registers": (), "immediates": (-2,)}, "74fe"),
        ("FADD (STi, ST0)", {"registers": (3,)}, "dcc3"),
    ],
)
def test_bytes(table, form_id, arguments, code):
    form = table[form_id]
    assert encode(form, **arguments).hex() == code


def test_immediates_by_default(table):
    """Those of uops.info: 2 for a byte, else a single high bit."""
    values = {
        "ADD (R32, I8)": (2,),
        "ADD (R64, I32)": (1 << 24,),
        "MOV (R64, I64)": (1 << 56,),
        "ENTER (I16, I8)": (1 << 8, 2),
        "SHL (R64, 0)": (0,),
        "SHL (R64, 1)": (),
        "JZ (Rel8)": (0,),
        "ADD_01 (R64, R64)": (),
    }
    assert {name: default_immediates(table[name]) for name in values} == values
    assert encode(table["ADD (R32, I8)"], (1,)) == encode(table["ADD (R32, I8)"], (1,), immediates=(2,))


def refused(table, form_id, *arguments):
    with pytest.raises(ValueError) as caught:
        encode(table[form_id], *arguments)
    return str(caught.value)


@pytest.mark.parametrize(
    ("form_id", "registers"),
    [
        ("ADD_01 (R64, R64)", (16, 0)),
        ("ADD_01 (R64, R64)", (0,)),
        ("ADD_01 (R64, R64)", (0, 1, 2)),
        ("PADDD (MM, MM)", (0, 8)),
        ("ADD_00 (R8h, R8l)", (4, 8)),  # AH does not go with a REX prefix
        ("FADD (STi, ST0)", (8,)),
        ("KADDB (K, K, K)", (0, 8, 0)),
        ("VPADDD (XMM, XMM, XMM)", (0, 1, 16)),
        ("VADDPS (ZMM, ZMM, ZMM)", (0, 1, 32)),
        ("MOV (R64, M64)", (0, 12)),  # R12 as base needs a SIB byte, which RSP gets
        ("LEA_B (R64)", (0, 5)),  # RBP and R13 as base need a displacement
        ("LEA_B_I (R64)", (0, 13, 1)),
        ("LEA_B_I (R64)", (0, 1, 4)),  # RSP is no index
        ("VADDPS (ZMM, K, ZMM, ZMM)", (0, 0, 1, 2)),  # k0 is no mask
        ("VADDPS (ZMM, K, ZMM, M512)", (0, 0, 1, 4)),  # two wrong ones
    ],
)
def test_registers_that_cannot_be_encoded(table, form_id, registers):
    assert refused(table, form_id, registers)


@pytest.mark.parametrize(
    ("form_id", "displacement"),
    [
        ("MOV (R64, M64)", 128),
        ("MOV (R64, M64)", -129),
        ("VADDPS (ZMM, ZMM, M512)", 4),  # not a multiple of 64
        ("VADDPS (ZMM, ZMM, M512)", 64 * 128),
        ("LEA_B (R64)", 1),
    ],
)
def test_displacements_that_do_not_fit(table, form_id, displacement):
    form = table[form_id]
    registers = [1] * len(form.encoding.slots)
    assert "displacement" in refused(table, form_id, registers, displacement)


@pytest.mark.parametrize(
    ("value", "fits"), [(127, True), (128, True), (255, True), (256, False), (-129, False)]
)
def test_immediates_signed_or_unsigned(table, value, fits):
    form = table["ADD (R32, I8)"]
    if fits:
        assert encode(form, (1,), 0, (value,))[-1] == value & 0xFF
    else:
        assert "immediate" in refused(table, form.id, (1,), 0, (value,))


@pytest.mark.parametrize("index", [4, 8, -1])
def test_registers_that_are_no_index(table, index):
    assert "index" in refused(table, "MOV (R64, M64)", (0, 1), 0, None, index)


def test_only_plain_addresses_take_an_index(table):
    assert takes_index(table["MOV (R64, M64)"])
    for form_id in ("ADD_01 (R64, R64)", "LODSQ", "VPGATHERDD (YMM, VSIB_YMM, YMM)", "MOV (RAX, Moffs64)"):
        assert not takes_index(table[form_id])
    assert "index" in refused(table, "ADD_01 (R64, R64)", (0, 1), 0, None, 1)


def test_a_form_without_a_template(table):
    form = next(form for form in table if form.encoding is None)
    assert not takes_index(form)
    assert "template" in refused(table, form.id, ())
