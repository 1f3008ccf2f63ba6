"""Templates of pages: what comes from outside is escaped, and has nothing in it that is not shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cyclescope.report.words import escaped

_SKELETON = Path(__file__).parent / "templates"


def rendered(templates: Path, name: str, **values: Any) -> str:
    """A template of a folder with these values; it fills the blocks of `skeleton.html`."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([templates, _SKELETON]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finished,
    )
    return environment.get_template(name).render(values)


def _finished(value: object) -> object:
    return escaped(value) if type(value) is str else value


def ours(path: Path) -> str:
    """The text of one of our own files, as it is."""
    from markupsafe import Markup

    return Markup(path.read_text(encoding="utf-8"))  # noqa: S704


def safe(text: str) -> str:
    """A text that has no markup that anybody else wrote."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704
