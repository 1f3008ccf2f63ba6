"""`bench` where rounds do not agree: said in words, in JSON and by the exit code."""

from __future__ import annotations

import json

import pytest

from cyclescope.measure.record import NOISY, STABLE, UNSTABLE
from cyclescope.measure.sampling import DISAGREE, DISTURBED, PLACED, TWO_RATES, Measurement

FAILURE = 1


@pytest.fixture
def reading(cyclescope, machine, monkeypatch):
    """Run `bench` of code that is read as told."""

    def run(verdict, reason, *options, spread=0.25):
        found = Measurement(8.0, spread, verdict, 200, 50, (8.0, 8.25), error=reason, disturbed=30)
        monkeypatch.setattr("cyclescope.cli.commands.bench.time_kernel", lambda *_: found)
        return cyclescope("bench", "--hex", "90", *options)

    return run


@pytest.mark.parametrize(
    ("verdict", "reason", "remedy"),
    [
        (UNSTABLE, PLACED, "loop that it is meant for"),
        (UNSTABLE, DISAGREE, "--rounds"),
        (NOISY, DISTURBED, "--cpu"),
    ],
)
def test_what_is_not_ok_fails_with_its_range_and_a_remedy(reading, verdict, reason, remedy):
    done = reading(verdict, reason)
    assert done.code == FAILURE
    assert f"8.0000 to 8.2500 core cycles ({verdict})" in done.out
    assert done.error.startswith(f"the reading is {verdict}: {reason}: ")
    assert remedy in done.error


def test_two_rates_are_told_in_words(reading):
    done = reading(UNSTABLE, TWO_RATES)
    assert done.code == FAILURE
    assert "takes 8.00 in some runs and 8.25 in others, in core cycles (unstable)" in done.out
    assert done.error.startswith(f"the reading is unstable: {TWO_RATES}: ")


def test_json_has_the_verdict_and_the_reason(reading):
    done = reading(UNSTABLE, PLACED, "--json")
    assert done.code == FAILURE
    data = json.loads(done.out)
    assert (data["verdict"], data["reason"], data["spread"]) == (UNSTABLE, PLACED, 0.25)
    assert (data["accepted"], data["rejected"], data["disturbed"]) == (200, 50, 30)


def test_what_is_ok_has_its_error(reading):
    done = reading(STABLE, "", "--unroll", "4", spread=0.002)
    assert done.code == 0
    assert "2.0000 core cycles +-0.0005 (ok, 4 copies per body)" in done.out
    assert "2 rounds, 2.0000 to 2.0625; 200 samples accepted, 50 rejected, 30 of them disturbed" in done.out
    assert json.loads(reading(STABLE, "", "--json").out)["reason"] is None
