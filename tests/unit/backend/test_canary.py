"""The base of the canaries: kept per machine, replaced by a faster one only."""

from __future__ import annotations

import pytest

from cyclescope.backend.base import Calibration
from cyclescope.backend.canary import CANARY_FILE, known_bases, prepare

CPU = "AuthenticAMD 1a-2-1"


class Runner:
    """Says what it found, or what it was told if that is less."""

    def __init__(self, found):
        self.found, self.told = found, []

    def calibrate(self, samples=400, nop=0.0):
        self.told.append(nop)
        return Calibration(1.0, 1.0, 1.0, 1.0, 0.0, 1e-9, min(filter(None, (nop, self.found)), default=0.0))


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "cyclescope" / CANARY_FILE


def prepared(found, machine=CPU):
    runner = Runner(found)
    prepare(runner, machine)
    return runner.told


def test_what_was_derived_once_is_the_base_from_then_on():
    assert prepared(0.125) == [0.0]
    assert prepared(0.25) == [0.125]  # beside a neighbour that takes half of the core
    assert known_bases() == {CPU: 0.125}


def test_a_faster_core_replaces_it_and_noise_does_not():
    prepared(0.25)
    prepared(0.2485)
    assert known_bases() == {CPU: 0.25}
    prepared(0.125)
    assert known_bases() == {CPU: 0.125}


def test_every_machine_has_its_own():
    prepared(0.125)
    assert prepared(0.25, "other") == [0.0]
    assert known_bases() == {CPU: 0.125, "other": 0.25}


def test_a_base_that_was_never_derived_is_not_kept(kept):
    prepared(0.0)
    assert not kept.exists()


@pytest.mark.parametrize(
    "content", [b"", b"[1]", b'{"a": "b"}', b"\xff\xfe", b'{"AuthenticAMD 1a-2-1": 1e300}']
)
def test_a_file_that_says_nothing_is_written_anew(kept, content):
    kept.parent.mkdir()
    kept.write_bytes(content)
    assert known_bases() == {}
    assert prepared(0.125) == [0.0]
    assert known_bases() == {CPU: 0.125}
    assert [path.name for path in kept.parent.iterdir()] == [CANARY_FILE]


@pytest.mark.parametrize("nop", [0.0, -1.0, 0.01, 1000.0])
def test_no_base_that_no_core_has(kept, nop):
    kept.parent.mkdir()
    kept.write_text(f'{{"{CPU}": {nop}}}')
    assert known_bases() == {}


def test_without_a_place_to_keep_it_all_goes_on(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert prepared(0.125) == [0.0]
    assert known_bases() == {}
