"""Where in a piece of code something happened, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cyclescope.analyze.decode.decoder import decoder
from cyclescope.errors import shortened
from cyclescope.infer.beside.pieces import Snippet
from cyclescope.measure.bench import CodePlace, Places
from cyclescope.remarks.run import BrokeAt


def places_of(snippets: Sequence[Snippet], isa: str) -> Places:
    """How errors call pieces of code, several by their names, and the instruction at a byte of them."""

    def place(number: int, offset: int) -> CodePlace:
        one = snippets[number]
        name = shortened(one.name) if len(snippets) > 1 else CodePlace().code
        return CodePlace(name, next(_said(one, offset, isa), BrokeAt.OUTSIDE.of().text))

    return place


def _said(snippet: Snippet, offset: int, isa: str) -> Iterator[str]:
    reads = decoder(isa)
    for code, begin, which in _parts(snippet):
        for number, step in enumerate(reads.steps(code, 0), 1):
            if begin + step.address <= offset < begin + step.end:
                one = reads.instruction(code[step.address : step.end], step.address)
                text = "" if one.problem and not one.text else f", `{one.text}`"
                yield f"{which.of(number).text}{text}"


def _parts(snippet: Snippet) -> Iterator[tuple[bytes, int, BrokeAt]]:
    """Code, where it begins in the kernel's setup and body, and which it is; of copies the first."""
    kernel = snippet.kernel if snippet.burst is None else snippet.burst.kernel
    effort = None if snippet.burst is None else snippet.burst.effort
    code, at = kernel.code, len(kernel.setup)
    once, late = (effort.one_time, effort.late) if effort else (0, 0)
    yield kernel.setup, 0, BrokeAt.BEFORE
    yield code[:once], at, BrokeAt.BEFORE
    yield code[once : once + late], at + once, BrokeAt.BEFORE
    body = code[once + late :]
    each = len(body) // snippet.copies
    for copy in range(snippet.copies):
        yield body[:each], at + once + late + copy * each, BrokeAt.CODE
