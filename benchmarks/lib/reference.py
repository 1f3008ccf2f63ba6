"""Reference tables of other projects, to compare with; nothing of them enters the product.

A reference gives every form a throughput and latencies. Where a table names operand pairs they come
as it names them; where it only has a summary over all pairs (uops.info's CSV), the summary is one
latency without a pair.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from cyclescope.errors import UsageError


class RowLatency(msgspec.Struct, frozen=True):
    """A latency from `low` to `high` cycles; an end that is only a bound from above is marked.

    `pair` is empty for a summary over all pairs. `status` is the table's own, `combined` the length
    of the chain it comes from and `helpers` what was in it, where the table says so.
    """

    pair: str
    low: float
    high: float
    low_bound: bool = False
    high_bound: bool = False
    status: str = ""
    combined: float | None = None
    helpers: str = ""


class Row(msgspec.Struct, frozen=True):
    """One form of a table."""

    name: str
    throughput: float | None
    latencies: tuple[RowLatency, ...]
    helper: str = ""


class Reference(msgspec.Struct, frozen=True):
    """A table: where its names come from (`llvm` or `uops_info`), and what is known of its method.

    `immediate` is the value of every immediate, None where it is ours or unknown; `short` says that
    its throughput is a difference of two short loops; `left_out` counts values the table marks as
    doubtful itself.
    """

    title: str
    microarchitecture: str
    naming: str
    rows: dict[str, Row]
    immediate: int | None = None
    short: bool = False
    left_out: int = 0


# --- uops.info -------------------------------------------------------------------------------------

_END = re.compile(r"(≤?)\s*(\d+(?:\.\d+)?)")


def summary(text: str) -> tuple[RowLatency, ...]:
    """`4`, `[1;≤6]` or `≤9`: the least and the greatest latency over all pairs."""
    ends = _END.findall(text)
    if not ends:
        return ()
    (low_mark, low), (high_mark, high) = ends[0], ends[-1]
    return (RowLatency("", float(low), float(high), bool(low_mark), bool(high_mark)),)


def uops_info(path: Path) -> Reference:
    """The public CSV: instruction, latency summary, throughput (from ports / measured)."""
    rows = {}
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            measured = line["throughput"].split("/")[-1].strip()
            name = line["instruction"]
            rows[name] = Row(name, float(measured) if measured else None, summary(line["latency"]))
    return Reference(f"uops.info ({path.name})", microarchitecture(path.name), "uops_info", rows)


# --- WINIC -----------------------------------------------------------------------------------------


def winic(path: Path) -> Reference:
    """A pair of tables NAME_tp.csv and NAME_lat.csv; only rows without flags (the table's own doubts)."""
    stem = re.sub(r"_(tp|lat)$", "", path.stem)
    throughputs = list(_lines(path.with_name(f"{stem}_tp.csv")))
    latencies = list(_lines(path.with_name(f"{stem}_lat.csv")))
    pairs: dict[str, list[RowLatency]] = {}
    for line in latencies:
        if line["value_min"] and not line["flags"]:
            pairs.setdefault(line["llvm_name"], []).append(_winic_latency(line))
    rows = {
        line["llvm_name"]: Row(
            line["llvm_name"], _exact(line), tuple(pairs.get(line["llvm_name"], ())), line["helper"]
        )
        for line in throughputs
    }
    flagged = sum(bool(line["flags"]) and bool(line["value_min"]) for line in (*throughputs, *latencies))
    return Reference(
        f"WINIC ({stem})", microarchitecture(stem), "llvm", rows, immediate=7, short=True, left_out=flagged
    )


def _lines(path: Path) -> Iterable[dict[str, str]]:
    with path.open(newline="") as file:
        yield from csv.DictReader(file)


def _exact(line: dict[str, str]) -> float | None:
    """A throughput that is one value; ranges come from helpers whose cost was guessed."""
    good = line["value_min"] and not line["flags"] and line["status"] == "OK"
    return float(line["value_min"]) if good else None


def _winic_latency(line: dict[str, str]) -> RowLatency:
    combined = float(line["combined"]) if line["combined"] else None
    low, high = sorted((float(line["value_min"]), float(line["value_max"])))
    return RowLatency(
        line["pair"], low, high, status=line["status"], combined=combined, helpers=line["helpers"]
    )


# --- choosing --------------------------------------------------------------------------------------

FORMATS: dict[str, Callable[[Path], Reference]] = {"uops.info": uops_info, "winic": winic}
_NAMES = {"neoverse_v2": "neoverse-v2", "spacemit_x60": "spacemit-x60"}


def microarchitecture(name: str) -> str:
    """LLVM's name of the microarchitecture a file name speaks of, or ""."""
    zen = re.search(r"zen(\d)", name)
    if zen:
        return f"znver{zen[1]}"
    return next((llvm for part, llvm in _NAMES.items() if part in name), "")


def load(path: Path, kind: str) -> Reference:
    """Read a table. Raises UsageError where it is not there or not of this kind."""
    try:
        return FORMATS[kind](path)
    except OSError as error:
        raise UsageError(f"no reference at {path}", "name one with --reference") from error
    except (KeyError, ValueError) as error:
        raise UsageError(f"{path} is no {kind} table ({error})", "choose another --format") from error
