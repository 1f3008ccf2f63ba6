"""The compiler's view: a text per class of a scheduling model, ready to be filed, and a list of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from shlex import quote

from cyclescope.model.machine import MachineModel
from cyclescope.report.words import borrowers, counted, escaped
from cyclescope.session.cost_classes import CostClass, Difference
from cyclescope.session.subjects import Subject

CLASSES_INDEX = "README.md"
_SHOWN = 60  # differences of a text, the farthest first


def class_files(subject: Subject, model: MachineModel, classes: Sequence[CostClass]) -> dict[str, str]:
    """Texts by the names of their files."""
    names = [f"{number:03}-{_name(one)}.md" for number, one in enumerate(classes, 1)]
    texts = ["\n".join(_text(subject, model, one)) for one in classes]
    return {
        CLASSES_INDEX: "\n".join(_index(subject, model, classes, names)),
        **dict(zip(names, texts, strict=True)),
    }


def _name(one: CostClass) -> str:
    first = one.differences[0]
    return re.sub(r"\W+", "-", first.opcode or first.form).strip("-")[:40]


def _index(
    subject: Subject, model: MachineModel, classes: Sequence[CostClass], names: Sequence[str]
) -> Iterator[str]:
    forms = sum(one.differing for one in classes)
    yield f"# LLVM's model {model.name} against {escaped(subject.model.name)}"
    yield ""
    yield from _origin(subject, model)
    yield ""
    yield (
        f"{counted(forms, 'form')} in {counted(len(classes), 'text')}: forms that the model gives one cost "
        "share a text. Only values of medium and high confidence that rest on no convention are compared."
    )
    yield ""
    yield "| text | forms that differ | of | the model's cost |"
    yield "|---|---|---|---|"
    for name, one in zip(names, classes, strict=True):
        yield f"| [{name}]({name}) | {one.differing} | {one.forms} | {_cell(one.cost)} |"
    yield ""


def _origin(subject: Subject, model: MachineModel) -> Iterator[str]:
    theirs, ours = model.provenance, subject.model.provenance
    yield f"Model: {escaped(theirs.source)} {escaped(theirs.version)}, {model.name}."
    yield from (f"{escaped(line)}." for line in borrowers((model,)))
    yield f"Measured: {escaped(ours.source)} {escaped(ours.version)}, {escaped(ours.date)}."


def _text(subject: Subject, model: MachineModel, one: CostClass) -> Iterator[str]:
    opcodes = list(dict.fromkeys(difference.opcode or difference.form for difference in one.differences))
    more = f" and {len(opcodes) - 3} more" if len(opcodes) > 3 else ""
    yield f"# {model.name}: the cost of {', '.join(opcodes[:3])}{more} differs from what a CPU takes"
    yield ""
    yield from _origin(subject, model)
    yield ""
    yield f"The model gives {counted(one.forms, 'form')} that were measured this cost: {one.cost}."
    yield f"Of these, {one.differing} take another time:"
    yield ""
    yield "| opcode | form | what | model | measured | confidence |"
    yield "|---|---|---|---|---|---|"
    ranked = sorted(one.differences, key=lambda difference: (-difference.ratio, difference.form))
    yield from map(_row, ranked[:_SHOWN])
    if len(ranked) > _SHOWN:
        yield f"\n{len(ranked) - _SHOWN} more values differ; `cyclescope compare --csv` has all."
    proofs = [difference for difference in ranked if difference.kernel is not None]
    if proofs:
        yield "\n## Kernels\n"
        yield "Cycles per repetition, in a loop on one core, in core cycles."
    for difference in proofs:
        yield from _proof(difference, str(subject.path), model)
    yield ""


def _row(one: Difference) -> str:
    cells = (
        one.opcode,
        _cell(one.form),
        one.what,
        _reach(one.modelled),
        _reach(one.measured),
        one.confidence,
    )
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return escaped(text).replace("|", "\\|").replace("<", "&lt;")


def _reach(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.4g}" if ends[0] == ends[1] else f"{ends[0]:.4g} to {ends[1]:.4g}"


def _proof(one: Difference, store: str, model: MachineModel) -> Iterator[str]:
    kernel = one.kernel
    if kernel is None:
        return
    record = kernel.record
    per = f" for {record.count} instances" if record.count > 1 else ""
    links = f", of which the links {' '.join(record.links)} are subtracted" if record.links else ""
    yield f"\n### {_cell(one.form)}, {one.what}\n"
    yield f"{record.cycles:.3f} cycles{per} (+-{record.spread:.3f}){links}:\n"
    yield "```asm"
    yield from map(escaped, kernel.lines)
    yield "```"
    yield f"\ncode `{kernel.code.hex()}`\n"
    yield f"Again: `cyclescope bench --rerun {record.id} --store {quote(store)}`, without the store "
    yield f"`cyclescope bench --hex {kernel.code.hex()}`; the model: "
    yield f"`llvm-mca -mcpu={model.name}` with the text above."
