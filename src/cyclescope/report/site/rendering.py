"""Templates of pages: what comes from outside is escaped, and has nothing in it that is not shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cyclescope.report.words import escaped

_TEMPLATES = Path(__file__).parent / "templates"


def rendered(template: str, **values: Any) -> str:
    """A template with these values."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, finalize=_finished
    )
    return environment.get_template(template).render(values)


def _finished(value: object) -> object:
    return escaped(value) if type(value) is str else value


def ours(*names: str) -> str:
    """Texts of our own files, as they are."""
    from markupsafe import Markup

    return Markup("".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in names))  # noqa: S704


def safe(text: str) -> str:
    """A text that has no markup that anybody else wrote."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704
