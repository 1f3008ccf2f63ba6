"""Specimens of AArch64 and RISC-V, and what the tables declare for them."""

from __future__ import annotations

from collections import Counter

import pytest

from cyclescope.isa.find.pattern import select
from cyclescope.isa.table import load_table
from cyclescope.kernel.aarch64.locations import A64
from cyclescope.kernel.differential import (
    GROUP_SHIFT,
    INDEX_SHIFT,
    INDEXED,
    READ,
    VALUES,
    WRITE,
    SeenAccess,
    differential_of,
)
from cyclescope.kernel.fixed_width.registers import choices, fixed_registers
from cyclescope.kernel.locations import members, names
from cyclescope.kernel.riscv64.locations import RISCV
from cyclescope.kernel.state import CODE_BASE, DATA_BASE, FIRST_WINDOW, STACK_TOP

ISAS = ("aarch64", "riscv64")
CHECKS = {isa: differential_of(load_table(isa)) for isa in ISAS}
LONGEST = 36  # bytes before the first exit, see native/differ.c


@pytest.fixture(scope="module", params=ISAS)
def every(request):
    """The check of an instruction set, and all its specimens."""
    check = CHECKS[request.param]
    forms = select(load_table(request.param), [])
    return check, [check.specimen(form) for form in forms if not check.unmeasurable(form)]


def seen(isa, form_id):
    """Names of what is read and written."""
    check = CHECKS[isa]
    table = check.declared(check.specimen(load_table(isa)[form_id]))
    name = names(isa)
    return {name[n] for n in members(table.reads)}, {name[n] for n in members(table.writes)}


def test_operands_have_registers_of_their_own(every):
    check, specimens = every
    assert len(specimens) > 4000
    for subject in specimens:
        form = subject.form
        used = [
            register
            for field in form.bits.fields
            if field.is_register
            for register in choices(field, check.isa)[subject.numbers[field.operand, 0]]
        ]
        fixed = {register for op in form.operands for register in fixed_registers(op, check.isa)}
        assert max(Counter(used).values(), default=1) == 1, form.id
        assert not set(used) & (fixed - {("r", 2), ("SP", 0)}), form.id


def test_code_ends_before_the_first_exit(every):
    assert all(0 < len(subject.kernel.code) <= LONGEST for subject in every[1])


def test_few_states_serve_all_forms(every):
    assert len({subject.kernel.state for subject in every[1]}) < 50


def test_kept_registers_are_left_alone(every):
    check, specimens = every
    kept = {"x3", "x4", "x27", "X28"}
    for subject in specimens[::7]:
        written = members(check.declared(subject).writes)
        assert not {names(check.isa)[n] for n in written} & kept, subject.form.id


def test_a_scalar_result_zeroes_the_rest_of_the_scalable_register():
    reads, writes = seen("aarch64", "FADDDrr")
    assert writes == {"V1", "Z1[VL:128]", "FPSR"}
    assert reads == {"V16", "V17", "FPCR", "FPSR"}


def test_a_scalable_source_is_read_whole():
    reads, writes = seen("aarch64", "ADD_ZPmZ_B")
    assert {"V1", "Z1[VL:128]", "P6"} <= reads
    assert writes == {"V1", "Z1[VL:128]"}


def test_flags_are_single():
    assert "flags.C" in seen("aarch64", "ADCXr")[0]
    assert "flags.Z" not in seen("aarch64", "ADCXr")[0]
    assert {"flags.N", "flags.Z", "flags.C", "flags.V"} <= seen("aarch64", "ADDSXrs")[1]


def test_memory_is_where_the_base_points():
    assert seen("aarch64", "LDRXui")[0] == {"memory", "X20"}
    assert seen("riscv64", "SD")[1] == {"memory"}
    assert seen("riscv64", "C_LDSP")[0] == {"stack memory", "x2"}
    assert seen("riscv64", "ADD")[1] == {"x10"}


def test_registers_of_a_group():
    reads, writes = seen("riscv64", "VADD_VV@e32,m2,masked")
    assert reads == {"v0", "v24", "v25", "v28", "v29", "vl", "vtype"}
    assert writes == {"v8", "v9"}


def test_status_of_arithmetic_by_rule():
    assert seen("riscv64", "FADD_D")[0] == {"f18", "f19", "frm", "fflags"}
    assert seen("riscv64", "VNCLIP_WI@e8,m1")[1] == {"v8", "vxsat"}
    assert "vxrm" in seen("riscv64", "VNCLIP_WI@e8,m1")[0]
    assert seen("riscv64", "CSRRS") == ({"x18", "fflags"}, {"x10", "fflags"})
    assert "FPSR" in seen("aarch64", "SQADDv1i64")[1]
    assert "FPSR" not in seen("aarch64", "SQADD_ZZZ_B")[1]
    assert "FPCR" in seen("aarch64", "FADD_ZPmZ_D")[0]


@pytest.mark.parametrize(
    ("isa", "form_id", "number"), [("aarch64", "BR", 9), ("aarch64", "RET", 9), ("riscv64", "JALR", 18)]
)
def test_jumps_lead_to_an_exit(isa, form_id, number):
    subject = CHECKS[isa].specimen(load_table(isa)[form_id])
    assert subject.kernel.state.general[number] == CODE_BASE + 64
    assert "next instruction" in seen(isa, form_id)[1]


@pytest.mark.parametrize(
    ("isa", "form_id", "text"),
    [
        ("aarch64", "Bcc", "b.ne #64"),
        ("aarch64", "CBZX", "cbz x9, #64"),
        ("riscv64", "BEQ", "beq s2, s3, 64"),
        ("riscv64", "C_J", "c.j 64"),
    ],
)
def test_branches_lead_to_the_first_exit(isa, form_id, text):
    assert CHECKS[isa].specimen(load_table(isa)[form_id]).kernel.body[0].text == text


def test_vector_indices_are_told_to_the_runner():
    gather = CHECKS["aarch64"].specimen(load_table("aarch64")["GLD1D"])
    assert gather.kernel.flags & INDEXED
    assert gather.kernel.flags >> INDEX_SHIFT == 16
    group = CHECKS["riscv64"].specimen(load_table("riscv64")["VLUXEI32_V@e32,m4"]).kernel.flags
    assert group >> INDEX_SHIFT == 24 | 2 << GROUP_SHIFT - INDEX_SHIFT
    plain = CHECKS["aarch64"].specimen(load_table("aarch64")["ADD_ZZZ_B"])
    assert not plain.kernel.flags & INDEXED


def test_vector_addresses_point_into_data():
    subject = CHECKS["aarch64"].specimen(load_table("aarch64")["GLD1D_IMM"])
    number = subject.kernel.flags >> INDEX_SHIFT
    vector = dict(subject.kernel.state.vectors)[number]
    assert int.from_bytes(vector[:8], "little") == FIRST_WINDOW > DATA_BASE


@pytest.mark.parametrize(
    ("isa", "form_id", "element"),
    [
        ("riscv64", "FCVT_D_S", "f32"),
        ("riscv64", "FCVT_W_D", "f64"),
        ("riscv64", "VFADD_VV@e16,m1", "f16"),
        ("aarch64", "FADD_ZPmZ_D", "f64"),
        ("aarch64", "FMULv4f32", "f32"),
        ("aarch64", "ADD_ZPmZ_D", "int"),
    ],
)
def test_values_are_of_the_type_that_is_read(isa, form_id, element):
    flags = CHECKS[isa].specimen(load_table(isa)[form_id]).kernel.flags
    assert flags & 7 == VALUES.get(element, 0)


def test_what_a_common_machine_takes_for_another_is_left_out():
    check, table = CHECKS["riscv64"], load_table("riscv64")
    assert (
        check.unmeasurable(table["FCVT_D_H_INX"]) == "its code is another instruction's on a common machine"
    )
    assert not check.unmeasurable(table["TH_ADDSL"])
    assert not check.unmeasurable(table["VSETVLI"])


def test_the_vector_configuration_is_set_up():
    check = CHECKS["riscv64"]
    assert check.specimen(load_table("riscv64")["VADD_VV@e32,m2"]).kernel.setup
    assert not check.specimen(load_table("riscv64")["ADD"]).kernel.setup


def test_agnostic_elements_may_stay_and_nothing_else():
    check = CHECKS["riscv64"]
    subject = check.specimen(load_table("riscv64")["VADD_VV@e32,m1"])
    result, other = RISCV.VECTOR + 8, RISCV.VECTOR + 9
    assert "agnostic" in check.exception(subject, SeenAccess(READ, result, 1 << result))
    assert not check.exception(subject, SeenAccess(READ, result, 1 << result | 1 << other))
    assert not check.exception(subject, SeenAccess(READ, other, 1 << other))
    assert not check.exception(subject, SeenAccess(WRITE, result))


def test_stack_pointers_start_in_the_stack():
    for isa, number in (("aarch64", 31), ("riscv64", 2)):
        form = next(f for f in load_table(isa) if not CHECKS[isa].unmeasurable(f))
        assert CHECKS[isa].specimen(form).kernel.state.general[number] == STACK_TOP


def test_locations_of_special_registers():
    assert names("aarch64")[A64.GENERAL + 31] == "SP"
    assert {"SP"} <= seen("aarch64", "BL")[0]
