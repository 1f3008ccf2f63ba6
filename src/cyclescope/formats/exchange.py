"""What goes in and out of other tools' files, and the checks that all readers share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

from cyclescope.errors import CyclescopeError
from cyclescope.isa.dataflow import overwritten, sources, targets
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import DEFAULT
from cyclescope.isa.table import Table
from cyclescope.model.machine import ASSUMED, PUBLISHED, Core, FormCost, MachineModel, Operation, Provenance

MOST_CYCLES = 1e6  # the slowest instructions of user space (CPUID in a VM) take some 1e5 cycles
MOST_PER_CYCLE = 64  # instructions: several times what the widest core can do
SHARE = 100  # forms, of which one has to reach the rate that a width is taken for
SHOWN = 60  # characters of a cell in a message
SENTENCE = 160  # characters of a reason, which may have a cell in it: two lines of a terminal


class FormatError(CyclescopeError):
    """A file that is not of its format, as a whole."""


class Item(msgspec.Struct, frozen=True):
    """Something of a file that was refused, or of a model that was left out: where, and why.

    Items of equal `reason` are counted together; `detail` is what differs from one to the next.
    """

    place: str
    reason: str
    detail: str = ""


class Exported(msgspec.Struct, frozen=True):
    """A file's contents, and what the format could not express."""

    text: str
    left_out: tuple[Item, ...] = ()


class Imported(msgspec.Struct, frozen=True):
    """The model that a file makes, and the cells that were refused."""

    model: MachineModel
    refused: tuple[Item, ...] = ()


class ImportRequest(msgspec.Struct, frozen=True):
    """What the reader of a file has to know beside it.

    `machine` is the name that the model gets, `column` which machine of a file with several is meant,
    `isa` the instruction set of a file that does not say it, `source` what the provenance calls the file.
    """

    machine: str
    source: str
    column: str = ""
    isa: str = DEFAULT


def shortened(text: str, most: int = SHOWN) -> str:
    """A cell for a message: printable, and no longer than a line."""
    plain = "".join(c if c.isprintable() else "?" for c in text[: most + 1])
    return plain if len(plain) <= most else f"{plain[:most]}..."


def exact(value: float) -> str:
    """A number with all of its digits, whole ones without a point."""
    return str(int(value)) if value == int(value) else repr(value)


def cycles(text: object) -> float:
    """A number of cycles. Raises ValueError with the reason for what cannot be one."""
    try:
        value = float(str(text).strip())
    except ValueError:
        raise ValueError(f"{shortened(str(text))!r} is no number") from None
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{value:g} cycles")
    if value > MOST_CYCLES:
        raise ValueError(f"{value:g} cycles: more than any instruction takes")
    return value


def rate(text: object) -> float:
    """A reciprocal throughput. Raises ValueError with the reason for what cannot be one."""
    value = cycles(text)
    if value < 1 / MOST_PER_CYCLE:
        raise ValueError(f"a throughput of {value:g} cycles: more than {MOST_PER_CYCLE} a cycle")
    return value


class Draft:
    """A machine model in the making: what a file says of forms, and what of it was refused."""

    def __init__(self, table: Table, request: ImportRequest) -> None:
        self.table = table
        self.request = request
        self.refused: list[Item] = []
        self.notes: list[str] = []
        self.ports: list[str] = []
        self._costs: dict[str, FormCost] = {}
        self._pairs: dict[str, frozenset[str]] = {}

    def refuse(self, place: str, reason: str, detail: str = "") -> None:
        """Something of the file that does not enter the model."""
        self.refused.append(Item(shortened(place), shortened(reason, SENTENCE), shortened(detail, SENTENCE)))

    def add(self, form: InstructionForm, **what: object) -> None:
        """More of what a form costs; fields of `FormCost`."""
        cost = self._costs.get(form.id, FormCost())
        self._costs[form.id] = msgspec.structs.replace(cost, **what)

    def has(self, form: InstructionForm) -> bool:
        """Whether anything is known of a form yet."""
        return form.id in self._costs

    def cost(self, form: InstructionForm) -> FormCost | None:
        """What is known of a form so far."""
        return self._costs.get(form.id)

    def latency(self, form: InstructionForm, pair: str, least: float, most: float) -> None:
        """A pair's latency; from `least` to `most` where they differ. Unknown pairs are refused."""
        if pair not in self._known(form):
            self.refuse(form.id, "the form has no such pair", pair)
            return
        cost = self._costs.get(form.id, FormCost())
        if least == most:
            self.add(form, latencies={**cost.latencies, pair: most})
        else:
            self.add(form, ranges={**cost.ranges, pair: (least, most)})

    def proved(self, form: InstructionForm, pair: str, least: float, most: float) -> None:
        """What is proved of a pair whose value rests on a convention."""
        if pair in self._known(form):
            self.add(form, ranges={**self._costs[form.id].ranges, pair: (least, most)})

    def _known(self, form: InstructionForm) -> frozenset[str]:
        found = self._pairs.get(form.id)
        if found is None:
            names = (f"{s.name}->{t.name}" for s in sources(form) for t in targets(form))
            old = (f"{pair.source.name}->{pair.target.name}" for pair in overwritten(form))
            found = self._pairs[form.id] = frozenset((*names, *old))
        return found

    def register_pairs(self, form: InstructionForm) -> list[str]:
        """The pairs that a single number can be the latency of: from registers to registers."""
        return [
            f"{s.name}->{t.name}"
            for s in sources(form) for t in targets(form) if (s.part, t.part) == ("register", "register")
        ]  # fmt: skip

    def port(self, name: str) -> int:
        """The index of a port, which is added if it is new."""
        if name not in self.ports:
            self.ports.append(name)
        return self.ports.index(name)

    def imported(self, core: Core | None = None) -> Imported:
        """The model so far. Raises FormatError where the file has nothing of it."""
        costs = {name: cost for name, cost in self._costs.items() if _says_something(cost)}
        if not costs:
            why = f"{len(self.refused)} cells were refused" if self.refused else "it names no known form"
            raise FormatError(f"{self.request.source} has no value of any instruction", why)
        model = MachineModel(
            self.request.machine, self.table.isa, self._provenance(), core or self._core(costs),
            tuple(self.ports), costs,
        )  # fmt: skip
        return Imported(model, tuple(self.refused))

    def _provenance(self) -> Provenance:
        return Provenance(PUBLISHED, self.request.source, notes=tuple(self.notes))

    def _core(self, costs: Mapping[str, FormCost]) -> Core:
        """A rate that many forms reach is no more than the width."""
        return Core(float(highest_rate(costs.values())), width_kind=ASSUMED)


def highest_rate(costs: Iterable[FormCost]) -> int:
    """Instructions a cycle, rounded, that one form in `SHARE` reaches: a lower bound of the width.

    Not the fastest form's: single values of published tables are wrong, and mostly too fast.
    """
    fastest = sorted(cost.throughput for cost in costs if cost.throughput)
    return max(1, round(1 / fastest[len(fastest) // SHARE])) if fastest else 1


def _says_something(cost: FormCost) -> bool:
    return cost != FormCost()


def operation(names: Iterable[str], count: float, draft: Draft, busy: float = 1) -> Operation:
    """Equal micro-operations for ports with these names."""
    return Operation(tuple(sorted(draft.port(name) for name in names)), count, busy)
