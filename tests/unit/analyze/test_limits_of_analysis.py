"""Both sides of the limits in predictions: what is listed, followed, simulated, explained."""

from __future__ import annotations

import pytest

from cyclescope.analyze.choose.loops import _vector_bits
from cyclescope.analyze.cost.changes import unexplained
from cyclescope.analyze.cost.cores import behaviour_of
from cyclescope.analyze.cost.instruction import PlacedCosts
from cyclescope.analyze.cost.known import borrowed_cost
from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.analyze.decode.decoder import decoder
from cyclescope.analyze.decode.instruments import _problem
from cyclescope.analyze.decode.x86_64 import X86Decoder
from cyclescope.analyze.depend.standing import Standings
from cyclescope.analyze.predict.predictor import Predictor, UnknownInstructions
from cyclescope.isa.table import load_table
from cyclescope.model.machine import DRAWN, Core, FormCost, MachineModel, Operation, Provenance
from tests.support.code.blocks import block, predictor, toy

TABLE = load_table("x86-64")
NO_LOADS = MachineModel(
    "bare", "x86-64", Provenance(DRAWN), Core(4.0), (), {"MOV (R64, M64)": FormCost(1.0, ())}
)  # fmt: skip


@pytest.mark.parametrize(("loads", "told"), [(5, ""), (8, ""), (9, " and 1 more"), (15, " and 7 more")])
def test_eight_places_are_listed(loads, told):
    (note,) = Predictor(NO_LOADS).predict(block("; ".join(["mov rax, [rdi]"] * loads))).notes[-1:]
    assert note.endswith(f"line {min(loads, 8)}{told}")


@pytest.mark.parametrize(("count", "told"), [(5, ""), (8, ""), (9, "; and 1 more"), (15, "; and 7 more")])
def test_eight_unknown_instructions_are_named(count, told):
    with pytest.raises(UnknownInstructions) as caught:
        Predictor(NO_LOADS).predict(block("; ".join(["nop"] * count)))
    assert caught.value.message.count("'nop'") == min(count, 8)
    assert ("more" in caught.value.message) == bool(told)
    assert told in caught.value.message


@pytest.mark.parametrize(
    ("instructions", "simulated"), [(1100, True), (2000, True), (2001, False), (3900, False)]
)
def test_blocks_of_two_thousand_instructions_are_simulated(instructions, simulated):
    """More take seconds; the bounds are there all the same."""
    one = block("nop").instructions[0]
    found = predictor()
    assert (found.simulated(found.graph([one] * instructions)) is not None) is simulated


@pytest.mark.parametrize(
    ("latency", "taken"), [("500001", 1), ("1000000", 1), ("1000001", 0), ("1999999", 0)]
)
def test_latencies_in_comments_are_a_million_cycles_at_most(latency, taken):
    assert bool(_problem("LATENCY", latency, "x86-64")) != bool(taken)


@pytest.mark.parametrize(("back", "found"), [(20, True), (40, True), (63, True), (66, False), (120, False)])
def test_stores_in_flight_are_sixty_four_where_the_model_has_no_buffer(back, found):
    """One store an iteration, read so many iterations later."""
    text = f"mov [rdi], rax; mov rbx, [rdi - {8 * back}]; add rdi, 8"
    passages = Predictor(toy(store_buffer=0)).graph(block(text, loop=True).instructions).memory
    assert bool(passages) is found


@pytest.mark.parametrize(("ratio", "unit"), [(0.6, 0), (1.04, 0), (1.14, 0), (1.16, 2), (1.9, 2)])
def test_a_throughput_that_ports_explain_is_no_units(ratio, unit):
    """Within 15 %, by which a loop of one form alone may be slower for how it is fetched."""
    cost = FormCost(1.0, (Operation((0,), 1.0),), throughput=ratio)
    assert unexplained(cost, Core(4.0)) == (ratio if unit else 0.0)


@pytest.mark.parametrize(("slots", "simple"), [(1, True), (2, True), (3, False), (4, False)])
def test_a_borrowed_form_of_two_slots_is_simple(slots, simple):
    """An operation with a load or a store: of more, nobody knows where they go."""
    form = TABLE["MOV (R64, M64)"]
    cost = FormCost(float(slots), (Operation((0,), 1.0),))
    found = borrowed_cost(form, cost, Core(4.0), toy())
    assert (found.operations is not None) is simple


@pytest.mark.parametrize(
    ("text", "taken"),
    [("mov [rdi], rax; mov rcx, rdi; mov rbx, [rcx]", True),
     ("mov [rdi], rax; mov ecx, edi; mov rbx, [rcx]", True),
     ("mov [rdi], rax; mov cx, di; mov rbx, [rcx]", False)],
)  # fmt: skip
def test_moves_of_32_bits_keep_a_pointer_and_shorter_ones_do_not(text, taken):
    assert bool(predictor().graph(block(text).instructions).memory) is taken


def test_no_more_bytes_are_decoded_than_an_instruction_can_have(monkeypatch):
    """Of a text of a megabyte each instruction would be handed all that follows."""
    reader = X86Decoder()
    given, real = [], reader._iced.Decoder
    monkeypatch.setattr(
        reader._iced, "Decoder", lambda bits, code, **how: given.append(len(code)) or real(bits, code, **how)
    )
    reader.instruction(b"\x90" * 100, 0)
    assert given == [15]


def test_what_is_no_instruction_shows_the_byte_that_begins_none():
    bad = decoder("x86-64").instruction(bytes.fromhex("06" * 40), 0)
    assert (bad.problem, bad.code) == ("06 is no instruction", b"\x06")


def test_an_instruction_has_as_many_bytes_as_one_may_have():
    """15: prefixes in front of a move of an immediate, and none more."""
    longest = bytes.fromhex("66" * 5 + "48b8" + "01" * 8)
    assert len(decoder("x86-64").instruction(longest + b"\x90", 0).code) == 15
    assert decoder("x86-64").instruction(b"\x66" + longest, 0).form is None


def test_scalable_vectors_count_as_the_shortest():
    form = next(f for f in load_table("riscv64") if any(op.file == "v" and not op.width for op in f.operands))
    assert _vector_bits(BlockInstruction(form, "")) == 128


def test_a_store_takes_two_cycles_more_where_nothing_is_known():
    assert behaviour_of(NO_LOADS).forward_extra == 2.0


@pytest.mark.parametrize(("register", "renamed"), [("al", 0), ("ax", 0), ("eax", 1), ("rax", 1)])
def test_memory_is_renamed_from_32_bits_on(register, renamed):
    """Shorter values merge with what the register has, for which the load is needed."""
    text = f"mov [rdi], {register}; mov {register}, [rdi]; add {register}, 1"
    found = Predictor(toy("znver4")).predict(block(text, loop=True))
    assert found.bounds.get("renamed_memory", 0) == renamed


@pytest.mark.parametrize(
    ("registers", "followed"),
    [(("rsi", "rdx", "rcx"), True), (("rsi", "rdx", "rcx", "r8"), False), (("rsi", "rdx"), True)],
)
def test_addresses_of_four_terms_are_followed(registers, followed):
    """Sums of more, in whatever order, are values of their own: no address has more than four."""
    there = "; ".join(["mov r10, rdi", *(f"add r10, {one}" for one in registers)])
    back = "; ".join(["mov r11, rdi", *(f"add r11, {one}" for one in reversed(registers))])
    text = f"{there}; {back}; mov [r10], rax; mov rbx, [r11]"
    assert bool(predictor().graph(block(text).instructions).memory) is followed


def test_instructions_with_the_same_registers_are_known_again(monkeypatch):
    """A million blocks have more of them than there is room for."""
    monkeypatch.setattr("cyclescope.analyze.decode.kept.MOST_KEPT", 3)
    standings = Standings(PlacedCosts(toy(), None))
    sizes = []
    for base in ("rdi", "rsi", "rbx", "rbp"):
        code = block(f"mov rax, [{base}]")
        standings.memory(code, standings.of(code))
        sizes.append([len(kept) for kept in (standings._known, standings._by_code, standings.compiled._own)])
    assert sizes == [[1] * 3, [2] * 3, [3] * 3, [1] * 3]
