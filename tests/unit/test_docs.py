"""The documentation is true to the code: what it names exists, and numbers are the constants'."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest

import cyclescope
from cyclescope import errors
from cyclescope.cli.main import cli
from cyclescope.isa.registry import isa_names
from cyclescope.measure import sampling
from cyclescope.model.library import summaries
from cyclescope.probe.catalogue import PROBES
from cyclescope.session.compiled import shipped

ROOT = Path(__file__).parents[2]
PACKAGE = Path(cyclescope.__file__).parent
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "CONTRIBUTING.md", ROOT / "README.md"]
NAMED = re.compile(r"`((?:[\w.]+/)*[\w.]+/?\w+\.(?:py|c|h))`")  # a file; NAME stands for any
MADE_UP = {"a.py", "kernels.py"}  # of examples
FOLDER = re.compile(r"`((?:\w+/)+)(?:\w+\.\w+)?`|`((?:\w+/)+\w+)`")
TOPS = (PACKAGE, ROOT, PACKAGE / "native")


def is_there(name: str, folders: Iterable[str]) -> bool:
    """Whether a file is in the package or the repository, or in a folder that the page names."""
    if "NAME" in name and not name.startswith(("isa", "kernel", "native", "host")):
        return True
    names = {name.replace("NAME", isa) for isa in isa_names()}
    return any((top / folder / one).exists() for top in TOPS for folder in folders for one in names)


def lost(text: str) -> list[str]:
    """Files that a page names and nobody has."""
    folders = ["", *{name.replace("NAME", "aarch64") for found in FOLDER.findall(text) for name in found}]
    names = {name for name in NAMED.findall(text) if name not in MADE_UP}
    return sorted(name for name in names if not is_there(name, folders))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_that_a_page_names_exist(page):
    assert lost(page.read_text()) == []


def test_a_file_that_is_lost_is_seen():
    assert lost("`infer/nowhere.py` and `measure/sampling.py`, `kernel/NAME/dialect.py`") == [
        "infer/nowhere.py"
    ]
    assert lost("in `infer/ports/`: `facts.py`, `timed.py`") == ["facts.py"]


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()


def tables() -> Iterator[tuple[list[str], str]]:
    """Tables of modules or rooms in the architecture: the folders that one is of, and its text."""
    for title, text in re.findall(
        r"^\| (?:rooms|modules) of (.*?) \| \|\n(.*?)\n\n", ARCHITECTURE, re.M | re.S
    ):
        yield re.findall(r"`([\w/]+)`", title), text


TABLES = [*tables()]
NAMES = [" and ".join(folders) for folders, _ in TABLES]


@pytest.mark.parametrize(("folders", "table"), TABLES, ids=NAMES)
def test_modules_and_rooms_of_the_architecture_exist(folders, table):
    """Lower-case words in code of a table are modules of the folder, or folders in it."""
    there = {path.stem for folder in folders for path in (PACKAGE / folder).rglob("*")}
    named = {name.rpartition(".")[2] for name in re.findall(r"`(?!cyclescope)([a-z][\w.]+)/?`", table)}
    assert named - there == set()


@pytest.mark.parametrize(("folders", "table"), TABLES, ids=NAMES)
def test_rooms_that_there_are_stand_in_the_architecture(folders, table):
    rooms = {path.parent.name for folder in folders for path in (PACKAGE / folder).glob("*/__init__.py")}
    assert rooms - set(re.findall(r"`(\w+)/?`", table)) == set()


def test_all_tables_of_the_architecture_are_seen():
    assert len(TABLES) == 7


NOISE = " ".join((ROOT / "docs" / "method" / "noise.md").read_text().split())
WORDS = {4: "four", 10: "ten"}


@pytest.mark.parametrize(
    "told",
    [
        f"agree within {sampling.AGREE:.0%}".replace("%", " %"),
        f"(or {sampling.GRAIN:g} cycles)",
        f"{WORDS[sampling.MOST_ROUNDS]} rounds without that",
        f"after {WORDS[sampling.CROWDED_ROUNDS]} rounds instead of {WORDS[sampling.MOST_ROUNDS]}",
        f"of at most {sampling.CROWDED_TRIES} tries",
        f"about the last {sampling.REMEMBERED} samples",
    ],
)
def test_numbers_of_the_page_on_noise(told):
    assert told in NOISE


DEFINED = re.compile(r"#define (\w+) ([\d.]+)")
SOURCES = {
    name: float(value)
    for file in (
        "sampling.c",
        "clock.c",
        "canary.c",
        "clusters.c",
        "inside/cycle.c",
        "inside/entries.c",
        "inside/result.c",
        "inside/inside.h",
        "inside/program.c",
    )
    for name, value in DEFINED.findall((PACKAGE / "native" / file).read_text())
}


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("WAITED_PART", 0.5, "waits for a quiet moment at most half of its time"),
        ("NEW_READINGS", 3, "Three pairs of chains before the region and three behind it"),
        ("MOMENT", 0.0005, "with others of the last 0.5 ms"),
        ("READINGS", 24, "24 at most"),
        ("EMPTY_ENTRIES", 100, "is the median of 100 entries"),
        ("FIRST_CALIBRATIONS", 5, "of 5 calibrations before the first entry"),
        ("MOST_CALIBRATIONS", 50, "or of the first of 50 that finds one"),
        ("ERRORS", 2, "two standard errors of the median"),
    ],
)
def test_numbers_of_the_runner_are_those_of_the_page(name, value, told):
    assert SOURCES[name] == value
    assert told in NOISE


def told(page: Path) -> str:
    """The path of a page, for the names of tests."""
    return str(page.relative_to(ROOT))


def blocks(text: str, *kinds: str) -> list[str]:
    """Code blocks of a page, by what is behind their fence."""
    return [code for kind, code in re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S) if kind in kinds]


def commands(text: str) -> Iterator[list[str]]:
    """Words of every command line of cyclescope in a page: of shell blocks, and those in backticks."""
    lines = [
        line.removeprefix("$ ")
        for code in blocks(text, "sh", "console")
        for line in code.replace("\\\n", " ").splitlines()
        if line.startswith("$ ") or code not in blocks(text, "console")
    ]
    outside = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    inline = (" ".join(one.split()) for one in re.findall(r"`([^`]+)`", outside))
    for line in [*lines, *(one for one in inline if one.startswith("cyclescope "))]:
        found = re.search(r"(?:^|&& |[\w.]/)cyclescope (.*?)(?:$| \||  #| &&)", line.strip())
        if found and "COMMAND" not in found[1]:
            yield shlex.split(found[1], comments=True)


def command_of(words: list[str]) -> tuple[click.Command | None, list[str]]:
    """The command that words name, None where there is none of that name, and the words behind it."""
    found: click.Command | None = cli
    words = [word for word in words if word != "..."]
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        found, words = found.get_command(click.Context(found), words[0].rstrip(",")), words[1:]
    return found, words


def wrong_options(words: list[str]) -> list[str]:
    """What of a command line the command does not have."""
    command, rest = command_of(words)
    if command is None:
        return words[:1]
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}
    known |= {name for one in cli.params for name in one.opts}
    return [word for word in rest if re.match(r"--[a-z]", word) and word.partition("=")[0] not in known]


@pytest.mark.parametrize("page", PAGES, ids=told)
def test_commands_that_a_page_gives_exist(page):
    wrong = [(words, lost) for words in commands(page.read_text()) if (lost := wrong_options(words))]
    assert wrong == []


def test_commands_that_do_not_exist_are_seen():
    text = (
        "`cyclescope mesure imul` and\n```sh\ncyclescope show --evidense imul\ncyclescope store infos\n```\n"
    )
    assert [wrong_options(words) for words in commands(text)] == [["--evidense"], ["store"], ["mesure"]]


def every_option(command: click.Command) -> set[str]:
    """Options of a command and of all that are in it."""
    own = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    if not isinstance(command, click.Group):
        return own
    context = click.Context(command)
    parts = (command.get_command(context, name) for name in command.list_commands(context))
    return own.union(*(every_option(one) for one in parts if one))


OWN = every_option(cli) | {"--help"}
# Options of other programs, by page: what is not ours has to be said here.
OTHERS = {
    "exchange": {"--consider-flag-deps"},
    "legality": {"--meet"},  # the runner's
    "slurm": {"--unbuffered", "--exclusive"},
}
PROGRAM = re.compile(r"python -m ((?:benchmarks|tools|tests)(?:\.\w+)+)((?:[ \n]+[^`\n]*)?)")


def source_of(module: str) -> Path | None:
    """The file of a program that is run by its module's name."""
    path = ROOT.joinpath(*module.split("."))
    files = path.with_suffix(".py"), path / "__main__.py"
    return next((file for file in files if file.is_file()), None)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "benchmarks" / "README.md"], ids=told)
def test_programs_that_a_page_names_exist_with_their_options(page):
    for module, words in PROGRAM.findall(page.read_text()):
        source = source_of(module.replace("NAME", "x86_64"))
        assert source is not None, module
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", words.partition("#")[0]):
            assert f'"{option}"' in source.read_text(), (module, option)


@pytest.mark.parametrize("page", PAGES, ids=told)
def test_options_in_backticks_are_those_of_a_program(page):
    text = page.read_text()
    programs = [source for module, _ in PROGRAM.findall(text) if (source := source_of(module))]
    known = OWN | OTHERS.get(page.stem, set())
    known |= {one for source in programs for one in re.findall(r'"(--[a-z][\w-]*)"', source.read_text())}
    outside = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    named = {
        option
        for code in re.findall(r"`([^`\n]+)`", outside)
        if code.startswith(("-", "cyclescope ")) or " --" not in code
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", code)
    }
    assert named - known == set()


def test_benchmarks_are_all_in_their_list():
    listed = {module for module, _ in PROGRAM.findall((ROOT / "benchmarks" / "README.md").read_text())}
    there = (path.relative_to(ROOT).with_suffix("") for path in (ROOT / "benchmarks").rglob("[a-z]*.py"))
    names = {".".join(path.parts) for path in there}
    names = {name for name in names if not name.startswith("benchmarks.lib.")}  # for others
    runs = {name for name in names if "__main__" in (source_of(name) or ROOT).read_text()}
    assert len(runs) > 30, "all were found"
    assert runs - listed == set()


def test_every_probe_has_a_row_on_its_page():
    text = (ROOT / "docs" / "method" / "probes.md").read_text()
    rows = set(re.findall(r"^\| `([a-z0-9-]+)` \|", text, re.M))
    assert rows == set(PROBES)


def test_probes_that_pages_ask_exist():
    names = set(PROBES)
    for page in PAGES:
        for words in commands(page.read_text()):
            if words[:1] == ["probe"]:
                asked = {word for word in words[1:] if re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)+", word)}
                assert asked - names == set(), (page, words)


@pytest.mark.parametrize("page", PAGES, ids=told)
def test_examples_in_python_import_what_there_is(page):
    for code in blocks(page.read_text(), "python"):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cyclescope"):
                module = importlib.import_module(node.module)
                assert {name.name for name in node.names if not hasattr(module, name.name)} == set()
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "cyclescope"
            ):
                assert hasattr(cyclescope, node.attr), node.attr


def test_variables_of_the_environment_are_all_told():
    sources = "".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    read = set(re.findall(r'"(CYCLESCOPE_[A-Z]+|XDG_[A-Z_]+|NO_COLOR)"', sources))
    page = (ROOT / "docs" / "reference" / "environment.md").read_text()
    assert read == set(re.findall(r"^\| `(CYCLESCOPE_[A-Z]+|XDG_[A-Z_]+|NO_COLOR)` ", page, re.M))


def test_exit_codes_are_those_of_the_errors():
    codes = {
        kind.exit_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.CyclescopeError)
    }
    page = (ROOT / "docs" / "reference" / "exit-codes.md").read_text()
    assert codes == {int(code) for code in re.findall(r"^\| (\d) \|", page, re.M)} - {0}


def keys(schema: object) -> Iterator[str]:
    """Names of all properties in a JSON schema."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from keys(part)


@pytest.mark.parametrize("name", ["results", "analysis", "probes"])
def test_keys_of_every_schema_are_told(name):
    folder = ROOT / "docs" / "reference"
    schema = set(keys(json.loads((folder / f"{name}.schema.json").read_text())))
    page = (folder / "json.md").read_text()
    assert schema - set(re.findall(r"\w+", page)) == set()


def test_keys_of_the_json_are_words_of_the_code():
    """A key that a table of the page names and that no file of the package has is out of date."""
    page = (ROOT / "docs" / "reference" / "json.md").read_text()
    sources = (path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".c", ".h"))
    words = set(re.findall(r"\w+", "".join(path.read_text() for path in sources)))
    first = [row.split("|")[1] for row in page.splitlines() if row.startswith("| `")]
    named = {key for cell in first for key in re.findall(r"`([\w.]+)`", cell)}
    assert {key for key in named if not set(key.split(".")) <= words} == set()


def test_counts_of_what_ships_are_those_of_the_package():
    machines, loops = len([*summaries()]), len([*shipped().glob("*.c")])
    said = {
        int(number)
        for page in PAGES
        for number in re.findall(
            r"one of (\d+) that LLVM|models\s+for (\d+) machines|(\d+) models ship", page.read_text()
        )
        for number in number
        if number
    }
    assert said == {machines}
    assert {
        int(number)
        for page in PAGES
        for number in re.findall(r"(\d+) loops that come with", page.read_text())
    } == {loops}


def test_the_version_of_the_protocol_is_told():
    defined = re.search(r"#define PROTOCOL_VERSION (\d+)", (PACKAGE / "native" / "protocol.h").read_text())
    assert defined
    assert f"version {defined[1]}." in (ROOT / "docs" / "reference" / "runner.md").read_text()
