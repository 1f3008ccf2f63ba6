"""Regions of another program, compiled with a core whose every time is known, and its neighbour."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NATIVE = HERE.parents[2] / "src/cyclescope/native"
COMPILER = shutil.which("cc") or shutil.which("gcc")
COARSE = {"COUNTERS": 0}  # a clock of 26 ticks a step, 0.7 ticks a cycle


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("needs a C compiler")
    path = tmp_path_factory.mktemp("regions") / "region"
    inside = [NATIVE / "inside" / name for name in ("entries.c", "cycle.c", "result.c")]
    sources = [
        HERE / "fake_region.c",
        NATIVE / "sampling.c",
        NATIVE / "region.c",
        NATIVE / "clock.c",
        NATIVE / "canary.c",
        NATIVE / "clusters.c",
        *inside,
    ]
    options = ["-O2", "-w", "-DCYCLESCOPE_INSIDE", "-I", str(NATIVE), "-Wl,--wrap=clock_gettime", "-no-pie"]
    subprocess.run([COMPILER, *options, *map(str, sources), "-lm", "-o", str(path)], check=True)
    return path


@pytest.fixture
def region(program):
    """Lines before the result, the result as a line and as JSON."""

    def run(entries=200, cycles=3000.0, more=0.0, mistake="", **options):
        environment = os.environ | {"COUNTERS": "0", "STEP": "2"}
        environment |= {name: str(value) for name, value in options.items()}
        done = subprocess.run(
            [program, str(entries), str(cycles), str(more), mistake],
            check=True, capture_output=True, text=True, env=environment, timeout=60,
        )  # fmt: skip
        *before, text, found = done.stdout.splitlines()
        return before, text, json.loads(found)

    return run


@pytest.mark.parametrize("cycles", [0, 10, 3000, 1e6])
def test_a_region_takes_what_it_takes(region, cycles):
    _, text, found = region(cycles=cycles)
    assert found["verdict"] == "ok"
    assert found["median"] == pytest.approx(cycles, abs=found["error"])
    assert found["error"] < 6 + 0.01 * cycles  # the clock's step is 3 cycles
    assert found["least"] == pytest.approx(cycles, abs=2 * found["error"])
    assert found["sum"] == pytest.approx(200 * cycles, abs=200 * found["error"])
    assert re.match(r'region "one": -?\d+\.\d \+- \d+\.\d core cycles \(median of 200; least', text)


def test_the_name_is_quoted(region):
    assert region()[2]["region"] == 'region "one"'


def test_the_error_is_two_standard_errors_of_the_median(region):
    calm, spread = region()[2], region(SPREAD=500)[2]
    wanted = 2 * 1.2533 * 1.4826 * 500 / spread["used"] ** 0.5
    assert spread["error"] - calm["error"] == pytest.approx(wanted, rel=0.1)


def test_a_coarse_clock_has_a_larger_error(region):
    fine, coarse = region()[2], region(STEP=26)[2]
    assert coarse["median"] == pytest.approx(3000, abs=coarse["error"])
    assert coarse["step"] == pytest.approx(13 * fine["step"], rel=0.01)
    assert coarse["error"] > 5 * fine["error"]


@pytest.mark.parametrize("rate", [0.02, 0.35, 1.4])
def test_any_clock(region, rate):
    found = region(cycles=30000, RATE=rate, STEP=1)[2]
    assert found["median"] == pytest.approx(30000, abs=found["error"])
    assert found["ticks_per_cycle"] == pytest.approx(rate, rel=0.01)


def test_a_frequency_that_changes_is_followed(region):
    found = region(entries=1000, WANDER=0.1)[2]
    assert found["median"] == pytest.approx(3000, abs=found["error"])
    assert found["disturbed"] < 500
    assert found["error"] < 150


def test_entries_that_take_longer_are_in_the_sum(region):
    found = region(more=1000.0)[2]
    assert found["median"] == pytest.approx(3000, abs=found["error"])
    assert found["sum"] == pytest.approx(200 * 3000 + 20 * 1000, rel=0.01)


def test_few_entries_tell_no_error(region):
    _, text, found = region(entries=3)
    assert (found["verdict"], found["error"]) == ("few", None)
    assert found["median"] == pytest.approx(3000, rel=0.02)
    assert "error not known" in text
    assert region(entries=4)[2]["verdict"] == "ok"


def test_never_entered(region):
    _, text, found = region(entries=0)
    assert (found["verdict"], found["median"]) == ("never", None)
    assert text == 'region "one": never entered'


def test_more_entries_than_are_kept(region):
    found = region(entries=9000)[2]
    assert (found["entries"], found["used"]) == (9000, 9000 - found["disturbed"])
    assert found["median"] == pytest.approx(3000, abs=found["error"])


def test_a_neighbour_is_told(region):
    """It slows what fills the front end, not chains, from when the core is known on."""
    _, text, found = region(SLOWER=1.6, FROM=0.004)
    assert found["verdict"] == "disturbed"
    assert found["disturbed"] > 150
    assert f"{found['disturbed']} of 200 entries disturbed" in text


def test_a_core_that_was_never_quiet_is_said_to_be(region):
    _, text, found = region(SLOWER=3, UNEVEN=0.9)
    assert found["verdict"] == "disturbed"
    assert "no quiet moment was found to compare with" in text
    assert "no quiet moment" not in region(more=1000.0, SLOWER=1.6, FROM=0.004)[1]


def test_a_neighbour_now_and_then_is_left_out(region):
    _, text, found = region(entries=1000, SLOWER=1.6, FROM=0.7, UNTIL=1, PERIOD=0.01)
    assert found["verdict"] == "ok"
    assert 100 < found["disturbed"] < 450
    assert found["used"] == 1000 - found["disturbed"]
    assert text.endswith("entries disturbed, left out")


def test_a_neighbour_that_slows_the_chain_widens_the_error(region):
    calm = region()[2]
    found = region(entries=400, SLOWER=1.6, CHAINED=0.1, UNEVEN=0.9, FROM=0.004)[2]
    assert found["verdict"] == "disturbed"
    assert found["error"] > calm["error"]
    assert found["median"] == pytest.approx(3000, abs=found["error"])


def test_switches_of_the_thread_are_counted(region):
    _, text, found = region(SWITCHES=1)
    assert found["interrupted"] == 20
    assert found["disturbed"] >= 20
    assert "(20 switched away)" in text


def test_an_emulator_is_named(region):
    _, text, found = region(EMULATED=1)
    assert found["verdict"] == "emulated"
    assert "no cycles of a core" in text


COMMA = """LC_NUMERIC
decimal_point ","
thousands_sep ""
grouping -1
END LC_NUMERIC
"""


def test_numbers_have_a_point_in_every_locale(region, tmp_path):
    """JSON knows no comma; a program may have chosen one."""
    if shutil.which("localedef") is None:
        pytest.skip("needs localedef")
    (tmp_path / "source").write_text(COMMA)
    command = ["localedef", "-c", "-i", tmp_path / "source", "-f", "ANSI_X3.4-1968", tmp_path / "comma"]
    subprocess.run(command, check=False, capture_output=True)  # it warns of all that is not defined
    _, text, found = region(LOCPATH=tmp_path, LC_ALL="", LC_NUMERIC="comma")
    assert found["median"] == pytest.approx(3000, abs=found["error"])
    assert "," not in text.split("core cycles")[0]


def test_what_others_call_an_event_is_quoted(region):
    assert region(UNCOUNTED='no\tsuch "event"\\')[2]["uncounted"] == 'no\tsuch "event"\\'


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ("begin", "begun again before it ended"),
        ("end", "ended without having begun"),
        ("nest", "another region of its thread was begun in it; regions are not nested"),
    ],
)
def test_wrong_use_is_one_line_in_place_of_a_number(region, mistake, said):
    before, text, found = region(mistake=mistake)
    assert len(before) == 1
    assert text == f'error: region region "one": {said}'
    assert (found["verdict"], found["median"]) == ("misused", None)
    assert found["problem"] == f'region region "one": {said}'
