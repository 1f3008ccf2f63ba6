"""Bad input: what is asked, the exit code, and the one line that comes out; stores must stay as they were.

As root, the case of a store that cannot be written runs without the capability to override file modes,
since otherwise nothing is read-only.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.lib.common import ROOT, Check, identity, parser, present, table
from benchmarks.lib.processes import command, environment
from cyclescope.backend.link import runner_path
from cyclescope.backend.native import NativeBackend
from cyclescope.errors import BackendUnavailable
from cyclescope.host.features import features
from cyclescope.host.identity import as_leaves
from cyclescope.isa.table import load_table
from cyclescope.measure.store import Store
from cyclescope.model.library import shipped

CAPBSET_DROP, DAC_OVERRIDE = 24, 1  # linux/prctl.h, linux/capability.h
QUICK = "isa:BMI2"  # a few forms that take a second
RARE = ("XOP", "3DNOW", "AMX_TILE", "AVX512F", "AVX2", "SSE4A")


class Case(msgspec.Struct, frozen=True):
    """A command, the exit code it must have, and the file that must not change."""

    name: str
    line: Sequence[str]
    code: int
    keeps: Path | None = None
    environ: Mapping[str, str] = {}
    unprivileged: bool = False
    cpus: frozenset[int] | None = None
    single: bool = True  # the output is the one error line, nothing else


class Outcome(msgspec.Struct, frozen=True):
    """What a case did."""

    case: Case
    code: int
    lines: tuple[str, ...]
    kept: bool

    @property
    def good(self) -> bool:
        """Right exit code, one line where there is an error, no traceback, nothing lost."""
        errors = [line for line in self.lines if "error" in line.lower()]
        alone = not self.case.single or len(self.lines) == 1
        clear = not self.case.code or (len(errors) == 1 and alone)
        return self.code == self.case.code and clear and self.kept and not self._crashed()

    def _crashed(self) -> bool:
        return any("Traceback" in line or "internal error" in line for line in self.lines)

    @property
    def line(self) -> str:
        """The error, or the last line."""
        errors = [line for line in self.lines if "error" in line.lower()]
        return (errors or list(self.lines) or ["(nothing)"])[-1].strip()


# --- the cases -------------------------------------------------------------------------------------


def cases(folder: Path) -> list[Case]:
    """Everything that is tried, with its files made in a folder."""
    good, other, corrupt, cut = _stores(folder)
    first = min(os.sched_getaffinity(0))
    return [
        _measure("unknown pattern", 2, "nosuchinstruction", "--store", good, keeps=good),
        _measure("unknown feature", 2, "isa:NOSUCH", "--store", good, keeps=good),
        _measure("unknown quantity", 2, QUICK, "--what", "colour", "--store", good, keeps=good),
        _measure("no duration", 2, QUICK, "--time-budget", "soon", "--store", good, keeps=good),
        _measure("a CPU that is not there", 2, QUICK, "--cpu", 4095, "--store", good, keeps=good),
        _measure("store of another machine", 1, QUICK, "--store", other, keeps=other),
        _measure("--fresh on another machine's store", 1, QUICK, "--fresh", "--store", other, keeps=other),
        _measure("corrupt store", 1, QUICK, "--store", corrupt, keeps=corrupt),
        _measure("--fresh on a corrupt store", 1, QUICK, "--fresh", "--store", corrupt, keeps=corrupt),
        _measure("truncated store", 1, QUICK, "--store", cut, keeps=cut),
        _show("show from a corrupt store", 1, "imul", "--store", corrupt, keeps=corrupt),
        _show("show without a store", 1, "imul", "--store", folder / "none.sqlite"),
        _read_only(folder, good),
        _measure("store in a folder that is a file", 1, QUICK, "--store", good / "x.sqlite", keeps=good),
        _without_feature(folder),
        _measure(
            "no runner", 4, QUICK, "--store", good, keeps=good, environ={"CYCLESCOPE_RUNNER": "/nowhere"}
        ),
        *_no_compiler(folder),
        *_models(folder),
        Case("assembly nobody knows", command("bench", "--asm", "frobnicate rax"), 3),
        _measure("one CPU only", 0, QUICK, "--store", folder / "one.sqlite", cpus=frozenset((first,))),
    ]


def _measure(
    name: str, code: int, *arguments: object, keeps: Path | None = None,
    environ: Mapping[str, str] | None = None, cpus: frozenset[int] | None = None,
) -> Case:  # fmt: skip
    return Case(name, command("measure", *arguments), code, keeps, environ or {}, cpus=cpus)


def _show(name: str, code: int, *arguments: object, keeps: Path | None = None) -> Case:
    return Case(name, command("show", *arguments), code, keeps)


def _stores(folder: Path) -> tuple[Path, Path, Path, Path]:
    """A good store with a few forms, one of another machine, one of garbage, a truncated one."""
    good, other, corrupt, cut = (folder / f"{name}.sqlite" for name in ("good", "other", "corrupt", "cut"))
    subprocess.run(
        command("measure", QUICK, "--store", good), env=environment(), check=True, capture_output=True
    )
    Store(other, "Another machine").close()
    corrupt.write_bytes(b"this is no database" * 1000)
    data = good.read_bytes()
    cut.write_bytes(data[: len(data) // 2])
    return good, other, corrupt, cut


def _models(folder: Path) -> list[Case]:
    """Machines that there are not, by name and in files, wherever a machine is asked for."""
    code = folder / "loop.s"
    code.write_text("1: add rax, rbx\njmp 1b\n")
    wide = folder / "wide.json"
    model = msgspec.to_builtins(shipped("sifive-p550"))
    wide.write_bytes(msgspec.json.encode(model | {"core": model["core"] | {"width": -3}}))
    deep = folder / "deep.json"
    deep.write_text('{"a":' * 100_000)
    names = (
        ("no machine of this name", 2, "zen6"),
        ("a width below zero", 1, wide),
        ("a deep file", 1, deep),
    )
    return [
        Case(f"{what}, {line[0]}", command(*line, name), wanted)
        for what, wanted, name in names
        for line in (("analyze", code, "--arch"), ("analyze", code, "--compare"), ("machines", "show"))
    ]


def _read_only(folder: Path, good: Path) -> Case:
    """A store, and its folder, that the user may only read."""
    place = folder / "readonly"
    place.mkdir()
    store = place / "store.sqlite"
    shutil.copy(good, store)
    store.chmod(0o444)
    folder.chmod(0o755)
    place.chmod(0o555)
    return Case("read-only store", command("measure", QUICK, "--store", store), 1, store, unprivileged=True)


def _without_feature(folder: Path) -> Case:
    """Forms this CPU does not execute."""
    backend = NativeBackend()
    try:
        has = features(as_leaves(backend.capabilities().leaves))
    finally:
        backend.close()
    known = {name for form in load_table("x86-64") for name in form.features}
    lacking = next(name for name in RARE if name not in has and name in known)
    store = folder / "lacking.sqlite"
    line = command("measure", f"isa:{lacking}", "--store", store)
    return Case("CPU without the feature", line, 3, single=False)


def _no_compiler(folder: Path) -> list[Case]:
    """Building the package where there is no compiler; needs meson."""
    meson = shutil.which("meson") or shutil.which("meson", path=str(Path(sys.executable).parent))
    if meson is None:
        return []
    environ = {"CC": "no-such-compiler", "PATH": f"{Path(meson).parent}:{os.environ['PATH']}"}
    line = [meson, "setup", str(folder / "build"), str(ROOT)]
    return [Case("no compiler", line, 1, environ=environ, single=False)]


# --- running them ----------------------------------------------------------------------------------


def attempt(case: Case) -> Outcome:
    """Run a case."""
    before = case.keeps.read_bytes() if case.keeps else b""
    done = subprocess.run(
        case.line, env=environment(PYTHONDONTWRITEBYTECODE="1", **case.environ), check=False,
        capture_output=True, text=True, preexec_fn=_prepared(case), cwd="/", timeout=600,
    )  # fmt: skip
    error = done.stderr if done.stderr.strip() else done.stdout
    lines = tuple(line for line in error.splitlines() if line.strip())
    return Outcome(case, done.returncode, lines, not case.keeps or case.keeps.read_bytes() == before)


def _prepared(case: Case) -> Callable[[], None]:
    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if case.cpus is not None:
            os.sched_setaffinity(0, case.cpus)
        if case.unprivileged and os.geteuid() == 0:
            ctypes.CDLL(None).prctl(CAPBSET_DROP, DAC_OVERRIDE, 0, 0, 0)

    return prepare


def shown(line: Sequence[str], folder: Path) -> str:
    """A command as a user types it."""
    words = ["cyclescope", *line[3:]] if list(line[:3]) == command() else [Path(line[0]).name, *line[1:]]
    return " ".join(words).replace(str(folder), "$D").replace(str(ROOT), ".")


def bad_input(folder: Path) -> Sequence[Check]:
    """Run every case and print the table."""
    if identity() is None:
        raise BackendUnavailable(f"the runner {runner_path()} does not run", "build the package first")
    outcomes = [attempt(case) for case in cases(folder)]
    rows = [
        (
            o.case.name,
            shown(o.case.line, folder),
            f"{o.code} ({o.case.code})",
            "yes" if o.good else "NO",
            o.line,
        )
        for o in outcomes
    ]
    print(table(("case", "command", "exit (wanted)", "good", "line"), rows))
    bad = [o.case.name for o in outcomes if not o.good]
    found = f"{len(outcomes) - len(bad)} of {len(outcomes)}" + (f"; not: {', '.join(bad)}" if bad else "")
    return [Check("bad input: one clear line, right exit code, nothing lost", found, "all", not bad)]


def main() -> None:
    """Command line."""
    parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        present("bad_input", lambda: bad_input(Path(folder)))


if __name__ == "__main__":
    main()
