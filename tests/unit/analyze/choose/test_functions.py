"""Functions by the names that the source has, with a program that knows them and without."""

from __future__ import annotations

import subprocess

import pytest

from cyclescope.analyze.choose import functions
from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.errors import UsageError

SOURCE = {
    "_ZN3app3addEi": "app::add(int)", "_ZN3app6addendEi": "app::addend(int)", "_RNvC3app3run": "app::run",
}  # fmt: skip
LISTING = "\n".join(
    f"{at:016x} <{name}>:\n  {at:x}:\t31 c0 \txor %eax,%eax\n"
    f"  {at + 2:x}:\t48 ff c8 \tdec %rax\n  {at + 5:x}:\t75 fb \tjne {at + 2:x}\n"
    for at, name in zip(range(16, 80, 16), [*SOURCE, "main"], strict=True)
)


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Makes a program the one that knows names."""

    def put(script):
        path = tmp_path / "c++filt"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setattr(functions.shutil, "which", lambda name: str(path) if script else None)
        functions._written.cache_clear()

    yield put
    functions._written.cache_clear()


def substituting():
    return "exec sed " + " ".join(f"-e 's/^{name}$/{text}/'" for name, text in SOURCE.items())


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("app::add(int)", "app::add(int)"),
        ("_ZN3app3addEi", "app::add(int)"),
        ("addend", "app::addend(int)"),
        ("add", "app::add(int)"),  # a part of both names, and all of one
        ("app::run", "app::run"),
        ("main", "main"),
    ],
)
def test_functions_are_called_as_in_the_source(tool, asked, shown):
    tool(substituting())
    loop = read_block(LISTING, choice=Choice(function=asked))
    assert f"in {shown} " in loop.found and loop.name == f"in {shown}"
    whole = read_block(LISTING, choice=Choice(function=asked, whole=True))
    assert whole.found == f"all of function {shown}"


def test_a_function_is_preferred_to_what_has_its_name_inside(tool):
    """To what is made for a lambda of it, and to the part of it that seldom runs."""
    made = "void std::sort<int*, std::vector<int>::lam(int)::{lambda(int)#1}>(int*, int*)"
    names = ["std::vector<int>::lam(int)", made, "std::vector<int>::lam(int) [clone .cold]"]
    tool("exec sed " + " ".join(f"-e '{n + 1}s/.*/{text}/'" for n, text in enumerate(names)))
    assert f"in {names[0]} (" in read_block(LISTING, choice=Choice(function="lam")).found
    with pytest.raises(UsageError, match="several functions"):
        read_block(LISTING, choice=Choice(function="vector<int>"))


def test_what_several_are_called_like(tool):
    tool(substituting())
    with pytest.raises(UsageError, match="called like app") as told:
        read_block(LISTING, choice=Choice(function="app"))
    assert told.value.remedy == f"there is {', '.join(SOURCE.values())}"
    with pytest.raises(UsageError, match="has no function mian") as told:
        read_block(LISTING, choice=Choice(function="mian"))
    assert told.value.remedy == "there is main"


@pytest.mark.parametrize("script", ["", "exit 1", "echo one", "cat; exit 1", "exec sleep 60"])
def test_names_stay_where_no_program_knows_them(tool, script, monkeypatch):
    monkeypatch.setattr(functions, "_PATIENCE", 0.1)
    tool(script)
    for name in SOURCE:
        assert f"in {name} " in read_block(LISTING, choice=Choice(function=name)).found
    with pytest.raises(UsageError):
        read_block(LISTING, choice=Choice(function="app::add"))


def test_no_program_is_asked_about_plain_names(tool):
    tool("sed s/^/no/")
    assert functions.shown_names(["main", "zeta", "R1"]) == ["main", "zeta", "R1"]


def test_a_program_that_hangs_is_not_waited_for(tool, monkeypatch):
    """A million names take it two seconds, or thrice that; users wait no longer than 15."""
    tool("hangs")
    waited = []

    def run(*_, timeout, **__):
        waited.append(timeout)
        raise subprocess.TimeoutExpired("c++filt", timeout)

    monkeypatch.setattr(functions.subprocess, "run", run)
    assert functions.shown_names(list(SOURCE)) == list(SOURCE)
    assert 6 <= waited[0] <= 15
