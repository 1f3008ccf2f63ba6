"""What neighbours disturbed while a run ended: the same command measures it again, and nothing else."""

from __future__ import annotations

from contextlib import closing

import msgspec
import pytest

from cyclescope.backend.base import UNCLEAN
from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.infer.again import disturbed
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.ports.in_order import QUICK, SLOW, order_forms
from cyclescope.isa.registry import instruction_set, isa_names
from cyclescope.isa.table import load_table
from cyclescope.kernel.variant import SECOND_LOOKS
from cyclescope.measure.plan import LATENCY, LINK, THROUGHPUT
from cyclescope.measure.ports import PORTS
from cyclescope.measure.record import NOISY, STABLE
from cyclescope.measure.sampling import DISAGREE, PLACED
from cyclescope.measure.store import Store
from cyclescope.remarks.ports import NoPorts
from cyclescope.report.summary import Tally, summary_text
from cyclescope.session.machines import load_model
from tests.support.files.damage import change

MACHINE = "core"
FORMS = ("IMUL (R64, R64)", "ADD_01 (R64, R64)", "MOV (R64, M64)")
FILLING = ("NOP", "MOV", "MOVAPS", "VMOVAPS")  # what stands between others in port experiments
AGAIN = " disturbed by other programs: the same command measures them again"
FIRST = frozenset((THROUGHPUT, LATENCY))


class Beside(SimulatedBackend):
    """A simulated core whose neighbours work while kernels with some forms run; `timed` are all kernels."""

    def __init__(self, among=frozenset()):
        super().__init__(load_model("skylake"))
        self.among = among
        self.timed = []
        self._batches = []

    def submit(self, kernels, effort):
        self.timed += kernels
        self._batches.append(kernels)
        super().submit(kernels, effort)

    def collect(self):
        rows = zip(self._batches.pop(0), super().collect(), strict=True)
        return [[self._beside(kernel, sample) for sample in row] for kernel, row in rows]

    def _beside(self, kernel, sample):
        if self.among.isdisjoint(instruction.form.id for instruction in kernel.body):
            return sample
        return msgspec.structs.replace(sample, status=UNCLEAN, cycles=1.5 * sample.cycles)


class Machine:
    """Runs on one store."""

    def __init__(self, table, path):
        self.table, self.path = table, path
        self.forms = tuple(table[name] for name in FORMS)

    def run(self, among=frozenset(), quantities=FIRST, budget=0.0):
        """The kernels that a run timed."""
        backend = Beside(among)
        with closing(backend), closing(Store(self.path, MACHINE)) as store:
            campaign = Campaign(self.table, backend, store)
            request = Request(self.forms, quantities, budget)
            finished = campaign.run(request, {})
            again = len(campaign.disturbed(request).keys)
            self.summary = summary_text(
                store, Tally(campaign.results(self.forms)), finished, None, disturbed=again
            )
        return backend.timed

    def verdicts(self, form):
        with closing(Store(self.path, readonly=True)) as store:
            return {r.verdict for r in store.records([form])}


@pytest.fixture
def machine(table, tmp_path):
    return Machine(table, tmp_path / "store.sqlite")


def test_what_was_disturbed_is_measured_again_and_nothing_else(machine):
    machine.run(frozenset(FORMS[:1]))
    assert machine.verdicts(FORMS[0]) == {NOISY}
    assert AGAIN in machine.summary
    timed = machine.run()
    assert {FORMS[0]} <= {i.form.id for i in timed[0].body}
    assert all(FORMS[0] in {i.form.id for i in kernel.body} for kernel in timed)
    assert machine.verdicts(FORMS[0]) == {STABLE}
    assert AGAIN not in machine.summary
    assert machine.run() == []


def test_each_run_tries_once_and_keeps_what_is_no_worse(machine):
    machine.run(frozenset(FORMS[:1]))
    first = machine.run(frozenset(FORMS[:1]))
    assert len({kernel.code for kernel in first}) == len({k.code for k in machine.run(frozenset(FORMS[:1]))})
    change(machine.path, ("UPDATE measurement SET verdict = 'unstable', error = ?, cycles = 7.5", DISAGREE))
    machine.run(frozenset(FORMS[:1]))
    with closing(Store(machine.path, readonly=True)) as store:
        found = [
            r.cycles for r in store.records([FORMS[0]]) if not r.look.again and r.kind not in SECOND_LOOKS
        ]
        assert found == [7.5] * len(found)
        assert {r.verdict for r in store.records([FORMS[1]])} == {STABLE}


def test_what_depends_on_the_place_is_not_measured_again(machine):
    machine.run()
    change(machine.path, ("UPDATE measurement SET verdict = 'unstable', error = ?", PLACED))
    machine.run()  # throughputs that are not sure get their second look, once
    assert machine.run() == []


def test_a_run_that_was_stopped_goes_on_first(machine):
    machine.run(frozenset(FORMS[:1]))
    change(machine.path, ("UPDATE session SET conditions = json_remove(conditions, '$.finished')",))
    assert machine.run() == []


def test_links_are_measured_again(machine):
    machine.run()
    change(machine.path, (f"UPDATE measurement SET verdict = 'noisy', error = '{DISAGREE}' "
                          f"WHERE quantity = '{LINK}' AND form = 'r>r'",))  # fmt: skip
    assert machine.run()
    with closing(Store(machine.path, readonly=True)) as store:
        assert not disturbed(store).keys
    assert machine.run() == []


def test_ports_come_when_the_reference_is_read(machine):
    machine.run(frozenset(f.id for f in machine.table if f.mnemonic in FILLING), FIRST | {PORTS})
    assert f"note: no port usage: {NoPorts.NO_FILLER.value}" in machine.summary
    assert AGAIN in machine.summary
    machine.run(quantities=FIRST | {PORTS})
    assert "port usage of 3 forms" in machine.summary
    assert AGAIN not in machine.summary


def test_every_table_has_the_forms_that_tell_the_order_of_issue():
    for isa in isa_names():
        table, roles = load_table(isa), instruction_set(isa).roles
        assert [form.id for form in order_forms(table)] == [roles.slow, roles.beside]


@pytest.mark.slow
def test_the_order_of_issue_is_asked_for(machine):
    machine.run(quantities=FIRST | {PORTS})
    with closing(Store(machine.path, readonly=True)) as store:
        orders = list(store.records_of(("order",)))
    fast = [f"x{count}" for count in QUICK]
    assert [r.variant for r in orders] == [f"x{SLOW}", *fast, *fast]
    assert all(r.verdict == STABLE for r in orders)
