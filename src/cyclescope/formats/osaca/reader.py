"""Reading OSACA's machine models (YAML) of x86-64 cores.

An entry is for every form that OSACA takes for it, of any width of general registers; its one latency is for
every pair that ends in a register.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from cyclescope.formats.exchange import Draft, FormatError, Imported, ImportRequest, cycles, rate
from cyclescope.formats.osaca.loads import add_composed, pressed
from cyclescope.formats.osaca.operands import ANY, described, names
from cyclescope.formats.yaml_text import document
from cyclescope.isa.dataflow import pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import load_table


class _Entry(msgspec.Struct):
    name: str | list[str]
    operands: list[dict[str, Any]] = []
    latency: float | None = None
    throughput: float | None = None
    port_pressure: list[tuple[float, str | list[str]]] | dict[Any, Any] | None = None
    uops: Any = 0  # null in our files where no port is told because none is known
    x_confidence: Literal["", "low", "medium", "high"] = ""  # ours; OSACA does not look at it


class _File(msgspec.Struct):
    isa: str
    ports: list[str | int]
    instruction_forms: list[dict[str, Any]]
    load_throughput: list[dict[str, Any]] = []
    store_throughput: list[dict[str, Any]] = []
    load_latency: dict[str, Any] = {}


def read(path: Path, request: ImportRequest) -> Imported:
    """The machine of a file. Raises FormatError."""
    try:
        file = msgspec.convert(document(path), _File)
    except msgspec.ValidationError as error:
        raise FormatError(f"{path} is no machine model of OSACA: {error}") from None
    if file.isa.lower() != "x86":
        raise FormatError(f"{path} is a model of {file.isa}", "OSACA models are read of x86 machines only")
    draft = Draft(load_table("x86-64"), request)
    for port in file.ports:
        draft.port(str(port))
    forms = _by_name(draft)
    for number, raw in enumerate(file.instruction_forms, 1):
        try:
            entry = msgspec.convert(raw, _Entry)
        except msgspec.ValidationError as error:
            draft.refuse(f"instruction form {number}", str(error))
            continue
        _add(draft, forms, number, entry)
    add_composed(draft, file.load_throughput, file.store_throughput, file.load_latency)
    return draft.imported()


def _by_name(draft: Draft) -> Mapping[str, list[tuple[InstructionForm, Sequence[Mapping[str, object]]]]]:
    found: dict[str, list[tuple[InstructionForm, Sequence[Mapping[str, object]]]]] = defaultdict(list)
    for form in draft.table:
        operands = described(form)
        if operands is None:
            continue
        for name in {*names(form), form.mnemonic.lower()}:
            found[name].append((form, operands))
    return found


def _add(
    draft: Draft, forms: Mapping[str, list[tuple[InstructionForm, Sequence[Mapping[str, object]]]]],
    number: int, entry: _Entry,
) -> None:  # fmt: skip
    for name in [entry.name] if isinstance(entry.name, str) else entry.name:
        known = forms.get(name.lower(), [])
        matching = [form for form, operands in known if _matches(operands, entry.operands)]
        if not matching:
            draft.refuse(f"instruction form {number}: {name}", "no form has this name and operands")
            continue
        try:
            values = dict(_values(draft, entry))
        except ValueError as error:
            draft.refuse(f"instruction form {number}: {name}", str(error))
            continue
        for form in matching:
            if not draft.has(form):  # as OSACA: the first entry that fits
                draft.add(form, **values)
                _add_latency(draft, form, entry)


def _matches(ours: Sequence[Mapping[str, object]], theirs: Sequence[Mapping[str, Any]]) -> bool:
    return len(ours) == len(theirs) and all(map(_same, ours, theirs))


def _same(ours: Mapping[str, object], theirs: Mapping[str, Any]) -> bool:
    if ours["class"] != theirs.get("class"):
        return False
    if ours["class"] == "register":
        return theirs.get("name") in (ours["name"], ANY)
    if ours["class"] == "memory":
        keys = ("base", "offset", "index", "scale")
        return all(ANY in (ours[key], theirs.get(key)) or ours[key] == theirs.get(key) for key in keys)
    return True


def _values(draft: Draft, entry: _Entry) -> Iterator[tuple[str, object]]:
    """Checked fields of a form's cost; a throughput of 0 says that nothing is known."""
    if entry.throughput:
        yield "throughput", rate(entry.throughput)
    if entry.latency is not None:
        cycles(entry.latency)
    if entry.x_confidence:
        yield "confidence", entry.x_confidence
    if isinstance(entry.port_pressure, list) and (entry.port_pressure or entry.uops is not None):
        yield "operations", tuple(pressed(draft, entry.port_pressure))


def _add_latency(draft: Draft, form: InstructionForm, entry: _Entry) -> None:
    if entry.latency is None:
        return
    for pair in pairs(form):
        if pair.target.part == "register" and pair.source.part in ("register", "address"):
            draft.latency(form, f"{pair.source.name}->{pair.target.name}", entry.latency, entry.latency)
