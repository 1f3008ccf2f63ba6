"""A prediction as a page: HTML in one file, and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from cyclescope.analyze.prediction import LOOP_CARRIED, InstructionCost, Prediction
from cyclescope.report.analysis import WORDS, no_bounds, sum_rows, summary_lines
from cyclescope.report.graph import svg

_STYLE = """body { font-family: sans-serif; margin: 2em; }
table { border-collapse: collapse; margin: 1em 0; }
td, th { padding: 2px 8px; text-align: right; border-bottom: 1px solid #ddd; }
td.text, th.text { text-align: left; font-family: monospace; white-space: pre; }
td.number, td.port { font-variant-numeric: tabular-nums; }
.critical { font-weight: bold; }
.carried { color: #c00000; }"""


class _Table:
    """Rows of cells, the first one the head; what both kinds of page print."""

    def __init__(self, found: Prediction) -> None:
        totals = found.ports_fixed if found.fixed else found.ports
        self.found = found
        self.ports = [name for name, cycles in totals.items() if cycles]
        self.most = max(
            (cycles for row in found.instructions for cycles in self._used(row).values()), default=0.0
        )
        self.head = ["line", *self.ports, "CP", "LCD", "instruction"]
        self.sums = sum_rows(found, self.ports)

    def _used(self, row: InstructionCost) -> dict[str, float]:
        return row.ports_fixed if self.found.fixed else row.ports

    def cells(self, row: InstructionCost) -> list[str]:
        """The cells of one instruction."""
        used = self._used(row)
        return [
            str(row.line or ""), *(_number(used.get(port)) for port in self.ports),
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


def _bounds(found: Prediction) -> list[tuple[str, str]]:
    rows = [(WORDS[name], f"{cycles:.2f}") for name, cycles in found.alone.items()]
    return rows + [(f"({words})", f"{cycles:.2f}") for words, cycles in no_bounds(found)]


def _chains(found: Prediction) -> list[tuple[str, str]]:
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
    table = _Table(found)
    rows = [_code_last(table.cells(row)) for row in found.instructions]
    parts = [
        "\n".join(f"{line}  " for line in summary_lines(found)).rstrip(),
        _markdown_table(("if this alone were the bound", "cycles"), _bounds(found)),
        _markdown_table(table.head, [*rows, *table.sums]),
    ]
    if found.loop_carried:
        parts.append(_markdown_table((f"{WORDS[LOOP_CARRIED]}, cycles", "lines"), _chains(found)))
    parts += [f"- {note}" for note in found.notes]
    return "\n\n".join(parts)


def _code_last(cells: list[str]) -> list[str]:
    return [*cells[:-1], f"`{cells[-1]}`"]


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


# --- HTML --------------------------------------------------------------------------------------------


def page(found: Prediction) -> str:
    """The report as HTML in one file, with the drawing of the dependencies."""
    table = _Table(found)
    title = escape(" ".join(filter(None, (found.source, found.name, "on", found.machine))))
    body = [
        *(f"<p>{escape(line)}</p>" for line in summary_lines(found)),
        _html_table(("if this alone were the bound", "cycles"), _bounds(found)),
        "<table>",
        _html_row(table.head, "th"),
        *(_instruction(table, row) for row in found.instructions),
        *(_html_row(cells, "th") for cells in table.sums),
        "</table>",
        _html_table((f"{WORDS[LOOP_CARRIED]}, cycles", "lines"), _chains(found))
        if found.loop_carried
        else "",
        *(f"<p>{escape(note)}</p>" for note in found.notes),
        svg(found),
    ]
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return "\n".join(
        ["<!doctype html>", f"<html><head>{head}</head><body>", *filter(None, body), "</body></html>", ""]
    )


def _html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(["<table>", _html_row(head, "th"), *(_html_row(row, "td") for row in rows), "</table>"])


def _html_row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _instruction(table: _Table, row: InstructionCost) -> str:
    """A row whose port cells are the darker the fuller."""
    names = [
        n for n, on in (("critical", row.critical_path), ("carried", row.loop_carried)) if on is not None
    ]
    cells = table.cells(row)
    parts = [f"<td>{cells[0]}</td>"]
    for port, cell in zip(table.ports, cells[1:], strict=False):
        parts.append(
            f'<td class="port" style="background:rgba(255,140,0,{table.shade(row, port):.2f})">{cell}</td>'
        )
    parts += [f'<td class="number">{cell}</td>' for cell in cells[-3:-1]]
    return (
        f'<tr class="{" ".join(names)}">' + "".join(parts) + f'<td class="text">{escape(cells[-1])}</td></tr>'
    )
