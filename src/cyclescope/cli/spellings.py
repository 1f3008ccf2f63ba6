"""nanoBench's spellings of the options of `bench`: one dash or two, beginnings that are clear."""

from __future__ import annotations

import click

from cyclescope.errors import UsageError

_SAME = {
    "asm": "--asm", "asm_init": "--init", "asm_late_init": "--late-init",
    "asm_one_time_init": "--one-time-init", "config": "--config", "n_measurements": "--n",
    "unroll_count": "--unroll", "loop_count": "--loop", "warm_up_count": "--warm-up",
    "initial_warm_up_count": "--initial-warm-up", "avg": "--avg", "median": "--median", "min": "--min",
    "max": "--max", "basic_mode": "--basic", "no_mem": "--no-mem", "cpu": "--cpu", "verbose": "--verbose",
    "alignment_offset": "--alignment-offset", "df": "--drain", "no_normalization": "--no-normalization",
    "remove_empty_events": "--remove-empty-events", "code": "--code", "code_init": "--code-init",
    "code_late_init": "--code-late-init", "code_one_time_init": "--code-one-time-init",
}  # fmt: skip
_NOT_HERE = {
    "msr_config": "leave it out: only a kernel reads these registers; --config counts events",
    "debug": "leave it out: faults are told with their instruction; a debugger needs a program that has the "
    "code",
}  # fmt: skip
_ANYWAY = {"fixed_counters", "range"}  # core cycles, nanoseconds, and the least and the most of the rounds
_ONE_VALUE = {"usr": "1", "os": "0"}  # user space is what is counted
_SHORT = {"n": "n_measurements", "f": "fixed_counters", "l": "loop_count"}


class NanoBenchCommand(click.Command):
    """A command that takes nanoBench's options, too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse with every option in our spelling."""
        own = {name for option in self.params for name in option.opts}
        words, rest = list[str](), list(args)
        while rest:
            words += _spelled(rest.pop(0), own, rest)
        return super().parse_args(ctx, words)


def _spelled(argument: str, own: set[str], behind: list[str]) -> list[str]:
    """Words for one argument: options as they are called here; takes its value from those behind it."""
    name, is_set, value = argument.partition("=")
    if (
        not name.startswith("-")
        or name in own
        or not name.lstrip("-")[:1].isalpha()
        or name in ("-h", "--help")
    ):
        return [argument]
    meant = _meant(name.lstrip("-").replace("-", "_"))
    if meant is None:
        return [argument]
    if meant in _ANYWAY:
        return []
    if meant in _ONE_VALUE:
        _check_value(name, value if is_set else "".join(behind[:1]), _ONE_VALUE[meant])
        del behind[: 0 if is_set else 1]
        return []
    if meant in _NOT_HERE:
        raise UsageError(f"{name} of nanoBench cannot be had here", _NOT_HERE[meant])
    return [_SAME[meant], *([value] if is_set else [])]


def _check_value(name: str, value: str, only: str) -> None:
    """Raise UsageError unless an option has the one value that it can have."""
    if value != only:
        raise UsageError(f"{name} of nanoBench can only be {only} here", "user space is what is counted")


def _meant(name: str) -> str | None:
    """nanoBench's option of a name or its beginning, None where there is none or several."""
    every = [*_SAME, *_NOT_HERE, *_ANYWAY, *_ONE_VALUE]
    if name in every or name in _SHORT:
        return _SHORT.get(name, name)
    found = [one for one in every if one.startswith(name)]
    return found[0] if len(found) == 1 else None
