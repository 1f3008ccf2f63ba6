"""Kernels of AArch64 and RISC-V: every form and pair that another project has a value of, and what it misses.

The reference is a pair of WINIC's tables (`--throughput` and `--latency`). Nothing is measured: a form has
a kernel, or there is a reason.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.lib.common import Check, at_least, parser, present
from cyclescope.errors import UsageError
from cyclescope.isa.find.pattern import select
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.riscv64.vector import default_forms
from cyclescope.isa.table import Table, load_table
from cyclescope.measure.plan import Planner

_END = re.compile(r"(\d+):\w+")
# Classes of instructions that WINIC has no values of, by what our table knows of them.
_MISSED = {
    "loads and stores": lambda f: "memory" in f.attributes and "atomic" not in f.attributes,
    "atomics": lambda f: "atomic" in f.attributes,
    "branches and calls": lambda f: not f.attributes.isdisjoint(("branch", "call", "return")),
    "governing predicates": lambda f: any(op.role == "mask" and op.file == "p" for op in f.operands),
    "flags of comparisons": lambda f: any(op.fixed == "NZCV" and op.write for op in f.operands),
    "masks and configurations": lambda f: any(op.fixed in ("VL", "VTYPE") for op in f.operands),
    "divisions": lambda f: "DIV" in f.mnemonic,
    "barriers": lambda f: f.mnemonic in ("DMB", "DSB", "ISB", "FENCE", "FENCE.I"),
}


# What LLVM 22 calls instructions that had names of their own, hints among them.
_RENAMED = {
    "BFMMLA_ZZZ": "BFMMLA_ZZZ_HtoS", "SDOT_ZZZ_D": "SDOT_ZZZ_HtoD", "SDOT_ZZZ_S": "SDOT_ZZZ_BtoS",
    "UDOT_ZZZ_D": "UDOT_ZZZ_HtoD", "UDOT_ZZZ_S": "UDOT_ZZZ_BtoS", "FMV_X_W_FPR64": "FMV_X_W",
    "C_ADDI_HINT_IMM_ZERO": "C_ADDI", "C_ADD_HINT": "C_ADD", "C_LI_HINT": "C_LI", "C_LUI_HINT": "C_LUI",
    "C_MV_HINT": "C_MV", "C_SLLI64_HINT": "C_SLLI", "C_SLLI_HINT": "C_SLLI", "C_SRAI64_HINT": "C_SRAI",
    "C_SRLI64_HINT": "C_SRLI",
}  # fmt: skip


def valued(path: Path) -> Iterator[dict[str, str]]:
    """Rows that have a value. Raises UsageError for a file that is no such table."""
    try:
        with path.open(newline="") as lines:
            yield from (row for row in csv.DictReader(lines) if row["value_min"])
    except (OSError, KeyError) as error:
        raise UsageError(f"{path} is no table of WINIC's ({error})", "name its CSV files") from error


def forms_of(table: Table, name: str) -> list[InstructionForm]:
    """The forms of a name: a vector instruction under its configurations."""
    form = table.get(_RENAMED.get(name, name))
    if form is None:
        return []
    return default_forms(form) or [form] if table.isa == "riscv64" else [form]


def end(form: InstructionForm, text: str, written: bool) -> str:
    """Our operand for LLVM's number, counted from 0; one that is tied to a result is the result."""
    match = _END.match(text)
    if match is None:
        return text
    name = f"op{int(match[1]) + 1}"
    names = {op.name for op in form.operands}
    if name in names:
        return name
    tied = [op.name for op in form.operands if op.read and op.write and not op.implicit]
    return tied[0] if tied and not written else ""


class Coverage:
    """Which rows of a reference have kernels."""

    def __init__(self, isa: str) -> None:
        self.table = load_table(isa)
        self.planner = Planner(self.table, lambda form: True)
        self.reasons: Counter[str] = Counter()
        self.examples: dict[str, str] = {}

    def throughputs(self, rows: Iterable[dict[str, str]]) -> tuple[int, int]:
        """(rows whose forms all have sequences, rows), without what user space has no business with."""
        found = [self._stream(row["llvm_name"]) for row in rows if not self._is_excluded(row)]
        return sum(found), len(found)

    def _is_excluded(self, row: dict[str, str]) -> bool:
        """System calls, and instructions of RV32, whose code means another one."""
        forms = forms_of(self.table, row["llvm_name"])
        reason = self.planner.dialect.unmeasurable(forms[0]) if forms else ""
        return bool(reason) and not self._noted(f"left out: {reason}", row["llvm_name"])

    def _stream(self, name: str) -> bool:
        forms = forms_of(self.table, name)
        reason = "not in the table" if not forms else ""
        for form in forms:
            if not self.planner.throughput(form):
                reason = self.planner.reason(form, "", "")
        return self._noted(reason, f"{name} throughput")

    def latencies(self, rows: Iterable[dict[str, str]]) -> tuple[int, int]:
        """(rows whose pairs all have chains, rows), without what user space has no business with."""
        found = [self._chains(row["llvm_name"], row["pair"]) for row in rows if not self._is_excluded(row)]
        return sum(found), len(found)

    def _chains(self, name: str, pair: str) -> bool:
        forms = forms_of(self.table, name)
        reason = "not in the table" if not forms else ""
        for form in forms:
            source, _, target = pair.partition("->")
            ours = end(form, source, written=False), end(form, target, written=True)
            if not ours[0] and any(end(other, source, written=False) for other in forms):
                continue  # a result that only undisturbed elements make a source
            if not any((e.source, e.target) == ours for e in self.planner.latency(form)):
                reason = self.planner.reason(form, *ours) or f"no such pair: {' -> '.join(ours)}"
        return self._noted(reason, f"{name} {pair}")

    def _noted(self, reason: str, example: str) -> bool:
        if reason:
            self.reasons[reason] += 1
            self.examples.setdefault(reason, example)
        return not reason

    def missed(self) -> Iterator[Check]:
        """Kernels of the classes that the reference has no values of."""
        forms = [form for form in select(self.table, []) if not self.planner.dialect.unmeasurable(form)]
        for name, belongs in _MISSED.items():
            some = [form for form in forms if belongs(form)]
            if some:
                with_kernel = sum(bool(self.planner.throughput(form)) for form in some)
                yield at_least(f"{self.table.isa}: {name}", with_kernel, len(some), 1.0)


def covered(isa: str, throughput: Path, latency: Path) -> list[Check]:
    """The checks of one instruction set, with the reasons printed."""
    coverage = Coverage(isa)
    checks = [
        at_least(f"{isa}: forms with a kernel", *coverage.throughputs(valued(throughput)), 1.0),
        at_least(f"{isa}: operand pairs with a chain", *coverage.latencies(valued(latency)), 1.0),
        *coverage.missed(),
    ]
    for reason, count in coverage.reasons.most_common():
        print(f"  {count:5} {reason} ({coverage.examples[reason]})")
    return checks


def main() -> None:
    """Print the table."""
    options = parser(__doc__)
    options.add_argument("isa", choices=("aarch64", "riscv64"))
    options.add_argument("--throughput", type=Path, required=True, help="WINIC's table of throughputs")
    options.add_argument("--latency", type=Path, required=True, help="and of latencies")
    given = options.parse_args()
    present("kernel coverage", lambda: covered(given.isa, given.throughput, given.latency))


if __name__ == "__main__":
    main()
