"""Meaning is typed: nothing takes sentences apart or compares them; `remarks` has the words."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path

import msgspec
import pytest

import cyclescope
from cyclescope import errors, remarks
from cyclescope.isa.registry import instruction_sets
from cyclescope.probe.catalogue import PROBES
from cyclescope.remarks.remark import NOTHING, Meaning, Remark, listed, together
from cyclescope.remarks.timing import Cause, Timing, cause_of, withheld

PACKAGE = Path(cyclescope.__file__).parent
TAKES_APART = re.compile(
    r"\b(note|reason|remark|sentence|idiom|verdict|status)\.(startswith|endswith|split|r?partition|remove(pre|suf)fix)\("
    r"|[\"'] (not )?in \w*\.?(note|reason|remark|sentence|message)\b"
    r"|\bvariant\.(startswith|endswith|split|r?partition|remove(pre|suf)fix)\("
    r"|\bvariant\[|\bkey\[\d*:|GLOB '\* again'"
)
NAMED = re.compile(r"\.(subject|unit)\b")
OTHERS_WORDS = {"backend/peers/llvm_mca.py"}  # what another program says
READERS = {"measure/ports.py"}  # reads how many instructions or cycles of blocking it has written
ERRORS = {"compile", "__init__", *(name for name in vars(errors) if name[0].isupper())}
FOR_ERRORS = {"what", "message", "remedy"}  # of functions that raise one
SENTENCE = re.compile(r"[a-z]{2,}(?:,? [a-z]+){2,}")  # three words in a row: fewer are a name
QUERIES = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE")
WITHOUT_WORDS = ("analyze/", "infer/", "probe/", "session/")  # rooms whose sentences `remarks` has
NAMING = {"analyze/predict/effects.py", "infer/workload.py"}  # bounds; stages of a run
NAMES = {  # texts of these rooms that are no reasons, nor what a probe calls what it asks
    "analyze/choose/markers.py": {"every region needs a beginning and an end"},  # what errors say or advise
    "analyze/choose/source.py": {"an archive of object files"},
    "analyze/predict/predictor.py": {"is no number from "},
    "analyze/read/assembler.py": {", but only 64-bit code is analysed"},
    "analyze/read/attempt.py": {
        "the assemblers here are too old for it: install newer ones, or give an object file",
        "correct or delete the line; {arch} names a machine of another instruction set",
        "correct or delete the line; it was read as ",
    },
    "analyze/decode/known_values.py": {"at the start"},  # a value's
    "analyze/predict/observed.py": {"waiting for a port or operands"},  # what operations do
    "infer/timing/results.py": {"division by zero"},  # an exception's
    # kernels that only readings ask for
    "probe/memory/cache_sets.py": {"lines of one set", "twice as many in one set", "as many behind them"},
    "session/validation.py": {"read, modify, write", "division or root", "vector, floating point"},  # kinds
}


def modules() -> Iterator[tuple[str, str]]:
    """Every module of the package with its text."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), path.read_text()


def is_sentence(text: str) -> bool:
    """Whether a text is words for people, no query of a store."""
    return SENTENCE.search(text) is not None and not text.lstrip().startswith(QUERIES)


def is_enumeration(tree: ast.AST) -> bool:
    """Whether code is a class of members: code compares these."""
    return isinstance(tree, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in tree.bases)


def is_made_of_errors(tree: ast.AST) -> bool:
    """Whether code makes an exception, what it says and advises before it is raised, or a pattern."""
    if isinstance(tree, ast.Assign):
        return {target.id for target in tree.targets if isinstance(target, ast.Name)} <= FOR_ERRORS
    return isinstance(tree, ast.Call) and ast.unparse(tree.func).rpartition(".")[2] in ERRORS


def texts(tree: ast.AST, told: bool = False) -> Iterator[str]:
    """Texts in code, without members, what documents it, patterns, and exceptions."""
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str) and not told:
        yield tree.value
    if isinstance(tree, (ast.Raise, ast.Assert)) or is_made_of_errors(tree) or is_enumeration(tree):
        return
    for child in ast.iter_child_nodes(tree):
        yield from texts(child, isinstance(tree, ast.Expr))


def sentences(code: str) -> list[str]:
    """Sentences for people in code."""
    return [text for text in texts(ast.parse(code)) if is_sentence(text)]


def compared(code: str, known: AbstractSet[str]) -> list[str]:
    """Comparisons with a sentence, or with a constant that is one, but for names: of subjects, of units."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Compare) and not NAMED.search(ast.unparse(node))
        for whole in (node.left, *node.comparators)
        for side in (whole.elts if isinstance(whole, ast.Tuple) else [whole])
        if (isinstance(side, ast.Name) and side.id in known)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str) and is_sentence(side.value))
    ]


def constants_of_sentences(code: str) -> set[str]:
    """Constants of a module that are sentences, not those of classes: members are compared as such."""
    found = set()
    for statement in ast.parse(code).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            value = statement.value.value
            if isinstance(value, str) and is_sentence(value):
                found |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return found


def dotted(name: str) -> str:
    """A module's name as it is imported."""
    return f"cyclescope.{name.removesuffix('.py').replace('/', '.')}"


def imported(code: str, every: Mapping[str, set[str]]) -> set[str]:
    """Constants of other modules that a module calls by their names."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            found |= every.get(node.module or "", set()) & names
    return found


def test_sentences_are_not_parsed():
    found = [
        f"{name}: {line.strip()}"
        for name, text in modules()
        if name not in READERS
        for line in text.splitlines()
        if TAKES_APART.search(line)
    ]
    assert found == []


def test_sentences_are_not_compared():
    every = {dotted(name): constants_of_sentences(text) for name, text in modules()}
    assert sum(map(len, every.values())) > 20, "constants were found"
    found = {
        name: lines
        for name, text in modules()
        if (lines := compared(text, imported(text, every) | every[dotted(name)])) and name not in OTHERS_WORDS
    }
    assert found == {}


@cache
def asked() -> str:
    """What probes call what they ask: questions, sources, subjects, and parts of the comparison."""
    names = [one.name for one in instruction_sets()]
    cases = [case for probe in PROBES.values() for isa in names for case in probe.cases(isa)]
    found = {
        name for probe in PROBES.values() for name in (probe.question, probe.unit, probe.axis, *probe.sources)
    }
    found |= {name for case in cases for name in (case.subject, *(point.part for point in case.points))}
    found |= {name for case in cases if case.place for name in msgspec.structs.astuple(case.place)}
    return "\n".join(found)


def test_reasons_are_members():
    found = [
        f"{name}: {text}"
        for name, code in modules()
        if name.startswith(WITHOUT_WORDS) and name not in NAMING
        for text in sentences(code)
        if text not in NAMES.get(name, ()) and not (name.startswith("probe/") and text in asked())
    ]
    assert found == []


def meanings() -> Iterator[type[Meaning]]:
    """All enumerations of what is said."""
    for module in pkgutil.iter_modules(remarks.__path__, f"{remarks.__name__}."):
        importlib.import_module(module.name)
    yield from Meaning.__subclasses__()


def test_every_meaning_is_said_somewhere():
    """A member that no code names is left from what was said once."""
    code = "\n".join(text for _, text in modules())
    every = [one for kind in meanings() for one in kind]
    assert len(every) > 90
    assert [str(one) for one in every if f"{type(one).__name__}.{one.name}" not in code] == []


def test_meanings_of_one_subject_have_different_words():
    for kind in meanings():
        assert len(kind.__members__) == len(list(kind)), "one with the same words is the same for code, too"


def test_a_remark_is_its_meaning_with_values():
    why = withheld(Timing.FASTER_THAN_NOP.of(0.1))
    assert why.meaning is Timing.WITHHELD
    assert why.text == "withheld: 0.100 cycles is faster than a NOP and than an addition"
    assert cause_of(why) is Cause.WITHHELD
    assert cause_of(Timing.AVERAGE.of()) is Cause.NONE
    assert (bool(NOTHING), NOTHING.text, cause_of(NOTHING)) == (False, "", Cause.NONE)
    assert Remark(Timing.LOST_LINK, ("{r>v}",)).text.endswith("{r>v} is not known"), "values are no words"


def test_remarks_together_are_said_once():
    twice = (Timing.CUT.of(3.0), NOTHING, "before", Timing.CUT.of(3.0))
    assert together(twice) == "its own dependency chain allows 3.0; before"
    assert listed([Timing.REPEAT.of(1), NOTHING, Timing.REPEAT.of(2)]) == "repeat 1, repeat 2"


@pytest.mark.parametrize(
    "line",
    [
        'lat.note.startswith("eliminated")',
        'form.reason.split(" at ")[0]',
        'if "hidden" in found.note:',
        "int(record.variant[1:])",
        'r.variant.endswith("again")',
        'timing.status.startswith("SIGILL: this CPU lacks")',
        "key[4:]",
    ],
)
def test_parsing_is_seen(line):
    assert TAKES_APART.search(line)


@pytest.mark.parametrize(
    "line", ['"note" in data', "if found.note:", "note = remark.text", "variant_of(text)"]
)
def test_other_code_is_not_parsing(line):
    assert not TAKES_APART.search(line)


COMPARED = [
    "if fact.reason != NO_TIME: pass",
    "known = [fact for fact in found if fact.reason not in (NO_TIME, BRIEF)]",
    "self.ports += timing.ports_note == NO_TIME",
    "if note == 'no time left in a hurry': pass",
]


@pytest.mark.parametrize("line", COMPARED)
def test_comparing_is_seen(line):
    known = constants_of_sentences('NO_TIME = "no time left in a hurry"\nBRIEF = "no time"')
    assert known == {"NO_TIME"}
    assert compared(line, known)
    every = {"cyclescope.probe.run": known}
    assert imported("from cyclescope.probe.run import NO_TIME, ask", every) == known


def test_other_comparisons_are_none():
    assert not compared("if fact.reason is Asking.LATE and name == 'no time': pass", {"NO_TIME"})


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('why = f"{count} kernels are missing here"', 1),
        ('note = "no dependency: the chain is cut"', 1),
        ('"""A module of some words."""', 0),
        ('raise ValueError("no dependency at all is here")', 0),
        ('name = "second look"', 0),
        ('class Seen(StrEnum):\n    NONE = "nothing at all is there"', 0),
        ('return SourceError("nothing is between them", "mark a loop")', 0),
        ('remedy = "mark one of the loops"', 0),
    ],
)
def test_sentences_are_seen(code, found):
    assert len(sentences(code)) == found
