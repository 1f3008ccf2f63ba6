"""Experiments of a store once more: what is equal, what differs, and what nothing can be said of."""

from __future__ import annotations

import json
import math
from contextlib import closing

import msgspec
import pytest

from cyclescope.backend.peers.peculiar import Peculiar, peculiar
from cyclescope.errors import UsageError
from cyclescope.isa.table import load_table
from cyclescope.measure.record import Record
from cyclescope.measure.sampling import AGREE, Measurement
from cyclescope.measure.store import Store
from cyclescope.report.comparison.replay import replay_json, replay_text
from cyclescope.session import replay as replay_module
from cyclescope.session.elsewhere.backends import is_backend, open_model
from cyclescope.session.replay import (
    Again,
    Agreeing,
    Replay,
    again,
    farthest,
    verified,
)
from tests.support.files.stores import HERE, experiment, filled, measurement


def record(cycles=10.0, spread=0.0, number=1, **more):
    parts = {"quantity": "latency", "source": "op1", "target": "op1", "variant": "self"} | more
    return Record(
        form="ADD", cycles=cycles, spread=spread, verdict="ok", count=1, links=(), id=number, **parts
    )


def answer(cycles, spread=0.0, verdict="ok", error=""):
    return Measurement(cycles, spread, verdict, 12, 0, (cycles,), 0, error)


@pytest.mark.parametrize(
    ("cycles", "spread", "outcome"),
    [(10.0, 0.0, Agreeing.EQUAL), (10 * (1 + 0.9 * AGREE), 0.0, Agreeing.EQUAL),
     (10 * (1 + 1.9 * AGREE), 0.0, Agreeing.DIFFERENT), (10 * (1 - 1.9 * AGREE), 0.0, Agreeing.DIFFERENT),
     (10 * (1 + 1.9 * AGREE), 0.3, Agreeing.EQUAL)],
)  # fmt: skip
def test_within_what_rounds_agree_and_the_spreads(cycles, spread, outcome):
    assert again(record(), answer(cycles, spread)).outcome is outcome
    assert again(record(spread=spread), answer(cycles)).outcome is outcome


def test_what_is_not_stable_says_nothing():
    found = again(record(), answer(99.0, verdict="noisy", error="disturbed"))
    assert (found.outcome, found.reason) == (Agreeing.UNREAD, "disturbed")


def replay(equal, different, unread=0):
    outcomes = [Agreeing.EQUAL] * equal + [Agreeing.DIFFERENT] * different + [Agreeing.UNREAD] * unread
    return Replay(tuple(Again(record(number=n), 10.0 + n, 0.0, one) for n, one in enumerate(outcomes)))


def test_a_store_agrees_as_far_as_two_runs_of_one_machine():
    assert replay(92, 8).agrees
    assert not replay(85, 15).agrees
    assert replay(20, 1).agrees, "two runs of one machine differ by as much"
    assert not replay(0, 0, 50).agrees, "nothing was compared"
    assert not replay(1, 1).agrees


class Same:
    """Measures what was measured before."""

    def __init__(self, backend):
        self.backend = backend

    def measure(self, experiments):
        yield [(one, answer(1.0)) for one in experiments]


def test_a_sample_tells_a_share_of_one_in_ten_within_a_twentieth(tmp_path, monkeypatch):
    monkeypatch.setattr(replay_module, "Sampler", Same)
    many = ((experiment(variant=f"variant {n}"), measurement()) for n in range(500))
    with closing(Store(filled(tmp_path / "a.sqlite", *many), HERE)) as store:
        count = len(verified(store, None).answers)
    error = math.sqrt(0.1 * 0.9 / count)
    assert 2 * error < 0.05 < 3 * error, "and no more kernels than that takes"


def test_the_farthest_come_first():
    some = Replay(
        tuple(Again(record(number=n), c, 0.0, Agreeing.DIFFERENT) for n, c in enumerate((11.0, 40.0, 1.0)))
    )
    assert [one.cycles for one in farthest(some)] == [1.0, 40.0, 11.0]


def test_open_ones_come_before_what_is_told():
    some = [
        Again(record(number=n), cycles, 0.0, Agreeing.DIFFERENT, reason)
        for n, (cycles, reason) in enumerate(((90.0, Peculiar.MEMORY), (11.0, Peculiar.OPEN)))
    ]
    found = Replay(tuple(some))
    assert [one.cycles for one in farthest(found)] == [11.0, 90.0]
    assert found.reasons() == {Peculiar.MEMORY: 1, Peculiar.OPEN: 1}
    text = replay_text(found, "a.sqlite", "there", 2)
    assert "1 it hands a value on through memory" in text
    assert json.loads(replay_json(found, "a.sqlite", "there"))["reasons"]["open"] == 1


@pytest.mark.parametrize(
    ("form", "ends", "variant", "links", "reason"),
    [
        ("ADD_LOCK (M64, R64)", ("op1.data", "op1.data"), "self", (), Peculiar.LOCKED),
        ("MOVSB_REPE", ("", ""), "count 1", (), Peculiar.REPEATED),
        ("JNZ (Rel8)", ("", ""), "taken", (), Peculiar.BRANCH),
        ("CVTSI2SD (XMM, R64)", ("op1.old", "op1"), "kept", (), Peculiar.OLD),
        ("MOV (R64, M64)", ("op2.data", "op1"), "link", ("a",), Peculiar.MEMORY),
        ("MOV (M64, R64)", ("op2", "op1.data"), "link", ("a",), Peculiar.MEMORY),
        ("DIV (R64)", ("", ""), "slow x4", (), Peculiar.BY_VALUE),
        ("MOV (R64, M64)", ("op2.address", "op1"), "link", ("a",), Peculiar.LINKED),
        ("IMUL (R64, R64)", ("op1", "op1"), "self", (), Peculiar.OPEN),
        ("IMUL (R64, R64)", ("", ""), "plain x8", (), Peculiar.OPEN),
    ],
)
def test_what_models_may_have_no_words_for(form, ends, variant, links, reason):
    assert peculiar(load_table("x86-64")[form], ends, variant, links) is reason


def test_text_and_json():
    found = msgspec.structs.replace(replay(3, 2, 1), left_out={"because": 7})
    text = replay_text(found, "a.sqlite", "there", 1)
    assert "60.0%" in text
    assert "7 left out: because" in text
    assert text.count("latency op1 -> op1, self") == 1
    assert "what there is about" not in text, "nobody told"
    data = json.loads(replay_json(found, "a.sqlite", "there"))
    assert data["counts"]["latency"] == {"equal": 3, "different": 2, "unread": 1}
    assert len(data["experiments"]) == 6
    assert data["agrees"] is False


def test_names_of_backends():
    assert is_backend("mca:znver4")
    assert is_backend("simulated:znver4")
    assert not is_backend("znver4")
    with pytest.raises(UsageError, match="names nothing") as caught:
        open_model("mca:", "x86-64")
    assert caught.value.remedy == "write mca:CPU"
    with pytest.raises(UsageError, match="aarch64"):
        open_model("simulated:neoverse-v2", "x86-64")
