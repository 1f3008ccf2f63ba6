"""Runners on other machines: what `--target` names, and how a runner gets there over ssh."""

from __future__ import annotations

import hashlib
import re
import shlex
import subprocess

from cyclescope.backend.build import runner_for
from cyclescope.backend.link import Command, Link, Remote, explained
from cyclescope.backend.transport import End, Transport
from cyclescope.errors import BackendUnavailable, UsageError
from cyclescope.host.uname import isa_of_machine
from cyclescope.isa.registry import isa_names

_SSH = re.compile(
    r"ssh://(?:(?P<user>[\w.][\w.@\\-]*)@)?"
    r"(?P<host>[\w.][\w.-]*|\[[0-9A-Fa-f:.]+(?:%\w+)?\])(?::(?P<port>\d{1,5}))?/?"
)
_OPTIONS = (
    "-T",
    "-oBatchMode=yes",
    "-oConnectTimeout=15",
    "-oServerAliveInterval=15",
    "-oServerAliveCountMax=4",
)
_FOLDER = '"${XDG_CACHE_HOME:-$HOME/.cache}/cyclescope"'
_MISSING, _CUT = 97, 98  # exit statuses of the scripts below
_LOOK = f"echo cyclescope: $(uname -sm); ls {_FOLDER} 2>/dev/null; true"
_START = f'f={_FOLDER}/NAME; [ -x "$f" ] || exit {_MISSING}; exec "$f"'
_COPY = (
    f'd={_FOLDER}; umask 077; mkdir -p "$d" && t="$d/.NAME.$$" && cat > "$t" || exit; '
    f'if [ "$(wc -c < "$t")" -eq SIZE ]; then chmod 755 "$t" && mv -f "$t" "$d/NAME"; '
    f'else rm -f "$t"; exit {_CUT}; fi'
)
_COPYING = 600.0  # seconds: a megabyte over a slow link
_MEANINGS = (
    (r"permission denied|authentication fail", "does not let us in",
     "ssh has to log in without asking: `ssh-copy-id`, or an ssh-agent; look at"),
    (r"host key verification|identification has changed", "is not known to ssh, or is another one now",
     "once by hand:"),
    (r"could not resolve|not known", "is not known here", "look at the name; what ssh does:"),
    (r"timed out|refused|no route|unreachable|closed|reset|broken pipe", "is not reached, or no more",
     "look at"),
)  # fmt: skip


def link_to(target: str | None) -> Link:
    """The way to a target: `ssh://[user@]host[:port]`, `exec:COMMAND`, or None for this machine.

    Raises UsageError.
    """
    if target is None:
        return Link()
    if target.startswith("exec:") and target[5:].strip():
        return Command(target[5:].strip())
    match = _SSH.fullmatch(target)
    if not match or int(match["port"] or 22) not in range(1, 65536):
        raise UsageError(
            f"{target!r} is no target",
            "write ssh://[user@]host[:port], or exec:COMMAND with what starts a runner",
        )
    return Ssh(match["host"].strip("[]"), match["user"] or "", match["port"] or "")


class Ssh(Remote):
    """A runner that is copied to a host over ssh, once, and started there."""

    def __init__(self, host: str, user: str = "", port: str = "") -> None:
        self.host = host
        self.name = f"the runner on {host}"
        self._login = [*(["-p", port] if port else []), f"{user}@{host}" if user else host]
        self._runner = ""  # its name there, once it is there

    def connect(self) -> Transport:
        """Start the runner, copied before where it is not there yet. Raises BackendUnavailable."""
        if not self._runner:
            self._runner = self._provide()
        return self._start(self._command(_START.replace("NAME", self._runner)))

    def lost(self, end: End) -> BackendUnavailable:
        """What to say of a runner that is gone, or of ssh."""
        if end.code == _MISSING:
            self._runner = ""  # it will be copied again
            return BackendUnavailable(f"{self.name} was removed", "try again")
        if end.code == 126 and "format" not in end.said:
            where = f"{{target}} 'exec:ssh {' '.join(self._login)} /path/to/runner'"
            message = f"{self.name} may not be executed ({end.said[-200:]})"
            return BackendUnavailable(message, f"put one where programs may be, then {where}")
        return self._ssh_problem(end.code, end.said) or explained(self.name, end) or super().lost(end)

    def _ssh_problem(self, code: int | None, said: str) -> BackendUnavailable | None:
        """What ssh says of itself; what it starts does not end with 255."""
        if code != 255:
            return None
        hand = f"`ssh {shlex.join(self._login)}`"
        for pattern, meaning, remedy in _MEANINGS:
            if re.search(pattern, said, re.IGNORECASE):
                return BackendUnavailable(f"{self.host} {meaning} ({said[-200:]})", f"{remedy} {hand}")
        return BackendUnavailable(f"ssh to {self.host} failed ({said[-200:]})", f"look at {hand}")

    def _command(self, script: str) -> list[str]:
        return ["ssh", *_OPTIONS, *self._login, f"exec sh -c {shlex.quote(script)}"]

    def _provide(self) -> str:
        """Name of the runner, which is there then."""
        isa, there = self._look()
        data = runner_for(isa).read_bytes()
        name = f"runner-{hashlib.sha256(data).hexdigest()[:16]}"
        if name not in there:
            script = _COPY.replace("NAME", name).replace("SIZE", str(len(data)))
            self._run(script, _COPYING, "its runner cannot be copied", data)
        return name

    def _look(self) -> tuple[str, list[str]]:
        """Instruction set, and the runners that are there."""
        said = self._run(_LOOK, self.patience, "it does not say what it is")
        lines = said[said.find("cyclescope:") :].split()[1:]
        system, machine, *there = [*lines, "", ""]
        isa = isa_of_machine(machine)
        if system != "Linux" or not isa:
            what = " on ".join(filter(None, (system, machine))) or "no system that is known"
            raise BackendUnavailable(
                f"{self.host} runs {what}", f"runners are for Linux on {', '.join(isa_names())}"
            )
        return isa, there

    def _run(self, script: str, patience: float, problem: str, data: bytes = b"") -> str:
        """What a script on the host prints."""
        try:
            done = subprocess.run(
                self._command(script), check=False, capture_output=True, input=data, timeout=patience
            )
        except FileNotFoundError as error:
            remedy = "`apt install openssh-client`, or reach it with exec:COMMAND"
            raise BackendUnavailable("there is no ssh on this machine", remedy) from error
        except subprocess.TimeoutExpired as error:
            raise self.silent(patience) from error
        except OSError as error:
            raise BackendUnavailable(f"ssh cannot be started ({error.strerror})") from error
        said = " ".join(done.stderr.decode(errors="replace").split())
        if done.returncode:
            raise self._ssh_problem(done.returncode, said) or BackendUnavailable(
                f"{self.host}: {problem} ({said[-200:] or f'exit status {done.returncode}'})",
                "look whether its disk has room and its home folder can be written",
            )
        return done.stdout.decode(errors="replace")
