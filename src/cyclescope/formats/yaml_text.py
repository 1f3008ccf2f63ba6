"""YAML files, read with limits: PyYAML's safe loader, in C where it is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cyclescope.formats.exchange import FormatError, shortened
from cyclescope.formats.text import contents

DEEPEST = 40  # levels: tables have five, and the C loader dies of some ten thousand


def documents(path: Path) -> Iterator[object]:
    """All documents of a file. Raises FormatError."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = contents(path)
    try:
        _check(path, text, loader)
        yield from yaml.load_all(text, Loader=loader)
    except (yaml.YAMLError, ValueError) as error:
        raise FormatError(f"{path} is no YAML: {shortened(' '.join(str(error).split()))}") from None


def _check(path: Path, text: str, loader: Any) -> None:
    """Refuse what is nested deeply, and aliases, few of which describe endless data."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.AliasEvent):
            raise FormatError(f"{path}: line {event.start_mark.line + 1}: aliases (*name) are not read")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise FormatError(f"{path}: line {event.start_mark.line + 1}: nested over {DEEPEST} deep")


def document(path: Path) -> object:
    """The only document of a file. Raises FormatError."""
    found = list(documents(path))
    if len(found) != 1:
        raise FormatError(f"{path} has {len(found)} YAML documents", "one is expected")
    return found[0]
