"""What instructions need more by what their addresses are made of, where a probe found it."""

from __future__ import annotations

import shutil

import msgspec
import pytest

from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model.facts import (
    ADDRESSING,
    BANKS,
    STACK_ENGINE,
    STACK_READS,
    Addressed,
    AddressMade,
    CoreAnswer,
    Fact,
    More,
    addressed_subject,
    constants_alone,
    later_subject,
    stacked_constant,
    stored_constant,
    stores_apart,
)
from cyclescope.model.machine import Operation
from tests.support.code.blocks import block, changed, measured, predicted, toy

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)


def fact(which, more, value=1.0):
    return Fact(ADDRESSING, addressed_subject(which, more), CoreAnswer.VALUE, value, 0.1, "each")


FACTS = (
    fact(Addressed.STORE, More.SLOTS), fact(Addressed.STORE, More.ADDITIONS),
    fact(Addressed.OPERATION, More.SLOTS), fact(stacked_constant(32), More.ADDITIONS),
    fact(stacked_constant(8), More.ADDITIONS, 0.0), fact(Addressed.POINTED, More.SLOTS),
)  # fmt: skip
STORE, LOAD, ADDITION = (1 << 4, 1.0), (1 << 3, 1.0), (0b111, 1.0)


@pytest.mark.parametrize(
    ("text", "slots", "work"),
    [
        ("mov [rdi + rcx], rax", 2, (STORE, ADDITION)),
        ("mov [rdi + 8], rax", 1, (STORE,)),
        ("mov [rcx * 8 + 64], rax", 1, (STORE,)),  # no base
        ("mov rax, [rdi + rcx]", 1, (LOAD,)),
        ("cmp rax, [rdi + rcx]", 2, (LOAD, ADDITION)),
        ("cmp rax, [rdi]", 1, (LOAD, ADDITION)),
        ("add [rdi + rcx], rax", 1, (LOAD, STORE, ADDITION)),  # of which nothing was found
        ("vmovupd [rdi + rcx], ymm0", 1, (STORE,)),  # nor of vectors
        ("mov dword ptr [rsp + 8], 1", 1, (STORE, ADDITION)),
        ("mov dword ptr [rdi + 8], 1", 1, (STORE,)),
        ("mov [rsp + 8], eax", 1, (STORE,)),
        ("mov byte ptr [rsp + 8], 1", 1, (STORE,)),
        ("cmp dword ptr [rsp + 8], 1", 1, (LOAD, ADDITION)),
        ("lea rax, [rdi + rcx]", 1, (ADDITION,)),
        ("cmp rsp, rax", 2, (ADDITION,)),
        ("sub rsp, 8", 2, (ADDITION,)),
        ("mov [rdi], rsp", 2, (STORE,)),
        ("mov rax, rsp", 1, (ADDITION,)),
        ("mov rsp, rax", 1, (ADDITION,)),
        ("lea rax, [rsp + 8]", 1, (ADDITION,)),
        ("mov rax, [rsp + 8]", 1, (LOAD,)),
    ],
)
def test_an_address_costs_what_was_found(text, slots, work):
    (placed,) = Predictor(measured(*FACTS)).graph(list(block(text).instructions)).costs
    assert (placed.slots, sorted(placed.work)) == (slots, sorted(work))


def test_a_core_that_was_not_asked_needs_nothing_more():
    text = "mov [rdi + rcx], rax; mov dword ptr [rsp + 8], 1"
    assert predicted(text).bounds["front_end"] == pytest.approx(2 / 4)
    assert predicted(text, *FACTS).bounds["front_end"] == pytest.approx(3 / 4)


@pytest.mark.parametrize("base", ["rdi + rcx", "rsp + 8"])
def test_what_a_load_gets_does_not_wait_for_an_address(base):
    """The operation more is on the way to memory alone: a value is passed as soon as before."""
    text = f"mov [{base}], rax; mov rax, [{base}]; imul rax, rax"
    without, more = (Predictor(measured(*facts)) for facts in ((), FACTS))
    taken = [one.simulated(one.graph(list(block(text).instructions))) for one in (without, more)]
    assert taken[0] == pytest.approx(taken[1])


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("cmp rax, [rdi + rcx]; cmp rdx, [rdi + rcx]", 4.0),
        ("cmp rax, [rdi + rcx]; cmp rdx, [rdi + 8]", 2.0),
        ("cmp rax, [rdi]; cmp rdx, [rdi + 8]", 2.0),
        ("cmp rax, [rcx * 8]; cmp rdx, [rdi + 8]", 2.0),
    ],
)
def test_what_is_slower_with_an_index_takes_as_long_as_was_measured(text, cycles):
    """Two loads of one a cycle otherwise."""
    machine = changed(measured(), CMP_R64_M64={"throughput": 1.0, "indexed_throughput": 2.0})
    found = Predictor(machine).predict(block(text))
    assert (found.cycles, found.lower) == (cycles, cycles)


READS = Fact(STACK_ENGINE, STACK_READS, CoreAnswer.VALUE, 1.0, 0.01, "cycles")


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("cmp rsp, rax; cmp rsp, rcx", 2.0),
        ("cmp rsp, rax; mov [rdi], rsp; push rsp", 3.0),
        ("lea rax, [rsp + 8]; mov rcx, rsp; mov rdx, [rsp]; push rcx", 0.0),
    ],
)
def test_operations_on_the_stack_pointer_come_one_after_the_other_where_that_was_found(text, cycles):
    assert predicted(text, READS).bounds.get("stack_reads", 0.0) == cycles
    assert "stack_reads" not in predicted(text).bounds
    nothing = msgspec.structs.replace(READS, value=0.0)
    assert "stack_reads" not in predicted(text, nothing).bounds


ALONE = Fact(ADDRESSING, constants_alone(32), CoreAnswer.VALUE, 1.25, 0.01, "cycles")
REGISTERS = Fact(BANKS, stores_apart(0), CoreAnswer.VALUE, 1.0, 0.01, "per cycle")
CONSTANTS = (fact(stored_constant(32), More.ADDITIONS), ALONE, REGISTERS)
WITH_ADDITION = {"MOV_M32_I32": {"operations": (Operation((4,)), Operation((0, 1, 2)))}}


@pytest.mark.parametrize(
    ("text", "work"),
    [
        ("mov dword ptr [rdi + 8], 1", (STORE, ADDITION)),
        ("mov dword ptr [rdi + rcx], 1", (STORE, ADDITION)),  # of the index
        ("mov dword ptr [rsp + 8], 1", (STORE, (0b111, 2.0))),
        ("mov byte ptr [rdi + 8], 1", (STORE,)),
        ("mov [rdi + 8], eax", (STORE,)),
        ("add dword ptr [rdi + 8], 1", (LOAD, STORE, ADDITION)),
    ],
)
def test_a_constant_is_stored_as_a_register_and_needs_what_was_found(text, work):
    """Whether or not the model has an addition of the form."""
    for machine in (measured(*FACTS, *CONSTANTS), changed(measured(*FACTS, *CONSTANTS), **WITH_ADDITION)):
        (placed,) = Predictor(machine).graph(list(block(text).instructions)).costs
        assert sorted(placed.work) == sorted(work)


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("mov dword ptr [rdi], 1; mov dword ptr [rdi + 4], 2", 2.5),
        ("mov dword ptr [rdi], 1; mov [rdi + 4], eax", 1.25),
        ("mov dword ptr [rdi + rcx], 1", 0.0),
        ("mov byte ptr [rdi], 1; mov [rdi + 4], eax", 0.0),
    ],
)
def test_constants_take_what_was_found_of_them_alone(text, cycles):
    assert predicted(text, *FACTS, *CONSTANTS).bounds.get("constants", 0.0) == cycles
    assert "constants" not in predicted(text, *FACTS, CONSTANTS[0]).bounds
    as_registers = msgspec.structs.replace(ALONE, value=1.015)
    assert "constants" not in predicted(text, CONSTANTS[0], as_registers, REGISTERS).bounds


LATER = [
    Fact(ADDRESSING, later_subject(end, made), CoreAnswer.VALUE, 0.0 if made is AddressMade.INDEXED else 1.0)
    for made in AddressMade
    for end in ("base", "index")
]


@pytest.mark.parametrize(
    ("text", "asked", "cycles"),
    [
        ("mov rax, [rax + 8]", 4.0, 4.0),
        ("mov rax, [rax + rcx]", 4.0, 4.0),
        ("mov rax, [rcx + rax]", 4.0, 5.0),
        ("mov rax, [rax + rcx + 8]", 5.0, 4.0),
        ("mov rax, [rcx + rax + 8]", 5.0, 5.0),
        ("mov rax, [rax + rcx * 4]", 5.0, 4.0),
        ("mov rax, [rcx + rax * 4 + 8]", 5.0, 5.0),
        ("mov rax, [rax * 4 + 8]", 5.0, 5.0),  # no base: nobody asked
        ("mov rax, [rbp + rax]", 5.0, 5.0),  # the code has a displacement of 0
        ("mov rax, [r13 + rax]", 5.0, 5.0),
        ("imul rax, [rcx + rax]", 7.0, 8.0),
    ],
)
def test_a_load_comes_as_late_as_its_address_was_found_to_be(text, asked, cycles):
    """A form says what it takes from a base alone, and from an index beside a base and a displacement."""
    costs = {"op2.address->op1": 4.0, "op2.index->op1": 5.0}
    imul = {"op1->op1": 3.0, "op2.address->op1": 7.0, "op2.index->op1": 8.0}
    changes = {"MOV_R64_M64": {"latencies": costs}, "IMUL_R64_M64": {"latencies": imul}}
    for facts, expected in (((), cycles), (LATER, asked)):
        machine = changed(measured(*facts), **changes)
        assert predicted(text, machine=machine).bounds["loop_carried"] == expected


def test_a_block_takes_the_same_whatever_was_predicted_before():
    costs = {"op2.address->op1": 4.0, "op2.index->op1": 5.0}
    predictor = Predictor(changed(measured(*LATER), MOV_R64_M64={"latencies": costs}))
    texts = {"mov rax, [rax + rcx]": 4.0, "mov rax, [rax + rcx + 8]": 5.0, "mov rax, [rax + rcx * 4]": 5.0}
    for order in (texts, reversed(texts), texts):
        found = {
            text: predictor.predict(block(text), simulate=False).bounds["loop_carried"] for text in order
        }
        assert found == texts


@pytest.mark.parametrize(("text", "cycles"), [("mov rax, [rdi]", 4), ("mov rax, [rdi + 8*rsi]", 5)])
def test_an_index_that_an_address_lacks_makes_no_path_longer(text, cycles):
    known = {"op2.address->op1": 4.0, "op2.index->op1": 5.0, "op2.data->op1": 4.0}
    machine = changed(toy(), MOV_R64_M64={"latencies": known})
    assert predicted(text, machine=machine).cp == cycles
