"""What a store says, for the benchmarks that look at results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cyclescope.infer.kept import timings
from cyclescope.infer.timing.results import FormTiming
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import load_table
from cyclescope.measure.rows import Evidence
from cyclescope.measure.store import Store
from cyclescope.model.facts import HIGH, MEDIUM

Key = tuple[str, str, str]


def forms() -> list[InstructionForm]:
    """Every form of the table."""
    return list(load_table("x86-64"))


def read(store: Path) -> list[FormTiming]:
    """Timings of every form, in the table's order."""
    opened = Store(store, readonly=True)
    try:
        return timings(opened, load_table("x86-64"), forms())
    finally:
        opened.close()


def machine(store: Path) -> str:
    """The machine a store belongs to."""
    opened = Store(store, readonly=True)
    try:
        return opened.machine
    finally:
        opened.close()


def evidence(store: Path, names: Iterable[str]) -> dict[str, list[Evidence]]:
    """The kernels behind some forms."""
    opened = Store(store, readonly=True)
    try:
        return {name: opened.evidence(name) for name in dict.fromkeys(names)}
    finally:
        opened.close()


def throughputs(found: Iterable[FormTiming]) -> dict[Key, float]:
    """Throughput by form."""
    return {
        (t.id, "", ""): t.throughput.value
        for t in found
        if t.throughput is not None and t.throughput.value is not None
    }


def claimed(found: Iterable[FormTiming]) -> dict[str, str]:
    """Port usage by form, where its confidence is high or medium."""
    return {t.id: t.ports for t in found if t.ports is not None and t.ports_confidence in (HIGH, MEDIUM)}


def latencies(found: Iterable[FormTiming]) -> dict[Key, float]:
    """Latency by form, source and target, for every class of values where there are several."""
    result: dict[Key, float] = {}
    for timing in found:
        for lat in timing.latencies:
            if lat.max is None:
                continue
            for name, value in (lat.values or {"": lat.max}).items():
                result[timing.id, lat.source, f"{lat.target} {name}".rstrip()] = value
    return result
