"""`cyclescope export`, `import` and `compare`."""

from __future__ import annotations

import csv
import io
import json
import re

import msgspec
import pytest

from cyclescope.formats.registry import FORMATS, READABLE, WRITABLE, by_name
from cyclescope.isa.table import load_table
from cyclescope.model.schema import read_model, write_model
from tests.support.made.models import exchanged, suited

USAGE, FAILURE = 2, 1
FEW = ("--form", "ADD*")  # forms, where it does not matter which


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "machine.json"
    write_model(exchanged(1), path)
    return path


@pytest.mark.parametrize("name", [name for name in WRITABLE if name in READABLE])
def test_export_and_import_again(name, cyclescope, tmp_path):
    model, there, back = (tmp_path / found for found in ("machine.json", "there", "back.json"))
    write_model(suited(name, 1), model)
    done = cyclescope("export", str(model), "--format", name, "-o", str(there))
    assert done.code == 0
    assert there.stat().st_size > 100
    done = cyclescope("import", str(there), "--machine", "back", "-o", str(back))
    assert done.code == 0, done.err
    assert read_model(back).name == "back"
    assert cyclescope("machines", "check", str(back)).code == 0


def test_the_suffix_tells_the_format(cyclescope, model, tmp_path):
    for suffix, sign in ((".xml", "<?xml"), (".yml", "osaca_version"), (".csv", "form,"), (".json", "{")):
        path = tmp_path / f"file{suffix}"
        assert cyclescope("export", str(model), "-o", str(path)).code == 0
        assert sign in path.read_text()
    done = cyclescope("export", str(model), "-o", str(tmp_path / "file.doc"))
    assert (done.code, len(done.err.splitlines())) == (USAGE, 1)
    assert ".xml (uops-info)" in done.err


def test_a_store_has_more_for_uops_info_than_its_model(cyclescope, store, tmp_path):
    model, of_model, of_store = (tmp_path / name for name in ("model.json", "model.xml", "store.xml"))
    assert cyclescope("export", store, "-o", model).code == 0
    assert cyclescope("export", model, "-o", of_model).code == 0
    assert cyclescope("export", store, "-o", of_store).code == 0
    for name in (" TP_loop=", " x_sequences="):
        assert name in of_store.read_text()
        assert name not in of_model.read_text()
    done = cyclescope("compare", of_model, of_store, "--json")
    (found,) = json.loads(done.out)["others"]
    assert found["differences"] == []
    assert cyclescope("export", store, "--format", "csv").code == 0


def test_what_is_left_out_is_counted_and_listed(cyclescope, model, tmp_path):
    counted = cyclescope("export", str(model), "-o", str(tmp_path / "file.yml")).err
    assert "OSACA has no words for its operands" in counted
    listed = cyclescope("export", str(model), "--left-out", "-o", str(tmp_path / "file.yml")).err
    assert "left out: VADDPD (ZMM, K, ZMM, ZMM): OSACA has no words" in listed


def test_opcodes_that_a_program_of_llvm_lacks_are_left_out(cyclescope, model, tmp_path):
    names = {form.llvm for form in load_table("x86-64")} - {"IMUL64rr"}
    program, there = tmp_path / "llvm-exegesis", tmp_path / "records"
    program.write_bytes(b"\0".join(name.encode() for name in sorted(names)) + b"\0")
    options = ("--llvm", str(program), "--left-out", "-o", str(there))
    done = cyclescope("export", str(model), "--format", "exegesis-throughput", *options)
    assert done.code == 0
    assert "left out: IMUL (R64, R64): this LLVM has no such opcode" in done.err
    assert "IMUL64rr" not in there.read_text()
    assert "ADC64rr" in there.read_text()
    done = cyclescope("export", str(model), "--format", "csv", *options)
    assert (done.code, done.err) == (USAGE, "error: --llvm: csv has no opcodes of LLVM: leave --llvm out\n")


def test_refused_cells_are_counted_and_listed(cyclescope, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        'form,throughput,latency\n"IMUL (R64, R64)",1.0,op1->op1=3\n"IMUL (R64, R64)",-1,\nNIX,1,\n'
    )
    done = cyclescope("import", str(path), "--machine", "m", "-o", str(tmp_path / "m.json"))
    assert "2 items refused" in done.out
    done = cyclescope("import", str(path), "--machine", "m", "-o", str(tmp_path / "m.json"), "--refused")
    assert "refused: line 4: NIX: no such form" in done.out


def test_an_imported_machine_predicts(cyclescope, model, tmp_path):
    code = tmp_path / "loop.s"
    code.write_text("1: imul %rax, %rax\n jnz 1b\n")
    table, back = tmp_path / "table.csv", tmp_path / "back.json"
    cyclescope("export", str(model), "-o", str(table))
    cyclescope("import", str(table), "--machine", "back", "-o", str(back))
    done = cyclescope("analyze", str(code), "--arch", str(back), "--json")
    assert done.code == 0, done.err


def test_files_beside_a_machine_are_of_its_instruction_set(cyclescope, tmp_path):
    model, there = tmp_path / "machine.json", tmp_path / "winic.yaml"
    write_model(exchanged(1, "aarch64"), model)
    cyclescope("export", str(model), "--format", "winic", "-o", str(there))
    done = cyclescope("compare", str(model), str(there))
    assert done.code == 0, done.err
    assert "forms in both" in done.out
    done = cyclescope("compare", str(model), str(there), "--html", str(tmp_path / "page.html"))
    assert done.code == 0, done.err
    done = cyclescope("report", str(model), "--compare", str(there), "-o", str(tmp_path / "site.html"))
    assert done.code == 0, done.err


def test_compare(cyclescope, model, tmp_path):
    other = tmp_path / "other.xml"
    cyclescope("export", str(model), "-o", str(other))
    done = cyclescope("compare", str(model), str(other), "znver4")
    assert done.code == 0, done.err
    assert "machine.json and other.xml" in done.out
    assert "machine.json and znver4" in done.out
    data = json.loads(cyclescope("compare", str(model), str(other), "--json").out)
    (found,) = data["others"]
    assert found["differences"] == []
    assert found["counts"]["latency"]["equal"] > 50
    rows = list(csv.DictReader(io.StringIO(cyclescope("compare", str(model), "znver4", "--csv").out)))
    assert {row["verdict"] for row in rows} >= {"equal", "different"}


def test_compare_some_forms(cyclescope, model):
    done = cyclescope("compare", str(model), "znver4", "--form", "imul", "--csv")
    assert {row["form"] for row in csv.DictReader(io.StringIO(done.out))} == {"IMUL (R64, R64)"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "znver4"], "one source alone"),
        (["compare", "znver4", "nix"], "nix"),
        (["compare", "znver4", "nix.xml"], "nix.xml: no such file"),
        (["compare", "znver4", "znver3", "--csv", "--json"], "choose one"),
        (["compare", "znver4", "znver3", "--html", "a", "--report", "b"], "--html and --report at once"),
        (["compare", "znver4", "mca:znver4", "--csv"], "as text, JSON or a page: leave --csv out"),
        (["compare", "znver4", "neoverse-v2"], "several instruction sets (aarch64, x86-64)"),
        (["compare", "znver4", "neoverse-v2", "--html", "a"], "several instruction sets"),
        (["compare", "znver4", "znver3", "--html", "-"], "'-' is no file here"),
        (["export", "znver4", "-o", "-"], "'-' is no file here"),
        (["export", "znver4", "--format", "json", "--llvm", "/bin/ls"], "json has no opcodes of LLVM"),
        (["compare", "znver4", "znver3", "--tolerance", "nan"], "--tolerance"),
        (["export", "znver4"], "--format"),
        (["export", "nix", "--format", "csv"], "nix"),
        (["import", "nix.csv", "--machine", "m"], "nix.csv: no such file"),
        (["import", "/dev/null", "--machine", "m"], "/dev/null: not a regular file"),
        (["import", __file__, "--machine", ""], "no name for a machine"),
        (["import", __file__, "--machine", "a\nb"], "no name for a machine"),
        (["import", __file__, "--machine", "native"], "the name of another machine"),
        (["import", __file__, "--machine", "ZNVER4"], "the name of another machine"),
    ],
)
def test_one_line_for_each_mistake(cyclescope, arguments, said):
    done = cyclescope(*arguments)
    assert done.code == USAGE
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_every_format_is_in_the_help(cyclescope):
    for command, names in (("export", WRITABLE), ("import", READABLE)):
        shown = cyclescope(command, "--help").out
        assert all(name in shown for name in names)


def test_a_table_says_what_it_has_no_column_for(cyclescope, model, tmp_path):
    read = read_model(model)
    name, cost = next(iter(read.forms.items()))
    more = msgspec.structs.replace(cost, resources={"p0": 1.0}, alternatives=("1*p1",), eliminated=True)
    write_model(msgspec.structs.replace(read, forms={name: more}, resources={"p0": 1.0}), model)
    done = cyclescope("export", str(model), "--left-out", "-o", str(tmp_path / "there.csv"))
    told = [line for line in done.err.splitlines() if line.startswith(f"left out: {name}: no column for ")]
    assert [line.split(" for ")[1].split()[0] for line in told] == ["other", "cycles", "idioms,"]


def test_ports_that_a_table_cannot_give_back_are_counted(cyclescope, model, tmp_path):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    cyclescope("export", str(model), "-o", str(first))
    done = cyclescope("export", str(first), "-o", str(second))
    rows = [row for row in csv.DictReader(io.StringIO(first.read_text())) if row["ports"]]
    assert rows
    assert f"{len(rows)} the ports of a table cannot be read back" in done.err


def test_a_file_without_what_a_format_is_of_is_refused(cyclescope, tmp_path):
    there = tmp_path / "lt.txt"
    there.write_text("Using frequency 3.0\nvaddpd-x_x_x-LT: 4.0 (clock cycles)\n")
    done = cyclescope("export", str(there), "--format", "exegesis-throughput", "-o", str(tmp_path / "t"))
    assert done.code == FAILURE
    assert "lt has no throughput of a form that llvm-exegesis can name" in done.err
    assert not (tmp_path / "t").exists()
    for name in ("csv", "uops-info"):
        assert cyclescope("export", str(there), "--format", name, "-o", str(tmp_path / name)).code == 0


@pytest.mark.parametrize("command", ["compare", "export"])
def test_advice_names_no_option_that_the_command_lacks(cyclescope, model, tmp_path, command):
    (tmp_path / "what.txt").write_text("nobody knows")
    more = ("--format", "csv") if command == "export" else (str(model),)
    done = cyclescope(command, str(tmp_path / "what.txt"), *more)
    assert "is of no known format: `cyclescope import --format` can be one of" in done.err


def test_texts_for_compiler_developers(cyclescope, store, tmp_path):
    folder = tmp_path / "texts"
    done = cyclescope("compare", store, "llvm:znver1", "--report", folder)
    assert done.code == 0, done.err
    names = sorted(path.name for path in folder.iterdir())
    assert names[-1] == "README.md"
    assert len(names) > 1
    text = (folder / names[0]).read_text()
    number = re.search(rf"cyclescope bench --rerun (\d+) --store {re.escape(str(store))}", text)[1]
    code = re.search(r"code `(\w+)`", text)[1]
    assert f"--hex {code}" in text
    form = re.search(r"### (.*), \S+$", text, re.MULTILINE)[1]
    evidence = cyclescope("show", form, "--evidence", "--store", store).out
    assert f"[{number}]" in evidence
    assert f"code {code}" in evidence


@pytest.mark.parametrize(
    ("names", "said"),
    [(["znver1", "llvm:znver2"], "no store"), (["znver1"], "one source"), (["a", "b", "c"], "two sources")],
)
def test_texts_need_measurements_and_one_model(cyclescope, tmp_path, names, said):
    done = cyclescope("compare", *names, "--report", tmp_path / "texts")
    assert done.code == USAGE
    assert said in done.error
    assert not (tmp_path / "texts").exists()


def test_compare_as_a_page(cyclescope, model, tmp_path):
    done = cyclescope("compare", model, "znver4", "--html", tmp_path / "page.html")
    assert done.code == 0, done.err
    assert "<svg" in (tmp_path / "page.html").read_text()


def test_whose_costs_a_source_has_is_said(cyclescope, tmp_path):
    words = "zen5 has costs, ports and buffers of znver4, another core"
    lines = cyclescope("compare", "zen5", "znver4", *FEW, "--differences", "1").out.splitlines()
    assert (lines[0], lines[1].strip()) == ("zen5 and znver4", words)
    assert words not in cyclescope("compare", "znver3", "znver4", *FEW).out
    data = json.loads(cyclescope("compare", "znver4", "zen5", *FEW, "--json").out)
    assert (data["borrowed"], data["others"][0]["borrowed"]["core"]) == (None, "znver4")
    cyclescope("compare", "znver4", "zen5", *FEW, "--html", tmp_path / "page.html")
    assert f"<p>{words.replace('zen5', 'znver5')}.</p>" in (tmp_path / "page.html").read_text()
    done = cyclescope("export", "zen5", "-o", tmp_path / "out.csv")
    assert "znver5, borrowed from znver4 as a table" in done.err
    cyclescope("export", "zen5", "-o", tmp_path / "out.td")
    assert "\n// costs, ports, buffers of znver4, another core\n" in (tmp_path / "out.td").read_text()


@pytest.mark.slow
def test_evidence_is_where_something_was_measured(cyclescope, model, store):
    """And how sure ports are where somebody says it."""
    assert "--evidence" not in cyclescope("compare", "zen2", "znver4", *FEW).out
    assert "--evidence" in cyclescope("compare", "znver4", store, *FEW).out
    assert "low confidence" not in cyclescope("export", "znver4", "--format", "llvm-td").out


@pytest.mark.parametrize(
    "name", [one.name for one in FORMATS if one.reader and one.writer and not one.is_several]
)
def test_no_machine_is_chosen_of_a_file_that_has_one(name, cyclescope, tmp_path):
    there = tmp_path / "there"
    there.write_text(by_name(name).write(suited(name, 1)).text)
    target = tmp_path / "m.json"
    imported = ("import", str(there), "--column", "ZEN3", "--machine", "m", "-o", str(target))
    for asked in (imported, ("compare", "znver4", f"{there}#ZEN3")):
        done = cyclescope(*asked)
        assert (done.code, len(done.err.splitlines())) == (USAGE, 1)
        assert "'ZEN3'" in done.err
        assert "has one machine" in done.err
    assert not target.exists()


def test_no_machine_is_chosen_of_a_model_either(cyclescope, model):
    done = cyclescope("compare", f"{model}#ZEN3", str(model))
    assert (done.code, len(done.err.splitlines())) == (USAGE, 1)
    assert "a machine model has one machine" in done.err
