"""From a kernel's instructions to a loop body of the engine: locations, addresses, the path taken.

A register file is one location per register, whatever the part: narrow writes that merge are reads in
the instruction table. Flags are one location each. Memory is compared by address, computed from the
kernel's first state: kernels keep the values of their address registers. Those that an instruction moves on
are followed through the body, and begin anew with the next iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import msgspec

from cyclescope.errors import UnsupportedInstruction
from cyclescope.isa.dataflow import Node
from cyclescope.isa.form import FLAGS, InstructionForm
from cyclescope.isa.operand import BLOCKS, Operand
from cyclescope.isa.register import domain, register_number
from cyclescope.isa.registry import instruction_set
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.state import MachineState
from cyclescope.model.behaviour.passing import work_of
from cyclescope.model.machine import EXTRACTED, IDEAL, FormCost, MachineModel
from cyclescope.simulate.cost import Ends, cost_of, spread, template
from cyclescope.simulate.engine import Body, Engine, Steady, Template, Trace, layout_of
from cyclescope.simulate.fixed_width import FixedWidth, OperandValues
from cyclescope.simulate.front_end import FEATURELESS, FrontEnd
from cyclescope.simulate.passing import WAITING, PassedAccess, Passing
from cyclescope.simulate.step import NOWHERE, EngineAccess, EngineStep
from cyclescope.simulate.units import Forms, Units

_FILES = {"r": 2, "v": 34, "k": 66, "m": 74, "x": 82}  # first location of each register file
_FLAG, _OTHERS = 90, 97
_STACK = 4  # RSP
_AS_DELIVERED = 1.001  # times the cycles of the front end: as many but for the parts the engine counts in
MOST_STEPS = 10_000  # of the path through a body with jumps


class Simulator:
    """A machine model as a core that runs instruction sequences.

    `policy` says how operations are bound to ports (see `engine`), `front_end` what it does besides
    delivering slots, `passing` how loads get what is on its way to memory. `told` is what follows
    from the machine's forms on every core, where others have it, too.
    Raises UsageError where the engine cannot be such a machine.
    """

    def __init__(
        self,
        machine: MachineModel,
        policy: str = IDEAL,
        front_end: FrontEnd = FEATURELESS,
        passing: Passing = WAITING,
        told: Forms | None = None,
    ) -> None:
        self.machine = machine
        self._policy = policy
        self.front_end = front_end
        self.passing = passing
        self.engine = Engine(layout_of(machine.core, len(machine.ports), policy))
        self._told = told or Forms(machine.forms)
        self._units = Units.of(machine, self._told)
        self._templates: dict[tuple[str, str, bool], int] = {}
        self._slots: dict[int, float] = {}  # by the number of a template
        self._passed: dict[tuple[int, str], int] = {}
        self._made: dict[int, Template] = {}
        self._ends: dict[str, Ends] = {}
        self._steps: dict[tuple[Instruction, int, bool], EngineStep] = {}
        with_fields = instruction_set(machine.isa).fixed_width
        self._with_fields = FixedWidth(machine.isa) if with_fields else None  # else registers have slots
        self._others: dict[tuple[str, int], int] = {}

    @cached_property
    def _roomy(self) -> Simulator | None:
        """The core as it is while its scheduler has room; None where that makes no difference."""
        if (told := self._told.roomy) is None:
            return None
        machine = msgspec.structs.replace(self.machine, forms=told.costs)
        return Simulator(machine, self._policy, self.front_end, self.passing, told)

    def knows(self, form: InstructionForm) -> bool:
        """Whether the machine has the instruction."""
        return cost_of(self.machine, form) is not None

    def run(self, instructions: Sequence[Instruction], state: MachineState) -> Steady:
        """Steady state of a loop. Raises UnsupportedInstruction.

        A loop that the front end bounds leaves room in the scheduler.
        """
        if self._needs_room(instructions) and self._roomy is not None:
            found = self._roomy.run(instructions, state)
            slots = self._slots_of(list(path(instructions, self.machine.isa)))
            if found.cycles <= _AS_DELIVERED * sum(slots) / self.machine.core.width:
                return found
        found = self.engine.run(self.body(instructions, state))
        if self.front_end == FEATURELESS:
            return found
        taken = list(path(instructions, self.machine.isa))
        least = self.front_end.cycles(taken, self._slots_of(taken), self.machine.core.width)
        return msgspec.structs.replace(found, cycles=max(found.cycles, least))

    def _needs_room(self, instructions: Iterable[Instruction]) -> bool:
        """Whether room in the scheduler may change what instructions take; what is usual may count."""
        costs = (cost_of(self.machine, one.form) for one in instructions)
        return self.machine.core.writeback is not None or any(cost and cost.with_room for cost in costs)

    def _slots_of(self, taken: Sequence[Instruction]) -> list[float]:
        """Slots of the instructions of a path, none for those that share another's."""
        steps = zip(taken, self.front_end.shared(taken), strict=True)
        return [self._slots[self._step(one, 0, shared).words[0]] for one, shared in steps]

    def trace(self, instructions: Sequence[Instruction], state: MachineState, iterations: int) -> Trace:
        """The first iterations of a loop. Raises UnsupportedInstruction."""
        return self.engine.trace(self.body(instructions, state), iterations)

    def body(self, instructions: Sequence[Instruction], state: MachineState) -> Body:
        """The loop as the engine takes it. Raises UnsupportedInstruction."""
        words: list[int] = []
        accesses: list[int] = []
        top = stack = 0
        moved: dict[int, int] = {}
        taken = list(path(instructions, self.machine.isa))
        starts: list[int] = []
        seen: list[PassedAccess] = []
        for instruction, shared in zip(taken, self.front_end.shared(taken), strict=True):
            step = self._step(instruction, top, shared)
            start = len(words)
            starts.append(start)
            words += step.words
            for access in step.accesses:
                words[start + access.word] = -1 - len(accesses) // 2
                accesses += (access.address(state, moved, stack), access.size)
                seen.append(self._seen(len(starts) - 1, instruction, access, accesses[-2]))
            for move in step.moves:
                moved[move.register] = moved.get(move.register, 0) + move.bytes(state)
            for number in step.written:
                moved.pop(number, None)
            stack += step.stack
            top = (top + instruction.form.x87_pops) & 7
        self._pass(words, starts, seen, taken)
        return Body(words, accesses)

    # --- memory ----------------------------------------------------------------------------------

    def _seen(
        self, number: int, instruction: Instruction, access: EngineAccess, address: int
    ) -> PassedAccess:
        base = (*access.registers, access.displacement)
        named = tuple(part[0] if isinstance(part, tuple) else str(part) for part in base)
        is_load, form = access.word <= len(self._ends[instruction.form.id].sources), instruction.form
        works = any(op.is_memory and op.read and work_of(form, op) for op in form.operands)
        return PassedAccess(number, address, access.size, is_load, named, access.on_stack, works)

    def _pass(
        self,
        words: list[int],
        starts: Sequence[int],
        seen: Sequence[PassedAccess],
        taken: Sequence[Instruction],
    ) -> None:
        """Give the instructions of a body the templates that the ways through memory make of theirs."""
        if self.passing == WAITING or not seen:
            return
        written = [
            frozenset(word - _FILES["r"] for word in words[start:end] if _FILES["r"] <= word < _FILES["v"])
            for start, end in self._targets(words, starts)
        ]
        for number, kind in self.passing.kinds(seen, written).items():
            words[starts[number]] = self._passing(words[starts[number]], kind, taken[number].form)

    def _targets(self, words: Sequence[int], starts: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Where in the words the targets of each instruction are."""
        for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
            yield start + 1 + len(self._made[words[start]].latencies), end

    def _passing(self, number: int, kind: str, form: InstructionForm) -> int:
        key = number, kind
        if key not in self._passed:
            plain = self._made[number]
            data = [node.part == "data" for node in self._ends[form.id].sources]
            if len(data) < len(plain.latencies):  # registers that several sources stand for come first
                data = [False] * (len(plain.latencies) - len(data)) + data
            made = self.passing.applied(plain, kind, data, self.machine.core)
            self._passed[key] = self._added(made)
        return self._passed[key]

    def _added(self, template: Template) -> int:
        number = self.engine.add(template)
        self._slots[number], self._made[number] = template.slots, template
        return number

    # --- one instruction -------------------------------------------------------------------------

    def _step(self, instruction: Instruction, top: int, shared: bool) -> EngineStep:
        known = self._steps.get((instruction, top, shared))
        if known is None:
            known = self._steps[instruction, top, shared] = self._translate(instruction, top, shared)
        return known

    def _translate(self, instruction: Instruction, top: int, shared: bool) -> EngineStep:
        form = instruction.form
        cost = cost_of(self.machine, form)
        if cost is None:
            raise UnsupportedInstruction(f"{self.machine.name} has no {form.id}")
        ends = self._ends.setdefault(form.id, Ends.of(form, cost.latencies))
        template = self._template(ends, cost, instruction, shared)
        if self._with_fields is not None:
            return self._with_fields.step(instruction, ends, template)
        pushed = (top + min(form.x87_pops, 0)) & 7  # a push names its target after the fact
        words = [template]
        accesses = []
        places = [(node, top) for node in ends.sources] + [(node, pushed) for node in ends.targets]
        for node, base in places:
            if node.part == "data":
                accesses.append(_access(instruction, node, len(words)))
                words.append(0)
            else:
                words.append(self._location(instruction, node, base))
        return EngineStep(tuple(words), tuple(accesses), _stack_change(form))

    def _template(self, ends: Ends, cost: FormCost, instruction: Instruction, shared: bool) -> int:
        idiom = cost.idiom if cost.idiom and self._has_one_source(instruction) else ""
        key = ends.form.id, idiom, shared
        if key not in self._templates:
            extracted = self.machine.provenance.kind == EXTRACTED
            found = template(ends.form, cost, self.machine.core, self._units, idiom, extracted)
            if self._with_fields is not None:
                found = spread(found, *self._with_fields.counts(ends))
            if shared:
                found = msgspec.structs.replace(found, slots=0.0, needed=0.0)
            self._templates[key] = self._added(found)
        return self._templates[key]

    def _has_one_source(self, instruction: Instruction) -> bool:
        """See `locations.reads_one_register`."""
        read = instruction.form.alike
        if self._with_fields is not None:
            values = OperandValues(instruction, self.machine.isa)
            return len(read) > 1 and len({values.units(n) for n in read}) == 1
        return len(read) > 1 and len({register_of(instruction, n) for n in read}) == 1

    def _location(self, instruction: Instruction, node: Node, top: int) -> int:
        if node.part == "flag":
            return _FLAG + FLAGS.index(node.flag)
        if node.part in ("address", "index"):
            number = _address_register(instruction, node)
            return NOWHERE if number is None else _FILES[node.domain] + number
        op = instruction.form.operands[node.operand]
        kind, number = register_of(instruction, node.operand)
        if kind == "x":
            return _FILES[kind] + (number + top & 7)
        if kind in _FILES:
            return _FILES[kind] + number
        return _OTHERS + self._others.setdefault((op.cls, number), len(self._others))


def register_of(instruction: Instruction, position: int) -> tuple[str, int]:
    """Register file and number of a register operand; a high byte is part of its register."""
    op = instruction.form.operands[position]
    cls, number = op.cls, _slot(instruction, position, 0)
    if number is None:
        cls, number = _fixed(op)
    kind = domain(cls)
    return ("r", number - 4) if kind == "h" else (kind, number)


def _fixed(op: Operand) -> tuple[str, int]:
    if not op.fixed or op.fixed in BLOCKS:
        return op.cls, 0
    try:
        return register_number(op.fixed)
    except KeyError:  # no register file of the table: RIP, MXCSR, ...
        return op.fixed, 0


def _slot(instruction: Instruction, position: int, part: int) -> int | None:
    numbers = zip(instruction.form.register_keys, instruction.registers, strict=False)
    return next((number for key, number in numbers if key == (position, part)), None)


def _address_register(instruction: Instruction, node: Node) -> int | None:
    if node.part == "address":
        return _slot(instruction, node.operand, 1)
    number = _slot(instruction, node.operand, 2)
    return instruction.index if number is None else number


# --- memory ----------------------------------------------------------------------------------------


def _access(instruction: Instruction, node: Node, word: int) -> EngineAccess:
    op = instruction.form.operands[node.operand]
    size = max(op.width // 8, 1)
    if not op.implicit:
        found = (_slot(instruction, node.operand, 1), _index(instruction, node.operand))
        registers = tuple((n, 1) for n in found if n is not None)
        on_stack = found == (_STACK, None)
        return EngineAccess(word, registers, instruction.displacement, size, on_stack)
    kind, number = _fixed(op)
    on_stack = number == _STACK and "stack" in instruction.form.attributes
    below = size if on_stack and op.write else 0
    return EngineAccess(word, ((number, 1),) if kind == "R64" else (), -below, size, on_stack)


def _index(instruction: Instruction, position: int) -> int | None:
    """The general register that an address adds; the elements of a vector count as 0."""
    op = instruction.form.operands[position]
    number = None if op.cls.startswith("VSIB_") else _slot(instruction, position, 2)
    return instruction.index if number is None else number


def _stack_change(form: InstructionForm) -> int:
    """Bytes that pushes and pops move the stack pointer by."""
    if "stack" not in form.attributes:
        return 0
    implicit = [op for op in form.operands if op.is_memory and op.implicit]
    return sum((op.read - op.write) * max(op.width // 8, 1) for op in implicit)


# --- the path --------------------------------------------------------------------------------------


def path(instructions: Sequence[Instruction], isa: str) -> Iterable[Instruction]:
    """The instructions that one iteration executes: direct jumps, calls and returns are followed.

    Conditional branches are not taken, and indirect ones go to the next instruction.
    """
    if not any(_leaves(i.form) for i in instructions):
        return instructions
    starts, position = {}, 0
    for number, instruction in enumerate(instructions):
        starts[position] = number
        position += len(instruction.code)
    bounds = list(pairwise([*starts, position]))
    taken: list[Instruction] = []
    calls: list[int] = []
    at = 0
    while at < len(instructions) and len(taken) < MOST_STEPS:
        taken.append(instructions[at])
        target = _target(instructions[at], bounds[at], calls, isa)
        at = starts.get(target, len(instructions) if target == position else at + 1)
    return taken


def _leaves(form: InstructionForm) -> bool:
    attributes = form.attributes
    return not attributes.isdisjoint(("branch", "call", "return")) and "conditional_branch" not in attributes


def _target(instruction: Instruction, bounds: tuple[int, int], calls: list[int], isa: str) -> int:
    """Where the path goes on behind an instruction from and to `bounds`; returns go to `calls`."""
    form = instruction.form
    start, end = bounds
    if "return" in form.attributes:
        return calls.pop() if calls else end
    if not _leaves(form) or "indirect" in form.attributes:
        return end
    if "call" in form.attributes:
        calls.append(end)
    if instruction_set(isa).fixed_width:
        return start + (OperandValues(instruction, isa).target or 0)
    return end + (instruction.immediates[0] if instruction.immediates else 0)
