"""`bench` on microbenchmarks whose cycles are known on this core, and what a machine model predicts of them.

    python -m benchmarks.snippets --reference FILE.csv [--model native]

The reference has the columns `asm_intel`, `cycles` (of a copy) and `range` (of its own runs), measured on the
same kind of core. Registers that are addresses point to places of their own before the first copy. A reading
that is not `ok` claims nothing and is counted apart; so is a row whose own runs differ by more than is asked.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from benchmarks.lib.common import Check, at_least, parser, present, table
from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.backend.base import Backend
from cyclescope.errors import CyclescopeError, UsageError
from cyclescope.infer.api import calibrated, open_backend
from cyclescope.infer.snippets import text_kernel
from cyclescope.measure.bench import ROUNDS, time_kernel
from cyclescope.measure.record import STABLE
from cyclescope.session.predict import predictor_of

BENCHED, PREDICTED = 0.01, 0.05  # relative
SHARE_BENCHED, SHARE_PREDICTED = 0.98, 0.90
SHOWN = 60  # characters of a snippet
PLACES = "; ".join(
    f"lea {register}, [rdi+{256 * n}]" for n, register in enumerate(("rsi", "rbx", "r8", "rbp"), 1)
)
START = f"{PLACES}; mov [rdi], rbx; mov eax, 1; mov ecx, 1; xor edx, edx"


class Row(msgspec.Struct, frozen=True):
    """A snippet: cycles by the reference, by `bench` and by the model; None where there is no such number.

    `reason` says why there is none by `bench`.
    """

    text: str
    known: float
    certain: bool
    benched: float | None
    predicted: float | None
    reason: str = ""

    def is_near(self, cycles: float | None, within: float) -> bool:
        """Whether a number is that of the reference."""
        return cycles is not None and abs(cycles - self.known) <= within * self.known


def rows(reference: Path, predictor: Predictor | None) -> list[Row]:
    """All snippets."""
    backend, identity = open_backend()
    with closing(backend), reference.open(newline="") as file:
        if backend.capabilities().isa != "x86-64" or identity.emulated:
            raise UsageError("the snippets are for x86-64", "run it on such a machine")
        calibrated(backend, identity)
        return [_row(backend, predictor, line) for line in csv.DictReader(file)]


def _row(backend: Backend, predictor: Predictor | None, line: dict[str, str]) -> Row:
    text, known = line["asm_intel"], float(line["cycles"])
    try:
        measured = time_kernel(backend, text_kernel(text, START, 1, "", "x86-64"), ROUNDS)
        benched = measured.cycles if measured.verdict == STABLE else None
        reason = measured.error if benched is None else ""
    except CyclescopeError as error:
        benched, reason = None, str(error)
    predicted = None
    if predictor is not None:
        block = read_block(text.replace(";", "\n"), choice=Choice(whole=True))
        predicted = predictor.predict(block).cycles
    certain = float(line["range"]) <= BENCHED * known
    return Row(text, known, certain, benched, predicted, reason)


def judged(found: Sequence[Row]) -> list[Check]:
    """What the rows show."""
    certain = [row for row in found if row.certain]
    told = [row for row in certain if row.benched is not None]
    near = sum(row.is_near(row.benched, BENCHED) for row in told)
    checks = [
        Check("rows whose own runs differ by more than 1 %", str(len(found) - len(certain))),
        Check("readings that are not ok", str(len(certain) - len(told))),
        at_least("readings within 1 % of the reference", near, len(told), SHARE_BENCHED),
    ]
    if any(row.predicted is not None for row in found):
        right = sum(row.is_near(row.predicted, PREDICTED) for row in certain)
        checks.append(
            at_least("predictions within 5 % of the reference", right, len(certain), SHARE_PREDICTED)
        )
    return checks


def _number(cycles: float | None) -> str:
    return "" if cycles is None else f"{cycles:.3f}"


def snippets(reference: Path, model: str) -> list[Check]:
    """All readings, those that are off, and the checks."""
    found = rows(reference, predictor_of(model) if model else None)
    far = [
        (f"{row.known:.3f}", _number(row.benched) or row.reason, _number(row.predicted), row.text[:SHOWN])
        for row in found
        if row.certain
        and not (row.is_near(row.benched, BENCHED) and (not model or row.is_near(row.predicted, PREDICTED)))
    ]
    print(table(("reference", "bench", "predicted", "snippet"), far))
    return judged(found)


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--reference", type=Path, required=True)
    options.add_argument("--model", default="", help="a machine whose predictions are judged, too")
    chosen = options.parse_args()
    present("snippets", lambda: snippets(chosen.reference, chosen.model))


if __name__ == "__main__":
    main()
