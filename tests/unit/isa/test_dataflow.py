"""Sources and targets of forms, written by hand from the architecture manuals."""

from __future__ import annotations

import pytest

from cyclescope.isa.dataflow import is_old, overwritten, pairs, sources, targets
from cyclescope.isa.form import FLAGS
from cyclescope.isa.table import load_table

ARITHMETIC = "flags.CF flags.PF flags.AF flags.ZF flags.SF flags.OF"
LOGIC = "flags.CF flags.PF flags.ZF flags.SF flags.OF"  # AF is undefined
M2 = "op2.address op2.index op2.data"

EXPECTED = [
    ("ADD_01 (R64, R64)", "op1 op2", f"op1 {ARITHMETIC}"),
    ("ADC_11 (R64, R64)", "op1 op2 flags.CF", f"op1 {ARITHMETIC}"),
    ("ADD_00 (R8h, R8l)", "op1 op2", f"op1 {ARITHMETIC}"),
    ("ADCX (R64, R64)", "op1 op2 flags.CF", "op1 flags.CF"),
    ("ADOX (R64, R64)", "op1 op2 flags.OF", "op1 flags.OF"),
    ("INC (M32)", "op1.address op1.index op1.data", "op1.data flags.PF flags.AF flags.ZF flags.SF flags.OF"),
    ("TEST (R64, R64)", "op1 op2", LOGIC),
    ("MUL (R64)", "op1 RAX", "RDX RAX flags.CF flags.OF"),
    ("MULX (R64, R64, R64)", "op3 RDX", "op1 op2"),
    ("DIV (R64)", "op1 RAX RDX", "RAX RDX"),
    (  # a count of zero leaves the flags alone
        "SHL (R64, CL)",
        f"op1 op2 {ARITHMETIC}",
        "op1 flags.CF flags.PF flags.ZF flags.SF",
    ),
    ("SHLX (R64, R64, R64)", "op2 op3", "op1"),
    ("CMOVZ (R64, R64)", "op1 op2 flags.ZF", "op1"),
    ("SETZ (R8l)", "op1 flags.ZF", "op1"),  # bits 8 to 63 stay
    ("MOV (R64, M64)", M2, "op1"),
    ("MOV (M64, R64)", "op1.address op1.index op2", "op1.data"),
    ("MOVZX (R32, R8l)", "op2", "op1"),
    ("LEA_B_I_D8 (R64)", "op2.address op2.index", "op1"),
    ("LEA_R_D32 (R64)", "", "op1"),
    ("XCHG (R64, R64)", "op1 op2", "op1 op2"),
    ("XADD (R64, R64)", "op1 op2", f"op1 op2 {ARITHMETIC}"),
    ("CMPXCHG (M64, R64)", "op1.address op1.index op1.data op2 RAX", f"op1.data RAX {ARITHMETIC}"),
    ("PUSH (R64)", "op1 RSP", "RSP [RSP].data"),
    ("POP (R64)", "RSP [RSP].data", "op1 RSP"),
    ("LODSQ", "[RSI].data RSI flags.DF", "RAX RSI"),
    ("MOVSB_REPE", "[RSI].data RCX RDI RSI flags.DF", "[RDI].data RCX RDI RSI"),
    ("XLAT", "[RBX].data RBX AL", "AL"),
    ("JZ (Rel32)", "flags.ZF", ""),
    ("STD", "", "flags.DF"),
    ("NOP", "", ""),
    ("PADDD (XMM, XMM)", "op1 op2", "op1"),
    ("VPADDD (XMM, XMM, XMM)", "op2 op3", "op1"),
    ("VFMADD231PD (YMM, YMM, YMM)", "op1 op2 op3", "op1"),
    ("VADDPS (ZMM, K, ZMM, ZMM)", "op1 op2 op3 op4", "op1"),  # masked-off elements stay
    ("VADDPS_Z (ZMM, K, ZMM, ZMM)", "op2 op3 op4", "op1"),  # or are zeroed
    ("VMOVUPS (M128, K, XMM)", "op1.address op1.index op2 op3", "op1.data"),
    ("VPGATHERDD (YMM, VSIB_YMM, YMM)", f"op1 {M2} op3", "op1 op3"),
    ("VPGATHERDD (ZMM, K, VSIB_ZMM)", "op1 op2 op3.address op3.index op3.data", "op1 op2"),
    ("VPSCATTERDD (VSIB_ZMM, K, ZMM)", "op1.address op1.index op2 op3", "op1.data op2"),
    ("PCMPISTRI (XMM, XMM, I8)", "op1 op2", f"RCX {ARITHMETIC}"),
    ("PBLENDVB (XMM, XMM)", "op1 op2 XMM0", "op1"),
    ("KADDB (K, K, K)", "op2 op3", "op1"),
    ("FADD (STi, ST0)", "op1 op2", "op1"),
    ("FCOMI (ST0, STi)", "op1 op2", "flags.CF flags.PF flags.AF flags.ZF flags.SF flags.OF"),
    ("VP2INTERSECTD (K, XMM, XMM)", "op2 op3", "op1"),
]


def names(nodes):
    return [node.name for node in nodes]


@pytest.mark.parametrize(("form_id", "read", "written"), EXPECTED)
def test_sources_and_targets(table, form_id, read, written):
    form = table[form_id]
    assert sorted(names(sources(form))) == sorted(read.split())
    assert sorted(names(targets(form))) == sorted(written.split())


def test_pairs_are_all_combinations(table):
    found = {(p.source.name, p.target.name) for p in pairs(table["ADC_11 (R64, R64)"])}
    assert found == {(a, b) for a in ("op1", "op2", "flags.CF") for b in ("op1", *ARITHMETIC.split())}
    assert {p.excluded for p in pairs(table["ADC_11 (R64, R64)"])} == {""}


@pytest.mark.parametrize(
    ("isa", "form_id", "expected"),
    [
        ("x86-64", "POPCNT (R64, R64)", ["op1.old->op1"]),
        ("x86-64", "MULX (R64, R64, R64)", ["op1.old->op1", "op2.old->op2"]),
        ("x86-64", "POPCNT (R16, R16)", []),  # 16 bits: the rest is kept, so that it is read
        ("x86-64", "ADD_01 (R64, R64)", []),
        ("x86-64", "CDQ", []),  # always RDX
        ("x86-64", "MOV (SEG, R64)", []),
        ("x86-64", "VPADDD (ZMM, K, ZMM, ZMM)", []),
        ("x86-64", "VPADDD_Z (ZMM, K, ZMM, ZMM)", ["op1.old->op1"]),
        ("aarch64", "LDPXi", ["op1.old->op1", "op2.old->op2"]),
        ("aarch64", "ADDSWri", ["op1.old->op1"]),  # not the flags
        ("riscv64", "FDIV_D", ["op1.old->op1"]),
    ],
)
def test_what_overwrites_a_register_may_wait_for_its_old_value(isa, form_id, expected):
    found = [f"{p.source.name}->{p.target.name}" for p in overwritten(load_table(isa)[form_id])]
    assert found == expected
    assert all(map(is_old, found))
    assert not any(is_old(f"{p.source.name}->x") for p in pairs(load_table(isa)[form_id]))


def test_no_target_no_pair(table):
    assert pairs(table["JZ (Rel32)"]) == ()
    assert pairs(table["STD"]) == ()


@pytest.mark.parametrize(
    ("form_id", "source", "target", "reason"),
    [
        ("PUSH (R64)", "op1", "RSP", "stack engine"),
        ("PUSH (R64)", "op1", "[RSP].data", "stack engine"),
        ("POP (R64)", "[RSP].data", "op1", "stack engine"),
        ("LODSQ", "flags.DF", "RAX", "control state"),
        ("LODSQ", "[RSI].data", "RAX", ""),
        ("MOV (SEG, R64)", "op2", "op1", "machine state"),
        ("MOV (R64, SEG)", "op2", "op1", "machine state"),
        ("ENTER (I16, I8)", "RBP", "RBP", ""),
        ("XADD (R64, R64)", "op1", "op2", ""),
    ],
)
def test_what_no_chain_can_measure(table, form_id, source, target, reason):
    (pair,) = [p for p in pairs(table[form_id]) if (p.source.name, p.target.name) == (source, target)]
    assert (reason in pair.excluded) if reason else pair.excluded == ""


@pytest.mark.parametrize(
    ("form_id", "name", "part", "domain", "operand"),
    [
        ("ADD_00 (R8h, R8l)", "op1", "register", "h", 0),
        ("ADD_00 (R8h, R8l)", "op2", "register", "r", 1),
        ("MOV (R64, M64)", "op2.address", "address", "r", 1),
        ("MOV (R64, M64)", "op2.index", "index", "r", 1),
        ("MOV (R64, M64)", "op2.data", "data", "mem", 1),
        ("VPGATHERDD (YMM, VSIB_YMM, YMM)", "op2.index", "index", "v", 1),
        ("VADDPS (ZMM, K, ZMM, ZMM)", "op2", "register", "k", 1),
        ("PADDD (MM, MM)", "op2", "register", "m", 1),
        ("FADD (STi, ST0)", "op2", "register", "x", 1),
        ("ADC_11 (R64, R64)", "flags.CF", "flag", "flag", -1),
    ],
)
def test_nodes_say_where_the_value_is(table, form_id, name, part, domain, operand):
    (node,) = [n for n in sources(table[form_id]) if n.name == name]
    assert (node.part, node.domain, node.operand) == (part, domain, operand)
    assert node.flag == (name.removeprefix("flags.") if part == "flag" else "")


def test_names_of_nodes_are_unique(table):
    """Two operands of one name would make two pairs one in the store."""
    for form in table:
        for side in (sources(form), targets(form)):
            assert len({node.name for node in side}) == len(side), form.id


def test_immediates_and_branch_targets_are_no_data(table):
    for form in table:
        positions = {node.operand for node in sources(form) + targets(form)} - {-1}
        assert {form.operands[p].kind for p in positions} <= {"register", "memory", "address"}, form.id


def test_flags_are_nodes_one_by_one(table):
    flags = {node.flag for form in table for node in sources(form) + targets(form)} - {""}
    assert flags == set(FLAGS)


def test_computed_once(table):
    form = table["ADD_01 (R64, R64)"]
    assert pairs(form) is pairs(form)
