"""`cyclescope analyze`."""

from __future__ import annotations

import json
import re
import shutil
from io import BytesIO
from types import SimpleNamespace

import jsonschema
import msgspec
import pytest

from cyclescope.analyze.choose.source import read_block
from cyclescope.analyze.read.assemblers import tools
from cyclescope.errors import UsageError
from cyclescope.infer import host_model
from cyclescope.measure.blocks import CLEAN, BlockTiming
from cyclescope.measure.database import default_store
from cyclescope.model.machine import MEASURED, Provenance
from cyclescope.model.schema import write_model
from cyclescope.report.predictions.views import VIEWS
from cyclescope.session import machines, predict
from cyclescope.session.machines import load_model
from tests.support.code.blocks import SUM_LOOP as LOOP
from tests.support.code.blocks import toy
from tests.support.files.schemas import ANALYSIS
from tests.support.made.machine import IDENTITY

pytestmark = pytest.mark.skipif(shutil.which("as") is None, reason="needs as of binutils")
FAILURE, USAGE, UNKNOWN = 1, 2, 3


@pytest.fixture
def host(monkeypatch, tmp_path):
    """This host is a Zen 4 whose store is in a folder of the test."""
    identity = msgspec.structs.replace(IDENTITY, llvm="znver4")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(host_model, "this_machine", lambda: identity)
    monkeypatch.setattr(machines, "this_host", lambda: identity)
    return default_store(identity.machine)


def test_the_innermost_loop_on_a_machine_by_name(cyclescope, kernel):
    done = cyclescope("analyze", kernel, "--arch", "skylake")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "skylake (x86-64), from LLVM scheduling models 22.1.8"
    assert lines[1].endswith("4 instructions")
    assert ".L3" in lines[1]
    assert "3.00 cycles per iteration, bound by: loop-carried dependency" in done.out
    assert "\n    3.00  line 4\n" in done.out
    assert "\033" not in done.out


@pytest.mark.parametrize("option", ["--arch", "-mcpu", "--mcpu"])
@pytest.mark.parametrize("name", ["skylake", "SKL", "Skylake"])
def test_names_of_machines_and_of_the_option(cyclescope, kernel, option, name):
    assert cyclescope("analyze", kernel, f"{option}={name}").out.startswith("skylake (x86-64)")


def test_a_machine_in_a_file(cyclescope, kernel, tmp_path):
    write_model(toy(), tmp_path / "toy.json")
    assert cyclescope("analyze", kernel, "--arch", tmp_path / "toy.json").out.startswith("toy (x86-64)")


def test_json(cyclescope, kernel):
    data = json.loads(cyclescope("analyze", kernel, "--arch", "skylake", "--json").out)
    jsonschema.Draft202012Validator(ANALYSIS).validate(data)
    assert (data["cycles"], data["bottleneck"], data["loop"]) == (3, "loop_carried", True)
    assert data["pointer_increment"] == 8
    assert data["loop_carried"][0]["lines"] == [4]
    assert [one["line"] for one in data["instructions"]] == [4, 5, 6, 7]


REGIONS = "# LLVM-MCA-BEGIN one\nimul %rax, %rax\n# LLVM-MCA-END\n# LLVM-MCA-BEGIN\nnop\ninc %rbx\n"


def test_all_marked_regions(cyclescope, tmp_path):
    path = tmp_path / "k.s"
    path.write_text(REGIONS)
    options = ("analyze", path, "--arch", "skylake")
    out = cyclescope(*options).out
    first, second = out.split("\n\n\n")
    assert "one, between the LLVM-MCA markers in lines 1 and 3, 1 instruction" in first
    assert "from line 4 to the end of the code" in second
    data = json.loads(cyclescope(*options, "--json").out)
    assert [one["cycles"] for one in data["regions"]] == [3, 1]
    assert cyclescope(*options, "--markdown").out.count("\n\n---\n\n") == 1
    assert cyclescope(*options, "--region", "one").out == first + "\n"
    done = cyclescope(*options, "--compare", "znver3")
    assert (done.code, done.err) == (2, f"error: {path} has 2 marked regions: choose one of one, 2\n")


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e-320", "0", "-1", "1e400", "x", ""])
def test_numbers_that_one_cannot_compute_with(cyclescope, kernel, number):
    done = cyclescope("analyze", kernel, "--arch", "skylake", f"--unroll-factor={number}")
    said = f"'--unroll-factor': '{number}' is no number from 1e-06 to 1e+09"
    assert (done.code, done.out, done.err) == (2, "", f"error: Invalid value for {said}\n")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e-320, -1, 1e10, "2", True, None])
def test_the_library_refuses_them_as_well(number):
    with pytest.raises(UsageError, match=r"the unroll factor .* is no number from 1e-06 to 1e"):
        predict.predict("imul rax, rbx", "znver4", unroll_factor=number)
    assert predict.predict("imul rax, rbx", "znver4", unroll_factor=2).per_unit == 1.5


@pytest.mark.parametrize("code", ["480fafc3", "0x480fafc3", "cc", "90 90"])
def test_machine_code_in_place_of_a_file(cyclescope, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = cyclescope("analyze", code, "--arch", "skylake", "--whole")
    assert done.code == 0, done.err
    (tmp_path / "cc").write_text("imul %rax, %rbx\n")
    assert "imul" in cyclescope("analyze", "cc", "--arch", "skylake", "--whole").out


# --- the machine ----------------------------------------------------------------------------------


def test_this_host_by_default(cyclescope, kernel, host):
    assert cyclescope("analyze", kernel).out.startswith("znver4 (x86-64), from LLVM")


def test_this_host_as_measured_once_it_has_ports(cyclescope, kernel, host, monkeypatch):
    host.parent.mkdir(parents=True)
    host.touch()
    origin = Provenance(MEASURED, "A CPU, measured by cyclescope", "0", date="2026-11-21")
    model = msgspec.structs.replace(toy(), name="made 1-2-3 znver4", provenance=origin)
    forms = {name: msgspec.structs.replace(cost, operations=None) for name, cost in model.forms.items()}
    portless = msgspec.structs.replace(model, ports=(), forms=forms)
    monkeypatch.setattr(host_model, "stored_model", lambda path: portless)
    assert cyclescope("analyze", kernel).out.startswith("znver4 (x86-64), from LLVM")
    monkeypatch.setattr(host_model, "stored_model", lambda path: model)
    first = cyclescope("analyze", kernel).out.splitlines()[0]
    assert first == "made 1-2-3 znver4 (x86-64), from A CPU, measured by cyclescope, 2026-11-21"
    assert cyclescope("analyze", kernel, "--arch", "native").out.splitlines()[0] == first


def test_what_was_not_measured_is_taken_from_the_model_of_the_core():
    measured = msgspec.structs.replace(toy(), name="made 1-2-3 znver4", provenance=Provenance(MEASURED))
    other = machines.stand_in_for(measured)
    assert other is not None
    assert other.name == "znver4"
    assert machines.stand_in_for(toy()) is None
    assert machines.stand_in_for(msgspec.structs.replace(measured, name="made 1-2-3 unknown")) is None
    assert machines.stand_in_for(msgspec.structs.replace(measured, name="neoverse-v2")) is None


def test_a_host_that_nothing_is_known_of(cyclescope, kernel, host, monkeypatch):
    monkeypatch.setattr(machines, "this_host", lambda: msgspec.structs.replace(IDENTITY, llvm=""))
    told = "no model of this host for x86-64 code: sapphirerapids, or name one with --arch\n"
    done = cyclescope("analyze", kernel)
    assert (done.code, done.err) == (0, told)
    monkeypatch.setattr(machines, "this_host", lambda: None)
    done = cyclescope("analyze", kernel, "--json")
    assert (done.code, done.err) == (0, told)
    assert json.loads(done.out)["machine"] == "sapphirerapids"


@pytest.mark.parametrize(("isa", "machine"), [("aarch64", "neoverse-v2"), ("riscv64", "sifive-p670")])
def test_code_of_another_isa_has_a_machine_that_is_always_the_same(cyclescope, tmp_path, isa, machine):
    if not tools(isa):
        pytest.skip(f"no assembler for {isa}: a cross as, llvm-mc, clang or zig")
    path = tmp_path / "other.s"
    path.write_text({"aarch64": "ldr x0, [x1], 8\n", "riscv64": "ld a0, 0(a1)\n"}[isa])
    done = cyclescope("analyze", path)
    assert done.code == 0
    assert done.out.startswith(f"{machine} ({isa})")
    assert done.err == f"no model of this host for {isa} code: {machine}, or name one with --arch\n"


# --- options --------------------------------------------------------------------------------------


def test_lines_and_function_and_whole(cyclescope, kernel):
    def lines(*options):
        data = json.loads(cyclescope("analyze", kernel, "--arch", "skylake", "--json", *options).out)
        return [one["line"] for one in data["instructions"]]

    assert lines("--lines", "2,5-6") == [2, 5, 6]
    assert lines("--whole") == [2, 4, 5, 6, 7, 8]
    assert lines("--function", "sum") == [4, 5, 6, 7]


def test_fixed_and_unroll_factor(cyclescope, kernel, tmp_path):
    write_model(toy(), tmp_path / "toy.json")
    options = ("--arch", tmp_path / "toy.json", "--fixed", "--unroll-factor", "2", "--json")
    data = json.loads(cyclescope("analyze", kernel, *options).out)
    assert data["fixed"]
    assert data["bounds"]["ports_fixed"] == 2  # imul on a, three more on a, b and c
    assert data["derived"]["per_unit"] == data["cycles"] / 2


def test_the_graph(cyclescope, kernel, tmp_path):
    target = tmp_path / "graph.dot"
    assert cyclescope("analyze", kernel, "--arch", "skylake", "--dot", target).code == 0
    assert target.read_text().startswith("digraph dependencies {")
    target = tmp_path / "graph.svg"
    assert cyclescope("analyze", kernel, "--arch", "skylake", "--svg", target).code == 0
    assert target.read_text().startswith("<svg xmlns=")
    done = cyclescope("analyze", kernel, "--arch", "skylake", "--dot", tmp_path / "no" / "graph.dot")
    assert (done.code, "cannot be written" in done.error) == (USAGE, True)


def test_pages(cyclescope, kernel, tmp_path):
    target = tmp_path / "page.html"
    done = cyclescope("analyze", kernel, "--arch", "skylake", "--html", target, "--markdown")
    assert done.code == 0
    assert target.read_text().startswith("<!doctype html>")
    assert "| if this alone were the bound | cycles |" in done.out
    done = cyclescope("analyze", kernel, "--arch", "skylake", "--json", "--markdown")
    assert (done.code, done.error) == (
        USAGE,
        "JSON and Markdown at once: choose one of --json and --markdown",
    )


def test_machines_side_by_side(cyclescope, kernel):
    done = cyclescope("analyze", kernel, "--arch", "skylake", "--compare", "zen2", "--compare", "haswell")
    assert [line.split()[0] for line in done.out.splitlines()] == ["machine", "skylake", "znver2", "haswell"]
    done = cyclescope("analyze", kernel, "--compare", "zen2", "--dot", "x")
    assert done.code == USAGE
    told = re.fullmatch("several machines are compared as text, (.*) or --html", done.error.partition(":")[0])
    assert told and told[1].split(", ") == [
        view.words for view in reversed(VIEWS) if view.comparison and view.words
    ]


def test_a_page_of_machines_side_by_side(cyclescope, kernel, tmp_path):
    target = tmp_path / "page.html"
    done = cyclescope("analyze", kernel, "--arch", "skylake", "--compare", "zen2", "--html", target, "--json")
    assert (done.code, len(json.loads(done.out)["machines"])) == (0, 2)
    text = target.read_text()
    assert "cycles per iteration on 2 machines</h1>" in text
    assert all(f">{name}</a>" in text for name in ("skylake", "znver2"))


# --- refusals -------------------------------------------------------------------------------------


def test_unknown_instructions_are_refused(cyclescope, tmp_path):
    path = tmp_path / "fma.s"
    path.write_text("vfmadd231pd %ymm1, %ymm2, %ymm3\naddq $1, %rax\n")
    done = cyclescope("analyze", path, "--arch", "silvermont")
    assert done.code == UNKNOWN
    assert "1 of 2 instructions have no known cost on silvermont: line 1: 'vfmadd231pd" in done.error
    done = cyclescope("analyze", path, "--arch", "silvermont", "--ignore-unknown")
    assert done.code == 0
    assert "UNKNOWN, left out" in done.out
    done = cyclescope("analyze", path, "--arch", "silvermont", "--compare", "skylake")
    assert (done.code, "no known cost" in done.out) == (0, True)
    done = cyclescope("analyze", path, "--arch", "tremont", "--compare", "skylake")
    rows = [line for line in done.out.splitlines() if "no known cost" in line]
    assert [row.startswith("tremont, borrowed from silvermont ") for row in rows] == [True]
    done = cyclescope("analyze", path, "--arch", "silvermont", "--compare", "atom")
    assert done.code == UNKNOWN


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--arch", "nosuch"), USAGE, "no machine model 'nosuch'"),
        (("--arch", "skylake", "--lines", "99"), USAGE, "there is no line 99"),
        (("--arch", "skylake", "--unroll-factor", "0"), USAGE, "Invalid value for '--unroll-factor'"),
        (("--arch", "skylake", "--function", "nosuch"), USAGE, "nosuch"),
    ],
)
def test_wrong_requests(cyclescope, kernel, options, code, message):
    done = cyclescope("analyze", kernel, *options)
    assert (done.code, done.out) == (code, "")
    assert message in done.error


def test_input_that_is_not_there_or_empty(cyclescope, tmp_path):
    empty = tmp_path / "empty.s"
    empty.touch()
    assert cyclescope("analyze", tmp_path / "no.s", "--arch", "skylake").code == 2
    done = cyclescope("analyze", empty, "--arch", "skylake")
    assert (done.code, "is empty" in done.error) == (FAILURE, True)


# --- the library ----------------------------------------------------------------------------------


def test_the_library_takes_text_bytes_files_and_blocks(kernel):
    import cyclescope

    found = cyclescope.predict(LOOP, "skylake")
    assert isinstance(found, cyclescope.Prediction)
    assert found.cycles == cyclescope.predict(kernel, "SKL").cycles == 3
    assert cyclescope.predict(read_block(LOOP), load_model("skylake")).lcd == 3
    assert cyclescope.predict(bytes.fromhex("480fafc0"), "znver3").lcd == 3
    one = toy()
    assert predict.predictor_of(one) is predict.predictor_of(one)
    assert predict.predictor_of("znver3") is predict.predictor_of("znver3")
    assert predict.predictor_of(msgspec.structs.replace(one)) is not predict.predictor_of(one)


def test_what_the_simulated_core_does(cyclescope, tmp_path):
    code, page = tmp_path / "a.s", tmp_path / "a.html"
    code.write_text(".L1:\n imul %rbx, %rax\n jne .L1\n")
    done = cyclescope(
        "analyze", code, "--arch", "skylake", "--simulate", "--trace", page, "--what-if", "latency=2:1"
    )
    assert (
        done.code == 0 and "where the time goes" in done.out and "1.00 with latency=2:1 (-2.00)" in done.out
    )
    assert "cycle by cycle" in page.read_text()
    done = cyclescope("analyze", code, "--arch", "skylake", "--simulate", "--json")
    assert '"shares":[{' in done.out and '"what_if":[]' in done.out
    done = cyclescope("analyze", code, "--arch", "skylake", "--simulate", "--timeline")
    assert "a timeline and the simulation at once" in done.error
    code.write_text(".L1:\n mul x0, x1, x2\n b.ne .L1\n")
    done = cyclescope("analyze", code, "--arch", "neoverse-v2", "--run")
    assert done.error == "the code is aarch64, which this machine does not execute: leave out --run"


def test_beside_what_runs_stands_what_is_predicted_of_just_that(monkeypatch):
    """The loop's own end is left out: seven NOPs as copies, and with an end that is one slot more."""
    timing = BlockTiming(2.0, 0.0, 1.0, CLEAN)
    monkeypatch.setattr("cyclescope.session.validation.timed", lambda backend, codes, how: [("", timing)])
    here = BytesIO(), SimpleNamespace(emulated=False)
    monkeypatch.setattr("cyclescope.infer.api.open_backend", lambda: here)
    monkeypatch.setattr("cyclescope.session.predict.host_isa", lambda: "x86-64")
    block = read_block(".L1:\n" + 7 * " nop\n" + " cmpq %rax, %rbx\n jne .L1\n")
    copies, loop = predict.measured_loop(block, predict.predictor_of("skylake"))
    assert (copies.notion, loop.notion) == ("unrolled", "loop")
    assert (copies.cycles, loop.cycles) == (2.0, 2.0)
    assert (copies.predicted, loop.predicted) == (7 / 6, 8 / 6)
