"""Events that probes name: which are counted, why others are not, and that they say what the answers say."""

from __future__ import annotations

import json
import random
import re
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import jsonschema
import msgspec
import pytest

from benchmarks.drawn.features import draw_front_end
from cyclescope.backend.native import NativeBackend
from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.host.counters import GENERAL, OF_CACHES
from cyclescope.host.files import files_of
from cyclescope.infer import api
from cyclescope.isa.table import load_table
from cyclescope.measure.plan import Experiment
from cyclescope.measure.record import STABLE
from cyclescope.measure.sampling import Measurement
from cyclescope.model.facts import CoreAnswer, Fact
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import Assembler, written
from cyclescope.probe.run import Asked, ProbeReading, ask
from cyclescope.report.pages.core_card import core_card
from cyclescope.report.probes import asked_json, asked_text, head
from cyclescope.session.counting import beside
from cyclescope.session.counting.beside import count_named
from tests.support.made.probed import drawn
from tests.support.made.truths import BRANCHES, FIRSTS, fused
from tests.support.programs.fake_runner import fake_runner

SEED = random.SystemRandom().randrange(1 << 30)
FUSION = PROBES["fusion"]
KERNEL = Assembler(load_table("x86-64")).kernel(written("x86-64", "NOP_90"), 0)
SCHEMA = json.loads((Path(__file__).parents[4] / "docs/reference/probes.schema.json").read_text())
PARTS = re.compile(r"(alone|together|apart) (\d+\.\d\d) to")
NAMES = ("branch-misses", "uops", "L1-dcache-load-misses", "dTLB-load-misses")
# A runner that opens events up to the first one of which this is so.
REFUSES = """
old = setup
def setup(payload):
    _, count, _ = struct.unpack_from("<i2H", payload)
    events = [struct.unpack_from("<IIQ", payload, 8 + 16 * n) for n in range(count)]
    opened = next((n for n, (kind, _, config) in enumerate(events) if {when}), count)
    return old(payload, opened=opened, counter=2 if opened < count else 0)
"""


@pytest.fixture
def counting(tmp_path, monkeypatch):
    """What is counted of names on a machine with counters, whose runner refuses some events."""
    (tmp_path / "sys/bus/event_source/devices/cpu").mkdir(parents=True)
    monkeypatch.setenv("CYCLESCOPE_RUNNER", str(tmp_path / "runner"))
    for module in (api, beside):
        monkeypatch.setattr(module, "reader", lambda backend: files_of(tmp_path))

    def count(when, names=NAMES):
        fake_runner(tmp_path / "runner", REFUSES.replace("{when}", when))
        with closing(NativeBackend(0)) as backend:
            found = count_named(backend, names)
            return {name: bool(why) for name, why in found.items()}, backend.capabilities().counters[1:]

    return count


def test_all_events_are_counted(counting):
    assert counting("False") == (dict.fromkeys(NAMES, False), NAMES)


def test_what_a_core_does_not_have_leaves_the_others(counting):
    found, counted = counting("kind == 3 and config & 255 == 0")
    assert [name for name in found if found[name]] == ["L1-dcache-load-misses"]
    assert counted == ("branch-misses", "uops", "dTLB-load-misses")


def test_the_first_are_counted_where_it_cannot_be_all(counting):
    found, counted = counting("n == 3")
    assert counted == NAMES[:2]
    assert [name for name in found if found[name]] == list(NAMES[2:])


def test_a_group_that_does_not_fit_at_all(counting):
    """The kernel opens each event, and none of them counts."""
    assert counting("count > 3 and n == 0")[1] == NAMES[:2]


def test_nothing_where_cycles_are_not_counted(counting):
    assert counting("n == 0") == (dict.fromkeys(NAMES, True), ())


def test_an_unknown_name(counting):
    assert counting("False", ("moves-eliminated", "uops")) == (
        {"moves-eliminated": True, "uops": False},
        ("uops",),
    )


def test_no_counters_are_told_once_for_all_names(tmp_path, monkeypatch):
    monkeypatch.setenv("CYCLESCOPE_RUNNER", str(fake_runner(tmp_path / "runner")))
    monkeypatch.setattr(beside, "availability", lambda read: "no counters: a reason")
    with closing(NativeBackend(0)) as backend:
        text = head("m", False, count_named(backend, NAMES))
    assert text.splitlines() == ["m", f"{', '.join(NAMES)}: n/a, no counters: a reason"]


def test_probes_name_events_that_every_kernel_names():
    known = {name for name, _, _ in (*GENERAL, *OF_CACHES)} | {"uops"}
    named = {event for probe in PROBES.values() for event in probe.events}
    assert named <= known
    assert len(named) <= 6, "so many a core of today counts at once"


class Retiring(SimulatedBackend):
    """A core whose counter counts what retires: of a pair that its front end fuses one."""

    def __init__(self, machine, front_end):
        super().__init__(machine, front_end=front_end)
        self.pairs = front_end.branches

    def capabilities(self):
        return msgspec.structs.replace(super().capabilities(), counters=("cycles", "uops"))

    def collect(self):
        kernels, _ = self._submitted[0]
        return [
            [msgspec.structs.replace(sample, counters=(self.retired(kernel.body),)) for sample in rounds]
            for kernel, rounds in zip(kernels, super().collect(), strict=True)
        ]

    def retired(self, body):
        names = [instruction.form.mnemonic for instruction in body]
        return float(len(names) - sum(pair in self.pairs for pair in pairwise(names)))


def test_counts_say_what_a_core_fuses():
    """Answers are of times; beside each stands what was counted of the pair, and of both apart."""
    front_end = draw_front_end(SEED, FIRSTS, BRANCHES)
    (asked,) = ask([FUSION], Retiring(drawn([FUSION], SEED), front_end), load_table("x86-64"), quick=True)
    lines = asked_text(asked, "x86-64").splitlines()
    told = {
        fact.subject: next(one for one in lines if fact.subject in one)
        for fact in asked.facts
        if fact.is_resolved
    }
    pairs = {subject: line for subject, line in told.items() if " + J" in subject}
    assert len(pairs) > 10, f"seed {SEED}"
    for subject, line in pairs.items():
        least = {name: float(count) for name, count in re.findall(PARTS, line)}
        second = 0 if fused(front_end, subject) is CoreAnswer.FUSED else 1
        assert least["together"] - least["alone"] == second, f"seed {SEED}: {line}"
        assert least["apart"] - least["alone"] == 2, "the other instruction, and a NOP in between"
    data = json.loads(asked_json("m", "x86-64", [asked], {"branch-misses": "a reason", "uops": ""}))
    assert data["uncounted"] == {"branch-misses": "a reason"}
    jsonschema.validate(data, SCHEMA)
    assert {tuple(one["events"]) for one in data["probes"][0]["readings"]} == {("uops",)}


def test_counts_of_a_sweep_go_from_the_least_to_the_most():
    """Of every part of it, each per instance."""
    counts = {("walk", 1): 0.0, ("walk", 2): 8.0, ("lines", 1): 4.0}
    rows = tuple(
        ProbeReading(
            x,
            Experiment("pages", "probe", "s", part, f"x{x}", KERNEL, count=8),
            counted(value),
        )
        for (part, x), value in counts.items()
    )
    fact = Fact("pages", "s", CoreAnswer.VALUE, 64.0, 1.0, "pages", "high")
    asked = Asked(PROBES["pages"], (fact,), rows, counted=("uops", "dTLB-load-misses"))
    told = "dTLB-load-misses: walk 0.00 to 1.00, lines 0.50"
    assert asked_text(asked, "x86-64").endswith(told)
    page = core_card("m", "x86-64", [asked], {"uops": "no <reason>", "dTLB-load-misses": ""})
    assert f"<td>{told}</td></tr>" in page
    assert "uops: n/a, no &lt;reason&gt;" in page


def counted(value):
    return Measurement(1.0, 0.0, STABLE, 1, 0, (1.0,), counters=(7.0, value))


def test_without_counters_there_is_no_column():
    backend = SimulatedBackend(drawn([FUSION], SEED))
    (asked,) = ask([FUSION], backend, load_table("x86-64"), quick=True)
    assert "uops" not in asked_text(asked, "x86-64")
    assert "events counted" not in core_card("m", "x86-64", [asked])
