"""What predicts blocks, each by its name: cyclescope's bounds and its simulated core, llvm-mca, OSACA."""

from __future__ import annotations

import resource
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import msgspec

from cyclescope.analyze.choose.source import MACHINE_CODE
from cyclescope.analyze.decode.block import Block, BlockInstruction
from cyclescope.analyze.decode.decoder import decoder
from cyclescope.analyze.predict.effects import EFFECTS
from cyclescope.analyze.predict.estimate import BlockEstimate
from cyclescope.analyze.predict.prediction import FRONT_END, LOOP_CARRIED, SCHEDULED
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.analyze.predict.watched import AVERAGING
from cyclescope.backend.peers.llvm_mca import LlvmMcaBackend
from cyclescope.backend.peers.osaca import Osaca
from cyclescope.errors import BackendUnavailable, CyclescopeError, UsageError
from cyclescope.isa.registry import instruction_set
from cyclescope.model.facts import SCHEDULER
from cyclescope.model.machine import MachineModel
from cyclescope.remarks.blocks import Unpredicted
from cyclescope.session.blocks import decoded, placed
from cyclescope.session.machines import stand_in_for, vendor_of

ANALYTIC, SIMULATED, LLVM_MCA, OSACA = "analytic", "simulated", "llvm-mca", "osaca"
PREDICTOR_NAMES = (ANALYTIC, SIMULATED, LLVM_MCA, OSACA)
USUAL_PREDICTORS = (ANALYTIC, SIMULATED, LLVM_MCA)


class BlockAnswer(msgspec.Struct, frozen=True):
    """Cycles of a block, or the `reason` why there are none; what the predictor says of its error."""

    cycles: float | None
    interval: tuple[float, float] | None = None
    lower: float | None = None
    bound: str = ""
    bounds: dict[str, float] = {}
    reason: str = ""


class BlockPredictor(Protocol):
    """Predicts blocks, all of them in one call."""

    name: str
    model: str  # what it computes with, in words

    def answers(self, blocks: Sequence[Block]) -> list[BlockAnswer]:
        """One answer per block."""
        ...


def predictors(names: Sequence[str], machine: MachineModel) -> tuple[list[BlockPredictor], dict[str, str]]:
    """The predictors of these names, and why others are not there.

    Raises UsageError for a name that is none.
    """
    found, absent = [], {}
    for name in names:
        if name not in _MAKERS:
            raise UsageError(f"there is no predictor {name!r}", f"choose from {', '.join(PREDICTOR_NAMES)}")
        try:
            found.append(_MAKERS[name](machine))
        except (BackendUnavailable, UsageError) as error:
            absent[name] = str(error)
    return found, absent


class AblatedPredictor(NamedTuple):
    """One of our predictors, on a machine without what a probe found."""

    probe: str
    name: str
    predictor: BlockPredictor


def ablated(names: Sequence[str], machine: MachineModel) -> list[AblatedPredictor]:
    """Our own among these predictors without what each probe found that predictions use.

    Raises UsageError for a machine that no probe was asked about.
    """
    from cyclescope.probe.catalogue import NEEDED  # slow to import

    asked = {fact.probe for fact in machine.facts}
    own = [name for name in names if name in (ANALYTIC, SIMULATED)]
    found = [
        AblatedPredictor(probe, name, _MAKERS[name](without(machine, probe)))
        for probe in NEEDED if probe in asked
        for name in own
    ]  # fmt: skip
    if not found:
        raise UsageError(
            f"the model of {machine.name} has nothing that a probe found", "measure the machine first"
        )
    return found


def without(machine: MachineModel, probe: str) -> MachineModel:
    """A machine without what a probe found."""
    core = machine.core
    if probe == SCHEDULER:  # whose answers are kept as these
        core = msgspec.structs.replace(
            core, binding="", wakeup=None, single=(), writeback=None, ahead=False, rotating=(),
            schedulers=tuple(one for one in core.schedulers if not {*one.ports} <= {*core.rotating}),
        )  # fmt: skip
    facts = tuple(fact for fact in machine.facts if fact.probe != probe)
    return msgspec.structs.replace(machine, facts=facts, core=core)


@contextmanager
def cpu_seconds(taken: list[float]) -> Iterator[None]:
    """Append the CPU time of what is done inside, of this process and of those that it starts."""
    before = time.process_time() + _children()
    yield
    taken.append(time.process_time() + _children() - before)


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


# --- cyclescope's own ------------------------------------------------------------------------------


class OwnPredictor(ABC):
    """From machine code: reading it is part of the work."""

    def __init__(self, machine: MachineModel) -> None:
        self._predictor = Predictor(machine, stand_in_for(machine))
        self._vendor = vendor_of(machine.name)
        self.model = machine.name

    def answers(self, blocks: Sequence[Block]) -> list[BlockAnswer]:
        """One answer per block."""
        return [self._answer(block) for block in blocks]

    def _answer(self, block: Block) -> BlockAnswer:
        try:
            return self._of(self._read(block))
        except CyclescopeError as error:
            return BlockAnswer(None, reason=error.message)

    def of_code(self, code: bytes, isa: str) -> BlockAnswer:
        """The answer for machine code. Raises CyclescopeError."""
        return self._of(decoded(code, isa, self._vendor))

    def _read(self, block: Block) -> Block:
        """Machine code read again; objects have names and places that it alone does not tell."""
        if block.source != MACHINE_CODE:
            return block
        again = decoded(b"".join(one.code for one in block), block.isa, self._vendor)
        return placed(again, block.instructions[0].address, block.loop)

    @abstractmethod
    def _of(self, block: Block) -> BlockAnswer:
        """The answer for a block that was read."""


class Analytic(OwnPredictor):
    """The bounds alone."""

    name = ANALYTIC

    def _of(self, block: Block) -> BlockAnswer:
        return _told(self._predictor.estimate(block))


class Simulated(OwnPredictor):
    """The simulated core; what it does not simulate has no answer."""

    name = SIMULATED

    def _of(self, block: Block) -> BlockAnswer:
        found = self._predictor.bounds(block, simulate=self._predictor.machine.core.in_order)
        cycles = self._predictor.simulated(found.graph)
        if cycles is None:
            return BlockAnswer(None, reason=Unpredicted.NOT_SIMULATED.value)
        # It knows the last iteration alone, and divides instructions between cycles.
        unknown = (LOOP_CARRIED, FRONT_END, *(effect.name for effect in EFFECTS))
        cycles = max(cycles, *(found.deciding.get(name, 0.0) for name in unknown))
        greatest = max(bound for name, bound in found.deciding.items() if name != SCHEDULED)
        if abs(cycles - greatest) <= AVERAGING * greatest:  # so near, a run that ends somewhere says no more
            cycles = greatest
        upper = max(self._predictor.simulated(found.graph, late=True) or 0.0, cycles)
        return msgspec.structs.replace(_told(found.estimate(upper)), cycles=cycles)


def _told(found: BlockEstimate) -> BlockAnswer:
    return BlockAnswer(found.cycles, found.interval, found.lower, found.bottleneck, found.bounds)


# --- others ----------------------------------------------------------------------------------------


class LlvmMca:
    """llvm-mca's steady state on LLVM's model of the core; `cpu` and `program` where they are others."""

    name = LLVM_MCA

    def __init__(self, machine: MachineModel, cpu: str = "", program: str | None = None) -> None:
        self._backend = LlvmMcaBackend(cpu or llvm_name(machine), program, isa=machine.isa)
        self.model = self._backend.capabilities().description

    def answers(self, blocks: Sequence[Block]) -> list[BlockAnswer]:
        """One answer per block."""
        found = self._backend.steady([[_llvm(one) for one in block] for block in blocks])
        why = Unpredicted.NOT_TAKEN.value
        return [BlockAnswer(c, reason="" if c is not None else why) for c in found]


_SIZES = {16: "word ptr", 32: "dword ptr", 64: "qword ptr"}


def _llvm(one: BlockInstruction) -> str:
    """An instruction as LLVM reads it: branches go to a symbol that is never resolved, NOPs have a size."""
    operands = one.form.operands if one.form is not None else ()
    if any(op.kind == "branch" for op in operands):
        return f"{one.text.split()[0]} next"
    if one.form is not None and "nop" in one.form.attributes and any(op.is_memory for op in operands):
        return one.text.replace("[", f"{_SIZES.get(operands[0].width, '')} [", 1)
    return one.text


class OsacaPredictor:
    """OSACA's program: the greater of throughput and loop-carried dependency."""

    name = OSACA

    def __init__(self, machine: MachineModel) -> None:
        self._program = Osaca(llvm_name(machine), machine.isa)
        self.model = self._program.description

    def answers(self, blocks: Sequence[Block]) -> list[BlockAnswer]:
        """One answer per block."""
        found = (self._program.cycles(_att(block)) for block in blocks)
        return [BlockAnswer(c, reason=reason) for c, reason in found]


def _att(block: Block) -> list[str]:
    """The instructions as OSACA reads them best; other instruction sets have one syntax."""
    reader = decoder(block.isa, syntax="att" if instruction_set(block.isa).writing.att else "")
    return [reader.instruction(one.code, one.address).text for one in block]


def own_predictor(name: str, machine: MachineModel) -> OwnPredictor:
    """One of cyclescope's own predictors. Raises UsageError for another name."""
    if name not in _OWN:
        raise UsageError(f"there is no predictor {name!r} of our own", f"choose from {', '.join(_OWN)}")
    return _OWN[name](machine)


def llvm_name(machine: MachineModel) -> str:
    """LLVM's name of the core that a model is of. Raises UsageError where there is none."""
    name = machine.name.rpartition(" ")[2]
    if name in ("", "unknown"):
        raise UsageError(f"LLVM has no name for {machine.name}", "name a machine with {arch}")
    return name


_OWN: dict[str, Callable[[MachineModel], OwnPredictor]] = {ANALYTIC: Analytic, SIMULATED: Simulated}
_MAKERS: dict[str, Callable[[MachineModel], BlockPredictor]] = {
    ANALYTIC: Analytic, SIMULATED: Simulated, LLVM_MCA: LlvmMca, OSACA: OsacaPredictor,
}  # fmt: skip
