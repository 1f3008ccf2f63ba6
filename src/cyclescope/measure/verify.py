"""The instruction table against real execution.

Every form runs with one location of the architectural state changed at a time. A location that makes
a difference but is no source in the table is an undeclared read; one that changes but is no target
an undeclared write. What was seen is a lower bound: a declared dependence that no trial showed proves
nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import msgspec

from cyclescope.backend.base import OK, Depth, DifferBackend, Observation
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.locations import MXCSR, NAMES, location_set, members
from cyclescope.kernel.state import MachineState
from cyclescope.kernel.x86_64.differential import Specimen, specimen
from cyclescope.kernel.x86_64.special import unmeasurable
from cyclescope.measure.declared import Declared, declared
from cyclescope.measure.documented import documented

READ, WRITE = "read", "write"
BATCH = 500
OTHER_SEED = 0x5EED  # of the second look at what seems undeclared
DEEPER = 4  # times the states in the second look


class Finding(msgspec.Struct, frozen=True):
    """A read or write that the table does not declare.

    `through` are the outputs that showed a read; `reason` says why it is a documented exception, and
    is empty for a violation.
    """

    form: str
    access: str
    location: str
    through: tuple[str, ...] = ()
    reason: str = ""


class NotRun(msgspec.Struct, frozen=True):
    """A form that could not be checked, and why."""

    form: str
    mnemonic: str
    reason: str


class Coverage(msgspec.Struct):
    """How many of the declared reads and writes were seen: the power of the check."""

    reads: int = 0
    reads_seen: int = 0
    writes: int = 0
    writes_seen: int = 0

    def add(self, table: Declared, observation: Observation) -> None:
        """Count one form; what it leaves undefined need not change."""
        writes = table.writes & ~table.undefined
        self.reads += (table.reads & observation.present).bit_count()
        self.reads_seen += (table.reads & sources(observation)).bit_count()
        self.writes += (writes & observation.present).bit_count()
        self.writes_seen += (writes & observation.written).bit_count()


class Verification(msgspec.Struct):
    """What came of checking some forms.

    `findings` has violations and documented exceptions; `unstable` the outputs that differ between
    equal inputs, by form; `mxcsr_unseen` the forms that declare MXCSR but showed no use of it.
    """

    depth: Depth
    checked: list[str] = []
    findings: list[Finding] = []
    not_run: list[NotRun] = []
    unstable: dict[str, tuple[str, ...]] = {}
    mxcsr_unseen: list[str] = []
    coverage: Coverage = msgspec.field(default_factory=Coverage)
    trials: int = 0
    seconds: float = 0.0

    @property
    def undeclared(self) -> list[Finding]:
        """The violations."""
        return [f for f in self.findings if not f.reason]

    @property
    def documented(self) -> list[Finding]:
        """The exceptions that have a reason."""
        return [f for f in self.findings if f.reason]


# --- one form -----------------------------------------------------------------------------------


def sources(observation: Observation) -> int:
    """The set of locations that made a difference."""
    return location_set(location for location, _ in observation.depends)


def compare(form: InstructionForm, table: Declared, observation: Observation) -> list[Finding]:
    """What the observation shows and the table does not declare.

    A difference in an undefined flag is no evidence of a read.
    """
    found = []
    for location, outputs in observation.depends:
        defined = outputs & ~table.undefined
        if defined and not table.reads >> location & 1:
            found.append(_finding(form, READ, location, defined))
    written = observation.written & ~table.writes
    return found + [_finding(form, WRITE, location, 0) for location in members(written)]


def _finding(form: InstructionForm, access: str, location: int, outputs: int) -> Finding:
    through = tuple(NAMES[n] for n in members(outputs))
    return Finding(form.id, access, NAMES[location], through, documented(form, access, location))


# --- many forms ---------------------------------------------------------------------------------


def verify(backend: DifferBackend, forms: Sequence[InstructionForm], depth: Depth) -> Verification:
    """Check forms on a backend; each is listed as checked or as not run."""
    return _Verifier(backend, depth).verify(forms)


class _Verifier:
    def __init__(self, backend: DifferBackend, depth: Depth) -> None:
        self._backend = backend
        self._result = Verification(depth)
        self._states: dict[MachineState, MachineState] = {}

    def verify(self, forms: Sequence[InstructionForm]) -> Verification:
        start = time.monotonic()
        runnable = list(self._runnable(forms))
        for first in range(0, len(runnable), BATCH):
            self._check(runnable[first : first + BATCH])
        self._result.seconds = time.monotonic() - start
        return self._result

    def _runnable(self, forms: Sequence[InstructionForm]) -> Iterator[InstructionForm]:
        for form in forms:
            reason = unmeasurable(form)
            if reason:
                self._result.not_run.append(NotRun(form.id, form.mnemonic, reason))
            else:
                yield form

    def _check(self, forms: Sequence[InstructionForm]) -> None:
        subjects = [self._specimen(form) for form in forms]
        doubtful: list[tuple[Specimen, list[Finding]]] = []
        for subject, observation in self._observe(subjects, self._result.depth):
            if observation.outcome.status != OK:
                reason = observation.outcome.describe()
                self._result.not_run.append(NotRun(subject.form.id, subject.form.mnemonic, reason))
                continue
            found = self._take(subject, observation)
            if found:
                doubtful.append((subject, found))
        self._result.findings += self._confirmed(doubtful)

    def _specimen(self, form: InstructionForm) -> Specimen:
        """A specimen with one object per distinct state: backends know states by identity."""
        subject = specimen(form)
        state = self._states.setdefault(subject.kernel.state, subject.kernel.state)
        return msgspec.structs.replace(subject, kernel=msgspec.structs.replace(subject.kernel, state=state))

    def _observe(self, subjects: Sequence[Specimen], depth: Depth) -> list[tuple[Specimen, Observation]]:
        observations = self._backend.differ([s.kernel for s in subjects], depth)
        self._result.trials += sum(o.trials for o in observations)
        return list(zip(subjects, observations, strict=True))

    def _take(self, subject: Specimen, observation: Observation) -> list[Finding]:
        form, table = subject.form, declared(subject)
        self._result.checked.append(form.id)
        self._result.coverage.add(table, observation)
        if observation.unstable:
            self._result.unstable[form.id] = tuple(NAMES[n] for n in members(observation.unstable))
        used = (sources(observation) | observation.written) >> MXCSR & 1
        if "mxcsr" in form.attributes and not used:
            self._result.mxcsr_unseen.append(form.id)
        return compare(form, table, observation)

    def _confirmed(self, doubtful: Sequence[tuple[Specimen, list[Finding]]]) -> Iterator[Finding]:
        """Findings that other random states show too: a chance event does not return."""
        if not doubtful:
            return
        depth = self._result.depth
        other = Depth(depth.bases * DEEPER, depth.perturbations, depth.seed ^ OTHER_SEED)
        looks = self._observe([subject for subject, _ in doubtful], other)
        for (_, found), (subject, observation) in zip(doubtful, looks, strict=True):
            again = compare(subject.form, declared(subject), observation)
            seen = {(f.access, f.location) for f in again}
            yield from (f for f in found if (f.access, f.location) in seen)
