"""Which constants of port inference count, and how what they change is counted."""

from __future__ import annotations

from collections import Counter

from benchmarks.lib.constants import mutants
from benchmarks.port_constants import ROOMS, Changed, changed, report, together

BEFORE = {"add": ("1*p01", "high"), "shift": ("1*p0", "high"), "move": ("-", "low")}


def test_usages_with_other_ports_and_other_confidence_are_counted_apart():
    after = {"add": ("1*p01", "low"), "shift": ("1*p1", "high"), "load": ("1*p2", "high")}
    found = changed(BEFORE, after)
    assert found == Changed(ports=3, confidence=3, every=4)
    assert changed(BEFORE, BEFORE) == Changed(0, 0, 3)
    assert together([found, changed(BEFORE, BEFORE)]) == Changed(3, 3, 7)


def test_all_constants_of_port_inference_are_halved_and_doubled():
    found = list(mutants(ROOMS, ()))
    rooms = Counter(mutant.place.module.rpartition("/")[0] for mutant in found)
    assert rooms.keys() == set(ROOMS)
    factors = Counter(mutant.factor for mutant in found)
    assert factors[0.5] == factors[2.0] == len({mutant.place for mutant in found})


def test_one_that_changes_too_much_or_ends_inference_fails(capsys):
    one, other, third = list(mutants(ROOMS, ()))[:3]
    few, many = Changed(4, 9, 1000), Changed(5, 0, 1000)
    assert report([(one, few)], 3)[0].passed
    assert not report([(one, few), (other, many)], 3)[0].passed
    assert not report([(one, few), (third, None)], 3)[0].passed
    assert str(other) in capsys.readouterr().out
