"""`cyclescope compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cyclescope.cli.options import FiniteRange, OutputFile, WritingCommand, json_option
from cyclescope.cli.writing import write_file
from cyclescope.errors import UsageError
from cyclescope.model.comparison.agreement import CYCLES_APART, RELATIVE, Tolerance, compare
from cyclescope.session.elsewhere.backends import SAMPLE, SPELLED, is_backend, open_model

if TYPE_CHECKING:
    from cyclescope.formats.exchange import Imported
    from cyclescope.model.machine import MachineModel


@click.command("compare", cls=WritingCommand)
@click.argument("names", nargs=-1, required=True, metavar="A B [C]...")
@click.option(
    "--form", "patterns", multiple=True, metavar="PATTERN", help="Only forms that match (repeatable)."
)
@click.option("--tolerance", type=FiniteRange(0, 1), default=RELATIVE, show_default=True,
              help="Throughputs are equal if they differ by no more than this share.")  # fmt: skip
@click.option("--cycles", type=FiniteRange(0, 100), default=CYCLES_APART, show_default=True,
              help="Latencies are equal if they differ by no more than this.")  # fmt: skip
@click.option("--differences", type=click.IntRange(0), default=20, show_default=True,
              help="Number of differences to list.")  # fmt: skip
@click.option("--csv", "as_csv", is_flag=True, help="Print every comparison as CSV.")
@click.option("--html", "page", type=OutputFile(), metavar="FILE",
              help="Write a page with tables and plots.")  # fmt: skip
@click.option("--report", "folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Write a text per cost of the second source, for developers of compilers.")  # fmt: skip
@click.option("--sample", type=click.IntRange(1), default=SAMPLE, show_default=True,
              help=f"Number of forms whose experiments run on {SPELLED}.")  # fmt: skip
@json_option
def command(
    names: tuple[str, ...], patterns: tuple[str, ...], tolerance: float, cycles: float, differences: int,
    as_csv: bool, page: Path | None, folder: Path | None, sample: int, as_json: bool,
) -> None:  # fmt: skip
    """Say how far machines from two or more sources agree, form by form, each with the first.

    A source is a machine's name (native, znver4, ...), a store, a model's file, or another tool's file that
    `import` reads (instructions.xml#ZEN3 is the machine ZEN3 of it). Forms are matched by the names that LLVM
    and uops.info give them.

    With a store and a backend, such as simulated:znver4 (--sample names all), experiments are compared: the
    kernels of some forms of the store, drawn at random, run there. Micro-operations and ports are compared of
    all forms whose ports have high or medium confidence.
    """
    from cyclescope.report.comparison.agreement import agreement_csv, agreement_json, agreement_text
    from cyclescope.report.exchange import left_out_text
    from cyclescope.report.progress import when_needed
    from cyclescope.session.sources import source
    from cyclescope.session.subjects import check_isa

    _check(
        names,
        {"--csv": as_csv, "--json": as_json, "--html": page is not None, "--report": folder is not None},
    )
    click.get_current_context().with_resource(when_needed())
    if any(map(is_backend, names)):
        click.echo(_experiments(names, patterns, sample, differences, as_json, page))
        return
    if folder is not None:
        click.echo(_report(names, patterns, folder))
        return
    if page is not None:
        click.echo(_page(names, patterns, Tolerance(tolerance, cycles), differences, page))
        return
    start = source(names[0])
    read = [start, *(source(name, isa=start.model.isa) for name in names[1:])]
    check_isa([one.model for one in read])
    models = [_chosen(found, name, patterns) for found, name in zip(read, names, strict=True)]
    first, *others = models
    found = [(other, compare(first, other, Tolerance(tolerance, cycles))) for other in others]
    if as_csv:
        click.echo(agreement_csv(first, found), nl=False)
    elif as_json:
        click.echo(agreement_json(first, found, differences))
    else:
        click.echo(agreement_text(first, found, differences))
    for name, imported in zip(names, read, strict=True):
        if imported.refused:
            click.echo(f"{name}: {left_out_text(imported.refused, 'refused')}", err=True, nl=False)


def _check(names: Sequence[str], ways: Mapping[str, bool]) -> None:
    """Raise UsageError for one source alone, and for ways of showing that do not go together."""
    from cyclescope.report.words import listed

    if len(names) < 2:
        raise UsageError("one source alone", "name another to compare it with")
    asked = [way for way, is_asked in ways.items() if is_asked]
    if len(asked) > 1:
        raise UsageError(f"{listed(asked)} at once", "choose one")
    if asked and any(map(is_backend, names)) and asked[0] not in ("--json", "--html"):
        raise UsageError("experiments are compared as text, JSON or a page", f"leave {asked[0]} out")


def _page(
    names: Sequence[str], patterns: tuple[str, ...], tolerance: Tolerance, differences: int, page: Path
) -> str:
    """Write how far machines agree as a page."""
    from cyclescope.report.site.agreement import agreement_page
    from cyclescope.report.words import counted
    from cyclescope.session.subjects import beside, narrowed

    first, *others = (narrowed(one, patterns) for one in beside(names))
    found = [(other.model, compare(first.model, other.model, tolerance)) for other in others]
    write_file(page, agreement_page(first, found, tolerance, differences))
    return f"{page}: {first.model.name} and {counted(len(others), 'other')}"


def _report(names: Sequence[str], patterns: tuple[str, ...], folder: Path) -> str:
    """Write where a model differs from a store, and say how much that is."""
    from cyclescope.report.comparison.classes import CLASSES_INDEX, class_files
    from cyclescope.report.site.writing import check_target
    from cyclescope.report.words import counted
    from cyclescope.session.cost_classes import differing_classes, with_kernels
    from cyclescope.session.subjects import beside, narrowed

    if len(names) != 2:
        raise UsageError("--report is of two sources", "name a store and a model, as in llvm:znver4")
    check_target(folder, CLASSES_INDEX)
    first, second = (narrowed(one, patterns) for one in beside(names))
    if not first.timings:
        raise UsageError(f"{names[0]} is no store", "only measurements have kernels and confidences to show")
    classes = [with_kernels(one, first) for one in differing_classes(first, second.model)]
    files = class_files(first, second.model, classes)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("[0-9][0-9][0-9]-*.md"):
        old.unlink()
    for name, text in files.items():
        write_file(folder / name, text)
    forms = counted(sum(one.differing for one in classes), "form")
    return f"{folder}: {forms} differ, {counted(len(classes), 'text')}; {CLASSES_INDEX} lists them"


def _experiments(
    names: Sequence[str], patterns: Sequence[str], sample: int, shown: int, as_json: bool, page: Path | None
) -> str:
    """What the kernels of a store take elsewhere, and what its forms are made of there."""
    from cyclescope.backend.simulated import SimulatedBackend
    from cyclescope.infer.host_model import stored_model
    from cyclescope.infer.machine_model import refuse_emulated
    from cyclescope.isa.find.pattern import select
    from cyclescope.isa.table import load_table
    from cyclescope.measure.store import Store
    from cyclescope.report.comparison.replay import replay_json, replay_text
    from cyclescope.report.comparison.usage import usage_text
    from cyclescope.report.site.elsewhere import experiments_page
    from cyclescope.report.words import borrowing
    from cyclescope.session.elsewhere.usage import compared_usage
    from cyclescope.session.replay import replayed
    from cyclescope.session.sources import is_store

    if len(names) != 2 or is_backend(names[0]) or not is_store(Path(names[0])):
        raise UsageError(f"experiments are compared of one store and {SPELLED}", "give these two")
    with closing(Store(Path(names[0]), readonly=True)) as store:
        refuse_emulated(store)
        forms = [form.id for form in select(load_table(store.isa), patterns)]
        with closing(open_model(names[1], store.isa)) as backend:
            found = replayed(store, backend, forms, sample)
            usages = compared_usage(stored_model(Path(names[0])), backend, forms)
            where = backend.capabilities().description
            if isinstance(backend, SimulatedBackend) and backend.machine.borrowed:
                where += f", {borrowing(backend.machine.borrowed)}"
    if page is not None:
        write_file(page, experiments_page(found, usages, names[0], where, shown))
        return f"{page}: {names[0]} and {where}"
    if as_json:
        return replay_json(found, names[0], where, usages)
    return f"{replay_text(found, names[0], where, shown)}\n\n{usage_text(usages, shown)}"


def _chosen(found: Imported, name: str, patterns: tuple[str, ...]) -> MachineModel:
    from cyclescope.model.select import select_forms

    model = found.model
    if patterns:
        model = msgspec.structs.replace(model, forms=select_forms(model, patterns))
    return msgspec.structs.replace(model, name=name.rpartition("/")[2])
