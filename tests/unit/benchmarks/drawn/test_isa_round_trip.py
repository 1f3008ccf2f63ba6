"""AArch64 and RISC-V machines, simulated, measured and inferred: latencies and throughputs come back."""

from __future__ import annotations

import shutil

import pytest

from benchmarks.drawn.isa_round_trip import EQUAL, HOLDS, MACHINES, NONE, WRONG, compare, simulated, timings
from cyclescope.backend.peers.llvm_mca import NAMES
from cyclescope.backend.simulated import LOUD, QUIET
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.isa.table import load_table
from cyclescope.measure.store import Store
from tests.support.programs.installed_mca import backend_for

FEW = {"neoverse-v2": 60, "cortex-a510": 50, "a64fx": 40, "xiangshan-nanhu": 60, "sifive-p670": 30}


def check(name, count, noise, least):
    rows, _ = compare(name, count, noise)
    known = [row for row in rows if row.known and row.verdict != NONE]
    exact = [row for row in known if row.exact]
    assert len(known) > count
    assert sum(row.verdict == EQUAL for row in exact) >= least * len(exact)
    assert sum(row.verdict != WRONG for row in known) >= least * len(known)


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
def test_a_few_forms_of_a_machine(name):
    check(name, FEW[name], QUIET, 0.97)


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_many_forms_of_a_machine(name):
    check(name, 1500, LOUD, 0.97)


def test_the_accumulator_of_fmadd_is_found_by_measuring(tmp_path):
    """Neoverse V2 forwards sums late: 2 cycles for the accumulator, 4 for the factors."""
    table = load_table("aarch64")
    machine = simulated("neoverse-v2")
    (found,) = timings(machine, table, [table["FMADDDrrr"]], LOUD, tmp_path / "store.sqlite")
    latencies = {latency.source: (latency.min, latency.max, latency.kind) for latency in found.latencies}
    assert latencies["op2"] == latencies["op3"] == (4.0, 4.0, "exact")
    assert latencies["op4"] == (2.0, 2.0, "exact")
    assert found.throughput.value == pytest.approx(0.25, abs=0.005)


@pytest.mark.skipif(not any(map(shutil.which, NAMES)), reason="needs llvm-mca")
def test_llvm_mca_answers_the_same_kernels(tmp_path):
    table = load_table("aarch64")
    store = Store(tmp_path / "store.sqlite", "neoverse-v2")
    campaign = Campaign(table, backend_for("neoverse-v2", "aarch64"), store)
    campaign.run(Request((table["FMADDDrrr"],)), {})
    (found,) = campaign.results([table["FMADDDrrr"]])
    assert [latency.max for latency in found.latencies][:3] == [4.0, 4.0, 2.0]
    assert found.throughput.value == pytest.approx(0.25, abs=0.005)
    store.close()


def test_verdicts_tell_bounds_from_wrong_values():
    rows, _ = compare("xiangshan-nanhu", 40, QUIET)
    bounds = [row for row in rows if row.verdict == HOLDS]
    assert bounds
    assert all(row.found > row.truth for row in bounds if row.what == "throughput")
