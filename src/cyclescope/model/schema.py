"""Machine models as JSON: reading and writing."""

from __future__ import annotations

import lzma
from itertools import islice
from pathlib import Path

import msgspec

from cyclescope.errors import UsageError, unwritable
from cyclescope.model import limits
from cyclescope.model.check import TOLD, ModelError, shown
from cyclescope.model.machine import SCHEMA_VERSION, Core, FormCost, MachineModel, Provenance


class _Head(msgspec.Struct):
    """What is looked at first: forms take much memory once they are read."""

    schema_version: int = SCHEMA_VERSION
    forms: dict[str, msgspec.Raw] = {}


def encode(model: MachineModel) -> bytes:
    """A model as JSON."""
    return msgspec.json.format(msgspec.json.encode(model), indent=1)


def decode(data: bytes) -> MachineModel:
    """The model in JSON data, as it stands there: `model.check` says whether it can be. Raises ModelError."""
    if data.startswith(limits.DATABASE):
        raise ModelError("a store of measurements, no machine model", "`cyclescope machines build` makes one")
    if len(data) > limits.FILE_BYTES:
        raise ModelError(f"more than {limits.FILE_BYTES >> 20} MiB", "no machine model is so large")
    try:
        head = msgspec.json.decode(data, type=_Head)
        version, forms = head.schema_version, len(head.forms)
        del head
        if forms > limits.FORMS:
            raise ModelError(f"forms: {forms}, more than {limits.FORMS}", "no machine model has so many")
        if 1 <= version <= SCHEMA_VERSION:
            return msgspec.json.decode(data, type=MachineModel)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"no machine model: {_told(data, error)}") from None
    except RecursionError:
        raise ModelError("no machine model: nested too deeply") from None
    raise ModelError(f"a machine model of schema version {version}", f"this one reads up to {SCHEMA_VERSION}")


def read_model(path: Path) -> MachineModel:
    """The model in a file, which may be compressed (.xz), unchecked. Raises ModelError and UsageError."""
    try:
        with path.open("rb") as file:
            data = file.read(limits.FILE_BYTES + 1)
        return decode(_unpacked(data) if path.suffix == ".xz" else data)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file", "{machines} lists the shipped models") from None
    except (ModelError, lzma.LZMAError) as error:
        raise ModelError(f"{path}: {error}") from None
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from None


class SummaryOnly(msgspec.Struct, frozen=True):
    """What is read of a model without reading what its forms cost."""

    name: str
    isa: str
    provenance: Provenance
    core: Core
    ports: tuple[str, ...]
    forms: dict[str, msgspec.Raw]


def read_summary(path: Path) -> SummaryOnly:
    """A model in a file, but for what its forms cost. Raises ModelError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=SummaryOnly)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise ModelError(f"{path}: no machine model: {error}") from None


def write_model(model: MachineModel, path: Path) -> None:
    """Write a model as JSON, compressed where the name ends in .xz. Raises UsageError where that fails."""
    data = encode(model)
    try:
        path.write_bytes(lzma.compress(data) if path.suffix == ".xz" else data)
    except OSError as error:
        raise unwritable(path, error) from error


def _unpacked(data: bytes) -> bytes:
    """What a compressed file holds, as far as a model can be long."""
    unpacking = lzma.LZMADecompressor(memlimit=limits.UNPACKING_BYTES)
    found = unpacking.decompress(data, limits.FILE_BYTES + 1)
    if len(found) <= limits.FILE_BYTES and not unpacking.eof:
        raise ModelError("the compressed file is cut off")
    return found


def _told(data: bytes, error: Exception) -> str:
    """What is wrong; of costs, with the forms, which msgspec does not name."""
    if "forms[...]" not in str(error):
        return str(error)
    forms = msgspec.json.decode(data, type=_Head).forms
    wrong = ((form, told) for form, cost in forms.items() if (told := _misfit(cost)))
    first = [f"forms: {shown(form)}: {told}" for form, told in islice(wrong, TOLD)]
    rest = sum(1 for _ in wrong)
    return ("; ".join(first) or str(error)) + (f"; and {rest} more" if rest else "")


def _misfit(cost: msgspec.Raw) -> str:
    try:
        msgspec.json.decode(cost, type=FormCost)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return str(error)
    return ""
