"""The `cyclescope` command: sub-commands are imported when they are used."""

from __future__ import annotations

import io
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from keyword import iskeyword
from traceback import walk_tb
from typing import NoReturn, TextIO

import click

from cyclescope import __version__
from cyclescope.errors import CyclescopeError, Stopped

COMMANDS = {
    "measure": "Measure latency and throughput of instruction forms, on this machine or another.",
    "show": "Show what was measured about instruction forms.",
    "forms": "List instruction forms without measuring.",
    "bench": "Time a piece of assembly with the same engine.",
    "probe": "Ask the core what it does: moves, idioms, fusion, memory.",
    "counters": "Core cycles and events inside other programs.",
    "host": "Say what a machine is and how well it can be measured.",
    "verify-isa": "Check the instruction table against real execution.",
    "analyze": "Say what bounds a loop: ports, front end, dependencies.",
    "predict": "Predict all blocks of a file, a million of them or more.",
    "validate": "Compare predictions with what blocks and loops take on this machine.",
    "insert-markers": "Mark a loop of an assembly text for analysis.",
    "machines": "Show and check machine models.",
    "export": "Write a machine in another tool's format.",
    "import": "Make a machine model of another tool's file.",
    "compare": "Say how far machines from two or more sources agree.",
    "report": "Make a site of a machine: a table of all forms, a card of each.",
    "store": "Inspect, merge and verify stores of measurements.",
    "runner": "Build the program that runs kernels, for other machines.",
}

EXCHANGE = ("export", "import", "compare", "report")  # whose modules are in the room of that name

_HELP: tuple[type[click.UsageError], ...] = tuple(
    filter(None, [getattr(click.exceptions, "NoArgsIsHelpError", None)])  # new in click 8.2
)


_LONGEST = 4000  # characters of a message
_WORD = 400  # characters of a word, which is a path or nonsense
_ENDS = 100  # characters that are shown of the beginning and the end of a longer one


class LazyGroup(click.Group):
    """A group whose commands are loaded by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_") + "_" * iskeyword(cmd_name)
        room = "exchange" if cmd_name in EXCHANGE else "commands"
        module = import_module(f"cyclescope.cli.{room}.{name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the command that was meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, n=1)
            if not close:
                raise
            hint = f"no such command {args[0]!r}, did you mean {close[0]!r}?"
            raise click.UsageError(hint, ctx) from error


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cyclescope")
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """What the instructions of this CPU cost, measured in user space.

    Exit codes: 0 ok, 1 failure, 2 wrong usage, 3 unsupported instruction, 4 nothing can run kernels.
    """
    ctx.obj = {"debug": debug}


def main(arguments: list[str] | None = None) -> NoReturn:
    """Entry point: every error is one line on standard error and an exit code."""
    run(cli, "cyclescope", sys.argv[1:] if arguments is None else arguments)


def run(command: click.Command, name: str, args: list[str]) -> NoReturn:
    """Run a command of this name and end the program."""
    received = _stop_in_order()
    _write_to_the_end()
    try:
        code = command.main(args=args, prog_name=name, standalone_mode=False)
    except (Exception, Stopped) as error:
        if isinstance(error, _HELP):  # a group alone: its help, as it is
            click.echo(error.format_message(), err=True)
            sys.exit(error.exit_code)
        if "--debug" in args:
            raise
        _fail(*(_interrupted(error, received[0]) if received else _told(error)))
    sys.exit(code if isinstance(code, int) else 0)


def _stop_in_order() -> list[int]:
    """Let signals end the program by way of its `finally` clauses; leave alone what nohup ignores.

    Returns the list of the signals that came: a library can make another error of the exception.
    """
    received: list[int] = []

    def stop(number: int, _: object) -> NoReturn:
        received.append(number)
        raise Stopped(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, nobody would learn how the runner ended
    return received


def _write_to_the_end() -> None:
    """Let nothing of what is printed get lost: Python without buffers (PYTHONUNBUFFERED) writes what a disk
    has room for, and says nothing of the rest.
    """
    out = sys.stdout
    if out is not None and isinstance(getattr(out, "buffer", None), io.RawIOBase):
        sys.stdout = open(out.fileno(), "w", encoding=out.encoding, errors=out.errors, closefd=False)  # noqa: SIM115


def _interrupted(error: BaseException, number: int) -> tuple[str, int]:
    """What becomes of the work, which the error's notes say, and the exit code."""
    return ": ".join(["interrupted", *getattr(error, "__notes__", ())]), Stopped(number).exit_code


def _told(error: BaseException) -> tuple[str, int]:
    """An error in words, and its exit code."""
    if isinstance(error, click.ClickException):
        return error.format_message(), error.exit_code
    if isinstance(error, CyclescopeError):
        return error.told, error.exit_code
    if isinstance(error, BrokenPipeError):
        return "", 1
    if isinstance(error, OSError) and error.strerror:
        where = error.filename or ("standard output" if _of_output(error) else "")
        return ": ".join(filter(None, (where, error.strerror))), 1
    return f"internal error: {type(error).__name__}: {error} (--debug shows where)", 1


def _of_output(error: OSError) -> bool:
    """Whether it came from writing: all that commands print goes through `click.echo`."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    return frame.f_code is click.echo.__code__


def _fail(message: str, code: int) -> NoReturn:
    if message:
        with suppress(OSError):  # nowhere to say it, but the exit code still tells
            click.echo(f"error: {_line(message)}", err=True)
    for stream in filter(None, (sys.stdout, sys.stderr)):
        _give_up(stream)
    sys.exit(code)


def _line(message: str) -> str:
    """A message in one line, without what would control a terminal, and not longer than one can read."""
    words = (w if len(w) <= _WORD else f"{w[:_ENDS]}...{w[-_ENDS:]}" for w in message.split())
    text = " ".join(words)
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def _give_up(stream: TextIO) -> None:
    """Leave nothing to write when Python ends, where that would fail and change the exit code."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
