"""Cores with caches, translations, predictors and a cache of decoded code of drawn sizes, beside a neighbour.

They are asked as hardware is: kernels in, samples out. What a kernel takes follows from the places that it
touches and the branches that it takes, set by set, and from nothing that a probe knows.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy

from benchmarks.drawn.traces import Trace, instruction_sizes, traced
from cyclescope.backend.base import OK, UNCLEAN, Calibration, Capabilities, Effort, Outcome, Sample
from cyclescope.kernel.kernel import CANARY, Kernel
from cyclescope.probe.code import NUMBERS

ISA = "x86-64"
_PAGE, _CODE_LINE = 4096, 64
_LETTERS = NUMBERS[ISA]


class Sets(NamedTuple):
    """A structure of so many sets and ways; `policy` says what of a set with too much in it is kept."""

    sets: int
    ways: int
    policy: str = "lru"

    @property
    def size(self) -> int:
        """Places in all."""
        return self.sets * self.ways

    def without(self, share: float) -> Sets:
        """What a neighbour leaves."""
        return self._replace(ways=max(self.ways - round(share * self.ways), 1))

    def missed(self, places: numpy.ndarray, visits: float = 1.0) -> numpy.ndarray:
        """The share of the visits to each place that find it gone, walked round and round.

        Places with more than one visit a round have them at any time: what was there last may be still.
        """
        number = places % self.sets
        crowd = numpy.bincount(number)[number]
        if visits > 1:
            return numpy.maximum(1 - self.ways / crowd, 0.0)
        return numpy.array([_gone(int(n), self.ways, self.policy) for n in range(crowd.max() + 1)])[crowd]


@cache
def _gone(crowd: int, ways: int, policy: str) -> float:
    """The share of a set's visits that miss, of so many places in it."""
    if crowd <= ways:
        return 0.0
    if policy == "lru":
        return 1.0
    if policy == "protected":
        return (crowd - ways + 1) / crowd
    rate = 1.0
    for _ in range(200):  # random: what was there stays with this chance until the next visit
        rate = 1 - (1 - 1 / ways) ** (rate * (crowd - 1))
    return rate


class Neighbour:
    """Comes and goes; while it is there, samples are slower by what it does, and canaries mostly tell."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.stays = draw.choice((5, 50, 500))  # samples, on average
        self.share = draw.uniform(0, 0.6)  # of the time
        self.leak = draw.uniform(0, 0.06)
        self.there, self.slower, self.chains, self.taken = False, 1.0, 1.0, 0.0

    def step(self) -> None:
        """One sample later."""
        often = self.share if self.there is False else 1 - self.share
        if self.draw.random() < often / self.stays:
            self.there = not self.there
            self.slower, self.chains = self.draw.uniform(1.05, 2), self.draw.uniform(1, 1.04)
            self.taken = self.draw.choice((0.0, 0.25, 0.5))


class DrawnCore:
    """A backend with structures of its own."""

    def __init__(self, seed: int, noisy: bool = True) -> None:
        draw = self.draw = random.Random(seed)
        self.seed, self.noisy = seed, noisy
        self.neighbour = Neighbour(draw)
        self.jitter = draw.uniform(0.0005, 0.003)
        self._draw_memory(draw)
        self._draw_branches(draw)
        self._draw_code(draw)
        self._submitted: deque[tuple[tuple[Kernel, ...], Effort]] = deque()
        self._known: dict[tuple[bytes, bytes, int, float], float] = {}
        self._states: dict[int, object] = {}

    # --- what is drawn ----------------------------------------------------------------------------

    def _draw_memory(self, draw: random.Random) -> None:
        policies = ("lru", "lru", "protected", "random")
        self.line = draw.choice((64, 64, 64, 64, 128))
        sets = draw.choice((32, 64, 64, 128, 256))
        self.first = Sets(sets, draw.choice((4, 6, 8, 8, 10, 12, 16)), draw.choice(policies))
        self.second = Sets(
            draw.choice((512, 1024, 2048, 4096)), draw.choice((4, 8, 12, 16, 20)), draw.choice(policies)
        )
        self.third = Sets(1 << draw.randint(13, 16), draw.choice((11, 12, 16, 20)), draw.choice(policies))
        self.is_virtual = draw.random() < 0.7  # what chooses a set of the first level
        self.is_even = draw.random() < 0.4  # pages lie one after the other, as in large ones
        self.loads = (
            draw.choice((3.0, 4.0, 5.0)),
            draw.randint(10, 18),
            draw.randint(28, 60),
            draw.randint(150, 400),
        )
        self.entries = draw.choice(
            (Sets(1, draw.randint(24, 128)), Sets(8, 8), Sets(16, 4), Sets(16, 6), Sets(1, 64))
        )
        self.more_entries = Sets(draw.choice((64, 128, 256)), draw.choice((6, 8, 12)))
        self.entry_miss, self.table_walk = draw.randint(5, 9), draw.randint(18, 40)
        self.own_pages = draw.choice((0, 1, 1))  # of what times
        frames = random.Random(draw.random())
        self.frames = numpy.array([frames.randrange(1 << 20) for _ in range(1 << 14)])

    def _draw_branches(self, draw: random.Random) -> None:
        self.paired = draw.random() < 0.3  # two branches of a line share a place
        self.shift = draw.choice((0, 1, 3, 4, 5, 6)) if not self.paired else 6
        self.targets = Sets(draw.choice((32, 64, 128, 256, 512)), draw.choice((2, 4, 4, 6, 8)))
        self.more_targets = Sets(self.targets.sets * draw.choice((2, 4, 8)), draw.choice((4, 6, 8)))
        self.known_jump, self.far_jump = draw.choice((1.0, 1.0, 2.0)), draw.randint(2, 6)
        self.unknown_jump, self.wrong = draw.randint(8, 16), draw.uniform(10, 25)
        self.returns, self.overflow = (
            draw.randint(8, 64),
            draw.choice(("circle", "circle", "full", "lost", "repaired")),
        )
        self.trips, self.soft_trips = draw.randint(6, 300), draw.choice((1.0, 1.0, 1.2))
        self.pattern, self.turns = 1 << draw.randint(5, 15), 1 << draw.randint(2, 8)
        self.half_learned = draw.choice((0.0, 0.0, 0.4, 0.7))  # share of what one power more costs

    def _draw_code(self, draw: random.Random) -> None:
        self.code_lines = draw.choice((32, 32, 64)) * 1024 // _CODE_LINE
        self.window = draw.choice((32, 64))  # bytes of code that places of decoded instructions are of
        self.each, self.most = (
            draw.choice((6, 8, 8, 9, 10)),
            draw.choice((4, 6, 8)),
        )  # instructions of a place, places of a window
        self.kept = Sets(draw.choice((32, 64)), draw.choice((8, 8, 12)))
        self.width, self.decoders = draw.choice((4, 6, 8)), draw.choice((2, 4, 4))
        self.fetched, self.line_cost = draw.choice((16, 32)), draw.randint(3, 8)
        self.switch = draw.choice((0.0, 1.0, 4.0))  # cycles from decoded code to other

    # --- a backend --------------------------------------------------------------------------------

    def capabilities(self) -> Capabilities:
        """What it is."""
        return Capabilities(ISA, f"core {self.seed}", 0, "drawn", real_time=False)

    def calibrate(self) -> Calibration:
        """The clock counts cycles."""
        return Calibration(1.0, 1.0, 100.0, 1.0, 0.0, 1e-9)

    def submit(self, kernels: Sequence[Kernel], effort: Effort) -> None:
        """Take a batch."""
        self._submitted.append((tuple(kernels), effort))

    def collect(self) -> list[list[Sample]]:
        """Samples of the oldest batch, round by round, as the runner takes them."""
        kernels, effort = self._submitted.popleft()
        found: list[list[Sample]] = [[] for _ in kernels]
        for _ in range(effort.rounds):
            order = list(range(len(kernels)))
            self.draw.shuffle(order)
            for number in order:
                found[number].append(self._sample(kernels[number], effort))
        return found

    def probe(self, kernels: Sequence[Kernel]) -> list[Outcome]:
        """Everything runs."""
        return [Outcome(OK) for _ in kernels]

    def close(self) -> None:
        """Nothing is held."""

    def _sample(self, kernel: Kernel, effort: Effort) -> Sample:
        other, status = self.neighbour, OK
        if self.noisy:
            other.step()
        there = self.noisy and other.there
        cycles = self.cycles(kernel, other.taken if there else 0.0)
        if there:
            cycles *= other.slower if kernel.flags & CANARY else other.chains
            if kernel.flags & CANARY and self.draw.random() >= other.leak:
                status = UNCLEAN
        cycles *= self.draw.gauss(1, self.jitter)
        many = effort.maximum if status == UNCLEAN else 0
        accepted = effort.want if status == OK else 0
        return Sample(cycles, self.jitter * cycles, status, accepted=accepted, rejected=many, disturbed=many)

    # --- what a kernel takes -----------------------------------------------------------------------

    def cycles(self, kernel: Kernel, taken: float = 0.0) -> float:
        """Cycles of a body, while a neighbour takes so much of the caches."""
        taken = taken if kernel.body[0].form.id == "MOV (R64, M64)" else 0.0
        key = kernel.code, kernel.setup, id(kernel.state), taken
        if key not in self._known:
            self._states[id(kernel.state)] = kernel.state  # its number stays its own
            self._known[key] = self._cycles(kernel, taken)
        return self._known[key]

    def _cycles(self, kernel: Kernel, taken: float) -> float:
        kinds = Counter(one.form.id for one in kernel.body)
        loads = kinds["MOV (R64, M64)"]
        if kernel.state.chain[0]:
            count, apart = kernel.state.chain
            return loads * self._walk(numpy.arange(count) * apart, taken)
        if loads == len(kernel.body):
            return loads * self._walk(_circle(kernel, loads), taken)
        if kinds["SHR (R64, I8)"] and kinds["IMUL (R64, R64)"]:
            return self._pattern(kernel)
        if kinds["JS (Rel8)"]:
            unknown = "test rax, rax" in kernel.body[2].text
            return kinds["JS (Rel8)"] * (4.0 + self.wrong / 2 * unknown)
        if all(kind.startswith(("NOP", "LEA_B")) for kind in kinds):
            return self._decoded(instruction_sizes(kernel))
        return self._run(kernel)

    def _walk(self, places: numpy.ndarray, taken: float) -> float:
        """A load of a walk through these places, in random order."""
        pages = places // _PAGE
        frames = pages if self.is_even else self.frames[pages % len(self.frames)]
        there = (frames * _PAGE + places % _PAGE) // self.line
        line = places // self.line
        lines, back = numpy.unique(line, return_inverse=True)
        _, first = numpy.unique(line, return_index=True)
        own = lines if self.is_virtual else there[first]
        often = len(places) / len(lines)
        gone = self.first.without(taken).missed(own, often)[back]
        further = numpy.minimum(self.second.without(taken).missed(there[first], often)[back], gone)
        mixed = there[first] * 2654435761 % (1 << 32) >> 8
        away = numpy.minimum(self.third.without(taken).missed(mixed, often)[back], further)
        near, second, third, memory = self.loads
        every = near + gone * (second - near) + further * (third - second) + away * (memory - third)
        return float(every.mean() + self._translated(pages, taken))

    def _translated(self, pages: numpy.ndarray, taken: float) -> float:
        every, back = numpy.unique(pages, return_inverse=True)
        with_own = numpy.concatenate([every, every.max() + 1 + numpy.arange(self.own_pages)])
        often = len(pages) / len(every)
        gone = self.entries.without(taken).missed(with_own, often)[: len(every)]
        away = numpy.minimum(self.more_entries.without(taken).missed(every, often), gone)
        return float((gone * self.entry_miss + away * self.table_walk)[back].mean())

    def _decoded(self, sizes: numpy.ndarray) -> float:
        """Instructions of so many bytes each, one after the other and again."""
        begins = numpy.cumsum(sizes) - sizes
        windows = -(-int(sizes.sum()) // self.window)
        in_window = numpy.bincount(begins // self.window, minlength=windows)
        places = -(-in_window // self.each)
        wanted = numpy.bincount(numpy.arange(windows) % self.kept.sets, places)
        fits = (wanted[numpy.arange(windows) % self.kept.sets] <= self.kept.ways) & (places <= self.most)
        each = numpy.maximum(numpy.maximum(1 / self.decoders, sizes / self.fetched), 1 / self.width)
        is_kept = fits[begins // self.window]
        cycles = is_kept.sum() / self.width + each[~is_kept].sum()
        cycles += self.switch * numpy.abs(numpy.diff(fits.astype(int))).sum()
        return float(cycles) + self._code_lines(numpy.arange(-(-int(sizes.sum()) // _CODE_LINE)))

    def _code_lines(self, lines: numpy.ndarray) -> float:
        """What lines take that are not in the first cache of code."""
        return float(Sets(64, self.code_lines // 64).missed(lines).sum() * self.line_cost)

    def _pattern(self, kernel: Kernel) -> float:
        """Branches, or jumps to several targets, that come again after so many."""
        select = kernel.state.general[_LETTERS["g"]]
        is_jump = any(one.form.id == "JMP (R64)" for one in kernel.body)
        bits = (select >> 5).bit_count() if is_jump else (select >> 5).bit_length()
        if any(one.text.endswith(", 40") for one in kernel.body):
            share = 1.0
        else:
            known = self.turns if is_jump else self.pattern
            length = 1 << bits if bits else 1
            share = 0.0 if length <= known else self.half_learned if length <= 2 * known else 1.0
            share = share or float(length > known)
        cost = self.wrong * (1 - 2**-4 if is_jump else 0.5)
        return 1024 * (6.0 + share * cost)

    def _run(self, kernel: Kernel) -> float:
        """Code with branches."""
        trace = traced(kernel)
        jumps = numpy.array(trace.jumps or [0])
        each = self._jumped(jumps)
        if trace.trips:
            own = trace.chain + self.known_jump
            limit, soft = self.trips, self.trips * self.soft_trips
            wrong = 0.0 if trace.trips <= limit else 0.5 if trace.trips <= soft else 1.0
            return own + wrong * self.wrong
        if trace.chain and not trace.jumps:
            return float(trace.chain)
        lines = numpy.unique(numpy.array(trace.places) // _CODE_LINE)
        serial = 30.0 if trace.is_serial else 0.0
        return serial + each + self.wrong * self._returned(trace) + self._code_lines(lines)

    def _jumped(self, jumps: numpy.ndarray) -> float:
        """Taken branches at these places."""
        every, back = numpy.unique(jumps, return_inverse=True)
        if self.paired:
            own = every // _CODE_LINE
            _, rank = numpy.unique(own, return_index=True)
            inside = numpy.arange(len(every)) - rank[numpy.searchsorted(own[rank], own)]
            entries, index = numpy.unique(own * 64 + inside // 2, return_inverse=True)
            near = self.targets.missed(entries // 64)[index][back]
            far = self.more_targets.missed(entries // 64)[index][back]
        else:
            near = self.targets.missed(every >> self.shift)[back]
            far = self.more_targets.missed(every >> self.shift)[back]
        far = numpy.minimum(near, far)
        return float((self.known_jump + near * self.far_jump + far * self.unknown_jump).sum())

    def _returned(self, trace: Trace) -> int:
        """Returns of the second time that are predicted wrongly."""
        stack: list[int | None] = [None] * self.returns
        top = held = wrong = 0
        last: dict[int, int] = {}
        for time in range(3):
            for kind, at, to in trace.calls:
                if kind == "call":
                    if self.overflow == "full" and held >= self.returns:
                        held += 1
                        continue
                    if self.overflow == "lost" and held >= self.returns:
                        stack, held = [None] * self.returns, 0
                    stack[top % self.returns] = to
                    top, held = top + 1, held + 1
                    continue
                said: int | None = None
                if self.overflow == "full" and held > self.returns:
                    held -= 1
                elif held > 0 or self.overflow == "circle":
                    top, held = top - 1, max(held - 1, 0)
                    said = stack[top % self.returns]
                if self.overflow == "repaired" and said != to:
                    said = last.get(at)
                wrong += time == 2 and said != to
                last[at] = to
        return wrong

    # --- what is right -----------------------------------------------------------------------------

    def truth(self, probe: str, subject: str) -> tuple[float, float] | None:
        """The least and the most that an answer may be, None where no number is right."""
        known = (self.targets.size, self.more_targets.size)
        twice = 1 + self.paired
        near, second, third, _ = self.loads
        more = self.entry_miss + self.table_walk
        sizes = [level.size * self.line / 1024 for level in (self.first, self.second, self.third)]
        ways = (self.first.ways, self.first.sets * self.first.ways * self.line / 1024, self.line)
        ends = dict(zip(("ways", "size", "line"), ways, strict=True))
        every = {
            ("caches", "first level, size"): (sizes[0],) * 2,
            ("caches", "second level, size"): (sizes[1],) * 2,
            ("caches", "third level, size"): (sizes[2],) * 2,
            ("caches", "first level, load"): (near, near),
            ("caches", "second level, load"): (second, second + more),
            ("caches", "third level, load"): (third, third + more),
            **{("cache-sets", f"first level, {what}"): (value,) * 2 for what, value in ends.items()},
            ("pages", "first level, entries"): (self.entries.size - self.own_pages, self.entries.size),
            ("pages", "first level, miss"): (self.entry_miss,) * 2,
            ("branch-targets", "first level, jumps"): (known[0] * twice,) * 2,
            ("branch-targets", "second level, jumps"): (known[1] * twice,) * 2,
            ("branch-targets", "first level, each"): (self.known_jump,) * 2,
            ("branch-targets", "second level, each"): (self.known_jump + self.far_jump,) * 2,
            ("return-stack", "calls inside each other"): (self.returns,) * 2,
            ("loop-counts", "trips of a loop"): (self.trips, int(self.trips * self.soft_trips)),
            ("branch-patterns", "pattern of one branch"): (self.pattern,) * 2,
            ("branch-patterns", "targets of one jump, in turn"): (self.turns,) * 2,
            ("decoded", "instructions"): (self.kept.size * self.each,) * 2,
        }
        if probe == "decoded" and subject.endswith("decoded"):
            size = int(subject.split(maxsplit=1)[0])
            rate = 1 / max(1 / self.decoders, size / self.fetched, 1 / self.width)
            return rate, rate
        return every.get((probe, subject))


def _circle(kernel: Kernel, count: int) -> numpy.ndarray:
    """Places of lines that a setup links: half of them a step apart, another step, and the other half."""
    step, between = (kernel.state.general[_LETTERS[letter]] for letter in "ef")
    half = -(-count // 2)
    places = numpy.arange(count) * step
    places[half:] += between - step
    return places
