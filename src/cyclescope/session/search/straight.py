"""Basic blocks of what compilers make of loops."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from cyclescope.analyze.choose.source import read_program
from cyclescope.analyze.decode.decoder import Flow, decoder
from cyclescope.analyze.read.program import Code
from cyclescope.host.uname import host_isa
from cyclescope.session.blocks import ProgramBlock
from cyclescope.session.compiled import Build, object_file


def basic_blocks(chosen: Sequence[Build]) -> list[ProgramBlock]:
    """The basic blocks that compilers make of loops, each once; without branches."""
    found: dict[bytes, ProgramBlock] = {}
    with tempfile.TemporaryDirectory(prefix="cyclescope-") as folder:
        for build in chosen:
            made = object_file(build, Path(folder))
            for code in _straight(made) if made else ():
                found.setdefault(code, ProgramBlock(code, build.name, host_isa()))
    return list(found.values())


def _straight(path: Path) -> Iterator[bytes]:
    """Machine code between places where the flow divides or joins, of two instructions at least."""
    program = read_program(path)
    code = Code(program, decoder(program.isa))
    leaders = {step.target for step in code.steps if step.flow in (Flow.BRANCH, Flow.JUMP)}
    leaders |= {function.address for function in program.functions}
    current: list[bytes] = []
    for step in code.steps:
        ends = step.address in leaders or step.flow != Flow.NEXT
        if ends:
            if len(current) > 1:
                yield b"".join(current)
            current = []
        if step.flow == Flow.NEXT:
            current.append(program.code(step.address, step.length))
