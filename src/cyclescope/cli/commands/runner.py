"""`cyclescope runner`."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from cyclescope.cli.options import OutputFile, WritingCommand
from cyclescope.host.uname import host_isa
from cyclescope.isa.registry import isa_names


@click.group("runner")
def command() -> None:
    """The program that runs kernels: build it for other machines.

    It is one static file that needs nothing where it runs. `--target ssh://HOST` builds and copies it itself;
    by hand it goes to emulators, containers and machines without ssh.
    """


@command.command("build", cls=WritingCommand)
@click.option("--isa", type=click.Choice(isa_names()), default=host_isa, show_default="this machine's")
@click.option("-o", "--output", required=True, type=OutputFile(), help="File to write.")
@click.option("--cc", "compiler", default="", metavar="COMMAND",
              help="Compiler with its options, such as 'zig cc -target riscv64-linux-musl'; default: the "
                   "first that can, of $CC, gcc, cross compilers, clang and zig.")  # fmt: skip
def build_(isa: str, output: Path, compiler: str) -> None:
    """Build a static runner from the sources that came with this program."""
    from cyclescope.backend.build import build

    made = build(isa, output, compiler)
    size = f"{made.path.stat().st_size:,}".replace(",", " ")
    place = " (at fixed addresses: this C library has no static-pie)" if made.fixed else ""
    click.echo(f"{made.path}: static runner for {isa}, {size} bytes{place}")
    click.echo(f"built in {made.folder} by: {shlex.join(made.command)}")


@command.command("path")
def path() -> None:
    """Print where the runner of this machine is."""
    from cyclescope.backend.link import runner_path

    click.echo(runner_path())
