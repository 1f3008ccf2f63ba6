"""`cyclescope bench`."""

from __future__ import annotations

from pathlib import Path

import click

from cyclescope.backend.link import Link
from cyclescope.cli.options import cpu_option, json_option, store_option, target_option
from cyclescope.errors import UsageError
from cyclescope.infer.api import only_store, open_backend
from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.bench import LEVELS, machine_code, snippet, time_kernel
from cyclescope.measure.store import X86_64, Store
from cyclescope.report.bench import bench_json, bench_text
from cyclescope.report.card import EMULATED


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


def _check_isa(code: str, machine: str) -> None:
    if code != machine:
        raise UsageError(f"the code is {code}, the machine executes {machine}", "choose another --target")


@click.command("bench")
@click.option("--asm", "text", help="Instructions in Intel syntax, separated by ';'.")
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
@click.option("--rounds", type=click.IntRange(1, 10), default=3, show_default=True)
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

    The code is repeated in a loop and timed at two lengths, whose difference is free of overhead.
    RSP is a stack, R13, R14, RSI and RDI point to memory, R15 counts; the other registers hold small
    numbers, vectors 1.0.
    """
    given = sum(value is not None for value in (text, code, rerun))
    if given != 1:
        what = "more than one thing to time" if given else "nothing to time"
        raise UsageError(what, "give one of --asm, --hex and --rerun")
    isa = X86_64
    if rerun is not None:
        label, kernel, isa = _stored(rerun, store)
    elif code is not None:
        label = code
        kernel = machine_code(_bytes(code), b"", 1, unroll, LEVELS[vectors or "avx"])
    else:
        label = text or ""
        kernel = snippet(label, init, unroll, vectors or "")
    backend, identity = open_backend(cpu, link)
    try:
        _check_isa(isa, backend.capabilities().isa)
        measurement = time_kernel(backend, kernel, rounds)
        frequency = backend.calibrate().frequency
    finally:
        backend.close()
    write = bench_json if as_json else bench_text
    click.echo(write(label, kernel, measurement, unroll if rerun is None else 1, identity.machine, frequency))
    if identity.emulated and not as_json:
        click.echo(EMULATED)
