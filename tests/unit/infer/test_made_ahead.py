"""What a copy of this process makes while this one does something else, and nobody waits for."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from cyclescope.infer import copies
from cyclescope.infer.copies import MadeAhead
from cyclescope.infer.ports import class_questions, resources
from cyclescope.infer.ports.builder import PortBuilder, PortUsage
from cyclescope.infer.ports.class_questions import ClassQuestions
from cyclescope.infer.ports.resources import hidden_units
from cyclescope.model.facts import HIGH
from tests.support.programs.processes import environment

SECONDS = 20  # until a copy has to have made what is little to do


@pytest.fixture(autouse=True)
def two_cpus(monkeypatch):
    monkeypatch.setattr(copies.os, "sched_getaffinity", lambda process: {0, 1})


def taken(made, key):
    """What the copy made of a key, as soon as it is there."""
    until = time.monotonic() + SECONDS
    while (found := made.take(key)) is None and time.monotonic() < until:
        time.sleep(0.01)
    return found


def test_a_copy_beside_threads_makes_the_last_first_and_ends(monkeypatch):
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        start = time.monotonic()
        made = MadeAhead(lambda key: (key, os.getpid(), time.monotonic() - start), range(7), 2)
        found = [taken(made, key) for key in range(7)]
    finally:
        over.set()
        thread.join()
    assert [key for key, _, _ in found] == list(range(7))
    assert {process for _, process, _ in found}.isdisjoint({os.getpid()})
    whens = [when for _, _, when in found]
    assert whens[6] < whens[4] < whens[5] < whens[2] < whens[3] < whens[0] < whens[1]
    with pytest.raises(ProcessLookupError):
        os.kill(found[0][1], 0)
    assert made.take(3) is None, "what is made is taken once"


def test_nobody_waits_for_a_copy_that_makes_nothing():
    made = MadeAhead(lambda key: key if key else time.sleep(3600), ["", "one", "two"], 1)
    assert taken(made, "two") == "two"
    assert made.take("") is None
    assert taken(made, "one") == "one"
    start = time.monotonic()
    assert made.take("") is None
    made.end()
    assert made.take("") is None
    assert time.monotonic() - start < SECONDS


def test_what_goes_wrong_in_a_copy_is_found_by_whoever_makes_it_instead(capfd):
    made = MadeAhead(lambda key: 1 // key, range(3), 1)
    assert (taken(made, 2), taken(made, 1)) == (0, 1)
    time.sleep(0.05)
    assert made.take(0) is None
    assert capfd.readouterr() == ("", "")


ENDING = """
import os, time
from cyclescope.infer.copies import MadeAhead
os.sched_getaffinity = lambda process: {0, 1}
made = MadeAhead(lambda key: time.sleep(3600 * (1 - key)) or os.getpid(), range(2), 1)
while not (copy := made.take(1)):
    time.sleep(0.01)
print(copy)
"""


def test_a_copy_ends_with_its_process_whatever_it_does():
    """Nothing it does beside threads is sure to end, and a spinning one would take a CPU forever."""
    done = subprocess.run(
        [sys.executable, "-c", ENDING], env=environment(), capture_output=True, text=True, check=True
    )
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_a_copy_that_hangs_has_a_minute(monkeypatch):
    asked = []
    monkeypatch.setattr(copies.signal, "alarm", asked.append)
    made = MadeAhead(lambda key: asked, range(3), 1)
    assert taken(made, 2) == [60]


@pytest.mark.parametrize(("cpus", "keys"), [({0}, range(7)), ({0, 1}, range(2)), ({0, 1}, ())])
def test_there_is_no_copy_without_a_cpu_or_enough_to_do(monkeypatch, cpus, keys):
    monkeypatch.setattr(copies.os, "sched_getaffinity", lambda process: cpus)
    monkeypatch.setattr(copies.os, "fork", lambda: pytest.fail("a copy was begun"))
    assert MadeAhead(str, keys, 2).take(0) is None


def test_usages_that_were_made_ahead_are_taken():
    facts = SimpleNamespace(confined={"one": {}, "two": {}})
    builder = PortBuilder(SimpleNamespace(facts=facts))
    usage = PortUsage(1.0, "1*p0")
    builder.ahead = SimpleNamespace(take={("one", 0.5): usage}.pop)
    for _ in range(2):
        assert builder.usage(SimpleNamespace(id="one"), 0.5) is usage, "it is kept"


def test_what_hidden_units_do_not_need_yet_is_made_ahead(monkeypatch):
    """The second half of what they need, and usages that other facts told: these are needed anew later."""
    begun = []
    cycles = {"one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0}
    facts = SimpleNamespace(
        confined=dict.fromkeys(cycles), front_end=SimpleNamespace(throughputs=cycles),
        table={form: SimpleNamespace(id=form) for form in cycles}, evidence=SimpleNamespace(sure={}),
    )  # fmt: skip
    asked = []
    ports = SimpleNamespace(
        facts=facts, memory=(), usage=lambda form, _: asked.append(form.id) or PortUsage(1.0, "1*p0")
    )
    monkeypatch.setattr(
        resources, "MadeAhead", lambda work, keys, _: begun.extend((key, work(key)) for key in keys)
    )
    monkeypatch.setattr(resources, "ResourceView", lambda _: SimpleNamespace(of=lambda *_: {}, capacities={}))
    monkeypatch.setattr(resources, "Hidden", lambda costs, *_: costs)
    costs = hidden_units(
        ports, [*facts.table.values()], {"one": PortUsage(2.0, "2*p0"), "three": PortUsage(2.0, "")}
    )
    assert [key for key, _ in begun] == [("one", 1.0), ("three", 3.0), ("four", 4.0)]
    assert asked[3:] == ["two", "four"], "those that nobody knows; the second is there before it is asked for"
    assert [cost.slots for cost in costs.values()] == [2.0, 1.0, 2.0, 1.0]


def test_of_forms_that_are_looked_at_again_the_second_half_is_made_ahead(monkeypatch):
    begun = []
    ahead = SimpleNamespace(end=lambda: begun.append("over"))
    monkeypatch.setattr(class_questions, "make_ahead", lambda ports, forms: begun.extend(forms) or ahead)
    forms = [SimpleNamespace(id=name) for name in ("one", "two", "three", "four", "five")]
    usage = PortUsage(1.0, "1*p0", confidence=HIGH)
    facts = SimpleNamespace(
        structure=None, front_end=SimpleNamespace(throughputs={}), confined={},
        classes=SimpleNamespace(stand_ins=()),
    )  # fmt: skip
    ports = SimpleNamespace(facts=facts, usage=lambda *_: usage)
    assert list(ClassQuestions(None, lambda: ports, forms)._again()) == []
    assert begun == ["three", "four", "five", "over"]
