"""Calls of code that is not in the block: they come back, and what is there is not counted."""

from __future__ import annotations

import shutil

import msgspec
import pytest

from cyclescope.analyze.decode.block import Block
from cyclescope.analyze.decode.decoder import decoder
from cyclescope.analyze.depend import standing
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.session.machines import load_model
from tests.support.code.blocks import FORWARD, predicted

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)
NOTE = "calls are not followed, neither time nor effects of what is called are counted: "
STORED, LOADED = "mov [rsp + 8], rax", "mov rax, [rsp + 8]; add rax, rbx"


def called(found):
    return [note.removeprefix(NOTE) for note in found.notes if note.startswith(NOTE)]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    "between", ["call 0x100", "call [rdi]", "call r9", "call 0x100; ret", "push r9; call 0x100; pop r9"]
)
def test_the_stack_is_the_same_behind_a_call(monkeypatch, compiled, between):
    if not compiled:
        monkeypatch.setattr(standing.CompiledMemory, "is_there", False)
    found = predicted(f"{STORED}; {between}; {LOADED}", loop=True)
    assert found.lcd == FORWARD + 1
    assert called(found) == [f"line {3 if 'push' in between else 2}"]


@pytest.mark.parametrize(
    ("text", "target", "said"),
    [
        ("call 0x1140", "leaf", "call 0x1140 (leaf)"),
        ("call leaf", "leaf", "call leaf"),
        ("call 0", "", "call 0"),
    ],
)
def test_what_an_address_is_called_is_said(text, target, said):
    code = decoder("x86-64").instruction(bytes.fromhex("e800000000"), 0)
    one = msgspec.structs.replace(code, text=text, target=target)
    assert called(
        Predictor(load_model("znver3")).predict(Block((one,), "x86-64", "test"), simulate=False)
    ) == [said]


@pytest.mark.parametrize(
    "text", ["jmp 2; nop", "loop .", "jrcxz .", "mov rax, [rsp]; jne 0", "jmp rax", "ret"]
)
def test_other_branches_call_nothing(text):
    assert called(predicted(text, loop=True)) == []


@pytest.mark.parametrize(
    ("isa", "machine", "code", "calls"),
    [
        ("aarch64", "neoverse-n1", "00000094", True),  # bl
        ("aarch64", "neoverse-n1", "00013fd6", True),  # blr x8
        ("aarch64", "neoverse-n1", "00000014", False),  # b
        ("riscv64", "sifive-p670", "ef000000", True),  # jal ra, 0
        ("riscv64", "sifive-p670", "e7800000", True),  # jalr ra, 0(ra)
        ("riscv64", "sifive-p670", "6f000000", False),  # jal zero, 0
        ("riscv64", "sifive-p670", "67800000", False),  # jalr zero, 0(ra)
        ("riscv64", "sifive-p670", "0284", False),  # c.jr s0
        ("riscv64", "sifive-p670", "0294", True),  # c.jalr s0
    ],
)
def test_calls_of_other_instruction_sets(isa, machine, code, calls):
    one = decoder(isa).instruction(bytes.fromhex(code), 0)
    assert one.form is not None, one.problem
    found = Predictor(load_model(machine)).predict(Block((one,), isa, "test"), simulate=False)
    assert bool(called(found)) is calls


@pytest.mark.parametrize(
    ("isa", "machine", "code", "why"),
    [
        ("x86-64", "znver4", "0f0b", "it is there to be refused"),  # ud2
        ("x86-64", "znver4", "cc", "system"),  # int3
        ("x86-64", "znver4", "9d", "system"),  # popfq
        ("x86-64", "znver4", "0f05", "system"),  # syscall
        ("x86-64", "znver4", "48cf", "far control flow"),  # iretq
        ("x86-64", "znver4", "8ed8", "loads a segment register"),  # mov ds, eax
        ("x86-64", "znver4", "c3", ""),  # ret
        ("x86-64", "znver4", "0f01d0", ""),  # xgetbv: any program can run it
        ("aarch64", "neoverse-n1", "000020d4", "system"),  # brk #0
        ("aarch64", "neoverse-n1", "010000d4", "system"),  # svc #0
        ("riscv64", "sifive-p670", "73000000", "system"),  # ecall
        ("riscv64", "sifive-p670", "13000000", ""),  # nop
    ],
)
def test_what_no_program_can_time_is_said_to_be_guessed(isa, machine, code, why):
    one = decoder(isa).instruction(bytes.fromhex(code), 0)
    found = Predictor(load_model(machine)).predict(Block((one,), isa, "test"), simulate=False)
    said = [note for note in found.notes if note.startswith("what is counted of these is a guess")]
    assert bool(said) is bool(why)
    assert not why or why in said[0]


@pytest.mark.parametrize(
    ("isa", "machine", "codes", "ordered"),
    [
        ("x86-64", "znver4", ("0fae e8", "4801 d8"), True),  # lfence, add
        ("x86-64", "znver4", ("0fae e8",), False),  # alone it holds up nothing
        ("x86-64", "znver4", ("4801 d8", "4819 d8"), False),  # add, sbb
        ("aarch64", "neoverse-n1", ("df3f03d5", "2000028b"), True),  # isb, add
    ],
)
def test_what_holds_up_others_is_said_not_to_be_counted(isa, machine, codes, ordered):
    block = tuple(decoder(isa).instruction(bytes.fromhex(code), 0) for code in codes)
    assert all(one.form for one in block), [one.problem for one in block]
    found = Predictor(load_model(machine)).predict(Block(block, isa, "test"), simulate=False)
    assert any(note.startswith("these wait for what is before them") for note in found.notes) is ordered


@pytest.mark.parametrize(
    ("codes", "changes"),
    [
        (("fd", "fc"), True),  # std, cld: on a Zen 5 105 cycles, for 6 of cld, cld
        (("0fae17", "4801 d8"), True),  # ldmxcsr, add
        (("d92f", "d96f40"), True),  # fldcw twice
        (("fd",), False),  # alone it sets what is set
        (("0fae1f", "4801 d8"), False),  # stmxcsr, add
    ],
)
def test_what_sets_modes_is_said_to_take_longer_where_they_change(codes, changes):
    block = tuple(decoder("x86-64").instruction(bytes.fromhex(code), 0) for code in codes)
    found = Predictor(load_model("znver4")).predict(Block(block, "x86-64", "test"), simulate=False)
    assert any(note.startswith("these set modes of the core") for note in found.notes) is changes
