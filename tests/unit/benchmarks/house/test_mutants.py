"""Constants that decide results: few, and each with a test that notices when it is halved or doubled."""

from __future__ import annotations

import re

from benchmarks.house.mutants import is_killed, known_killers
from benchmarks.lib.constants import JUDGED, LEFT_OUT, ROOT, counted, mutants, numbers

FEWER_THAN = 188  # numbers of inference, its ports apart, and of analysis: what can be derived needs none


def test_few_numbers_decide_results():
    found = counted(JUDGED)
    assert len(found) > 10, "all rooms were found"
    assert found.total() < FEWER_THAN


def test_every_number_has_a_test_that_notices():
    """As the table says, which `benchmarks.house.mutants` has written: a new number is run by it."""
    known = known_killers()
    killers = {str(one): known.get(str(one), "") for one in mutants(JUDGED, LEFT_OUT)}
    assert [mutant for mutant, killer in killers.items() if not is_killed(killer)] == []


def test_tests_that_the_table_names_exist():
    killers = {name for name in known_killers().values() if is_killed(name)}
    named = {(file, test.partition("[")[0]) for file, _, test in (name.partition("::") for name in killers)}
    assert len(named) > 100
    lost = [
        f"{file}::{test}"
        for file, test in sorted(named)
        if not (ROOT / file).is_file()
        or not re.search(rf"def {test.rpartition('::')[2]}\b", (ROOT / file).read_text())
    ]
    assert lost == []


def test_numbers_of_a_module():
    found = numbers("a.py", "A, B = 2, 0\nC: float = 0.5  # what\nsmall = 3\n\ndef f(x=4): pass\n")
    assert [(place.name, place.nth, place.value) for place in found] == [("A,B", 0, 2), ("C", 0, 0.5)]
