"""Instructions that a core does not execute, although LLVM's model of it has costs of them."""

from __future__ import annotations

import shutil

import msgspec
import pytest

from cyclescope.analyze.decode.block import Block
from cyclescope.analyze.decode.decoder import decoder
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.isa.table import load_table
from cyclescope.model.extensions import _BUT, _LACKING, but, lacked
from cyclescope.model.library import shipped, summaries
from cyclescope.session.machines import load_model
from tests.support.code.blocks import block, toy

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)


def told(machine, found, **how):
    notes = Predictor(load_model(machine)).predict(found, simulate=False, **how).notes
    return [note for note in notes if "executes these" in note or "does not execute" in note]


@pytest.mark.parametrize(
    ("machine", "text", "lacks"),
    [
        ("haswell", "vaddps zmm0, zmm1, zmm2", "AVX512F"),
        ("haswell", "vfmadd231ps ymm0, ymm1, ymm2", ""),
        ("hsw", "vaddps zmm0, zmm1, zmm2", "AVX512F"),
        ("knl", "vaddps zmm0, zmm1, zmm2", ""),  # with Haswell's costs, but a core of its own
        ("skylake-avx512", "vaddps zmm0, zmm1, zmm2", ""),
        ("ivybridge", "vfmadd231ps ymm0, ymm1, ymm2", "FMA"),
        ("ivybridge", "vaddps ymm0, ymm1, ymm2", ""),
        ("nehalem", "vaddps ymm0, ymm1, ymm2", "AVX"),
        ("nehalem", "addps xmm0, xmm1", ""),
    ],
)
def test_a_note_names_what_the_core_lacks(machine, text, lacks):
    notes = told(machine, block(f"nop; {text}"))
    assert len(notes) == bool(lacks)
    assert all(f"lacks {lacks}, " in note and note.endswith(": line 2") for note in notes)


@pytest.mark.parametrize("machine", ["sifive-u74", "sifive-x280", "sifive-x390"])
def test_names_of_one_model_of_which_one_has_vectors(machine):
    code = bytes.fromhex("57848402")  # vadd.vv v8, v8, v9
    one = msgspec.structs.replace(decoder("riscv64").instruction(code, 0), line=3)
    notes = told(machine, Block((one,), "riscv64", "test"))
    assert len(notes) == (machine != "sifive-x390")
    assert all("sifive-x280 alone executes these" in note for note in notes)


def test_measured_machines_execute_what_they_have():
    found = load_model("haswell")
    measured = msgspec.structs.replace(
        found, provenance=msgspec.structs.replace(found.provenance, kind="measured")
    )
    notes = Predictor(measured).predict(block("vaddps zmm0, zmm1, zmm2"), simulate=False).notes
    assert not any("execute" in note for note in notes)


@pytest.mark.parametrize(
    ("text", "said"),
    [("vfmaddpd xmm0, xmm1, xmm2, xmm3", "FMA4"), ("xor edi, esi", ""), ("add eax, ebx", "")],
)
def test_what_a_measured_machine_lacks_is_told_where_no_form_of_it_was_measured(text, said):
    """The stand-in has what the core perhaps does not execute; an XOR alone is missing for another reason."""
    kept = {
        form.id for form in load_table("x86-64") if "FMA4" not in form.features and form.mnemonic != "XOR"
    }
    poor = msgspec.structs.replace(toy(), forms={n: c for n, c in toy().forms.items() if n in kept})
    notes = Predictor(poor, stand_in=toy()).predict(block(f"nop; {text}"), simulate=False).notes
    told = [note for note in notes if "was measured" in note]
    expected = f"no instruction of {said} was measured, perhaps as this core executes none: line 2"
    assert told == ([expected] if said else [])


def test_all_names_are_those_of_shipped_machines():
    known = {name for one in summaries() for name in (one.name, *one.aliases, *one.lends_to)}
    assert set(_LACKING) <= known
    assert set(_BUT) <= set(_LACKING)
    assert all(shipped(other).name == model for model, other in _BUT.items())


def test_extensions_by_name_and_by_beginning():
    assert lacked("haswell", ("AVX512F", "AVX512VL", "BASE")) == ("AVX512F", "AVX512VL")
    assert lacked("sandybridge", ("AVX",)) == lacked("unknown", ("AVX512F",)) == ()
    assert lacked("bdver1", ("FMA", "FMA4")) == ("FMA",)
    assert but("haswell") == ""
