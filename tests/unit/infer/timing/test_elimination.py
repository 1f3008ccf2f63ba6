"""Whether chains say that the renamer executes a form."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from cyclescope.infer.timing.elimination import takes_no_time
from cyclescope.infer.timing.latency_system import LinkLatency
from cyclescope.measure.record import Record

LEA, LINK = "LEA_B (R64)", "r>r xor xor"


def store_of(form, chains):
    """A store with chains of one form and their cycles, each with one link of three cycles."""
    records = [
        Record(form, "latency", *ends, "link", cycles, 0.01, "ok", 1, (LINK,)) for ends, cycles in chains
    ]
    records.append(Record(form, "throughput", "", "", "plain x8", 1.336, 0.01, "ok", 8, ()))
    link = msgspec.json.encode(LinkLatency(3.0, 3.0, 3.0))
    return SimpleNamespace(
        records_of=lambda quantities, forms: records if form in forms else [],
        links=lambda: {LINK: link}, emulated=False,
    )  # fmt: skip


@pytest.mark.parametrize(("cycles", "free"), [(3.0, True), (4.0, False)])
def test_a_form_whose_chain_takes_no_longer_than_its_links_takes_no_time(table, cycles, free):
    assert takes_no_time(store_of(LEA, [(("op2.address", "op1"), cycles)]), table[LEA]) == free


def test_what_was_not_measured_may_take_time(table):
    assert not takes_no_time(store_of(LEA, []), table[LEA])
    assert not takes_no_time(store_of(LEA, [(("op2.address", "op1"), 3.0)]), table["LEA_B_D8 (R64)"])


def test_what_is_no_move_may_depend_on_nothing(table):
    form = "BLSR (R64, R64)"
    assert not takes_no_time(store_of(form, [(("op2", "op1"), 3.0)]), table[form])
