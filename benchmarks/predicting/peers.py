"""Published inputs of other tools: what is read, what is refused and why, and what is left out in silence.

Reads every assembly text (`.s`, `.S`) below the folders given, which are not part of the project: OSACA's
examples and tests, llvm-mca's own tests. Each goes through `analyze`, for the CPU that its `RUN` line or its
name says. A reader of its own counts instructions by line and markers: every line has to be code, every
marked region analysed, or something has to be said of it. What is refused is given to the assemblers as it
stands.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.lib.common import Check, parser, present, table
from cyclescope.analyze.choose.source import read_blocks, read_program
from cyclescope.analyze.read.assemblers import tools
from cyclescope.errors import CyclescopeError
from tests.support.files.hostile import ran, wrong

# What names say where no RUN line does: (pattern of the path, instruction set, CPU).
_NAMED = (
    (r"tx2|aarch64|_arm", "aarch64", "thunderx2t99"),
    (r"csx|skx", "x86-64", "cascadelake"),
    (r"", "x86-64", "znver1"),
)
_ISAS = {"aarch64": "aarch64", "arm64": "aarch64", "riscv64": "riscv64", "x86_64": "x86-64"}
_LABEL = re.compile(r"\s*(?:\"?[\w.$@]+\"?|\d+)\s*:(?!:)")
_BEGIN = re.compile(r"^[ \t]*(?:#|//|/\*).*(?:(?:LLVM-MCA|OSACA)-BEGIN|IACA START)", re.MULTILINE)
_MARKED = re.compile(r"\b(?:mov[lz]?|li)\b[^\n]*\b(?:111|222)\b")  # in front of a marker's bytes
_LISTING = re.compile(r"^include listing\.inc", re.MULTILINE)  # Microsoft's compiler
_MASM = r"\b(?:include|includelib|public|extrn|comm|title|end|npad|proc|endp|segment|ends|d[bwdq]|xmmword)\b"
_REFUSED = "refused: no assembler takes it"
_FAMILIES = (
    "read", "read, costs missing", _REFUSED, "refused: nothing to analyse, or markers that do not match",
    "no such machine here",
)  # fmt: skip


class Outcome(msgspec.Struct, frozen=True):
    """What became of a file: one of the families, what was said, and what was wrong."""

    path: Path
    family: str
    said: str
    problems: tuple[str, ...]
    lines: int = 0
    regions: int = 0


def target(path: Path, text: str) -> tuple[str, str]:
    """Instruction set and CPU that a text is for; "" for the first where it is none of ours."""
    cpu = re.search(r"-mcpu[= ]([\w.-]+)", text)
    triple = re.search(r"-m(?:triple|arch)=([\w]+)", text)
    _, isa, named = next(one for one in _NAMED if re.search(one[0], path.name))
    isa = _ISAS.get(triple[1].replace("-", "_"), "") if triple else isa
    return isa, cpu[1] if cpu else named


def written(text: str, isa: str) -> Iterator[int]:
    """Lines that have instructions, by a reader that knows labels, directives and comments alone."""
    plain = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    comment = "^[ \t]*;|" + ("//|^[ \t]*#" if isa == "aarch64" else "#|//")
    if _LISTING.search(text):
        comment = f"{comment}|;|^.*{_MASM}|^\\S+ = "
    for number, line in enumerate(plain.split("\n"), 1):
        parts = re.sub(rf"(?:{comment}).*", "", line, flags=re.IGNORECASE).split(";")
        if any(_has_instruction(part) for part in parts):
            yield number


def _has_instruction(part: str) -> bool:
    while match := _LABEL.match(part):
        part = part[match.end() :]
    return bool(part.strip()) and not part.lstrip().startswith(".")


def assembled(path: Path) -> set[int]:
    """Lines that are code in what is read of a text. Raises CyclescopeError."""
    program = read_program(path)
    starts = [one.address for one in program.statements] + [max((p.end for p in program.pieces), default=0)]
    ends = [next((a for a in starts[n + 1 :] if a > one), one) for n, one in enumerate(starts)]
    return {one.line for one, end in zip(program.statements, ends, strict=False) if end > one.address}


def is_taken(path: Path, isa: str) -> bool:
    """Whether an assembler takes a text as it stands."""
    lines = ([*tool.command, str(path), "-o", "/dev/null"] for tool in tools(isa))
    return any(subprocess.run(line, capture_output=True, check=False).returncode == 0 for line in lines)


def outcome(path: Path) -> Outcome:
    """What becomes of one text."""
    text = path.read_text(errors="replace")
    isa, cpu = target(path, text)
    done = ran(["analyze", path, "--arch", cpu])
    problems = [said] if (said := wrong(done)) else []
    said = (done.errors.strip().splitlines() or [""])[-1].replace(str(path), path.name)
    try:
        silent = set(written(text, isa)) - assembled(path)
        blocks = read_blocks(path)
    except CyclescopeError as error:
        refused = "refuses" in error.message
        if refused and isa and is_taken(path, isa):
            problems.append("an assembler takes it")
        family = "no such machine here" if done.code == 2 else _FAMILIES[2 if refused else 3]
        return Outcome(path, family, said or error.message, tuple(problems))
    notes = "\n".join(note for block in blocks for note in block.notes)
    lost = [n for n in sorted(silent) if not re.search(rf"\b{n}\b", notes)]
    if lost:
        problems.append(f"lines {lost[:5]} are not code, and nothing is said")
    begins = len(_BEGIN.findall(text))
    marked = sum("marker" in block.found for block in blocks)
    if marked + len(re.findall(r"no instructions, left out", notes)) < begins and not _MARKED.search(text):
        problems.append(f"{begins} regions begin, {marked} are analysed")
    family = {0: _FAMILIES[0], 3: _FAMILIES[1]}.get(done.code, _FAMILIES[4])
    return Outcome(path, family, said, tuple(problems), len(set(written(text, isa))), marked)


def peers(folders: Sequence[Path], part: tuple[int, int]) -> list[Check]:
    """Read all texts below some folders, and say what became of them."""
    files = sorted(file for folder in folders for file in folder.rglob("*") if file.suffix in (".s", ".S"))
    found = [outcome(file) for file in files[part[0] - 1 :: part[1]]]
    counts = Counter(one.family for one in found)
    print(table(("what becomes of them", "files"), [(name, counts[name]) for name in _FAMILIES]))
    lines, regions = sum(one.lines for one in found), sum(one.regions for one in found)
    print(f"\n{lines} lines of instructions, {regions} marked regions\n")
    print(table(("file", "what is said"), [(one.path.name, one.said[:150]) for one in found if one.said]))
    bad = [one for one in found if one.problems]
    print(table(("file", "what is wrong"), [(one.path.name, "; ".join(one.problems)) for one in bad]))
    what = "texts with something left out in silence or refused without reason"
    return [Check(what, str(len(bad)), "0", not bad)]


def _part(text: str) -> tuple[int, int]:
    part, parts = map(int, text.split("/"))
    return part, parts


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("folders", nargs="+", type=Path, help="folders with texts")
    options.add_argument("--part", type=_part, default=(1, 1), help="K/N: the Kth of N parts of them")
    given = options.parse_args()
    present("peers' inputs", lambda: peers(given.folders, given.part))


if __name__ == "__main__":
    main()
