"""`cyclescope bench`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from cyclescope.cli.asked import BenchRequest, bytes_of
from cyclescope.cli.options import cpu_option, json_option, store_option, target_option
from cyclescope.cli.spellings import NanoBenchCommand
from cyclescope.errors import MeasurementError, UsageError, unreadable
from cyclescope.measure.bench import ROUNDS, VECTOR_LEVELS, time_kernel, time_kernels
from cyclescope.measure.sampling import DISAGREE, DISTURBED, MOST_ROUNDS, PLACED, TWO_RATES, Measurement

if TYPE_CHECKING:
    from cyclescope.backend.link import Link
    from cyclescope.infer.beside.bursts import BurstPlan
    from cyclescope.infer.beside.pieces import Around, Snippet
    from cyclescope.kernel.kernel import Kernel
    from cyclescope.report.bench import Aggregate, Counted
    from cyclescope.report.comparison.snippets import TimedSnippet

_REMEDY: dict[str, str] = {
    PLACED: "time the code in the loop that it is meant for",
    TWO_RATES: "time the code in the loop that it is meant for",
    DISAGREE: "more --rounds, or `cyclescope host` for the noise here",
    DISTURBED: "`cyclescope host` says what disturbs; measure again later, or on another CPU with --cpu",
}
_MOST_MEASURED = 1 << 20
_AGGREGATES: dict[str, str] = {
    "min": "the least",
    "median": "the median",
    "max": "the most",
    "avg": "the mean without the lowest and the highest fifth",
}


_FILE = click.Path(path_type=Path, dir_okay=False)
_OPTIONS: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
    click.argument("files", nargs=-1, type=_FILE, metavar="[FILE]..."),
    click.option("--asm", "texts", multiple=True,
                 help="Instructions, separated by ';'; of x86-64 in Intel syntax. Several are compared."),
    click.option("--hex", "code", help="Machine code instead of --asm."),
    click.option("--code", "raw", type=_FILE, help="A file that is machine code alone instead of --asm."),
    click.option("--rerun", "--from", "rerun", type=click.IntRange(1, 2**63 - 1), metavar="ID",
                 help="A kernel of a store instead of --asm."),
    click.option("--function", default="", metavar="NAME",
                 help="This function of a file, without its return."),
    click.option("--init", default="", help="Instructions that run before; with --loop before each run."),
    click.option("--late-init", default="", help="More of them, behind --init; with --loop they are timed."),
    click.option("--one-time-init", default="", help="More of them, in front of --init; with --loop once."),
    *(click.option(f"--code-{name}", type=_FILE, help=f"A file of machine code instead of --{name}.")
      for name in ("init", "late-init", "one-time-init")),
    click.option("--unroll", type=click.IntRange(1, 10000),
                 help="Copies of the code per body; default 1, with --loop some 600 instructions."),
    click.option("--loop", type=click.IntRange(0, 0xFFFFFFFF),
                 help="As nanoBench times: copies run once (0), or so many times, between fences; what "
                 "twice as many take longer."),
    click.option("--basic", is_flag=True, help="The same, less what no copies take."),
    click.option("--warm-up", type=click.IntRange(0, 100000),
                 help="The same, with so many runs before; default 5."),
    click.option("--initial-warm-up", type=click.IntRange(0, 100000), help="The same, with more before all."),
    click.option("--alignment-offset", type=click.IntRange(0, 4096),
                 help="The same, so many bytes behind a multiple of 64."),
    click.option("--no-mem", is_flag=True, help="The same: readings take no memory of the code."),
    click.option("--drain", is_flag=True,
                 help="The same: where the copies begin, the front end has fetched none of them."),
    click.option("--no-normalization", is_flag=True, help="Cycles and events of all copies, not of one."),
    click.option("--sweep", metavar="N=1..64", help="Time the code with every number in place of {N}."),
    click.option("--vectors", type=click.Choice(list(VECTOR_LEVELS)),
                 help="Vector state to start with; default: as the code needs."),
    click.option("--rounds", type=click.IntRange(1, MOST_ROUNDS), default=ROUNDS, show_default=True,
                 help="Rounds at least, each at several lengths and places of the loop."),
    click.option("--n", "measurements", type=click.IntRange(1, _MOST_MEASURED), metavar="INTEGER",
                 help="The same in nanoBench's word; with --loop measurements in all."),
    *(click.option(f"--{name}", is_flag=True, help=f"Print {told} of the rounds, too.")
      for name, told in _AGGREGATES.items()),
    click.option("--config", type=_FILE, help="Events to count, as nanoBench lists them."),
    click.option("--remove-empty-events", is_flag=True, help="Leave out events that are 0.00."),
    click.option("--threads", type=click.IntRange(2, 1024),
                 help="Run it on so many CPUs at once; how much longer than alone."),
    click.option("--pin", "pins", metavar="LIST", help="Those CPUs: 0,2."),
    click.option("--verbose", is_flag=True, help="Print every round."),
    click.option("--csv", "form", flag_value="csv", help="Print CSV."),
    click.option("--markdown", "form", flag_value="markdown", help="Print a table in Markdown."),
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
    from cyclescope.formats.nanobench import read_events
    from cyclescope.infer.api import calibrated, counting, open_backend, thread_cpus
    from cyclescope.infer.beside.places import places_of
    from cyclescope.infer.beside.threads import time_threads
    from cyclescope.report.bench import Counted
    from cyclescope.report.comparison.snippets import threads_json, threads_text

    aggregates = tuple([kind for kind in _AGGREGATES if given.pop(kind)])
    asked = BenchRequest(**given, aggregates=aggregates)
    asked.check()
    if store is not None and asked.rerun is None:
        what = "--store has the kernel of --rerun, and keeps nothing"
        raise UsageError(what, "leave it out, or give --rerun")
    stored = _stored(asked.rerun, store) if asked.rerun is not None else None
    events = read_events(_text_of(asked.config), str(asked.config)) if asked.config else ()
    cpus = thread_cpus(asked.threads, asked.pins, link) if asked.threads or asked.pins else []
    with ExitStack() as opened:
        backend, identity = open_backend(cpus[0] if cpus else cpu, link)
        opened.enter_context(closing(backend))
        why_none = counting(backend, events) if events else ""
        snippets = _snippets(asked, stored, backend.capabilities().isa)
        calibrated(backend, identity)
        if cpus:
            others = [opened.enter_context(closing(open_backend(one, link)[0])) for one in cpus[1:]]
            kernel, where = _only(snippets).kernel, places_of(snippets, backend.capabilities().isa)
            readings = time_threads([backend, *others], kernel, asked.wanted_rounds, where)
            name, copies = snippets[0].name, snippets[0].copies
            text = threads_text(name, readings, copies)
            click.echo(threads_json(name, readings, copies, identity.machine) if as_json else text)
            return
        timed = _timed(backend, snippets, asked, identity.emulated)
        timed = [one.of_all_copies for one in timed] if asked.no_normalization else timed
        frequency = backend.calibrate().frequency
        names = backend.capabilities().counters[1:]
    counted = Counted(tuple(event[0] for event in events), names, why_none, asked.remove_empty_events)
    form = "json" if as_json else asked.form
    click.echo(_written(timed, asked, form, identity.machine, frequency, counted))
    if not identity.emulated:
        _check(timed)


def _timed(
    backend: Any, snippets: Sequence[Snippet], asked: BenchRequest, emulated: bool
) -> list[TimedSnippet]:
    from cyclescope.infer.beside.bursts import time_bursts
    from cyclescope.infer.beside.places import places_of
    from cyclescope.report.comparison.snippets import TimedSnippet

    bursts = [one.burst for one in snippets if one.burst is not None]
    where = places_of(snippets, backend.capabilities().isa)
    if bursts:
        found = time_bursts(backend, bursts, asked.rounds, where)
        return [
            TimedSnippet(one, two.measured, emulated, two) for one, two in zip(snippets, found, strict=True)
        ]
    rounds = asked.wanted_rounds
    if len(snippets) == 1:
        measured = [time_kernel(backend, snippets[0].kernel, rounds, where)]
    else:
        measured = time_kernels(backend, [one.kernel for one in snippets], rounds, where)
    return [TimedSnippet(*pair, emulated) for pair in zip(snippets, measured, strict=True)]


def _written(
    timed: Sequence[TimedSnippet], asked: BenchRequest, form: str | None, machine: str, frequency: float,
    counted: Counted,
) -> str:  # fmt: skip
    from cyclescope.report.bench import bench_json, bench_text
    from cyclescope.report.comparison.snippets import (
        comparison_csv,
        comparison_json,
        comparison_markdown,
        comparison_text,
        sweep_text,
    )

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
    extra = (one.emulated, _aggregates(asked.aggregates, one), counted, one.burst, one.whole)
    return bench_json(*common, *extra) if form == "json" else bench_text(*common, *extra, asked.verbose)


def _aggregates(kinds: Sequence[str], one: TimedSnippet) -> tuple[Aggregate, ...]:
    """nanoBench's ways to sum up what was measured."""
    from cyclescope.infer.beside.bursts import aggregate
    from cyclescope.report.bench import Aggregate

    copies, burst = one.snippet.copies, one.burst
    values = [value / copies for value in one.measured.rounds if not math.isnan(value)]
    if not values:
        return ()
    if burst is not None:
        many = burst.measurements
        return tuple(
            Aggregate(kind, burst.summed(kind) * (one.whole or 1), many, "measurements") for kind in kinds
        )
    return tuple(Aggregate(kind, aggregate(kind, values), len(values)) for kind in kinds)


def _check(timed: Sequence[TimedSnippet]) -> None:
    from cyclescope.measure.record import STABLE

    for one in timed:
        if one.measured.verdict != STABLE:
            _fail(one.snippet.name if len(timed) > 1 else "", one.measured)


def _fail(name: str, measured: Measurement) -> NoReturn:
    where = f" of {name}" if name else ""
    what = f"the reading{where} is {measured.verdict}: {measured.error}"
    raise MeasurementError(what, _REMEDY[measured.error])


# --- what is timed -----------------------------------------------------------------------------------


def _snippets(asked: BenchRequest, stored: tuple[str, Kernel, str] | None, isa: str) -> list[Snippet]:
    from cyclescope.infer.beside.bursts import has_marks

    found = _written_snippets(asked, stored, isa, asked.plan)
    if asked.plan is None and any(has_marks(one.kernel.code) for one in found):
        if asked.threads or asked.pins:
            raise UsageError("the code has marks that pause counting", "leave them out, or {threads}")
        return _written_snippets(asked, stored, isa, asked.copies)
    return found


def _written_snippets(
    asked: BenchRequest, stored: tuple[str, Kernel, str] | None, isa: str, plan: BurstPlan | None
) -> list[Snippet]:
    from cyclescope.infer.beside.pieces import code_snippet, file_snippet, sweep_of, text_snippets

    around = asked.around(plan)
    if stored is not None:
        return [_of_isa(stored, around, isa)]
    if asked.code is not None:
        return [code_snippet(asked.code, _bytes(asked.code), around, isa)]
    if asked.raw is not None:
        return [code_snippet(asked.raw.name, bytes_of(asked.raw), around, isa)]
    if asked.files:
        return [file_snippet(path, asked.function, around, isa) for path in asked.files]
    return text_snippets(asked.texts, around, sweep_of(asked.sweep) if asked.sweep else None, isa)


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
        raise unreadable(path, error) from error


def _stored(number: int, store: Path | None) -> tuple[str, Kernel, str]:
    from cyclescope.measure.database import only_store
    from cyclescope.measure.store import Store

    opened = Store(store or only_store(), readonly=True)
    try:
        return *opened.kernel(number), opened.isa
    finally:
        opened.close()


def _of_isa(stored: tuple[str, Kernel, str], around: Around, isa: str) -> Snippet:
    from cyclescope.infer.beside.pieces import kernel_snippet

    label, kernel, own = stored
    if own != isa:
        raise UsageError(f"the code is {own}, the machine executes {isa}", "choose another --target")
    return kernel_snippet(label, kernel, around)
