"""Latencies of links as a linear system.

Unknowns are the latencies of the links, equations the measured closed chains. A closed chain can
never tell how a round trip between two register files divides into its two directions: adding a
constant to all latencies one way and subtracting it the other way changes nothing that can be
measured. So every unknown has the tightest interval that the equations and the laws allow (linear
programs), and a value under named conventions that fix what cannot be measured:

* transfer: a move to a vector or floating-point register takes as long as the move back, or a cycle longer
  where there and back take an odd number of cycles;
* masks: the instruction that makes masks of vectors reads its vector and its mask operand together;
* loads: a load takes as long from the data, once stored, as from the address;
* x87: an x87 load takes as long from the data, once stored, as a vector load does;
* mmx: MOVD from an MMX register takes as long as VMOVD from a vector register;
* high bytes: both directions take the same time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from cyclescope.infer.timing.results import ABOVE, MOVED, TOLERANCE
from cyclescope.infer.timing.solver import LinearProgram, Optimum
from cyclescope.isa.registry import instruction_set
from cyclescope.kernel.cycle import MASK_SYNC, LinkKey

ONE_CYCLE = 1.0  # what no idiom takes less than; and what a link may take less in a chain than alone
GIVES_WAY = (
    0.2  # weight of a cycle by which a convention does not hold, to one of a chain; of the last one less
)
_THROUGH_ALL = (("r", "v"), ("r", "f"))  # links that restore the value: three dependent instructions
UNCUT = "uncut"  # convention: what cuts the link's chain hides that it does
SHARED = "transfer"  # the convention whose two sides share a round trip


class Equation(msgspec.Struct, frozen=True):
    """Sum of the latencies of `keys` (with repetition) in cycles; `name` is the chain's.

    It `is_sure` where rounds, and looks at other times, agree about the cycles.
    """

    keys: tuple[str, ...]
    cycles: float
    name: str = ""
    is_sure: bool = True


class LinkLatency(msgspec.Struct, frozen=True):
    """Latency of a link in cycles: the value used, what is proved, and the convention it rests on.

    It is `disputed` where it rests on chains that took different times at different times.
    """

    value: float
    least: float
    most: float
    convention: str = ""
    disputed: bool = False

    @property
    def determined(self) -> bool:
        """Whether closed chains determine the latency without a convention."""
        return self.most - self.least <= MOVED


def lower_bound(key: str, isa: str) -> float:
    """What a link takes at least: one cycle per dependent instruction."""
    link = LinkKey.read(key)
    if (link.source, link.target) in _THROUGH_ALL and not link.role:
        return 3 * ONE_CYCLE
    doubled = instruction_set(isa).links.doubled
    is_float = link.source == "restore" and link.detail.startswith("f")
    return 2 * ONE_CYCLE if key.startswith(doubled) and not is_float else ONE_CYCLE


def conventions(keys: Iterable[str], isa: str) -> list[tuple[str, str, str]]:
    """(convention, key, key it equals) for the keys at hand."""
    read = {key: LinkKey.read(key) for key in keys}
    known = read.keys()
    wanted = [
        *[
            (SHARED, key, way_back(link))
            for key, link in read.items()
            if link.role == SHARED and link.target in "vf"
        ],
        ("masks", "v>k", MASK_SYNC),
        ("mmx", "m>r", "v>r"),
        ("high bytes", "h>r", "r>h"),
    ]
    through = instruction_set(isa).links.through_vector
    stored = [(key, link) for key, link in read.items() if link.source == "mem" and key not in through]
    wanted += [("x87" if link.target == "x" else "loads", key, by_address(link)) for key, link in stored]
    return [(name, a, b) for name, a, b in wanted if {a, b} <= known]


def way_back(link: LinkKey) -> str:
    """The key of the move back from a vector register, or with the same bits from a floating-point one."""
    detail = "" if link.target == "v" else link.detail
    return LinkKey("", link.target, link.source, detail).text


def by_address(link: LinkKey) -> str:
    """The key of the load whose address takes part, for a link from memory; x87 loads as vectors do."""
    return LinkKey("load", "v" if link.target == "x" else link.target, "", link.detail).text


class LatencySystem:
    """Solves the equations with HiGHS."""

    def __init__(self, equations: Sequence[Equation], isa: str) -> None:
        self.isa = isa
        self.equations = list(equations)
        self.keys = sorted({k for e in equations for k in e.keys})

    def solve(self) -> dict[str, LinkLatency]:
        """Latency of every link."""
        slack = self._slack(self._program([]))
        fixed = conventions(self.keys, self.isa)
        return self._intervals(slack, fixed)

    def contradiction(self) -> float:
        """Cycles by which all chains together differ from what any latencies would make them take."""
        return self._minimise(self._program([]), dict.fromkeys(self._slack_columns(), 1.0)).cost

    # --- linear programs -------------------------------------------------------------------------

    def _program(self, extra: Sequence[tuple[str, str, str]], odd: Collection[str] = ()) -> LinearProgram:
        """Unknowns x, and per equation slacks u and v: sum x + u - v = measured.

        The conventions in `extra` have slacks as well: chains outweigh them. Keys that are `odd` take a cycle
        more than those they equal.
        """
        program = LinearProgram()
        for key in self.keys:
            program.unknown(lower_bound(key, self.isa))
        for _ in range(2 * len(self.equations)):
            program.unknown()
        position = {key: i for i, key in enumerate(self.keys)}
        for number, equation in enumerate(self.equations):
            counts: dict[int, float] = {}
            for key in equation.keys:
                counts[position[key]] = counts.get(position[key], 0.0) + 1.0
            first = len(self.keys) + 2 * number
            counts |= {first: 1.0, first + 1: -1.0}
            program.bound(equation.cycles, counts, equation.cycles)
        for number, (name, a, b) in enumerate(extra):
            first = len(self.keys) + 2 * (len(self.equations) + number)
            for _ in range(2):
                program.unknown()
            more = float(name == SHARED and a in odd)
            program.bound(more, {position[a]: 1.0, position[b]: -1.0, first: 1.0, first + 1: -1.0}, more)
        return program

    def _minimise(self, program: LinearProgram, costs: dict[int, float]) -> Optimum:
        program.charge(costs)
        return program.solve()

    def _slack_columns(self) -> range:
        start = len(self.keys)
        return range(start, start + 2 * len(self.equations))

    def _slack(self, program: LinearProgram) -> list[float]:
        """Smallest total slack, and with it how much slack each equation has."""
        costs = dict.fromkeys(self._slack_columns(), 1.0)
        values = self._minimise(program, costs).values
        start = len(self.keys)
        return [
            max(values[start + 2 * n] + values[start + 2 * n + 1], TOLERANCE * e.cycles)
            for n, e in enumerate(self.equations)
        ]

    def _intervals(self, slack: list[float], fixed: list[tuple[str, str, str]]) -> dict[str, LinkLatency]:
        free = self._bounded(slack, [])
        values = self._values(slack, fixed, ())
        shared = [a for name, a, _ in fixed if name == SHARED]
        odd = [a for a in shared if abs(values[self.keys.index(a)] % 1 - 0.5) < ABOVE]
        if odd:  # an odd number of cycles there and back
            values = self._values(slack, fixed, odd)
        result = {}
        for column, key in enumerate(self.keys):
            least = self._minimise(free, {column: 1.0}).cost
            most = self._minimise(free, {column: -1.0}).cost
            result[key] = LinkLatency(_whole(values[column], least, -most), least, -most)
        return {key: _named(key, link, self.isa) for key, link in result.items()}

    def _values(
        self, slack: list[float], fixed: list[tuple[str, str, str]], odd: Collection[str]
    ) -> list[float]:
        """A latency for every key, by the conventions."""
        program = self._bounded(slack, fixed, odd)
        costs = dict.fromkeys(self._slack_columns(), 1.0)
        first = self._slack_columns().stop
        costs |= {first + n: weight for n, weight in enumerate(_weights(len(fixed)))}
        return self._minimise(program, costs).values

    def _bounded(
        self,
        slack: list[float],
        extra: list[tuple[str, str, str]],
        odd: Collection[str] = (),
    ) -> LinearProgram:
        program = self._program(extra, odd)
        for number, limit in enumerate(slack):
            for side in (0, 1):
                column = len(self.keys) + 2 * number + side
                program.limit(column, 0.0, limit)
        return program


def _weights(count: int) -> Iterator[float]:
    """The weights of so many conventions, each twice: for what a key takes more, and less, than the other.

    Were they the same, there would be several optima, and noise would choose among values whole cycles apart.
    """
    for number in range(count):
        weight = GIVES_WAY * (1 - GIVES_WAY * number / count)
        yield from (weight, weight)


def _whole(value: float, least: float, most: float) -> float:
    """A latency is a whole number of cycles but for noise, unless it is the average of several paths."""
    nearest = float(round(value))
    return nearest if abs(value - nearest) <= MOVED and least <= nearest <= most else value


def _named(key: str, link: LinkLatency, isa: str) -> LinkLatency:
    """The link with the conventions its value rests on."""
    if link.determined:
        return link
    files = LinkKey.read(key).files
    names = []
    if "mem" in files or "x" in files:
        names.append("loads")
    if "k" in files:
        names.append("masks")
    through_vector = key in instruction_set(isa).links.through_vector
    transfers = ("v" in files and files != {"v", "k"}) or "f" in files
    if transfers or "x" in files or files in ({"r", "k"}, {"k"}) or through_vector:
        names.append("transfer")
    if "m" in files:
        names += ["mmx", "transfer"]
    if "x" in files:
        names.append("x87")
    if "h" in files:
        names.append("high bytes")
    return msgspec.structs.replace(link, convention=", ".join(dict.fromkeys(names)) or "least")
