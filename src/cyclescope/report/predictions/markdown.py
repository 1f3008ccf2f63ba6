"""A prediction as Markdown, and the tables that pages have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cyclescope.analyze.predict.prediction import LOOP_CARRIED, InstructionCost, Prediction
from cyclescope.report.predictions.text import (
    WORDS,
    bound_words,
    no_bounds,
    sum_rows,
    summary_lines,
    where_cells,
    where_columns,
)
from cyclescope.report.words import plain

LAST = "CP", "LCD", "instruction"  # columns behind the ports
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&!]")  # what Markdown reads as more than text


class CostTable:
    """Rows of cells, the first one the head; what both kinds of page print."""

    def __init__(self, found: Prediction) -> None:
        totals = found.ports_fixed if found.fixed else found.ports
        self.found = found
        self.ports = [name for name, cycles in totals.items() if cycles]
        self.most = max(
            (cycles for row in found.instructions for cycles in self._used(row).values()), default=0.0
        )
        self.where = where_columns(found)
        self.head = [*self.where, *self.ports, *LAST]
        self.sums = [[*[""] * (len(self.where) - 1), *row] for row in sum_rows(found, self.ports)]

    def _used(self, row: InstructionCost) -> dict[str, float]:
        return row.ports_fixed if self.found.fixed else row.ports

    def cells(self, row: InstructionCost) -> list[str]:
        """The cells of one instruction."""
        used = self._used(row)
        return [
            *where_cells(row, self.where), *(_number(used.get(port)) for port in self.ports),
            _number(row.critical_path), _number(row.loop_carried), _text(row),
        ]  # fmt: skip

    def shade(self, row: InstructionCost, port: str) -> float:
        """How full a port is by one instruction, from 0 to 1."""
        return self._used(row).get(port, 0.0) / self.most if self.most else 0.0


def _number(cycles: float | None) -> str:
    return "" if cycles is None else f"{cycles:.2f}"


def _text(row: InstructionCost) -> str:
    remarks = [*row.remarks, *(["UNKNOWN, left out"] if row.ignored else [])]
    text = " ".join(row.text.split())
    return f"{text}  [{', '.join(remarks)}]" if remarks else text


def bounds(found: Prediction) -> list[tuple[str, str]]:
    """What the loop would take if one bound were the only one; in parentheses what is none."""
    rows = [(bound_words(found, name), f"{cycles:.2f}") for name, cycles in found.alone.items()]
    return rows + [(f"({words})", f"{cycles:.2f}") for words, cycles in no_bounds(found)]


def chains(found: Prediction) -> list[tuple[str, str]]:
    """Cycles and lines of the loop-carried dependencies, the slowest first."""
    rows = []
    for chain in found.loop_carried:
        lines = ", ".join(map(str, chain.lines)) if any(chain.lines) else "; ".join(
            found.instructions[n].text for n in chain.instructions
        )  # fmt: skip
        over = f" over {chain.iterations} iterations" if chain.iterations > 1 else ""
        rows.append((f"{chain.cycles:.2f}", lines + over))
    return rows


# --- Markdown ----------------------------------------------------------------------------------------


def markdown(found: Prediction) -> str:
    """The report with Markdown tables."""
    found = plain(found)
    table = CostTable(found)
    rows = [_code_last(table.cells(row)) for row in found.instructions]
    parts = [
        "\n".join(f"{_literal(line)}  " for line in summary_lines(found)).rstrip(),
        _markdown_table(("if this alone were the bound", "cycles"), _literals(bounds(found))),
        _markdown_table(table.head, [*rows, *table.sums]),
    ]
    if found.loop_carried:
        parts.append(_markdown_table((f"{WORDS[LOOP_CARRIED]}, cycles", "lines"), _literals(chains(found))))
    parts += [f"- {_literal(note)}" for note in found.notes]
    return "\n\n".join(parts)


def regions_markdown(found: Iterable[Prediction]) -> str:
    """The reports of several regions, with a line between them."""
    return "\n\n---\n\n".join(map(markdown, found))


def _code_last(cells: list[str]) -> list[str]:
    return [*map(_literal, cells[:-1]), _code(cells[-1])]


def _literal(text: str) -> str:
    """A text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def _code(text: str) -> str:
    """A text as code, between more backticks than are in it."""
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    edge = " " if "`" in text else ""
    return f"{fence}{edge}{text.replace('|', chr(92) + '|')}{edge}{fence}"


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells that are Markdown; the head is plain text."""
    lines = [[_literal(cell) for cell in head], ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _literals(rows: Iterable[Sequence[str]]) -> list[list[str]]:
    return [[_literal(cell) for cell in row] for row in rows]
