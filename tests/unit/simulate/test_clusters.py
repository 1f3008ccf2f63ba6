"""Results that are announced too early, and clusters of ports: steady states of the engine."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.errors import UsageError
from cyclescope.model.limits import CLUSTERS
from cyclescope.model.machine import ROUND_ROBIN, STATIC
from cyclescope.simulate.engine import Engine, Layout, Template
from tests.support.made.cores import loop, work

ALUS = Layout(width=8, ports=6)
ALL = (0, 1, 2, 3, 4, 5)


def made_and_read(layout, apart=0, latency=1):
    """Cycles of a result of so many cycles, others of its kind, and what reads it: all on all ports."""
    make = Template(1, (float(latency),), (), (work(*ALL, feeds=1),))
    read = Template(1, (), ((),), (work(*ALL, feeds=0, after=(0,)),))
    idle = Template(1, (), (), (work(*ALL, feeds=0),))
    core = Engine(layout)
    return core.run(loop(core, (make, 0), *[(idle,)] * apart, (read, 0))).cycles


def test_results_that_are_announced_too_early_cost_ports():
    """A reader that is next to what it reads asks with it, and takes a port for nothing."""
    early = msgspec.structs.replace(ALUS, announcing=0b111111)
    assert made_and_read(ALUS) == pytest.approx(2 / 6, abs=0.005)
    assert made_and_read(early) == pytest.approx(3 / 6, abs=0.005)
    assert made_and_read(early, apart=12) == pytest.approx(14 / 6, abs=0.03)
    assert made_and_read(early, latency=3) == pytest.approx(2 / 6, abs=0.005)
    some = msgspec.structs.replace(ALUS, announcing=0b11111)
    assert made_and_read(some) == pytest.approx(2 / 6, abs=0.005)


def test_operations_of_all_ports_get_a_cluster_of_them():
    """In two clusters, each operation in any of them, readers far away ask too early as well."""
    parts = {"clusters": (0b000111, 0b111000)}
    assert made_and_read(msgspec.structs.replace(ALUS, **parts)) == pytest.approx(2 / 6, abs=0.02)
    both = msgspec.structs.replace(ALUS, announcing=0b111111, **parts)
    assert made_and_read(both) > 0.45
    assert made_and_read(both, apart=4) > 1.05
    core, narrow = Engine(both), Template(1, (), (), (work(0, 1, 3, feeds=0),))
    assert core.run(loop(core, (narrow,))).cycles == pytest.approx(1 / 3, abs=0.005)


@pytest.mark.parametrize("policy", [STATIC, ROUND_ROBIN])
def test_nothing_is_announced_where_ports_are_chosen_at_dispatch(policy):
    late = msgspec.structs.replace(ALUS, policy=policy)
    early = msgspec.structs.replace(late, announcing=0b111111, clusters=(0b000111, 0b111000))
    assert made_and_read(early) == made_and_read(late)


def test_the_engine_refuses_more_clusters_than_it_has_room_for():
    Engine(msgspec.structs.replace(ALUS, clusters=(1,) * CLUSTERS))
    with pytest.raises(UsageError, match="no such core"):
        Engine(msgspec.structs.replace(ALUS, clusters=(1,) * (CLUSTERS + 1)))
