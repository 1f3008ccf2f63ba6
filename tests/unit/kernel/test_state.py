"""Machine states: what is packed for the runner is what comes back."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from cyclescope.kernel.state import DEFAULT_MXCSR, VECTOR_EVEX512, MachineState

WORDS = st.integers(0, (1 << 64) - 1)
PATTERNS = st.binary(min_size=64, max_size=64)
ALL = (1 << 64) - 1


def words(count):
    return st.lists(WORDS, max_size=count).map(tuple)


STATES = st.builds(
    MachineState,
    general=words(32),
    vector=PATTERNS,
    vectors=st.dictionaries(st.integers(0, 31), PATTERNS, max_size=5).map(lambda d: tuple(sorted(d.items()))),
    masks=words(16),
    fill=st.tuples(PATTERNS, PATTERNS),
    pokes=st.lists(st.tuples(WORDS, WORDS), max_size=8).map(tuple),
    vector_level=st.integers(0, VECTOR_EVEX512),
    x87=st.booleans(),
    flags=WORDS,
    control=st.integers(0, (1 << 32) - 1),
    scalars=words(32),
    streaming=st.booleans(),
    chain=st.tuples(st.integers(0, (1 << 22) - 1), st.integers(0, 1023).map(lambda n: 64 * n)),
)


def padded(values, count):
    return values + (0,) * (count - len(values))


@given(STATES)
def test_unpacking_undoes_packing(state):
    back = MachineState.unpack(state.packed)
    assert back.packed == state.packed
    for name in ("fill", "pokes", "chain", "vector_level", "x87", "flags", "control", "streaming"):
        assert getattr(back, name) == getattr(state, name)
    assert back.general == padded(state.general, 32)
    assert back.masks == padded(state.masks, 16)


@given(STATES)
def test_every_vector_register_has_its_value(state):
    registers = dict(MachineState.unpack(state.packed).vectors)
    given = dict(state.vectors)
    assert registers == {n: given.get(n, state.vector) for n in range(32)}


@given(STATES)
def test_scalar_registers_have_their_values_or_those_of_the_vectors(state):
    first = int.from_bytes(state.vector[:8], "little")
    wanted = padded(state.scalars, 32) if state.scalars else (first,) * 32
    assert MachineState.unpack(state.packed).scalars == wanted


@given(STATES)
def test_all_states_have_one_size(state):
    assert len(state.packed) == len(MachineState((0,) * 16).packed)


def test_a_plain_state_has_no_exceptions_unmasked():
    state = MachineState.unpack(MachineState((0,) * 16).packed)
    assert state.control == DEFAULT_MXCSR == 0x1F80
    assert state.masks == (ALL,) * 16
    assert not state.x87


def test_states_of_older_stores():
    """In the layout of protocol 3: the same state, with fewer registers."""
    registers = [bytes([n]) * 64 for n in range(32)]
    packed = struct.pack(
        "<16Q Q I H H 2048s 8Q 64s 64s I I 16Q", *range(16), 0x202, 0x1FC0, 3, 1, b"".join(registers),
        *range(50, 58), b"a" * 64, b"b" * 64, 2, 0, *range(100, 116),
    )  # fmt: skip
    state = MachineState.unpack(packed)
    assert state.general == tuple(range(16))
    assert state.vectors == tuple(enumerate(registers))
    assert state.masks == tuple(range(50, 58))
    assert state.fill == (b"a" * 64, b"b" * 64)
    assert state.pokes == ((100, 101), (102, 103))
    assert (state.flags, state.control, state.vector_level, state.x87) == (0x202, 0x1FC0, 3, True)
    assert MachineState.unpack(state.packed).general[:16] == state.general
