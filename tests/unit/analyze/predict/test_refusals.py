"""What a predictor does not know: named, counted, and nothing that passes for zero."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.decode.block import Block, BlockInstruction
from cyclescope.analyze.predict.predictor import Predictor, UnknownInstructions
from cyclescope.errors import UsageError
from cyclescope.session.machines import load_model
from tests.support.code.blocks import block, changed, predict, predictor, toy


def without(*names):
    return Predictor(
        msgspec.structs.replace(toy(), forms={n: c for n, c in toy().forms.items() if n not in names})
    )


def test_unknown_instructions_are_no_zero():
    model = without("IMUL (R64, R64)")
    text = block("imul rax, rbx; add rcx, 1; imul rdx, rbx")
    with pytest.raises(UnknownInstructions, match=r"2 of 3 instructions .* toy: line 1: .*imul") as error:
        model.predict(text)
    assert [one.line for one in error.value.unknown] == [1, 3]
    assert error.value.exit_code == 3
    assert "--ignore-unknown" in error.value.remedy.command
    found = model.predict(text, ignore_unknown=True)
    assert (found.cycles, found.slots, found.unmatched) == (1, 1, pytest.approx(2 / 3))
    assert [row.ignored for row in found.instructions] == [True, False, True]
    assert any("left out as unknown" in note and "line 1, line 3" in note for note in found.notes)
    assert found.loop_carried[0].instructions == (1,)


def test_an_instruction_that_does_not_decode_is_unknown_with_its_problem():
    bad = BlockInstruction(None, "(bad)", 7, problem="06 is no instruction")
    with pytest.raises(UnknownInstructions, match="line 7: 06 is no instruction"):
        predictor().predict(Block((bad,), "x86-64"))


def test_many_unknown_instructions_are_counted():
    bad = tuple(BlockInstruction(None, "(bad)", n, problem=f"no {n}") for n in range(1, 21))
    with pytest.raises(UnknownInstructions, match="no 8; and 12 more"):
        predictor().predict(Block(bad, "x86-64"))


def test_a_stand_in_knows_what_the_machine_does_not():
    poor = without("IMUL (R64, R64)").machine
    model = Predictor(poor, stand_in=toy())
    found = model.predict(block("imul rax, rbx; imul rcx, rbx; imul rdx, rbx; imul rsi, rbx; add rdi, 1"))
    assert (found.lcd, found.slots) == (3, 5)
    assert sum(found.port_cycles) == pytest.approx(1)  # the ports of another model are not these
    assert "units" not in found.bounds
    assert any("not measured" in note and "IMUL (R64, R64)" in note for note in found.notes)
    long = changed(toy(), IMUL_R64_R64={"slots": 9.0})
    slow = Predictor(poor, stand_in=long).predict(block("imul rax, rbx; imul rcx, rbx"))
    assert slow.bounds["units"] == 4.5  # 9 of 4 slots a cycle, twice
    stacked = Predictor(without("PUSH (R64)", "POP (R64)").machine, stand_in=toy())
    found = stacked.predict(block("pop rax; pop rbx; push rcx; ret"))
    assert found.ports == pytest.approx({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3, "load": 3, "store": 1}, abs=1e-5)
    with pytest.raises(UnknownInstructions):
        Predictor(poor, without("IMUL (R64, R64)").machine).predict(block("imul rax, rbx"))


def test_borrowed_loads_and_stores_are_on_the_ports_of_plain_ones():
    """On AArch64 as on x86-64: the moves that every machine knows are those of its own instruction set."""
    full = load_model("neoverse-v2")
    plain = {name: full.forms[name] for name in ("LDRXui", "STRXui", "ADDXrs")}
    poor = msgspec.structs.replace(full, forms=plain)
    code = bytes.fromhex("200440a9" + "200400a9")  # ldp x0, x1, [x1]; stp x0, x1, [x1]
    found = Predictor(poor, stand_in=full).predict(read_block(code, "aarch64", Choice(whole=True)))
    wanted = [port for name in ("LDRXui", "STRXui") for op in plain[name].operations for port in op.ports]
    assert {name for name, cycles in found.ports.items() if cycles} <= {full.ports[port] for port in wanted}
    moves = [op for name in ("LDRXui", "STRXui") for op in plain[name].operations]
    assert sum(found.port_cycles) == pytest.approx(sum(op.count * op.cycles for op in moves))
    assert not any("port usage" in note for note in found.notes)


def test_code_of_another_isa_and_no_code():
    with pytest.raises(UsageError, match="the code is aarch64, toy executes x86-64"):
        predictor().predict(Block((), "aarch64"))
    with pytest.raises(UsageError, match="no instruction"):
        predictor().predict(Block((), "x86-64"))
    bad = BlockInstruction(None, "(bad)", 7, problem="06 is no instruction")
    with pytest.raises(UsageError, match="no instruction"):
        predictor().predict(Block((bad,), "x86-64"), ignore_unknown=True)


def test_a_long_block_does_not_take_long():
    found = predict("; ".join(f"add rax, [rdi + {8 * n}]; mov [rsi + {8 * n}], rax" for n in range(1500)))
    assert found.lcd == 1500
    assert found.upper is None
