"""The plan of the source: no folder that nobody can take in, no module that repeats the folder's name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import cyclescope

PACKAGE = Path(cyclescope.__file__).parent
MOST = 15  # modules in a folder, `__init__` not counted


def rooms() -> Iterator[tuple[Path, list[str]]]:
    """Every folder of modules with their names."""
    for init in sorted(PACKAGE.rglob("__init__.py")):
        folder = init.parent
        yield folder, sorted(path.stem for path in folder.glob("*.py") if path != init)


def repeats(folder: str, module: str) -> bool:
    """Whether a module's name says again what its folder's says, in singular or plural, and then more."""
    words = {word.rstrip("s") for word in folder.split("_")}
    return len(words) == 1 and words < {word.rstrip("s") for word in module.split("_")}


def test_folders_are_small_enough_to_be_taken_in():
    sizes = {str(folder.relative_to(PACKAGE)): len(modules) for folder, modules in rooms()}
    assert len(sizes) > 20, "all folders were found"
    assert {folder: size for folder, size in sizes.items() if size > MOST} == {}


def test_modules_do_not_repeat_the_name_of_their_folder():
    found = [
        f"{folder.name}/{module}"
        for folder, modules in rooms()
        for module in modules
        if repeats(folder.name, module)
    ]
    assert found == []


def test_every_folder_says_what_it_is_for():
    assert [
        str(folder) for folder, _ in rooms() if not (folder / "__init__.py").read_text().startswith('"""')
    ] == []


def test_what_repeats():
    assert repeats("ports", "port_usage")
    assert repeats("kernel", "kernel_state")
    assert not repeats("ports", "usage")
    assert not repeats("kernel", "kernel"), "what the folder is about"
    assert not repeats("fixed_width", "fixed")
