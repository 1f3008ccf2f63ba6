"""What is thought out while a backend is at work changes nothing but when."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from types import SimpleNamespace

import msgspec
import pytest

from cyclescope.backend.base import Effort, WaitingBackend
from cyclescope.backend.native import NativeBackend
from cyclescope.errors import BackendUnavailable
from cyclescope.infer import readout
from cyclescope.infer.ahead.looks import FurtherLooks
from cyclescope.infer.ahead.thinking import ThinkingBeside, ThoughtAhead
from cyclescope.infer.ahead.timings import TimingsAhead
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.readout import Readout, timing_of
from cyclescope.infer.timing.links import stored_links
from cyclescope.kernel.cycle import NOP
from cyclescope.measure.plan import LATENCY, THROUGHPUT, Planner
from cyclescope.measure.sampling import Sampler
from cyclescope.measure.store import Store
from tests.support.code.forms import chosen
from tests.support.made.comparison import MACHINE
from tests.support.made.simulated import LOUD, SimulatedBackend
from tests.support.made.truth import Truth

BOTH = frozenset((THROUGHPUT, LATENCY))


class SlowBackend(SimulatedBackend):
    """One that is asked some times whether it has answered until it has."""

    asked = 0

    def is_answered(self):
        self.asked += 1
        return self.asked % 3 == 0


@pytest.fixture(scope="module")
def forms(table):
    return tuple(chosen(table)[::5])


def run(table, forms, backend, path):
    """Everything that the store of a run has."""
    with closing(Store(path, MACHINE)) as store:
        assert Campaign(table, backend, store).run(Request(forms, BOTH), {})
        return sorted((r.key, r.cycles, r.verdict) for r in store.records())


@pytest.fixture
def thought(monkeypatch):
    """How many forms were thought about ahead."""
    found = []
    think = ThoughtAhead.think

    def noted(self):
        some = think(self)
        found.append(some)
        return some

    monkeypatch.setattr(Sampler.__init__, "__defaults__", (None, 120, 2))
    monkeypatch.setattr(ThoughtAhead, "think", noted)
    return found


def test_a_run_that_thinks_ahead_measures_the_same(table, forms, tmp_path, thought):
    alone = run(table, forms, SimulatedBackend(Truth(1), LOUD), tmp_path / "alone.sqlite")
    assert not thought, "nobody waits for a backend that does not say whether it has answered"
    ahead = run(table, forms, SlowBackend(Truth(1), LOUD), tmp_path / "ahead.sqlite")
    assert sum(thought) > 5
    assert ahead == alone


@pytest.mark.parametrize("batches", [2, 6, 10])
def test_a_run_that_is_stopped_while_it_thinks_ahead_goes_on(table, forms, tmp_path, thought, batches):
    alone = run(table, forms, SimulatedBackend(Truth(1)), tmp_path / "alone.sqlite")
    with pytest.raises(BackendUnavailable):
        run(table, forms, SlowBackend(Truth(1), dies_after=120 * batches), tmp_path / "ahead.sqlite")
    assert run(table, forms, SlowBackend(Truth(1)), tmp_path / "ahead.sqlite") == alone
    assert sum(thought)


def test_one_thinks_until_the_answer_is_there():
    done = []

    def think():
        done.append(1)
        return True

    backend = SlowBackend(Truth(1))
    backend.submit([], Effort())
    backend.asked = 0
    assert isinstance(backend, WaitingBackend)
    assert ThinkingBeside(backend, think).collect() == []
    assert len(done) == 2
    backend.submit([], Effort())
    assert ThinkingBeside(backend, lambda: False).collect() == []


def test_the_runner_says_whether_it_has_answered():
    assert issubclass(NativeBackend, WaitingBackend)


def test_forms_are_thought_about_once_all_of_their_answers_are_there(table, forms, tmp_path):
    seen = []

    def work(some):
        seen.extend(form.id for form in some)
        return [form.id.lower() for form in some]

    one, other, none = forms[:3]
    with closing(Store(tmp_path / "store.sqlite", MACHINE)) as store:
        planner = Campaign(table, SimulatedBackend(Truth(1)), store).planner()
        asked = {form: list(planner.throughput(form)) for form in (one, other)}
    ahead = ThoughtAhead(work)
    every = list(ahead.asking([*asked.items(), (none, [])]))
    assert every == [*asked[one], *asked[other]]
    ahead.hear([(e, None) for e in every[:-1]])
    assert ahead.think()
    assert set(seen) == {one.id, none.id}
    assert not ahead.think()
    assert [made for _, made in ahead.each((one, other, none), 2)] == [
        f.id.lower() for f in (one, other, none)
    ]
    assert len(seen) == 3, "nothing is made twice"


def test_sixteen_forms_are_thought_about_between_two_looks_at_the_backend():
    """Some hundredths of a second: it has other batches for so long."""
    parts = []
    ahead = ThoughtAhead(lambda some: [parts.append(len(some))] * len(some))
    assert not list(ahead.asking((SimpleNamespace(id=str(number)), []) for number in range(40)))
    while ahead.think():
        pass
    assert parts[:3] == [16, 16, 8]


@pytest.mark.parametrize("nop", [True, False])
def test_what_rests_on_a_link_that_was_measured_anew_is_thought_out_anew(table, forms, tmp_path, nop):
    path = tmp_path / "store.sqlite"
    run(table, forms, SimulatedBackend(Truth(1)), path)
    with closing(Store(path, MACHINE)) as store:
        planner = Campaign(table, SimulatedBackend(Truth(1)), store).planner()
        links = stored_links(store)
        used = Counter(key for record in store.records_of((LATENCY,)) for key in record.links)
        changed = NOP if nop else used.most_common(1)[0][0]
        other = links | {changed: msgspec.structs.replace(links[changed], value=1.5 * links[changed].value)}
        known = [form for form in forms if store.legality()[form.id] == "ok"]

        def asked(before, after):
            looks = FurtherLooks(store, planner, before)
            list(looks.first.asking((form, ()) for form in known))
            while looks.first.think():
                pass
            list(looks.questions(known, after, ()))
            return looks._open

        assert asked(links, other) == asked(other, other) != asked(links, links)


def test_first_looks_are_forgotten_once_the_last_are_known(table, forms, measured, monkeypatch):
    """Nobody looks for garbage as long as a run measures: what refers to itself would stay."""
    with closing(Store(measured, readonly=True)) as store:
        planner = Planner(table, lambda form: store.legality()[form.id] == "ok")
        known, links = [form for form in forms if store.legality()[form.id] == "ok"], stored_links(store)
        looks = FurtherLooks(store, planner, links)
        list(looks.first.asking((form, ()) for form in known))
        list(looks.questions(known, links, ()))
        assert looks._open
        uncut = []
        monkeypatch.setattr(Planner, "unbroken", lambda self, form, *pair: uncut.append(form))
        looks.last(())
        assert not looks._open and not looks.first.made and not looks.second.made
        assert not uncut, "chains that nobody asks for are not made"


# --- timings of forms of which nothing more is asked -----------------------------------------------


@pytest.fixture(scope="module")
def measured(table, forms, tmp_path_factory):
    """A store in which throughputs and latencies were measured to the end."""
    path = tmp_path_factory.mktemp("measured") / "store.sqlite"
    run(table, forms, SimulatedBackend(Truth(1)), path)
    return path


def timings(table, store, forms, made=None):
    return list(Readout(store, table, None, forms, None, None, made).timings())


def made_ahead(table, store, forms):
    planner = Planner(table, lambda form: store.legality()[form.id] == "ok")
    ahead = TimingsAhead(store, planner, stored_links(store))
    ahead.begin([form for form in forms if store.legality()[form.id] == "ok"], {})
    while ahead.think():
        pass
    return ahead


def test_timings_that_were_made_ahead_are_those_that_are_made_at_the_end(table, forms, measured, monkeypatch):
    with closing(Store(measured, readonly=True)) as store:
        made = made_ahead(table, store, forms).made(stored_links(store))
        legal = [form for form in forms if store.legality()[form.id] == "ok"]
        assert made.keys() == {form.id for form in legal}
        at_the_end = timings(table, store, forms)
        asked = []
        monkeypatch.setattr(
            readout, "timing_of", lambda form, *rest: asked.append(form) or timing_of(form, *rest)
        )
        assert timings(table, store, forms, made=made) == at_the_end
        assert asked == [form for form in forms if form not in legal], "nothing is made twice"


def test_timings_of_a_run_that_was_stopped_are_not_made_ahead(table, forms, measured, tmp_path):
    path = tmp_path / "store.sqlite"
    path.write_bytes(measured.read_bytes())
    with closing(Store(path, MACHINE)) as store:
        made = made_ahead(table, store, forms).made(stored_links(store))
        store.begin_session("now", {"asked": {"what": [LATENCY], "forms": 1}})
        assert store.stopped()
        wrong = dict.fromkeys(made)
        assert timings(table, store, forms, made=wrong) == timings(table, store, forms)


def test_timings_made_ahead_hold_as_long_as_their_links_do(table, forms, measured):
    with closing(Store(measured, readonly=True)) as store:
        ahead, links = made_ahead(table, store, forms), stored_links(store)
        used = Counter(key for record in store.records_of((LATENCY,)) for key in record.links)
        key = used.most_common(1)[0][0]
        other = links | {key: msgspec.structs.replace(links[key], value=1.5 * links[key].value)}
        with_it = {r.form for r in store.records_of((LATENCY,)) if key in r.links}
        assert ahead.made(links).keys() - ahead.made(other).keys() == with_it
        assert not ahead.made(links | {NOP: other[key]})


def test_damaged_rows_leave_a_form_to_the_end(table, forms, measured, tmp_path):
    path = tmp_path / "store.sqlite"
    path.write_bytes(measured.read_bytes())
    with closing(sqlite3.connect(path)) as database, database:
        (form,) = database.execute("SELECT form FROM measurement WHERE quantity = 'latency'").fetchone()
        database.execute("UPDATE measurement SET verdict = 'odd' WHERE form = ?", (form,))
    with closing(Store(path, readonly=True)) as store:
        made = made_ahead(table, store, forms).made(stored_links(store))
        assert len(made) > 10
        assert form not in made
