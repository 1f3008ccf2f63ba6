"""Costs with the least and the most that is proved: made anew only where that makes a difference."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.analyze.cost.changes import LEAST_PROVED, MOST_PROVED
from cyclescope.analyze.cost.instruction import PlacedCosts
from cyclescope.analyze.cost.latencies import FIRST, CostVariant
from cyclescope.analyze.depend.graph import build
from cyclescope.analyze.depend.graphs import Graphs
from cyclescope.analyze.depend.loop_carried import slowest_chain
from cyclescope.analyze.depend.standing import Standings
from cyclescope.isa.table import load_table
from cyclescope.model.machine import EXTRACTED, MEASURED, MachineModel, Provenance
from cyclescope.session.machines import load_model
from tests.support.code.blocks import block

VARIANTS = (CostVariant(), CostVariant(idiom="breaking"), CostVariant(fused=FIRST), CostVariant(renamed=True))


def machine(kind: str) -> MachineModel:
    """A core of whose latencies every third is a range, and every fifth is not known."""
    shipped = load_model("znver3")
    forms = {}
    for number, (name, cost) in enumerate(shipped.forms.items()):
        known = {pair: c for n, (pair, c) in enumerate(cost.latencies.items()) if (n + number) % 5}
        ranges = {pair: (c / 2, c + 1) for n, (pair, c) in enumerate(known.items()) if not (n + number) % 3}
        forms[name] = msgspec.structs.replace(cost, latencies=known, ranges=ranges)
    return msgspec.structs.replace(shipped, provenance=Provenance(kind), forms=forms)


@pytest.mark.parametrize("ends", [LEAST_PROVED, MOST_PROVED])
@pytest.mark.parametrize("kind", [MEASURED, EXTRACTED])
def test_a_cost_is_kept_only_where_one_made_anew_is_the_same(kind, ends):
    model = machine(kind)
    costs, anew = PlacedCosts(model), PlacedCosts(model, ends)
    other = costs.with_ends(ends)
    kept = 0
    for form in list(load_table("x86-64"))[::23]:
        for variant in VARIANTS if costs.cost(form) else ():
            placed = costs.get(form, variant)
            found = other.like(placed)
            assert found == anew.get(form, variant)
            kept += found is placed
    assert kept


@pytest.mark.parametrize("ends", [LEAST_PROVED, MOST_PROVED])
@pytest.mark.parametrize("kind", [MEASURED, EXTRACTED])
@pytest.mark.parametrize(
    "text",
    [
        "add rax, rbx; imul rax, rcx",
        "mov rax, [rdi]; add rax, 1; mov [rdi], rax",
        "xor eax, eax; add rcx, rax; pand xmm0, xmm0",
        "add [rdi], rax; cmp rax, rbx; cmovb rbx, rax",
    ],
)
def test_graphs_of_other_ends_are_those_of_such_costs(text, kind, ends):
    graphs = Graphs(machine(kind))
    graph = graphs.of(block(text).instructions)
    found = graphs.with_ends(graph, ends)
    anew = PlacedCosts(graphs.machine, ends)
    wanted = build(graph.instructions, Standings(anew))
    if ends == LEAST_PROVED:  # memory takes no time
        stored = {access[0] for p in graph.memory for access in (p.load, p.store)}
        variants = (CostVariant(renamed=number in stored) for number in range(len(graph.costs)))
        costs = tuple(
            anew.get(c.form, v) if v.renamed else c for c, v in zip(wanted.costs, variants, strict=True)
        )
        wanted = msgspec.structs.replace(wanted, costs=costs)
    assert (found.inputs, found.base, found.carried) == (wanted.inputs, wanted.base, wanted.carried)
    assert graphs.may_differ(graph, ends) or slowest_chain(found) == slowest_chain(graph)
