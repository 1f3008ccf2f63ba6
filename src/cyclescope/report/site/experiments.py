"""The kernels behind a machine's numbers, small enough for one page.

A store of a full run has half a million kernels, most of them the same blocking instructions around
instances of a form. An instruction is written once, with its bytes: for the whole machine where several
forms' kernels have it, else for the form. A kernel is the numbers of its instructions, and those of forms
alike have the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cyclescope.analyze.decode.decoder import decoder
from cyclescope.errors import BackendUnavailable
from cyclescope.infer.timing.results import rounded
from cyclescope.measure.kernels import ShownKernel
from cyclescope.report.site.packing import Words

SEVERAL = 4  # forms whose kernels have an instruction before it is written for the whole machine
Instruction = tuple[str, bytes]  # assembly and machine code


class Splitter:
    """Divides kernels into instructions with their bytes."""

    def __init__(self, isa: str) -> None:
        self._isa = isa
        self._known: dict[str, bytes] = {}

    def split(self, kernel: ShownKernel) -> list[Instruction]:
        """The instructions; what cannot be divided is one."""
        return self._remembered(kernel) or self._decoded(kernel) or [("\n".join(kernel.lines), kernel.code)]

    def _remembered(self, kernel: ShownKernel) -> list[Instruction]:
        """From lines that were met, where their bytes make up the code."""
        parts = [self._known.get(line) for line in kernel.lines]
        found = [(line, part) for line, part in zip(kernel.lines, parts, strict=True) if part is not None]
        whole = len(found) == len(parts) and b"".join(part for _, part in found) == kernel.code
        return found if whole else []

    def _decoded(self, kernel: ShownKernel) -> list[Instruction]:
        try:
            ends = [step.end for step in decoder(self._isa).steps(kernel.code, 0)]
        except BackendUnavailable:
            return []
        if len(ends) != len(kernel.lines) or ends[-1:] != [len(kernel.code)]:
            return []
        parts = [kernel.code[a:b] for a, b in zip([0, *ends], ends, strict=False)]
        self._known.update(zip(kernel.lines, parts, strict=True))
        return list(zip(kernel.lines, parts, strict=True))


class Experiments:
    """Writes the kernels of forms; `shared` are the instructions of the whole machine so far."""

    def __init__(self, isa: str) -> None:
        self.shared: dict[Instruction, int] = {}
        self._splitter = Splitter(isa)
        self._met: dict[Instruction, int] = {}

    def lines(self) -> list[tuple[str, str]]:
        """The shared instructions in the order of their numbers, the bytes in hexadecimal."""
        return [(text, code.hex()) for text, code in self.shared]

    def of(self, kernels: Sequence[ShownKernel], words: Words, shapes: Words) -> dict[str, object]:
        """Columns of a form's experiments; `shapes` are kernels as numbers, less than 0 for own ones."""
        own: dict[Instruction, int] = {}
        split = [self._splitter.split(kernel) for kernel in kernels]
        columns = list(zip(*(_row(kernel, words) for kernel in kernels), strict=True))
        shape = [shapes.number(" ".join(self._numbers(one, own))) for one in split]
        self._count(own)
        ids = [kernel.record.id for kernel in kernels]
        steps = [b - a for a, b in zip([0, *ids], ids, strict=False)]
        return {"ids": steps, "rows": columns, "shapes": shape, "own": [(t, c.hex()) for t, c in own]}

    def _numbers(self, kernel: Sequence[Instruction], own: dict[Instruction, int]) -> Iterator[str]:
        for one in kernel:
            known = self.shared.get(one)
            yield str(known if known is not None else -1 - own.setdefault(one, len(own)))

    def _count(self, own: dict[Instruction, int]) -> None:
        """Note that one more form has these; from the next one on they may be shared."""
        for one in own:
            self._met[one] = self._met.get(one, 0) + 1
            if self._met[one] == SEVERAL:
                self.shared[one] = len(self.shared)
                del self._met[one]


def _row(kernel: ShownKernel, words: Words) -> tuple[object, ...]:
    """What is said of a kernel: question, answer, what is subtracted, what went wrong."""
    record = kernel.record
    return (
        words.number(record.quantity), words.number(record.source), words.number(record.target),
        words.number(record.variant), rounded(record.cycles), round(record.spread, 2), record.count,
        words.number(record.verdict), words.number(" ".join(record.links)), words.number(record.error),
    )  # fmt: skip
