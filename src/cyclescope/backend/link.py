"""How a runner is reached: on this machine, or by a command that starts one anywhere."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from errno import EAGAIN, EMFILE, ENFILE, ENOEXEC, ENOMEM
from importlib import resources
from pathlib import Path

from cyclescope.backend.transport import End, Transport
from cyclescope.errors import BackendUnavailable, UsageError

REINSTALL = "reinstall with `pip install .` and a C compiler, or set CYCLESCOPE_RUNNER"
LOCAL_PATIENCE, REMOTE_PATIENCE = 10.0, 60.0  # seconds for a first answer
WORK_PATIENCE, KERNEL_PATIENCE = 60.0, 1.5  # a kernel that hangs is stopped after a second
_SCARCE = (EAGAIN, EMFILE, ENFILE, ENOMEM)
_LIMITS = "end other programs, or raise the limits of this shell (ulimit -a)"
_PATIENCE = "CYCLESCOPE_PATIENCE"
_EMULATOR = re.compile(r"\bqemu-(system-)?\w+(-static)?(?=[\s;])")
_SHOWN = 60  # characters of a command in an error


def runner_path() -> Path:
    """The runner built with the package. Raises BackendUnavailable where there is none."""
    override = os.environ.get("CYCLESCOPE_RUNNER")
    path = Path(override) if override else Path(str(resources.files("cyclescope"))) / "native/runner"
    if not path.is_file():
        raise BackendUnavailable(f"the runner {path} is missing", REINSTALL)
    if not os.access(path, os.X_OK):
        raise BackendUnavailable(f"the runner {path} is not executable", f"`chmod +x {path}`")
    return path


class Link:
    """The runner of this machine, and what other ways to a runner do differently.

    `tries` is how often it is started again, in a row, where it is lost at work; `grace` the seconds it has
    to end itself; `emulated` whether its times are known to mean nothing; `remedy` what helps if it does not
    work at all.
    """

    name = "the runner"
    remote = False
    emulated = False
    tries = 0
    grace = 0.0
    remedy = REINSTALL

    def connect(self) -> Transport:
        """Start it. Raises BackendUnavailable."""
        return self._start([str(runner_path())])

    @property
    def patience(self) -> float:
        """Seconds to wait for a first answer. Raises UsageError."""
        default = REMOTE_PATIENCE if self.remote else LOCAL_PATIENCE
        text = os.environ.get(_PATIENCE, "")
        try:
            seconds = float(text or default)
        except ValueError as error:
            raise UsageError(f"{_PATIENCE}={text!r} is no number of seconds") from error
        return min(max(seconds, 0.0), 1e6)

    def patience_for(self, rounds: int) -> float | None:
        """Seconds without a byte after which kernels that run so often are given up, None for never."""
        return WORK_PATIENCE + KERNEL_PATIENCE * rounds if self.remote else None

    def lost(self, end: End) -> BackendUnavailable:
        """What to say of a runner that is gone."""
        return BackendUnavailable(f"{self.name} {end.describe()}")

    def silent(self, seconds: float) -> BackendUnavailable:
        """What to say of a runner that is not heard of."""
        remedy = f"give it more time: {_PATIENCE}={10 * max(seconds, 1):g}" if self.remote else self.remedy
        return BackendUnavailable(f"{self.name} has not answered for {seconds:g} s", remedy)

    def _start(self, command: Sequence[str], files: Sequence[int] = ()) -> Transport:
        """Start a command, which gets these open files."""
        try:
            return Transport(command, files)
        except OSError as error:
            why = "is no program for this CPU" if error.errno == ENOEXEC else "cannot be started"
            remedy = _LIMITS if error.errno in _SCARCE else self.remedy
            raise BackendUnavailable(f"the runner {command[0]} {why} ({error.strerror})", remedy) from error
        except RuntimeError as error:
            raise BackendUnavailable(f"{self.name} cannot be listened to ({error})", _LIMITS) from error


class Remote(Link):
    """A runner behind a command, which ends it when it ends itself."""

    remote = True
    tries = 3
    grace = 2.0


class Command(Remote):
    """A shell command whose standard input and output are the runner's: an emulator, a container, a queue."""

    remedy = "look whether the command starts a runner of this version: `cyclescope runner build`"

    def __init__(self, command: str) -> None:
        self._command = command
        shown = command if len(command) <= _SHOWN else f"{command[:_SHOWN]}..."
        self.name = f"the runner of `{shown}`"
        self.emulated = bool(_EMULATOR.search(command))

    def connect(self) -> Transport:
        """Start it. Raises BackendUnavailable."""
        return self._start(["/bin/sh", "-c", self._command])

    def lost(self, end: End) -> BackendUnavailable:
        """What to say of a command that is gone."""
        return explained(self.name, end) or super().lost(end)


def explained(name: str, end: End) -> BackendUnavailable | None:
    """What shells say of programs that cannot be, None for another end."""
    said = end.said[-200:]
    if end.strange:
        text = end.strange.decode("ascii", "replace")
        if all(sign.isprintable() or sign.isspace() for sign in text):
            message = f"{name} comes after text on standard output ({' '.join(text.split())}...)"
            return BackendUnavailable(
                message, "let the command and its shell print nothing but what the runner says"
            )
    if any(
        words in said for words in ("Exec format error", "Invalid ELF image", "cannot execute binary file")
    ):
        return BackendUnavailable(
            f"{name} is built for another instruction set ({said})", "`cyclescope runner build --isa ...`"
        )
    if end.code == 127:
        return BackendUnavailable(f"{name}: no such program ({said})", "look at the path in {target}")
    if end.code == 126:
        return BackendUnavailable(
            f"{name} may not be executed ({said})", "`chmod +x` it, on a file system that allows programs"
        )
    return None
