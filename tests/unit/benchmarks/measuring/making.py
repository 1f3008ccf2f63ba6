"""Timings and rows for tests."""

from __future__ import annotations

from benchmarks.lib.reference import Reference, Row, RowLatency
from cyclescope.infer.timing.results import EXACT, UPPER_BOUND, FormTiming, Latency, Throughput


def latency(source, target, value, kind=EXACT, **more):
    least = 0.0 if kind == UPPER_BOUND else value
    return Latency(source, target, least, value, kind, 0.01, **more)


def missing(source, target, reason=""):
    return Latency(source, target, None, None, None, None, reason=reason)


def throughput(value, kind=EXACT, **variants):
    named = {name.replace("_", " "): number for name, number in variants.items()}
    return Throughput(value, 0.01, kind, named or {"plain x4": value, "plain x8": value})


def timing(form, tp, *latencies, idiom="", status="ok"):
    found = tp if isinstance(tp, Throughput) or tp is None else throughput(tp)
    return FormTiming(form, {}, status, found, latencies, idiom)


def row(name, tp=None, *latencies):
    return Row(name, tp, latencies)


def direct(pair, value, high=None, **more):
    return RowLatency(pair, value, value if high is None else high, **more)


def table_of(*rows, naming="llvm", **more):
    return Reference("test", "znver4", naming, {r.name: r for r in rows}, **more)
