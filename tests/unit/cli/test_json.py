"""`--json` prints one object on standard output, and nothing else there."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import jsonschema
import msgspec
import pytest

from cyclescope.infer.timing.results import FormTiming, Latency, Throughput
from cyclescope.measure.sessions import PROBE
from cyclescope.measure.store import Store
from tests.support.made.machine import FORMS

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/reference/results.schema.json").read_text())


def results(text):
    data = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    return data


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    ("kind", "name"), [(FormTiming, "form"), (Throughput, "throughput"), (Latency, "latency")]
)
def test_the_schema_has_every_field(kind, name):
    fields = {field.name for field in msgspec.structs.fields(kind)}
    assert set(SCHEMA["$defs"][name]["properties"]) == fields - {
        "cause",
        "lacks",
        "ports_unfinished",
    }  # sentences tell them


def test_show(cyclescope, store):
    done = cyclescope("show", *FORMS, "VADDPH (XMM, XMM, XMM)", "--json", "--store", store)
    assert (done.code, done.err) == (0, "")
    data = results(done.out)
    forms = {form["id"]: form for form in data["forms"]}
    assert data["machine"] == "MadeByHand 6-1-0 unknown"
    assert set(forms) == {*FORMS, "VADDPH (XMM, XMM, XMM)"}
    imul = forms["IMUL (R64, R64)"]
    assert imul["names"]["llvm"] == "IMUL64rr"
    assert imul["throughput"]["kind"] == "exact"
    assert {(x["source"], x["target"]) for x in imul["latencies"]} >= {("op1", "op1"), ("op2", "flags.CF")}
    assert forms["VADDPH (XMM, XMM, XMM)"]["status"] == "SIGILL: this CPU lacks AVX512_FP16"


def test_show_without_a_pattern_has_every_form(cyclescope, store, table, monkeypatch):
    some = [form for form in table if form.mnemonic in ("IMUL", "VADDPH")]
    monkeypatch.setattr("cyclescope.isa.table.Table.__iter__", lambda table: iter(some))
    data = results(cyclescope("show", "--json", "--store", store).out)
    assert [form["id"] for form in data["forms"]] == [form.id for form in some]
    assert {form["status"].partition(":")[0] for form in data["forms"]} == {"ok", "SIGILL", "not run"}


def test_measure(cyclescope, machine, tmp_path):
    done = cyclescope("measure", "IMUL (R64, R64)", "--json", "--store", tmp_path / "s.sqlite")
    assert [form["status"] for form in results(done.out)["forms"]] == ["ok"]
    assert done.err


def test_measure_what_does_not_execute(cyclescope, machine, tmp_path):
    done = cyclescope("measure", "isa:XOP", "--json", "--store", tmp_path / "s.sqlite")
    assert done.code == 3
    assert all(form["status"].startswith("SIGILL") for form in results(done.out)["forms"])
    assert "XOP" in done.error


def test_what_is_wrong_is_not_in_the_schema(cyclescope, store):
    data = json.loads(cyclescope("show", FORMS[0], "--json", "--store", store).out)
    for spoil in (
        lambda form: form.pop("throughput"),
        lambda form: form["latencies"][0].update(kind="guess"),
        lambda form: form["latencies"][0].update(max=None),
        lambda form: form.update(status="SIGILL"),
    ):
        spoiled = json.loads(json.dumps(data))
        spoil(spoiled["forms"][0])
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(spoiled, SCHEMA)


@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        (["forms", "imul"], {"isa", "source", "forms"}),
        (["bench", "--hex", "480fafc3"], {"machine", "code", "bytes", "cycles", "spread", "verdict"}),
        (["host"], {"cpu", "machine", "features", "clock", "counters", "topology", "noise", "notes"}),
    ],
)
def test_other_commands(cyclescope, machine, monkeypatch, arguments, fields):
    monkeypatch.setattr("cyclescope.measure.survey._PAUSE", 0)
    done = cyclescope(*arguments, "--json")
    assert (done.code, done.err) == (0, "")
    data = json.loads(done.out)
    assert data["schema_version"] == 1
    assert set(data) >= fields


def test_store_info(cyclescope, store):
    data = json.loads(cyclescope("store", "info", "--json", "--store", store).out)
    assert data["measurements"] > 50
    assert data["forms"]["VADDPH (XMM, XMM, XMM)"] == "SIGILL"
    assert "AVX2" in data["sessions"][0]["features"]


def test_store_info_says_what_sessions_were_to_find_out(cyclescope, store):
    names = ("move-elimination", "banks")
    with closing(Store(store, "")) as opened:
        for probes in (names, [f"q{n}" for n in range(9)]):
            opened.begin_session("2026-01-01T00:00:00+00:00", {"asked": {"what": [PROBE], "forms": probes}})
            opened.write_legality([("NOP", "ok")])
        opened.begin_session("2026-01-02T00:00:00+00:00", {"cpu": 7})
        opened.write_legality([("NOP", "ok")])
    text = cyclescope("store", "info", "--store", store).out
    lines = [line for line in text.splitlines() if line.startswith("session")]
    assert ": latency, throughput, CPU " in lines[0]
    assert ": probe move-elimination, banks, CPU " in lines[1]
    assert ": probe 9 questions, CPU " in lines[2]
    assert lines[3].startswith("session 2026-01-02T00:00:00+00:00: CPU 7, ")
