"""`cyclescope bench`."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NoReturn

import click
import msgspec

from cyclescope.backend.link import Link
from cyclescope.cli.options import cpu_option, json_option, store_option, target_option
from cyclescope.cli.spellings import NanoBenchCommand
from cyclescope.errors import MeasurementError, SourceError, UsageError
from cyclescope.formats.nanobench import read_events
from cyclescope.infer.api import calibrated, counting, only_store, open_backend, thread_cpus
from cyclescope.infer.beside.pieces import (
    Around,
    Snippet,
    code_snippet,
    file_snippet,
    sweep_of,
    text_snippets,
)
from cyclescope.infer.beside.threads import time_threads
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.bench import LEVELS, ROUNDS, time_kernel, time_kernels
from cyclescope.measure.record import STABLE
from cyclescope.measure.sampling import DISAGREE, DISTURBED, MOST_ROUNDS, PLACED, Measurement
from cyclescope.measure.store import Store
from cyclescope.report.bench import Aggregate, Counted, bench_json, bench_text
from cyclescope.report.comparison.snippets import (
    TimedSnippet,
    comparison_csv,
    comparison_json,
    comparison_markdown,
    comparison_text,
    sweep_text,
    threads_json,
    threads_text,
)

_REMEDY: dict[str, str] = {
    PLACED: "time the code in the loop that it is meant for",
    DISAGREE: "more --rounds, or `cyclescope host` for the noise here",
    DISTURBED: "`cyclescope host` says what disturbs; measure again later, or on another CPU with --cpu",
}
_CHOSEN = {
    "loop": "--loop", "warm_up": "--warm-up", "initial_warm_up": "--initial-warm-up", "basic": "--basic",
    "no_mem": "--no-mem",
}  # fmt: skip
_PAUSE, _RESUME = (bytes.fromhex(f"043f81c2b113b5{last}") for last in ("f0", "e0"))  # nanoBench's markers
_MOST_MEASURED = 1 << 20


class BenchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    files: tuple[Path, ...]
    texts: tuple[str, ...]
    code: str | None
    rerun: int | None
    function: str
    init: str
    late_init: str
    one_time_init: str
    unroll: int
    sweep: str | None
    vectors: str | None
    rounds: int
    measurements: int | None
    aggregate: str | None
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

    @property
    def around(self) -> Around:
        """What comes before the code, and how often it is repeated."""
        before = "\n".join(filter(None, (self.one_time_init, self.init, self.late_init)))
        return Around(before, self.unroll, self.vectors or "")

    @property
    def wanted_rounds(self) -> int:
        """Rounds at least: nanoBench's number of measurements is one of ours, up to the most."""
        return self.rounds if self.measurements is None else min(self.measurements, MOST_ROUNDS)

    def check(self) -> None:
        """Raise UsageError where it contradicts itself."""
        kinds = sum(map(bool, (self.texts, self.code is not None, self.rerun is not None, self.files)))
        if kinds != 1:
            what = "more than one thing to time" if kinds else "nothing to time"
            raise UsageError(what, "give one of --asm, --hex, --rerun and files")
        if self.sweep and not self.texts:
            raise UsageError("--sweep needs {N} in a text", "give it with --asm")
        if self.function and not self.files:
            raise UsageError("--function is of a file", "give an object file or a file of assembly text")


_FILE = click.Path(path_type=Path, dir_okay=False)
_OPTIONS: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
    click.argument("files", nargs=-1, type=_FILE, metavar="[FILE]..."),
    click.option("--asm", "texts", multiple=True,
                 help="Instructions, separated by ';'; of x86-64 in Intel syntax. Several are compared."),
    click.option("--hex", "code", help="Machine code instead of --asm."),
    click.option("--rerun", "--from", "rerun", type=click.IntRange(1, 2**63 - 1), metavar="ID",
                 help="A kernel of a store instead of --asm."),
    click.option("--function", default="", metavar="NAME",
                 help="This function of a file, without its return."),
    click.option("--init", default="", help="Instructions that run once before."),
    click.option("--late-init", default="", help="More of them, behind --init."),
    click.option("--one-time-init", default="", help="More of them, in front of --init."),
    click.option("--unroll", type=click.IntRange(1, 10000), default=1, show_default=True,
                 help="Copies of the code per body."),
    click.option("--sweep", metavar="N=1..64", help="Time the code with every number in place of {N}."),
    click.option("--vectors", type=click.Choice(list(LEVELS)),
                 help="Vector state to start with; default: as the code needs."),
    click.option("--rounds", type=click.IntRange(1, MOST_ROUNDS), default=ROUNDS, show_default=True,
                 help="Rounds at least, each at several lengths and places of the loop."),
    click.option("--n", "measurements", type=click.IntRange(1, _MOST_MEASURED), metavar="INTEGER",
                 help="The same in nanoBench's word."),
    *(click.option(f"--{name}", "aggregate", flag_value=name, help=f"Print {told} of the rounds, too.")
      for name, told in (("min", "the least"), ("median", "the median"), ("max", "the most"),
                         ("avg", "the mean without the lowest and the highest fifth"))),
    click.option("--config", type=_FILE, help="Events to count, as nanoBench lists them."),
    click.option("--threads", type=click.IntRange(2, 1024),
                 help="Run it on so many CPUs at once; how much longer than alone."),
    click.option("--pin", "pins", metavar="LIST", help="Those CPUs: 0,2."),
    click.option("--verbose", is_flag=True, help="Print every round."),
    click.option("--csv", "form", flag_value="csv", help="Print CSV."),
    click.option("--markdown", "form", flag_value="markdown", help="Print a table in Markdown."),
    *(click.option(name, type=click.IntRange(0), hidden=True)
      for name in ("--loop", "--warm-up", "--initial-warm-up")),
    *(click.option(name, is_flag=True, hidden=True) for name in ("--basic", "--no-mem")),
]  # fmt: skip


def _with_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command("bench", cls=NanoBenchCommand)
@_with_options
@target_option
@cpu_option
@store_option
@json_option
def command(link: Link, cpu: int | None, store: Path | None, as_json: bool, **given: Any) -> None:
    """Time code: core cycles per repetition; of several pieces, beside each other.

    The code is repeated in a long loop; the difference of two numbers of trips is free of overhead. Of
    x86-64, RSP is a stack, R13, R14, RSI, RDI and RBP point to memory, R15 counts; of AArch64 SP, X20 and
    X21, X28; of RISC-V sp, s0 and s1, s11. The other registers hold small numbers, vectors 1.0. Where rounds
    do not agree, the exit code is 1. nanoBench's options are understood, with one dash or two.
    """
    asked = BenchRequest(**given)
    asked.check()
    stored = _stored(asked.rerun, store) if asked.rerun is not None else None
    events = read_events(_text_of(asked.config), str(asked.config)) if asked.config else ()
    for name in (_CHOSEN[key] for key in _CHOSEN if getattr(asked, key)):
        click.echo(f"note: {name}: the loop and its warm-up are chosen here; cycles are the same", err=True)
    cpus = thread_cpus(asked.threads, asked.pins, link) if asked.threads or asked.pins else []
    with ExitStack() as opened:
        backend, identity = open_backend(cpus[0] if cpus else cpu, link)
        opened.enter_context(closing(backend))
        why_none = counting(backend, events) if events else ""
        snippets = _snippets(asked, stored, backend.capabilities().isa)
        calibrated(backend, identity)
        if cpus:
            others = [opened.enter_context(closing(open_backend(one, link)[0])) for one in cpus[1:]]
            readings = time_threads([backend, *others], _only(snippets).kernel, asked.wanted_rounds)
            name, copies = snippets[0].name, snippets[0].copies
            text = threads_text(name, readings, copies)
            click.echo(threads_json(name, readings, copies, identity.machine) if as_json else text)
            return
        timed = _timed(backend, snippets, asked.wanted_rounds, identity.emulated)
        frequency = backend.calibrate().frequency
        names = backend.capabilities().counters[1:]
    counted = Counted(tuple(event[0] for event in events), names, why_none)
    form = "json" if as_json else asked.form
    click.echo(_written(timed, asked, form, identity.machine, frequency, counted))
    if not identity.emulated:
        _check(timed)


def _timed(backend: Any, snippets: Sequence[Snippet], rounds: int, emulated: bool) -> list[TimedSnippet]:
    if len(snippets) == 1:
        measured = [time_kernel(backend, snippets[0].kernel, rounds)]
    else:
        measured = time_kernels(backend, [one.kernel for one in snippets], rounds)
    return [TimedSnippet(*pair, emulated) for pair in zip(snippets, measured, strict=True)]


def _written(
    timed: Sequence[TimedSnippet], asked: BenchRequest, form: str | None, machine: str, frequency: float,
    counted: Counted,
) -> str:  # fmt: skip
    if form == "csv":
        return comparison_csv(timed)
    if form == "markdown":
        return comparison_markdown(timed)
    if len(timed) > 1 and form == "json":
        return comparison_json(timed, machine, frequency)
    if len(timed) > 1:
        return (sweep_text if asked.sweep else comparison_text)(timed, machine)
    one = timed[0]
    common = (one.snippet.name, one.snippet.kernel, one.measured, one.snippet.copies, machine, frequency)
    extra = (one.emulated, _aggregate(asked.aggregate, one.measured, one.snippet.copies), counted)
    return bench_json(*common, *extra) if form == "json" else bench_text(*common, *extra, asked.verbose)


def _aggregate(kind: str | None, measured: Measurement, copies: int) -> Aggregate | None:
    """nanoBench's ways to sum up: of its mean the lowest and the highest fifth are left out."""
    values = sorted(value / copies for value in measured.rounds if not math.isnan(value))
    if kind is None or not values:
        return None
    fifth = len(values) // 5
    ways = {"min": values[0], "max": values[-1], "median": values[len(values) // 2],
            "avg": statistics.mean(values[fifth : len(values) - fifth])}  # fmt: skip
    return Aggregate(kind, ways[kind], len(values))


def _check(timed: Sequence[TimedSnippet]) -> None:
    for one in timed:
        if one.measured.verdict != STABLE:
            _fail(one.snippet.name if len(timed) > 1 else "", one.measured)


def _fail(name: str, measured: Measurement) -> NoReturn:
    where = f" of {name}" if name else ""
    what = f"the reading{where} is {measured.verdict}: {measured.error}"
    raise MeasurementError(what, _REMEDY[measured.error])


# --- what is timed -----------------------------------------------------------------------------------


def _snippets(asked: BenchRequest, stored: tuple[str, Kernel, str] | None, isa: str) -> list[Snippet]:
    if stored is not None:
        found = [_of_isa(stored, isa)]
    elif asked.code is not None:
        found = [code_snippet(asked.code, _bytes(asked.code), asked.around, isa)]
    elif asked.files:
        found = [file_snippet(path, asked.function, asked.around, isa) for path in asked.files]
    else:
        sweep = sweep_of(asked.sweep) if asked.sweep else None
        found = text_snippets(asked.texts, asked.around, sweep, isa)
    if any(_PAUSE in one.kernel.code or _RESUME in one.kernel.code for one in found):
        raise UsageError("the code has marks that pause nanoBench's counters", "leave them out: cycles go on")
    return found


def _only(snippets: Sequence[Snippet]) -> Snippet:
    if len(snippets) > 1:
        raise UsageError("threads run one piece of code", "give one, or leave out --threads")
    return snippets[0]


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text.replace("0x", " ").replace(",", " "))
    except ValueError as error:
        raise UsageError(f"{text!r} is no machine code in hexadecimal") from error


def _text_of(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or 'no text'}"
        ) from error


def _stored(number: int, store: Path | None) -> tuple[str, Kernel, str]:
    opened = Store(store or only_store(), readonly=True)
    try:
        return *opened.kernel(number), opened.isa
    finally:
        opened.close()


def _of_isa(stored: tuple[str, Kernel, str], isa: str) -> Snippet:
    label, kernel, own = stored
    if own != isa:
        raise UsageError(f"the code is {own}, the machine executes {isa}", "choose another --target")
    return Snippet(label, kernel)
