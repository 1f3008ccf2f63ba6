"""Fresh mixes that other programs disturbed: they judge nothing, and the same command draws others."""

from __future__ import annotations

from contextlib import closing

import pytest

from benchmarks.drawn.round_trip import measure, sample
from cyclescope.backend.simulated import QUIET
from cyclescope.infer.ports.approach import read_approach
from cyclescope.infer.refute.calibration import DRAWN_FIRST, stored_verdicts, trials_of
from cyclescope.infer.refute.planner import MIXES, mix_key
from cyclescope.infer.refute.refutation import Refutation
from cyclescope.measure.plan import Planner
from cyclescope.measure.ports import PortPlanner
from cyclescope.measure.record import FAILED, NOISY, STABLE, UNSTABLE, Record
from cyclescope.measure.sampling import DISAGREE, DISTURBED, PLACED
from cyclescope.measure.store import Store
from cyclescope.model.calibration import ClaimCalibration, TriedMixes
from cyclescope.report.words import calibration_line, calibration_lines
from cyclescope.simulate.draw import draw_machine
from tests.support.files.damage import change

FORMS = ("ADD", "IMUL")
SLOWER = f"UPDATE measurement SET verdict = '{UNSTABLE}', error = '{DISAGREE}', cycles = 2 * cycles"


class Kept:
    """A store of one mix, whose orders were read so."""

    def __init__(self, *orders):
        keys = (mix_key(FORMS, DRAWN_FIRST, order) for order in range(len(orders)))
        self._records = [
            Record(*key, cycles, 0.0, verdict, 1, (), error=error)
            for key, (cycles, verdict, error) in zip(keys, orders, strict=True)
        ]

    def records_of(self, quantities):
        return self._records


@pytest.mark.parametrize(
    ("verdict", "reason", "judges"),
    [
        (STABLE, "", True), (UNSTABLE, PLACED, True), (UNSTABLE, DISAGREE, False), (NOISY, DISTURBED, False),
        (FAILED, "SIGSEGV", True),
    ],
)  # fmt: skip
def test_no_order_of_a_mix_judges_beside_a_disturbed_one(verdict, reason, judges):
    found = trials_of(Kept((3.0, STABLE, ""), (2.0, verdict, reason)))
    assert [trial.cycles for trial in found] == ([2.0 if verdict != FAILED else 3.0] if judges else [])


@pytest.mark.parametrize(("disturbed", "lacks"), [(29, False), (31, True), (59, True), (15, False)])
def test_what_is_printed_says_where_many_were_disturbed(disturbed, lacks):
    known = ClaimCalibration({"high": TriedMixes(9, 9, 0.01)}, disturbed=disturbed, measured=1000)
    said = f"{disturbed} of 1000 fresh mixes were disturbed by other programs and judge nothing"
    assert any(line.startswith(said) for line in calibration_lines(known)) is lacks
    assert calibration_line(known).startswith(said) is lacks
    assert known.lacks_mixes is lacks


def test_one_line_has_the_levels_and_nothing_else():
    levels = {"high": TriedMixes(1000, 996, 0.01), "low": TriedMixes(10, 5, 0.2)}
    known = ClaimCalibration(levels, measured=1010, dealt=TriedMixes(5, 5, 0.1))
    told = "fresh mixes of instructions take what their ports predict within 10%: high 99.6%, low 50.0%"
    assert calibration_line(known) == told
    assert calibration_line(None) == calibration_line(ClaimCalibration()) == ""


def test_it_says_so_where_no_mix_is_left():
    lines = list(calibration_lines(ClaimCalibration(disturbed=9, measured=9)))
    assert len(lines) == 1
    assert lines[0].endswith("less is sure: the same measure command draws others")
    assert list(calibration_lines(ClaimCalibration())) == []


def test_disturbed_mixes_refute_nothing_and_others_are_drawn_in_their_place(table, tmp_path):
    machine, path = draw_machine(2, list(table)), tmp_path / "store.sqlite"
    forms = sample(table, machine, 30)

    def run():
        with closing(measure(machine, table, forms, QUIET, path)) as store:
            return stored_verdicts(store), {r.id for r in store.records_of((MIXES,))}

    before, mixes = run()
    assert before.calibration.measured == len(mixes) / 2
    assert before.calibration.disturbed == 0
    change(path, (f"{SLOWER} WHERE quantity = '{MIXES}'",))
    with closing(Store(path, machine.name)) as store:
        plans = PortPlanner(Planner(table, lambda form: True))
        refutation = Refutation(read_approach(store, table).ports, store, plans, None)
        assert refutation.is_done
        found = refutation.conclude()
        assert not found.refuted
        assert not found.doubted
        assert found.calibration.disturbed == found.calibration.measured == before.calibration.measured
        assert not refutation.is_done
    after, others = run()
    assert after.calibration.disturbed == 0
    assert after.calibration.mixes["high"].held == after.calibration.mixes["high"].number
    assert len(others) > len(mixes) / 2
    assert run() == (after, others), "it is done"
