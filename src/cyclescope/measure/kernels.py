"""The kernels of many forms of a store in one pass, with what they took: for reports of whole machines."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import msgspec

from cyclescope.measure.record import Record
from cyclescope.measure.rows import FIELDS, READABLE, record_of, unpack_kernel
from cyclescope.measure.store import Store

GROUP = 500  # forms of one query: SQLite takes at least 999 values


class ShownKernel(msgspec.Struct, frozen=True):
    """A measured kernel as it is shown: its record, its machine code and its assembly by lines."""

    record: Record
    code: bytes
    lines: tuple[str, ...]


def shown_kernels(store: Store, forms: Sequence[str]) -> Iterator[tuple[str, list[ShownKernel]]]:
    """The kernels of each form in the order of their numbers; a damaged one is left out."""
    for start in range(0, len(forms), GROUP):
        some = forms[start : start + GROUP]
        found: dict[str, list[ShownKernel]] = {form: [] for form in some}
        marks = ", ".join("?" * len(some))
        query = (
            f"SELECT {', '.join(FIELDS)}, kernel FROM measurement "
            f"WHERE form IN ({marks}) AND {READABLE} ORDER BY form, id"
        )
        for row in store.rows(query, some):
            try:
                _, code, text = unpack_kernel(row[-1])
                shown = ShownKernel(record_of(row[:-1]), code, tuple(text.splitlines()))
            except (ValueError, zlib.error):
                store.leave_out("measurement", row[FIELDS.index("id")], "its kernel is damaged")
                continue
            found[shown.record.form].append(shown)
        yield from found.items()
