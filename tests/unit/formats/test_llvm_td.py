"""Drafts of scheduling models: what is in them, and that llvm-tblgen takes them where it is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import combinations
from pathlib import Path

import msgspec
import pytest

from cyclescope.errors import CyclescopeError
from cyclescope.formats.llvm_td import BEFORE, write
from cyclescope.isa.registry import instruction_sets
from cyclescope.model.machine import FormCost, Operation
from tests.support.models import exchanged

NAMES = ("llvm-tblgen", *(f"llvm-tblgen-{n}" for n in range(14, 24)))
TBLGEN = next((found for name in NAMES if (found := shutil.which(name))), None)
INCLUDES = sorted(path.parents[2] for path in Path("/usr").glob("*/llvm-*/include/llvm/Target/Target.td"))
INCLUDES += sorted(path.parents[2] for path in Path("/usr/include").glob("llvm-*/llvm/Target/Target.td"))
MUL, ADC, LOAD = "IMUL (R64, R64)", "ADC_11 (R64, R64)", "MOV (R64, M64)"


def draft(**costs):
    names = {"mul": MUL, "adc": ADC, "load": LOAD}
    return write(msgspec.structs.replace(exchanged(1), forms={names[k]: cost for k, cost in costs.items()}))


def cost(*operations, latencies=None, slots=1.0, **more):
    return FormCost(slots, operations, latencies or {"op1->op1": 3.0, "op2->op1": 3.0}, 1.0, **more)


def opcodes(text):
    lists = re.findall(r"\(instrs\s+([^)]*)\)", text)
    return [name for found in lists for name in re.split(r"[,\s]+", found.strip())]


def test_forms_that_cost_the_same_share_a_class():
    one = cost(Operation((0, 1)))
    text = draft(mul=one, adc=one).text
    assert "def Znver9Write0 : Znver9Cost<[Znver9Port0_1], [1], 3, 1>;" in text
    assert "(instrs ADC64rr, IMUL64rr)>;" in text
    assert "def Znver9Port0_1 : ProcResGroup<[Znver9Port0, Znver9Port1]>;" in text
    assert "Write1" not in text
    assert "let IssueWidth = 6;" in text
    assert "let LoadLatency = 4;" in text


def test_later_sources_have_an_advance():
    text = draft(adc=cost(Operation((0,)), latencies={"op1->op1": 3.0, "op2->op1": 1.0})).text
    assert "def Znver9Later2 : SchedReadAdvance<2>;" in text
    assert "InstRW<[Znver9Write0, ReadDefault, Znver9Later2], (instrs ADC64rr)>" in text


def test_addresses_are_operands_of_their_own():
    text = draft(load=cost(Operation((0,)), latencies={"op2.address->op1": 4.0, "op2.index->op1": 3.0})).text
    assert "InstRW<[Znver9Write0, ReadDefault, ReadDefault, Znver9Later1], (instrs MOV64rm)>" in text


@pytest.mark.parametrize(
    ("count", "cycles", "whole"),
    [(1, 1, 1), (2, 1, 2), (1, 0.5, 1), (1, 4.2, 4), (1, 4.4, 5), (1, 4.24, 4), (1, 4.26, 5)],
)
def test_cycles_are_whole(count, cycles, whole):
    text = draft(mul=cost(Operation((0,), count, cycles))).text
    assert f"[Znver9Port0], [{whole}], 3" in text


def test_what_is_left_out_is_said():
    found = draft(mul=FormCost(latencies={"op1->op1": 3.0}), adc=cost(Operation((0,))))
    assert [(item.place, item.reason) for item in found.left_out] == [(MUL, "its ports are not known")]
    with pytest.raises(CyclescopeError, match="no ports"):
        write(msgspec.structs.replace(exchanged(1), ports=(), forms={}))
    with pytest.raises(CyclescopeError, match="no form"):
        draft(mul=FormCost(latencies={"op1->op1": 3.0}))


def test_sets_of_ports_that_overlap_are_in_one_that_has_both():
    text = draft(mul=cost(Operation((0, 1))), adc=cost(Operation((1, 2))), load=cost(Operation((2, 3)))).text
    groups = [set(found.split(", ")) for found in re.findall(r"ProcResGroup<\[([^]]*)\]>", text)]
    assert len(groups) > 3
    for one, other in combinations(groups, 2):
        assert not one & other or any(one | other <= group for group in groups)


def test_nothing_from_outside_leaves_its_line():
    nasty = msgspec.structs.replace(
        exchanged(1).provenance, source="a\ndef Evil : ProcResource<9>;", notes=("b\x1b\ninclude",)
    )
    text = write(msgspec.structs.replace(exchanged(1), name="x\n} y", provenance=nasty)).text
    assert not re.search(r"^(def Evil|include)", text, re.MULTILINE)


@pytest.mark.skipif(TBLGEN is None or not INCLUDES, reason="no llvm-tblgen with its includes")
@pytest.mark.parametrize("isa", [record.name for record in instruction_sets()])
def test_llvm_takes_it(isa, tmp_path):
    text = write(exchanged(2, isa)).text
    (tmp_path / "draft.td").write_text(text)
    found = opcodes(text)
    assert len(found) == len(set(found)) > 2
    (tmp_path / "all.td").write_text(f"""
        include "llvm/Target/Target.td"
        class Known : Instruction {{
          let Namespace = "X"; let OutOperandList = (outs); let InOperandList = (ins); let AsmString = "";
        }}
        {"".join(f"def {name} : Known; " for name in found)}
        def XInstrInfo : InstrInfo;
        def X : Target {{ let InstructionSet = XInstrInfo; }}
        include "draft.td"
        def : ProcessorModel<"measured", Znver9Model, []>;
    """)
    version = int(re.search(r"LLVM version (\d+)", subprocess.run(
        [TBLGEN, "--version"], capture_output=True, text=True, check=True).stdout)[1])  # fmt: skip
    options = [f"-D{BEFORE}"] if version < 18 else []
    done = subprocess.run(
        [TBLGEN, "-gen-subtarget", *options, "-I", tmp_path, "-I", INCLUDES[-1], tmp_path / "all.td"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Znver9Write0" in done.stdout
