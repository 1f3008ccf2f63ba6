"""Dependencies by compiled code against those of Python, which says what is right."""

from __future__ import annotations

import random
from array import array
from functools import cache

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cyclescope.analyze.decode.block import Block, BlockInstruction
from cyclescope.analyze.depend.compiled.chains import chains
from cyclescope.analyze.depend.compiled.library import library
from cyclescope.analyze.depend.graph import Graph
from cyclescope.analyze.depend.late_loads import late_loads
from cyclescope.analyze.depend.loop_carried import is_carried, loop_carried, slowest_chain, trips
from cyclescope.model.behaviour.late_loads import LateLoads
from cyclescope.model.behaviour.published import CoreBehaviour
from tests.support.code.blocks import block, pieces, predictor

LINES = (
    "mov {a}, {b}", "add {a}, {b}", "add {a}, 8", "imul {a}, {b}", "lea {a}, [{b} + {c} + 8]", "xor {a}, {a}",
    "adc {a}, {b}", "cmp {a}, {b}", "cmovb {a}, {b}", "sbb {a}, {a}", "inc {a}", "shl {a}, cl", "mul {a}",
    "mov {a}, [{b}]", "mov {a}, [{b} + {c}]", "mov [{b}], {a}", "add {a}, [{b}]", "add [{b}], {a}",
    "mov [{b} + 8], {a}", "mov {a}, [{b} + 8]", "push {a}", "pop {a}", "mov {a}, rsp", "add rsp, 8",
    "mov [{b} + 24], {a}; mov {c}, [{b}]; add {b}, 8",
    "vaddpd ymm0, ymm0, ymm1", "vmulpd ymm1, ymm0, [{b}]", "vmovupd [{b}], ymm1", "vmovupd ymm0, [{b}]",
)  # fmt: skip
REGISTERS = ("rax", "rbx", "rcx", "rdx", "rsi")
CYCLES = (0.0, 0.5, 1.0, 1.0, 2.0, 1 / 3, 3.02, 4.98, 7.0)
EARLY = {"ADD": 1.5, "VADDPD": 1 / 3}
LATE, ROOM_FOR = LateLoads(0.5, 0.25, 1 / 3), LateLoads(0.5, 0.0, 0.0, 3.0, 1 / 3)
seeds = st.integers(0, 1 << 32)


@cache
def drawn_pieces() -> list[tuple[BlockInstruction, ...]]:
    """Instructions of few registers, so that they depend on each other."""
    draw = random.Random(3)
    names = (dict(zip("abc", draw.choices(REGISTERS, k=3), strict=True)) for _ in range(15 * len(LINES)))
    return pieces([line.format(**some) for line, some in zip(15 * LINES, names, strict=True)])


def drawn_block(draw: random.Random) -> Block:
    """A few of them."""
    found = draw.choices(drawn_pieces(), k=draw.randint(1, 12))
    return Block(tuple(one for piece in found for one in piece), "x86-64", "test")


def drawn_graph(seed: int) -> Graph:
    """The graph of a drawn block, with drawn cycles between sources and targets, and a drawn core."""
    draw = random.Random(seed)
    graph = predictor().graph(drawn_block(draw).instructions)
    early = draw.choice(({}, {}, EARLY))
    behaviour = CoreBehaviour(early=early, stack_update=draw.choice((0.0, 1.0, 1 / 3)))
    costs = tuple(
        msgspec.structs.replace(
            placed,
            columns=tuple(tuple((k, draw.choice(CYCLES)) for k, _ in column) for column in placed.columns),
            killed=("CF",) if draw.random() < 0.1 else placed.killed,
        )
        for placed in graph.costs
    )
    return msgspec.structs.replace(graph, costs=costs, behaviour=behaviour, forwarded=draw.choice(CYCLES))


def by_python(graph: Graph) -> Graph:
    """The same graph, which compiled code does not look at."""
    found = msgspec.structs.replace(graph)
    found.__dict__["chains"] = None
    return found


def test_there_is_compiled_code():
    assert library() is not None


@given(seeds)
def test_compiled_code_and_python_say_the_same(seed):
    graph = drawn_graph(seed)
    slow = by_python(graph)
    assert graph.chains is not None
    assert slowest_chain(graph) == slowest_chain(slow), "to the last bit"
    assert is_carried(graph) == is_carried(slow) == bool(graph.carried)
    assert trips(graph) == trips(slow)
    assert late_loads(graph, LATE) == late_loads(slow, LATE)
    assert late_loads(graph, ROOM_FOR) == late_loads(slow, ROOM_FOR)


def comes_later(graph: Graph) -> bool:
    """Whether a value that is no load's comes later than its instruction says."""
    return any(
        one.cycles > dict(column)[one.source] and not placed.loads(one.source)
        for placed, first in zip(graph.costs, graph.first, strict=True)
        for place, column in enumerate(placed.columns)
        for one in graph.inputs[first + place]
    )


def test_values_come_later_only_where_they_may():
    """Blocks in which none does are simulated without looking for them."""
    graphs = [drawn_graph(seed) for seed in range(150)]
    assert all(graph.may_come_later for graph in graphs if comes_later(graph))
    assert {graph.may_come_later for graph in graphs} == {True, False}
    assert any(map(comes_later, graphs))


@given(seeds)
@example(6481)
def test_the_slowest_chain_is_listed_where_others_have_the_same_instructions(seed):
    graph = drawn_graph(seed)
    assert slowest_chain(graph) == max((chain.cycles for chain in loop_carried(graph)), default=0.0)


def test_drawn_blocks_have_everything_that_is_compared():
    graphs = [drawn_graph(seed) for seed in range(150)]
    found = [
        any(len(c.nodes) > 2 and c.iterations > 1 for graph in graphs for c in loop_carried(graph)),
        any(cycles > 0 for graph in graphs for cycles in trips(graph)),
        any(late_loads(graph, LATE) > 0 for graph in graphs),
        any(graph.chains and graph.chains.waits > 0 for graph in graphs),
        any(graph.chains and graph.chains.late for graph in graphs),
        any(graph.behaviour.early and graph.chains for graph in graphs),
        any(value.distance > 1 for graph in graphs for value in graph.carried),
        any(not is_carried(graph) for graph in graphs),
    ]
    assert all(found), found


@given(seeds)
@example(14525)  # a negative `equal`: the slowest cycle was looked for without an end
def test_numbers_that_are_none_are_refused(seed):
    native, draw = library(), random.Random(seed)
    assert native is not None
    graph = drawn_graph(seed)
    block_words, passages = recorded(graph)
    words = array("d", block_words)
    for _ in range(draw.randint(1, 4)):
        words[draw.randrange(len(words))] = draw.choice(ODD)
    if draw.random() < 0.5:
        words = words[: draw.randrange(len(words) + 1)]
    for _ in range(draw.randint(0, 2) if passages else 0):
        passages[draw.randrange(len(passages))] = draw.choice(ODD)
    answer, late = array("B", bytes(ROOM)), array("b", bytes(len(graph.costs)))
    status = native.bounds_chain(
        words.buffer_info()[0], len(words), passages.buffer_info()[0], len(passages) // 7, None, 0,
        answer.buffer_info()[0], late.buffer_info()[0], len(late),
    )  # fmt: skip
    assert status in (0, -1)


ROOM = 1024  # bytes for an answer, and more
ODD = (-1.0, 0.0, 1.0, 2.0, 7.0, 1e9, -1e300, float("nan"), float("inf"), 255.0, 0.5)


def recorded(graph: Graph) -> tuple[array, array]:
    """The numbers that compiled code is given for a graph."""
    kept = []

    class Recorder:
        def bounds_chain(self, words, count, rows, passages, *_):
            kept.append(array("d", words))
            return -1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cyclescope.analyze.depend.compiled.chains.library", Recorder)
        assert chains(graph.costs, graph.places, graph.passed(), (), 1.0) is None
    rows = array("d", [number for one in graph.passed() for number in (*one, -1)])
    return kept[0], rows


def test_without_the_library_python_computes(monkeypatch, tmp_path):
    blocks = [drawn_block(random.Random(seed)) for seed in range(50)]
    found = [predictor().estimate(one) for one in blocks]
    monkeypatch.setenv("CYCLESCOPE_BOUNDS", str(tmp_path / "none.so"))
    library.cache_clear()
    try:
        assert library() is None
        assert [predictor().estimate(one) for one in blocks] == found
        (tmp_path / "none.so").write_text("no library")
        library.cache_clear()
        assert library() is None
    finally:
        library.cache_clear()


def test_python_does_what_is_too_long():
    graph = predictor().graph(block("; ".join(["add rax, rbx"] * 4097)).instructions)
    assert graph.chains is None
    assert slowest_chain(graph) == 4097
