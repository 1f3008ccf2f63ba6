"""The dependency graph of a prediction: Graphviz's language, and SVG without any other program.

Both mark the same: bold is the critical path, red the slowest loop-carried dependency, dashed comes from
earlier iterations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

from cyclescope.analyze.predict.prediction import Dependency, InstructionCost, Prediction
from cyclescope.report.words import plain

_ROW, _TOP, _CHARACTER, _BULGE = 24, 20, 7.3, 11.0  # pixels; the last per row that an arc spans
_WIDEST = 200.0  # pixels of an arc
_LEGEND = (
    "right: of this iteration; left, dashed: of earlier ones (by how many); numbers: cycles",
    "bold: critical path; red: slowest loop-carried dependency",
)
_PLAIN = "arc"  # class of all arcs
_RED, _BLACK, _GREY = "#c00000", "#000000", "#888888"


def dot(found: Prediction) -> str:
    """The graph in Graphviz's language."""
    found = plain(found)
    lines = ["digraph dependencies {", "  node [shape=box, fontname=monospace];"]
    for number, row in enumerate(found.instructions):
        lines.append(f"  i{number} [label={_quoted(_label(row))}{_dot_style(row)}];")
    for edge in found.dependencies:
        label = f"{edge.cycles:g}" + (f" (-{edge.distance})" if edge.distance else "")
        style = ", style=dashed, constraint=false" if edge.distance else ""
        style += ", penwidth=3" if _is_critical(found, edge) else ""
        style += ", color=red" if _is_carried(found, edge) else ""
        attributes = f"label={_quoted(label)}, tooltip={_quoted(edge.by)}{style}"
        lines.append(f"  i{edge.source} -> i{edge.target} [{attributes}];")
    return "\n".join([*lines, "}"]) + "\n"


def _label(row: InstructionCost) -> str:
    text = " ".join(row.text.split())
    return f"{row.line}: {text}" if row.line else text


def _dot_style(row: InstructionCost) -> str:
    bold = ", penwidth=3" if row.critical_path is not None else ""
    return bold + (", color=red" if row.loop_carried is not None else "")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _is_critical(found: Prediction, edge: Dependency) -> bool:
    return not edge.distance and _follows(found.critical_path.instructions, edge)


def _is_carried(found: Prediction, edge: Dependency) -> bool:
    chains = found.loop_carried[:1]
    return any(_follows([*c.instructions, c.instructions[0]], edge) for c in chains if c.instructions)


def _follows(path: Sequence[int], edge: Dependency) -> bool:
    return (edge.source, edge.target) in pairwise(path)


# --- SVG -------------------------------------------------------------------------------------------


def svg(found: Prediction) -> str:
    """The instructions as rows, what they wait for as arcs: of this iteration right, of earlier ones left."""
    found = plain(found)
    labels = [_label(row) for row in found.instructions]
    edges = sorted(  # the marked ones last, above the others
        _longest(found.dependencies), key=lambda e: (_is_carried(found, e), _is_critical(found, e))
    )
    text = _CHARACTER * max((len(label) for label in labels), default=0)
    left = _reach(edges, earlier=True)
    right = left + text + 16
    height = _TOP + _ROW * (len(labels) + len(_LEGEND))
    width = max(right + _reach(edges, earlier=False), 8 + _CHARACTER * max(map(len, _LEGEND)))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
        f'height="{height}" font-family="monospace" font-size="12" role="img" aria-label="dependencies">',
        '<rect class="paper" width="100%" height="100%" fill="#fff"/>',
        *(_svg_row(left + 8, n, row, labels[n]) for n, row in enumerate(found.instructions)),
        *(_arc(found, edge, left if edge.distance else right) for edge in edges),
        *(_number(found, edge, left if edge.distance else right) for edge in edges),
        *(_legend(height, n, line) for n, line in enumerate(reversed(_LEGEND))),
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _longest(edges: Iterable[Dependency]) -> list[Dependency]:
    """One edge for each pair of instructions and distance."""
    found: dict[tuple[int, int, int], Dependency] = {}
    for edge in edges:
        key = edge.source, edge.target, edge.distance
        if key not in found or edge.cycles > found[key].cycles:
            found[key] = edge
    return list(found.values())


def _width(edge: Dependency) -> float:
    return min(_BULGE * (abs(edge.target - edge.source) + 1), _WIDEST)


def _reach(edges: Iterable[Dependency], earlier: bool) -> float:
    """Room for the arcs of one side and their numbers."""
    return max((_width(edge) for edge in edges if bool(edge.distance) == earlier), default=0.0) + 40


def _middle(number: int) -> float:
    return _TOP + _ROW * number


def _svg_row(x: float, number: int, row: InstructionCost, label: str) -> str:
    weight = ' font-weight="bold"' if row.critical_path is not None else ""
    colour = f' class="carried" fill="{_RED}"' if row.loop_carried is not None else ""
    return f'<text x="{x:.0f}" y="{_middle(number) + 4:.0f}"{weight}{colour}>{escape(label)}</text>'


def _legend(height: float, above: int, line: str) -> str:
    return (
        f'<text class="key" x="8" y="{height - 8 - 16 * above}" font-size="10" fill="{_GREY}">{line}</text>'
    )


def _arc(found: Prediction, edge: Dependency, x: float) -> str:
    """A curve from the source to the target."""
    side = -1 if edge.distance else 1
    start, end = _ends(edge)
    bend = x + side * _width(edge) * 4 / 3  # a cubic curve gets three quarters of the way
    kind, colour = _kind(found, edge)
    dashes = ' stroke-dasharray="4 3"' if edge.distance else ""
    head = f"{x:.0f},{end:.0f} {x + side * 6:.0f},{end - 3:.0f} {x + side * 6:.0f},{end + 3:.0f}"
    return (
        f'<g class="{kind}">'
        f'<path d="M{x:.0f} {start:.0f}C{bend:.0f} {start:.0f} {bend:.0f} {end:.0f} {x:.0f} {end:.0f}" '
        f'fill="none" stroke="{colour}" stroke-width="{1 if kind == _PLAIN else 2.5}"{dashes}>'
        f'<title>{escape(edge.by)}</title></path><polygon points="{head}" fill="{colour}"/></g>'
    )


def _number(found: Prediction, edge: Dependency, x: float) -> str:
    """The cycles of an arc beside its middle, with paper around them: other arcs go behind."""
    side = -1 if edge.distance else 1
    kind, colour = _kind(found, edge)
    anchor = ' text-anchor="end"' if edge.distance else ""
    back = f" (-{edge.distance})" if edge.distance > 1 else ""
    return (
        f'<g class="{kind}"><text x="{x + side * (_width(edge) + 3):.0f}" '
        f'y="{sum(_ends(edge)) / 2 + 4:.0f}" font-size="10" fill="{colour}" stroke="#fff" stroke-width="3" '
        f'paint-order="stroke"{anchor}>{edge.cycles:g}{back}</text></g>'
    )


def _ends(edge: Dependency) -> tuple[float, float]:
    return _middle(edge.source) + 3, _middle(edge.target) - 3


def _kind(found: Prediction, edge: Dependency) -> tuple[str, str]:
    """The class of an arc, and its colour."""
    if _is_carried(found, edge):
        return f"{_PLAIN} carried", _RED
    return (f"{_PLAIN} critical", _BLACK) if _is_critical(found, edge) else (_PLAIN, _GREY)
