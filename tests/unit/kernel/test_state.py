"""Machine states: what is packed for the runner is what comes back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cyclescope.kernel.state import DEFAULT_MXCSR, VECTOR_EVEX512, MachineState

WORDS = st.integers(0, (1 << 64) - 1)
PATTERNS = st.binary(min_size=64, max_size=64)
STATES = st.builds(
    MachineState,
    general=st.tuples(*[WORDS] * 16),
    vector=PATTERNS,
    vectors=st.dictionaries(st.integers(0, 31), PATTERNS, max_size=5).map(lambda d: tuple(sorted(d.items()))),
    masks=st.tuples(*[WORDS] * 8),
    fill=st.tuples(PATTERNS, PATTERNS),
    pokes=st.lists(st.tuples(WORDS, WORDS), max_size=8).map(tuple),
    vector_level=st.integers(0, VECTOR_EVEX512),
    x87=st.booleans(),
    flags=WORDS,
    mxcsr=st.integers(0, (1 << 32) - 1),
)


@given(STATES)
def test_unpacking_undoes_packing(state):
    back = MachineState.unpack(state.packed)
    assert back.packed == state.packed
    for name in ("general", "masks", "fill", "pokes", "vector_level", "x87", "flags", "mxcsr"):
        assert getattr(back, name) == getattr(state, name)


@given(STATES)
def test_every_vector_register_has_its_value(state):
    registers = dict(MachineState.unpack(state.packed).vectors)
    given = dict(state.vectors)
    assert registers == {n: given.get(n, state.vector) for n in range(32)}


@given(STATES)
def test_all_states_have_one_size(state):
    assert len(state.packed) == len(MachineState((0,) * 16).packed)


def test_a_plain_state_has_no_exceptions_unmasked():
    state = MachineState.unpack(MachineState((0,) * 16).packed)
    assert state.mxcsr == DEFAULT_MXCSR == 0x1F80
    assert state.masks == ((1 << 64) - 1,) * 8
    assert not state.x87
