"""The files of a site: everything in one, or the cards in files beside the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from cyclescope import __version__
from cyclescope.infer.progress import Progress, tell
from cyclescope.infer.timing.results import FormTiming
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import load_table
from cyclescope.measure.kernels import ShownKernel, shown_kernels
from cyclescope.measure.store import Store
from cyclescope.report.card import documented
from cyclescope.report.pages.rendering import ours, rendered, safe
from cyclescope.report.site.core import BAR_WIDTH, cores
from cyclescope.report.site.experiments import Experiments
from cyclescope.report.site.packing import FORMS, Words, packed
from cyclescope.report.site.rows import CONFIDENCES, columns, cost_of
from cyclescope.report.site.sources import facts_of
from cyclescope.report.words import printable
from cyclescope.session.subjects import Subject

INDEX, PARTS = "index.html", "parts"
TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("elements", "parts", "listing", "card", "trials", "page")  # in the order in which they are run
STAGE = "cards"  # of progress
_FIRST = 8  # findings of a group that are seen at once
_NO_CORE = "unknown"  # the last word of machines whose core has no name
_COLUMNS = ("latency", "throughput", "slots", "ports")


def site(
    subjects: Sequence[Subject], single: bool, pages: Mapping[str, object] | None = None
) -> dict[str, str]:
    """Texts of the files by their names: `index.html` alone, or with `parts/`.

    The first subject is the one that is shown, the others stand beside it. `pages` are those that the
    template has beside the table: `findings`, `comparison`.
    """
    forms = _forms(subjects)
    parts = dict(_parts(subjects, forms))
    head = _head(subjects, parts["rows"])
    inside = parts if single else {"rows": parts["rows"]}
    files = {INDEX: _page(subjects, head, {name: packed(data) for name, data in inside.items()}, pages or {})}
    for name, data in parts.items():
        if name not in inside:
            files[f"{PARTS}/{name}.js"] = f'cyclescopePart("{name}", "{packed(data)}");\n'
    return files


def _forms(subjects: Sequence[Subject]) -> list[InstructionForm]:
    """What any of the machines knows, in the order of the table, forms with a configuration behind theirs."""
    table = load_table(subjects[0].model.isa)
    known = {name for one in subjects for name in (*one.model.forms, *one.timings)}
    plain = [form for form in table if form.id in known]
    more = sorted(name for name in known if "@" in name)
    return plain + [form for name in more if (form := table.get(name)) is not None]


def _parts(
    subjects: Sequence[Subject], forms: Sequence[InstructionForm]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is packed: the rows, the cards in parts, and last the instructions that all cards share."""
    yield "rows", columns(forms, [one.model for one in subjects])
    cards = _Cards(subjects)
    for start in range(0, len(forms), FORMS):
        tell(Progress(STAGE, start, len(forms)))
        yield str(start // FORMS), cards.part([form.id for form in forms[start : start + FORMS]])
    yield "lines", cards.experiments.lines()  # type: ignore[misc]
    tell(Progress(STAGE, len(forms), len(forms)))


class _Cards:
    """Writes what cards are made of."""

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self._first = subjects[0]
        self._models = [one.model for one in subjects]
        self.experiments = Experiments(self._first.model.isa)

    def part(self, names: Sequence[str]) -> dict[str, Any]:
        """The cards of some forms, with the texts and the kernels that they share."""
        words, shapes = Words(), Words()
        kernels = self._kernels(names)
        cards = [self._card(name, kernels.get(name, ()), words, shapes) for name in names]
        return {"forms": cards, "words": words.texts, "shapes": shapes.texts}

    def _kernels(self, names: Sequence[str]) -> dict[str, list[ShownKernel]]:
        if self._first.path is None:
            return {}
        with closing(Store(self._first.path, readonly=True)) as store:
            return dict(shown_kernels(store, names))

    def _card(
        self, name: str, kernels: Sequence[ShownKernel], words: Words, shapes: Words
    ) -> dict[str, object]:
        timing = self._first.timings.get(name)
        costs = [model.forms.get(name) for model in self._models]
        said = [
            cost_of(cost, model) if cost is not None and (n or timing is None) else None
            for n, (cost, model) in enumerate(zip(costs, self._models, strict=True))
        ]
        card: dict[str, object] = {"costs": said} if any(said) else {}
        if timing is not None:
            card["timing"] = _without_nothing(_result(timing))
        if kernels:
            card["experiments"] = self.experiments.of(kernels, words, shapes)
        return card


def _result(timing: FormTiming) -> dict[str, object]:
    """A timing without its names, which the table has."""
    return {name: value for name, value in documented(timing).items() if name not in ("id", "names")}


def _without_nothing(value: object) -> object:
    """Without what is empty: half of all fields are. A latency without a value keeps that."""
    if isinstance(value, dict):
        kept = ("min", "max", "value")
        return {
            k: _without_nothing(v) for k, v in value.items() if k in kept or v not in (None, "", [], {}, ())
        }
    if isinstance(value, list | tuple):
        return [_without_nothing(one) for one in value]
    return value


def _head(subjects: Sequence[Subject], rows: dict[str, Any]) -> dict[str, object]:
    machines = [
        {
            "name": printable(one.model.name),
            "short": short,
            "measured": bool(one.timings) or any(cost.confidence for cost in one.model.forms.values()),
            "has": [what for what in _COLUMNS if _has(found[what], rows["words"])],
        }
        for one, short, found in zip(subjects, _short_names(subjects), rows["machines"], strict=True)
    ]
    first = subjects[0]
    return {
        "title": _title(subjects), "machines": machines, "size": FORMS, "levels": CONFIDENCES,
        "marks": dict.fromkeys(CONFIDENCES, True), "store": str(first.path) if first.path else "",
        "version": __version__,
    }  # fmt: skip


def _short_names(subjects: Sequence[Subject]) -> list[str]:
    """Names for narrow columns: the last words, which are the cores, unless they tell less than the names."""
    names = [printable(one.model.name) for one in subjects]
    found = [name.split()[-1] if name.split() else name for name in names]
    return names if _NO_CORE in found or len(set(found)) < len(set(names)) else found


def _has(column: Sequence[object], words: Sequence[str]) -> bool:
    """Whether a machine tells anything in a column; ports are numbers of words."""
    return any(
        value is not None and not (isinstance(value, int) and words[value : value + 1] == [""])
        for value in column
    )


def _title(subjects: Sequence[Subject]) -> str:
    names = [printable(one.model.name) for one in subjects]
    return names[0] if len(names) == 1 else f"{names[0]} beside {', '.join(names[1:])}"


def _page(
    subjects: Sequence[Subject],
    head: Mapping[str, object],
    parts: Mapping[str, str],
    pages: Mapping[str, object],
) -> str:
    found = {"findings": None, "comparison": None} | dict(pages)
    return rendered(
        TEMPLATES,
        "site.html",
        title=head["title"],
        style=ours(TEMPLATES / "site.css"),
        script=_script(),
        head=safe(_in_script(head)),
        parts=[(name, safe(text)) for name, text in parts.items()],
        machines=[facts_of(one) for one in subjects],
        cores=cores(subjects),
        width=BAR_WIDTH,
        measured=bool(subjects[0].timings) or bool(head["machines"][0]["measured"]),  # type: ignore[index]
        several=len(subjects) > 1,
        store=head["store"],
        version=__version__,
        first=_FIRST,
        **found,
    )


def _script() -> str:
    """The page's code: functions of the table's data, and the rest in a scope of its own."""
    rest = "".join(ours(TEMPLATES / f"{name}.js") for name in SCRIPTS)
    return safe(f"{ours(TEMPLATES / 'table.js')}(() => {{\n{rest}}})();\n")


def _in_script(data: object) -> str:
    """JSON that no text in it can end the element it is in with."""
    return msgspec.json.encode(data).decode().replace("<", "\\u003c")
