"""Loads of what a block stored, by compiled code against Python, which says what is right."""

from __future__ import annotations

import random
from array import array
from functools import cache

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.analyze.decode.decoder import decoder
from cyclescope.analyze.depend.compiled.library import library
from cyclescope.analyze.depend.followed import LocatedInstruction
from cyclescope.analyze.depend.memory import Memory, through_memory
from cyclescope.analyze.depend.standing import Standings
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model.behaviour.published import (
    CoreBehaviour,
    LineCrossing,
    LoadBanks,
    PartialWords,
    StoreChunks,
    WideLoads,
)
from cyclescope.model.behaviour.store_lines import ROWS, StoreLines
from cyclescope.session.machines import load_model
from tests.support.code.blocks import pieces, predictor

LINES = (
    "mov {a}, {b}", "mov {a}, {b}", "add {a}, {n}", "sub {a}, {n}", "lea {a}, [{b} + {c}*4 + {n}]",
    "inc {a}", "lea {a}, [{b} + {n}]", "dec {a}", "shl {a}, 3", "shl {a}, 63", "shl {a}, 2",
    "imul {a}, {b}, {n}", "add {a}, {b}", "sub {a}, {b}", "imul {a}, {b}", "xor {a}, {a}", "xor {a}, {b}",
    "mov {a}, {n}", "neg {a}", "mov {a}, [{b} + {n}]", "mov {a}, [{b}]", "mov [{b}], {a}",
    "mov [{b} + {n}], {a}", "mov [{b} + {n}], {d}", "mov {a}, [{b} + {c}*8]", "mov [{b} + {c}*8], {a}",
    "mov {a}, [{b} + {c} + {n}]", "add [{b}], {a}", "mov [{b} + {c} + {n}], {d}", "add [{b} + {n}], {a}",
    "add {a}, [{b}]", "push {a}", "pop {a}", "push {n}", "mov {d}, [{b}]", "mov dword ptr [{b} + {n}], {n}",
    "vmovupd [{b} + {n}], ymm1", "vmovupd ymm0, [{b} + {n}]", "mov byte ptr [{b} + {n}], 1",
    "mov {a}, [rip + {n}]", "mov [rip + {n}], {a}", "mov {a}, fs:[{n}]", "mov fs:[{n}], {a}",
    "mov {a}, rsp", "add rsp, 8", "movsxd {a}, dword ptr [{b}]", "mov rdi, rsi",
)  # fmt: skip
WIDE_LOADS = (WideLoads(16, 0.5, 1.1, 0.9), WideLoads(32, 0.6, 1.5, 1.2))
WIDE, NARROW = ("rax", "rbx", "rcx", "rdx"), ("eax", "ebx", "ecx", "edx")
NUMBERS = (-64, -33, -16, -8, -8, -4, 0, 1, 4, 8, 8, 12, 16, 24, 31, 32, 60, 64, 4096)
seeds = st.integers(0, 1 << 32)


def drawn_core(draw: random.Random) -> CoreBehaviour:
    """What is known of a core's memory, and what is not."""
    size = draw.choice((16, 32, 64))
    partial = PartialWords(4, 3.0, 5) if draw.random() < 0.7 else None
    chunks = StoreChunks(size, draw.choice((1, 2, size)), draw.random() < 0.5, partial)
    return CoreBehaviour(
        store_lines=drawn_lines(random.Random(size + draw.getstate()[1][0])),
        store_chunk=draw.choice((None, chunks)),
        banks=draw.choice((None, LoadBanks(8, draw.choice((64, 128)), draw.choice((1.0, 1.5))))),
        crossing=draw.choice(
            (None, LineCrossing(64, 1 / 3, 0.332), LineCrossing(64, 1 / 3, 0.332, WIDE_LOADS))
        ),
        store_crossing=draw.choice((None, LineCrossing(draw.choice((32, 64)), 0.5, 1.5))),
    )


def drawn_lines(draw: random.Random) -> StoreLines | None:
    """What stores to many lines in turn take, if anything."""
    rows, each = tuple((row, draw.choice((0.0, 0.5, 0.57))) for row in ROWS), draw.choice((0.25, 0.5, 1.0))
    lines = StoreLines(draw.choice((32, 64)), draw.choice((2, 3, 8)), each, rows, draw.choice((0.0, 0.25)))
    return draw.choice((None, lines))


@cache
def drawn_pieces() -> list[tuple[BlockInstruction, ...]]:
    """Instructions with few registers and numbers."""
    draw, texts = random.Random(3), []
    for line in LINES * 12:
        registers = dict(zip("abc", draw.choices(WIDE, k=3), strict=True))
        texts.append(line.format(**registers, d=draw.choice(NARROW), n=draw.choice(NUMBERS)))
    return pieces(texts)


def drawn_code(draw: random.Random) -> tuple[BlockInstruction, ...]:
    """Accesses by few registers, which change."""
    return tuple(one for piece in draw.choices(drawn_pieces(), k=draw.randint(1, 12)) for one in piece)


def both(
    standings: Standings, instructions, behaviour: CoreBehaviour, in_flight: int
) -> tuple[Memory, Memory]:
    """What a block does to memory: by compiled code or Python, and by Python."""
    core = msgspec.structs.replace(standings.costs.machine.core, store_buffer=in_flight)
    costs = Predictor(msgspec.structs.replace(standings.costs.machine, core=core)).costs
    costs.behaviour = behaviour
    fresh = Standings(costs)
    known = fresh.of(instructions)
    lines = [
        LocatedInstruction(one, s.places.read, s.places.written, s.accesses, s.addressed, s.changed)
        for one, s in zip(instructions, known, strict=True)
    ]
    isa = standings.costs.machine.isa
    return fresh.memory(instructions, known), through_memory(lines, in_flight, behaviour, isa=isa)


@cache
def toy_standings() -> Standings:
    return Standings(predictor().costs)


@given(seeds)
@settings(max_examples=300)
def test_compiled_code_and_python_find_the_same(seed):
    draw = random.Random(seed)
    code = drawn_code(draw)
    compiled, python = both(toy_standings(), code, drawn_core(draw), draw.choice((1, 3, 16, 64)))
    assert compiled == python, "to the last bit"


def test_drawn_blocks_have_everything_that_is_compared():
    found = []
    refused = 0
    for seed in range(250):
        draw = random.Random(seed)
        code = drawn_code(draw)
        core = drawn_core(draw)
        memory = both(toy_standings(), code, core, draw.choice((1, 3, 16, 64)))[1]
        found.append(memory)
        refused += compiled_of(code, core) is None
    passages = [one for memory in found for one in memory.passages]
    seen = [
        any(one.distance > 2 for one in passages), any(one.between for one in passages),
        any(one.offset for one in passages), any(memory.chunks > 1 for memory in found),
        any(memory.banks for memory in found), any(memory.crossing for memory in found),
        any(memory.chunks % 1 for memory in found), any(memory.longer for memory in found),
    ]  # fmt: skip
    assert all(seen), seen
    assert 0 < refused < len(found) / 4, "parts of words, and shifts out of numbers"


def compiled_of(code, core):
    """What compiled code finds, None where it refuses."""
    costs = Predictor(toy_standings().costs.machine).costs
    costs.behaviour = core
    standings = Standings(costs)
    known = standings.of(code)
    words = [standings.compiled.form_words(one, s.places) for one, s in zip(code, known, strict=True)]
    return standings.compiled.found(code, words, sum(s.loads for s in known))


@cache
def pool(isa: str, model: str) -> tuple[Standings, list]:
    """Instructions of another instruction set with few registers, most of them with memory."""
    machine = load_model(model)
    draw, reader = random.Random(5), decoder(isa)
    fields = {"aarch64": (0, 5, 16, 10), "riscv64": (7, 15, 20)}[isa]
    registers = {"aarch64": (0, 0, 1, 31), "riscv64": (0, 2, 10)}[isa]
    found, memory = [], []
    for _ in range(15_000):
        word = draw.getrandbits(32) | (3 if isa == "riscv64" else 0)
        for field in fields:
            word = word & ~(0x1F << field) | draw.choice(registers) << field
        one = reader.instruction(word.to_bytes(4, "little"), 0)
        form = one.form
        if form is None or not {"branch", "call", "return", "trap", "serializing"}.isdisjoint(
            form.attributes
        ):
            continue
        if machine.forms.get(form.id) is None and machine.forms.get(form.llvm) is None:
            continue
        (memory if form.accesses else found).append(one)
    assert len(found) > 40
    assert len(memory) > 40
    return Standings(Predictor(machine).costs), [found, memory, memory]


@pytest.mark.parametrize(("isa", "model"), [("aarch64", "neoverse-v2"), ("riscv64", "sifive-p670")])
def test_other_instruction_sets_too(isa, model):
    standings, kinds = pool(isa, model)
    some = 0
    for seed in range(150):
        draw = random.Random(seed)
        code = tuple(draw.choice(draw.choice(kinds)) for _ in range(draw.randint(1, 16)))
        compiled, python = both(standings, code, drawn_core(draw), draw.choice((3, 64)))
        assert compiled == python, seed
        some += len(python.passages)
    assert some > 5


@given(seeds)
def test_numbers_that_are_none_are_refused(seed):
    native, draw = library(), random.Random(seed)
    assert native is not None
    costs = Predictor(toy_standings().costs.machine).costs
    costs.behaviour = drawn_core(draw)
    standings = Standings(costs)
    code = drawn_code(draw)
    known = standings.of(code)
    words = array(
        "q",
        b"".join(standings.compiled.form_words(one, s.places) for one, s in zip(code, known, strict=True)),
    )
    own = array("q", b"".join(standings.compiled.own_words(code)))
    core = array("q", bytes(standings.compiled.core_words()))
    for numbers, most in ((words, 4), (own, 2), (core, 2)):
        for _ in range(draw.randint(0, most)):
            numbers[draw.randrange(len(numbers))] = draw.choice(ODD)
    if draw.random() < 0.3:
        words = words[: draw.randrange(len(words) + 1)]
    room = sum(access.read for one in code for access in one.form.accesses)
    rows, out = array("q", bytes(56 * room)), array("q", bytes(64))
    status = native.bounds_memory(
        words.buffer_info()[0], len(words), own.buffer_info()[0], len(own), len(code), core.buffer_info()[0],
        rows.buffer_info()[0], room, out.buffer_info()[0],
    )  # fmt: skip
    assert status in (0, -1)


ODD = (-(1 << 63), (1 << 63) - 1, -(1 << 40), -1, 0, 1, 2, 3, 31, 64, 1 << 20, 1 << 50)
