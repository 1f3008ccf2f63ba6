"""Comparison and bookkeeping on made-up observations."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.backend.base import OK, SIGNAL, Depth, Observation, Outcome
from cyclescope.isa.table import load_table
from cyclescope.kernel.differential import READ, WRITE, differential_of
from cyclescope.kernel.locations import FAULT, location_set, members
from cyclescope.kernel.x86_64.declared import declared
from cyclescope.kernel.x86_64.differential import specimen
from cyclescope.kernel.x86_64.locations import X86
from cyclescope.measure.verify import Finding, verify

TABLE = load_table("x86-64")
CHECK = differential_of(TABLE)
RAX, RCX, RDX = range(X86.GENERAL, X86.GENERAL + 3)
CF, AF = X86.FLAGS, X86.FLAGS + 2
XMM, YMM, X87, MXCSR = X86.XMM, X86.YMM, X86.X87, X86.MXCSR
ADD, AND, MOVAPS = "ADD_01 (R64, R64)", "AND_21 (R64, R64)", "MOVAPS_0F28 (XMM, XMM)"
FINE = Outcome(OK)
EVERYTHING = (1 << X86.END) - 1


def observation(written=(), depends=None, **more):
    rows = tuple((n, location_set(outputs)) for n, outputs in (depends or {}).items())
    return Observation(FINE, 6, 100, present=EVERYTHING, written=location_set(written), depends=rows, **more)


def findings(form, **seen):
    looks = ({form: observation(**seen)},) * 2
    return verify(Backend(*looks), CHECK, [TABLE[form]], Depth()).findings


def as_declared(form):
    """What a form that does exactly what the table says would show."""
    table = declared(specimen(form))
    outputs = list(members(table.writes & ~table.undefined))
    return observation(list(members(table.writes)), dict.fromkeys(members(table.reads), outputs))


class Backend:
    """Answers from a list of observations per look, or with what the table declares."""

    def __init__(self, *looks):
        self.looks = list(looks)
        self.depths = []

    def differ(self, kernels, depth):
        self.depths.append(depth)
        forms = [kernel.body[0].form for kernel in kernels]
        look = self.looks.pop(0) if self.looks else {}
        return [look.get(form.id) or as_declared(form) for form in forms]


# --- one form -----------------------------------------------------------------------------------


def test_what_is_declared_is_no_finding():
    assert findings(ADD, written=[RCX, CF], depends={RCX: [RCX, CF], RDX: [RCX]}) == []


def test_an_undeclared_read_names_what_showed_it():
    found = findings(ADD, depends={RAX: [RCX, CF]})
    assert found == [Finding(ADD, READ, "RAX", ("RCX", "flags.CF"))]


def test_an_undeclared_write():
    assert findings(ADD, written=[RDX]) == [Finding(ADD, WRITE, "RDX")]


def test_a_legacy_write_must_not_reach_the_upper_half():
    found = findings(MOVAPS, written=[XMM + 1, YMM + 1])
    assert found == [Finding(MOVAPS, WRITE, "ZMM1[255:128]")]


def test_a_difference_in_an_undefined_flag_is_no_read():
    assert findings(AND, depends={AF: [AF]}) == []
    assert findings(AND, depends={AF: [AF, RCX]}) == [Finding(AND, READ, "flags.AF", ("RCX",))]


def test_undefined_flags_may_change():
    assert findings(AND, written=[AF]) == []


def test_what_decides_about_a_fault_is_read():
    assert findings(ADD, depends={RAX: [FAULT]}) == [Finding(ADD, READ, "RAX", ("fault",))]


def test_undeclared_mxcsr():
    assert findings(MOVAPS, written=[MXCSR]) == [Finding(MOVAPS, WRITE, "MXCSR")]


def test_documented_exceptions_carry_their_reason():
    found = findings("EMMS", written=[X87])
    assert [f.location for f in found] == ["x87 register 0"]
    assert "tags" in found[0].reason


def test_an_exception_is_for_its_access_and_its_locations_only():
    assert not findings("EMMS", written=[RAX])[0].reason
    assert not findings("EMMS", depends={X87: [X87]})[0].reason
    assert not findings("FSIN", written=[X87 + 3])[0].reason


# --- many forms ---------------------------------------------------------------------------------


def test_a_table_that_is_right_passes():
    found = verify(Backend(), CHECK, [TABLE[ADD], TABLE[MOVAPS]], Depth())
    assert found.checked == [ADD, MOVAPS]
    assert found.findings == []
    assert found.trials == 200
    assert found.coverage.reads == found.coverage.reads_seen > 0
    assert found.coverage.writes == found.coverage.writes_seen > 0
    assert found.coverage.pairs == found.coverage.pairs_seen > 0


def test_undefined_flags_need_not_change():
    form = TABLE["IMUL (R64, R64)"]
    undefined = declared(specimen(form)).undefined
    kept = [n for n in members(as_declared(form).written) if not undefined >> n & 1]
    coverage = verify(Backend({form.id: observation(kept)}), CHECK, [form], Depth()).coverage
    assert undefined
    assert coverage.writes == coverage.writes_seen == len(kept)


def test_pairs_that_were_seen():
    seen = {ADD: observation([RCX, CF], {RCX: [RCX, CF], RDX: [RCX]})}
    coverage = verify(Backend(seen), CHECK, [TABLE[ADD]], Depth()).coverage
    assert (coverage.reads, coverage.writes, coverage.pairs) == (2, 7, 14)
    assert coverage.pairs_seen == 3


def test_registers_the_cpu_lacks_do_not_count():
    form = TABLE["VPADDD (XMM, XMM, XMM)"]
    seen = msgspec.structs.replace(as_declared(form), present=1 << XMM + 1, written=1 << XMM + 1)
    coverage = verify(Backend({form.id: seen}), CHECK, [form], Depth()).coverage
    assert (coverage.writes, coverage.writes_seen) == (1, 1)


def test_a_finding_has_to_return_in_a_second_look():
    wrong = {ADD: observation([RAX, RDX])}
    once = verify(Backend(wrong, {ADD: observation([RDX])}), CHECK, [TABLE[ADD]], Depth())
    assert [f.location for f in once.undeclared] == ["RDX"]


def test_the_second_look_is_deeper_and_has_other_values():
    backend = Backend({ADD: observation([RAX])})
    verify(backend, CHECK, [TABLE[ADD]], Depth(3, 2, 7))
    first, second = backend.depths
    assert second.bases > first.bases
    assert second.seed != first.seed


def test_documented_findings_are_no_violations():
    wrong = {"EMMS": observation([X87])}
    found = verify(Backend(wrong, wrong), CHECK, [TABLE["EMMS"]], Depth())
    assert found.undeclared == []
    assert len(found.documented) == 1


@pytest.mark.parametrize(
    ("outcome", "reason"), [(Outcome(SIGNAL, 4), "SIGILL"), (Outcome(2), "hang"), (Outcome(3, 9), "killed")]
)
def test_what_does_not_run_is_listed(outcome, reason):
    found = verify(Backend({ADD: Observation(outcome)}), CHECK, [TABLE[ADD], TABLE[AND]], Depth())
    assert found.checked == [AND]
    assert [n.form for n in found.not_run] == [ADD]
    assert found.not_run[0].reason.startswith(reason)


def test_system_instructions_are_not_even_tried():
    backend = Backend()
    found = verify(backend, CHECK, [TABLE["SYSCALL"]], Depth())
    assert not backend.depths
    assert found.not_run[0].reason.startswith("a system instruction")


def test_outputs_that_are_no_function_of_the_state_are_named():
    seen = {ADD: observation(unstable=location_set([RCX, CF]))}
    assert verify(Backend(seen), CHECK, [TABLE[ADD]], Depth()).unstable == {ADD: ("RCX", "flags.CF")}


def test_mxcsr_that_no_trial_showed():
    forms = [TABLE["ADDPS (XMM, XMM)"], TABLE["MULPS (XMM, XMM)"]]
    found = verify(Backend({forms[0].id: observation()}), CHECK, forms, Depth())
    assert found.status_unseen == [forms[0].id]
