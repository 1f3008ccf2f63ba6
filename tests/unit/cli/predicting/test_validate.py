"""`cyclescope validate`, on a simulated core: sources of blocks, what is printed, kept and refused."""

from __future__ import annotations

import csv
import json
import shutil
from html import unescape

import msgspec
import pytest

from cyclescope.backend.base import Calibration, Capabilities
from cyclescope.model.facts import FUSION, CoreAnswer, Fact
from cyclescope.model.library import llvm_model
from cyclescope.model.schema import write_model
from tests.support.made.machine import IDENTITY
from tests.support.made.simulated_blocks import SimulatedBlocks, sample

BLOCKS = {"480fafc0": 3.0, "4801d8": 1.0, "488b07488b5e08": 0.0, "0f58c1": 0.0, "4889c84801d8": 0.0}
OWN = ("--predictors", "analytic,simulated", "--arch", "znver3")
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


class Simulated(SimulatedBlocks):
    def capabilities(self):
        return Capabilities("x86-64", "simulated core", 0, "simulated")

    def calibrate(self):
        return Calibration(1.0, 1.0, 100.0, 1.0, 0.0, 1e-9)

    def close(self):
        self.closed = True


@pytest.fixture
def opened(monkeypatch):
    """The simulated cores that commands opened, each as a Zen 3 of LLVM's."""
    found = []

    def open_backend(cpu=None, link=None):
        found.append(Simulated(llvm_model("znver3")))
        return found[-1], IDENTITY

    monkeypatch.setattr("cyclescope.infer.api.open_backend", open_backend)
    return found


@pytest.fixture
def blocks(tmp_path):
    path = tmp_path / "blocks.txt"
    path.write_text("\n".join(BLOCKS) + "\n")
    return path


def test_a_core_predicts_itself_and_all_is_in_the_json(cyclescope, opened, blocks):
    ran = cyclescope("validate", "--blocks", blocks, *OWN, "--json")
    found = json.loads(ran.out)
    assert ran.code == 0
    assert found["schema_version"] == 1
    assert found["machine"] == IDENTITY.machine
    assert found["model"] == "znver3"
    assert (found["given"], found["notion"]) == (5, "unrolled")
    assert found["blocks"]["tried"] == found["blocks"]["clean"] == 5
    simulated = found["predictors"]["simulated"]
    assert simulated["mape"] == simulated["median"] == simulated["failures"] == 0
    assert simulated["kendall_tau"] == 1
    assert simulated["within_5"] == simulated["within_10"] == 100
    needed = {"mape", "median", "kendall_tau", "within_5", "within_10", "failures", "cpu_seconds_per_1000"}
    for one in found["predictors"].values():
        assert needed | {"interval_coverage"} <= set(one)
    assert set(found["notions"]) == {"unrolled", "loop"}
    assert found["notions"]["unrolled"]["predictors"] == found["predictors"]
    for row in found["notions"]["unrolled"]["rows"]:
        assert row["cycles"] == pytest.approx(BLOCKS[row["hex"]] or row["cycles"])
    assert opened[0].closed


def test_the_text_has_every_table(cyclescope, opened, blocks):
    out = cyclescope("validate", "--blocks", blocks, *OWN).out
    for words in (
        "measured on MadeByHand", "copies without a loop: 5 tried, 5 clean", "loops of one copy: 5 tried",
        "MAPE", "tau", "by kind of instructions", "by number of instructions", "by bound",
    ):  # fmt: skip
        assert words in out
    assert "furthest off on" not in out, "the core of the model is predicted to the last digit"


def test_blocks_that_another_core_is_off_on_are_listed(cyclescope, opened, blocks):
    assert "furthest off on" in cyclescope("validate", "--blocks", blocks, "--arch", "atom").out


def test_one_notion_and_a_sample(cyclescope, opened, blocks):
    found = json.loads(
        cyclescope("validate", "--blocks", blocks, *OWN, "--as", "loop", "--sample", "2", "--json").out
    )
    assert set(found["notions"]) == {"loop"}
    assert (found["given"], found["blocks"]["tried"]) == (5, 2)


def test_lines_that_are_no_blocks_are_notes(cyclescope, opened, tmp_path):
    path = tmp_path / "some.txt"
    path.write_text("4801d8\n48ff\n0f05\n")
    ran = cyclescope("validate", "--blocks", path, *OWN, "--as", "unrolled")
    assert ran.code == 0
    assert f"note: {path}, line 2: " in ran.err
    assert "2 tried, 1 clean, 1 failed" in ran.out
    assert "system instruction" in ran.out


def test_what_was_kept_is_judged_again(cyclescope, opened, blocks, tmp_path):
    kept = tmp_path / "timed.csv"
    first = json.loads(cyclescope("validate", "--blocks", blocks, *OWN, "--output", kept, "--json").out)
    again = json.loads(cyclescope("validate", "--measured", kept, *OWN, "--json").out)
    assert len(opened) == 1
    assert again["blocks"] == first["blocks"]
    for name, one in first["predictors"].items():
        other = again["predictors"][name]
        assert other["median"] == pytest.approx(one["median"], abs=0.1)  # four decimals are kept
    with kept.open() as file:
        rows = list(csv.DictReader(file))
    assert {row["notion"] for row in rows} == {"unrolled", "loop"}
    assert all(float(row["simulated"]) == pytest.approx(float(row["cycles"])) for row in rows)


def test_a_page(cyclescope, opened, blocks, tmp_path):
    page = tmp_path / "page.html"
    cyclescope("validate", "--blocks", blocks, *OWN, "--html", page)
    text = page.read_text()
    assert text.count("<figure>") == 4  # two notions, two predictors
    assert text.count("<circle") >= 4 * 5
    assert "http:" not in text
    assert "https:" not in text


def test_what_probes_are_worth_is_in_every_view(cyclescope, opened, blocks, tmp_path):
    facts = (Fact(FUSION, "CMP_39 (R64, R64) + JZ (Rel8)", CoreAnswer.FUSED),)
    machine, page = tmp_path / "machine.json", tmp_path / "page.html"
    write_model(msgspec.structs.replace(llvm_model("znver3"), facts=facts), machine)
    asked = ("validate", "--blocks", blocks, "--predictors", "analytic", "--arch", machine, "--ablation")
    ran = cyclescope(*asked, "--as", "loop", "--html", page)
    assert "what the probe found" in ran.out
    assert "fusion" in ran.out
    assert "What the probe found" in page.read_text()
    found = json.loads(cyclescope(*asked, "--as", "loop", "--json").out)
    (line,) = found["notions"]["loop"]["ablations"]
    assert (line["probe"], line["predictor"], line["blocks"]) == ("fusion", "analytic", 5)
    assert line["mape"] == line["mape_without"]


@needs_compiler
def test_blocks_of_our_loops_where_none_are_given(cyclescope, opened, monkeypatch):
    monkeypatch.setattr("cyclescope.session.compiled.COMPILERS", ("cc",))
    monkeypatch.setattr("cyclescope.session.compiled._LEVELS", (("-O1",),))
    found = json.loads(cyclescope("validate", *OWN, "--as", "unrolled", "--sample", "20", "--json").out)
    assert found["given"] > 100
    assert found["blocks"]["tried"] == 20


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--blocks", "a", "--measured", "b"), "more than one source"),
        (("--predictors", "uica"), "no predictor 'uica'"),
        (("--predictors", ","), "no predictor"),
        (("--blocks", "/absent"), "cannot be read"),
        (("--measured", "/absent"), "cannot be read"),
        (("--kernels", "/absent"), "is no folder"),
        (("--arch", "neoverse-v2"), "executes aarch64"),
        (("--arch", "znver3", "--ablation"), "nothing that a probe found"),
        (("--kernels", "--target", "exec:/absent"), "leave out --target"),
    ],
)
def test_wrong_requests_are_one_line(cyclescope, opened, arguments, words):
    ran = cyclescope("validate", *arguments)
    assert ran.code == 2
    assert words in ran.error


def test_disturbed_blocks_are_told_and_nothing_is_judged(cyclescope, monkeypatch, blocks):
    def open_backend(cpu=None, link=None):
        return Simulated(llvm_model("znver3"), lambda kernel, number, cycles: sample(cycles, 5)), IDENTITY

    monkeypatch.setattr("cyclescope.infer.api.open_backend", open_backend)
    ran = cyclescope("validate", "--blocks", blocks, *OWN, "--as", "unrolled")
    assert ran.code == 0
    assert "5 tried, 0 clean, 5 disturbed" in ran.out
    assert "MAPE" not in ran.out


@pytest.mark.parametrize(
    ("name", "lender"), [("zen5", "znver4"), ("llvm:zen5", "znver4"), ("llvm:zen4", None)]
)
def test_whose_costs_the_model_has_is_said(cyclescope, opened, blocks, tmp_path, name, lender):
    page, kept = tmp_path / "page.html", tmp_path / "timed.csv"
    model = f"znver5, borrowed from {lender}" if lender else "znver4"
    words = f"cyclescope's model is {model}\n"
    own = ("--arch", name, "--predictors", "analytic")
    timed = cyclescope("validate", "--blocks", blocks, *own, "--output", kept, "--html", page)
    assert words in timed.out
    assert f"computes with the model {model}." in unescape(page.read_text())
    again = cyclescope("validate", "--measured", kept, *own)
    assert words in again.out
    found = json.loads(cyclescope("validate", "--measured", kept, *own, "--json").out)
    assert (found["borrowed"] and found["borrowed"]["core"]) == lender
