"""Why a form cannot be run alone: an extension that the CPU lacks, or what user space has to be granted."""

from __future__ import annotations

import pytest

from cyclescope.infer.readout import explained
from cyclescope.infer.timing.results import FormTiming
from cyclescope.isa.table import load_table
from cyclescope.isa.x86_64.unmeasurable import unmeasurable

AMX = ["AMX_TILE", "AMX_INT8"]


@pytest.mark.parametrize(
    ("form_id", "announced", "status"),
    [
        (
            "TILEZERO (TMM)",
            AMX,
            "SIGILL: tile and bound registers need state that user space has to be granted",
        ),
        ("TDPBSSD (TMM, TMM, TMM)", AMX, "SIGILL: tile and bound registers"),
        ("TDPBSSD (TMM, TMM, TMM)", AMX[:1], "SIGILL: this CPU lacks AMX_INT8"),
        ("TDPBSSD (TMM, TMM, TMM)", None, "SIGILL"),
        ("IMUL (R64, R64)", ["BASE", "I186", "I386"], "SIGILL"),
    ],
)
def test_why_a_form_was_refused(form_id, announced, status):
    form = load_table("x86-64")[form_id]
    timing = FormTiming(form_id, {}, "SIGILL", None, ())
    told = explained(form, timing, announced, unmeasurable(form))
    assert told.lacks == tuple(name for name in AMX if name not in (announced or AMX) and "lacks" in status)
    found = told.status
    assert found.startswith(status) and (found == "SIGILL") == (status == "SIGILL")


@pytest.mark.parametrize(
    ("form_id", "told"),
    [
        ("LOOP_O16 (Rel8)", "a branch with 16-bit operand size leaves the address space"),
        ("CALL_NEAR (M80)", "far control flow"),
        ("IMUL (R64, M64)", ""),
    ],
)
@pytest.mark.parametrize("announced", [None, ["BASE"]])
def test_why_a_form_faults_is_said_beside_the_signal(form_id, told, announced):
    form = load_table("x86-64")[form_id]
    timing = FormTiming(form_id, {}, "SIGSEGV at 0x3", None, ())
    found = explained(form, timing, announced, unmeasurable(form))
    assert found.status == ("SIGSEGV at 0x3" + (f": {told}" if told else ""))
    assert found.lacks == ()
