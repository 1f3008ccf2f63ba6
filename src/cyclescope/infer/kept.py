"""Files kept beside a store as long as it does not change: its model, and the results of all its forms."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from cyclescope import __version__
from cyclescope.infer.digest import digest
from cyclescope.infer.timing.results import FormTiming, with_ports_of
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.measure.store import Store


class _Results(msgspec.Struct):
    """Results by form, each read only when it is wanted, and what they were computed by and from."""

    program: str
    ground: str  # what they rest on beside readings of their own (`ground_of`)
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


def keep_results(store: Path, state: int, ground: str, timings: Iterable[FormTiming]) -> None:
    """Keep the results of all forms, those of a store at a time; nothing where none has a value."""
    every = list(timings)
    if any(map(_has_value, every)):
        _keep_results(store, state, _Results(program(), ground, {one.id: _encoded(one) for one in every}))


def renew_results(store: Path, state: int, ground: str, made: Iterable[FormTiming]) -> None:
    """Keep the results of some forms anew, made without ports, beside those of all others as they are.

    Only where the `ground` is still the same: it bears all others, and all ports.
    """
    found = _results(store)
    if found is None or found.ground != ground:
        return
    with suppress(msgspec.MsgspecError):  # damaged: all are made again when they are asked for
        for timing in made:
            old = msgspec.msgpack.decode(found.timings[timing.id], type=FormTiming)
            found.timings[timing.id] = _encoded(with_ports_of(timing, old))
        _keep_results(store, state, found)


def _keep_results(store: Path, state: int, results: _Results) -> None:
    keep(results_file(store), state, lambda part: part.write_bytes(msgspec.msgpack.encode(results)))


def _encoded(timing: FormTiming) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(timing))


def _has_value(timing: FormTiming) -> bool:
    throughput = timing.throughput
    return (
        timing.slots is not None
        or (throughput is not None and (throughput.value is not None or bool(throughput.variants)))
        or any(one.min is not None or one.bounds is not None for one in timing.latencies)
    )


def kept_results(store: Path, forms: Sequence[str]) -> list[FormTiming] | None:
    """The results of forms as they are kept; None where they are not, or are not those of the store."""
    if not is_current(results_file(store), store):
        return None
    found = _results(store)
    if found is None or not found.timings.keys() >= set(forms):
        return None
    with suppress(msgspec.MsgspecError):
        return [msgspec.msgpack.decode(found.timings[form], type=FormTiming) for form in forms]
    return None


def timings(store: Store, table: Table, forms: Sequence[InstructionForm]) -> list[FormTiming]:
    """Timings of the forms from a store, in the order of `forms`; as they are kept beside it, if they are."""
    kept = kept_results(store.path, [form.id for form in forms])
    if kept is not None:
        return kept
    from cyclescope.infer.ports.naming import known_machine  # slow to import
    from cyclescope.infer.readout import Readout

    return list(Readout(store, table, known_machine(store.machine), forms).timings())


def _results(store: Path) -> _Results | None:
    """What is kept; None where it is another program's, or damaged: it is made again."""
    with suppress(OSError, msgspec.MsgspecError):
        found = msgspec.msgpack.decode(results_file(store).read_bytes(), type=_Results)
        return found if found.program == program() else None
    return None
