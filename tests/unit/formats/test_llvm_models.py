"""Scheduling models of LLVM, as llvm-tblgen prints them, against what LLVM's tools make of them."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyclescope.errors import CyclescopeError
from cyclescope.formats.exchange import FormatError, ImportRequest
from cyclescope.formats.llvm.dump import read
from cyclescope.formats.llvm.patterns import opcode_pattern
from cyclescope.model.check import problems
from cyclescope.model.machine import EXTRACTED
from cyclescope.session.sources import source
from tests.support.files.llvm_records import chosen, dag, group, opcode, ref, refs, takes, target, unit

ADD, LOAD, MUL = "ADD_01 (R64, R64)", "ADD (R64, M64)", "IMUL (R64, R64)"


def found(tmp_path, records=None, column="big"):
    path = tmp_path / "x86.json"
    path.write_text((records or target()).text())
    return read(path, ImportRequest("m", "x86.json", column))


def ports(model, name):
    return {
        ("".join(sorted(model.ports[p] for p in op.ports)), op.count, op.cycles)
        for op in model.forms[name].operations
    }


def test_ports_and_cycles(tmp_path):
    model = found(tmp_path).model
    assert set(model.ports) == {"P0", "P1", "P2", "AGU0", "AGU1"}
    assert ports(model, ADD) == {("P0P1", 1, 1)}
    assert ports(model, LOAD) == {("P0P1", 1, 1), ("AGU0", 1, 1)}
    assert ports(model, "CMOVZ (R64, R64)") == {("P0", 1, 1)}
    assert (model.core.width, model.core.load_latency, model.core.reorder_buffer) == (4, 5, 100)


def test_what_takes_more_cycles_than_operations_keeps_a_port_busy(tmp_path):
    """Two of three micro-operations share the two cycles of the group, the third has ten of its own."""
    assert ports(found(tmp_path).model, "DIV (R64)") == {("P0", 1, 10), ("P0P1P2", 2, 1)}


def test_latencies_of_every_result(tmp_path):
    """The flags have a write of their own; an operand comes late to what that write is of alone."""
    latencies = found(tmp_path).model.forms[MUL].latencies
    assert latencies == {
        "op1->op1": 3, "op2->op1": 2, "op1->flags.CF": 4, "op2->flags.CF": 4, "op1->flags.OF": 4,
        "op2->flags.OF": 4,
    }  # fmt: skip


def test_what_is_loaded_takes_longer(tmp_path):
    latencies = found(tmp_path).model.forms[LOAD].latencies
    assert (latencies["op1->op1"], latencies["op2.address->op1"], latencies["op2.index->op1"]) == (1, 6, 6)


def test_results_beyond_the_writes_take_the_most(tmp_path):
    latencies = found(tmp_path).model.forms["DIV (R64)"].latencies
    assert latencies["op1->RDX"] == latencies["RAX->RAX"] == 20


def test_one_of_several_costs_is_that_of_all_other_operands(tmp_path):
    model = found(tmp_path).model
    assert model.forms["SHL (R64, I8)"].latencies["op1->op1"] == 1
    assert ports(model, "SHL (R64, I8)") == {("P2", 1, 1)}


def test_writes_behind_each_other(tmp_path):
    cost = found(tmp_path).model.forms["ADD (M64, R64)"]
    assert cost.slots == 6
    assert cost.latencies["op2->flags.ZF"] == 14
    assert sum(op.count * op.cycles for op in cost.operations) == 6


def test_what_a_model_does_not_say_is_told(tmp_path):
    told = {item.place: item.reason for item in found(tmp_path).refused}
    assert told == {
        "SUB64rr": "its instruction has no scheduling class in the model",
        "ROL64ri": "the model says that it has no such instruction",
    }
    small = found(tmp_path, column="SmallModel")
    assert {item.place: item.detail for item in small.refused}["CMOV64rr"] == "WriteCMOV"


def test_a_machine_is_chosen_by_its_cpu_or_its_model(tmp_path):
    assert found(tmp_path, column="BigModel").model.forms == found(tmp_path).model.forms
    with pytest.raises(FormatError, match="several machines"):
        found(tmp_path, column="")
    with pytest.raises(FormatError, match="no machine 'znver9'"):
        found(tmp_path, column="znver9")


def test_costs_are_as_sure_as_those_of_other_models_of_llvm(tmp_path):
    model = found(tmp_path).model
    assert model.provenance.kind == EXTRACTED
    assert "BigModel" in model.provenance.source
    assert not list(problems(model))


def test_a_file_is_known_by_its_contents(tmp_path):
    (tmp_path / "x86.json").write_text(target().text())
    assert MUL in source(f"{tmp_path / 'x86.json'}#big").model.forms


def without(*names):
    records = target()
    for name in names:
        del records.records[name]
    return records


def changed(name, **fields):
    records = target()
    records.records[name] |= fields
    return records


def grown(change):
    records = target()
    change(records)
    return records


@pytest.mark.parametrize(
    ("records", "why"),
    [
        (without("BigP0"), "no record 'BigP0'"),
        (changed("BigP0", NumUnits="two"), "record 'BigP0'"),
        (changed("BigP0", NumUnits=10**6), "more units"),
        (changed("BigP01", Resources=refs("BigP012")), "no resource of the model"),
        (changed("BigAGU", Super=ref("BigLoad")), "cannot have parts"),
        (changed("BigModel", IssueWidth=None), "record 'BigModel'"),
    ],
)
def test_what_is_no_model_is_refused_as_a_whole(records, why, tmp_path):
    with pytest.raises(FormatError, match=why):
        found(tmp_path, records)


@pytest.mark.parametrize(
    ("change", "place", "reason"),
    [
        (lambda t: t.put("a", "SchedAlias", MatchRW=ref("WriteCMOV"), AliasRW=ref("WriteCMOV"),
                         SchedModel=ref("BigModel")), "CMOV64rr", "names that stand for each other"),
        (lambda t: takes(t, "WriteCMOV", "BigNone", 1), "CMOV64rr", "a resource that is none of the model"),
        (lambda t: takes(t, "WriteCMOV", "BigP0", 1, 1, (1, 2)), "CMOV64rr", "as many cycles as resources"),
        (lambda t: takes(t, "WriteCMOV", "BigP0", -1), "CMOV64rr", "negative cycles"),
        (lambda t: takes(t, "WriteCMOV", "BigP0", 1, 1, (10**9,)), "CMOV64rr", "more than any instruction"),
        (lambda t: chosen(t, "x", "BigMul", dag("instregex", "(a")), "InstRW", "not understood"),
        (lambda t: chosen(t, "x", "BigMul", dag("instrs", 7)), "InstRW", "not understood"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_told_and_the_rest_is_read(change, place, reason, tmp_path):
    one = found(tmp_path, grown(change))
    assert any(item.place == place and reason in item.reason for item in one.refused)
    assert one.model.forms[ADD].latencies["op1->op1"] == 1


@pytest.mark.parametrize(
    "text", ['{"!instanceof": ', '{"!instanceof": 7}', "{}", '{"!instanceof": {}}', "[" * 9999]
)
def test_what_is_no_output_of_llvm_tblgen(text, tmp_path):
    (tmp_path / "x").write_text(text)
    with pytest.raises(CyclescopeError):
        read(tmp_path / "x", ImportRequest("m", "x", "big"))


# --- patterns -----------------------------------------------------------------------------------------

PARTS = st.sampled_from(
    [
        "A",
        "B",
        "AB",
        "V?",
        "(A|B)",
        "(Z|Z128)?",
        "[AB]",
        "[^A]",
        "[0-9]+",
        "A*",
        ".",
        "$",
        "^",
        "B{2}",
        "(AB)?",
    ]
)
NAMES = st.text("AB12Z8", max_size=7)


@given(st.lists(PARTS, min_size=1, max_size=6).map("".join), NAMES)
def test_patterns_fit_what_regular_expressions_fit(pattern, name):
    assert opcode_pattern(pattern)(name) == bool(re.match(pattern, name))


@pytest.mark.parametrize(
    "pattern", ["(a", "a)", "*", "[a", "a{", "a{x}", "\\", "\\d", "(" * 99 + ")" * 99, "a" * 9999]
)
def test_what_is_no_pattern(pattern):
    with pytest.raises(ValueError, match=r"."):
        opcode_pattern(pattern)


@pytest.mark.parametrize("pattern", ["(A*)*$", "((A?){99}){99}Z", "(A|A|A|A)*" * 30 + "$", "A?" * 900 + "Z"])
def test_no_pattern_takes_long(pattern):
    fits = opcode_pattern(pattern)
    start = time.process_time()
    assert not fits("A" * 40 + "B")
    assert time.process_time() - start < 5


def test_unit_and_group_names_do_not_leave_a_line(tmp_path):
    records = target()
    unit(records, "P9\n\x1b[2J")
    group(records, "P90", "BigP0 BigP1")
    opcode(records, "INC64r", "WriteALU", "EFLAGS")
    assert all(port.isprintable() for port in found(tmp_path, records).model.ports)
    assert json.loads(records.text())
