"""Core cycles of regions of the program that runs here: what `inside/cyclescope.h` does, for Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from types import TracebackType
from typing import Any

import msgspec

from cyclescope.backend.build import library_for
from cyclescope.errors import BackendUnavailable, UsageError
from cyclescope.host.events import event_code
from cyclescope.host.uname import host_isa

_EMPTY_ENTRIES = 200  # of the region that says what Python's way into one takes
_LONGEST = 8192  # bytes of a result as JSON


class RegionResult(msgspec.Struct, frozen=True):
    """Core cycles of one entry of a region; `sum` is of all.

    `median` and `least` are those of `used` entries, undisturbed ones as far as there are some; `error` is
    half the width of what the median can be, None where too few entries tell. `empty` is what an empty region
    takes and was subtracted, `step` what the clock cannot tell apart, both in core cycles. The verdict is
    `ok`, `few`, `disturbed`, `emulated`, `never` or `misused`, of which `problem` is. Counts are per entry.
    """

    region: str
    unit: str
    verdict: str
    problem: str
    entries: int
    disturbed: int
    interrupted: int
    used: int
    median: float | None
    error: float | None
    least: float | None
    sum: float | None
    empty: float | None
    step: float | None
    ticks_per_cycle: float | None
    nanoseconds_per_cycle: float | None
    counters: dict[str, float]
    uncounted: str


class Region:
    """A context manager; each `with` is an entry. Its text and its result are of all entries so far."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise UsageError(f"region {name!r}", "give a name")
        self._library = _library()
        self._handle = self._library.cyclescope_region_new(name.encode())
        if not self._handle:
            raise UsageError(f"region {name!r}", self._why())
        self._begin, self._end = self._library.cyclescope_begin, self._library.cyclescope_end

    def __enter__(self) -> Region:
        if self._begin(self._handle):
            raise UsageError(self._why())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._end(self._handle) and kind is None:
            raise UsageError(self._why())

    def __str__(self) -> str:
        return self._said(self._library.cyclescope_text)

    def __repr__(self) -> str:
        return f"<Region {self}>"

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.cyclescope_region_free(self._handle)

    @property
    def result(self) -> RegionResult:
        """What all entries say."""
        return msgspec.json.decode(self.json(), type=RegionResult)

    def json(self) -> str:
        """The result as JSON."""
        return self._said(self._library.cyclescope_json)

    def _why(self) -> str:
        return str(self._library.cyclescope_error().decode())

    def _said(self, write: Any) -> str:
        buffer = ctypes.create_string_buffer(_LONGEST)
        write(self._handle, buffer, len(buffer))
        return buffer.value.decode(errors="replace")

    def _learn(self, cycles: float, error: float) -> None:
        self._library.cyclescope_empty(self._handle, cycles, error)


def region(name: str = "region", events: Sequence[str] | str = ()) -> Region:
    """Time a region of this program in core cycles, free of what entering and leaving takes.

        with cyclescope.region("sum") as timed:
            total = sum(numbers)
        print(timed)

    Enter it again and again for a median with its error. `events` are names of `cyclescope counters list`;
    they have to be given before the first region of the program begins. Raises UsageError for a wrong name,
    an unknown event, and a region that is begun in another one, twice, or ended without a beginning;
    BackendUnavailable where the library is missing and no compiler can make it.
    """
    if events:
        _count(events.split(",") if isinstance(events, str) else events)
    made = Region(name)
    made._learn(*_empty(bool(events)))
    return made


def _count(events: Sequence[str]) -> None:
    """Ask for events in all regions. Raises UsageError."""
    codes = [f"{name}={kind}:{config:x}" for name, kind, config in map(event_code, events)]
    library = _library()
    if library.cyclescope_count(",".join(codes).encode()):
        raise UsageError(f"events {', '.join(events)}", library.cyclescope_error().decode())


@cache
def _empty(_counts: bool) -> tuple[float, float]:
    """Core cycles of an empty `with`, and their error; reading counters takes some of its own."""
    nothing = Region("nothing")
    for _entry in range(_EMPTY_ENTRIES):
        with nothing:
            pass
    found = nothing.result
    if found.median is None or found.empty is None:
        return 0.0, 0.0
    return max(0.0, found.median + found.empty), found.error or 0.0


@cache
def _library() -> ctypes.PyDLL:
    path = library_for(host_isa())
    try:
        library = ctypes.PyDLL(str(path))  # as fast as can be: none of it waits
    except OSError as error:
        raise BackendUnavailable(f"{path} cannot be loaded ({error})", "reinstall cyclescope") from error
    pointer, number, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    library.cyclescope_region_new.restype, library.cyclescope_region_new.argtypes = pointer, (text,)
    library.cyclescope_region_free.restype, library.cyclescope_region_free.argtypes = None, (pointer,)
    library.cyclescope_error.restype, library.cyclescope_error.argtypes = text, ()
    library.cyclescope_count.restype, library.cyclescope_count.argtypes = number, (text,)
    library.cyclescope_empty.restype = number
    library.cyclescope_empty.argtypes = (pointer, ctypes.c_double, ctypes.c_double)
    for name in ("cyclescope_begin", "cyclescope_end"):
        function = getattr(library, name)
        function.restype, function.argtypes = number, (pointer,)
    for name in ("cyclescope_text", "cyclescope_json"):
        function = getattr(library, name)
        function.restype, function.argtypes = number, (pointer, text, ctypes.c_size_t)
    return library
