"""What was measured under an emulator has no cycles, in text and JSON."""

from __future__ import annotations

import json
from functools import partial

import msgspec

from cyclescope.infer.beside.pieces import Snippet
from cyclescope.infer.timing.results import EXACT, FormTiming, Latency, Throughput, without_cycles
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.state import MachineState
from cyclescope.measure.record import STABLE
from cyclescope.measure.sampling import Measurement
from cyclescope.remarks.timing import Timing, cause_of, withheld
from cyclescope.report.bench import Aggregate, Counted, bench_json, bench_text
from cyclescope.report.comparison.snippets import (
    TimedSnippet,
    comparison_csv,
    comparison_json,
    comparison_markdown,
    comparison_text,
    sweep_text,
)

KERNEL = Kernel(b"\x13\0\0\0", 1, MachineState(()))
MEASURED = Measurement(1.25, 0.01, STABLE, 12, 0, (1.25, 1.24))


def test_bench_says_so_in_place_of_numbers():
    given = ("nop", KERNEL, MEASURED, 1, "a machine emulated", 4e9)
    text = bench_text(*given, True)
    assert "emulated" in text and "1.25" not in text and "cycles +-" not in text
    data = json.loads(bench_json(*given, True))
    assert (data["cycles"], data["spread"], data["rounds"], data["frequency"]) == (None, None, [], None)
    assert data["emulated"] is True and data["note"].startswith("emulated")
    assert json.loads(bench_json(*given))["cycles"] == 1.25
    assert "1.2500 core cycles" in bench_text(*given)


def test_bench_of_several_says_so_in_place_of_numbers():
    def timed(emulated):
        snippets = (Snippet(name, KERNEL) for name in ("nop 1", "nop 2"))
        return [TimedSnippet(snippet, MEASURED, emulated) for snippet in snippets]

    texts = partial(comparison_text, machine="m"), partial(sweep_text, machine="m")
    for view in (
        comparison_csv,
        comparison_markdown,
        *texts,
        partial(comparison_json, machine="m", frequency=1),
    ):
        assert "1.25" in view(timed(False))
        said = view(timed(True))
        assert "emulat" in said and "1.25" not in said and "nan" not in said and "1.000" not in said


def test_aggregates_and_events_of_an_emulator_are_left_out():
    extra = ((Aggregate("min", 1.25, 3),), Counted(("cycles",), ("cycles",)))
    measured = msgspec.structs.replace(MEASURED, counters=(1.25,))
    given = ("nop", KERNEL, measured, 1, "m", 4e9)
    assert "1.25" in bench_json(*given, False, *extra)
    assert "1.25" not in bench_json(*given, True, *extra) + bench_text(*given, True, *extra)


def test_timings_keep_reasons_that_rest_on_no_time():
    known = Latency("op2", "op1", 3.0, 3.0, EXACT, 0.0)
    excluded = Latency("VL", "op1", None, None, None, None, reason="VL selects a mode: no data")
    law = withheld(Timing.AGAINST_LAW.of(-9.71))
    lost = Latency("op3", "op1", None, None, None, None, reason=law.text, cause=cause_of(law))
    timing = FormTiming("F", {}, "ok", Throughput(0.5, 0.1, EXACT), (known, excluded, lost), notes=("n",))
    found, why = without_cycles(timing), Timing.NO_CYCLES.value
    assert (found.throughput.value, found.throughput.reason) == (None, why)
    assert [(lat.max, lat.reason) for lat in found.latencies] == [
        (None, why), (None, "VL selects a mode: no data"), (None, why),
    ]  # fmt: skip
