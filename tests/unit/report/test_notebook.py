"""Machines as objects: rows, cards, comparisons."""

from __future__ import annotations

import msgspec
import pytest

import cyclescope
from cyclescope.errors import UsageError
from cyclescope.model.schema import write_model
from tests.support.made.models import exchanged
from tests.unit.report.pages.test_site import NASTY, Page

MUL = "IMUL (R64, R64)"


@pytest.fixture
def machine(tmp_path):
    write_model(exchanged(1), tmp_path / "machine.json")
    return cyclescope.load(tmp_path / "machine.json")


def test_rows(machine):
    rows = machine.rows()
    assert len(rows) == len(machine) == len(machine.model.forms)
    row = next(row for row in rows if row["form"] == MUL)
    cost = machine.model.forms[MUL]
    assert (row["throughput"], row["slots"], row["mnemonic"]) == (cost.throughput, cost.slots, "IMUL")
    assert row["latency_least"] <= row["latency_most"]
    assert len({tuple(row) for row in rows}) == 1, "every row has the same columns"


def test_pairs(machine):
    rows = [row for row in machine.latencies() if row["form"] == MUL]
    cost = machine.model.forms[MUL]
    assert {f"{row['source']}->{row['target']}" for row in rows} == cost.latencies.keys() | cost.ranges.keys()
    exact = {f"{row['source']}->{row['target']}": row["most"] for row in rows if row["least"] == row["most"]}
    assert exact == dict(cost.latencies)


def test_one_form_is_found_by_id_and_by_example(machine):
    assert machine[MUL].id == MUL
    assert machine["imul rax, rbx"].id == MUL
    assert {form.id.split()[0] for form in machine.select("ADD*")} >= {"ADD_01", "ADD"}
    with pytest.raises(UsageError, match="forms"):
        machine["ADD*"]
    with pytest.raises(UsageError):
        machine["nixnix"]


def test_machines_compare_and_make_sites(machine, tmp_path):
    agreement = machine.compare(machine)
    assert agreement.differences() == []
    path = machine.site(tmp_path / "site.html", machine)
    assert Page(path.read_text()).scripts["part-0"]
    assert [group.total for group in machine.findings()]


def test_what_notebooks_show_is_escaped(machine):
    name = next(iter(machine.model.forms))
    cost = msgspec.structs.replace(machine.model.forms[name], note=NASTY)
    model = msgspec.structs.replace(machine.model, name=NASTY, forms={name: cost})
    nasty = type(machine)(msgspec.structs.replace(machine.subject, model=model))
    for shown in (nasty._repr_html_(), nasty[name]._repr_html_()):
        assert "img" not in Page(shown).tags
        assert "\x1b" not in shown
        assert "<table>" in shown
    assert name in repr(nasty[name])
