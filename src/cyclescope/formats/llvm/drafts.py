"""Drafts of scheduling models read again: the TableGen that `scheduling` writes, and no other.

LLVM's own models need a target's instructions and all that TableGen can do: `dump` reads what llvm-tblgen
makes of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from cyclescope.formats.exchange import Draft, FormatError, Imported, ImportRequest, cycles
from cyclescope.formats.llvm.classes import Advance, Processor, SchedulingClass, Write
from cyclescope.formats.llvm.operands import opcode_forms
from cyclescope.formats.llvm.renaming import IDIOMS, MEMBERS, UNLIMITED
from cyclescope.formats.llvm.resources import ProcessorResource
from cyclescope.formats.text import contents
from cyclescope.isa.table import load_table
from cyclescope.model.machine import ASSUMED, Core

_REMEDY = "only drafts that `cyclescope export` wrote; of LLVM's models what llvm-tblgen -dump-json prints"
_SKIPPED = re.compile(r"\s+|//[^\n]*|#[^\n]*|let SchedModel = \w+ in \{|\}")
_CLASS = r"class (\w+)<list<ProcResourceKind> ports, list<int> cycles, int latency, int operations>\s*"
_STATEMENTS = {
    "model": re.compile(r"def (\w+) : SchedMachineModel \{([^{}]*)\}"),
    "unit": re.compile(r"def (\w+) : ProcResource<1>;"),
    "group": re.compile(r"def (\w+) : ProcResGroup<\[([\w, ]*)\]>;"),
    "class": re.compile(_CLASS + r": SchedWriteRes<ports> \{[^{}]*\}"),
    "late": re.compile(r"def (\w+) : SchedReadAdvance<(-?\d{1,6})>;"),
    "result": re.compile(
        r"def (\w+) : SchedWriteRes<\[\]> \{ let Latency = (\d{1,6}); let NumMicroOps = 0; \}"
    ),
    "write": re.compile(r"def (\w+) : \w+<\[([\w, ]*)\], \[([\d, ]*)\], (\d{1,6}), (\d{1,6})>;"),
    "variant": re.compile(
        r"def (\w+) : SchedWriteVariant<\[\s*SchedVar<MCSchedPredicate<[\w<>, \[\]]*>, \[\w+\]>,\s*"
        r"SchedVar<NoSchedPred, \[(\w+)\]>\s*\]>;"
    ),
    "in flight": re.compile(
        r"def \w+(Load|Store)sInFlight : ProcResource<1> \{ let BufferSize = (\d{1,6}); \}"
    ),
    "queue": re.compile(r"def \w+ : (?:Load|Store)Queue<\w+>;"),
    "file": re.compile(r"def \w+ : RegisterFile<\d{1,6}, [\w, \[\]]*>;"),
    "function": re.compile(r"def : (\w+)<\[\s([\w\s,<>\[\]]*)\s\]>;"),
    "rest": re.compile(
        r"foreach one = !instances<\w+>\(\) in\s+if !not\(!or\([\w!<>(), ]*\)\) then\s+"
        r"def : (?:WriteRes<one, \[\]> \{ let Unsupported = 1; \}|ReadAdvance<one, 0>;)"
    ),
    "choice": re.compile(r"def : InstRW<\[([\w, ]*)\], \(instrs\s([\w,\s]*)\)>;"),
}
_MEMBER = re.compile(rf"(?:{'|'.join(sorted(set(MEMBERS.values())))})<\[([\w,\s]*)\]")
_LET = re.compile(r"let (\w+) = (\d{1,6});")
_DEFAULT = "ReadDefault"


def read(path: Path, request: ImportRequest) -> Imported:
    """The model of a draft. Raises FormatError."""
    draft = Draft(load_table(request.isa), request)
    found = _Draft(path)
    for kind, match in _statements(path):
        found.take(kind, match)
    forms = opcode_forms(draft.table)
    processor = Processor(found.resources)
    draft.ports = found.ports
    for line, costs, opcodes in found.choices:
        one = found.scheduling_class(line, costs)
        for opcode in opcodes:
            if opcode not in forms:
                draft.refuse(opcode, "no form has this name")
            for form in forms.get(opcode, ()):
                processor.add(draft, form, one)
    for function, opcodes in found.functions:
        what = {"idiom": IDIOMS[function]} if function in IDIOMS else {"eliminated": True}
        for opcode in opcodes:
            if not any(draft.has(form) for form in forms.get(opcode, ())):
                draft.refuse(opcode, "an idiom or a move without a cost")
            for form in filter(draft.has, forms.get(opcode, ())):
                draft.add(form, **what)
    return draft.imported(found.core)


def _statements(path: Path) -> Iterator[tuple[str, re.Match[str]]]:
    """The statements of a draft, in their order. Raises FormatError for what is none."""
    text, at = contents(path), 0
    while at < len(text):
        skipped = _SKIPPED.match(text, at)
        if skipped:
            at = skipped.end()
            continue
        found = next(((k, m) for k, p in _STATEMENTS.items() if (m := p.match(text, at))), None)
        if found is None:
            raise FormatError(f"{path}: line {_line(text, at)} is not of a draft", _REMEDY)
        yield found
        at = found[1].end()


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


class _Draft:
    """What the statements of a draft say."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.core = Core(0.0)
        self.resources = [ProcessorResource("")]
        self.ports: list[str] = []
        self.choices: list[tuple[int, list[str], list[str]]] = []
        self.functions: list[tuple[str, list[str]]] = []
        self._numbers: dict[str, int] = {}
        self._writes: dict[str, Write] = {}
        self._late: dict[str, int] = {_DEFAULT: 0}
        self._prefix = ""

    def take(self, kind: str, match: re.Match[str]) -> None:
        """A statement. Raises FormatError for what names nothing, or is there twice."""
        if kind == "model":
            self._take_model(match[1], dict(_LET.findall(match[2])))
        elif kind == "in flight":
            self.core = msgspec.structs.replace(self.core, **{f"{match[1].lower()}_buffer": int(match[2])})
        elif kind in ("unit", "group"):
            self._take_resource(match, kind == "group")
        elif kind == "late":
            self._late[match[1]] = int(match[2])
        elif kind == "result":
            self._writes[match[1]] = Write(match[1], int(match[2]), 0)
        elif kind == "write":
            self._take_write(match)
        elif kind == "variant":
            self._take_variant(match)
        elif kind == "function":
            self._take_function(match)
        elif kind == "choice":
            self.choices.append((_line(match.string, match.start()), _words(match[1]), _words(match[2])))

    def _take_model(self, name: str, told: dict[str, str]) -> None:
        self._prefix = f"{name.removesuffix('Model')}Port"
        numbers = {key: int(value) for key, value in told.items()}
        in_flight = numbers.get("MicroOpBufferSize", UNLIMITED)
        self.core = Core(
            float(numbers.get("IssueWidth", 0)),
            reorder_buffer=0 if in_flight == UNLIMITED else in_flight,
            in_order=in_flight == 0,
            load_latency=float(numbers.get("LoadLatency", 0)),
            mispredict_penalty=float(numbers.get("MispredictPenalty", 0)),
            width_kind=ASSUMED,
        )

    def _take_resource(self, match: re.Match[str], group: bool) -> None:
        name = match[1]
        members = tuple(self._number(match, one) for one in _words(match[2])) if group else ()
        if name in self._numbers or (group and not members):
            raise self._wrong(match, f"{name} is there twice, or a group of nothing")
        if any(self.resources[one].members for one in members):
            raise self._wrong(match, f"{name} is a group of groups")
        self._numbers[name] = len(self.resources)
        self.resources.append(ProcessorResource(name, members=members))
        if not group:
            self.ports.append(name.removeprefix(self._prefix))

    def _take_write(self, match: re.Match[str]) -> None:
        name, ports, busy = match[1], _words(match[2]), _words(match[3])
        if len(ports) != len(busy):
            raise self._wrong(match, f"{name} has {len(ports)} resources and {len(busy)} cycles")
        try:
            uses = {self._number(match, one): int(cycles(n)) for one, n in zip(ports, busy, strict=True)}
        except ValueError as error:
            raise self._wrong(match, f"{name}: {error}") from None
        self._writes[name] = Write(name, int(match[4]), int(match[5]), uses)

    def _take_variant(self, match: re.Match[str]) -> None:
        """What all but a zero idiom costs."""
        if match[2] not in self._writes:
            raise self._wrong(match, f"nothing is called {match[2]!r}")
        self._writes[match[1]] = self._writes[match[2]]

    def _take_function(self, match: re.Match[str]) -> None:
        if match[1] not in MEMBERS:
            raise self._wrong(match, f"{match[1]} is no function of drafts")
        self.functions += [(match[1], _words(found)) for found in _MEMBER.findall(match[2])]

    def _number(self, match: re.Match[str], name: str) -> int:
        if name not in self._numbers:
            raise self._wrong(match, f"there is no resource {name}")
        return self._numbers[name]

    def _wrong(self, match: re.Match[str], why: str) -> FormatError:
        return FormatError(f"{self._path}: line {_line(match.string, match.start())}: {why[:80]}", _REMEDY)

    def scheduling_class(self, line: int, costs: list[str]) -> SchedulingClass:
        """The class of a choice: a write, and the operands in their order."""
        unknown = next((name for name in costs if name not in self._writes and name not in self._late), "")
        writes = [self._writes[name] for name in costs if name in self._writes]
        if unknown or not writes:
            raise FormatError(f"{self._path}: line {line}: nothing is called {unknown[:80]!r}", _REMEDY)
        reads = [self._late[name] for name in costs if name in self._late]
        late = [Advance(use, cycles_) for use, cycles_ in enumerate(reads) if cycles_]
        return SchedulingClass(tuple(writes), tuple(late))


def _words(text: str) -> list[str]:
    """What stands between commas."""
    return [word for word in re.split(r"[,\s]+", text) if word]
