"""What an exported file says of itself: machine, conditions, versions, and a digest of its values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from cyclescope import __version__
from cyclescope.model.machine import MachineModel

LINES, XML = "#", "<!--"  # how a format begins a comment; "" where it has none
_DECLARATION = "<?xml"


def digest(model: MachineModel) -> str:
    """SHA-256 of a model's values: equal for equal costs, whatever file they are in."""
    parts = (model.isa, model.core, model.ports, model.forms, model.resources)
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def origin(model: MachineModel) -> Iterator[str]:
    """What is said, line by line."""
    found, borrowed = model.provenance, model.borrowed
    yield f"{model.name}, {model.isa}, {len(model.forms)} forms, written by cyclescope {__version__}"
    yield " ".join(
        filter(None, (found.kind, "from", found.source or "?", found.version, found.date, found.licence))
    )
    if borrowed:
        yield f"{', '.join(borrowed.forms or borrowed.what)} of {borrowed.core}, another core"
    yield from found.missing
    yield from found.notes
    yield f"SHA-256 of the values: {digest(model)}"


def with_origin(text: str, model: MachineModel, comment: str) -> str:
    """A file's text with what it says of itself at its beginning."""
    lines = list(map(_plain, origin(model)))
    if comment == LINES:
        return "".join(f"# {line}\n" for line in lines) + text
    if comment != XML:
        return text
    told = "".join(f"  {line}\n" for line in lines).replace("--", "- -")
    head, end, rest = text.partition("\n") if text.startswith(_DECLARATION) else ("", "", text)
    return f"{head}{end}<!--\n{told}-->\n{rest}"


def _plain(line: str) -> str:
    """Within one line, and nothing that is not shown."""
    return " ".join("".join(c if c.isprintable() else " " for c in line).split())
