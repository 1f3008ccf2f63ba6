"""What a store's throughput sequences tell in uops.info's words, where that file means the same.

There `TP_loop` is the least of loops, as all sequences are here but `unrolled`, and `TP_unrolled` of copies
without a loop, the least over several lengths: `unrolled`, hundreds of copies with the loop's end taken off,
has one length and is taken where loops confirm it. Throughputs with `_same_reg` are of instances that do not
wait for each other there, of a chain here: of an idiom both are the same. An `_indexed` variant is there
where it has other micro-operations, which are not counted here. `x_sequences` has all sequences as stores
name them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from cyclescope.infer.timing.results import AGREED, EXACT, LESS, FormTiming, Latency, whole
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.variant import Kind, variant_of
from cyclescope.remarks.timing import Idiom

LOOPS = (Kind.PLAIN, Kind.BROKEN, Kind.BASES, Kind.FAST, Kind.TAKEN, Kind.NOT_TAKEN)
STEP = 0.5  # cycles: latencies in whole cycles that differ by less are the same


def throughputs(timing: FormTiming) -> dict[str, str]:
    """Attributes of a measurement; `TP`, the older name, where copies without a loop tell nothing."""
    found = timing.throughput
    if found is None or found.value is None:
        return {}
    said = {"x_sequences": ";".join(f"{name}={cycles:g}" for name, cycles in found.variants.items())}
    if found.kind != EXACT:
        return said
    times = _times(found.variants)
    if any(_agree(cycles, found.value) for kind in LOOPS for cycles in times.get(kind, ())):
        said["TP_loop"] = f"{found.value:.2f}"
    unrolled = times.get(Kind.UNROLLED, [])
    sure = [cycles for cycles in unrolled if _agree(cycles, found.value)]
    said |= {"TP_unrolled": f"{min(sure):.2f}"} if sure else {"TP": f"{found.value:.2f}"}
    if _is_idiom(timing) and Kind.SAME in times:
        said["TP_loop_same_reg"] = f"{min(times[Kind.SAME]):.2f}"
    return said


def _times(variants: Mapping[str, float]) -> dict[Kind, list[float]]:
    times: dict[Kind, list[float]] = defaultdict(list)
    for name, cycles in variants.items():
        times[variant_of(name).kind].append(cycles)
    return times


def _agree(one: float, other: float) -> bool:
    return max(one, other) < AGREED * min(one, other)


def _is_idiom(timing: FormTiming) -> bool:
    return timing.idiom in (Idiom.ZERO, Idiom.BREAKING)


def same_register(form: InstructionForm, timing: FormTiming) -> dict[str, str]:
    """Latency from the second register to the first where both are one, if it differs from that of two.

    Only of forms with two registers, of which the first alone is written: with more of them all are one here,
    and two there. The sequence is a chain of the form alone: it fills the scheduler, as that which gives the
    most of a latency does, and shows nothing that the throughput hides.
    """
    distinct = _latencies(form, timing)
    found = timing.throughput
    times = _times(found.variants).get(Kind.SAME) if found else None
    if not distinct or not times or found is None or found.value is None:
        return {}
    if _is_idiom(timing):
        return {"cycles_same_reg": "0"}
    most = max(latency.max or 0.0 for latency in distinct)
    chain = whole(min(times), min(times))
    hidden = LESS * chain < found.value
    if chain < 1 or chain % 1 or abs(chain - most) < STEP or (hidden and chain > most):
        return {}
    bound = {"cycles_same_reg_is_upper_bound": "1"} if hidden and chain > 1 else {}
    return {"cycles_same_reg": f"{chain:g}"} | bound


def _latencies(form: InstructionForm, timing: FormTiming) -> list[Latency]:
    """Those to the first of two registers from both, where the form has no others and all are exact."""
    registers = [op for op in form.operands if op.is_register and not op.implicit]
    if len(registers) != 2 or registers[0].cls != registers[1].cls or not all(op.read for op in registers):
        return []
    target, source = registers
    names = {target.name, source.name}
    found = [lat for lat in timing.latencies if lat.target == target.name and lat.source in names]
    sure = len(found) == len(names) and all(lat.kind == EXACT and not lat.values for lat in found)
    return found if sure and target.write and not source.write else []
