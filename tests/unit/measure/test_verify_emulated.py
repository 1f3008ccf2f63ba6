"""The tables of AArch64 and RISC-V against QEMU; a table made wrong on purpose has to be noticed."""

from __future__ import annotations

import os
from contextlib import closing
from unittest.mock import patch

import msgspec
import pytest

from benchmarks.tables.emulated import emulator
from cyclescope.backend.base import Depth
from cyclescope.backend.native import NativeBackend
from cyclescope.backend.remote import link_to
from cyclescope.errors import BackendUnavailable
from cyclescope.isa.table import load_table
from cyclescope.kernel.differential import differential_of
from cyclescope.measure.verify import verify

ISAS = ("aarch64", "riscv64")
CHECKS = {isa: differential_of(load_table(isa)) for isa in ISAS}
DEPTH = Depth(4, 3)
RIGHT = {
    "aarch64": [
        "ADDSXrs", "ADCSXr", "CSELXr", "LDRXui", "LDPXpost", "STRQui", "CASX", "FADDDrr", "FMOVXDHighr",
        "SQADDv1i64", "Bcc", "RET", "BL", "ADD_ZPmZ_B", "GLD1D_IMM", "LDFF1B", "PTRUES_B", "MRS", "RDFFR_P",
    ],
    "riscv64": [
        "ADD", "C_LW", "SD", "JALR", "BEQ", "AMOADD_D", "FADD_D", "FCVT_W_D", "CSRRS", "VSETVLI",
        "VADD_VV@e32,m1,tu,mu,masked", "VSADD_VV@e16,m1", "VLE32FF_V@e32,m1", "VLUXEI16_V@e8,m1",
    ],
}  # fmt: skip


@pytest.fixture(scope="module", params=ISAS)
def machine(request, tmp_path_factory):
    """A check and a backend of an instruction set."""
    with patch.dict(os.environ, XDG_CACHE_HOME=str(tmp_path_factory.mktemp("cache"))):
        try:
            command = emulator(request.param)
        except BackendUnavailable as error:
            pytest.skip(f"needs qemu-user and a cross compiler: {error}")
    with closing(NativeBackend(link=link_to(f"exec:{command}"))) as backend:
        yield CHECKS[request.param], backend


@pytest.fixture
def of(machine):
    """Asks for the machine of one instruction set; others are another parameter's."""
    check, backend = machine

    def undeclared(form):
        found = verify(backend, check, [form], DEPTH)
        assert found.checked == [form.id], found.not_run
        return {(f.access, f.location) for f in found.undeclared}

    return check.isa, undeclared


def test_the_tables_are_right(machine):
    check, backend = machine
    forms = [load_table(check.isa)[name] for name in RIGHT[check.isa]]
    found = verify(backend, check, forms, DEPTH)
    assert found.checked == [form.id for form in forms], found.not_run
    assert found.undeclared == []
    assert found.coverage.reads_seen > 0.8 * found.coverage.reads


def without(form, position, access):
    """A form with one operand's access taken away."""
    operands = list(form.operands)
    operands[position] = msgspec.structs.replace(operands[position], **{access: False})
    return msgspec.structs.replace(form, operands=tuple(operands))


MISSING = {
    "aarch64": [
        ("ADDSXrs", 1, "read", {("read", "X9")}),
        ("FMOVXDHighr", 0, "read", {("read", "V1")}),
        ("LDRXui", 3, "read", {("read", "memory")}),
        ("LDRXui", 0, "write", {("write", "X9")}),  # a register of those for sources
        ("FADDDrr", 0, "write", {("write", "V16"), ("write", "Z16[VL:128]")}),
        ("ADD_ZPmZ_B", 1, "read", {("read", "P6")}),
        ("LDRXpost", 0, "write", {("write", "X20")}),
    ],
    "riscv64": [
        ("ADD", 1, "read", {("read", "x18")}),
        ("SD", 3, "write", {("write", "memory")}),
        ("FADD_D", 2, "read", {("read", "f19")}),
        ("VADD_VV@e32,m1,masked", 3, "read", {("read", "v0")}),
        ("AMOADD_D", 3, "read", {("read", "memory")}),
    ],
}


def test_missing_accesses_are_found(of):
    isa, undeclared = of
    for form_id, position, access, expected in MISSING[isa]:
        form = without(load_table(isa)[form_id], position, access)
        assert expected <= undeclared(form), (form_id, access)


def test_missing_flags_are_found(of):
    isa, undeclared = of
    if isa == "aarch64":
        bare = msgspec.structs.replace(load_table(isa)["ADCSXr"], flags_read=0, flags_written=0)
        flags = {("write", f"flags.{name}") for name in "NCV"}
        found = undeclared(bare) - {("write", "flags.Z")}  # a sum of 0 is rare
        assert found == {("read", "flags.C")} | flags
        bare = msgspec.structs.replace(load_table(isa)["ANDSXri"], flags_written=0)
        assert ("write", "flags.Z") in undeclared(bare)  # one bit of a register is 0 half of the time
    else:
        bare = msgspec.structs.replace(load_table(isa)["FADD_D"], mnemonic="ADD")
        assert undeclared(bare) == {("read", "frm"), ("read", "fflags"), ("write", "fflags")}
