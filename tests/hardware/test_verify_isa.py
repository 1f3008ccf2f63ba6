"""The table against this CPU; a table made wrong on purpose has to be noticed."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.backend.base import OK, Depth
from cyclescope.backend.native import NativeBackend
from cyclescope.errors import BackendUnavailable
from cyclescope.isa.form import FLAGS
from cyclescope.isa.table import load_table
from cyclescope.kernel.differential import differential_of
from cyclescope.kernel.locations import FAULT
from cyclescope.kernel.x86_64.differential import specimen
from cyclescope.kernel.x86_64.locations import X86
from cyclescope.measure.verify import verify

pytestmark = pytest.mark.hardware

TABLE = load_table("x86-64")
CHECK = differential_of(TABLE)
ADD = "ADD_01 (R64, R64)"


@pytest.fixture(scope="module")
def backend():
    try:
        opened = NativeBackend()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    yield opened
    opened.close()


def without(form_id, position, access):
    """A form with one operand's access taken away."""
    form = TABLE[form_id]
    operands = list(form.operands)
    operands[position] = msgspec.structs.replace(operands[position], **{access: False})
    return msgspec.structs.replace(form, operands=tuple(operands))


def undeclared(backend, form):
    return {(f.access, f.location) for f in verify(backend, CHECK, [form], Depth()).undeclared}


RIGHT = [
    ADD,
    "MOV_88 (R8l, R8l)",
    "CMPXCHG (M64, R64)",
    "SHL (R64, CL)",
    "DIV (R64)",
    "XLAT",
    "MOVSB",
    "STOSQ_REPE",
    "PUSH (R16)",
    "CALL_NEAR (Rel32)",
    "RET_NEAR",
    "JMP (R64)",
    "LEAVE",
    "BSF (R64, R64)",
    "LDMXCSR (M32)",
    "FADDP (STi, ST0)",
    "FLDCW (M16)",
    "FPTAN",
    "EMMS",
    "CVTSS2SD (XMM, XMM)",
    "MASKMOVDQU (XMM, XMM)",
]


@pytest.mark.parametrize("form_id", RIGHT)
def test_the_table_is_right(backend, form_id):
    found = verify(backend, CHECK, [TABLE[form_id]], Depth())
    assert found.checked == [form_id]
    assert found.undeclared == []


@pytest.mark.parametrize(
    ("form_id", "position", "access", "finding"),
    [
        (ADD, 1, "read", ("read", "RDX")),
        (ADD, 0, "write", ("write", "RCX")),
        ("MOV_88 (R8l, R8l)", 0, "read", ("read", "RCX")),
        ("CMOVZ (R64, R64)", 0, "read", ("read", "RCX")),
        ("CMPXCHG (R64, R64)", 0, "write", ("write", "RCX")),
        ("MOV (M64, R64)", 0, "write", ("write", "memory")),
        ("LODSQ", 1, "read", ("read", "memory")),
        ("ADDSD (XMM, XMM)", 1, "read", ("read", "XMM2")),
        ("PUSH (R16)", 0, "read", ("read", "RCX")),
        ("FADDP (STi, ST0)", 0, "read", ("read", "x87 register 1")),
    ],
)
def test_a_missing_access_is_found(backend, form_id, position, access, finding):
    assert undeclared(backend, without(form_id, position, access)) == {finding}


def test_missing_flags_are_found(backend):
    add_with_carry = msgspec.structs.replace(TABLE["ADC_11 (R64, R64)"], flags_read=0, flags_written=0)
    changed = {("write", f"flags.{name}") for name in FLAGS if name != "DF"}
    assert undeclared(backend, add_with_carry) == {("read", "flags.CF")} | changed


def test_missing_mxcsr_is_found(backend):
    form = TABLE["DIVPS (XMM, XMM)"]
    bare = msgspec.structs.replace(form, attributes=form.attributes - {"mxcsr"})
    assert undeclared(backend, bare) == {("read", "MXCSR"), ("write", "MXCSR")}


def test_a_legacy_form_called_vex_still_shows_no_upper_write(backend):
    """Declared but unseen is no violation: what is observed is a lower bound."""
    form = TABLE["PADDD (XMM, XMM)"]
    assert undeclared(backend, msgspec.structs.replace(form, attributes=frozenset(("vex",)))) == set()


def test_a_clock_is_no_function_of_the_state(backend):
    found = verify(backend, CHECK, [TABLE["RDTSC"]], Depth())
    assert "RAX" in found.unstable["RDTSC"]
    assert found.undeclared == []


def test_what_a_form_does_to_the_state_does_not_reach_the_next(backend):
    forms = [TABLE[name] for name in ("STD", "FNINIT", "LDMXCSR (M32)", ADD)]
    assert verify(backend, CHECK, forms, Depth()).undeclared == []


def test_equal_seeds_give_equal_observations(backend):
    kernels = [specimen(TABLE[ADD]).kernel]
    assert backend.differ(kernels, Depth(seed=3)) == backend.differ(kernels, Depth(seed=3))


def test_an_illegal_instruction_is_a_record(backend):
    (seen,) = backend.differ([specimen(TABLE["UD2"]).kernel], Depth())
    assert seen.outcome.describe() == "SIGILL"


def raw(code):
    """Made-up code in the state of an ADD."""
    return msgspec.structs.replace(specimen(TABLE[ADD]).kernel, code=code)


def test_a_hang_is_a_record_and_the_next_form_runs(backend):
    endless, add = backend.differ([raw(b"\xeb\xfe"), specimen(TABLE[ADD]).kernel], Depth())
    assert endless.outcome.describe() == "hang"
    assert add.outcome.status == OK


def test_a_hang_in_some_states_ends_in_time(backend):
    carry_loop = raw(b"\x72\xfe")  # jc to itself
    (seen,) = backend.differ([carry_loop], Depth())
    assert seen.outcome.status == OK
    assert (X86.FLAGS, 1 << FAULT) in [(n, outputs & 1 << FAULT) for n, outputs in seen.depends]


def test_code_that_does_not_fit_is_a_record(backend):
    (seen,) = backend.differ([raw(b"\x90" * 60)], Depth())
    assert seen.outcome.describe() == "too long"
