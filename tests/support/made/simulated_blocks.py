"""A backend that times basic blocks on the simulated core of a machine model: known truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.backend.base import OK, BlockEffort, BlockSample
from cyclescope.kernel.kernel import Kernel
from cyclescope.model.machine import MachineModel
from cyclescope.session.blocks import decoded


def sample(cycles: float = 1.0, status: int = OK, **more) -> BlockSample:
    return BlockSample(cycles, 0.0, more.pop("linearity", 1.0), status, **more)


class SimulatedBlocks:
    """`change` makes other samples of the true cycles, by the number of the pass over the block."""

    def __init__(
        self,
        machine: MachineModel,
        change: Callable[[Kernel, int, float], BlockSample] = lambda kernel, number, cycles: sample(cycles),
    ) -> None:
        self._predictor = Predictor(machine)
        self._change = change
        self.passes: dict[bytes, int] = {}

    def blocks(self, kernels: Sequence[Kernel], effort: BlockEffort) -> list[BlockSample]:
        return [self._timed(kernel) for kernel in kernels]

    def _timed(self, kernel: Kernel) -> BlockSample:
        number = self.passes.get(kernel.code, 0)
        self.passes[kernel.code] = number + 1
        graph = self._predictor.graph(decoded(kernel.code, self._predictor.machine.isa).instructions)
        cycles = self._predictor.simulated(graph)
        assert cycles is not None
        return self._change(kernel, number, cycles)
