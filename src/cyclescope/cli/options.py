"""Options and arguments that several commands share."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cyclescope.errors import UsageError
from cyclescope.model.limits import DATABASE, WORK

if TYPE_CHECKING:
    from cyclescope.backend.link import Link


_LONGEST = 366 * 24 * 3600.0  # seconds


def _patterns(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """An empty pattern is a mistake of a script, not a wish for every form."""
    if not all(pattern.strip() for pattern in given):
        raise UsageError("an empty pattern", 'give one such as imul, "VADD*" or isa:BMI2, or none at all')
    return given


def _link(_: click.Context, __: click.Parameter, target: str | None) -> Link:
    """The way to the runner."""
    from cyclescope.backend.remote import link_to  # slow to import

    return link_to(target)


patterns_argument = click.argument("patterns", nargs=-1, metavar="[PATTERN]...", callback=_patterns)
store_option = click.option(
    "--store", type=click.Path(path_type=Path, dir_okay=False), help="Store: the file with measurements."
)
cpu_option = click.option("--cpu", type=click.IntRange(min=0), help="CPU to measure on.")
target_option = click.option(
    "--target",
    "link",
    metavar="ssh://HOST|exec:COMMAND",
    callback=_link,
    help="Use another machine: ssh://[user@]host[:port], or a command that starts a runner.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class OutputFile(click.Path):
    """A file that a command writes, which is no store of measurements: what it has cannot be made again."""

    def __init__(self, dir_okay: bool = False) -> None:
        super().__init__(path_type=Path, dir_okay=dir_okay)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path. Fails for a store, and for what means standard output elsewhere."""
        if str(value) == "-":
            self.fail("'-' is no file here; name one", param, ctx)
        path = Path(str(super().convert(value, param, ctx)))
        with suppress(OSError):
            if path.is_file() and self._begins(path) == DATABASE:
                self.fail(f"{path} is a store of measurements and stays; name another file", param, ctx)
        return path

    def _begins(self, path: Path) -> bytes:
        with path.open("rb") as file:
            return file.read(len(DATABASE))


class WritingCommand(click.Command):
    """A command that writes files, none of which is one that it reads, nor another of them."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it. Raises UsageError where a file would be written over."""
        for param in self.params:
            path = ctx.params.get(param.name or "")
            if isinstance(param.type, OutputFile) and isinstance(path, Path):
                for other in self.params:
                    if other is not param and self._is_among(path, other, ctx):
                        what = f"{path} would be written over what {other.get_error_hint(ctx)} names"
                        raise UsageError(what, "name another file")
        return super().invoke(ctx)

    def _is_among(self, path: Path, param: click.Parameter, ctx: click.Context) -> bool:
        """Whether a file is one that a parameter names; a text names none where none is there."""
        value = ctx.params.get(param.name or "")
        several = value if isinstance(value, (list, tuple)) else [value]
        files = [Path(one) for one in several if isinstance(one, (str, Path)) and "\0" not in str(one)]
        there = [file for file in files if isinstance(param.type, click.Path) or file.is_file()]
        return path.resolve() in [file.resolve() for file in there]


class Amount(click.ParamType[float]):
    """A number that one can compute with."""

    name = "amount"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number of a text."""
        try:
            number = float(str(value))
        except ValueError:
            number = 0.0
        if not WORK.has(number):
            self.fail(f"{value!r} is no number from {WORK.least:g} to {WORK.most:g}", param, ctx)
        return number


class Duration(click.ParamType[float]):
    """Seconds, or a number with s, m or h: `90`, `10m`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds of a duration text."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", str(value).strip())
        number = float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]] if match else 0.0
        if not 0 < number <= _LONGEST:
            self.fail(f"{value!r} is no duration up to a year; write 90, 90s, 10m or 1h", param, ctx)
        return number


class FiniteRange(click.FloatRange):
    """A number in a range; comparisons alone would let `nan` pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number. Fails for what is none, or not in the range."""
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is no finite number", param, ctx)
        return found
