"""What a full run covers: forms tried and executed, throughputs, operand pairs, and the reasons of the rest.

Left out of the forms that the CPU executes are those that user space cannot measure; the rule is the
product's own, `cyclescope.isa.x86_64.unmeasurable` (system instructions, processor state, far
control flow), and every form it names is counted here with its reason. A form that faults in another
way than as an illegal instruction is one the CPU executes: unless the rule names it, it counts as
executed and as not measured.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from benchmarks.lib.common import Check, at_least, at_most, parser, present, table
from benchmarks.lib.processes import Laboratory
from benchmarks.lib.results import forms, machine, read
from cyclescope.backend.base import without_address
from cyclescope.infer.timing.results import INTERVAL, UPPER_BOUND, FormTiming, Latency
from cyclescope.isa.dataflow import pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.x86_64.unmeasurable import unmeasurable

_NUMBER = re.compile(r"-?\d+\.\d+")
WIDE = 0.5  # cycles
THROUGHPUTS, VALUES, INTERVALS = 0.99, 0.95, 0.03
FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGTRAP")  # not SIGILL, and not what never ran
Measured = Sequence[tuple[InstructionForm, FormTiming]]


class Special(msgspec.Struct, frozen=True):
    """A kind of form that needs kernels of its own, and the sequences that must be there."""

    name: str
    has: Callable[[InstructionForm], bool]
    variants: tuple[str, ...] = ()


def _with(*attributes: str) -> Callable[[InstructionForm], bool]:
    return lambda form: not form.attributes.isdisjoint(attributes)


def _named(*prefixes: str) -> Callable[[InstructionForm], bool]:
    return lambda form: form.mnemonic.startswith(prefixes)


SPECIAL = (
    Special("conditional jumps", _with("conditional_branch"), ("not taken", "taken")),
    Special("LOOP and JRCXZ", _named("LOOP", "JRCXZ", "JECXZ"), ("not taken", "taken")),
    Special("calls and returns", _with("call", "return"), ("with its return",)),
    Special("push", _named("PUSH")),
    Special("pop", lambda form: form.mnemonic in ("POP", "POPF", "POPFQ")),
    Special("strings", _with("string")),
    Special("repeated strings", _with("rep", "repne"), ("count",)),
    Special("x87", _with("x87")),
)


# --- forms -----------------------------------------------------------------------------------------


def executed(found: Iterable[FormTiming]) -> Measured:
    """Forms that the CPU executes, be it with a fault, with their timing."""
    every = zip(forms(), found, strict=True)
    return [(f, t) for f, t in every if t.status == "ok" or t.status.startswith(FAULTS)]


def form_checks(found: Sequence[FormTiming]) -> list[Check]:
    """Tried, executed, left out, with a throughput."""
    tried = [t for t in found if t.status != "not run"]
    outcomes = Counter(without_address(t.status) for t in found)
    print(
        "Outcome of running each form once:\n\n" + table(("outcome", "forms"), outcomes.most_common()) + "\n"
    )
    ran = executed(found)
    left_out = Counter(reason for form, _ in ran if (reason := unmeasurable(form)))
    print("Executed, but left out:\n\n" + table(("reason", "forms"), left_out.most_common()) + "\n")
    measurable = [(f, t) for f, t in ran if not unmeasurable(f)]
    valued = [t for _, t in measurable if _throughput(t) is not None]
    kinds = Counter(t.throughput.kind for t in valued if t.throughput)
    lost = [(t.id, _reason(t)) for _, t in measurable if _throughput(t) is None]
    print("Executed, but without a throughput:\n\n" + table(("form", "reason"), lost) + "\n")
    silent = [name for name, reason in lost if not reason]
    return [
        at_least("forms of the table tried", len(tried), len(found), 1.0),
        Check("executed, of these left out", f"{len(ran)}, {sum(left_out.values())}"),
        at_least("forms with a throughput", len(valued), len(measurable), THROUGHPUTS),
        Check("kinds of throughput", _counted(kinds)),
        Check("forms without a throughput or a reason", _some(silent), "none", not silent),
    ]


def _throughput(timing: FormTiming) -> float | None:
    return timing.throughput.value if timing.throughput else None


def _reason(timing: FormTiming) -> str:
    return timing.throughput.reason if timing.throughput else timing.status


def _counted(counts: Counter[str | None]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.most_common())


def _some(names: Sequence[str]) -> str:
    return f"{len(names)}: {', '.join(names[:3])}" if names else "none"


# --- forms with kernels of their own ---------------------------------------------------------------


def special_checks(ran: Measured) -> list[Check]:
    """Branches, calls, stack, strings and x87 all have values."""
    return [check for special in SPECIAL for check in _special(special, ran)]


def _special(special: Special, ran: Measured) -> list[Check]:
    some = [(f, t) for f, t in ran if special.has(f) and not unmeasurable(f)]
    if not some:
        return [Check(special.name, "no such form executed")]
    good = [t for _, t in some if _throughput(t) is not None and _has_variants(t, special.variants)]
    example = next((_shown(t) for t in good), "")
    check = at_least(special.name, len(good), len(some), 1.0)
    return [msgspec.structs.replace(check, found=f"{check.found}; {example}")]


def _has_variants(timing: FormTiming, wanted: Iterable[str]) -> bool:
    found = timing.throughput.variants if timing.throughput else {}
    return all(any(name.startswith(variant) for name in found) for variant in wanted)


def _shown(timing: FormTiming) -> str:
    assert timing.throughput is not None
    values = ", ".join(f"{name} {value:.2f}" for name, value in timing.throughput.variants.items())
    return f"{timing.id}: {values}"


# --- pairs -----------------------------------------------------------------------------------------


def wide(latency: Latency) -> bool:
    """Whether a value leaves more than half a cycle open: an interval, or a bound without a lower end."""
    if latency.min is None or latency.max is None or latency.kind not in (INTERVAL, UPPER_BOUND):
        return False
    return latency.max - latency.min > WIDE


def undeclared(form: InstructionForm, timing: FormTiming) -> list[str]:
    """Pairs of the form that the timing says nothing about."""
    there = {(lat.source, lat.target) for lat in timing.latencies}
    missing = [p for p in pairs(form) if (p.source.name, p.target.name) not in there]
    return [f"{form.id} {p.source.name} -> {p.target.name}" for p in missing]


def pair_checks(ran: Measured) -> list[Check]:
    """Values, intervals and reasons of the operand pairs of forms that can be measured."""
    some = [(f, t) for f, t in ran if not unmeasurable(f)]
    found = [lat for _, t in some for lat in t.latencies]
    missing = [name for f, t in some if t.status == "ok" for name in undeclared(f, t)]
    valued = [lat for lat in found if lat.max is not None]
    reasons = Counter(_NUMBER.sub("N", lat.reason) for lat in found if lat.max is None)
    print("Pairs without a value:\n\n" + table(("reason", "pairs"), reasons.most_common()) + "\n")
    silent = missing + [
        f"{lat.source} -> {lat.target}" for lat in found if lat.max is None and not lat.reason
    ]
    conventions = [lat for lat in valued if lat.bounds and lat.bounds[1] - lat.bounds[0] > WIDE]
    total = len(found) + len(missing)
    return [
        at_least("declared pairs with a value", len(valued), total, VALUES),
        Check("kinds of latency", _counted(Counter(lat.kind for lat in valued))),
        at_most("pairs open by more than 0.5 cycle", sum(map(wide, valued)), total, INTERVALS),
        Check("pairs missing without a reason", _some(silent), "none", not silent),
        Check(
            "values whose range without conventions is wider than 0.5", f"{len(conventions)} of {len(valued)}"
        ),
    ]


# --- the whole -------------------------------------------------------------------------------------


def coverage(store: Path) -> Sequence[Check]:
    """All checks of one store."""
    print(f"store of {machine(store)}\n")
    found = read(store)
    ran = executed(found)
    return [*form_checks(found), *special_checks(ran), *pair_checks(ran)]


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--store", type=Path, help="a store with a full run; otherwise one is made")
    chosen = options.parse_args()
    if chosen.store:
        present("coverage", lambda: coverage(chosen.store))
    with tempfile.TemporaryDirectory() as folder:
        present("coverage", lambda: coverage(Laboratory(Path(folder)).full("first")[1]))


if __name__ == "__main__":
    main()
