"""Values followed through kernels under qemu-user: sound kernels pass, and kernels broken on purpose fail."""

from __future__ import annotations

import os
import shlex
from functools import cache
from unittest.mock import patch

import msgspec
import pytest

from benchmarks.tables.emulated import emulator
from benchmarks.values.follow import (
    findings,
    helper,
    judged,
    questions_of,
)
from benchmarks.values.places import Places
from benchmarks.values.tracer import AS_IT_IS, tracer
from cyclescope.errors import BackendUnavailable
from cyclescope.isa.table import load_table
from cyclescope.kernel.locations import names
from tests.support.code.fixed_width import planner

# Kernels of these forms once ran on with predicates that had become false, read back another half than the
# one stored, moved a register to itself, loaded what no single store had written, divided by what was left,
# worked on what is no number, compared with what was not there, or had indices that the store did not need.
FORMS = {
    "aarch64": [
        "ST1B", "CMPEQ_PPzZZ_B", "CMPGE_PPzZZ_H", "ADD_ZPmZ_B", "STPXi", "STPQpre", "STNPDi", "LDPSWi",
        "LDPXi", "LD2B", "SDIV_ZPmZ_S", "UDIVR_ZPmZ_D", "FDIV_ZPmZ_D", "FSQRTDr", "FCMGE16", "FCVTDHr",
        "FMUL_ZPmZ_S", "MUL_ZI_S", "CSELXr", "ADCSXr", "LDADDX", "STRXui", "CASALX", "CASH", "CASPX",
        "FSCALE_ZPmZ_D", "FMUL_ZPmI_D", "EXT_ZZI", "MSR", "LDUMAXX", "URSQRTE_ZPmZ_S", "SCVTF_ZPmZ_StoD",
    ],
    "riscv64": [
        "VMV1R_V", "VMV8R_V", "VMV_V_V@e32,m1", "VL2RE8_V", "VLSEG2E8_V@e8,m1", "VDIV_VV@e32,m1",
        "VREMU_VX@e16,m1", "VDIVU_VV@e64,m8", "VFDIV_VV@e32,mf2", "VFDIV_VF@e64,m1,masked", "VMSBC_VXM@e8,m1",
        "FCVT_H_S", "VMFLE_VF@e32,m1", "VFWADD_VV@e16,m1", "VADD_VV@e32,m1,masked", "AMOADD_D", "DIV", "SD",
        "VSLIDEUP_VX@e32,m1", "VSOXEI16_V@e8,m1", "VSUXEI64_V@e32,m4", "VMADC_VIM@e64,m1", "VMFEQ_VF@e32,m8",
    ],
}  # fmt: skip


@cache
def machine(isa):
    """A tracer of an instruction set, kept for all tests."""
    try:
        words = shlex.split(emulator(isa))[:-1]
        return tracer(isa, words)
    except BackendUnavailable as error:
        pytest.skip(f"needs qemu-user and a cross compiler: {error}")


@pytest.fixture(scope="module", params=list(FORMS))
def isa(request, tmp_path_factory):
    with patch.dict(os.environ, XDG_CACHE_HOME=str(tmp_path_factory.mktemp("cache"))):
        machine(request.param)
    yield request.param
    machine(request.param).close()


def question(isa, form_id, source, target, variant=""):
    """What is to be seen of one kernel."""
    found = questions_of(planner(isa), Places(planner(isa)), load_table(isa)[form_id])
    return next(
        q for q in found if (q.source, q.target) == (source, target) and q.variant.startswith(variant)
    )


def problem(isa, asked):
    return judged(asked, next(machine(isa).run([asked.job])), names(isa))


def with_items(asked, change):
    """The kernel with other instructions: `change` gets the list of items."""
    items = list(asked.job.items)
    change(items)
    return msgspec.structs.replace(asked, job=msgspec.structs.replace(asked.job, items=tuple(items)))


def test_values_prove_the_kernels_of_forms_that_were_broken(isa):
    forms = [load_table(isa)[name] for name in FORMS[isa]]
    found = list(findings(machine(isa), planner(isa), forms))
    assert {f.form for f in found} == set(FORMS[isa])
    assert [f"{f.form} {f.source} {f.target} {f.variant}: {f.problem}" for f in found if f.problem] == []


def made(isa, form_id, *values):
    return planner(isa).dialect.helpers.make(form_id, *values)


def last(*made_of):
    """Another last instruction."""

    def change(isa, items):
        items[-1] = helper(made(isa, *made_of))

    return change


def added(*made_of):
    """One more instruction at the end."""

    def change(isa, items):
        items.append(helper(made(isa, *made_of)))

    return change


def last_two(*made_of):
    """Other last two instructions, the same."""

    def change(isa, items):
        items[-2:] = [helper(made(isa, *made_of))] * 2

    return change


def form(*made_of):
    """Other registers of the form."""

    def change(isa, items):
        items[0] = msgspec.structs.replace(items[0], code=made(isa, *made_of).code)

    return change


def alone(isa, items):
    """No way back."""
    del items[1:]


BROKEN = [
    # the predicate that is restored through itself
    ("aarch64", "ST1B", "op2", "[op3].data", last("ORR_PPzPP", 7, 7, 7, 7), "P7 not as at the start"),
    ("aarch64", "CMPEQ_PPzZZ_B", "op2", "NZCV", last("ORR_PPzPP", 7, 7, 7, 7), "P7 not as at the start"),
    # the second register of a pair, read back from where the first one is
    ("aarch64", "STPXi", "op2", "[op3].data", last("LDRXui", 10, 21, 0), "does not come back"),
    # a load of more than one store has written
    ("aarch64", "LDPSWi", "[op3].data", "op1", last("STRWui", 1, 21, 0), "more than one store"),
    ("riscv64", "VLE32_V@e32,m2", "[op2].data", "op1", last("VS1R_V", 8, 8), "more than one store"),
    # a register moved to itself
    ("riscv64", "VMV1R_V", "op2", "op1", form("VMV1R_V", 8, 8), "changes nothing"),
    ("riscv64", "VMV8R_V", "op2", "op1", form("VMV8R_V", 8, 8), "changes nothing"),
    # quotients divided again
    ("riscv64", "VDIV_VV@e32,m1", "op2", "op1", last("VAND_VI@e32,m1", 24, 8, 31), "operands of a division"),
    # an address that is lost, and a value
    ("aarch64", "LDRXui", "op2", "op1", alone, "does not come back"),
    ("aarch64", "ADDXrs", "op2", "op1", added("MOVZXi", 1, 5, 0), "the tag is lost"),
    # numbers that become none
    ("aarch64", "FCMGE16", "op2", "op1", added("FCMGE16", 16, 16, 17), "a number of f16 decays"),
    # indices of elements that others are stored over
    ("riscv64", "VSOXEI16_V@e8,m1", "op3", "[op2].data", last_two("VXOR_VV@e8,m1", 8, 8, 16), "come back"),
    # a store whose predicate is false all along
    ("aarch64", "ST1B", "op1", "[op3].data", added("PFALSE", 7), "P7 not as at the start"),
]  # fmt: skip


@pytest.mark.parametrize(("own", "form_id", "source", "target", "change", "expected"), BROKEN)
def test_kernels_broken_on_purpose_are_noticed(isa, own, form_id, source, target, change, expected):
    if own != isa:
        pytest.skip("of another instruction set")
    asked = question(isa, form_id, source, target)
    assert problem(isa, asked) == ""
    assert expected in problem(isa, with_items(asked, lambda items: change(isa, items)))


def with_state(asked, **changes):
    """The kernel that starts from another state."""
    state = msgspec.structs.replace(asked.job.state, **changes)
    return msgspec.structs.replace(asked, job=msgspec.structs.replace(asked.job, state=state))


@pytest.mark.parametrize("form_id", ["FMUL_ZPmI_H", "FMUL_ZPmI_S", "FMUL_ZPmI_D"])
def test_numbers_that_decay_slowly_are_noticed(isa, form_id):
    if isa != "aarch64":
        pytest.skip("of another instruction set")
    asked = question(isa, form_id, "op1", "op1")
    assert problem(isa, asked) == ""
    assert "decays" in problem(isa, with_state(asked, control=0))


def test_a_store_that_does_not_take_place_is_noticed(isa):
    if isa != "aarch64":
        pytest.skip("of another instruction set")
    asked = question(isa, "CASALX", "op3", "[op4].data")
    found = next(machine(isa).run([asked.job])).events[0]
    assert problem(isa, asked) == "" and found.mode == AS_IT_IS
    compared = with_state(asked, vector=bytes(64), fill=(bytes(64), bytes(64)))
    assert next(machine(isa).run([compared.job])).events[0].mode != AS_IT_IS
