"""Results of `bench`."""

from __future__ import annotations

import math

import msgspec

from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.sampling import STABLE, Measurement
from cyclescope.report.card import EMULATED

SCHEMA_VERSION = 1


def bench_json(
    label: str, kernel: Kernel, measured: Measurement, unroll: int, machine: str, frequency: float,
    emulated: bool = False,
) -> str:  # fmt: skip
    """A measurement of a snippet as JSON; cycles are core cycles per copy of the code."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "machine": machine,
        "code": label,
        "bytes": kernel.code.hex(),
        "cycles": _rounded(measured.cycles / unroll),
        "spread": _rounded(measured.spread / unroll),
        "verdict": measured.verdict,
        "reason": measured.error or None,
        "rounds": [_rounded(value / unroll) for value in measured.rounds],
        "accepted": measured.accepted,
        "rejected": measured.rejected,
        "disturbed": measured.disturbed,
        "counters": measured.counters,
        "frequency": round(frequency),
    }
    none = dict.fromkeys(("cycles", "spread", "frequency")) | {
        "verdict": "emulated",
        "rounds": [],
        "counters": [],
    }
    data |= {"emulated": emulated} | (none | {"note": EMULATED} if emulated else {})
    return msgspec.json.encode(data).decode()


def _rounded(cycles: float) -> float:
    return round(cycles, 4)


def bench_text(
    label: str, kernel: Kernel, measured: Measurement, unroll: int, machine: str, frequency: float,
    emulated: bool = False,
) -> str:  # fmt: skip
    """A measurement of a snippet in a few lines; of an emulator no number."""
    cycles = measured.cycles / unroll
    lines = [line.strip() for line in label.replace(";", "\n").splitlines() if line.strip()]
    if emulated:
        return "\n".join([*[f"    {line}" for line in lines], f"it runs on {machine}", EMULATED])
    copies = f", {unroll} copies per body" if unroll > 1 else ""
    seen = [value / unroll for value in measured.rounds if not math.isnan(value)]
    rounds = f"{len(measured.rounds)} rounds, {min(seen):.4f} to {max(seen):.4f}" if seen else "no round"
    why = f", {measured.disturbed} of them disturbed"
    return "\n".join(
        [
            *[f"    {line}" for line in lines],
            f"{_value(measured, unroll)} ({measured.verdict}{copies})",
            f"{cycles / frequency * 1e9:.3f} ns at {frequency / 1e9:.2f} GHz on {machine}",
            f"{rounds}; {measured.accepted} samples accepted, {measured.rejected} rejected{why}",
        ]
    )


def _value(measured: Measurement, unroll: int) -> str:
    """A value with its error, or the range of one that rounds do not agree on."""
    cycles, spread = measured.cycles / unroll, measured.spread / unroll
    if measured.verdict == STABLE:
        return f"{cycles:.4f} core cycles +-{spread:.4f}"
    return f"{cycles:.4f} to {cycles + spread:.4f} core cycles"
