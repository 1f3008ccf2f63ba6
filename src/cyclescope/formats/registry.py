"""The formats there are, by name, and which one a file has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cyclescope.errors import UsageError
from cyclescope.formats.exchange import Exported, Imported, ImportRequest
from cyclescope.formats.origin import LINES, XML, with_origin
from cyclescope.model.machine import MachineModel

if TYPE_CHECKING:
    from cyclescope.infer.timing.results import FormTiming

DUMP = "llvm-json"
HEAD = 1 << 16  # bytes that tell a file's format


class Format(msgspec.Struct, frozen=True):
    """One format; `reader` and `writer` are `module:function`, empty where there is none.

    `suffix` chooses the format of a file to write, `sign` is what a file to read has near its beginning,
    `comment` how it begins a comment, empty where it has none, `has_opcodes` whether forms have LLVM's names,
    `is_several` whether a file can have several machines, `has_results` whether it has more of a store than
    the model that the store makes.
    """

    name: str
    about: str
    sign: str
    reader: str = ""
    writer: str = ""
    suffix: str = ""
    comment: str = ""
    has_opcodes: bool = False
    is_several: bool = False
    has_results: bool = False

    def read(self, path: Path, request: ImportRequest) -> Imported:
        """The model in a file. Raises FormatError and OSError."""
        found: Imported = _function(self.reader)(path, request)
        return found

    def write(self, model: MachineModel, timings: Mapping[str, FormTiming] | None = None) -> Exported:
        """A model's text in this format, with what it is from. Raises FormatError.

        `timings` are the results of the store that the model was made of, by form, where there is one.
        """
        results = (timings or {},) if self.has_results else ()
        found: Exported = _function(self.writer)(model, *results)
        return msgspec.structs.replace(found, text=with_origin(found.text, model, self.comment))


def _function(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    found: Callable[..., Any] = getattr(import_module(f"cyclescope.formats.{module}"), name)
    return found


FORMATS = (
    Format("uops-info", "uops.info's instructions.xml", r"<(root|instruction)\b",
           "uops_info.reader:read", "uops_info.writer:write", ".xml", XML, is_several=True,
           has_results=True),
    Format("osaca", "a machine model of OSACA (YAML)",
           r"(?m)^(osaca_version|instruction_forms|port_model_scheme):",
           "osaca.reader:read", "osaca.writer:write", ".yml", LINES),
    Format("winic", "WINIC's results (YAML)", r"llvmName:", "winic:read", "winic:write",
           comment=LINES, has_opcodes=True),
    Format("winic-csv", "WINIC's results as a table", r"\A\W*llvm_name,", "winic_table:read"),
    Format("exegesis-latency", "llvm-exegesis' records of latencies (YAML)", r"(?m)^mode:\s+latency",
           "llvm.exegesis:read", "llvm.exegesis:write_latencies", comment=LINES, has_opcodes=True),
    Format("exegesis-throughput", "llvm-exegesis' records of reciprocal throughputs (YAML)",
           r"(?m)^mode:\s+inverse_throughput", "llvm.exegesis:read",
           "llvm.exegesis:write_throughputs", comment=LINES, has_opcodes=True),
    Format("llvm-td", "a draft of a scheduling model of LLVM (TableGen)",
           r"(?m)^def \w+ : SchedMachineModel", "llvm.drafts:read", "llvm.scheduling:write", ".td",
           has_opcodes=True),
    Format(DUMP, "what llvm-tblgen -dump-json prints of a target of LLVM", r"\A\s*\{\s*\"!instanceof\"",
           "llvm.dump:read", is_several=True),
    Format("slothy", "a target module of SLOTHY (Python), AArch64", r"(?m)^COSTS = json\.loads\(",
           "slothy.reader:read", "slothy.writer:write", ".py", LINES),
    Format("csv", "a table with a row per form", r"\A\W*form,", "table:read", "table:write", ".csv"),
    Format("uops-info-csv", "uops.info's table as CSV", r"\A\W*instruction,", "uops_info.table:read"),
    Format("instlatx64", "a dump of InstLatx64 or AIDA64", r"L:.*T:\s*[\d.]+ns=", "instlat:read"),
    Format("ibench", "what ibench prints", r"(?m)^\s*[\w.-]+-(TP|LT)\s*:", "microbenchmarks:read_ibench"),
    Format("asmbench", "what asmbench prints", r"(?m)^(Latency|Throughput):.*\bcy",
           "microbenchmarks:read_asmbench"),
)  # fmt: skip
READABLE = tuple(f.name for f in FORMATS if f.reader)
WRITABLE = tuple(f.name for f in FORMATS if f.writer)


def by_name(name: str) -> Format:
    """A format by its name."""
    return next(f for f in FORMATS if f.name == name)


def is_dump(path: Path) -> bool:
    """Whether a file is JSON of llvm-tblgen, and no machine model."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return re.search(by_name(DUMP).sign, file.read(HEAD).decode("utf-8", "replace")) is not None


def of_contents(path: Path) -> Format:
    """The format of an existing file, by what it contains. Raises UsageError and OSError."""
    with path.open("rb") as file:
        head = file.read(HEAD).decode("utf-8", "replace").lstrip("\ufeff")
    found = next((f for f in FORMATS if f.reader and re.search(f.sign, head)), None)
    if found is None:
        raise UsageError(f"{path} is of no known format", f"{{kind}} can be one of {', '.join(READABLE)}")
    return found


def of_suffix(path: Path) -> Format:
    """The format that a file is to be written in, by its name. Raises UsageError."""
    found = next((f for f in FORMATS if f.suffix and f.suffix == path.suffix.lower()), None)
    if found is None:
        known = ", ".join(f"{f.suffix} ({f.name})" for f in FORMATS if f.suffix)
        remedy = f"it can end in {known}, or say {{format}}"
        raise UsageError(f"the name {path.name!r} tells no format", remedy)
    return found
