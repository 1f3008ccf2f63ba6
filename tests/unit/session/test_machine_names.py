"""The names of machines: everybody resolves the same ones, and what is another core's is said first."""

from __future__ import annotations

import gc
import json
from html import unescape

import jsonschema
import msgspec
import pytest

import cyclescope
from cyclescope.cli.main import main
from cyclescope.errors import UsageError
from cyclescope.isa.registry import instruction_set
from cyclescope.model import library, names
from cyclescope.model.behaviour.published import CORES
from cyclescope.model.library import summaries
from cyclescope.model.machine import ASSUMED, MEASURED, PUBLISHED, Provenance
from cyclescope.model.schema import write_model
from cyclescope.model.widths import WIDTHS
from cyclescope.report.predictions.text import analysis_text
from cyclescope.session import machines, sources
from tests.support.code.blocks import toy
from tests.support.files.schemas import ANALYSIS

ALL = list(summaries())
LENT = [(other, m) for m in ALL for other in m.lends_to]
SAME = [(other, m) for m in ALL for other in (m.name, *m.aliases)]
RENAMED = ".L3: mov rax, [rdi]\n add rax, 1\n mov [rdi], rax\n dec rcx\n jnz .L3\n"
ARM = ".L3: add x5, x6, x7\n add x8, x6, x7\n subs x3, x3, #1\n b.ne .L3\n"


@pytest.fixture
def run(capsys, tmp_path):
    """Run a command line on two kernels, `x86.s` and `arm.s`."""
    (tmp_path / "x86.s").write_text(RENAMED)
    (tmp_path / "arm.s").write_text(ARM)

    def command(*words):
        with pytest.raises(SystemExit) as end:
            main([str(tmp_path / w) if str(w).endswith(".s") else str(w) for w in words])
        done = capsys.readouterr()
        return end.value.code or 0, done.out, done.err

    return command


# --- whose model it is ----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "machine"), SAME, ids=lambda v: getattr(v, "name", v))
def test_another_name_of_the_same_core_is_that_machine(name, machine):
    found = library.shipped(name.upper())
    assert (found.name, found.borrowed) == (machine.name, None)


@pytest.mark.parametrize(("name", "machine"), LENT, ids=lambda v: getattr(v, "name", v))
def test_another_core_keeps_its_name_and_says_whose_model_it_has(name, machine):
    found = library.shipped(name)
    assert found.name == name
    assert found.borrowed.core == machine.name
    assert {"costs", "ports", "buffers"} <= set(found.borrowed.what)
    assert ("width" in found.borrowed.what) == (name not in WIDTHS)
    assert "LLVM" in found.borrowed.source


def test_cores_that_are_not_the_ones_of_their_model_are_taken_for_none_of_the_same():
    lent = {other: m.name for other, m in LENT}
    expected = {
        "znver5": "znver4", "gracemont": "alderlake", "apple-m5": "apple-a7", "knl": "haswell",
        "bdver4": "znver1", "cortex-a76": "cortex-a57", "ivybridge": "sandybridge", "gb10": "neoverse-v3",
        "tigerlake": "icelake-server", "x86-64-v3": "haswell", "neoverse-512tvb": "neoverse-v1",
    }  # fmt: skip
    assert {name: lent.get(name) for name in expected} == expected
    assert not set(lent) & names._SAME.keys()
    assert len({other for other, _ in (*LENT, *SAME)}) == len(LENT) + len(SAME)


def test_every_name_that_is_said_to_be_the_same_exists():
    assert names._SAME.keys() <= library.names()
    assert all(library.shipped(name).name for name in names.OTHER_NAMES)
    assert all(name == name.lower() for name in names.OTHER_NAMES)


def test_facts_are_those_of_the_core_that_was_asked_for(run):
    assert CORES["znver5"].behaviour.renamed != CORES["znver4"].behaviour.renamed  # else this shows nothing
    cycles = {}
    for name in ("znver4", "znver5", "zen5", "ZNVER5"):
        _, out, _ = run("analyze", "x86.s", "--arch", name, "--json")
        data = json.loads(out)
        jsonschema.Draft202012Validator(ANALYSIS).validate(data)
        cycles[name] = data["cycles"]
        assert data["machine"] == ("znver4" if name == "znver4" else "znver5")
        assert [one["core"] for one in data["borrowed"]] == ([] if name == "znver4" else ["znver4"])
    assert cycles["znver5"] == cycles["zen5"] == cycles["ZNVER5"] != cycles["znver4"]


@pytest.mark.parametrize(
    ("file", "name", "first"),
    [
        ("x86.s", "zen5", "znver5 (x86-64) with costs, ports and buffers of znver4, another core, from LLVM"),
        ("x86.s", "ADL-E", "gracemont (x86-64) with costs, ports, buffers and width of alderlake, another"),
        ("arm.s", "apple-m5", "apple-m5 (aarch64) with costs, ports, buffers and width of apple-a7, another"),
        ("x86.s", "knl", "knl (x86-64) with costs, ports, buffers and width of haswell, another core"),
    ],
)
def test_the_first_line_says_what_is_borrowed(run, tmp_path, file, name, first):
    code, out, _ = run("analyze", file, "--arch", name)
    assert code == 0
    assert out.startswith(first)
    assert "if what is borrowed of" in out
    page = tmp_path / "page.html"
    run("analyze", file, "--arch", name, "--html", page)
    text = unescape(page.read_text())
    assert text.index(first) < text.index("cycles per iteration")
    _, out, _ = run("analyze", file, "--arch", name, "--markdown")
    assert out.startswith(first)
    _, out, _ = run("analyze", file, "--arch", name, "--compare", name)
    assert out.startswith(first)
    found = cyclescope.predict(tmp_path / file, name)
    assert found.borrowed[0].core == cyclescope.load_model(name).borrowed.core


def test_a_borrowed_machine_is_shown_as_one(run):
    for arguments in ((), ("imul rax, rbx",)):
        first = run("machines", "show", "zen5", *arguments)[1].splitlines()[0]
        assert first.startswith("znver5")
        assert first.endswith("costs, ports and buffers of znver4, another core")
    assert run("machines", "check", "zen5")[1].startswith("znver5, costs, ports and buffers of znver4")
    shown = json.loads(run("machines", "show", "zen5", "imul", "--json")[1])
    assert (shown["name"], shown["borrowed"]["core"]) == ("znver5", "znver4")


def test_a_borrowed_machine_in_a_file_still_is_one(run, tmp_path):
    path = tmp_path / "mine.json"
    write_model(machines.load_model("zen5"), path)
    assert machines.load_model(path) == machines.load_model("znver5")
    assert "of znver4, another core" in run("analyze", "x86.s", "--arch", path)[1].splitlines()[0]


def measured(name, *lacks):
    """A machine that was measured, without the costs of some forms."""
    forms = {form: cost for form, cost in toy().forms.items() if form not in lacks}
    return msgspec.structs.replace(toy(), name=name, provenance=Provenance(MEASURED, "here"), forms=forms)


def test_forms_that_a_measured_machine_has_from_another_core_are_in_the_first_line():
    found = cyclescope.predict("push rax; add rbx, rcx", measured("made 1-2-3 znver5", "PUSH (R64)"))
    (one,) = found.borrowed
    assert (one.core, one.what, one.forms) == ("znver4", ("costs",), ("PUSH (R64)",))
    first = analysis_text(found).splitlines()[0]
    assert "; PUSH (R64) of znver4, another core, from LLVM scheduling models" in first
    own = cyclescope.predict("push rax; add rbx, rcx", measured("made 1-2-3 znver4", "PUSH (R64)"))
    assert own.borrowed == ()  # LLVM's model of the same core: a note says so
    assert any("PUSH (R64)" in note for note in own.notes)


def test_a_cost_that_was_not_measured_is_no_part_of_the_lower_bound():
    found = cyclescope.predict("vzeroall", measured("made 1-2-3 znver4", "VZEROALL"))
    assert (found.bounds["units"], found.bounds["front_end"]) == (6, 18 / 4)
    assert (found.lower, found.instructions[0].slots) == (1 / 4, 18)


# --- one look-up ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["zen6", "Znver", "neoverse-v9", "nativ"])
def test_a_wrong_name_gets_the_same_line_everywhere(run, name):
    lines = {
        run(*words)[2]
        for words in (
            ("analyze", "x86.s", "--arch", name),
            ("analyze", "x86.s", "--arch", "skylake", "--compare", name),
            ("machines", "show", name),
            ("machines", "show", name, "imul"),
            ("machines", "check", name),
        )
    }
    for call in (cyclescope.load_model, lambda one: cyclescope.predict("nop", one)):
        with pytest.raises(UsageError) as error:
            call(name)
        lines.add(f"error: {error.value}\n")
    (line,) = lines
    assert "did you mean" in line


@pytest.mark.parametrize("name", ["zen3", "ZNVER3", "file", "llvm:zen3", "LLVM:ZNVER3"])
def test_a_right_name_is_taken_everywhere(run, tmp_path, name):
    if name == "file":
        name = tmp_path / "mine.json"
        write_model(machines.load_model("znver3"), name)
    for words in (
        ("analyze", "x86.s", "--arch", name),
        ("machines", "show", name),
        ("machines", "check", name),
    ):
        code, out, _ = run(*words)
        assert (code, out.splitlines()[0].startswith("znver3")) == (0, True)
    _, out, _ = run("analyze", "x86.s", "--arch", "skylake", "--compare", name)
    assert "\nznver3 " in out
    assert cyclescope.load_model(name).name == cyclescope.predict("nop", name).machine == "znver3"
    assert cyclescope.load_model(str(name)).name == "znver3"


def test_what_is_behind_llvm_is_a_name_of_llvm_everywhere(run, tmp_path, monkeypatch):
    """Also where files have the name; what was measured here is none."""
    monkeypatch.chdir(tmp_path)
    write_model(machines.load_model("znver2"), tmp_path / "znver3")
    write_model(machines.load_model("znver2"), tmp_path / "llvm:znver3")
    for name in ("llvm:native", "llvm:zen6", "llvm:a/b", "llvm:mine.json", "llvm:"):
        lines = {
            run(*words)[2]
            for words in (
                ("analyze", "x86.s", "--arch", name),
                ("machines", "show", name),
                ("compare", "skylake", name),
                ("validate", "--measured", "any.csv", "--arch", name),
            )
        }
        assert len(lines) == 1, name
    assert run("compare", "llvm:znver3", "llvm:znver2")[1].startswith("llvm:znver3 and llvm:znver2\n")
    assert cyclescope.load_model("llvm:znver3").name == sources.source("llvm:znver3").model.name == "znver3"


def test_a_file_that_changes_is_read_again(tmp_path):
    path = tmp_path / "mine.json"
    write_model(machines.load_model("znver3"), path)
    assert cyclescope.predict("nop", path).machine == "znver3"
    write_model(machines.load_model("znver2"), path)
    assert cyclescope.predict("nop", path).machine == "znver2"


def test_a_host_that_llvm_has_no_model_of_has_none(monkeypatch):
    class Old:
        machine, llvm = "AuthenticAMD 10-1-1 amdfam10", "amdfam10"

    monkeypatch.setattr(machines, "this_host", Old)
    monkeypatch.setattr(machines, "_measured", lambda machine: None)
    assert machines.host_machine("x86-64") is None
    assert machines.default_machine("x86-64").name == instruction_set("x86-64").default_machine


# --- widths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "slots", "kind"),
    [
        ("skylake", 6, ASSUMED), ("neoverse-n1", 4, PUBLISHED), ("neoverse-v2", 8, PUBLISHED),
        ("znver5", 8, MEASURED), ("cortex-a76", 4, PUBLISHED), ("cortex-a77", 3, ASSUMED),
    ],
)  # fmt: skip
def test_how_a_width_is_known(name, slots, kind):
    width = library.shipped(name).width
    assert (width.slots, width.kind) == (slots, kind)
    assert width.source


def test_llvm_s_own_width_is_there_to_compare_with():
    assert library.llvm_model("neoverse-n1").core.width == 3
    assert library.llvm_model("zen5").core.width == 6


def test_an_assumed_width_is_no_part_of_the_lower_bound(run):
    assumed = cyclescope.predict("nop\n" * 12, "skylake")
    assert (assumed.cycles, assumed.lower, assumed.interval[0]) == (2, 0, 0)
    assert assumed.width.kind == ASSUMED
    code, out, _ = run("analyze", "arm.s", "--arch", "cortex-a77")
    assert (code, "front end (assumed width 3)" in out) == (0, True)
    assert "(assumed" not in run("analyze", "arm.s", "--arch", "neoverse-n1")[1]


def test_of_a_known_width_the_slots_count_that_are_sure():
    """LLVM's slots of an instruction are not known to be right, and a branch may be fused."""
    found = cyclescope.predict("xchg rax, rbx\n" * 6 + "lea rax, [rbx]\njo .-4", "znver3")
    assert [row.slots for row in found.instructions] == [2] * 6 + [1, 1]
    assert found.bounds["front_end"] == pytest.approx(14 / 6)
    assert found.lower == found.interval[0] == pytest.approx(7 / 6)


def test_no_garbage_is_looked_for_while_a_model_is_read(monkeypatch):
    looked = []
    monkeypatch.setattr(library, "sound", lambda model, where: looked.append(gc.isenabled()) or model)
    assert gc.isenabled()
    machines.load_model("znver4")
    assert looked == [False]
    assert gc.isenabled()
