"""Our values against a reference table, form by form, with every disagreement and its kernel.

Forms are matched by the names both tables know (uops.info's strings, LLVM's opcodes). What counts as
agreeing is written in `judging`, whose mistake a disagreement is in `classify`. The reference has to
be of this microarchitecture; with --force the comparison only tests the program.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.lib.classify import OURS, UNEXPLAINED, Verdict, classify, context, normalised
from benchmarks.lib.common import ROOT, Check, at_least, parser, present, table
from benchmarks.lib.judging import Case, Tally, latencies, throughputs
from benchmarks.lib.matching import match
from benchmarks.lib.processes import Laboratory
from benchmarks.lib.reference import FORMATS, Reference, load
from benchmarks.lib.results import evidence, forms, machine, read
from cyclescope.errors import UsageError
from cyclescope.measure.rows import Evidence

DEFAULT = ROOT.parent / "shared/reference/uops_info_zen3_half.csv"
THROUGHPUTS, LATENCIES = 0.98, 0.97
LONGEST = 400  # characters of a kernel that are printed

Judged = tuple[Case, Verdict]


def require(reference: Reference, name: str, force: bool) -> None:
    """The reference must speak of this machine. Raises UsageError otherwise."""
    host = name.rsplit(maxsplit=1)[-1]
    if host != reference.microarchitecture and not force:
        theirs = reference.microarchitecture or "an unknown microarchitecture"
        raise UsageError(
            f"{reference.title} describes {theirs}, the store {host}",
            "choose another --reference, or --force",
        )


def compare(reference: Reference, store: Path, force: bool = False, listed: bool = True) -> Sequence[Check]:
    """Throughputs and latencies of a store against a reference."""
    require(reference, machine(store), force)
    timings = {timing.id: timing for timing in read(store)}
    matched = match(reference, forms())
    found = {
        name: (form, timings[form.id]) for name, form in matched.items() if timings[form.id].status == "ok"
    }
    print(
        f"reference: {reference.title}, {len(reference.rows)} rows, {len(matched)} of them forms of ours, "
        f"{len(found)} executed here; {reference.left_out} values left out that the table marks as doubtful\n"
    )
    around = context(reference, found)
    checks: list[Check] = []
    for what, tally, least in (
        ("throughput", throughputs(reference, found), THROUGHPUTS),
        ("latency", latencies(reference, found), LATENCIES),
    ):
        judged = [(case, classify(case, around)) for case in tally.disagreeing]
        _print(what, judged, store, listed)
        checks += _checks(what, tally, judged, least)
    return checks


def _checks(what: str, tally: Tally, judged: Sequence[Judged], least: float) -> Iterator[Check]:
    yield at_least(f"{what} agrees", tally.agreeing, tally.compared, least)
    whose = Counter(verdict.whose for _, verdict in judged)
    for name, count in whose.most_common():
        yield Check(f"{what} disagreements: {name}", str(count))
    blamed = whose[OURS] + whose[UNEXPLAINED]
    name = f"{what}: neither ours wrong nor unexplained"
    yield Check(name, at_least(name, tally.compared - blamed, tally.compared, least).found)


# --- the list --------------------------------------------------------------------------------------


def _print(what: str, judged: Sequence[Judged], store: Path, listed: bool) -> None:
    counts = Counter((v.whose, v.reason) for _, v in judged)
    rows = [(number, whose, reason) for (whose, reason), number in counts.most_common()]
    print(f"## {what}: {len(judged)} disagreements\n\n{table(('number', 'verdict', 'reason'), rows)}\n")
    if listed:
        kernels = evidence(store, (case.form.id for case, _ in judged))
        for whose, reason in counts:
            print(f"### {what}, {whose}: {reason}\n")
            for case, verdict in judged:
                if (verdict.whose, verdict.reason) == (whose, reason):
                    print(_entry(case, kernels[case.form.id]))
            print()


def _entry(case: Case, kernels: Sequence[Evidence]) -> str:
    kernel = _kernel(case, kernels)
    text = normalised(kernel.text)[:LONGEST] if kernel else "no kernel"
    measured = f"{kernel.record.cycles:.2f} cycles / {kernel.record.count}" if kernel else ""
    return (
        f"- {case.form.id}, {case.what}: ours {case.ours()}, theirs {case.reference()}; `{text}` {measured}"
    )


def _kernel(case: Case, kernels: Sequence[Evidence]) -> Evidence | None:
    """The kernel nearest to our value: of the pair with the greatest latency, or the throughput's."""
    if case.theirs is None:
        some = [k for k in kernels if k.record.quantity == "throughput"]
        return min(some, key=lambda k: abs(k.record.per_instance - case.our_value), default=None)
    worst = max(case.pairs, key=lambda lat: lat.max or 0.0)
    wanted = (worst.source, worst.target)
    some = [k for k in kernels if (k.record.source, k.record.target) == wanted]
    return min(some, key=lambda k: (len(k.record.links), k.record.per_instance), default=None)


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--store", type=Path, help="a store with a full run; otherwise one is made")
    options.add_argument("--reference", type=Path, default=DEFAULT, help="the table to compare with")
    options.add_argument("--format", choices=sorted(FORMATS), default="uops.info")
    options.add_argument("--force", action="store_true", help="compare with another microarchitecture")
    options.add_argument("--brief", action="store_true", help="do not list the disagreements one by one")
    chosen = options.parse_args()

    def work(store: Path | None) -> Sequence[Check]:
        reference = load(chosen.reference, chosen.format)
        if store is None:
            store = Laboratory(Path(folder)).full("first")[1]
        return compare(reference, store, chosen.force, not chosen.brief)

    with tempfile.TemporaryDirectory() as folder:
        present("compare", lambda: work(chosen.store))


if __name__ == "__main__":
    main()
