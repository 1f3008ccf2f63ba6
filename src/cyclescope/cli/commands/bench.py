"""`cyclescope bench`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from cyclescope.backend.link import Link
from cyclescope.cli.options import cpu_option, json_option, store_option, target_option
from cyclescope.errors import MeasurementError, UsageError
from cyclescope.infer.api import calibrated, only_store, open_backend
from cyclescope.infer.snippets import code_kernel, text_kernel
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.bench import LEVELS, ROUNDS, time_kernel
from cyclescope.measure.sampling import DISAGREE, DISTURBED, MOST_ROUNDS, PLACED, STABLE
from cyclescope.measure.store import Store
from cyclescope.report.bench import bench_json, bench_text

_REMEDY = {
    PLACED: "time the code in the loop that it is meant for",
    DISAGREE: "more --rounds, or `cyclescope host` for the noise here",
    DISTURBED: "`cyclescope host` says what disturbs; measure again later, or on another CPU with --cpu",
}


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text.replace("0x", " ").replace(",", " "))
    except ValueError as error:
        raise UsageError(f"{text!r} is no machine code in hexadecimal") from error


def _stored(number: int, store: Path | None) -> tuple[str, Kernel, str]:
    opened = Store(store or only_store(), readonly=True)
    try:
        return *opened.kernel(number), opened.isa
    finally:
        opened.close()


def _of_isa(stored: tuple[str, Kernel, str], isa: str) -> tuple[str, Kernel]:
    label, kernel, own = stored
    if own != isa:
        raise UsageError(f"the code is {own}, the machine executes {isa}", "choose another --target")
    return label, kernel


@click.command("bench")
@click.option("--asm", "text", help="Instructions, separated by ';'; of x86-64 in Intel syntax.")
@click.option("--hex", "code", help="Machine code instead of --asm.")
@click.option(
    "--rerun", type=click.IntRange(1, 2**63 - 1), metavar="ID", help="A kernel of a store instead of --asm."
)
@click.option("--init", default="", help="Instructions that run once before.")
@click.option("--unroll", type=click.IntRange(1, 10000), default=1, show_default=True,
              help="Copies of the code per body.")  # fmt: skip
@click.option(
    "--vectors", type=click.Choice(list(LEVELS)), help="Vector state to start with; default: as --asm needs."
)
@click.option("--rounds", type=click.IntRange(1, MOST_ROUNDS), default=ROUNDS, show_default=True,
              help="Rounds at least, each at several lengths and places of the loop.")  # fmt: skip
@target_option
@cpu_option
@store_option
@json_option
def command(
    text: str | None,
    code: str | None,
    rerun: int | None,
    init: str,
    unroll: int,
    vectors: str | None,
    rounds: int,
    link: Link,
    cpu: int | None,
    store: Path | None,
    as_json: bool,
) -> None:
    """Time a piece of assembly: core cycles per repetition.

    The code is repeated in a long loop; the difference of two numbers of trips is free of overhead. Of
    x86-64, RSP is a stack, R13, R14, RSI and RDI point to memory, R15 counts; of AArch64 SP, X20 and X21,
    X28; of RISC-V sp, s0 and s1, s11. The other registers hold small numbers, vectors 1.0. Where rounds
    do not agree, the exit code is 1.
    """
    given = sum(value is not None for value in (text, code, rerun))
    if given != 1:
        what = "more than one thing to time" if given else "nothing to time"
        raise UsageError(what, "give one of --asm, --hex and --rerun")
    stored = _stored(rerun, store) if rerun is not None else None
    backend, identity = open_backend(cpu, link)
    with closing(backend):
        isa = backend.capabilities().isa
        calibrated(backend, identity)
        if stored is not None:
            label, kernel = _of_isa(stored, isa)
        elif code is not None:
            label, kernel = code, code_kernel(_bytes(code), unroll, vectors or "", isa)
        else:
            label, kernel = text or "", text_kernel(text or "", init, unroll, vectors or "", isa)
        measurement = time_kernel(backend, kernel, rounds)
        frequency = backend.calibrate().frequency
    write = bench_json if as_json else bench_text
    copies = unroll if rerun is None else 1
    click.echo(write(label, kernel, measurement, copies, identity.machine, frequency, identity.emulated))
    if not identity.emulated and measurement.verdict != STABLE:
        raise MeasurementError(
            f"the reading is {measurement.verdict}: {measurement.error}", _REMEDY[measurement.error]
        )
