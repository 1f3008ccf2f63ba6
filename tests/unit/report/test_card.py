"""Cards and JSON of made-up timings."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

from cyclescope.infer.timing.results import FormTiming, Latency, Throughput
from cyclescope.measure.record import Record
from cyclescope.measure.rows import Evidence
from cyclescope.model.facts import HIGH
from cyclescope.report.card import card, evidence_text, timings_json

IMUL = "IMUL (R64, R64)"


def latency(source="op1", target="op1", low=3.0, high=3.0, kind="exact", **more):
    return Latency(source, target, low, high, kind, 0.01, **({"confidence": HIGH} | more))


def shown(table, *latencies, status="ok", throughput=None, **more):
    best = throughput or Throughput(1.0, 0.02, "exact", {"plain x8": 1.0}, confidence=HIGH)
    timing = FormTiming(IMUL, {"llvm": "IMUL64rr"}, status, best, latencies, **more)
    return card(table[IMUL], timing)


def test_head_and_throughput(table):
    lines = shown(table).splitlines()
    assert lines[0].startswith("IMUL (R64, R64)   BASE   (IMUL64rr")
    assert lines[1].split() == ["throughput", "1.00", "+-0.02", "high"]


def test_slots(table):
    for slots, told in ((1, "1 front-end slot,"), (2, "2 front-end slots,")):
        assert f"({told} 1.00 cycles" in shown(table, ports="1*p0", slots=slots, ports_throughput=1.0)
    for found, told in (((1, 1), "probably 1 front-end slot)"), ((1, 2), "1 to 2 front-end slots)")):
        assert f"({told}" in shown(table, ports="1*p0", slot_range=found)


def test_flags_of_equal_latency_share_a_line(table):
    text = shown(table, latency(target="flags.CF"), latency(target="flags.OF"), latency())
    assert "-> flags.CF OF" in text
    assert text.count("->") == 2


def test_other_consumers_are_shown_without_noise(table):
    text = shown(table, latency(low=11.0, high=11.0, bypass={"integer": 10.67, "fp": 12.02}))
    assert "to integer 11.00; to fp 12.02" in text
    bound = latency(low=0.0, high=11.4, kind="upper_bound", bypass={"fp": 11.1})
    assert "to fp 11.10" in shown(table, bound)


def test_flags_of_other_latency_do_not(table):
    text = shown(table, latency(target="flags.CF"), latency(target="flags.OF", low=4.0, high=4.0))
    assert text.count("->") == 2


def test_values_of_every_kind(table):
    text = shown(
        table,
        latency("a"),
        latency("b", low=2.0, high=5.0, kind="interval"),
        latency("c", low=0.0, high=7.0, kind="upper_bound"),
        latency("d", values={"fast": 8.0, "slow": 20.0}),
        Latency("e", "op1", None, None, None, None, reason="there is no chain"),
    )
    rows = [line.split() for line in text.splitlines() if "->" in line]
    assert rows[0][:4] == ["a", "->", "op1", "3.00"]
    assert rows[1][3:6] == ["2.00", "to", "5.00"]
    assert rows[2][3:5] == ["<=", "7.00"]
    assert rows[3][3:7] == ["fast", "8.00", "slow", "20.00"]
    assert " ".join(rows[4][3:]) == "- there is no chain"


def test_what_a_value_rests_on(table):
    text = shown(table, latency(convention="store forwarding", bounds=(1.0, 5.0)))
    assert "3.00*" in text
    assert "rests on the conventions: store forwarding" in text


def test_what_was_not_executed_or_not_measured(table):
    assert "not executed by this CPU: SIGILL" in shown(table, status="SIGILL")
    assert "not executed by this CPU: SIGILL: this CPU lacks" in shown(
        table, status="SIGILL: this CPU lacks FMA", lacks=("FMA",)
    )
    assert "cannot be run alone: SIGILL: tile" in shown(table, status="SIGILL: tile registers need state")
    assert f'not measured yet: cyclescope measure "{IMUL}"' in shown(table, status="not run")


def test_no_throughput_has_its_reason(table):
    text = shown(table, throughput=Throughput(None, None, None, reason="it faults"))
    assert "throughput  -      it faults" in text


def test_remarks(table):
    text = shown(table, latency(bypass={"fp": 4.0}, confidence="low"), idiom="zero idiom", notes=("a note",))
    assert "to fp 4.00; low confidence" in text
    assert "it is a zero idiom" in text
    assert "note: a note" in text


def test_json_of_a_timing():
    timing = FormTiming(IMUL, {}, "ok", Throughput(1.0, 0.0, "exact"), (latency(),))
    store = SimpleNamespace(
        machine="m", isa="aarch64", emulated=False, stopped=lambda: False, unreadable=[], note=lambda name: ""
    )
    data = json.loads(timings_json(store, [timing]))
    assert (data["schema_version"], data["machine"], data["isa"]) == (1, "m", "aarch64")
    assert not {"note", "notes"} & data.keys()
    assert data["forms"][0]["latencies"][0]["min"] == 3.0


def test_evidence_shows_code_rounds_and_the_way_back():
    record = Record(IMUL, "latency", "op1", "op1", "link", 4.0, 0.1, "ok", 1, ("r>r", "r>r"), id=17)
    evidence = Evidence(record, b"\x90", b"", "imul rcx, rcx", b"", 0, 1, 12, 3, (4.0, 4.01), {})
    text = evidence_text([evidence], Path("my store"))
    assert "[17] latency op1 -> op1, link: 4.000 cycles (ok)" in text
    assert "minus links 2 x r>r" in text
    assert "rounds 4.000 4.010; 12 samples accepted, 3 rejected" in text
    assert "        imul rcx, rcx" in text
    assert "again: cyclescope bench --rerun 17 --store 'my store'" in text
