"""Building the static runner of an instruction set from the sources in the package."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from cyclescope.backend.link import runner_path
from cyclescope.errors import BackendUnavailable, UsageError
from cyclescope.host.files import replaceable
from cyclescope.host.uname import host_isa
from cyclescope.isa.registry import instruction_set, instruction_sets

_FLAGS = ("-O2", "-std=gnu11", "-fno-stack-protector", "-s", "-I.")
_PLACES = (
    ("-static-pie", "-fPIE"),
    ("-static",),
)  # anywhere in memory; where the C library cannot, at one place
_INSIDE_FLAGS = (*_FLAGS, "-DCYCLESCOPE_INSIDE", "-shared", "-fPIC", "-fvisibility=hidden")
_INSIDE_SHARED = ("clock.c", "canary.c", "clusters.c", "counters.c", "emulation.c")  # with the runner
_INSIDE = "libcyclescope.so"
_CLANGS = ("clang", *(f"clang-{version}" for version in range(22, 13, -1)))
_PATIENCE = 300.0  # seconds for a compiler: zig makes its C library first


class Built(NamedTuple):
    """A runner, and the command that made it in the folder of the sources.

    `fixed` says that it is at the same addresses each time: the compiler's C library cannot do without.
    """

    path: Path
    folder: Path
    command: tuple[str, ...]
    fixed: bool = False


def runner_for(isa: str) -> Path:
    """A runner of an instruction set: the package's, one built before, or one built now.

    Raises BackendUnavailable.
    """
    if isa in (host_isa(), _isa_of_file(Path(os.environ.get("CYCLESCOPE_RUNNER", "")))):
        return runner_path()
    path = cache_folder() / f"runner-{instruction_set(isa).folder}-{source_hash(isa)}"
    if not path.is_file():
        build(isa, path)
    return path


def header_folder() -> Path:
    """Where `cyclescope.h` is, for programs that time regions of their own."""
    return _source_folder() / "inside"


def library_for(isa: str) -> Path:
    """The library behind that header: the package's, one built before, or one built now.

    Raises BackendUnavailable.
    """
    own = _source_folder() / _INSIDE
    if isa == host_isa() and own.is_file():
        return own
    folder = instruction_set(isa).folder
    made_of = sorted(header_folder().glob("*.[ch]"))
    path = cache_folder() / f"inside-{folder}-{source_hash(isa, made_of)}" / _INSIDE
    if not path.is_file():
        files = [*_relative(sorted(header_folder().glob("*.c"))), *_INSIDE_SHARED, f"{folder}/arch.c"]
        _first(isa, path, "", [(*_INSIDE_FLAGS, *files, "-lm", "-lpthread")], "library")
    return path


def cache_folder() -> Path:
    """Where runners for other machines are kept."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cyclescope"
    except RuntimeError as error:
        raise BackendUnavailable("no home directory to build a runner in", "set XDG_CACHE_HOME") from error


def sources(isa: str) -> list[Path]:
    """The C files of a runner. Raises BackendUnavailable where none are written, or installed."""
    folder = _source_folder()
    shared, own = sorted(folder.glob("*.c")), sorted((folder / instruction_set(isa).folder).glob("*.c"))
    if not shared:
        raise BackendUnavailable(f"no sources of a runner in {folder}", "reinstall cyclescope")
    if not own:
        message = f"nothing runs code of {isa}: cyclescope has its instructions, but no runner for it"
        raise BackendUnavailable(message, "forms, machine models and predictions need none")
    return [*shared, *own]


def _source_folder() -> Path:
    return Path(str(resources.files("cyclescope"))) / "native"


def source_hash(isa: str, more: Sequence[Path] = ()) -> str:
    """What tells runners of different sources apart, or what is made of `more` sources too."""
    folder = _source_folder()
    headers = [*folder.glob("*.h"), *(folder / instruction_set(isa).folder).glob("*.h")]
    digest = hashlib.sha256()
    for path in sorted([*sources(isa), *headers, *more]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def build(isa: str, output: Path, compiler: str = "") -> Built:
    """Build a runner with a compiler, as a shell would start it, or with the first one that can.

    Raises UsageError for a compiler that is none, BackendUnavailable where none can.
    """
    files = _relative(sources(isa))
    lines = [(*_FLAGS, *place, *files, "-lm") for place in _PLACES]
    command, which = _first(isa, output, compiler, lines, "runner")
    return Built(output, _source_folder(), command, which > 0)


def _relative(paths: Sequence[Path]) -> list[str]:
    return [str(path.relative_to(_source_folder())) for path in paths]


def _first(
    isa: str, output: Path, compiler: str, lines: Sequence[Sequence[str]], what: str
) -> tuple[tuple[str, ...], int]:
    """Build with the first compiler that can, by the first line of arguments that works; which these were."""
    tried = []
    for command in [_split(compiler)] if compiler else list(compilers(isa)):
        for which, line in enumerate(lines):
            problem = _compile(isa, (*command, *line), output.absolute())
            if not problem:
                return (*command, *line, "-o", str(output.absolute())), which
        tried.append(f"{shlex.join(command)}: {problem}")
    message = f"no {what} for {isa} could be built" + (f" ({'; '.join(tried)})" if tried else ": no compiler")
    raise BackendUnavailable(message, _advice(isa, compiler))


def _split(compiler: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(compiler))
    except ValueError as error:
        raise UsageError(f"{compiler!r} is no command", str(error)) from error
    if not words or not shutil.which(words[0]):
        raise UsageError(f"{compiler!r}: no such program", "look at {cc}")
    return words


def _advice(isa: str, compiler: str) -> str:
    if compiler:
        return "leave out {cc} to try all compilers that are here"
    packages = "gcc libc6-dev" if isa == host_isa() else instruction_set(isa).toolchain.packages
    return f"`apt install {packages}`, or zig (`pip install ziglang`), or name a compiler with {{cc}}"


def compilers(isa: str) -> Iterator[tuple[str, ...]]:
    """Compilers that are here and may be able to build for an instruction set, the surest first."""
    folder = instruction_set(isa).folder
    names = [f"{folder}-linux-gnu-gcc", f"{folder}-linux-musl-gcc", f"{folder}-unknown-linux-gnu-gcc"]
    if isa == host_isa():
        if os.environ.get("CC"):
            with suppress(UsageError):  # it is none: others may be there
                yield _split(os.environ["CC"])
        names = ["cc", "gcc", *names]
    yield from ((name,) for name in dict.fromkeys(names) if shutil.which(name))
    if clang := next(filter(shutil.which, _CLANGS), ""):
        yield (clang, f"--target={folder}-linux-gnu")
    if shutil.which("zig"):
        yield ("zig", "cc", "-target", f"{folder}-linux-musl")
    elif find_spec("ziglang"):
        yield (sys.executable, "-m", "ziglang", "cc", "-target", f"{folder}-linux-musl")


def _compile(isa: str, line: Sequence[str], output: Path) -> str:
    """Compile into a file, whole or not at all; what went wrong, or ""."""
    output = replaceable(output)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=output.parent, prefix=".runner-") as folder:
            made = Path(folder) / "runner"
            problem = _run([*line, "-o", str(made)])
            if not problem and _isa_of_file(made) != isa:
                problem = f"it builds for {_isa_of_file(made) or 'something else'}"
            if not problem:
                made.replace(output)
            return problem
    except OSError as error:
        raise BackendUnavailable(
            f"{output} cannot be written ({error.strerror})", "name another file"
        ) from error


def _run(line: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            line, check=False, capture_output=True, text=True, timeout=_PATIENCE, cwd=_source_folder()
        )
    except subprocess.TimeoutExpired:
        return f"not done after {_PATIENCE:g} s"
    except OSError as error:
        return error.strerror or "cannot be started"
    said = done.stderr.splitlines()
    lines = [text for text in said if "undefined" in text or re.search(r"\berror:", text)] or said
    return "" if not done.returncode else (lines or [f"exit status {done.returncode}"])[0][:200]


def _isa_of_file(path: Path) -> str:
    """What an ELF file is built for, "" for other files."""
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError:
        return ""
    machine = int.from_bytes(head[18:20], "little") if head[:5] == b"\x7fELF\x02" else 0
    return next((record.name for record in instruction_sets() if record.elf == machine), "")
