"""Random mixes of independent instructions as kernels.

No instance waits for another: sources are registers that nothing writes, targets come from rings that go
through all registers, loads and stores have addresses of their own. What remains are chains of forms that
read the register they write; a mix is left out where such a chain might take as long as its resources do.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import cycle

import msgspec

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import domain
from cyclescope.isa.x86_64.unmeasurable import unmeasurable
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, LONG, Kernel, kernel_of
from cyclescope.kernel.state import DEFAULT_MXCSR, VECTOR_EVEX512, VECTOR_VEX128, VECTOR_VEX256
from cyclescope.kernel.x86_64.registers import BASE
from cyclescope.kernel.x86_64.values import immediates, is_division, vector_level
from cyclescope.measure.bench import default_state
from cyclescope.model.machine import FormCost, MachineModel
from cyclescope.model.resources import resource_throughput

SSE, VEX, EVEX = "legacy SSE and integer", "VEX and integer", "EVEX and integer"
INTEGER, MEMORY = "integer", "memory and integer"
KINDS = (SSE, VEX, EVEX, INTEGER, MEMORY)
FEWEST, MOST = 4, 10  # forms of a mix
SLOWEST = 4.0  # cycles per instruction: slower forms hide everything else
BODY = 100  # instructions at least of a kernel's body
WAITING = 0.75  # of the predicted time that a chain of instances may take
_RING = {"r": (0, 1, 2, 5, 6, 7, 8, 9, 10), "v": tuple(range(12))}
_SOURCES = {"r": (12, 11, 3), "v": (15, 14, 13, 12)}
_CLASSES = frozenset(("R8l", "R16", "R32", "R64", "XMM", "YMM", "ZMM"))
_FIRST = {False: -128, True: 0}  # displacements of loads and of stores
_REACH = 128  # bytes of each
_WIDEST = 512  # bits
_CONSTANTS = ("0", "I16", "branch")  # what nobody writes; what stalls decoders with an operand-size prefix
_NO_DENORMALS = 0x8040  # flush and ignore them: values that come about are not to slow anything down
_LEFT_OUT = frozenset(
    ("xop", "x87", "mmx", "d3now", "masked", "rep", "repne", "string", "branch", "call", "return",
     "stack", "high_byte", "lock", "vsib", "interrupt", "nontemporal")
)  # fmt: skip


class Mix(msgspec.Struct, frozen=True):
    """Forms in the order in which they follow each other, and what they are drawn from."""

    kind: str
    forms: tuple[InstructionForm, ...]

    @property
    def counts(self) -> dict[str, float]:
        """Instances of each form."""
        return {form.id: 1.0 for form in self.forms}


# --- which forms ---------------------------------------------------------------------------------


def is_mixable(form: InstructionForm, cost: FormCost) -> bool:
    """Whether a form can be in a mix: fast, not microcode, with registers of free choice."""
    if form.encoding is None or not form.attributes.isdisjoint(_LEFT_OUT) or is_division(form):
        return False
    if unmeasurable(form):
        return False
    if cost.microcoded or cost.slots is None or cost.throughput is None or cost.throughput > SLOWEST:
        return False
    if not form.flags_written and not any(op.write for op in form.operands):  # hints and fences
        return False
    return (
        not (form.flags_read and form.flags_written)
        and all(map(_is_free, form.operands))
        and _is_single(form)
    )


def _is_free(op: Operand) -> bool:
    if op.is_register:
        return not op.fixed and op.cls in _CLASSES
    if op.is_memory:
        free = not (op.implicit or op.conditional or (op.read and op.write))
        return free and op.cls.startswith("M") and op.width <= _WIDEST
    return not op.fixed and op.cls not in _CONSTANTS


def _is_single(form: InstructionForm) -> bool:
    """Whether at most one register is written, and an address is a base at most."""
    writes = sum(op.is_register and op.write for op in form.operands)
    slots = form.encoding.slots if form.encoding else ()
    return (
        writes <= 1
        and not any(slot.part == 2 for slot in slots)
        and not any(op.cls.startswith("Moffs") for op in form.operands)
    )


def pools(model: MachineModel, forms: Sequence[InstructionForm]) -> dict[str, list[list[InstructionForm]]]:
    """Forms to draw from, by mnemonic: of each kind alone, and those of all that access memory."""
    found: dict[str, dict[str, list[InstructionForm]]] = {kind: defaultdict(list) for kind in KINDS}
    for form in forms:
        if form.id in model.forms and is_mixable(form, model.forms[form.id]):
            found[_kind(form)][form.mnemonic].append(form)
            if form.memory >= 0:
                found[MEMORY][form.mnemonic].append(form)
    return {kind: list(some.values()) for kind, some in found.items()}


def _kind(form: InstructionForm) -> str:
    """What a form is of, whether or not it accesses memory."""
    if not _is_vector(form):
        return INTEGER
    return EVEX if "evex" in form.attributes else VEX if form.is_vex else SSE


def _is_vector(form: InstructionForm) -> bool:
    """Whether a form works on vectors, or on floats in memory."""
    floats = form.element in ("f16", "f32", "f64", "bf16")
    return floats or any(op.is_register and domain(op.cls) == "v" for op in form.operands)


def draw(
    model: MachineModel, forms: Sequence[InstructionForm], kind: str, count: int, seed: int
) -> Iterator[Mix]:
    """`count` mixes, half of their forms of the kind and the others integer on average; a mnemonic once."""
    rng = random.Random(f"{kind} {seed}")
    some = pools(model, forms)
    while count:
        names = [rng.choice((kind, INTEGER)) for _ in range(rng.randint(FEWEST, MOST))]
        picked = [rng.choice(rng.choice(some[name])) for name in names]
        if len({form.mnemonic for form in picked}) < len(picked):
            continue
        mix = Mix(kind, tuple(picked))
        if not waits(model, mix):
            count -= 1
            yield mix


# --- kernels -------------------------------------------------------------------------------------


def body(mix: Mix) -> list[Instruction]:
    """The forms over and over, each time with the next registers and addresses."""
    places = _Places()
    return [places.instance(form) for _ in range(repetitions(mix)) for form in mix.forms]


class _Places:
    """Registers and addresses for one instance after another."""

    def __init__(self) -> None:
        self._rings = {kind: cycle(numbers) for kind, numbers in _RING.items()}
        self._next = dict.fromkeys(_FIRST, 0)

    def instance(self, form: InstructionForm) -> Instruction:
        """An instance with the next registers of the rings and the next address."""
        sources = {kind: iter(numbers) for kind, numbers in _SOURCES.items()}
        numbers = []
        for slot in form.encoding.slots if form.encoding else ():
            op = form.operands[slot.operand]
            pool = self._rings if op.write else sources
            numbers.append(BASE if slot.part else next(pool[domain(op.cls)]))
        place = self._address(form.operands[form.memory]) if form.memory >= 0 else 0
        return Instruction(form, tuple(numbers), place, immediates(form), None)

    def _address(self, op: Operand) -> int:
        """The next aligned address: neighbours, as two stores per cycle may have to be."""
        width = max(op.width // 8, 1)
        offset = -(-self._next[op.write] // width) * width % _REACH
        self._next[op.write] = offset + width
        return _FIRST[op.write] + offset


def kernel(mix: Mix) -> Kernel:
    """A kernel that times a mix."""
    level = max(map(_vector_state, mix.forms))
    state = msgspec.structs.replace(default_state(level), control=DEFAULT_MXCSR | _NO_DENORMALS)
    return kernel_of(body(mix), state, flags=CANARY | LONG)


def _vector_state(form: InstructionForm) -> int:
    """How much vector state a form has of its own: legacy forms beside it would have to keep more."""
    level = vector_level(form)
    if level < VECTOR_EVEX512 or form.vector_width >= _WIDEST:
        return level
    return VECTOR_VEX256 if form.vector_width >= _WIDEST // 2 else VECTOR_VEX128


def repetitions(mix: Mix) -> int:
    """How often a kernel's body has the mix."""
    return math.ceil(BODY / len(mix.forms))


def waits(model: MachineModel, mix: Mix) -> bool:
    """Whether instances that read what they write may wait for each other longer than for resources."""
    predicted = resource_throughput(model, mix.counts)
    if predicted is None:
        return True
    chains: dict[tuple[str, int], float] = defaultdict(float)
    cut: set[tuple[str, int]] = set()
    for instruction in body(mix):
        form = instruction.form
        for slot, number in zip(
            form.encoding.slots if form.encoding else (), instruction.registers, strict=True
        ):
            op = form.operands[slot.operand]
            if slot.part or not op.write:
                continue
            place = domain(op.cls), number
            if op.read or op.width < 32:
                chains[place] += _latency(model.forms[form.id], op.name)
            else:
                cut.add(place)
    longest = max((cycles for place, cycles in chains.items() if place not in cut), default=0.0)
    return longest > WAITING * predicted[0] * repetitions(mix)


def _latency(cost: FormCost, name: str) -> float:
    pair = f"{name}->{name}"
    return cost.latencies.get(pair, cost.ranges.get(pair, (0.0, 1.0))[1])
