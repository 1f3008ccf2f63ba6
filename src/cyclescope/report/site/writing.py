"""Putting a site's files where they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cyclescope.errors import UsageError
from cyclescope.host.files import replaceable, write_whole
from cyclescope.report.site.pages import INDEX, PARTS


def check_target(output: Path, index: str = INDEX) -> None:
    """Raise UsageError where a site, or what else has such an `index`, would go over something else."""
    if output.suffix.lower() == ".html":
        if output.is_dir():
            raise UsageError(f"{output} is a folder", "name a file, or a folder without .html")
        if not output.parent.is_dir():
            raise UsageError(f"{output.parent}: no such folder", "make it first")
        return
    if output.exists() and not output.is_dir():
        raise UsageError(f"{output} is no folder", "name one, or a file that ends in .html")
    if output.suffix[1:].isalpha() and not output.exists():
        raise UsageError(
            f"{output} is named as a file, and none but one that ends in .html is written",
            "name such a file, or a folder; one with such a name is made first",
        )
    if output.is_dir() and any(output.iterdir()) and not (output / index).is_file():
        raise UsageError(f"{output} has other files in it", "name an empty folder, or a new one")


def write_site(files: Mapping[str, str], output: Path) -> int:
    """Write a site and return its bytes; parts of a larger one that was there before are removed."""
    if output.suffix.lower() == ".html":
        return _write(output, files[INDEX])
    (output / PARTS).mkdir(parents=True, exist_ok=True)
    for old in (output / PARTS).glob("*.js"):
        if f"{PARTS}/{old.name}" not in files:
            old.unlink()
    return sum(_write(output / name, text) for name, text in files.items())


def _write(path: Path, text: str) -> int:
    """Write a file, where the site is or where a link leads."""
    path = replaceable(path)
    write_whole(path, text.encode())
    return path.stat().st_size
