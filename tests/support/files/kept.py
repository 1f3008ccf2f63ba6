"""What formats keep of a model that is written and read again: `python -m tests.support.files.kept`."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec

from cyclescope.formats.exchange import ImportRequest
from cyclescope.formats.registry import FORMATS, by_name
from cyclescope.model.facts import Fact
from cyclescope.model.machine import FormCost, MachineModel
from tests.support.made.models import plain, suited

SEEDS = range(6)
FORMATS_BOTH_WAYS = tuple(one.name for one in FORMATS if one.reader and one.writer)
ROWS = ("forms", *FormCost.__struct_fields__, "core.width", "core.load_latency",
        "core.forward_latency", "facts")  # fmt: skip
ALL, SOME, NONE = "all", "some", "-"
DEFAULT = FormCost()
Counts = tuple[int, int]  # kept, of so many


def full(name: str, seed: int) -> MachineModel:
    """A model with something in every field."""
    chance = random.Random(seed)
    model = suited(name, seed)
    costs = {
        one: msgspec.structs.replace(
            cost, resources={"DV": 2.5}, microcoded=chance.random() < 0.3, eliminated=chance.random() < 0.3,
            alternatives=("1*p01",), slot_range=(1.0, 9.0), throughput_most=2.75,
            with_room={pair: cycles / 2 for pair, cycles in cost.latencies.items()}, throughput_error=0.25,
            indexed_throughput=3.25,
            spare=1.0,
        )
        for one, cost in model.forms.items()
    }  # fmt: skip
    facts = (Fact("pages", "data", "", 64.0, 1.0, "pages", "high"),)
    return msgspec.structs.replace(model, forms=costs, facts=facts, resources={"DV": 1.0})


def again(model: MachineModel, name: str) -> MachineModel:
    """A model as a format gives it back."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_text(by_name(name).write(model).text, encoding="utf-8")
        return by_name(name).read(path, ImportRequest("again", "a file", isa=model.isa)).model


def _of_forms(model: MachineModel, found: MachineModel) -> Iterator[tuple[str, bool]]:
    """By field, whether a form that both have has the same value of what it had."""
    ours, theirs = plain(model).forms, plain(found).forms
    for name, cost in ours.items():
        yield "forms", name in theirs
        for field in FormCost.__struct_fields__:
            value = getattr(cost, field)
            if name in theirs and value != getattr(DEFAULT, field):
                yield field, _same(field, model, value, found, getattr(theirs[name], field))


def _same(field: str, model: MachineModel, value: object, found: MachineModel, other: object) -> bool:
    if field == "operations" and isinstance(value, Sequence) and isinstance(other, Sequence):
        return _named(model, value) == _named(found, other)
    return value == other


def _named(model: MachineModel, operations: Sequence[object]) -> list[object]:
    return sorted((sorted(model.ports[p] for p in op.ports), op.count, op.cycles) for op in operations)


@cache
def counts(name: str) -> dict[str, Counts]:
    """How much of every field a format keeps, over several models."""
    found = dict.fromkeys(ROWS, (0, 0))
    for seed in SEEDS:
        model = full(name, seed)
        back = again(model, name)
        core = ((f"core.{one}", getattr(model.core, one) == getattr(back.core, one))
                for one in ("width", "load_latency", "forward_latency"))  # fmt: skip
        for row, kept in (*_of_forms(model, back), *core, ("facts", model.facts == back.facts)):
            found[row] = (found[row][0] + kept, found[row][1] + 1)
    return found


def cell(found: Counts) -> str:
    """How much of something is kept, in a word."""
    kept, every = found
    return ALL if kept == every else SOME if kept else NONE


def table() -> list[str]:
    """Lines of Markdown: a row per field, a column per format."""
    head = "| | " + " | ".join(f"`{name}`" for name in FORMATS_BOTH_WAYS) + " |"
    rows = [
        f"| `{row}` | " + " | ".join(cell(counts(name)[row]) for name in FORMATS_BOTH_WAYS) + " |"
        for row in ROWS
    ]
    return [head, "|---|" + "---|" * len(FORMATS_BOTH_WAYS), *rows]


if __name__ == "__main__":
    sys.stdout.write("\n".join((*table(), "")))
