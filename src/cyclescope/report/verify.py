"""What came of checking the instruction table."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from cyclescope.backend.base import without_address
from cyclescope.kernel.differential import READ
from cyclescope.measure.verify import Coverage, Finding, NotRun, Verification
from cyclescope.report.tables import LINE_WIDTH
from cyclescope.report.words import counted

SCHEMA_VERSION = 1
_ILLEGAL = "SIGILL"


def verification_json(machine: str, found: Verification) -> str:
    """Everything, every form by name."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "machine": machine,
        "depth": msgspec.to_builtins(found.depth) | {"trials": found.trials, "seconds": found.seconds},
        "undeclared": found.undeclared,
        "documented": found.documented,
        "unstable": found.unstable,
        f"{found.status.lower()}_declared_but_unseen": found.status_unseen,
        "coverage": found.coverage,
        "not_run": found.not_run,
        "checked": found.checked,
    }
    return msgspec.json.encode(data).decode()


def verification_text(found: Verification) -> str:
    """The violations line by line, the rest in groups."""
    lines = [
        f"{counted(len(found.checked), 'form')} checked, {found.trials} trials in {found.seconds:.1f} s",
        *_undeclared(found.undeclared),
        *_documented(found.documented),
        *_coverage(found.coverage),
        *_unstable(found.unstable),
        *_status(found.status, found.status_unseen),
        *_not_run(found.not_run),
    ]
    return "\n".join(lines)


def _undeclared(findings: Sequence[Finding]) -> Iterator[str]:
    if not findings:
        yield "undeclared reads and writes: none"
        return
    yield f"undeclared reads and writes: {len(findings)} in {_forms(findings)}"
    for f in findings:
        seen = f" (seen in {', '.join(f.through)})" if f.access == READ else ""
        yield f"  {f.form} {f.access}s {f.location}{seen}"


def _forms(findings: Iterable[Finding]) -> str:
    return counted(len({f.form for f in findings}), "form")


def _documented(findings: Sequence[Finding]) -> Iterator[str]:
    if findings:
        yield f"documented exceptions: {len(findings)} in {_forms(findings)}"
    for reason in dict.fromkeys(f.reason for f in findings):
        names = dict.fromkeys(f.form for f in findings if f.reason == reason)
        yield from _wrapped(f"{', '.join(names)}: {reason}")


def _coverage(coverage: Coverage) -> Iterator[str]:
    c = coverage
    if c.reads and c.writes:
        yield (
            f"of what the table declares, {c.reads_seen / c.reads:.1%} of the reads and "
            f"{c.writes_seen / c.writes:.1%} of the writes were seen, and {c.pairs_seen} of {c.pairs} pairs"
        )


def _unstable(unstable: dict[str, tuple[str, ...]]) -> Iterator[str]:
    if unstable:
        yield "outputs that are no function of the state:"
        text = "; ".join(f"{form}: {', '.join(outputs)}" for form, outputs in unstable.items())
        yield from _wrapped(text)


def _status(name: str, forms: Sequence[str]) -> Iterator[str]:
    if forms:
        shown = f": {', '.join(forms)}" if len(forms) <= 3 else " (--json lists them)"
        yield f"{counted(len(forms), 'form')} with {name} in the table that showed no use of it{shown}"


def _not_run(forms: Sequence[NotRun]) -> Iterator[str]:
    if not forms:
        return
    yield f"{counted(len(forms), 'form')} not run:"
    groups: dict[str, list[NotRun]] = {}
    for form in forms:
        groups.setdefault(without_address(form.reason), []).append(form)
    for reason, some in groups.items():
        if reason == _ILLEGAL:
            yield f"  {len(some)} {reason}: not executed by this CPU (--json lists them)"
        else:
            names = dict.fromkeys(form.mnemonic for form in some)
            yield from _wrapped(f"{len(some)} {reason}: {', '.join(names)}")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, LINE_WIDTH, initial_indent="  ", subsequent_indent="    ")
