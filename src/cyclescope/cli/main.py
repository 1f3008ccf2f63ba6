"""The `cyclescope` command: sub-commands are imported when they are used."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from cyclescope import __version__
from cyclescope.errors import CyclescopeError

COMMANDS = {
    "measure": "Measure latency and throughput of instruction forms on this machine.",
    "show": "Show what was measured about instruction forms.",
    "forms": "List instruction forms without measuring.",
    "bench": "Time a piece of assembly with the same engine.",
    "host": "Say what this machine is and how well it can be measured.",
    "verify-isa": "Check the instruction table against real execution.",
    "store": "Inspect and merge stores of measurements.",
}


class LazyGroup(click.Group):
    """A group whose commands are loaded by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"cyclescope.cli.{cmd_name.replace('-', '_')}")
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


def main(arguments: list[str] | None = None) -> Any:
    """Entry point: every error is one line on standard error and an exit code."""
    args = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in args
    try:
        code = cli.main(args=args, prog_name="cyclescope", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        if debug:
            raise
        _fail(error.format_message(), error.exit_code)
    except CyclescopeError as error:
        if debug:
            raise
        _fail(str(error), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted: what was measured is kept, the same command goes on from there", 130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:
        if debug:
            raise
        _fail(f"internal error: {type(error).__name__}: {error} (--debug shows where)", 1)


def _fail(message: str, code: int) -> None:
    text = " ".join(message.split())
    click.echo(f"error: {text}", err=True)
    sys.exit(code)
