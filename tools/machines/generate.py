"""Generate `src/cyclescope/model/machines/*.json.xz`.

    python -m tools.machines.generate

Needs g++ and llvm-22-dev. Run by developers, and again where the instruction table has changed; the
result is committed and never edited.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..llvm import build
from ..packing import packed
from .corrections import corrected
from .costs import Change, Cost, Costs, Place, plain_places
from .folded import registers, settled
from .names import canonical, natural, other_names
from .samples import places, samples

HERE = Path(__file__).parent
TARGET = HERE.parents[1] / "src/cyclescope/model/machines"
TRIPLES = {"x86-64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu", "riscv64": "riscv64-linux-gnu"}
LICENCE = "Apache-2.0 WITH LLVM-exception"
PLAIN_LOAD = "MOV (R64, M64)"
Record = dict[str, Any]


def extract(program: Path, isa: str) -> tuple[Record, list[tuple[Record, list[Place]]], list[Record]]:
    """Models, instructions with their pairs, and the classes of every model."""
    examples = {sample.form.id: sample for sample in samples()} if isa == "x86-64" else {}
    given = "".join(f"{name}\t{sample.code.hex()}\n" for name, sample in examples.items())
    done = subprocess.run([program, TRIPLES[isa]], input=given, capture_output=True, text=True, check=True)
    head, *lines, classes = map(json.loads, done.stdout.splitlines())
    found = [(r, places(examples[r["name"]], r) if examples else plain_places(r)) for r in lines]
    return head, found, classes


def archive(isa: str, head: Record, found: list[tuple[Record, list[Place]]], classes: list[Record]) -> Record:
    """Everything about the machines of an ISA; forms that cost the same everywhere share a row."""
    chosen = [(n, model, canonical(model["aliases"])) for n, model in enumerate(head["models"])]
    chosen = sorted((c for c in chosen if c[2]), key=lambda c: natural(c[2]))
    all_costs = [Costs(model, classes[n]) for n, model, _ in chosen]
    changes = _Changes(isa, found)
    shapes: dict[str, int] = {}
    rows: dict[tuple[int, ...], int] = {}
    form_rows, forms = [], []
    for record, pairs in found:
        shape = shapes.setdefault(" ".join(pair for pair, *_ in pairs), len(shapes))
        costs = (
            c.of(record["classes"][n], pairs, record["call"], changes.of(record, c, n, model))
            for c, (n, model, _) in zip(all_costs, chosen, strict=True)
        )
        row = (shape, *costs)
        if any(row[1:]):
            forms.append(record["name"])
            form_rows.append(rows.setdefault(row, len(rows)))
    table = list(rows)
    return {
        "schema_version": 1,
        "isa": isa,
        "provenance": provenance(head),
        "forms": forms,
        "form_rows": form_rows,
        "shapes": list(shapes),
        "rows": list(rows),
        "machines": {
            name: machine(name, model, costs, sum(table[row][k] > 0 for row in form_rows))
            for k, (costs, (_, model, name)) in enumerate(zip(all_costs, chosen, strict=True), 1)
        },
    }


class _Changes:
    """What is known of a form's cost besides LLVM's scheduling class: of x86-64."""

    def __init__(self, isa: str, found: list[tuple[Record, list[Place]]]) -> None:
        self._x86 = isa == "x86-64"
        self._registers = registers() if self._x86 else {}
        self._places = {record["name"]: (record, pairs) for record, pairs in found}

    def of(self, record: Record, costs: Costs, number: int, model: Record) -> Change:
        """How a form's cost in a model is made of LLVM's."""
        if not self._x86:
            return lambda cost: cost
        form, in_order = record["name"], model["buffer"] <= 1
        settle = self._settle(form, costs, number, model)

        def changed(cost: Cost) -> Cost:
            settled_cost = cost._replace(latencies=settle(cost.latencies))
            return corrected(form, settled_cost, costs.resources.ports, in_order)

        return changed

    def _settle(
        self, form: str, costs: Costs, number: int, model: Record
    ) -> Callable[[list[int]], list[int]]:
        """Latencies of a form that loads, by the form that does not."""
        register = self._registers.get(form)
        if register is None or register.name not in self._places:
            return list
        plain, pairs = self._places[register.name]
        known = costs.latencies(plain["classes"][number], pairs, plain["call"])
        names = [name for name, *_ in self._places[form][1]]
        load = max(self._load(costs, number), model["load_latency"])
        return lambda own: settled(names, own, known, register, load, model["buffer"] <= 1)

    def _load(self, costs: Costs, number: int) -> int:
        """The latency of a plain load in a model, as analysis takes it."""
        record, pairs = self._places[PLAIN_LOAD]
        return costs.latencies(record["classes"][number], pairs, record["call"])["op2.address->op1"]


def provenance(head: Record) -> Record:
    """Source, version and licence, for every machine of the archive."""
    return {
        "kind": "extracted",
        "source": "LLVM scheduling models",
        "version": head["llvm"],
        "licence": LICENCE,
    }


def machine(name: str, model: Record, costs: Costs, forms: int) -> Record:
    """One machine; ports that nothing uses are left out."""
    resources = costs.resources
    used = sorted(
        {port for ops in costs.operations for ports, *_ in ops for port in ports},
        key=lambda port: natural(resources.ports[port]),
    )
    renumbered = {port: k for k, port in enumerate(used)}
    queues = {model.get("load_queue", 0), model.get("store_queue", 0)}
    schedulers = [
        {"name": name, "ports": sorted(renumbered[p] for p in ports if p in renumbered), "entries": entries}
        for name, ports, entries in resources.schedulers(queues)
    ]
    return {
        "aliases": other_names(name, model["aliases"]),
        "ports": [resources.ports[port] for port in used],
        "core": core(model, costs) | {"schedulers": [s for s in schedulers if s["ports"]]},
        "operations": [
            sorted(([sorted(renumbered[p] for p in o[0]), *o[1:]] for o in ops), key=lambda o: (len(o[0]), o))
            for ops in costs.operations
        ],
        "costs": costs.costs,
        "forms": forms,
    }


def core(model: Record, costs: Costs) -> Record:
    """Width, buffers and penalties."""
    return {
        "width": model["width"],
        "reorder_buffer": model.get("rob") or (model["buffer"] if model["buffer"] > 1 else 0),
        "load_buffer": costs.resources.buffer(model.get("load_queue", 0)),
        "store_buffer": costs.resources.buffer(model.get("store_queue", 0)),
        "load_latency": model["load_latency"],
        "mispredict_penalty": model["mispredict"],
        "in_order": model["buffer"] <= 1,
    }


def write(isa: str, data: Record) -> str:
    """Write an archive and say what is in it."""
    small = packed(data)
    TARGET.mkdir(exist_ok=True)
    (TARGET / f"{isa}.json.xz").write_bytes(small)
    machines = data["machines"]
    pairs = sum(m["forms"] for m in machines.values())
    return (
        f"{isa}: {len(machines)} machines, {len(data['forms'])} forms, {pairs} pairs, "
        f"{len(data['rows'])} rows, {len(data['shapes'])} shapes, {len(small)} bytes"
    )


def main() -> None:
    """Write the archives of all ISAs."""
    with tempfile.TemporaryDirectory() as directory:
        program = build(HERE / "extract.cpp", Path(directory))
        for isa in TRIPLES:
            print(write(isa, archive(isa, *extract(program, isa))), file=sys.stderr)


if __name__ == "__main__":
    main()
