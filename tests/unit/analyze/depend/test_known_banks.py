"""What was found out of banks, lines, fusion and binding of a core, and what loops cost then."""

from __future__ import annotations

import random
import shutil

import pytest

from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model.behaviour.found import SMALL_PLACES
from cyclescope.model.behaviour.lines import CodeLines
from cyclescope.model.facts import (
    ACROSS_AND_BEHIND,
    BANKS,
    CODE_LINES,
    CROSSING,
    FUSED_BRANCHES,
    FUSION,
    LOADED_PLACES,
    LOADS_AND_OPERATIONS,
    LONGER_NOPS,
    PARTIAL_BITS,
    SHORTEST_NOPS,
    THREES,
    WHOLE_BITS,
    CoreAnswer,
    Fact,
    WideLoad,
    fused_subject,
    loads_across,
    loads_apart,
    loop_of,
    small_stores,
    stores_across,
    stores_apart,
    wide_loads,
)
from cyclescope.model.machine import Operation
from cyclescope.session.machines import load_model
from tests.support.code.blocks import block, changed, measured, predicted, toy
from tests.support.made.ways import FACTS, SLOW

SEED = random.SystemRandom().randrange(1 << 30)

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)


def spaced(name, slow, fast, slowed):
    places = (0, 4, 8, 16, 32, 64, 128, 256)
    return [Fact(BANKS, name(at), CoreAnswer.VALUE, slow if at in slowed else fast, 0.01) for at in places]


BANKED = spaced(loads_apart, 0.5, 1.0, (0, 4, 64, 128, 256))


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("mov rax, [rdi]", 2),
        ("mov rax, [rdi]; mov rbx, [rdi + 8]", 2),
        ("mov rax, [rdi]; mov rbx, [rdi + 4]", 4),  # the second has bytes in both banks
        ("mov rax, [rdi]; mov rbx, [rsi + 64]", 4),  # bases are taken to be aligned
        ("mov rax, [rdi]; add rdi, 8", 0.25),  # all eight banks in turn
        ("mov rax, [rdi]; add rdi, 32", 1),
        ("vmovupd ymm0, [rdi]", 2),
    ],
)
def test_loads_of_one_bank_wait_for_each_other(text, cycles):
    assert predicted(text, *BANKED).bounds["load_banks"] == pytest.approx(cycles)


def test_banks_are_no_lower_bound():
    assert predicted("mov rax, [rdi]", *BANKED).lower == 1


def test_a_store_across_a_line_goes_to_both():
    facts = spaced(stores_apart, 1.0, 2.0, (64, 128, 256))
    bounds = predicted("mov [rdi + 60], rax; mov [rdi + 60], rbx", *facts).bounds
    assert bounds["stores"] == 4
    assert predicted("mov [rdi + 8], rax; mov [rdi + 16], rbx", *facts).bounds.get("stores", 0) < 1


@pytest.mark.parametrize(
    ("text", "paired", "together"),
    [
        ("mov [rdi], rax; mov [rdi + 8], rax; mov [rdi + 16], rax; mov [rdi + 64], rax", 3, 2),
        ("mov [rdi], rax; mov [rdi + 64], rax; mov [rdi + 8], rax; mov [rdi + 72], rax", 4, 4),
        ("mov [rdi], rax; add rdi, 8", 1 / 2, 1 / 8),
        ("mov [rdi], rax; mov [rdi + 8], rax; mov [rdi + 16], rax; add rdi, 64", 2, 1),
        ("mov [rdi], rax; imul rdi, rdi, 3", 1, 1),  # nobody knows where to
        ("push rax; push rbx; push rcx; sub rsp, 1000", 2, 1),
    ],
)
def test_stores_of_a_line_leave_two_by_two(text, paired, together):
    """An odd one takes a cycle for itself where the core was seen to do so."""
    facts = spaced(stores_apart, 1.0, 2.0, (64, 128, 256))
    odd = [Fact(BANKS, THREES, CoreAnswer.VALUE, 1.5, 0.01)]
    assert predicted(text, *facts, *odd).bounds["stores"] == pytest.approx(paired)
    assert predicted(text, *facts).bounds["stores"] == pytest.approx(together, rel=0.2)


WORD, LONGER, WITHIN = 4, 4.0, 6  # of a made core
SMALL = [
    *spaced(stores_apart, 1.0, 2.0, (64, 128, 256)),
    Fact(BANKS, ACROSS_AND_BEHIND, CoreAnswer.VALUE, 1.0, 0.01),
    *(
        Fact(BANKS, small_stores(bits, 2), CoreAnswer.VALUE, 2 / (2 + LONGER * (bits < 8 * WORD)), 0.01)
        for bits in (*PARTIAL_BITS, WHOLE_BITS)
    ),
    *(
        Fact(BANKS, small_stores(8, n), CoreAnswer.VALUE, n / (n + LONGER * (n < WITHIN)), 0.01)
        for n in SMALL_PLACES
    ),
]


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("mov [rdi], al; mov [rsi], rax", 2 + LONGER),
        ("mov [rdi], al; mov [rsi], al", 2 + LONGER),  # the second is late enough as the first one waits
        ("mov [rdi], eax; mov [rsi], rax", 2),
        ("mov [rdi + 2], rax; mov [rsi], rax", 2 + LONGER),  # two words in part
        ("mov [rdi], ax; mov [rdi + 2], ax; mov [rsi], rax", 2),  # all of the word
        # words of their own
        ("mov [rdi], al; mov [rsi], rax; mov [rdi + 8], al; mov [rsi], rax", 4 + LONGER),
        ("mov [rdi], al; add rdi, 64", 1),
        ("mov [rdi], al; imul rdi, rdi, 3; mov [rsi], al", 2 + LONGER),
        ("mov [rdi], al", None),  # one chunk
        ("mov [rdi + 62], eax; mov [rdi + 66], eax", 2 + LONGER),
    ],
)
def test_parts_of_words_wait_for_what_was_written_before(text, cycles):
    found = predicted(text, *SMALL).bounds.get("stores")
    assert found == (None if cycles is None else pytest.approx(cycles))


def left(stores, iterations):
    """Cycles in which these stores leave, cycle by cycle: (place, bytes) each, one chunk at a time."""
    queue = [one for _ in range(iterations) for one in stores]
    written, now = {}, 0
    while queue:
        chunk, group = queue[0][0] // 64, []
        while queue and queue[0][0] // 64 == chunk:
            group.append(queue.pop(0))
        own = {byte for place, size in group for byte in range(place, place + size)}
        words = {byte // WORD for byte in own}
        parts = {word for word in words if len(own & set(range(word * WORD, word * WORD + WORD))) < WORD}
        if any(now - written[word] < WITHIN for word in parts & written.keys()):
            now += LONGER
        written.update(dict.fromkeys(words, now))
        now += 1
    return now


def test_any_stores_leave_as_they_do_one_after_the_other():
    """Against stores that leave one by one, without rounds that come again."""
    rng = random.Random(SEED)
    names = {1: "al", 2: "ax", 4: "eax", 8: "rax"}
    for _ in range(40):
        sizes = rng.choices((1, 2, 4, 8), k=rng.randint(2, 7))
        stores = [(64 * rng.randrange(4) + rng.randrange(0, 64 - size), size) for size in sizes]
        stores += [(64 * 8, 8)]  # so that no chunk goes on in the next iteration
        text = "; ".join(f"mov [rdi + {place}], {names[size]}" for place, size in stores)
        wanted = (left(stores, 960) - left(stores, 480)) / 480
        assert predicted(text, *SMALL).bounds["stores"] == pytest.approx(wanted, abs=0.05), f"{SEED}: {text}"


def test_an_instruction_that_loads_what_it_stored_by_another_way_takes_that():
    own = {"op1.data->op1.data": 1.0}
    machine = changed(measured(*FACTS), ADD_M64_I8={"latencies": own})
    assert predicted("add qword ptr [rdi + rcx], 1", machine=machine).bounds["loop_carried"] == SLOW + 1


CROSSED = [
    *spaced(loads_apart, 0.5, 0.5, ()), Fact(CROSSING, loads_across("32 bytes"), CoreAnswer.VALUE, 0.0, 0.1),
    Fact(CROSSING, loads_across("64 bytes"), CoreAnswer.VALUE, 3.0, 0.1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("mov rax, [rdi + 60]; mov rbx, [rdi]", 2 + 2 + 3),
        ("mov rax, [rdi + 56]; mov rbx, [rdi]", None),
        ("mov rax, [rdi + 28]", None),
        ("mov rax, [rdi + 60]; add rdi, 8", 2 + 3 / 8),
        ("mov rax, [rdi + 60]; add rdi, 64", 2 + 3),
        ("vmovupd ymm0, [rdi + 16]; add rdi, 32", 2 + 3 / 2),
        ("mov rax, [rdi + 60]; imul rdi, rdi, 3", None),  # nobody knows where it is
    ],
)
def test_loads_across_lines_take_longer(text, cycles):
    bounds = predicted(text, *CROSSED).bounds
    assert bounds.get("line_crossing") == (None if cycles is None else pytest.approx(cycles))


WIDE = [
    *CROSSED,
    *(
        Fact(CROSSING, wide_loads(256, where), CoreAnswer.VALUE, cycles, 0.1)
        for where, cycles in zip(WideLoad, (4.0, 9.0, 6.0), strict=True)
    ),
]


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("vmovupd ymm0, [rdi + 40]", 9),
        ("vmovupd ymm0, [rdi + 48]", 6),
        ("vmovupd ymm0, [rdi + 48]; add rdi, 64", 6),
        ("vmovupd ymm0, [rdi + 48]; add rdi, 32", 4 + (6 - 4) / 2),
        ("vmovupd ymm0, [rdi + 40]; vmovupd ymm1, [rdi]", 9 + 4),
        ("vmovupd ymm0, [rdi + 40]; vmovupd ymm1, [rdi]; add rdi, 8", 4 + 4 + 2 * (3 / 8) * (9 - 4)),
        ("vmovupd ymm0, [rdi + 40]; imul rsi, rsi, 3; vmovupd ymm1, [rsi]", 9 + 4),
        ("movups xmm0, [rdi + 56]", 2 + 3),  # of which nobody asked
        ("vmovupd ymm0, [rdi + 32]", None),
    ],
)
def test_loads_of_vectors_across_lines_take_no_less_than_by_themselves(text, cycles):
    bounds = predicted(text, *WIDE).bounds
    assert bounds.get("line_crossing") == (None if cycles is None else pytest.approx(cycles))


LATE, MIXED = 0.25, 0.6  # cycles that two loads take longer
LOADS = [
    *spaced(loads_apart, 2.0, 2.0, ()),
    Fact(BANKS, LOADED_PLACES, CoreAnswer.VALUE, 2 / (1 + LATE), 0.01),
    Fact(BANKS, LOADS_AND_OPERATIONS, CoreAnswer.VALUE, 2 / (1 + MIXED), 0.01),
]


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("mov rax, [rdi]; mov rbx, [rdi + 8]", None),
        ("mov rax, [rdi]; mov rbx, [rax]", 2 / 2 + LATE),
        ("mov rax, [rdi]; lea rcx, [rax + 8]; mov rbx, [rcx]", 2 / 2 + LATE),
        ("mov rax, [rdi]; mov rbx, [rax]; mov rcx, [rbx]", 3 / 2 + 2 * LATE),
        ("mov rbx, [rax]; mov rax, [rdi]", None),  # it was loaded an iteration ago
        ("mov rax, [rdi]; cmp rbx, [rdi + 8]", 2 / 2 + MIXED),
        ("mov rax, [rdi]; mov rcx, [rdi + 8]; cmp rbx, [rdi]", 3 / 2 + MIXED),
        (
            "mov rax, [rdi]; cmp rbx, [rax]",
            2 / 2 + LATE,
        ),  # it is late: that it is of another kind adds nothing
        ("cmp rax, [rdi]; cmp rbx, [rdi + 8]", None),
        ("mov rax, [rdi]; mov [rax], rbx", None),
        ("mov rax, [rdi]; add [rdi + 8], rbx", None),
        ("movups xmm0, [rdi]; paddd xmm1, [rdi + 16]", None),
    ],
)
def test_loads_that_come_late_take_more_of_their_ports(text, cycles):
    found = predicted(text, *LOADS)
    assert found.bounds.get("late_loads") == (None if cycles is None else pytest.approx(cycles))
    assert found.lower <= predicted(text).cycles


STORED_ACROSS = [
    *spaced(stores_apart, 2.0, 2.0, ()),
    Fact(CROSSING, stores_across("64 bytes"), CoreAnswer.VALUE, 0.5, 0.01),
]


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("mov [rdi + 60], rax; mov [rdi], rbx", 2 * 0.5 + 0.5),
        ("mov [rdi + 56], rax; mov [rdi], rbx", None),
        ("mov rax, [rdi + 60]; mov [rdi + 8], rbx", None),  # loads were not asked about
        ("movups [rdi - 8], xmm0; add rdi, 16", 0.5 + 0.5 / 4),
    ],
)
def test_stores_across_lines_take_longer(text, cycles):
    bounds = predicted(text, *STORED_ACROSS).bounds
    assert bounds.get("line_crossing") == (None if cycles is None else pytest.approx(cycles))


IN_LINES = [
    Fact(
        CODE_LINES,
        loop_of(n, size),
        CoreAnswer.VALUE,
        max(CodeLines(64, 6, 2).cycles(0, nops), (n + 1) / 4),
        0.01,
    )
    for size, counts in ((1, SHORTEST_NOPS), (4, LONGER_NOPS))
    for n in counts
    for nops in [[(size, 1.0)] * n + [(9, 1.0)]]
]


@pytest.mark.parametrize(
    ("text", "loop", "cycles"),
    [
        ("nop\n" * 5 + "jne 0", True, None),
        ("nop\n" * 6 + "jne 0", True, 3),
        ("nop\n" * 6 + "jne 0", False, None),
        ("nop\n" * 12 + "jne 0", True, 5),
        ("nop\n" * 6 + ".byte 0x0f, 0x1f, 0x80, 0, 0, 0, 0\n" * 9 + "jne 0", True, 5 + 1),
        ("shrd rax, rbx, cl\n" * 5 + "jne 0", True, None),  # lines hold instructions, whatever these take
        ("shrd rax, rbx, cl\n" * 6 + "jne 0", True, 3),
    ],
)
def test_loops_wait_for_lines_of_code(text, loop, cycles):
    machine = changed(measured(*IN_LINES), SHRD_R64_R64_CL={"slots": 6.0})
    assert predicted(text, loop=loop, machine=machine).bounds.get("code_lines") == cycles


MOVED = Fact(FUSION, fused_subject("MOV_89 (R64, R64)", "ADD_01 (R64, R64)"), CoreAnswer.FUSED)


def test_moves_share_a_slot():
    """In loops and in code that follows itself: both are kept decoded."""
    text = "mov rax, rbx; add rax, rcx; mov rdx, rbx; add rsi, rcx; nop; nop; nop; dec r15; jne 0"
    with_it, without = predicted(text, MOVED, loop=True), predicted(text, loop=True)
    assert without.bounds["front_end"] - with_it.bounds["front_end"] == 0.25  # a slot of four: one pair fits
    plain = "mov rax, rbx; add rax, rcx"
    assert predicted(plain).bounds["front_end"] - predicted(plain, MOVED).bounds["front_end"] == 0.25


@pytest.mark.parametrize("name", ["znver3", "skylake"])
def test_only_what_was_asked_shares_a_slot_outside_of_branches(name):
    """What fuses with branches by the books does so with nothing else."""
    text = "add rax, rbx; sub rax, rcx; and rax, rdx; dec rsi; jne 0"
    machine = load_model(name)
    found = Predictor(machine).predict(block(text, True), simulate=False)
    assert found.bounds["front_end"] == 4 / machine.core.width


def test_what_accesses_memory_needs_its_ports_though_others_are_not_known():
    machine = changed(measured(), PUSH_R64={"operations": None}, ADD_R64_M64={"operations": None})
    assert predicted("push rax; push rbx", machine=machine).ports["store"] == 2
    assert predicted("add rax, [rdi]", machine=machine).ports["load"] == 1


def test_a_throughput_that_is_only_known_at_most_counts():
    machine = changed(measured(), PUSH_R64={"throughput_most": 3.0})
    assert predicted("push rax", machine=machine).bounds["units"] == 3.0


def test_the_branch_of_a_loop_is_no_limit_that_a_measured_machine_was_asked_for():
    text = "nop; jne 0"
    found = [Predictor(one).predict(block(text, True)) for one in (toy(), measured())]
    assert [one.bounds.get("taken_branches") for one in found] == [1, None]
    assert predicted("jmp 2; jmp 4; nop", loop=True).bounds["taken_branches"] == 2


def test_what_is_fused_with_a_branch_is_executed():
    """A counter that the renamer adds to takes a cycle where that is one operation with the branch."""
    fused = Fact(FUSION, fused_subject("DEC (R64)", "JZ (Rel8)"), CoreAnswer.FUSED)
    free = {"operations": (), "latencies": {"op1->op1": 0.0}}
    machine = changed(measured(fused), DEC_R64=free)
    assert predicted("dec rax; jne 0", loop=True, machine=machine).bounds["loop_carried"] == 1
    assert predicted("dec rax; nop; jne 0", loop=True, machine=machine).bounds["loop_carried"] == 0


def test_a_comparison_with_memory_may_stand_apart_where_one_of_registers_fuses():
    fused = Fact(FUSION, fused_subject("CMP_39 (R64, R64)", "JZ (Rel8)"), CoreAnswer.FUSED)
    apart = Fact(FUSION, fused_subject("CMP (R64, M64)", "JZ (Rel8)"), CoreAnswer.SEPARATE)
    plain, memory = "cmp rax, rbx; jne 0", "cmp rax, [rdi]; jne 0"
    assert predicted(plain, fused, apart, loop=True).slots == 1
    assert predicted(memory, fused, apart, loop=True).slots == 2
    assert predicted(memory, fused, loop=True).slots == 1  # nobody asked about memory
    assert predicted(plain, apart, loop=True).slots == 2


def test_what_is_fused_with_a_branch_keeps_its_ports_where_those_of_branches_are_not_known():
    fused = Fact(FUSION, fused_subject("CMP_39 (R64, R64)", "JZ (Rel8)"), CoreAnswer.FUSED)
    text = "cmp rax, rbx; cmp rcx, rbx; jne 0"
    known, unknown = {"operations": (Operation((2,)),)}, {"operations": None}
    machines = [changed(measured(fused), JNZ_Rel8=one, JNZ_Rel32=one) for one in (known, unknown)]
    found = [predicted(text, loop=True, machine=one) for one in machines]
    assert [sum(one.port_cycles) for one in found] == [2, 2]
    assert [one.port_cycles[2] for one in found] == [pytest.approx(1), pytest.approx(2 / 3)]
    for one in found:  # what a pair needs is told of its first
        assert one.instructions[-1].remarks == ("fused",)
        assert not any("port usage" in note for note in one.notes)
    alone = predicted("nop; jne 0", loop=True, machine=machines[1])
    assert alone.instructions[-1].remarks == ("ports unknown",)


@pytest.mark.parametrize(
    ("text", "work"),
    [
        ("cmp rax, rbx; jne 0", 0), ("test rax, rax; jne 0", 0), ("dec rax; jne 0", 1),
        ("cmp rax, rbx; nop; jne 0", 1),
    ],
)  # fmt: skip
def test_comparisons_are_executed_with_branches_where_that_was_found(text, work):
    """What writes a register besides is not, nor what stands apart from the branch."""
    firsts = ("CMP_39 (R64, R64)", "TEST (R64, R64)", "DEC (R64)")
    fused = [Fact(FUSION, fused_subject(first, "JZ (Rel8)"), CoreAnswer.FUSED) for first in firsts]
    apart = Fact(FUSED_BRANCHES, fused_subject(firsts[0], "JZ (Rel8)"), CoreAnswer.VALUE, 0.0, 0.1)
    machine = changed(measured(*fused, apart), JNZ_Rel8={"operations": None}, JNZ_Rel32={"operations": None})
    assert sum(predicted(text, loop=True, machine=machine).port_cycles) == pytest.approx(work)
