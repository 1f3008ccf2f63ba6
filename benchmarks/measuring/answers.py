"""Whether probes answer the same in every run: `probe --quick` again and again, some beside a busy loop.

    python -m benchmarks.measuring.answers [--runs 10] [--beside 5] [--folder KEPT]

Two answers to a question are the same if they say the same, and their values differ by no more than both
errors. Every question with answers that differ is listed, with all of them; those with low confidence may.
With `--folder` the JSON of each run is kept there, and what is there already is not run again.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.lib.common import Check, parser, present, table
from benchmarks.lib.processes import busy, run
from cyclescope.model.facts import LOW

RUNS, BESIDE = 10, 5
LONGEST = 120.0  # seconds of a run
_EXACT = 1e-6  # of values that are told with three digits


class Answered(NamedTuple):
    """One run's answer to a question; `value` is None where it has none."""

    run: int
    answer: str
    value: float | None
    error: float
    confidence: str

    def __str__(self) -> str:
        value = "" if self.value is None else f" {self.value:g}+-{self.error:g}"
        return f"{self.run}: {self.answer}{value} ({self.confidence})"


Question = tuple[str, str]


def ran(folder: Path, number: int, is_beside: bool) -> float | None:
    """Run the probes and keep what they say; the seconds, None where it was kept before."""
    path = folder / f"{number}.json"
    if path.exists():
        return None
    with tempfile.TemporaryDirectory() as scratch, busy(int(is_beside)):
        start = time.monotonic()
        done = run("probe", "--quick", "--json", "--store", Path(scratch) / "store.sqlite")
        seconds = time.monotonic() - start
    if done.code != 0:
        raise SystemExit(done.err)
    path.write_text(done.out)
    return seconds


def answers(number: int, data: Any) -> Iterator[tuple[Question, Answered | None]]:
    """Every question of a run with its answer, None where it is not resolved."""
    for probe in data["probes"]:
        for fact in probe["facts"]:
            found = Answered(
                number, fact["answer"] or "", fact["value"], fact["error"] or 0.0, fact["confidence"] or ""
            )
            yield (probe["name"], fact["subject"]), found if fact["resolved"] else None


def differ(one: Answered, other: Answered) -> bool:
    """Whether one of two answers has to be wrong."""
    if one.answer != other.answer or (one.value is None) != (other.value is None):
        return True
    if one.value is None or other.value is None:
        return False
    return abs(one.value - other.value) > one.error + other.error + _EXACT


def contradictions(found: dict[Question, list[Answered]]) -> dict[Question, list[Answered]]:
    """Questions with two answers that differ."""
    return {
        question: some
        for question, some in found.items()
        if any(differ(*pair) for pair in itertools.combinations(some, 2))
    }


def collected(runs: Sequence[Any]) -> tuple[dict[Question, list[Answered]], int]:
    """The answers of all runs by question, and how many there could have been."""
    found: dict[Question, list[Answered]] = {}
    asked = 0
    for number, data in enumerate(runs):
        for question, one in answers(number, data):
            asked += 1
            found.setdefault(question, []).extend([one] if one is not None else [])
    return found, asked


def confident(answered: Sequence[Answered]) -> list[Answered]:
    """Those that do not say that they may be others at another time."""
    return [one for one in answered if one.confidence != LOW]


def same_answers(runs: int, beside: int, folder: Path) -> list[Check]:
    """All runs, the last ones beside a busy loop."""
    times = [ran(folder, number, number >= runs - beside) for number in range(runs)]
    found, asked = collected([json.loads((folder / f"{n}.json").read_text()) for n in range(runs)])
    apart = contradictions(found)
    wrong = [question for question, some in apart.items() if contradictions({question: confident(some)})]
    rows = [(*question, "; ".join(map(str, some))) for question, some in apart.items()]
    print(table(("probe", "subject", "answers by run"), rows))
    answered, always = sum(map(len, found.values())), sum(len(some) == runs for some in found.values())
    longest = max((seconds for seconds in times if seconds is not None), default=0.0)
    return [
        Check("questions", f"{len(found)}, {always} answered in every run"),
        Check("answers", f"{answered} of {asked}"),
        Check("questions whose answers differ", str(len(apart))),
        Check("questions whose confident answers differ", str(len(wrong)), "0", not wrong),
        Check("longest run", f"{longest:.0f} s", f"<= {LONGEST:.0f} s", longest <= LONGEST),
    ]


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--runs", type=int, default=RUNS)
    options.add_argument("--beside", type=int, default=BESIDE, help="of the runs, beside a busy loop")
    options.add_argument("--folder", type=Path, help="where the runs are kept")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        present("what probes answer", lambda: same_answers(chosen.runs, chosen.beside, folder))


if __name__ == "__main__":
    main()
