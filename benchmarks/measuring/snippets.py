"""`bench` on microbenchmarks whose cycles are known on this core, and what a machine model predicts of them.

    python -m benchmarks.measuring.snippets --reference FILE.csv [--model native] [--sustained]

The reference has the columns `asm_intel`, `cycles` (of a copy) and `range` (of its own runs), measured on the
same kind of core: copies that run once between fences, twice as many less as many, as `bench --loop 0` times
them. With `--sustained` they go on and on, as `bench` times them unless told otherwise. Every register points
to a place of its own before the first copy, and memory to another one. A reading that is not `ok` claims
nothing and is counted apart; so is a row whose own runs differ by more than is asked.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from benchmarks.lib.common import Check, at_least, parser, present, table
from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.backend.native import NativeBackend
from cyclescope.errors import CyclescopeError, UsageError
from cyclescope.infer.api import calibrated, open_backend
from cyclescope.infer.beside.bursts import BurstPlan, time_bursts
from cyclescope.infer.beside.pieces import Around, Init, text_snippets
from cyclescope.measure.bench import ROUNDS, time_kernel
from cyclescope.measure.record import STABLE
from cyclescope.measure.sampling import Measurement
from cyclescope.session.predict import predictor_of

BENCHED, PREDICTED = 0.01, 0.05  # relative
SHARE_BENCHED, SHARE_PREDICTED = 0.98, 0.90
SHOWN = 60  # characters of a snippet
NUMBERED = (f"r{n}" for n in (8, 9, 10, 11, 12, 13, 15, 14))  # what the others are made of is the last
REGISTERS = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *NUMBERED)
STEP = 0x1100  # bytes from the place of a register to the next: a page and a line of its own
PLACES = "; ".join(f"lea {register}, [r14+{STEP * n}]" for n, register in enumerate(REGISTERS))
POINTERS = "; ".join(
    f"lea rax, [r14-{STEP * (n + 1)}]; mov [r14+{STEP * n}], rax" for n in range(len(REGISTERS))
)
SUSTAINED = "; ".join(
    [*(f"lea {register}, [rdi+{256 * n}]" for n, register in enumerate(("rsi", "rbx", "r8", "rbp"), 1)),
     "mov [rdi], rbx; mov eax, 1; mov ecx, 1; xor edx, edx"]
)  # fmt: skip
INDEX = 256  # of what is added to a register that points to a place
INDEXED = re.compile(r"mov \[\w+\+(r\w+)\]")
FAR = re.compile(r"\[(\w+)\+(0x[0-9a-f]{6,})\]")  # a displacement out of the area that the register points to


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


def rows(reference: Path, predictor: Predictor | None, sustained: bool) -> list[Row]:
    """All snippets."""
    backend, identity = open_backend()
    with closing(backend), reference.open(newline="") as file:
        if backend.capabilities().isa != "x86-64" or identity.emulated:
            raise UsageError("the snippets are for x86-64", "run it on such a machine")
        calibrated(backend, identity)
        return [_row(backend, predictor, line, sustained) for line in csv.DictReader(file)]


def around(text: str, sustained: bool) -> Around:
    """What comes before a snippet, and how its copies run."""
    if sustained:
        return Around(Init(each=SUSTAINED))
    far = {register: int(number, 16) for register, number in FAR.findall(text)}
    back = "".join(f"; sub {register}, {number & ~0xFFF:#x}" for register, number in far.items())
    indices = "".join(f"; mov {register}, {INDEX}" for register in INDEXED.findall(text))
    return Around(Init(POINTERS, PLACES + back + indices), plan=BurstPlan())


def _timed(backend: NativeBackend, text: str, sustained: bool) -> Measurement:
    (snippet,) = text_snippets([text], around(text, sustained), None, "x86-64")
    if snippet.burst is None:
        return time_kernel(backend, snippet.kernel, ROUNDS)
    return time_bursts(backend, [snippet.burst], ROUNDS)[0].measured


def _row(backend: NativeBackend, predictor: Predictor | None, line: dict[str, str], sustained: bool) -> Row:
    text, known = line["asm_intel"], float(line["cycles"])
    try:
        measured = _timed(backend, text, sustained)
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


def snippets(reference: Path, model: str, sustained: bool) -> list[Check]:
    """All readings, those that are off, and the checks."""
    found = rows(reference, predictor_of(model) if model else None, sustained)
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
    options.add_argument("--sustained", action="store_true", help="time them in a long loop")
    chosen = options.parse_args()
    present("snippets", lambda: snippets(chosen.reference, chosen.model, chosen.sustained))


if __name__ == "__main__":
    main()
