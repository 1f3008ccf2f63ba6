"""Kernels of real instructions on small machines: what depends on what, and how long it takes."""

from __future__ import annotations

import pytest

from cyclescope.errors import UnsupportedInstruction
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.state import STACK_TOP, MachineState
from cyclescope.model.machine import DRAWN, Core, FormCost, MachineModel, Operation, Provenance, Scheduler
from cyclescope.simulate.engine import UNLIMITED, WINDOW, layout_of
from cyclescope.simulate.simulator import Simulator, path

ANY = (Operation((0, 1, 2, 3)),)
LOAD, STORE = (Operation((4,)),), (Operation((4,)), Operation((5,)))
STATE = MachineState((0,) * 4 + (STACK_TOP,) + (0,) * 8 + (0x1000, 0x1000, 0))  # R13 and R14 are equal
COSTS = {
    "ADD_01 (R64, R64)": FormCost(1, ANY, {"op1->op1": 1, "op2->op1": 1}),
    "ADD_01 (R32, R32)": FormCost(1, ANY),
    "ADD_02 (R8l, R8l)": FormCost(1, ANY),
    "ADD_00 (R8h, R8h)": FormCost(1, ANY),
    "MOV (R8l, I8)": FormCost(1, ANY),
    "MOV (R32, I32)": FormCost(1, ANY),
    "ADC_11 (R64, R64)": FormCost(1, ANY, {"flags.CF->flags.CF": 2, "op1->op1": 1}),
    "INC (R64)": FormCost(1, ANY),
    "CMP_39 (R64, R64)": FormCost(1, ANY),
    "XOR_31 (R64, R64)": FormCost(1, ANY, idiom="zero"),
    "SUB_29 (R64, R64)": FormCost(1, ANY, idiom="breaking"),
    "MOV_89 (R64, R64)": FormCost(1, ANY, eliminated=True),
    "IMUL (R64, R64)": FormCost(1, (Operation((1,)),), {"op1->op1": 3, "op2->op1": 3}),
    "VPXOR (XMM, XMM, XMM)": FormCost(1, ANY, idiom="zero"),
    "VPADDD (XMM, XMM, XMM)": FormCost(1, ANY),
    "VPADDD (YMM, YMM, YMM)": FormCost(1, ANY),
    "MOV (R64, M64)": FormCost(1, LOAD),
    "MOV (R32, M32)": FormCost(1, LOAD),
    "MOV (M64, R64)": FormCost(1, STORE),
    "MOV (M32, R32)": FormCost(1, STORE),
    "ADD_03 (R64, M64)": FormCost(1, (*ANY, *LOAD), {"op1->op1": 1, "op2.address->op1": 6}),
    "ADD_01 (M64, R64)": FormCost(2, (*ANY, *LOAD, *STORE), {"op2->flags.CF": 1}),
    "LEA (R64)": FormCost(1, ANY),
    "PUSH (R64)": FormCost(1, STORE),
    "POP (R64)": FormCost(1, LOAD),
    "FADD (ST0, STi)": FormCost(1, ANY, {"op1->op1": 4, "op2->op1": 4}),
    "FLD (STi)": FormCost(1, ANY, {"op1->ST0": 2}),
    "FSTP (STi)": FormCost(1, ANY, {"ST0->op1": 2}),
    "NOP": FormCost(1, ()),
    "JMP (Rel8)": FormCost(1, ()),
    "CALL_NEAR (Rel32)": FormCost(1, STORE),
    "RET_NEAR": FormCost(1, LOAD),
}


@pytest.fixture(scope="module")
def forms(table):
    """Forms by the ids above, where the table numbers encodings otherwise."""
    found = {}
    for form_id in COSTS:
        mnemonic, _, operands = form_id.partition(" ")
        stem = mnemonic.split("_")[0]
        names = [form_id, f"{stem} {operands}".strip()]
        exact = next((table.get(n) for n in names if table.get(n)), None)
        found[form_id] = exact or next(
            f for f in table if f.id.split("_")[0] == stem and f.id.partition(" ")[2] == operands
        )
    return found


@pytest.fixture(scope="module")
def simulator(forms):
    costs = {forms[name].id: cost for name, cost in COSTS.items()}
    core = Core(width=8, reorder_buffer=512, load_latency=5, forward_latency=7)
    return Simulator(MachineModel("small", "x86-64", Provenance(DRAWN), core, tuple("012345"), costs))


@pytest.fixture
def make(forms):
    def instruction(name, *registers, **more):
        return Instruction(forms[name], registers, **more)

    return instruction


@pytest.fixture
def cycles(simulator, make):
    def run(*rows):
        body = [make(row) if isinstance(row, str) else make(row[0], *row[1:]) for row in rows]
        found = simulator.run(body, STATE)
        assert found.exact
        return found.cycles

    return run


# --- registers ------------------------------------------------------------------------------------


def test_a_register_is_one_location_whatever_its_width(cycles):
    assert cycles(("IMUL (R64, R64)", 0, 1), ("ADD_01 (R32, R32)", 0, 2)) == 4
    assert cycles(("IMUL (R64, R64)", 0, 1), ("ADD_02 (R8l, R8l)", 0, 2)) == 4
    assert cycles(("IMUL (R64, R64)", 0, 1), ("ADD_00 (R8h, R8h)", 4, 7)) == 4  # AH
    assert cycles(("VPADDD (XMM, XMM, XMM)", 1, 1, 2), ("VPADDD (YMM, YMM, YMM)", 1, 1, 2)) == 2


def test_other_registers_are_other_locations(cycles):
    assert cycles(("IMUL (R64, R64)", 0, 1), ("ADD_01 (R32, R32)", 2, 1)) == 3
    assert cycles(("VPADDD (XMM, XMM, XMM)", 1, 1, 2), ("ADD_01 (R64, R64)", 1, 2)) == 1


def test_narrow_writes_merge_and_wide_ones_do_not(cycles):
    assert cycles(("IMUL (R64, R64)", 0, 1), ("MOV (R8l, I8)", 0)) == 4
    assert cycles(("IMUL (R64, R64)", 0, 1), ("MOV (R32, I32)", 0)) == 1  # the port


def test_flags_are_locations_of_their_own(cycles):
    assert cycles(("ADC_11 (R64, R64)", 0, 1)) == 2
    assert cycles(("ADC_11 (R64, R64)", 0, 1), ("INC (R64)", 2)) == 2  # INC leaves CF alone
    assert cycles(("ADC_11 (R64, R64)", 0, 1), ("CMP_39 (R64, R64)", 2, 3)) == 1


def test_zero_idioms_need_no_port_and_cut(cycles):
    assert cycles(*[("XOR_31 (R64, R64)", n, n) for n in range(8)]) == 1
    assert cycles(*[("XOR_31 (R64, R64)", n, 8) for n in range(8)]) == 2
    assert cycles(("IMUL (R64, R64)", 0, 1), ("XOR_31 (R64, R64)", 0, 0)) == 1
    assert cycles(*[("VPXOR (XMM, XMM, XMM)", 0, 3, 3)] * 8) == 1
    assert cycles(*[("VPXOR (XMM, XMM, XMM)", 0, 3, 4)] * 8) == 2


def test_breaking_idioms_cut_and_need_a_port(cycles):
    assert cycles(*[("SUB_29 (R64, R64)", n, n) for n in range(8)]) == 2
    assert cycles(("IMUL (R64, R64)", 0, 1), ("SUB_29 (R64, R64)", 0, 0)) == 1
    assert cycles(("IMUL (R64, R64)", 0, 1), ("SUB_29 (R64, R64)", 0, 2)) == 4


def test_eliminated_moves_take_slots_only(cycles):
    assert cycles(*[("MOV_89 (R64, R64)", n, 8) for n in range(8)]) == 1
    assert cycles(("IMUL (R64, R64)", 0, 1), ("MOV_89 (R64, R64)", 2, 0), ("MOV_89 (R64, R64)", 0, 2)) == 3


def test_the_x87_stack_turns(cycles):
    assert cycles(("FADD (ST0, STi)", 1)) == 4
    # the copy goes where the sum was: a chain through push, sum and pop
    assert cycles(("FLD (STi)", 0), ("FADD (ST0, STi)", 2), ("FSTP (STi)", 1)) == 8
    assert cycles(("FLD (STi)", 1), ("FADD (ST0, STi)", 3), ("FSTP (STi)", 1)) == pytest.approx(0.75)


# --- memory ---------------------------------------------------------------------------------------


def at(name, *registers, **more):
    return name, registers, more


@pytest.fixture
def memory_cycles(simulator, make):
    def run(*rows):
        body = [make(name, *registers, **more) for name, registers, more in rows]
        return simulator.run(body, STATE).cycles

    return run


def test_a_stored_value_is_forwarded_whatever_the_base_register(memory_cycles):
    store, load = at("MOV (M64, R64)", 14, 1), at("MOV (R64, M64)", 1, 13)
    assert memory_cycles(at("MOV (M64, R64)", 14, 1), at("MOV (R64, M64)", 1, 14)) == 7
    assert memory_cycles(store, at("MOV (R32, M32)", 1, 13, displacement=4)) == 7
    assert memory_cycles(store, at("MOV (R64, M64)", 1, 13, displacement=8)) == 2  # two on port 4
    assert memory_cycles(store, load, at("ADD_01 (R64, R64)", 1, 2)) == 8


def test_addresses_delay_loads(memory_cycles):
    assert memory_cycles(at("MOV (R64, M64)", 1, 1)) == 5
    assert memory_cycles(at("MOV (R64, M64)", 1, 13, index=1)) == 5
    assert memory_cycles(at("ADD_03 (R64, M64)", 1, 13)) == 1
    assert memory_cycles(at("ADD_03 (R64, M64)", 1, 1)) == 6


def test_loads_in_front_of_operations_run_ahead(memory_cycles):
    """A chain through the register: the next load does not wait for the sum."""
    rows = [at("ADD_03 (R64, M64)", 1, 13, displacement=8 * n) for n in range(8)]
    assert memory_cycles(*rows) == 8
    assert memory_cycles(*rows, at("IMUL (R64, R64)", 1, 2)) == 11


def test_read_modify_write_chains_through_memory(memory_cycles):
    assert memory_cycles(at("ADD_01 (M64, R64)", 14, 1)) == 8  # forwarded, added
    apart = [at("ADD_01 (M64, R64)", 14, 1, displacement=8 * n) for n in range(8)]
    assert memory_cycles(*apart) == 16  # load and store address share port 4


def test_pushes_and_pops_meet_on_the_stack(memory_cycles):
    assert memory_cycles(at("PUSH (R64)", 1), at("POP (R64)", 1)) == 7
    assert memory_cycles(at("PUSH (R64)", 1), at("POP (R64)", 2)) == 2
    crossed = [at("PUSH (R64)", 1), at("PUSH (R64)", 2), at("POP (R64)", 1), at("POP (R64)", 2)]
    assert memory_cycles(*crossed) == 7  # each register's value goes through the other's


# --- what is executed -----------------------------------------------------------------------------


def test_jumps_and_calls_are_followed(make, cycles):
    skipped = [make("JMP (Rel8)", immediates=(2,)), make("NOP"), make("NOP"), make("INC (R64)", 1)]
    assert [i.form.mnemonic for i in path(skipped, isa="x86-64")] == ["JMP", "INC"]
    function = [make("JMP (Rel8)", immediates=(1,)), make("RET_NEAR"), make("NOP")]
    back = -1 - 1 - len(make("CALL_NEAR (Rel32)").code)
    body = [*function, make("CALL_NEAR (Rel32)", immediates=(back,)), make("INC (R64)", 1)]
    assert [i.form.mnemonic for i in path(body, isa="x86-64")] == ["JMP", "NOP", "CALL", "RET", "INC"]
    assert list(path([make("NOP")] * 3, isa="x86-64")) == [make("NOP")] * 3


def test_a_path_that_never_ends_is_cut(make):
    assert len(list(path([make("NOP"), make("JMP (Rel8)", immediates=(-3,))], isa="x86-64"))) == 10_000


def test_a_form_that_the_machine_lacks_is_named(simulator, table):
    missing = Instruction(table["CPUID"], ())
    assert not simulator.knows(missing.form)
    with pytest.raises(UnsupportedInstruction, match="small has no CPUID"):
        simulator.run([missing], STATE)


def test_sizes_that_are_not_known_are_no_limit():
    unknown = layout_of(Core(width=4), 3)
    assert (unknown.reorder_buffer, unknown.load_buffer, unknown.queues) == (WINDOW, UNLIMITED, ())
    queues = (Scheduler("all", (0, 1, 2), 97), Scheduler("one", (1,), 16), Scheduler("open", (0,)))
    known = layout_of(Core(width=4, reorder_buffer=99, in_order=True, schedulers=queues), 3)
    assert (known.reorder_buffer, known.in_order) == (99, True)
    assert known.queues == ((0b010, 16), (0b111, 97))  # the narrowest first: a port has one queue


def test_the_trace_follows_a_kernel(simulator, make):
    body = [make("IMUL (R64, R64)", 0, 1), make("ADD_01 (R64, R64)", 0, 2)]
    trace = simulator.trace(body, STATE, 2)
    issued = [ops[0][0] for ops in trace.operations]
    assert issued == [1, 4, 5, 8]
    assert [row[1] for row in trace.instructions] == [4, 5, 8, 9]
