"""The simulated core keeps ports as busy as was measured where no micro-operations explain it."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model.machine import Operation
from cyclescope.model.ports import holding
from tests.support.code.blocks import block, changed, measured

ADDED = "lea rcx, [rsi + 8]; "


def simulated(operations, **resources):
    """Cycles of a move to a vector that waits for nothing, beside two additions."""
    costs = {"operations": operations, "throughput": 1.0, "slots": 1.0, "resources": resources}
    machine = changed(measured(), VMOVD_XMM_R32=costs)
    held = dict.fromkeys(resources, 1.0)
    predictor = Predictor(msgspec.structs.replace(machine, resources={**machine.resources, **held}))
    return predictor.simulated(predictor.graph(list(block(2 * ADDED + "vmovd xmm0, edi").instructions)))


def test_a_form_whose_ports_are_held_by_something_keeps_them_busy():
    """Additions have three ports; one of these is held for two cycles."""
    nothing = simulated(None)
    assert simulated(None, pa=2.0) == pytest.approx(2, abs=0.02)
    assert nothing < 1
    assert simulated((Operation((1,)),), pa=2.0) < 1.1  # known: what else costs others is no operation


@pytest.mark.parametrize(
    ("resources", "held"),
    [
        ({"pa": 1.0, "pb": 1.0, "pa,b": 2.0, "pa,b,c": 3.2}, [((0,), 1), ((1,), 1), ((0, 1, 2), 1)]),
        ({"pa,b": 1.6, "pa,b,c": 2.3}, [((0, 1), 2)]),
        ({"pa": 0.4, "a unit": 3.0}, []),
        ({}, []),
    ],
)
def test_each_set_of_ports_is_held_for_what_those_inside_it_leave(resources, held):
    names = ("a", "b", "c", "load", "store")
    assert [(op.ports, op.count) for op in holding(resources, names)] == held
