"""The documentation against the code: fields, packages, and what is said in several places."""

from __future__ import annotations

import re
from pathlib import Path

import click
import msgspec
import pytest

import cyclescope
from cyclescope.analyze.predict.effects import EFFECTS
from cyclescope.cli.commands.measure import command as measure
from cyclescope.cli.main import cli
from cyclescope.infer.timing.results import FormTiming, Latency, Throughput
from cyclescope.kernel.stream import BASES
from cyclescope.measure import sampling
from cyclescope.model.machine import Core

ROOT = Path(__file__).parents[3]
PACKAGE = Path(cyclescope.__file__).parent
PACKAGES = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def read(name):
    return (ROOT / name).read_text()


@pytest.mark.parametrize("kind", [FormTiming, Throughput, Latency], ids=lambda kind: kind.__name__)
def test_every_field_of_the_json_is_explained(kind):
    text = read("docs/reference/json.md").partition("## `analyze --json`")[0]
    told = set(re.findall(r"`(\w+)`", text))
    assert {field.name for field in msgspec.structs.fields(kind)} - {
        "cause",
        "lacks",
        "ports_unfinished",
    } <= told  # their sentences are there


def test_every_effect_and_every_number_of_a_core_is_explained():
    [row] = re.findall(r"^\| `bounds` \| cycles by .*", read("docs/reference/json.md"), re.MULTILINE)
    assert {effect.name for effect in EFFECTS} <= set(re.findall(r"`(\w+)`", row))
    [row] = re.findall(r"^\| `core` \| .*", read("docs/reference/machines.md"), re.MULTILINE)
    assert {field.name for field in msgspec.structs.fields(Core)} <= set(re.findall(r"`(\w+)`", row))


@pytest.mark.parametrize("name", PACKAGES)
def test_every_package_is_in_the_architecture(name):
    assert f"| `{name}` |" in read("docs/architecture.md")


def test_the_layers_are_those_that_are_checked():
    order = re.search(
        r"imports only packages below it:\s+(.*?)\. import", read("CONTRIBUTING.md"), re.DOTALL
    )[1]
    told = [set(part.split(" | ")) for part in re.sub(r"[`\s]+", " ", order).strip().split(" < ")]
    layers = re.search(r"layers = \[(.*?)\]", read("pyproject.toml"), re.DOTALL)[1]
    checked = [set(part.split(" | ")) for part in re.findall(r'"([^"]+)"', layers)]
    assert [{name.strip() for name in part} for part in told] == [
        part for part in reversed(checked) if part != {"errors"}
    ]


def test_how_long_a_run_takes_is_said_once():
    said = "one to four minutes where nothing else runs, up to twelve beside neighbours that never rest"
    texts = (read("README.md"), read("docs/tutorial.md"), read("docs/method/noise.md"), measure.help)
    assert all(said in " ".join(text.split()) for text in texts)
    elsewhere = [text for text in texts if re.search("two to three minutes|61 to 83", text)]
    assert len(elsewhere) == 1, "numbers are on one page"


def test_rounds_are_as_documented():
    text = read("docs/method/noise.md")
    assert f"agree within {sampling.AGREE:.0%}".replace("%", " %") in text
    assert f"(or {sampling.GRAIN} cycles)" in text
    assert f"within {sampling.CHAIN_GRAIN} per instance" in text
    assert sampling.MOST_ROUNDS == 10
    assert "ten rounds without that" in text
    assert f"`{BASES} x" in read("docs/reference/results.md")


def test_no_page_says_that_only_one_instruction_set_is_measured():
    for name in ("README.md", "docs/index.md", "docs/tutorial.md"):
        text = " ".join(read(name).split())
        assert "RISC-V" in text, name
        assert "every x86-64 instruction form" not in text


# What was measured of a core: a number behind its name, in one sentence.
_OF_A_CORE = re.compile(
    r"(?:Zen \d|Golden Cove|EPYC)[^.|;)]{0,120}?\d+(?:\.\d+)? ?(?:%|cycles?\b|slots?\b|of \d)"
)
_PROGRAM = re.compile(r"`(?:python -m )?benchmarks[./]\w+|`cyclescope |`(?:validate|measure|probe|compare)\b")


def sections(name):
    """Sections of a page, by their headings of any level."""
    return re.split(r"^#+ ", read(name), flags=re.MULTILINE)


PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("name", PAGES)
def test_numbers_of_cores_have_the_program_that_prints_them_beside_them(name):
    lost = {
        found[0]
        for section in sections(name)
        for found in _OF_A_CORE.finditer(" ".join(section.split()))
        if not _PROGRAM.search(section)
    }
    assert lost == set()


ROOMS = "|".join(sorted(path.name for path in (ROOT / "src" / "cyclescope").iterdir() if path.is_dir()))
FILES = re.compile(rf"`((?:src|benchmarks|tests|tools|{ROOMS})/[\w./-]+\.(?:py|c|h|json|csv|tsv))`")
MODULES = re.compile(rf"`(?:cyclescope\.)?((?:{ROOMS})(?:\.[a-z_0-9]+)+)`")
ELSEWHERE_TOO = {"kernel.perf_event_paranoid", "measure.sbatch"}  # Linux has names that begin alike


def exists(name):
    """Whether a dotted name is a module, or something that one has."""
    parts = name.split(".")
    for known in range(len(parts), 0, -1):
        module = (ROOT / "src" / "cyclescope").joinpath(*parts[:known])
        if module.with_suffix(".py").exists():
            text = module.with_suffix(".py").read_text()
            return known == len(parts) or re.search(rf"\b{parts[known]}\b", text) is not None
        if module.is_dir():
            return known == len(parts)
    return False


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", *PAGES])
def test_files_and_modules_that_a_page_names_exist(name):
    text = read(name)
    roots = ROOT, ROOT / "src" / "cyclescope"
    files = {path for path in FILES.findall(text) if "NAME" not in path}
    assert {path for path in files if not any((root / path).exists() for root in roots)} == set()
    assert {one for one in set(MODULES.findall(text)) - ELSEWHERE_TOO if not exists(one)} == set()


def options(command, context, name=""):
    """Options of every command, by its name."""
    yield (
        name,
        {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts},
    )
    for part in command.list_commands(context) if isinstance(command, click.Group) else ():
        yield from options(command.get_command(context, part), context, f"{name} {part}".strip())


@pytest.mark.parametrize("name", PAGES)
def test_options_that_a_page_gives_to_a_command_exist(name):
    known = dict(options(cli, click.Context(cli)))
    lost = set()
    for line in re.findall(r"cyclescope ([a-z-]+ [^\n`|'#]*)", read(name)):
        words = line.split()
        command = next((" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in known), None)
        given = {word.rstrip(")").partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
        lost |= given - known[command] - known[""] - {"--help"} if command else set()
    assert lost == set()
