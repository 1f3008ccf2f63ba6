"""A prediction made by hand, and the elements of a page."""

from __future__ import annotations

from html.parser import HTMLParser

import msgspec

from cyclescope.analyze.predict.prediction import (
    CriticalPath,
    Dependency,
    InstructionCost,
    LoopCarried,
    Prediction,
    Unknown,
)
from cyclescope.model.machine import ASSUMED, EXTRACTED, Provenance, Width

LLVM = Provenance(EXTRACTED, "LLVM scheduling models", "22.1.8", "Apache-2.0 WITH LLVM-exception")


def row(line, text, ports, cp=None, lcd=None, **more):
    return InstructionCost(line, text, "FORM", 1.0, ports, {"p0": 0.5}, cp, lcd, **more)


ROWS = (
    row(3, "mulsd  %xmm1,\t%xmm0", {"p0": 1.0}, 4.0, 4.0),
    row(4, "addsd %xmm1, %xmm2", {"p0": 0.25, "p1": 0.75}, None, 3.0, remarks=("zero idiom", "forwarded")),
    row(5, "what", {}, ignored=True),
    row(6, 'say "x"', {"p1": 1.0}, 2.0),
)
FOUND = Prediction(
    machine="made", isa="x86-64", provenance=LLVM,
    width=Width(4, ASSUMED, "LLVM"), cycles=7.0, lower=3.0, upper=7.5,
    interval=(2.25, 10.5),
    bottleneck="loop_carried", full=(), bounds={
        "ports": 1.75, "ports_fixed": 2.0, "front_end": 0.75, "loop_carried": 7.0, "critical_path": 8.5,
        "critical_path_fixed": 9.0,
    }, ports={"p0": 1.25, "p1": 1.75, "idle": 0.0}, ports_fixed={"p0": 1.5, "p1": 2.0, "idle": 0.0},
    resources={}, slots=3.0, instructions=ROWS,
    loop_carried=(LoopCarried(7.0, 1, (3, 4), (0, 1)), LoopCarried(1.5, 2, (6,), (3,))),
    critical_path=CriticalPath(9.0, (3, 6), (0, 3)),
    dependencies=(Dependency(0, 1, 0, 4.0, "op1"), Dependency(1, 0, 1, 3.0, "op2"),
                  Dependency(0, 3, 0, 2.5, "flags.CF")),
    unknown=(Unknown(5, "what", "no idea"),), notes=("something was assumed",), unroll_factor=4,
    source="a.s", name=".L3", found="innermost loop .L3 at line 3", loop=True, pointer_increment=32,
)  # fmt: skip


def changed(**values):
    return msgspec.structs.replace(FOUND, **values)


class Tags(HTMLParser):
    """Elements with attributes, which have to be closed in their order, and the cells of the tables."""

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.seen = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)
