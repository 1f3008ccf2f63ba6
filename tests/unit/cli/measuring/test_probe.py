"""`cyclescope probe` on simulated cores: what it prints, what it keeps, and what it refuses."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import jsonschema

from cyclescope.measure.store import Store
from cyclescope.probe.catalogue import PROBES
from cyclescope.session.machines import load_model

SCHEMA = json.loads((Path(__file__).parents[4] / "docs/reference/probes.schema.json").read_text())
MOVES = ("probe", "move-elimination", "--quick", "--simulated", "neoverse-v2")


def test_the_list_has_every_question(cyclescope):
    text = cyclescope("probe", "--list").out
    assert all(name in text and probe.question in text for name, probe in PROBES.items())
    data = json.loads(cyclescope("probe", "--list", "--json").out)
    jsonschema.validate(data, SCHEMA)
    assert [one["name"] for one in data["probes"]] == list(PROBES)


def test_answers_with_their_errors(cyclescope):
    done = cyclescope(*MOVES)
    assert done.code == 0
    assert "ORRXrs" in done.out
    assert "+-" in done.out
    assert "confidence" in done.out
    assert "kept in" not in done.out, "a simulated core is not kept"


def test_json_is_as_its_schema_says(cyclescope):
    data = json.loads(cyclescope(*MOVES, "--json").out)
    jsonschema.validate(data, SCHEMA)
    (probe,) = data["probes"]
    assert {fact["subject"] for fact in probe["facts"]} == {one["subject"] for one in probe["readings"]}
    assert all(fact["resolved"] != bool(fact["reason"]) for fact in probe["facts"])


def test_a_store_has_points_and_answers(cyclescope, tmp_path):
    path = tmp_path / "s.sqlite"
    told = cyclescope(*MOVES, "--store", path).out
    assert f"kept in {path}" in told
    with closing(Store(path, readonly=True)) as store:
        facts, records = store.facts(), list(store.records_of(("probe",)))
        assert not store.stopped()
        assert store.machine == "neoverse-v2"
    assert {fact.subject for fact in facts} == {record.source for record in records}
    again = cyclescope(*MOVES, "--store", path)
    assert again.code == 0
    with closing(Store(path, readonly=True)) as store:
        assert store.facts() == facts


def test_a_card_of_everything_in_the_store(cyclescope, tmp_path):
    """Also of what was asked before."""
    path = tmp_path / "s.sqlite"
    cyclescope(*MOVES, "--store", path)
    asked = ("probe", "accesses", "--quick", "--simulated", "neoverse-v2", "--card")
    told = cyclescope(*asked, "--store", path).out
    assert "register moves" in told
    assert "  loads  " in told
    assert "confidence" not in told
    alone = cyclescope(*asked).out
    assert "register moves" not in alone
    assert "  loads  " in alone


def test_a_page(cyclescope, tmp_path):
    page = tmp_path / "card.html"
    assert cyclescope(*MOVES, "--html", page).code == 0
    assert "neoverse-v2" in page.read_text()
    refused = cyclescope(*MOVES, "--html", tmp_path / "none" / "card.html")
    assert refused.error.endswith("No such file or directory")
    assert "move-elimination" not in refused.out, "before anything is asked"


def test_a_drawn_core(cyclescope):
    assert "drawn-7" in cyclescope("probe", "move-elimination", "--quick", "--simulated", "drawn:7").out
    assert cyclescope("probe", "--simulated", "drawn:x").error.startswith("'drawn:x' is no drawn core")


def test_what_is_not_resolved_is_named_counted_or_told(cyclescope, monkeypatch):
    command = ("probe", "move-elimination", "--simulated", "skylake")
    short = next(row for row in cyclescope(*command).out.splitlines() if "not resolved: " in row)
    assert short.count("(ZMM, ZMM)") == 2
    assert short.endswith(" (this CPU does not execute it (SIGILL))")
    monkeypatch.setattr("cyclescope.report.probes.LISTED", 1)
    told = "not resolved: 2, --all lists them (this CPU does not execute it (SIGILL))"
    assert told in cyclescope(*command).out
    line = next(row for row in cyclescope(*command, "--all").out.splitlines() if "(ZMM, ZMM) " in row)
    assert "SIGILL" in line


def test_mistakes(cyclescope, tmp_path):
    assert "no probe 'moves'" in cyclescope("probe", "moves").error
    assert cyclescope("probe", "moves").code == 2
    assert "simulated core has no" in cyclescope(*MOVES, "--cpu", "0").error
    assert cyclescope("probe", "--simulated", "nonsense").code == 2
    other = tmp_path / "other.sqlite"
    cyclescope(*MOVES, "--store", other)
    refused = cyclescope("probe", "move-elimination", "--simulated", "neoverse-n2", "--store", other)
    assert "belongs to another machine" in refused.error
    assert refused.out == "", "one line, and nothing before it"


def test_facts_are_a_part_of_models(cyclescope, tmp_path):
    path, model = tmp_path / "s.sqlite", tmp_path / "m.json"
    cyclescope(*MOVES, "--store", path)
    with closing(Store(path, readonly=True)) as store:
        facts = [fact for fact in store.facts() if fact.is_resolved]
    known = load_model("neoverse-v2")
    data = json.loads(cyclescope("machines", "show", "neoverse-v2", "--json").out)
    data["facts"] = [
        json.loads(json.dumps({"probe": f.probe, "subject": f.subject, "answer": f.answer})) for f in facts
    ]
    data.pop("derived")
    model.write_text(json.dumps(data))
    shown = cyclescope("machines", "show", model).out
    assert known.name in shown
    assert f"move-elimination: {facts[0].answer}: " in shown


def test_what_there_is_no_time_for_replaces_no_answer(cyclescope, tmp_path, monkeypatch):
    path = tmp_path / "s.sqlite"
    cyclescope(*MOVES, "--store", path)
    with closing(Store(path, readonly=True)) as store:
        facts = store.facts()
    monkeypatch.setattr("cyclescope.probe.run.HURRY", -1.0)
    hurried = cyclescope(*MOVES, "--store", path).out
    assert f"not resolved: {'; '.join(fact.subject for fact in facts)} (no time left in a hurry)" in hurried
    with closing(Store(path, readonly=True)) as store:
        assert store.facts() == facts


def test_a_probe_without_cases_for_a_hurry_says_so(cyclescope):
    told = cyclescope("probe", "branch-patterns", "--quick", "--simulated", "skylake").out
    assert "not asked in a hurry" in told
