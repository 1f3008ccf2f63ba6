"""Rows of a store: what makes one readable, and what is packed in it.

A store can be damaged in single rows, by a disk or by another program. Such a row is left out and told, so
that it takes nothing else with it.
"""

from __future__ import annotations

import math
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any

import msgspec

from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.state import MachineState
from cyclescope.kernel.variant import AGAIN, Kind
from cyclescope.measure.plan import Experiment
from cyclescope.measure.record import FAILED, LESS_THAN_NOTHING, NOISY, STABLE, UNSTABLE, Record
from cyclescope.measure.sampling import Measurement

_LONGEST = 1e12  # cycles: minutes; no kernel is given as long
_MOST = 1_000_000  # instances of a form in a kernel
_FEW = 500  # forms that one query looks up
INFLATED = 16 << 20  # bytes that a packed kernel or state has at most
_BLOCKING = "'slots', 'fetch', 'ports', 'pairs', 'order'"
# whose variants count instructions or cycles: x12, x12.2
_VERDICTS = (STABLE, UNSTABLE, NOISY, FAILED)
_TEXTS = ("form", "quantity", "source", "target", "variant", "verdict", "links", "error", "counters")
FIELDS = (
    "form", "quantity", "source", "target", "variant", "cycles", "spread", "verdict", "count", "links",
    "exceptions", "error", "id", "counters", "instructions", "rounds",
)  # fmt: skip

# Whether a row is what this program writes. A time that is the difference of two can come out a little below
# zero where noise is all there is, and then is not stable.
READABLE = " AND ".join(
    (
        *(f"typeof({name}) = 'text'" for name in _TEXTS),
        f"typeof(cycles) = 'real' AND cycles BETWEEN {LESS_THAN_NOTHING} AND {_LONGEST}",
        f"typeof(spread) = 'real' AND spread BETWEEN 0 AND {_LONGEST}",
        f"typeof(count) = 'integer' AND count BETWEEN 1 AND {_MOST}",
        "typeof(exceptions) = 'integer'",
        f"verdict IN ({', '.join(map(repr, _VERDICTS))})",
        f"(cycles > 0 OR verdict <> '{STABLE}')",
        f"(quantity NOT IN ({_BLOCKING}) OR variant GLOB 'x[0-9]*' "
        "AND rtrim(variant, '0123456789.') = 'x' AND CAST(substr(variant, 2) AS INTEGER) < 10000)",
    )
)
EVIDENCE = (
    "SELECT kernel, state.packed, flags, instructions, accepted, rejected, rounds, "
    "conditions FROM measurement LEFT JOIN state ON state.id = measurement.state "
    "LEFT JOIN session ON session.id = measurement.session WHERE measurement.id = ?"
)
KERNEL = (
    "SELECT kernel, packed, flags, instructions FROM measurement "
    "JOIN state ON state.id = measurement.state WHERE measurement.id = ?"
)
LEAST_THROUGHPUTS = f"""SELECT form, MIN(cycles / count) FROM measurement
    WHERE quantity = 'throughput' AND verdict = 'ok'
    AND (variant GLOB '{Kind.PLAIN}*' OR variant GLOB '{Kind.BROKEN}*'
        OR variant GLOB '{Kind.UNROLLED}*' OR variant = '{Kind.FAST}'
        OR variant GLOB '{Kind.NOT_TAKEN}*' AND instructions = count)
    AND variant NOT GLOB '*{AGAIN}' AND {READABLE}
    GROUP BY form"""

_IS_READABLE = f"CASE WHEN {READABLE} THEN 1 ELSE 0 END"  # as a value every part of it would be looked at


class Unreadable(msgspec.Struct, frozen=True):
    """A row that is left out: what it is of and its key, the form as far as that can be read, and why.

    Of a measurement `quantity` is what was measured.
    """

    what: str
    key: int | str
    form: str
    reason: str
    quantity: str = ""


class RowReader:
    """Reads rows of a database; `unreadable` are those that it left out, by where they are."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self.unreadable: dict[tuple[str, int | str], Unreadable] = {}
        self.damaged: set[tuple[str, str]] = set()  # forms with what was measured of them

    def leave_out(self, row: Unreadable) -> None:
        """Note a row that is not read."""
        self.unreadable[row.what, row.key] = row
        if row.form:
            self.damaged.add((row.form, row.quantity))

    def fetch(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """All rows, but for those with text that is not UTF-8."""
        try:
            return self._database.execute(query, values).fetchall()
        except sqlite3.OperationalError as error:
            self._be_lenient(error)
        rows = self._database.execute(query, values).fetchall()
        return [row for row in rows if all(is_text(value) for value in row if isinstance(value, str))]

    def texts(self, what: str, query: str) -> dict[str, str]:
        """The rows of a table of two texts."""
        rows = self._stream(query, ())
        found = {}
        for key, value in rows:
            if is_text(key) and is_text(value):
                found[key] = value
            else:
                self.leave_out(Unreadable(what, ascii(key)[:80], "", "no text"))
        return found

    def records(self, where: str, values: Sequence[object], rounds: bool = True) -> Iterator[Record]:
        """Records, as they come: there can be many. Without their `rounds` they are read faster."""
        fields = FIELDS if rounds else (*FIELDS[:-1], "''")
        for row in self._stream(
            f"SELECT {', '.join(fields)}, {_IS_READABLE} FROM measurement {where}", values
        ):
            try:
                if row[-1] and (not self._is_lenient or _is_all_text(row)):
                    yield record_of(row)
                    continue
                reason = trouble(row)
            except ValueError:
                reason = "counters are no numbers"
            form = row[0] if is_text(row[0]) else ascii(row[0])[:80]
            number = row[FIELDS.index("id")]
            self.leave_out(Unreadable("measurement", number, form, reason, row[FIELDS.index("quantity")]))

    @property
    def _is_lenient(self) -> bool:
        return self._database.text_factory is _lenient

    def _be_lenient(self, error: sqlite3.OperationalError) -> None:
        """From now on take text that is not UTF-8; if that is not what is wrong, the error is raised."""
        if self._is_lenient:
            raise error
        self._database.text_factory = _lenient

    def _stream(self, query: str, values: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        """Rows one by one, whatever their text."""
        given = 0
        try:
            for row in self._database.execute(query, values):
                given += 1
                yield row
        except sqlite3.OperationalError as error:
            self._be_lenient(error)
            yield from islice(self._database.execute(query, values), given, None)


def _lenient(data: bytes) -> str:
    """Text that need not be UTF-8; a function of its own costs time for every text."""
    return data.decode("utf-8", "surrogateescape")


def is_text(value: object) -> bool:
    """Whether a value is text, and was UTF-8."""
    if not isinstance(value, str):
        return False
    return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)


def _is_all_text(row: Sequence[Any]) -> bool:
    return all(is_text(value) for value in row if isinstance(value, str))


def trouble(row: Sequence[Any]) -> str:
    """What is wrong with a row of `FIELDS` that is not readable."""
    values = dict(zip(FIELDS, row, strict=False))
    for name in _TEXTS:
        if not is_text(values[name]):
            return f"{name} is no text"
    for name in ("cycles", "spread"):
        value = values[name]
        if not isinstance(value, float) or not abs(value) <= _LONGEST or (name == "spread" and value < 0):
            return f"{name} is {_shown(value)}"
    for name, most in (("count", _MOST), ("exceptions", None)):
        value = values[name]
        if not isinstance(value, int) or (most and not 1 <= value <= most):
            return f"{name} is {_shown(value)}"
    if values["verdict"] not in _VERDICTS:
        return f"verdict is {_shown(values['verdict'])}"
    return (
        f"{values['cycles']:g} cycles of a {values['quantity'][:20]} experiment {_shown(values['variant'])}"
    )


def _shown(value: object) -> str:
    return "missing" if value is None else repr(value)[:40]


def record_of(row: Sequence[Any]) -> Record:
    """The record of a readable row. Raises ValueError where its counters are no numbers."""
    form, quantity, source, target, variant, cycles, spread, verdict, count, links, *rest = row
    exceptions, error, number, counters, instructions, rounds, *_ = rest
    return Record(
        form, quantity, source, target, variant, cycles, spread, verdict, count,
        tuple(links.split()) if links else (), exceptions, error, number,
        _numbers(counters) if counters else (), _readings(rounds) if rounds else (),
        _number(instructions),
    )  # fmt: skip


def _readings(text: str) -> tuple[float, ...]:
    """Those of rounds that had one; nothing where the text is none of ours."""
    try:
        found = tuple(map(float, text.split()))
    except ValueError:
        return ()
    return found if all(map(math.isfinite, found)) else tuple(filter(math.isfinite, found))


def _numbers(text: str) -> tuple[float, ...]:
    found = tuple(map(float, text.split()))
    if not all(map(math.isfinite, found)):
        raise ValueError("a count that is no number")
    return found


# --- packed parts ------------------------------------------------------------------------------------


class Evidence(msgspec.Struct, frozen=True):
    """The kernel behind a measurement, enough to run it again."""

    record: Record
    code: bytes
    setup: bytes
    text: str
    state: bytes
    flags: int
    instructions: int
    accepted: int
    rejected: int
    rounds: tuple[float, ...]
    conditions: dict[str, object]


def row_of(experiment: Experiment, found: Measurement, session: int, state: int) -> tuple[object, ...]:
    """A measurement in the order of a store's columns, with the numbers of its session and machine state."""
    e, m, kernel = experiment, found, experiment.kernel
    return (
        *e.key, m.cycles, m.spread, m.verdict, e.count, " ".join(e.links), m.accepted, m.rejected,
        " ".join(map(str, m.rounds)), m.exceptions, m.error, " ".join(map(str, m.counters)), session, state,
        kernel.flags, kernel.instructions, pack_kernel(kernel),
    )  # fmt: skip


def pack_kernel(kernel: Kernel) -> bytes:
    """Setup, code and assembly of a kernel, compressed."""
    head = len(kernel.setup).to_bytes(2, "little") + len(kernel.code).to_bytes(2, "little")
    return _packer()(head + kernel.setup + kernel.code + kernel.text().encode())


@cache
def _packer() -> Callable[[bytes], bytes]:
    """What packs as zlib does: where there is zlib-ng, that takes a third of the time."""
    try:
        from zlib_ng.zlib_ng import compress
    except ImportError:
        return _packed
    return partial(compress, level=1)


def _packed(data: bytes) -> bytes:
    """With the memory for 8 KiB: to clear what zlib takes for more lasts longer than to pack some hundred."""
    packing = zlib.compressobj(1, zlib.DEFLATED, 13, 5)
    return packing.compress(data) + packing.flush()


def unpack_kernel(blob: object) -> tuple[bytes, bytes, str]:
    """(setup, code, assembly) from `pack_kernel`. Raises ValueError or zlib.error for anything else."""
    data = inflate(blob)
    setup, code = int.from_bytes(data[:2], "little"), int.from_bytes(data[2:4], "little")
    if len(data) < 4 + setup + code:
        raise ValueError("a kernel is cut short")
    return data[4 : 4 + setup], data[4 + setup : 4 + setup + code], data[4 + setup + code :].decode()


def inflate(blob: object) -> bytes:
    """What was packed, no more than a kernel or a state can be."""
    if not isinstance(blob, bytes):
        raise ValueError(f"a kernel or its state is {type(blob).__name__}")
    found = zlib.decompressobj()
    data = found.decompress(blob, INFLATED)
    if not found.eof:
        raise ValueError("a kernel or its state is cut short, or far too long")
    return data


def kernel_of(row: Sequence[Any]) -> tuple[str, Kernel]:
    """Assembly and kernel of (kernel, packed state, flags, instructions)."""
    blob, packed, flags, instructions = row
    setup, code, text = unpack_kernel(blob)
    try:
        state = MachineState.unpack(inflate(packed))
    except IndexError as error:  # more values in memory than a state has
        raise ValueError("a state is damaged") from error
    return text, Kernel(code, _number(instructions), state, setup, _number(flags))


def evidence_of(found: Record, row: Sequence[Any]) -> Evidence:
    """The evidence of a record from the rest of its row."""
    blob, packed, flags, instructions, accepted, rejected, rounds, conditions = row
    setup, code, text = unpack_kernel(blob)
    return Evidence(
        found, code, setup, text, inflate(packed), _number(flags), _number(instructions),
        _number(accepted), _number(rejected), tuple(map(float, str(rounds).split())),
        conditions_of(conditions) if conditions else {},
    )  # fmt: skip


def conditions_of(text: object) -> dict[str, object]:
    """The conditions of a session. Raises ValueError for what is no JSON object."""
    try:
        return msgspec.json.decode(str(text), type=dict[str, object])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"the conditions of a session are no JSON object: {error}") from error


def _number(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < 1 << 32:
        raise ValueError(f"{_shown(value)} where a number was written")
    return value


def parts(forms: Sequence[str]) -> Iterator[Sequence[str]]:
    """As many as one query takes."""
    for start in range(0, len(forms), _FEW):
        yield forms[start : start + _FEW]


def among(forms: Sequence[str] | None) -> tuple[str, list[str]]:
    """A condition on rows, with its values: that they are of some forms; of many all are as soon read."""
    if forms is None or len(forms) > _FEW:
        return "", []
    return f"form IN ({marks(forms)}) AND ", list(forms)


def marks(values: Sequence[object]) -> str:
    """Places for values in a query."""
    return ", ".join("?" * len(values))
