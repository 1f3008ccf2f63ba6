"""Vector ports that are dealt out at dispatch, and write one result in a cycle each."""

from __future__ import annotations

import shutil
from math import sqrt

import msgspec
import pytest

from cyclescope.model.machine import EVENLY, IDEAL, Operation, Writeback
from cyclescope.session.predictors import Analytic
from tests.support.code.blocks import block, changed, measured, predicted

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)

ADD, TIMES = "paddd xmm0, xmm1; ", "movaps xmm2, xmm3; mulps xmm2, xmm4; "  # a chain, and what stands alone
SHORT, LONG = 2.0, 3.0


def bounds(text, **rest):
    return predicted(text, loop=True, machine=core(**rest)).bounds


def core(long=LONG, ports=(0,), binding=IDEAL, found=True):
    """Multiplications have the first port or two; additions both."""
    machine = changed(
        measured(),
        PADDD_XMM_XMM={
            "operations": (Operation((0, 1)),), "latencies": {"op1->op1": SHORT, "op2->op1": SHORT},
        },
        MULPS_XMM_XMM={
            "operations": (Operation(ports),), "latencies": {"op1->op1": long, "op2->op1": long},
        },
        MOVAPS_28_XMM_XMM={"eliminated": True, "operations": ()},
        MOVAPS_0F28_XMM_XMM={"eliminated": True, "operations": ()},
    )  # fmt: skip
    writeback = Writeback((0, 1)) if found else None
    dealt = msgspec.structs.replace(machine.core, binding=binding, writeback=writeback)
    return msgspec.structs.replace(machine, core=dealt)


def waited(meet, chain=SHORT):
    return (chain + sqrt(chain**2 + 4 * meet)) / 2


@pytest.mark.parametrize(
    ("text", "ports", "meet"),
    [
        (ADD + TIMES, (0,), 1 / 2),  # of the additions half are on the port
        (ADD + TIMES, (0, 1), 1 / 2),  # half of them, too, on either port
        (ADD + TIMES + TIMES, (0,), 1),
        (ADD + "paddd xmm5, xmm6; " + TIMES, (0,), 1 / 2),  # what takes no longer is younger
    ],
)
def test_a_chain_waits_where_its_ports_write_what_takes_longer(text, ports, meet):
    assert bounds(text, ports=ports)["meeting_results"] == pytest.approx(waited(meet))


def test_every_operation_of_a_chain_waits():
    assert bounds(2 * ADD + TIMES)["meeting_results"] == pytest.approx(waited(1, 2 * SHORT))


@pytest.mark.parametrize("other", [{"long": SHORT}, {"found": False}, {"binding": EVENLY}, {"ports": (2,)}])
def test_results_that_take_as_long_and_other_ports_hold_up_none(other):
    assert "meeting_results" not in bounds(ADD + TIMES, **other)


def test_what_only_passes_through_waits_for_none():
    assert "meeting_results" not in bounds("movaps xmm0, xmm1; " + ADD + TIMES)


def test_the_simulated_core_sees_itself_who_gets_which_port():
    """Two multiplications on the one port, and two additions: as good as the best, not an even use."""
    text = "movaps xmm0, xmm1; paddd xmm0, xmm1; " + TIMES
    (found,) = Analytic(core()).answers([block(2 * text, loop=True)])
    assert found.cycles == pytest.approx(2, abs=0.1)
