"""Which way of scheduling is the likeliest, and how little has to be predicted for it."""

import msgspec
import pytest

from cyclescope.errors import BackendUnavailable
from cyclescope.infer.scheduler import Predictions, Scheduling, scheduling_of
from cyclescope.model.facts import SCHEDULER, CoreAnswer, Fact
from cyclescope.model.machine import BINDINGS, EVENLY, GROUPED, IDEAL, STATIC
from cyclescope.session.machines import load_model
from tests.unit.infer.schedule.found import binding_of, predicted, read, with_wakeup


@pytest.fixture(scope="module")
def skylake():
    return load_model("skylake")


def made_up(monkeypatch, **cycles):
    """Four kernels that each policy predicts alike, in cycles."""
    usual = dict.fromkeys(BINDINGS, 2.0) | {name.replace("_", " "): value for name, value in cycles.items()}
    names = ("one", "two", "three", "four")
    predict(
        monkeypatch, names, lambda way: dict.fromkeys(names, usual[way.binding] + (way.wakeup is not None))
    )
    return [Fact(SCHEDULER, name, CoreAnswer.VALUE, 1.0, 0.01) for name in names]


def predict(monkeypatch, names, made):
    """Kernels of some names of which ways predict what is `made`; what was asked for, in turn."""
    asked = []

    def add(self, way, subjects):
        new = [name for name in subjects if name not in self.of(way)]
        asked.extend((way, name) for name in new)
        self.made.setdefault(way, {}).update({name: made(way)[name] for name in new})

    def kernels(self, machine, table, cases=None):
        self.made, self.kernels = {}, dict.fromkeys(names)

    monkeypatch.setattr(Predictions, "__init__", kernels)
    monkeypatch.setattr(Predictions, "at_once", 1)
    monkeypatch.setattr(Predictions, "add", add)
    return asked


@pytest.mark.parametrize(("ideal", "told"), [(1.1, ""), (1.11, ""), (1.14, STATIC), (1.25, STATIC)])
def test_a_tenth_is_how_far_predictions_may_be_off_and_odds_of_twenty_are_plain(
    monkeypatch, skylake, table, ideal, told
):
    """Four kernels cost 2 nats a tenth off, and 3.9 at 14 %; half or twice of either constant is seen."""
    assert binding_of(skylake, made_up(monkeypatch, ideal=ideal, static=1.0), table) == told


@pytest.mark.parametrize(("error", "told"), [(0.04, STATIC), (0.09, STATIC), (0.11, ""), (0.22, "")])
def test_readings_that_are_less_sure_than_predictions_tell_nothing(monkeypatch, skylake, table, error, told):
    """A neighbour makes each look longer by itself: nobody knows by what else."""
    facts = made_up(monkeypatch, ideal=9.0, static=1.0)
    facts = [msgspec.structs.replace(fact, error=error) for fact in facts]
    assert binding_of(skylake, facts, table) == told


@pytest.mark.parametrize(("others", "told"), [(1.05, STATIC), (1.16, STATIC), (1.2, ""), (1.26, "")])
def test_a_single_reading_counts_eight_nats_at_most(monkeypatch, skylake, table, others, told):
    """A policy that alone fits one of four has to come near to the others: 4 nats of them are, 6 are not."""
    alike = dict.fromkeys(("one", "two", "three"), 1.0)
    made = {STATIC: dict.fromkeys(alike, others) | {"far": 9.0}}
    predict(monkeypatch, (*alike, "far"), lambda way: made.get(way.binding, alike | {"far": 1.0}))
    facts = [
        Fact(SCHEDULER, name, CoreAnswer.VALUE, value, 0.01) for name, value in (alike | {"far": 9.0}).items()
    ]
    assert binding_of(skylake, facts, table) == told


def test_no_kernel_is_predicted_twice_and_few_where_a_way_is_seen_to_be_wrong(monkeypatch, skylake, table):
    """Those that tell most are the first that other ways than the first and the right one are asked for."""
    names = [str(number) for number in range(20)]
    usual = {name: 1.0 + 8 * (name in ("7", "19")) for name in names}
    asked = predict(monkeypatch, names, lambda way: usual | {"7": 1.0} if way.binding == STATIC else usual)
    facts = [Fact(SCHEDULER, name, CoreAnswer.VALUE, 1.0, 0.01) for name in names]
    assert binding_of(skylake, facts, table) == STATIC
    assert len(asked) == len(set(asked))
    wrong = [name for way, name in asked if way == Scheduling(EVENLY)]
    assert wrong == ["7"], "as much speaks against all of the right one"


def test_what_several_threads_predict_is_what_one_does(skylake, table, monkeypatch):
    way = Scheduling(IDEAL, with_wakeup(skylake))
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(1))
    alone = predicted(skylake, table, way)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(8))
    assert predicted(skylake, table, way) == alone


@pytest.mark.parametrize("cpus", [1, 2])
def test_without_a_simulated_core_it_is_said_that_there_is_none(skylake, table, monkeypatch, cpus):
    def none(*_):
        raise BackendUnavailable("the simulated core is missing")

    facts = read(skylake, table, GROUPED)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(cpus))
    monkeypatch.setattr("cyclescope.simulate.simulator.Simulator.run", none)
    with pytest.raises(BackendUnavailable):
        scheduling_of(skylake, facts, table)
