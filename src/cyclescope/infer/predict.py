"""The library's way to predictions: code in, machine by any name people use, prediction out."""

from __future__ import annotations

from contextlib import closing
from functools import cache
from pathlib import Path

from cyclescope.analyze.block import Block
from cyclescope.analyze.prediction import Prediction
from cyclescope.analyze.predictor import Predictor
from cyclescope.analyze.source import Choice, read_block
from cyclescope.errors import BackendUnavailable, StoreError, UsageError
from cyclescope.host.identity import Identity
from cyclescope.host.uname import host_isa
from cyclescope.model.library import load_model
from cyclescope.model.machine import MEASURED, MachineModel

# What OSACA and uops.info call CPUs, by LLVM's names.
ALIASES = {
    "snb": "sandybridge", "ivb": "ivybridge", "hsw": "haswell", "bdw": "broadwell", "skl": "skylake",
    "kbl": "skylake", "cfl": "skylake", "skx": "skylake-avx512", "clx": "cascadelake", "csx": "cascadelake",
    "cnl": "cannonlake", "icl": "icelake-client", "icx": "icelake-server", "tgl": "tigerlake",
    "rkl": "rocketlake", "spr": "sapphirerapids", "emr": "emeraldrapids", "adl-p": "alderlake",
    "adl-e": "gracemont", "mtl-p": "meteorlake", "nhm": "nehalem", "wsm": "westmere",
    "zen": "znver1", "zen+": "znver1", "zen1": "znver1", "zen2": "znver2", "zen3": "znver3",
    "zen4": "znver4", "zen5": "znver5", "n1": "neoverse-n1", "n2": "neoverse-n2", "v1": "neoverse-v1",
    "v2": "neoverse-v2", "a72": "cortex-a72", "a53": "cortex-a53", "tx2": "thunderx2t99", "m1": "apple-a14",
}  # fmt: skip
_AMD = ("znver", "bdver", "btver", "zen")
# What is taken for code that this host does not execute, or where nothing is known of the host.
ELSEWHERE = {"x86-64": "sapphirerapids", "aarch64": "neoverse-v2", "riscv64": "sifive-p670"}


def machine_named(name: str) -> MachineModel:
    """A machine by LLVM's, OSACA's or uops.info's name, `native`, or the model in a file.

    Raises UsageError for unknown names, StoreError and BackendUnavailable for `native`.
    """
    if name.lower() == "native":
        from cyclescope.infer.native import native_model  # slow to import

        return native_model()
    return load_model(ALIASES.get(name.lower(), name))


def host_machine(isa: str = "x86-64") -> MachineModel | None:
    """This host: its measured model where it has ports, else LLVM's of its microarchitecture.

    None where it does not execute the ISA, or LLVM has no model of it.
    """
    identity = this_host() if isa == host_isa() else None
    if identity is None:
        return None
    measured = _measured(identity.machine)
    if measured is not None and measured.ports:
        return measured
    return load_model(identity.llvm) if identity.llvm else None


def default_machine(isa: str = "x86-64") -> MachineModel:
    """This host (`host_machine`), else always the same machine of the ISA (`ELSEWHERE`)."""
    return host_machine(isa) or load_model(ELSEWHERE[isa])


def _measured(machine: str) -> MachineModel | None:
    from cyclescope.infer.api import default_store  # slow to import

    try:
        return machine_named("native") if default_store(machine).is_file() else None
    except (StoreError, BackendUnavailable):
        return None


@cache
def this_host() -> Identity | None:
    """What this CPU is, None where nothing can run on it."""
    from cyclescope.backend.native import NativeBackend

    try:
        with closing(NativeBackend()) as backend:
            return backend.capabilities().identity
    except BackendUnavailable:
        return None


def vendor_of(machine: str) -> str:
    """`amd` for machines that read 16-bit branches as AMD does, else ""."""
    words = machine.lower().replace("-", " ").split()
    return "amd" if any(word.startswith(_AMD) for word in words) else ""


def stand_in_for(model: MachineModel) -> MachineModel | None:
    """The shipped model of the core that a model was measured on: some forms cannot be measured."""
    if model.provenance.kind != MEASURED:
        return None
    try:
        found = load_model(model.name.rpartition(" ")[2])
    except UsageError:
        return None
    return found if found.isa == model.isa else None


@cache
def _named_predictor(name: str) -> Predictor:
    model = machine_named(name)
    return Predictor(model, stand_in_for(model))


_kept: list[Predictor] = []  # the last one made for a model, since a loop over blocks gives the same again


def predictor_of(machine: str | MachineModel) -> Predictor:
    """The predictor of a machine, made once for a name and for the model used last."""
    if isinstance(machine, str):
        return _named_predictor(machine)
    if not _kept or _kept[0].machine is not machine:
        _kept[:] = [Predictor(machine, stand_in_for(machine))]
    return _kept[0]


def predict(
    code: str | bytes | Path | Block,
    machine: str | MachineModel,
    *,
    choice: Choice | None = None,
    syntax: str = "",
    fixed: bool = False,
    ignore_unknown: bool = False,
    unroll_factor: float = 0,
    simulate: bool = True,
) -> Prediction:
    """What bounds a loop on a machine: cycles per iteration, bounds, dependencies.

    `code` is assembly text (str), machine code or an ELF file (bytes), a file (Path) or a block read before;
    `choice` and `syntax` are those of `analyze.source.read_block`. `machine` is a model or a name that
    `machine_named` takes. The other arguments are those of `Predictor.predict`; without `simulate` many
    blocks go faster. Raises UnknownInstructions, SourceError, UsageError, UnsupportedInstruction,
    BackendUnavailable.
    """
    predictor = predictor_of(machine)
    if not isinstance(code, Block):
        model = predictor.machine
        code = read_block(code, model.isa, choice, syntax, vendor_of(model.name))
    return predictor.predict(
        code, fixed=fixed, ignore_unknown=ignore_unknown, unroll_factor=unroll_factor, simulate=simulate
    )
