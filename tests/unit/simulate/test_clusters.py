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


def test_what_asked_in_vain_leaves_out_a_cycle():
    """Of two ports one is full: who reads what waits for it leaves every other cycle of the other port."""
    two = msgspec.structs.replace(ALUS, ports=2, announcing=0b11)
    make, block = Template(1, (1.0,), (), (work(0, feeds=1),)), Template(1, (), (), (work(0, feeds=0),))
    read, other = (
        Template(1, (), ((),), (work(0, 1, feeds=0, after=(0,)),)),
        Template(1, (), (), (work(1, feeds=0),)),
    )
    core = Engine(two)
    cycles = core.run(loop(core, (block,), (block,), (make, 0), (read, 0), (other,))).cycles
    assert cycles == pytest.approx(3, abs=0.05)


def test_operations_of_all_ports_get_a_cluster_of_them():
    """In two clusters, each operation in any of them, readers far away ask too early as well."""
    parts = {"clusters": (0b000111, 0b111000)}
    assert made_and_read(msgspec.structs.replace(ALUS, **parts)) == pytest.approx(2 / 6, abs=0.02)
    both = msgspec.structs.replace(ALUS, announcing=0b111111, **parts)
    assert made_and_read(both) > 0.45
    assert made_and_read(both, apart=4) > 1.02
    core, narrow = Engine(both), Template(1, (), (), (work(0, 1, 3, feeds=0),))
    assert core.run(loop(core, (narrow,))).cycles == pytest.approx(1 / 3, abs=0.005)


def test_a_cluster_in_which_more_wait_gets_nothing_that_another_one_could_do():
    """What has ports of one cluster alone fills it: what has those of both goes to the other one."""
    core = Engine(msgspec.structs.replace(ALUS, clusters=(0b000111, 0b111000)))
    some, every = (Template(1, (), (), (work(*ports, feeds=0),)) for ports in ((0, 1, 2), ALL))
    assert core.run(loop(core, *3 * [(some,)], *3 * [(every,)])).cycles == pytest.approx(1.0, abs=0.01)
    assert core.run(loop(core, *8 * [(some,)], *8 * [(every,)])).cycles == pytest.approx(8 / 3, abs=0.05)


def test_readers_with_a_load_are_woken_up_too_early_as_others_are():
    early = msgspec.structs.replace(ALUS, ports=8, announcing=0b111111)
    make = Template(1, (1.0,), (), (work(*ALL, feeds=1),))
    load = work(6, 7, feeds=0, after=(None, 0), early=True)
    read = Template(1, (), ((), ()), (load, work(*ALL, feeds=0, after=(0, 4))))
    idle = Template(1, (), (), (work(*ALL, feeds=0),))
    cycles = [
        core.run(loop(core, (make, 0), (read, 0, 1), (idle,), (idle,))).cycles
        for core in (Engine(msgspec.structs.replace(early, announcing=0)), Engine(early))
    ]
    assert cycles[0] == pytest.approx(4 / 6, abs=0.02)
    assert cycles[1] > 4.3 / 6


def test_results_of_operations_with_a_load_are_announced_too_early_as_others_are():
    early = msgspec.structs.replace(ALUS, ports=10, announcing=0b111111)
    load = work(6, 7, 8, 9, feeds=0, after=(0,), early=True)
    make = Template(1, (0.0,), ((5.0,),), (load, work(*ALL, feeds=1, after=(4,))))
    read = Template(1, (), ((),), (work(*ALL, feeds=0, after=(0,)),))
    cycles = [
        core.run(loop(core, (make, 1, 0), (read, 0))).cycles
        for core in (Engine(msgspec.structs.replace(early, announcing=0)), Engine(early))
    ]
    assert cycles[0] == pytest.approx(2 / 6, abs=0.02)
    assert cycles[1] > 2.3 / 6


def test_a_cluster_is_given_the_less_often_the_more_wait_in_it():
    """What may use any port leaves a full cluster, the better the more room there is for it to be."""
    narrow, wide = (Template(1, (), (), (work(*ports, feeds=0),)) for ports in ((0, 1, 2), ALL))
    taken = []
    for room in (48, 64, 256):
        core = Engine(msgspec.structs.replace(ALUS, clusters=(0b000111, 0b111000), reorder_buffer=room))
        taken.append(core.run(loop(core, *8 * [(narrow,)], *8 * [(wide,)])).cycles)
    assert taken == pytest.approx([3.12, 2.84, 8 / 3], abs=0.1)


def test_ages_that_are_not_known_exactly_wake_up_far_readers_too_early():
    early = msgspec.structs.replace(ALUS, announcing=0b111111)
    lost = [
        6 * made_and_read(msgspec.structs.replace(early, blur=blur), apart=7) - 9 for blur in (0, 8, 16, 32)
    ]
    assert lost == pytest.approx([0.0, 0.1, 0.3, 0.42], abs=0.07)
    plain = msgspec.structs.replace(ALUS, blur=16)
    assert made_and_read(plain) == pytest.approx(2 / 6, abs=0.01)


@pytest.mark.parametrize("policy", [STATIC, ROUND_ROBIN])
def test_nothing_is_announced_where_ports_are_chosen_at_dispatch(policy):
    late = msgspec.structs.replace(ALUS, policy=policy)
    early = msgspec.structs.replace(late, announcing=0b111111, clusters=(0b000111, 0b111000))
    assert made_and_read(early) == made_and_read(late)


def test_the_engine_refuses_more_clusters_than_it_has_room_for():
    Engine(msgspec.structs.replace(ALUS, clusters=(1,) * CLUSTERS))
    with pytest.raises(UsageError, match="no such core"):
        Engine(msgspec.structs.replace(ALUS, clusters=(1,) * (CLUSTERS + 1)))


def dealt(shifts, others=0, idle=0, leading=0b000111, slow=1):
    """Cycles of operations of some ports of both clusters, of one cluster, of all ports, and of none."""
    parts = {"clusters": (0b000111, 0b111000), "losing": 0b111111, "announcing": 0b111111, "leading": leading}
    core = Engine(msgspec.structs.replace(ALUS, ports=7, blur=8, **parts))
    times = msgspec.structs.replace(work(0, 3, 4, feeds=1), result=3)
    kinds = [
        (Template(1, (3.0,), (), (times,)), slow),
        (Template(1, (), (), (work(0, 1, 2, feeds=0),)), shifts),
    ]
    kinds += [(Template(1, (), (), (msgspec.structs.replace(work(*ALL, feeds=0), result=1),)), others)]
    kinds += [(Template(1, (), (), ()), idle)]
    body = [(one, 0) if one.base else (one,) for one, many in kinds for _ in range(many)]
    return core.run(loop(core, *body)).cycles


def test_ports_of_several_clusters_are_dealt_those_of_the_leading_one_first():
    """Were they free for any, or dealt in another order, 3 of 3 ports would take a cycle."""
    assert dealt(3, idle=4) == pytest.approx(4 / 3, abs=0.01)
    assert dealt(3, idle=2, slow=3) == pytest.approx(4 / 3, abs=0.01)
    assert dealt(3, idle=4, leading=0b111000) == pytest.approx(1.0, abs=0.01)
    assert dealt(3, idle=4, leading=0) == pytest.approx(1.0, abs=0.01)
    assert dealt(0, slow=4) == pytest.approx(4 / 3, abs=0.01)  # more than there are ports go to each


def test_results_of_what_was_dealt_take_the_place_of_one_that_any_port_could_make():
    assert dealt(0, others=7) > 8.3 / 6
    assert dealt(6, idle=1) == pytest.approx(7 / 3, abs=0.02)  # shifts lose none
