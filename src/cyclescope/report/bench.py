"""Results of `bench`."""

from __future__ import annotations

import msgspec

from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.sampling import Measurement

SCHEMA_VERSION = 1


def bench_json(
    label: str, kernel: Kernel, measured: Measurement, unroll: int, machine: str, frequency: float
) -> str:
    """A measurement of a snippet as JSON; cycles are core cycles per copy of the code."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "machine": machine,
        "code": label,
        "bytes": kernel.code.hex(),
        "cycles": _rounded(measured.cycles / unroll),
        "spread": _rounded(measured.spread / unroll),
        "verdict": measured.verdict,
        "rounds": [_rounded(value / unroll) for value in measured.rounds],
        "accepted": measured.accepted,
        "rejected": measured.rejected,
        "counters": measured.counters,
        "frequency": round(frequency),
    }
    return msgspec.json.encode(data).decode()


def _rounded(cycles: float) -> float:
    return round(cycles, 4)


def bench_text(
    label: str, kernel: Kernel, measured: Measurement, unroll: int, machine: str, frequency: float
) -> str:
    """A measurement of a snippet in a few lines."""
    cycles = measured.cycles / unroll
    lines = [line.strip() for line in label.replace(";", "\n").splitlines() if line.strip()]
    copies = f", {unroll} copies per body" if unroll > 1 else ""
    rounds = " ".join(f"{value / unroll:.3f}" for value in measured.rounds)
    return "\n".join(
        [
            *[f"    {line}" for line in lines],
            f"{cycles:.3f} core cycles +-{measured.spread / unroll:.3f} ({measured.verdict}{copies})",
            f"{cycles / frequency * 1e9:.3f} ns at {frequency / 1e9:.2f} GHz on {machine}",
            f"rounds {rounds}; {measured.accepted} samples accepted, {measured.rejected} rejected",
        ]
    )
