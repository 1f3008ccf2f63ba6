"""One hierarchy of errors: what went wrong, what to do about it, and the exit code.

A remedy advises what the caller can do: an option to who typed a command, an
argument to who called a function.

What fails per item of a long list (a form, a kernel) is data in the result, not an exception.
"""

from __future__ import annotations

import re

_LONGEST = 100  # characters of what is quoted

# What remedies advise, by the name that they use in braces: on the command line, and in Python.
ADVICE = {
    "addresses": ("--addresses", "`Choice(addresses=...)`"),
    "arch": ("--arch", "`machine`"),
    "cc": ("--cc", "`compiler`"),
    "column": ("--column", "`ImportRequest(column=...)`"),
    "cpu": ("--cpu", "`cpu`"),
    "events": ("`cyclescope counters list`", "`cyclescope.host.events.named_events()`"),
    "evidence": ("`cyclescope show --evidence`", "`Store.evidence()`"),
    "format": ("--format", "`format_name`"),
    "forms": ("`cyclescope forms`", "`load_table()`"),
    "fresh": ("--fresh", "`fresh=True`"),
    "function": ("--function", "`Choice(function=...)`"),
    "hex": ("--hex", "`bytes`"),
    "ignore_unknown": ("--ignore-unknown", "`ignore_unknown=True`"),
    "init": ("--init", "`init`"),
    "kind": ("`cyclescope import --format`", "`format_name`"),
    "lines": ("--lines", "`Choice(lines=...)`"),
    "loop": ("--loop", "`BurstPlan(loop=...)`"),
    "machines": ("`cyclescope machines list`", "`cyclescope.model.library.summaries()`"),
    "measure": ("`cyclescope measure`", "`cyclescope.measure_forms()`"),
    "measurements": ("--n", "`BurstPlan(measurements=...)`"),
    "ports": ("`cyclescope measure --what ports`", '`cyclescope.measure_forms(what=["ports"])`'),
    "region": ("--region", "`Choice(region=...)`"),
    "run": ("--run", "`measured_loop()`"),
    "store": ("--store", "`store`"),
    "syntax": ("--syntax", "`syntax`"),
    "target": ("--target", "`target`"),
    "threads": ("--threads", "`time_threads()`"),
}


class Remedy(str):
    """What to do about an error, in Python's words; `command` has it in those of the command line.

    The template has names of `ADVICE` in braces: "name one with {store}".
    """

    __slots__ = ("command", "template")
    command: str
    template: str

    def __new__(cls, template: str) -> Remedy:
        """Both wordings of a template."""
        made = super().__new__(cls, _worded(template, 1))
        made.command, made.template = _worded(template, 0), template
        return made

    def also(self, more: str) -> Remedy:
        """This and another one."""
        return Remedy("; ".join(filter(None, (self.template, more))))


def _worded(template: str, which: int) -> str:
    return re.sub(r"\{(\w+)\}", lambda m: ADVICE[m[1]][which] if m[1] in ADVICE else m[0], template)


def shortened(text: str) -> str:
    """What a message quotes: the beginning of a long text, and how long it is."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"


class CyclescopeError(Exception):
    """Root of all errors shown to the user as one line."""

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}: {self.remedy}" if self.remedy else self.message

    @property
    def remedy(self) -> Remedy:
        """What to do, in Python's words."""
        return self._remedy

    @remedy.setter
    def remedy(self, remedy: str) -> None:
        self._remedy = remedy if isinstance(remedy, Remedy) else Remedy(remedy)

    @property
    def told(self) -> str:
        """The error as the command line says it."""
        return f"{self.message}: {self.remedy.command}" if self.remedy else self.message


class UsageError(CyclescopeError):
    """The request itself is wrong: unknown pattern, impossible option."""

    exit_code = 2


def unwritable(path: object, error: OSError) -> UsageError:
    """What is said of a file that was asked for and cannot be written."""
    return UsageError(f"{path} cannot be written ({error.strerror})", "name another file")


def unreadable(path: object, error: OSError | UnicodeError) -> UsageError:
    """What is said of a file that was named and cannot be read."""
    why = getattr(error, "strerror", None) or "no text"
    return UsageError(f"{path} cannot be read ({why})", "name another file")


class UnsupportedInstruction(CyclescopeError):
    """An instruction that the table, the assembler or this CPU does not know.

    `line` is that of the text, 0 where no line of it is refused.
    """

    exit_code = 3

    def __init__(self, message: str, remedy: str = "", line: int = 0) -> None:
        super().__init__(message, remedy)
        self.line = line


class SourceError(CyclescopeError):
    """Code to analyse that cannot be read: a file, its text, its markers."""


class BackendUnavailable(CyclescopeError):
    """Nothing here can run kernels."""

    exit_code = 4


class StoreError(CyclescopeError):
    """A measurement store that cannot be read, written or used here."""


class MeasurementError(CyclescopeError):
    """The machine does not allow a measurement that can be trusted."""


class Stopped(BaseException):
    """A signal asked this program to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """As a shell counts: 128 and the signal's number."""
        return 128 + self.number
