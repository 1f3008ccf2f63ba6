"""Files kept beside a store as long as it does not change: its model, and the results of all its forms."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from cyclescope import __version__
from cyclescope.infer.digest import digest
from cyclescope.infer.timing.results import FormTiming


class _Results(msgspec.Struct):
    """Results by form, each read only when it is wanted, and what they were computed by."""

    program: str
    timings: dict[str, msgspec.Raw]


def state_of(store: Path) -> int:
    """When a store was written last in nanoseconds, changes that are still in its log included."""
    log = store.with_name(f"{store.name}-wal")
    found = [file.stat() for file in (store, log) if file.is_file()]
    return max((stat.st_mtime_ns for stat in found if stat.st_size), default=0)


def is_current(kept: Path, store: Path) -> bool:
    """Whether what is kept in a file is of the store as it is."""
    state = state_of(store)
    return bool(state) and state_of(kept) == state


def program() -> str:
    """What computes: the version, and a digest of the code, which changes more often."""
    return f"{__version__}+{digest()}"


def keep(path: Path, state: int, write: Callable[[Path], object]) -> None:
    """Keep a file with the time of its store; where nothing can be written, it is made every time."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        try:
            write(part)
            os.utime(part, ns=(state, state))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def results_file(store: Path) -> Path:
    """The file that has the results of a store."""
    return store.with_suffix(".results")


def keep_results(store: Path, state: int, timings: Iterable[FormTiming]) -> None:
    """Keep the results of all forms, those of a store at a time; nothing where none has a value."""
    encode, every = msgspec.msgpack.encode, list(timings)
    if not any(map(_has_value, every)):
        return
    some = {timing.id: msgspec.Raw(encode(timing)) for timing in every}
    keep(results_file(store), state, lambda part: part.write_bytes(encode(_Results(program(), some))))


def _has_value(timing: FormTiming) -> bool:
    throughput = timing.throughput
    return (
        timing.slots is not None
        or (throughput is not None and (throughput.value is not None or bool(throughput.variants)))
        or any(one.min is not None or one.bounds is not None for one in timing.latencies)
    )


def kept_results(store: Path, forms: Sequence[str]) -> list[FormTiming] | None:
    """The results of forms as they are kept; None where they are not, or are not those of the store."""
    path = results_file(store)
    with suppress(OSError, msgspec.MsgspecError):  # another program's, or damaged: they are made again
        if is_current(path, store):
            found = msgspec.msgpack.decode(path.read_bytes(), type=_Results)
            if found.program == program() and found.timings.keys() >= set(forms):
                return [msgspec.msgpack.decode(found.timings[form], type=FormTiming) for form in forms]
    return None
