"""Random mixes of independent instructions: measured here, and predicted in five ways.

The mixes are drawn by a seed and were in no experiment. They are predicted by what `analyze` says of
their code, which counts, from the resources of a measured model, from its ports, and by llvm-mca with LLVM's
model of this microarchitecture. The same instructions measured in another order show how much no prediction
from counts can know.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from statistics import fmean

import msgspec

from benchmarks.lib.common import Check, at_least, identity, parser, present, table
from benchmarks.lib.mixing import KINDS, Mix, draw, kernel, pools, repetitions
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.backend.base import Backend, Effort
from cyclescope.backend.peers.llvm_mca import LlvmMcaBackend
from cyclescope.errors import BackendUnavailable, CyclescopeError, UsageError
from cyclescope.infer.api import open_backend
from cyclescope.isa.table import load_table
from cyclescope.measure.plan import Experiment
from cyclescope.measure.record import STABLE
from cyclescope.measure.sampling import Sampler
from cyclescope.model.machine import MachineModel
from cyclescope.model.resources import mix_throughput, resource_throughput
from cyclescope.session.blocks import decoded
from cyclescope.session.machines import load_model, stand_in_for, vendor_of

NUMBER, SEED, WORST = 500, 2, 15
PASSES = 4  # over the mixes whose rounds did not agree: disturbances come and go
MEAN, NEAR, SHARE = 0.03, 0.10, 0.92
ANALYZE, RESOURCES, PORTS, SHUFFLED = "analyze", "resources", "ports", "measured in another order"
Predictions = dict[str, list[float | None]]


class Row(msgspec.Struct, frozen=True):
    """A mix with its cycles: measured, and by each prediction that has them."""

    mix: Mix
    measured: float
    predicted: dict[str, float]
    bound: str

    def error(self, name: str) -> float:
        """Relative error of a prediction."""
        return self.predicted[name] / self.measured - 1


# --- cycles --------------------------------------------------------------------------------------


def measure(backend: Backend, mixes: Sequence[Mix]) -> list[float | None]:
    """Cycles of each mix; None where the rounds do not agree, the last time either."""
    found: list[float | None] = [None] * len(mixes)
    for _ in range(PASSES):
        left = [n for n, cycles in enumerate(found) if cycles is None]
        for number, cycles in _settled(backend, mixes, left):
            found[number] = cycles
    return found


def _settled(backend: Backend, mixes: Sequence[Mix], numbers: Sequence[int]) -> Iterator[tuple[int, float]]:
    experiments = [
        Experiment(str(n), "mix", "", "", "", kernel(mixes[n]), repetitions(mixes[n])) for n in numbers
    ]
    for batch in Sampler(backend, Effort(want=8, target=8000.0)).measure(experiments):
        for experiment, measurement in batch:
            if measurement.verdict == STABLE:
                yield int(experiment.form), measurement.cycles / experiment.count


def analysed(cpu: str, mixes: Sequence[Mix]) -> list[float | None]:
    """Cycles of each mix by llvm-mca; None where it does not know a form."""
    with closing(LlvmMcaBackend(cpu)) as backend:
        print(f"{backend.capabilities().description}\n")
        backend.submit([kernel(mix) for mix in mixes], Effort(rounds=1))
        return [
            samples[0].cycles / repetitions(mix) if samples[0].usable else None
            for samples, mix in zip(backend.collect(), mixes, strict=True)
        ]


def said(model: MachineModel, mixes: Sequence[Mix]) -> list[float | None]:
    """What `analyze` says of the code of each mix; None where it does not know an instruction."""
    predictor, vendor = Predictor(model, stand_in_for(model)), vendor_of(model.name)
    return [_said(predictor, vendor, mix) for mix in mixes]


def _said(predictor: Predictor, vendor: str, mix: Mix) -> float | None:
    code = b"".join(instruction.code for instruction in kernel(mix).body)
    try:
        return predictor.bounds(decoded(code, predictor.machine.isa, vendor)).cycles / repetitions(mix)
    except CyclescopeError:
        return None


def predictions(model: MachineModel, cpu: str, mixes: Sequence[Mix]) -> Predictions:
    """Cycles by every prediction, which are as many as can be made here."""
    found: Predictions = {
        ANALYZE: said(model, mixes),
        RESOURCES: [(resource_throughput(model, mix.counts) or (None,))[0] for mix in mixes],
        PORTS: [mix_throughput(model, mix.counts) for mix in mixes],
    }
    try:
        found[f"llvm-mca {cpu}"] = analysed(cpu, mixes)
    except (BackendUnavailable, UsageError) as error:
        print(f"llvm-mca is left out: {error}\n")
    return found


# --- the benchmark -------------------------------------------------------------------------------


def compare(
    model: MachineModel, backend: Backend, cpu: str, number: int, seed: int, kinds: Sequence[str] = KINDS
) -> list[Check]:
    """Measure and predict `number` mixes of each kind that this CPU and the model have."""
    forms = list(load_table(model.isa))
    checks: list[Check] = []
    some = pools(model, forms)
    for kind in filter(some.get, kinds):
        mixes = list(draw(model, forms, kind, number, seed))
        cycles = measure(backend, mixes)
        guesses = predictions(model, cpu, mixes) | {SHUFFLED: measure(backend, list(_shuffled(mixes, seed)))}
        rows = [
            Row(mix, took, {n: g for n, some in guesses.items() if (g := some[k])}, _bound(model, mix))
            for k, (mix, took) in enumerate(zip(mixes, cycles, strict=True))
            if took is not None
        ]
        print(f"## {kind}: {len(rows)} of {number} mixes with a stable time, seed {seed}\n")
        print(summary(rows, list(guesses)))
        print(f"\nWorst by {ANALYZE}:\n\n{worst(rows)}\n", flush=True)
        checks += _checks(kind, rows, number)
    return checks


def _shuffled(mixes: Sequence[Mix], seed: int) -> Iterator[Mix]:
    rng = random.Random(seed)
    for mix in mixes:
        yield Mix(mix.kind, tuple(rng.sample(mix.forms, len(mix.forms))))


def _bound(model: MachineModel, mix: Mix) -> str:
    return (resource_throughput(model, mix.counts) or (0.0, ""))[1]


def _near(rows: Sequence[Row], name: str) -> int:
    return sum(abs(row.error(name)) <= NEAR for row in rows)


def summary(rows: Sequence[Row], names: Sequence[str]) -> str:
    """Errors of each prediction over the mixes that it has, and over those that all have."""

    def lines() -> Iterator[tuple[str, ...]]:
        common = [row for row in rows if row.predicted.keys() == set(names)]
        for name in names:
            own = [row for row in rows if name in row.predicted]
            yield (name, *_figures(own, name), *_figures(common, name))

    head = ("prediction", "mixes", "mean error", "within 10 %", "common", "mean error", "within 10 %")
    return table(head, lines())


def _figures(rows: Sequence[Row], name: str) -> tuple[str, str, str]:
    if not rows:
        return "0", "-", "-"
    mean = fmean(abs(row.error(name)) for row in rows)
    return str(len(rows)), f"{mean:.1%}", f"{_near(rows, name) / len(rows):.1%}"


def worst(rows: Sequence[Row]) -> str:
    """The mixes that `analyze` misses most."""
    ordered = sorted((r for r in rows if ANALYZE in r.predicted), key=lambda r: -abs(r.error(ANALYZE)))
    return table(
        ("measured", "predicted", "by", "forms"),
        (
            (
                f"{r.measured:.2f}",
                f"{r.predicted[ANALYZE]:.2f}",
                r.bound,
                "; ".join(f.id for f in r.mix.forms),
            )
            for r in ordered[:WORST]
        ),
    )


def _checks(kind: str, rows: Sequence[Row], number: int) -> Iterator[Check]:
    own = [row for row in rows if ANALYZE in row.predicted]
    mean = fmean(abs(row.error(ANALYZE)) for row in own) if own else 1.0
    yield Check(f"{kind}: mean error by {ANALYZE}", f"{mean:.2%}", f"< {MEAN:.0%}", mean < MEAN)
    yield at_least(f"{kind}: within {NEAR:.0%} by {ANALYZE}", _near(own, ANALYZE), len(own), SHARE)
    yield at_least(f"{kind}: mixes with a stable time", len(rows), number, SHARE)


def _work(name: str, number: int, seed: int, kinds: Sequence[str]) -> Callable[[], list[Check]]:
    def work() -> list[Check]:
        model = load_model(name)
        if not model.ports:
            raise UsageError(f"{model.name} has no ports", "run `cyclescope measure --what ports`")
        cpu = identity()
        backend, _ = open_backend()
        with closing(backend):
            return compare(model, backend, (cpu.llvm if cpu else "") or "x86-64", number, seed, kinds)

    return work


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--model", default="native", help="a measured machine: native, or a file of one")
    options.add_argument("--number", type=int, default=NUMBER, help="mixes of each kind")
    options.add_argument("--seed", type=int, default=SEED)
    options.add_argument("--kind", choices=KINDS, action="append", help="of this kind alone; may be repeated")
    chosen = options.parse_args()
    present("mixes", _work(chosen.model, chosen.number, chosen.seed, chosen.kind or KINDS))


if __name__ == "__main__":
    main()
