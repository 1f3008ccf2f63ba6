"""What the command line of `bench` asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cyclescope.errors import SourceError, UsageError, unreadable
from cyclescope.measure.sampling import MOST_ROUNDS

if TYPE_CHECKING:
    from cyclescope.infer.beside.bursts import BurstPlan
    from cyclescope.infer.beside.pieces import Around


_MOST_BYTES = 0xFFFF  # of code that runs: a field of the runner's protocol


class BenchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    files: tuple[Path, ...]
    texts: tuple[str, ...]
    code: str | None
    raw: Path | None
    rerun: int | None
    function: str
    init: str
    late_init: str
    one_time_init: str
    code_init: Path | None
    code_late_init: Path | None
    code_one_time_init: Path | None
    unroll: int | None
    sweep: str | None
    vectors: str | None
    rounds: int
    measurements: int | None
    aggregates: tuple[str, ...]
    config: Path | None
    threads: int | None
    pins: str | None
    verbose: bool
    form: str | None
    loop: int | None
    warm_up: int | None
    initial_warm_up: int | None
    basic: bool
    no_mem: bool
    drain: bool
    alignment_offset: int | None
    no_normalization: bool
    remove_empty_events: bool

    def _check_told(self) -> None:
        """Raise UsageError for what would not be in what is printed."""
        of_one = {
            "--config": self.config is not None, "--verbose": self.verbose,
            **{f"--{kind}": True for kind in self.aggregates},
        }  # fmt: skip
        asked = ", ".join(option for option, is_so in of_one.items() if is_so)
        form, many = self.form or "", len(self.texts) + len(self.files) > 1 or bool(self.sweep)
        if self.threads or self.pins:
            unsaid = ", ".join(filter(None, (
                asked, form and f"--{form}", "--no-normalization" * self.no_normalization)))  # fmt: skip
            if unsaid:
                raise UsageError(
                    f"threads are told per copy, as text or --json: not {unsaid}", "leave that out"
                )
        elif asked and (form or many):
            where = f"--{form}" if form else "a comparison"
            raise UsageError(
                f"{where} does not tell {asked}", "leave that out, or time one piece without a table"
            )

    @property
    def plan(self) -> BurstPlan | None:
        """How copies are to run once, None where the code is to go on and on."""
        numbers = (self.loop, self.warm_up, self.initial_warm_up, self.alignment_offset)
        asked = self.basic or self.no_mem or self.drain or any(number is not None for number in numbers)
        return self.copies if asked else None

    @property
    def copies(self) -> BurstPlan:
        """How copies run once where the code has marks, or where that is asked for."""
        from cyclescope.infer.beside.bursts import BurstPlan

        usual = BurstPlan()
        return BurstPlan(
            self.unroll or 0, self.loop or 0, usual.warm_up if self.warm_up is None else self.warm_up,
            self.initial_warm_up or 0, self.basic, self.alignment_offset or 0,
            self.measurements or usual.measurements, self.drain,
        )  # fmt: skip

    def around(self, plan: BurstPlan | None) -> Around:
        """What comes before the code, and how often it is repeated."""
        from cyclescope.infer.beside.pieces import Around, Init

        before = Init(
            _either(self.one_time_init, self.code_one_time_init), _either(self.init, self.code_init),
            _either(self.late_init, self.code_late_init),
        )  # fmt: skip
        return Around(before, self.unroll or 1, self.vectors or "", plan)

    @property
    def wanted_rounds(self) -> int:
        """Rounds at least: nanoBench's number of measurements is one of ours, up to the most."""
        return self.rounds if self.measurements is None else min(self.measurements, MOST_ROUNDS)

    def check(self) -> None:
        """Raise UsageError where it contradicts itself."""
        from cyclescope.infer.beside.bursts import MOST_MEASUREMENTS

        kinds = sum(
            map(bool, (self.texts, self.code is not None, self.raw, self.rerun is not None, self.files))
        )
        if kinds != 1:
            what = "more than one thing to time" if kinds else "nothing to time"
            raise UsageError(what, "give one of --asm, --hex, --code, --rerun and files")
        for name in ("init", "late_init", "one_time_init"):
            if getattr(self, name) and getattr(self, f"code_{name}"):
                option = name.replace("_", "-")
                raise UsageError(f"--{option} and --code-{option} are the same", "leave one out")
        if self.sweep and not self.texts:
            raise UsageError("--sweep needs {N} in a text", "give it with --asm")
        if self.plan and (self.threads or self.pins):
            raise UsageError("threads go round a loop of their own", "leave out {threads} or {loop}")
        self._check_told()
        if (self.measurements or 0) > MOST_MEASUREMENTS and self.plan:
            raise UsageError(f"more than {MOST_MEASUREMENTS} measurements", "give a smaller {measurements}")
        if self.function and not self.files:
            raise UsageError("--function is of a file", "give an object file or a file of assembly text")


def bytes_of(path: Path) -> bytes:
    """A file of machine code, as it is. Raises UsageError or SourceError."""
    try:
        with path.open("rb") as stream:
            code = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise unreadable(path, error) from error
    if not 0 < len(code) <= _MOST_BYTES:
        raise SourceError(f"{path} has more than {_MOST_BYTES} bytes" if code else f"{path} is empty")
    return code


def _either(text: str, path: Path | None) -> str | bytes:
    return text if path is None else bytes_of(path)
