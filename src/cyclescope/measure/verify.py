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
from cyclescope.kernel.differential import READ, WRITE, Declared, Differential, SeenAccess, Specimen
from cyclescope.kernel.locations import location_set, members, names
from cyclescope.kernel.state import MachineState

_BATCH = 500
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
    """How many of the declared reads and writes, and pairs of them, were seen: the power of the check."""

    reads: int = 0
    reads_seen: int = 0
    writes: int = 0
    writes_seen: int = 0
    pairs: int = 0
    pairs_seen: int = 0

    def add(self, table: Declared, observation: Observation) -> None:
        """Count one form; what it leaves undefined need not change."""
        reads = table.reads & observation.present
        writes = table.writes & ~table.undefined & observation.present
        self.reads += reads.bit_count()
        self.reads_seen += (reads & sources(observation)).bit_count()
        self.writes += writes.bit_count()
        self.writes_seen += (writes & observation.written).bit_count()
        seen = (outputs & writes for location, outputs in observation.depends if reads >> location & 1)
        self.pairs += reads.bit_count() * writes.bit_count()
        self.pairs_seen += sum(outputs.bit_count() for outputs in seen)


class Verification(msgspec.Struct):
    """What came of checking some forms.

    `findings` has violations and documented exceptions; `unstable` the outputs that differ between
    equal inputs, by form; `status_unseen` the forms that declare the register of sticky flags, which users
    call `status`, but showed no use of it.
    """

    depth: Depth
    status: str = "MXCSR"
    checked: list[str] = []
    findings: list[Finding] = []
    not_run: list[NotRun] = []
    unstable: dict[str, tuple[str, ...]] = {}
    status_unseen: list[str] = []
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


def compare(table: Declared, observation: Observation) -> list[SeenAccess]:
    """What the observation shows and the table does not declare.

    A difference in an undefined flag is no evidence of a read.
    """
    found = []
    for location, outputs in observation.depends:
        defined = outputs & ~table.undefined
        if defined and not table.reads >> location & 1:
            found.append(SeenAccess(READ, location, defined))
    written = observation.written & ~table.writes
    return found + [SeenAccess(WRITE, location) for location in members(written)]


# --- many forms ---------------------------------------------------------------------------------


def verify(
    backend: DifferBackend, check: Differential, forms: Sequence[InstructionForm], depth: Depth
) -> Verification:
    """Check forms on a backend; each is listed as checked or as not run."""
    return _Verifier(backend, check, depth).verify(forms)


class _Verifier:
    def __init__(self, backend: DifferBackend, check: Differential, depth: Depth) -> None:
        self._backend = backend
        self._rules = check
        self._names = names(check.isa)
        self._result = Verification(depth, check.status)
        self._states: dict[MachineState, MachineState] = {}

    def verify(self, forms: Sequence[InstructionForm]) -> Verification:
        start = time.monotonic()
        runnable = list(self._runnable(forms))
        for first in range(0, len(runnable), _BATCH):
            self._check(runnable[first : first + _BATCH])
        self._result.seconds = time.monotonic() - start
        return self._result

    def _runnable(self, forms: Sequence[InstructionForm]) -> Iterator[Specimen]:
        for form in forms:
            reason = self._rules.unmeasurable(form)
            if reason:
                self._leave_out(form, reason)
            else:
                yield self._specimen(form)

    def _leave_out(self, form: InstructionForm, reason: str) -> None:
        self._result.not_run.append(NotRun(form.id, form.mnemonic, reason))

    def _check(self, subjects: Sequence[Specimen]) -> None:
        doubtful: list[tuple[Specimen, list[SeenAccess]]] = []
        for subject, observation in self._observe(subjects, self._result.depth):
            if observation.outcome.status != OK:
                self._leave_out(subject.form, observation.outcome.describe())
                continue
            found = self._take(subject, observation)
            if found:
                doubtful.append((subject, found))
        self._result.findings += self._confirmed(doubtful)

    def _specimen(self, form: InstructionForm) -> Specimen:
        """A specimen with one object per distinct state: backends know states by identity."""
        subject = self._rules.specimen(form)
        state = self._states.setdefault(subject.kernel.state, subject.kernel.state)
        return msgspec.structs.replace(subject, kernel=msgspec.structs.replace(subject.kernel, state=state))

    def _observe(self, subjects: Sequence[Specimen], depth: Depth) -> list[tuple[Specimen, Observation]]:
        observations = self._backend.differ([s.kernel for s in subjects], depth)
        self._result.trials += sum(o.trials for o in observations)
        return list(zip(subjects, observations, strict=True))

    def _take(self, subject: Specimen, observation: Observation) -> list[SeenAccess]:
        form, table = subject.form, self._rules.declared(subject)
        self._result.checked.append(form.id)
        self._result.coverage.add(table, observation)
        if observation.unstable:
            self._result.unstable[form.id] = tuple(self._names[n] for n in members(observation.unstable))
        if table.status and not (sources(observation) | observation.written) & table.status:
            self._result.status_unseen.append(form.id)
        return compare(table, observation)

    def _confirmed(self, doubtful: Sequence[tuple[Specimen, list[SeenAccess]]]) -> Iterator[Finding]:
        """Accesses that other random states show too: a chance event does not return."""
        if not doubtful:
            return
        depth = self._result.depth
        other = Depth(depth.bases * DEEPER, depth.perturbations, depth.seed ^ OTHER_SEED)
        looks = self._observe([subject for subject, _ in doubtful], other)
        for (_, found), (subject, observation) in zip(doubtful, looks, strict=True):
            again = compare(self._rules.declared(subject), observation)
            seen = {(access.kind, access.location) for access in again}
            yield from (self._finding(subject, a) for a in found if (a.kind, a.location) in seen)

    def _finding(self, subject: Specimen, access: SeenAccess) -> Finding:
        through = tuple(self._names[n] for n in members(access.outputs))
        reason = self._rules.exception(subject, access)
        return Finding(subject.form.id, access.kind, self._names[access.location], through, reason)
