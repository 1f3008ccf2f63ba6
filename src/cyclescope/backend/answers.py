"""What a runner's answers say, in the layouts of native/protocol.h.

None is believed: whoever is at the other end of a command may send anything, and so may measured code that
writes into its worker's memory. Nonsense is raised for what cannot be.
"""

from __future__ import annotations

import struct
from math import isfinite, isinf, isnan
from typing import Any, NamedTuple

import msgspec

from cyclescope.backend.base import (
    HANG,
    NOT_RUN,
    OK,
    PAGES,
    SIGNAL,
    UNCLEAN,
    BlockSample,
    BurstSample,
    Calibration,
    Observation,
    Outcome,
    Sample,
)
from cyclescope.isa.registry import instruction_sets
from cyclescope.kernel.locations import BYTES, LOCATIONS, names

COUNTERS = 10
FILE = 1 << 16  # bytes of a file at most
_LEAVES = 160  # at most
_HELLO = struct.Struct("<4I 7Q")
_LEAF = struct.Struct("<6I")
_SETUP_REPLY = struct.Struct("<4i 2I")
_CALIBRATION = struct.Struct("<7d")
_RESULT = struct.Struct("<2d 10d Q 8I i I d")
_TIME = struct.Struct("<2d 80x Q 5I 12x i I d")  # the same but for its counters and the shape of its loop
_BLOCK = struct.Struct("<3d Q 7I i 2I")
_BURST = struct.Struct("<10d Q 6I i I")
_RUNS = struct.Struct("<2d")
_OUTCOME = struct.Struct("<Q 2I i I")
_OBSERVATION = struct.Struct("<2I Q 4I 18s 18s 18s 2592s 2x")
RESULT, BLOCK = _RESULT.size, _BLOCK.size
BURST, RUNS = _BURST.size, _RUNS.size  # bytes of a record, and of each measurement behind it
OUTCOME, OBSERVATION = _OUTCOME.size, _OBSERVATION.size
HELLO = _HELLO.size + _LEAVES * _LEAF.size  # bytes at most
# The most that there can be: CPUs, signals, core cycles, exception flags, bytes of code, samples.
_CPUS, _SIGNALS, _LONGEST, _EXCEPTIONS, _CODE = 8191, 64, 1e12, 0x3F, 1 << 24
_SAMPLES = 2048


class Nonsense(Exception):
    """An answer that cannot be; the text says which."""


class RunnerMachine(NamedTuple):
    """What a runner says of its machine."""

    isa: str
    leaves: tuple[Any, ...]
    xcr0: int


class Ready(NamedTuple):
    """How a runner is set up: the CPU or -1; errors of pinning, filtering and counting; counters open."""

    cpu: int
    pin: int
    filtered: int
    counter: int
    opened: int


def version_of(payload: bytes) -> int:
    """The version of the protocol that a greeting is in; 0 for none."""
    return int.from_bytes(payload[:4], "little") if len(payload) >= _HELLO.size else 0


def machine_of(payload: bytes) -> RunnerMachine:
    """A greeting. Raises Nonsense."""
    _, isa, count, _, *_, xcr0 = _HELLO.unpack_from(payload)
    known = {record.runner: record.name for record in instruction_sets()}
    if isa not in known or count > _LEAVES or len(payload) != _HELLO.size + count * _LEAF.size:
        raise Nonsense("what it says of its machine")
    return RunnerMachine(known[isa], tuple(_LEAF.iter_unpack(payload[_HELLO.size :])), xcr0)


def _fields(layout: struct.Struct, payload: bytes) -> tuple[Any, ...]:
    if len(payload) != layout.size:
        raise Nonsense(f"{len(payload)} bytes in place of {layout.size}")
    return layout.unpack(payload)


def ready_of(payload: bytes, events: int) -> Ready:
    """The answer to a setup that asked for so many events. Raises Nonsense."""
    found = Ready(*_fields(_SETUP_REPLY, payload)[:5])
    if not -1 <= found.cpu <= _CPUS or found.opened > events:
        raise Nonsense("no CPU, or more counters than were asked for")
    return found


def calibration_of(payload: bytes) -> Calibration:
    """The clock. Raises Nonsense."""
    found = Calibration(*_fields(_CALIBRATION, payload))
    runs = found.ticks_per_cycle > 0 and found.step > 0 and 0 <= found.clean_share <= 1 and found.nop >= 0
    if not runs or not all(map(isfinite, msgspec.structs.astuple(found))):
        raise Nonsense("a clock that does not run")
    return found


def samples_of(answer: bytes, counted: int) -> list[Sample]:
    """Times, with so many counters beside the cycles. Raises Nonsense."""
    if counted:
        return [_sample(row, counted) for row in _RESULT.iter_unpack(answer)]
    return [_time(*row) for row in _TIME.iter_unpack(answer)]


def _time(
    cycles: float, spread: float, address: int, status: int, detail: int, accepted: int, rejected: int,
    exceptions: int, instruction: int, disturbed: int, other: float,
) -> Sample:  # fmt: skip
    """A time without counters: most are, and there are hundreds of thousands."""
    if not _is_value(status, cycles, spread, other) or exceptions > _EXCEPTIONS:
        raise Nonsense("a time")
    _check_end(status, detail, instruction)
    return Sample(
        cycles, spread, status, detail, accepted, rejected, exceptions, address, instruction, (), disturbed,
        other,
    )  # fmt: skip


def _sample(row: tuple[Any, ...], counted: int) -> Sample:
    cycles, spread = row[:2]
    counters = row[2 : 2 + counted]
    if any(map(isnan, counters)):  # the kernel took the counters away meanwhile
        counters = ()
    address, status, detail, accepted, rejected, exceptions = row[2 + COUNTERS : 8 + COUNTERS]
    *_, instruction, disturbed, other = row
    if not _is_value(status, cycles, spread, other) or any(map(isinf, counters)) or exceptions > _EXCEPTIONS:
        raise Nonsense("a time")
    _check_end(status, detail, instruction)
    return Sample(
        cycles,
        spread,
        status,
        detail,
        accepted,
        rejected,
        exceptions,
        address,
        instruction,
        counters,
        disturbed,
        other,
    )


def _is_value(status: int, cycles: float, spread: float, other: float = 0.0) -> bool:
    """Whether a time can be: only one from no clean sample is none."""
    if not abs(other) < _LONGEST:
        return False
    if status not in (OK, UNCLEAN) or (status == UNCLEAN and isnan(cycles) and isnan(spread)):
        return True
    return abs(cycles) < _LONGEST and 0 <= spread < _LONGEST


def blocks_of(answer: bytes) -> list[BlockSample]:
    """Times of basic blocks. Raises Nonsense."""
    return [_block(*row) for row in _BLOCK.iter_unpack(answer)]


def _block(
    cycles: float, spread: float, linearity: float, address: int, status: int, detail: int, accepted: int,
    rejected: int, pages: int, copies: int, calls: int, instruction: int, disturbed: int, _: int,
) -> BlockSample:  # fmt: skip
    _check_end(status, detail, instruction, PAGES)
    value = isnan(cycles) or abs(linearity) < _LONGEST
    if not _is_value(status, cycles, spread) or not value or max(accepted, rejected, disturbed) > _SAMPLES:
        raise Nonsense("a time of a block")
    return BlockSample(
        cycles, spread, linearity, status, detail, address, accepted, rejected, disturbed, pages, copies,
        calls, instruction,
    )  # fmt: skip


def burst_of(answer: bytes, counted: int) -> BurstSample:
    """Times of copies that run once, with so many counters beside the cycles. Raises Nonsense."""
    row = _BURST.unpack_from(answer)
    counters = row[:counted]
    address, status, detail, accepted, rejected, disturbed, calls, instruction, _ = row[COUNTERS:]
    runs = list(_RUNS.iter_unpack(answer[BURST:]))
    _check_end(status, detail, instruction)
    times = all(abs(value) < _LONGEST for pair in runs for value in pair)
    if not times or any(map(isinf, counters)) or max(accepted, rejected, disturbed) > _SAMPLES:
        raise Nonsense("a time of copies")
    shorter, longer = zip(*runs, strict=True)
    known = () if any(map(isnan, counters)) else counters
    ends = (status, detail, address, accepted, rejected, disturbed, calls, instruction)
    return BurstSample(shorter, longer, known, *ends)


def _check_end(status: int, detail: int, instruction: int, last: int = NOT_RUN) -> None:
    """How a kernel ended, and where."""
    signalled = status in (SIGNAL, HANG)
    if status > last or (signalled and detail > _SIGNALS) or not -1 <= instruction < _CODE:
        raise Nonsense("how a kernel ended")


def outcomes_of(answer: bytes) -> list[Outcome]:
    """What happened to instructions that ran once. Raises Nonsense."""
    return [_outcome(*row) for row in _OUTCOME.iter_unpack(answer)]


def _outcome(address: int, status: int, detail: int, instruction: int, _: int = 0) -> Outcome:
    _check_end(status, detail, instruction)
    return Outcome(status, detail, address, instruction)


def observations_of(answer: bytes, isa: str) -> list[Observation]:
    """What differential execution saw. Raises Nonsense."""
    return [_observation(row, len(names(isa))) for row in _OBSERVATION.iter_unpack(answer)]


def _observation(row: tuple[Any, ...], places: int) -> Observation:
    status, detail, address, bases, trials, _, _, *sets, matrix = row
    rows = ((n, matrix[n * BYTES : (n + 1) * BYTES]) for n in range(LOCATIONS))
    depends = tuple((n, _set(bits)) for n, bits in rows if any(bits))
    present, written, unstable = map(_set, sets)
    seen = present | written | unstable
    for location, outputs in depends:
        seen |= outputs | 1 << location
    if seen >> places:
        raise Nonsense("places that the machine does not have")
    outcome = _outcome(address, status, detail, -1)
    return Observation(outcome, bases, trials, present, written, unstable, depends)


def _set(bits: bytes) -> int:
    return int.from_bytes(bits, "little")


def text_of(data: bytes) -> str | None:
    """What a file says, without signs that a terminal would obey; None for nothing."""
    text = data.decode(errors="replace")
    return "".join(sign for sign in text if sign.isprintable() or sign in "\n\t") or None
