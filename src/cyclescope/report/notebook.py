"""Machines as objects for notebooks and scripts: forms, rows for tables, comparisons, sites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from cyclescope.errors import UsageError
from cyclescope.infer.timing.results import FormTiming, Latency
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import load_table
from cyclescope.model.comparison.agreement import Agreement, Tolerance, compare
from cyclescope.model.machine import FormCost, MachineModel
from cyclescope.model.select import select_forms
from cyclescope.report.card import card
from cyclescope.report.findings import finding_rows
from cyclescope.report.pages.rendering import safe
from cyclescope.report.site.agreement import agreement_part
from cyclescope.report.site.pages import site
from cyclescope.report.site.rows import latency_reach, ports_of
from cyclescope.report.site.writing import check_target, write_site
from cyclescope.report.words import escaped
from cyclescope.session.findings import FindingGroup, findings
from cyclescope.session.subjects import Subject, subject

_SHOWN = 20  # rows of a machine in a notebook
DIFFERENCES = 200  # that a site lists
Row = dict[str, object]


class Form:
    """One form of a machine: what it costs, and of a store the whole result (`timing`)."""

    def __init__(
        self, form: InstructionForm, cost: FormCost | None, timing: FormTiming | None, ports: str
    ) -> None:
        self.id, self.form, self.cost, self.timing, self.ports = form.id, form, cost, timing, ports

    def latencies(self) -> list[Row]:
        """A row per operand pair: cycles from `least` to `most`, None where there is no value, and why."""
        if self.timing is not None:
            return [_measured(one) for one in self.timing.latencies]
        return list(_modelled(self.cost)) if self.cost else []

    def __repr__(self) -> str:
        if self.timing is not None:
            return card(self.form, self.timing).rstrip()
        throughput = self.cost.throughput if self.cost else None
        return f"{self.id}: throughput {throughput}, ports {self.ports or None}"

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        cost = self.cost or FormCost()
        facts: list[Row] = [{"throughput": cost.throughput, "slots": cost.slots, "ports": self.ports,
                             "confidence": cost.confidence, "note": cost.note}]  # fmt: skip
        return f"<p><b>{_text(self.id)}</b></p>{_table(facts)}{_table(self.latencies())}"


class Machine:
    """A machine from whatever names one: its forms, and how it compares."""

    def __init__(self, found: Subject) -> None:
        self.subject = found
        self._table = load_table(found.model.isa)

    @property
    def name(self) -> str:
        """What it is."""
        return self.model.name

    @property
    def model(self) -> MachineModel:
        """The machine model."""
        return self.subject.model

    def __len__(self) -> int:
        return len(self.model.forms)

    def __iter__(self) -> Iterator[Form]:
        return (self._form(form) for form in self._table if form.id in self.model.forms)

    def __getitem__(self, pattern: str) -> Form:
        """The one form of an id, a name or an example. Raises UsageError where it is none or several."""
        found = self.select(pattern)
        if len(found) > 1:
            names = ", ".join(form.id for form in found[:5])
            raise UsageError(f"{pattern!r} is {len(found)} forms: {names}, ...", "take select(), or an id")
        return found[0]

    def select(self, *patterns: str) -> list[Form]:
        """The forms that match any of the patterns. Raises UsageError."""
        exact = self._table.get(patterns[0]) if len(patterns) == 1 else None
        if exact is not None and (exact.id in self.model.forms or exact.id in self.subject.timings):
            return [self._form(exact)]
        return [self._form(self._table[name]) for name in select_forms(self.model, patterns)]

    def _form(self, form: InstructionForm) -> Form:
        cost = self.model.forms.get(form.id)
        return Form(form, cost, self.subject.timings.get(form.id), ports_of(cost, self.model))

    def rows(self) -> list[Row]:
        """A row per form, for any dataframe library: `pandas.DataFrame(machine.rows())`."""
        return [_row(form) for form in self]

    def latencies(self) -> list[Row]:
        """A row per form and operand pair."""
        return [{"form": form.id, **row} for form in self for row in form.latencies()]

    def compare(self, other: Machine, tolerance: Tolerance = Tolerance()) -> Agreement:  # noqa: B008
        """How far this machine and another one agree."""
        return compare(self.model, other.model, tolerance)

    def findings(self, *others: Machine) -> list[FindingGroup]:
        """What one might not expect, by rules."""
        return findings(self.subject, [one.model for one in others])

    def site(self, output: Path | str, *others: Machine) -> Path:
        """Write a site of this machine, with others beside it, to a folder or a file that ends in .html."""
        path = Path(output)
        check_target(path)
        subjects = [self.subject, *(one.subject for one in others)]
        files = site(subjects, path.suffix.lower() == ".html", site_pages(subjects))
        write_site(files, path)
        return path

    def __repr__(self) -> str:
        return f"<{self.name}, {len(self)} forms, {self.model.provenance.kind}>"

    def _repr_html_(self) -> str:
        """The beginning of the table for notebooks."""
        rows = [_row(form) for _, form in zip(range(_SHOWN), self, strict=False)]
        return f"<p>{_text(repr(self))}</p>{_table(rows)}"


def load(what: str | Path) -> Machine:
    """A machine: a model's name, `native`, a store, a model's file, or another tool's file.

    Raises UsageError, FormatError, StoreError.
    """
    return Machine(subject(str(what)))


def site_pages(subjects: Sequence[Subject]) -> dict[str, object]:
    """What stands beside the table of a site."""
    first, *others = subjects
    models = [one.model for one in others]
    pages: dict[str, object] = {"findings": finding_rows(findings(first, models))}
    if models:
        found = [(other, compare(first.model, other)) for other in models]
        pages["comparison"] = safe(agreement_part(first, found, Tolerance(), DIFFERENCES))
    return pages


# --- rows --------------------------------------------------------------------------------------------


def _row(form: Form) -> Row:
    cost = form.cost or FormCost()
    reach: Sequence[float | None] = latency_reach(cost) or [None]
    return {
        "form": form.id, "mnemonic": form.form.mnemonic, "extension": "+".join(form.form.features),
        "llvm": form.form.llvm, "uops_info": form.form.uops_info, "latency_least": reach[0],
        "latency_most": reach[-1], "throughput": cost.throughput, "slots": cost.slots, "ports": form.ports,
        "confidence": cost.confidence, "note": cost.note,
    }  # fmt: skip


def _measured(one: Latency) -> Row:
    return {
        "source": one.source, "target": one.target, "least": one.min, "most": one.max, "kind": one.kind,
        "spread": one.spread, "confidence": one.confidence, "remark": one.note or one.reason,
    }  # fmt: skip


def _modelled(cost: FormCost) -> Iterator[Row]:
    ends: Mapping[str, tuple[float, float]] = {
        **cost.ranges,
        **{k: (v, v) for k, v in cost.latencies.items()},
    }
    for pair, (least, most) in ends.items():
        source, _, target = pair.partition("->")
        yield {"source": source, "target": target, "least": least, "most": most}


def _table(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{_text(name)}</th>" for name in rows[0])
    lines = ("".join(f"<td>{_text(value)}</td>" for value in row.values()) for row in rows)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _text(value: object) -> str:
    return "" if value is None else escape(escaped(str(value)))
