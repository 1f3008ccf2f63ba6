"""Damaged inputs of every kind through the commands that read them, and what every command owes its user."""

from __future__ import annotations

import gc
import resource
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from hypothesis import strategies as st

from cyclescope.analyze.read.assemblers import tools
from cyclescope.cli.main import main
from cyclescope.formats.registry import READABLE
from tests.support.files.damage import BYTES, DAMAGE, FORMS, LOOP, thin, unbound
from tests.support.files.damaged_code import BUILDS, CC, CHANGES, EDITS, TEXTS, built, changed, edited
from tests.support.files.damaged_files import EDITS as FILE_EDITS
from tests.support.files.damaged_files import mutated as mutated_file
from tests.support.files.damaged_files import sound
from tests.support.files.mutation import mutated as mutated_model

SECONDS, MEGABYTES = 5, 500
LONGEST = 5000  # characters of what is said on standard error
MACHINES = {"x86-64": "skylake", "aarch64": "neoverse-v1", "riscv64": "sifive-p670"}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ran(NamedTuple):
    """What a command line did: exit code, what it said, seconds of CPU and bytes of memory that it took."""

    line: Sequence[str]
    code: int
    out: str
    errors: str
    seconds: float
    grown: int


class Kind(NamedTuple):
    """Inputs of a kind: a strategy of damage, what writes a damaged file into a folder, the command lines."""

    damage: st.SearchStrategy[Any]
    write: Callable[[Path, Any], Path]
    lines: Callable[[Path], Sequence[Sequence[object]]]


# --- running and judging -----------------------------------------------------------------------------


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Commands put their own handlers of signals, which a test's process is not to keep."""
    before = [signal.getsignal(number) for number in SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)


def ran(line: Sequence[object]) -> Ran:
    """Run a command line in this process, as the command runs it."""
    words = [str(word) for word in line]
    out, errors = (TextIOWrapper(BytesIO(), "utf-8", errors="replace", write_through=True) for _ in range(2))
    memory, start = _memory(), _seconds()
    code: object = 0
    with redirect_stdout(out), redirect_stderr(errors):
        try:
            main(words)
        except SystemExit as end:
            code = end.code or 0
    gc.enable()  # `analyze` lives too short for it, this process does not
    said = [text.buffer.getvalue().decode() for text in (out, errors)]  # type: ignore[attr-defined]
    return Ran(words, int(str(code)), *said, _seconds() - start, _memory() - memory)


def _seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + usage.ru_utime + usage.ru_stime


def _memory() -> int:
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def wrong(done: Ran) -> str:
    """What a command owes and did not give, or ""."""
    errors = [line for line in done.errors.splitlines() if line.startswith("error: ")]
    owed = {
        f"exit code {done.code}": done.code in range(5),
        "an internal error": "internal error" not in done.errors,
        "a traceback": "Traceback" not in done.errors,
        f"{len(errors)} errors": len(errors) <= 1 and not (errors and not done.code),
        "no reason": bool(errors) or done.code == 0 or bool(done.out),
        "an error of 4000 characters or more": len(done.errors) < LONGEST,
        "what controls a terminal": all(line.isprintable() for line in errors),
        f"{done.seconds:.1f} s": done.seconds < SECONDS,
        f"{done.grown >> 10} MB": done.grown < MEGABYTES << 10,
    }
    return "; ".join(what for what, good in owed.items() if not good)


def broken(kind: Kind, damage: Any) -> list[str]:
    """What is wrong with what the commands make of one damaged input."""
    with TemporaryDirectory() as name, handlers_kept():
        path = kind.write(Path(name), damage)
        before = {file.name: file.read_bytes() for file in Path(name).iterdir()}
        found = []
        for line in kind.lines(path):
            done = ran(line)
            said = wrong(done)
            after = {file.name: file.read_bytes() for file in Path(name).iterdir() if _is_told(file)}
            if done.code and after != before:
                said += "; something was written"
            for file in set(after) - set(before):
                (Path(name) / file).unlink()
            if said:
                found.append(f"{' '.join(done.line)[:200]}: {said}: {done.errors[-400:]!r}")
        return found


def _is_told(file: Path) -> bool:
    """Whether a file is an input or a result: what SQLite keeps beside an open store is neither."""
    return not file.name.endswith(("-wal", "-shm", "-lock"))


# --- the kinds ---------------------------------------------------------------------------------------


def _model_lines(path: Path) -> Sequence[Sequence[object]]:
    code = path.with_name("loop.s")
    return (
        ("analyze", code, "--arch", path),
        ("machines", "check", path),
        ("machines", "show", path, "IMUL*"),
        ("compare", path, path),
        ("export", path, "-o", path.with_name("out.csv")),
    )


def _write_model(folder: Path, data: bytes) -> Path:
    path = folder / "model.json"
    path.write_bytes(data)
    (folder / "loop.s").write_text(LOOP)
    return path


def _write_foreign(name: str) -> Callable[[Path, Any], Path]:
    def write(folder: Path, edits: Any) -> Path:
        path = folder / f"{name}.txt"
        text = mutated_file(sound(name), edits)
        path.write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
        return path

    return write


def _foreign_lines(name: str) -> Callable[[Path], Sequence[Sequence[object]]]:
    def lines(path: Path) -> Sequence[Sequence[object]]:
        output = path.with_name("made.json")
        return (
            ("import", path, "--machine", "m", "--format", name, "-o", output),
            ("import", path, "--machine", "m", "-o", output, "--refused"),
            ("compare", path, path),
        )

    return lines


def _write_code(isa: str) -> Callable[[Path, Any], Path]:
    def write(folder: Path, edits: Any) -> Path:
        path = folder / "k.s"
        path.write_text(edited(TEXTS[isa], edits), errors="surrogatepass", newline="")
        return path

    return write


def _code_lines(isa: str) -> Callable[[Path], Sequence[Sequence[object]]]:
    machine = MACHINES[isa]
    return lambda path: (
        ("analyze", path, "--arch", machine, "--ignore-unknown"),
        ("insert-markers", path, "-o", path.with_name("marked.s")),
    )


def _write_binary(name: str) -> Callable[[Path, Any], Path]:
    def write(folder: Path, damage: Any) -> Path:
        edits, kept = damage
        path, data = folder / "k", changed(built(name), edits)
        path.write_bytes(data[: 4 + int(kept * len(data))])
        return path

    return write


def _binary_lines(path: Path) -> Sequence[Sequence[object]]:
    return (
        ("analyze", path, "--arch", "skylake", "--ignore-unknown"),
        ("analyze", path, "--arch", "skylake", "--function", "norm", "--json"),
    )


def store_kind(complete: Path, folder: Path) -> Kind:
    """Stores: copies in a folder of that of a finished run of a few forms, its rows or bytes damaged."""
    few = unbound(thin(Path(shutil.copy(complete, folder / "few.sqlite"))))

    def write(place: Path, damage: Any) -> Path:
        path = place / "store.sqlite"
        shutil.copy(few, path)
        for hurt in damage:
            with suppress(sqlite3.DatabaseError):  # the first left no such table, or no store
                hurt(path)
        return path

    def lines(path: Path) -> Sequence[Sequence[object]]:
        return (
            ("show", *FORMS[:4], "--store", path),
            ("show", "--json", *FORMS, "--store", path),
            ("machines", "build", "--store", path, "-o", path.with_name("made.json")),
            ("store", "info", "--store", path),
            ("compare", path, path),
        )

    return Kind(st.lists(DAMAGE | BYTES, min_size=1, max_size=3), write, lines)


def kinds() -> dict[str, Kind]:
    """All kinds but stores, by name: those that this machine has the tools for."""
    found = {"model": Kind(mutated_model(), _write_model, _model_lines)}
    for name in READABLE:
        found[name] = Kind(FILE_EDITS, _write_foreign(name), _foreign_lines(name))
    for isa in TEXTS:
        if tools(isa):
            found[f"assembly {isa}"] = Kind(EDITS, _write_code(isa), _code_lines(isa))
    for name in BUILDS if CC and tools("x86-64") else ():
        damage = st.tuples(CHANGES, st.just(1.0) | st.floats(0, 1))
        found[f"binary {name}"] = Kind(damage, _write_binary(name), _binary_lines)
    return found
