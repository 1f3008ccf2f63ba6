"""Records of chains and sequences, written by hand, and what is made of them."""

from __future__ import annotations

from cyclescope.infer.timing.builder import TimingBuilder
from cyclescope.infer.timing.latency_system import LinkLatency
from cyclescope.isa.table import load_table
from cyclescope.measure.record import STABLE, Record

TABLE = load_table("x86-64")
ADD, IMUL, DIV, MOV = "ADD_01 (R64, R64)", "IMUL (R64, R64)", "DIV (R64)", "MOV_89 (R64, R64)"
LINKS = {
    "r>r": LinkLatency(1.0, 1.0, 1.0),
    "flag>r.CF": LinkLatency(1.0, 1.0, 1.0),
    "flag>r.AF": LinkLatency(1.0, 1.0, 1.0),
    "v>r": LinkLatency(3.0, 1.0, 5.0, "transfer"),
    "bypass.integer.256": LinkLatency(1.0, 1.0, 1.0),
    "bypass.fp.256": LinkLatency(1.0, 1.0, 1.0),
}


def chain(cycles, source="op1", target="op1", variant="self", **more):
    values = {"spread": 0.0, "verdict": STABLE, "count": 1, "links": ()} | more
    return Record("f", "latency", source, target, variant, cycles, **values)


def stream(cycles, variant="plain x4", count=4, **more):
    values = {"spread": 0.0, "verdict": STABLE, "count": count, "links": ()} | more
    return Record("f", "throughput", "", "", variant, cycles, **values)


def timing(form, *records, missing=None, status="ok"):
    reasons = missing or {}
    builder = TimingBuilder(TABLE[form], records, LINKS, lambda s, t: reasons.get((s, t), ""))
    return builder.build(status)


def latency(form, *records, source="op1", target="op1", **more):
    found = timing(form, *records, **more).latencies
    return next(lat for lat in found if (lat.source, lat.target) == (source, target))
