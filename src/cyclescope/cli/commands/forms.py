"""`cyclescope forms`."""

from __future__ import annotations

import gc

import click

from cyclescope.cli.options import json_option, patterns_argument
from cyclescope.host.uname import host_isa
from cyclescope.isa.registry import isa_names


@click.command("forms")
@patterns_argument
@click.option("--isa", type=click.Choice(isa_names()), default=host_isa, show_default="this machine's")
@json_option
def command(patterns: tuple[str, ...], isa: str, as_json: bool) -> None:
    """List instruction forms, with their operands and names in other tools.

    A PATTERN is a mnemonic (imul), a form id ("IMUL (R64, R64)"), a name LLVM or uops.info gives the
    form (IMUL64rr), a glob over these ("VADD*"), a feature (isa:AVX2) or an assembly example
    ("imul rax, rbx"; with --isa aarch64, "ldr x1, [x2]" or "cmp x1, x2"): aliases find what they stand for.

    A vector instruction of RISC-V is a form under each configuration, such as "VADD_VV@e32,m1"; "VADD_VV@*"
    lists them.
    """
    from cyclescope.analyze.read.example import assembled_forms
    from cyclescope.isa.find.pattern import select
    from cyclescope.isa.table import load_table
    from cyclescope.report.forms import forms_json, forms_text

    gc.disable()  # a short life, and tables of many objects
    table = load_table(isa)
    chosen = select(table, patterns, False, assembled_forms)
    click.echo(forms_json(table, chosen) if as_json else forms_text(chosen))
