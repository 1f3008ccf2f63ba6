"""The table of all forms: a row per form, columns per machine, as lists that a script can sort."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.text import example
from cyclescope.model.comparison.agreement import Match, Quantity, compare, with_throughput
from cyclescope.model.machine import FormCost, MachineModel
from cyclescope.model.ports import notation
from cyclescope.report.site.packing import Words

CONFIDENCES = ("", "low", "medium", "high")
DIFFERS = {Quantity.LATENCY: 1, Quantity.THROUGHPUT: 2, Quantity.OPERATIONS: 4, Quantity.PORTS: 8}  # bits


def columns(forms: Sequence[InstructionForm], models: Sequence[MachineModel]) -> dict[str, object]:
    """What the page's table is made of; texts that repeat are numbers in `words`."""
    words = Words()
    return {
        "form": [form.id for form in forms],
        "mnemonic": [words.number(form.mnemonic) for form in forms],
        "extension": [words.number("+".join(form.features) or "base") for form in forms],
        "names": [" ".join(filter(None, (form.llvm, form.uops_info, example(form)))) for form in forms],
        "machines": [
            _machine(forms, model, words) | ({"differs": _differing(forms, models[0], model)} if n else {})
            for n, model in enumerate(models)
        ],
        "words": words.texts,
    }


def _machine(forms: Sequence[InstructionForm], model: MachineModel, words: Words) -> dict[str, object]:
    costs = [model.forms.get(form.id) for form in forms]
    return {
        "latency": [latency_reach(cost) for cost in costs],
        "throughput": [
            None if cost is None else _short(with_throughput(cost, model).throughput) for cost in costs
        ],
        "slots": [_slots(cost) for cost in costs],
        "ports": [words.number(ports_of(cost, model)) for cost in costs],
        "confidence": [
            CONFIDENCES.index(cost.confidence) if cost and cost.confidence else 0 for cost in costs
        ],
    }


def _differing(forms: Sequence[InstructionForm], first: MachineModel, other: MachineModel) -> list[int]:
    """Where a machine differs from the first one, a bit per quantity (`DIFFERS`)."""
    found: Counter[str] = Counter()
    for one in compare(first, other).comparisons:
        if one.verdict is Match.DIFFERENT:
            found[one.form] |= DIFFERS[one.quantity]
    return [found[form.id] for form in forms]


def latency_reach(cost: FormCost | None) -> list[float] | None:
    """Least and most of all pairs, one number where they are the same; None without a value."""
    if cost is None:
        return None
    found = [*cost.latencies.values()]
    for pair, (least, most) in cost.ranges.items():
        if pair not in cost.latencies:
            found += [most, least] if least > 0 else [most]  # an upper bound tells nothing of the least
    if not found:
        return None
    low, high = _round(min(found)), _round(max(found))
    return [low] if low == high else [low, high]


def _slots(cost: FormCost | None) -> float | list[float] | None:
    if cost is None or cost.slots is None:
        return list(cost.slot_range) if cost and cost.slot_range else None
    return _round(cost.slots)


def ports_of(cost: FormCost | None, model: MachineModel) -> str:
    """The port usage of a form, "" where it is not known."""
    if cost is None or cost.operations is None:
        return ""
    return notation(cost.operations, model.ports)


def cost_of(cost: FormCost, model: MachineModel) -> Mapping[str, object]:
    """What a card says of a form on a machine that is a model."""
    ranges = {pair: list(map(_round, ends)) for pair, ends in cost.ranges.items()}
    known: dict[str, object] = {
        "throughput": _short(with_throughput(cost, model).throughput),
        "slots": _slots(cost),
        "ports": ports_of(cost, model),
        "alternatives": cost.alternatives,
        "latencies": {pair: _round(value) for pair, value in cost.latencies.items()},
        "ranges": ranges,
        "confidence": cost.confidence,
        "idiom": cost.idiom,
        "note": cost.note,
    }
    return {name: value for name, value in known.items() if value not in (None, "", (), {})}


def _short(value: float | None) -> float | None:
    return None if value is None else _round(value)


def _round(value: float) -> float:
    found = round(value, 3)
    return int(found) if found == int(found) else found
