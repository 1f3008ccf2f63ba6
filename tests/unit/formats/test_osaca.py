"""OSACA's model files: what is written so that OSACA computes what the model says."""

from __future__ import annotations

import msgspec
import pytest
import yaml

from cyclescope.formats.exchange import ImportRequest
from cyclescope.formats.osaca.operands import latency
from cyclescope.formats.rates import EXPLAINED, with_rates
from cyclescope.formats.registry import by_name
from cyclescope.isa.table import load_table
from cyclescope.model.machine import FormCost, Operation
from tests.support.made.models import SIZES, exchanged

TABLE = load_table("x86-64")
ALU, LOAD, STORE = Operation((0, 1)), Operation((3, 4)), Operation((2,))
MOVES = {
    "MOV (R64, M64)": FormCost(1, (LOAD,), {"op2.address->op1": 5.0}, 0.5, confidence="high"),
    "MOV (M64, R64)": FormCost(1, (STORE,), {}, 1.0, confidence="high"),
    "MOVUPS (XMM, M128)": FormCost(1, (LOAD,), {"op2.address->op1": 6.0}, 0.5, confidence="high"),
    "MOVUPS (M128, XMM)": FormCost(1, (STORE,), {}, 1.0, confidence="high"),
}


def written(**costs):
    """Entries by first name and kinds of operands, and what was left out, of some forms beside moves."""
    forms = {name.replace("__", " "): cost for name, cost in costs.items()}
    found = by_name("osaca").write(msgspec.structs.replace(exchanged(1), forms=MOVES | forms))
    entries = {}
    for entry in yaml.safe_load(found.text)["instruction_forms"]:
        name = entry["name"] if isinstance(entry["name"], str) else entry["name"][0]
        kinds = [op.get("name", op["class"][:3]) for op in entry["operands"]]
        entries[" ".join((name, *kinds))] = entry
    return entries, {item.place: item.reason for item in found.left_out}, yaml.safe_load(found.text)


def cost(*operations, confidence="high", **more):
    return FormCost(1.0, operations, confidence=confidence, **({"throughput": 0.5} | more))


def addition(*operations, **more):
    latencies = {"op1->op1": 2.0, "op2.address->op1": 8.0, "op2.data->op1": 7.0}
    return cost(*operations, latencies=latencies, **more)


REGISTERS = cost(ALU, latencies={"op1->op1": 2.0, "op2->op1": 2.0})


def test_what_osaca_makes_of_a_load_is_left_to_it():
    """Of an entry of its own it would add the load to every chain through the register."""
    forms = {"ADDSD (XMM, XMM)": REGISTERS, "ADDSD (XMM, M64)": addition(ALU, LOAD)}
    entries, left, _ = written(**forms)
    assert entries["addsd xmm xmm"]["latency"] == 2.0
    assert "addsd mem xmm" not in entries
    assert "makes it of a load" in left["ADDSD (XMM, M64)"]


@pytest.mark.parametrize("ports", [(ALU,), None])
def test_an_immediate_that_is_one_number_stands_for_no_other(ports):
    slow = FormCost(8.0, ports, {"op1->op1": 2.0}, 3.98)
    costs = {"RCL (R64, I8)": slow, "RCL (R64, 0)": REGISTERS, "RCL (R64, 1)": REGISTERS}
    for names in (list(costs), list(costs)[::-1]):
        entries, left, _ = written(**{name: costs[name] for name in names})
        assert entries["rcl imm gpr"]["throughput"] == 3.98
        assert "RCL (R64, 1)" in left


def test_other_ports_than_those_of_the_parts_have_an_entry_with_the_latency_between_registers():
    entries, _, _ = written(**{"ADDSD (XMM, XMM)": REGISTERS, "ADDSD (XMM, M64)": addition(STORE, LOAD)})
    assert entries["addsd mem xmm"]["latency"] == 2.0
    assert entries["addsd mem xmm"]["port_pressure"] == [[1.0, ["2"]], [1.0, ["3", "4"]]]


@pytest.mark.parametrize("doubtful", [addition(STORE, LOAD, confidence="low"), FormCost(throughput=0.5)])
def test_doubtful_ports_of_a_load_and_more_are_made_of_the_parts(doubtful):
    entries, left, _ = written(**{"ADDSD (XMM, XMM)": REGISTERS, "ADDSD (XMM, M64)": doubtful})
    assert "addsd mem xmm" not in entries
    assert "makes it of a load" in left["ADDSD (XMM, M64)"]


@pytest.mark.parametrize(("share", "own"), [(0.98, False), (1.02, True)])
def test_what_takes_longer_than_its_parts_has_an_entry(share, own):
    """XCHG with memory locks: OSACA would make it of a load, a store and a plain XCHG."""
    slow = FormCost(throughput=1.25 * share)
    entries, left, model = written(**{"XCHG (R64, R64)": REGISTERS, "XCHG (M64, R64)": slow})
    assert ("xchg gpr mem" in entries) is own
    if own:
        assert entries["xchg gpr mem"]["port_pressure"][-1] == [1.25 * share, ["ST"]]
        assert model["ports"][-1] == "ST"
        assert "takes longer than its parts" in left["XCHG (M64, R64)"]


def test_a_form_without_registers_has_an_entry_made_of_its_parts():
    """OSACA 0.7 does not find `add` where `addq` has no register to say its width."""
    forms = {"ADD (R64, I8)": cost(ALU), "ADD (M64, I8)": cost(LOAD, confidence="low")}
    pressure = written(**forms)[0]["add imm mem"]["port_pressure"]
    assert pressure == [[1.0, ["0", "1"]], [1.0, ["3", "4"]], [1.0, ["2"]]]


def test_of_immediates_the_shortest_is_written():
    long, short = cost(ALU, latencies={"op1->op1": 1.0}), cost(latencies={"op1->op1": 0.0})
    entries, left, _ = written(**{"ADD (R64, I8)": short, "ADD (R64, I32)": long})
    assert entries["add imm gpr"]["latency"] == 0.0
    assert "one entry for all" in left["ADD (R64, I32)"]


def test_known_ports_come_before_a_wide_register():
    entries, left, _ = written(**{"IMUL (R32, R32)": REGISTERS, "IMUL (R64, R64)": FormCost(throughput=1.0)})
    assert entries["imul gpr gpr"]["port_pressure"] == [[1.0, ["0", "1"]]]
    assert list(left) == ["IMUL (R64, R64)"]


def test_latencies_that_are_not_known_are_not_nothing():
    entries, _, _ = written(**{"IMUL (R64, R64)": cost(ALU), "MOV (M64, R64)": MOVES["MOV (M64, R64)"]})
    assert entries["imul gpr gpr"]["latency"] is None
    assert entries["mov gpr mem"]["latency"] == 0.0


def test_an_address_of_an_index_alone_has_a_latency():
    found = latency(TABLE["LEA_I_D32 (R64)"], FormCost(latencies={"op2.index->op1": 2.0}))
    assert found == 2.0


def test_the_most_between_registers_counts():
    known = FormCost(latencies={"op1->op1": 3.0, "op2->op1": 5.0, "op2.address->op1": 9.0})
    assert latency(TABLE["ADC_11 (R64, R64)"], known) == 5.0


def test_dividers_have_a_port_of_their_own():
    forms = {"DIVSD (XMM, XMM)": FormCost(throughput=4.0), "SQRTPD (XMM, XMM)": cost(ALU, throughput=6.0)}
    entries, left, model = written(**forms)
    assert model["ports"][-1] == "DV"
    assert entries["divsd xmm xmm"]["port_pressure"] == [[4.0, ["DV"]]]
    assert entries["sqrtpd xmm xmm"]["port_pressure"] == [[1.0, ["0", "1"]], [6.0, ["DV"]]]
    assert "divider" in left["DIVSD (XMM, XMM)"]
    assert "divider" in left["SQRTPD (XMM, XMM)"]


@pytest.mark.parametrize(("share", "own"), [(0.98, False), (1.02, True)])
def test_a_divider_that_its_port_explains_has_no_other(share, own):
    """The limit lies between dividers, which take a multiple, and readings that scatter."""
    form = cost(Operation((2,)), throughput=1.25 * share)
    model = msgspec.structs.replace(exchanged(1), forms={"DIVSD (XMM, XMM)": form})
    assert ("DV" in with_rates(model, []).ports) is own
    assert EXPLAINED == 1.25


def test_estimates_of_roots_are_no_divisions():
    entries, left, model = written(**{"RSQRTPS (XMM, XMM)": FormCost(throughput=4.0)})
    assert "DV" not in model["ports"]
    assert "rsqrtps xmm xmm" not in entries
    assert left["RSQRTPS (XMM, XMM)"] == "its ports are not known"


def test_what_has_no_known_ports_has_its_latency(tmp_path):
    """And its throughput on a port of its own: OSACA takes what has none for free."""
    slow = FormCost(8.0, None, {"op1->op1": 2.0, "op2->op1": 3.0}, 1.0)
    forms = {"SHLD (R64, R64, I8)": slow, "SHRD (R64, R64, I8)": FormCost(8.0, None, {"op1->op1": 2.0}),
             "SHLD (M64, R64, I8)": slow}  # fmt: skip
    entries, left, _ = written(**forms)
    found = entries["shld imm gpr gpr"]
    assert [found[name] for name in ("latency", "throughput", "port_pressure", "uops")] == [
        3.0,
        1.0,
        [[1.0, ["UN"]]],
        None,
    ]
    assert left["SHLD (R64, R64, I8)"] == "its ports are not known: its throughput is on a port of its own"
    assert left["SHRD (R64, R64, I8)"] == "its ports are not known", "nor its throughput"
    assert left["SHLD (M64, R64, I8)"] == "its ports are not known", "OSACA makes it of the other and a store"
    path = tmp_path / "a.yml"
    path.write_text(by_name("osaca").write(msgspec.structs.replace(exchanged(1), forms=MOVES | forms)).text)
    again = by_name("osaca").read(path, ImportRequest("a", "a.yml")).model.forms["SHLD (R64, R64, I8)"]
    assert [op.cycles for op in again.operations or ()] == [1.0]
    assert (again.throughput, again.latencies["op2->op1"]) == (1.0, 3.0)


def test_stack_moves_take_the_ports_of_a_load_and_a_store():
    entries, _, _ = written(**{"PUSH (R64)": FormCost(throughput_most=1.0), "POP (R64)": FormCost()})
    assert entries["push gpr"]["port_pressure"] == [[1.0, ["2"]]]
    assert entries["pop gpr"]["port_pressure"] == [[1.0, ["3", "4"]]]
    assert entries["pop gpr"]["latency"] is None


def test_forwarding_that_is_not_known_is_absent():
    model = msgspec.structs.replace(exchanged(1), forms=MOVES)
    assert yaml.safe_load(by_name("osaca").write(model).text)["store_to_load_forward_latency"] == 7
    model = msgspec.structs.replace(model, core=msgspec.structs.replace(model.core, forward_latency=0))
    assert "store_to_load_forward_latency" not in yaml.safe_load(by_name("osaca").write(model).text)


def test_what_osaca_composes_is_composed_when_it_is_read(tmp_path):
    forms = {
        "ADDSD (XMM, XMM)": REGISTERS,
        "ADDSD (XMM, M64)": addition(ALU, LOAD),
        "ADD (R64, R64)": REGISTERS,
    }
    text = by_name("osaca").write(msgspec.structs.replace(exchanged(1), forms=MOVES | forms)).text
    path = tmp_path / "model.yml"
    path.write_text(text)
    found = by_name("osaca").read(path, ImportRequest("again", "a file")).model
    read = found.forms["ADDSD (XMM, M64)"]
    assert [found.ports[p] for op in read.operations for p in op.ports] == ["0", "1", "3", "4"]
    assert read.latencies["op1->op1"] == 2.0
    assert read.latencies["op2.address->op1"] == 8.0
    assert read.throughput == 0.5
    path.write_text(text.replace("load_throughput:", "load_elsewhere:"))
    assert "ADDSD (XMM, M64)" not in by_name("osaca").read(path, ImportRequest("again", "a file")).model.forms


def test_loads_whose_ports_do_not_exist_are_refused(tmp_path):
    text = by_name("osaca").write(msgspec.structs.replace(exchanged(1), forms=MOVES)).text
    path = tmp_path / "model.yml"
    data = yaml.safe_load(text)
    data["load_throughput"][0]["port_pressure"] = [[1.0, ["Q"]]]
    data["load_throughput"][1]["port_pressure"] = "many"
    path.write_text(yaml.safe_dump(data))
    found = by_name("osaca").read(path, ImportRequest("again", "a file"))
    assert {item.place for item in found.refused} == {"load 1", "load 2"}


def test_the_reorder_buffer_is_what_probes_found():
    assert (
        "ROB_size: 442\n" in by_name("osaca").write(msgspec.structs.replace(exchanged(1), facts=SIZES)).text
    )
    assert "ROB_size: null\n" in by_name("osaca").write(exchanged(1)).text
