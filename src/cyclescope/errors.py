"""One hierarchy of errors: what went wrong, what to do about it, and the exit code.

What fails per item of a long list (a form, a kernel) is data in the result, not an exception.
"""

from __future__ import annotations


class CyclescopeError(Exception):
    """Root of all errors shown to the user as one line."""

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}: {self.remedy}" if self.remedy else self.message


class UsageError(CyclescopeError):
    """The request itself is wrong: unknown pattern, impossible option."""

    exit_code = 2


class UnsupportedInstruction(CyclescopeError):
    """An instruction that the table, the assembler or this CPU does not know."""

    exit_code = 3


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
