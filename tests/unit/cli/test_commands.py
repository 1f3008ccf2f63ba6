"""What commands print when all goes well."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import closing

import pytest

from cyclescope.cli.commands import show
from cyclescope.cli.main import COMMANDS
from cyclescope.measure.store import Store
from cyclescope.model.calibration import ClaimCalibration, TriedMixes
from tests.support.files.stores import experiment, measurement
from tests.support.made.machine import FORMS


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_every_command_has_help(cyclescope, command):
    done = cyclescope(*filter(None, [command]), "--help")
    assert done.code == 0
    assert done.out.startswith("Usage: cyclescope")


def test_help_names_every_command(cyclescope):
    text = cyclescope("--help").out
    assert re.findall(r"^  ([a-z-]+) ", text.partition("Commands:")[2], re.MULTILINE) == list(COMMANDS)


def test_measure_goes_on_where_it_was(cyclescope, machine, store):
    done = cyclescope("measure", *FORMS, "--store", store)
    assert done.code == 0
    assert machine[0].measured == 0
    assert "3 forms: 3 executed by this CPU, 3 with a throughput" in done.out


def test_fresh_starts_over(cyclescope, machine, store):
    assert cyclescope("measure", FORMS[0], "--fresh", "--store", store).code == 0
    assert machine[0].measured > 0
    assert "not measured yet" in cyclescope("show", FORMS[1], "--store", store).out


def test_a_dry_run_measures_nothing(cyclescope, machine, tmp_path):
    done = cyclescope("measure", "IMUL (R64, R64)", "--dry-run", "--store", tmp_path / "s.sqlite")
    assert "nothing measured" in done.out
    assert "imul" in done.out
    assert not machine
    assert not list(tmp_path.iterdir())


def test_a_dry_run_as_json(cyclescope, machine, table):
    form = "IMUL (R64, R64)"
    data = json.loads(cyclescope("measure", form, "JMP (M80)", "--dry-run", "--json").out)
    chain = next(k for k in data["kernels"] if k["variant"] == "swap" and k["source"] == "op2")
    assert (chain["form"], chain["quantity"], chain["target"]) == (form, "latency", "op1")
    assert "imul" in chain["assembly"]
    assert {m["form"] for m in data["missing"]} == {"JMP (M80)"}
    only = json.loads(cyclescope("measure", form, "--dry-run", "--json", "--what", "throughput").out)
    assert {k["quantity"] for k in only["kernels"]} == {"throughput"}
    assert not machine


def test_measure_names_the_command_that_shows_its_store(cyclescope, machine, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    path = tmp_path / "a store.sqlite"
    for option in (["--store", str(path)], []):
        hint = cyclescope("measure", FORMS[0], *option).out.splitlines()[-1]
        command = shlex.split(hint.removeprefix("look at results with: cyclescope "))
        assert command == ["show", "imul", *option]
        assert "throughput" in cyclescope(*command).out


def test_only_one_quantity(cyclescope, machine, tmp_path):
    cyclescope("measure", FORMS[0], "--what", "throughput", "--store", tmp_path / "s.sqlite")
    card = cyclescope("show", FORMS[0], "--store", tmp_path / "s.sqlite").out
    assert re.search(r"throughput +\d", card)
    assert "not measured" in card


def test_evidence_names_the_command_that_runs_it_again(cyclescope, machine, store):
    shown = cyclescope("show", FORMS[0], "--evidence", "--store", store).out
    command = re.search(r"again: cyclescope (bench --rerun \d+ --store \S+)", shown)
    again = cyclescope(*command[1].split())
    assert again.code == 0
    assert "imul" in again.out
    assert "core cycles" in again.out


def test_how_often_ports_are_right_is_one_line_unless_all_is_asked_for(cyclescope, store, monkeypatch):
    known = ClaimCalibration({"high": TriedMixes(100, 99, 0.01)}, claims=7, measured=100)
    monkeypatch.setattr(show, "_calibration", lambda opened, found: known)
    short, long = (cyclescope("show", "imul", "--store", store, *more).out for more in ((), ("--evidence",)))
    lines = [[line for line in text.splitlines() if line.startswith("ports: ")] for text in (short, long)]
    assert lines[0] == [
        "ports: fresh mixes of instructions take what their ports predict within 10%: high 99.0% "
        "(--evidence says more)"
    ]
    assert len(lines[1]) > 1


def test_bench_per_copy(cyclescope, machine):
    once = cyclescope("bench", "--hex", "480fafc3", "--json").out
    often = cyclescope("bench", "--hex", "480fafc3", "--unroll", "10", "--json").out
    cycles = [float(re.search(r'"cycles":([\d.]+)', text)[1]) for text in (once, often)]
    assert cycles[0] == pytest.approx(cycles[1], rel=1e-4)
    assert all(re.fullmatch(r"\d+\.\d{1,4}", f"{x}") for x in cycles)


def test_a_list_of_instructions(cyclescope, machine, tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("imul,64,2,,T\npaddd,q,2\n")
    done = cyclescope("measure", "--list", path, "--dry-run")
    assert done.code == 0
    assert "IMUL (R64, R64)" in done.out
    assert "latency" not in done.out.lower().replace("no latency", "")
    assert "line 2: paddd,q,2" in done.err
    done = cyclescope("measure", "--list", tmp_path / "none.csv")
    assert (done.code, "No such file or directory" in done.error) == (2, True)


def test_forms_are_listed(cyclescope):
    done = cyclescope("forms", "imul rax, rbx")
    assert done.out.splitlines()[-1] == "1 form"
    assert "IMUL64rr" in done.out


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("1.5s", 1.5), ("10m", 600), ("2 h", 7200)])
def test_durations(text, seconds):
    from cyclescope.cli.options import Duration

    assert Duration().convert(text, None, None) == seconds


def test_shown_are_the_configurations_that_were_measured(cyclescope, tmp_path):
    path = tmp_path / "s.sqlite"
    with closing(Store(path, "a board", isa="riscv64")) as opened:
        opened.begin_session("a session", {})
        measured = experiment("VADD_VV@e64,m8", quantity="throughput", source="", target="")
        opened.write([(measured, measurement())])
        opened.write_legality(
            [(measured.form, "ok"), ("VADD_VV@e64,m4", "ok"), ("VADD_VV@e16,mf4", "SIGILL")]
        )
    data = json.loads(cyclescope("show", "vadd.vv", "--json", "--store", path).out)
    assert [form["id"] for form in data["forms"]] == ["VADD_VV@e16,mf4", "VADD_VV@e64,m8"]
    assert "not measured yet" in cyclescope("show", "VSUB_VV", "--store", path).out


# --- false dependencies ----------------------------------------------------------------------------


def test_false_dependencies_of_a_store(cyclescope, tmp_path):
    path = tmp_path / "s.sqlite"
    name = "POPCNT (R64, R64)"
    with closing(Store(path, "some machine")) as opened:
        opened.begin_session("now", {})
        kept = {"form": name, "source": "op1.old", "target": "op1", "links": (), "count": 16}
        opened.write([
            (experiment(variant="plain x16", **kept | {"quantity": "throughput", "source": "", "target": ""}),
             measurement(8.0)),
            (experiment(variant="kept", **kept), measurement(48.0)),
        ])  # fmt: skip
        opened.write_legality([(name, "ok"), ("TZCNT (R64, R64)", "ok"), ("ADD_01 (R64, R64)", "ok")])
    shown = cyclescope("show", "--false-dependencies", "--store", path)
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[0] == "POPCNT (R64, R64)  op1.old -> op1  3.00  medium"
    assert lines[1].startswith("1 form of ")
    data = json.loads(cyclescope("show", "--false-dependencies", "--json", "--store", path).out)
    assert [(f["id"], [lat["source"] for lat in f["latencies"]]) for f in data["forms"]] == [
        (name, ["op1.old"])
    ]
    card = cyclescope("show", name, "--store", path).out
    assert "op1.old" in card
    assert "waits for the register's old value" in card
    assert cyclescope("show", "--false-dependencies", "add", "--store", path).out.startswith("0 forms of 0 ")
