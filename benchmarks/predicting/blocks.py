"""Reading code: kernels and basic blocks of a reference folder, a long text, and object files.

    python -m benchmarks.predicting.blocks --reference FOLDER [--objects FOLDER]...

The reference has loop kernels in `kernels/*.s` and basic blocks in a CSV file with the columns `hex` and
`asm_att`. Every one has to be read without a crash and without an unknown instruction, and the text has to
mean what the machine code says. Of the object files (`*.o`, such as those of a C library), every function is
read, and the loops are searched.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.lib.common import Check, at_least, parser, present, reference_rows, share
from cyclescope.analyze.choose.loops import innermost_loops
from cyclescope.analyze.choose.source import Choice, read_block, read_blocks
from cyclescope.analyze.decode.block import Block
from cyclescope.analyze.decode.decoder import decoder
from cyclescope.analyze.read.objects import object_program
from cyclescope.analyze.read.program import Code
from cyclescope.errors import CyclescopeError, SourceError

BLOCKS = "bhive_zen3_measured.csv"
LONG = 100_000  # lines
SECONDS_PER_1000 = 1.0
SECONDS_LONG = 20.0
UNKNOWN = 0.005  # of the instructions
_WHOLE = Choice(whole=True)


def blocks(reference: Path, objects: Sequence[Path]) -> Sequence[Check]:
    """All checks."""
    rows = reference_rows(reference / BLOCKS)
    return [
        *_kernels(sorted((reference / "kernels").glob("*.s"))),
        *_machine_code(rows),
        *_texts(rows),
        *_long(),
        *(check for folder in objects for check in _objects(folder)),
    ]


def _unknown(found: Iterable[Block]) -> int:
    return sum(len(block.unknown) for block in found)


def _kernels(paths: Sequence[Path]) -> list[Check]:
    """Marked kernels."""
    read: list[Block] = []
    for path in paths:
        try:
            read += read_blocks(path)
        except CyclescopeError as error:
            print(f"{path.name}: {error}")
    return [
        at_least("kernels read", len(read), len(paths), 1),
        Check("unknown instructions in them", str(_unknown(read)), "0", _unknown(read) == 0),
    ]


def _machine_code(rows: Sequence[dict[str, str]]) -> list[Check]:
    """Blocks from their bytes, in one process."""
    codes = [bytes.fromhex(row["hex"]) for row in rows]
    read_block(codes[0], choice=_WHOLE)  # the table is loaded
    start = time.process_time()
    found = [read_block(code, choice=_WHOLE) for code in codes]
    seconds = (time.process_time() - start) * 1000 / len(codes)
    whole = sum(b"".join(one.code for one in block) == code for block, code in zip(found, codes, strict=True))
    return [
        at_least("blocks of machine code read to the last byte", whole, len(codes), 1),
        Check("unknown instructions in them", str(_unknown(found)), "0", _unknown(found) == 0),
        Check(
            "CPU time per 1000 blocks",
            f"{seconds:.2f} s",
            f"<= {SECONDS_PER_1000:.0f} s",
            seconds <= SECONDS_PER_1000,
        ),
    ]


def _texts(rows: Sequence[dict[str, str]]) -> list[Check]:
    """Blocks from their text, all as regions of one file: the mnemonics of their bytes."""
    text = "\n".join(
        f"# LLVM-MCA-BEGIN b{i}\n{row['asm_att'].replace(';', chr(10))}\n# LLVM-MCA-END b{i}"
        for i, row in enumerate(rows)
    )
    found = read_blocks(text, "x86-64", syntax="att")
    same = 0
    for block, row in zip(found, rows, strict=True):
        wanted = read_block(bytes.fromhex(row["hex"]), choice=_WHOLE)
        names = [[one.form.mnemonic if one.form else "" for one in either] for either in (block, wanted)]
        same += names[0] == names[1]
    return [at_least("blocks whose text has the mnemonics of their bytes", same, len(rows), 1)]


def _long() -> list[Check]:
    """A text of 100 000 lines with 20 000 loops."""
    body = " vmulpd %ymm0, %ymm1, %ymm2\n addq $8, %rax\n cmpq %rax, %rbx\n jne .L{0}\n"
    text = "".join(f".L{i}:\n{body.format(i)}" for i in range(LONG // 5))
    start = time.process_time()
    block = read_block(text)
    seconds = time.process_time() - start
    right = len(block) == 4 and block.loop
    return [
        Check("a loop found in 100 000 lines", block.found, "", right),
        Check("CPU time of that", f"{seconds:.1f} s", f"<= {SECONDS_LONG:.0f} s", seconds <= SECONDS_LONG),
    ]


def _objects(folder: Path) -> list[Check]:
    """Every function of the object files in a folder."""
    functions = loops = instructions = 0
    unknown: Counter[str] = Counter()
    start = time.process_time()
    for path in sorted(folder.glob("*.o")):
        try:
            program = object_program(path.read_bytes(), str(path))
        except SourceError:  # data alone
            continue
        reader = decoder(program.isa)
        loops += len(innermost_loops(Code(program, reader)))
        for function in program.functions:
            code = Code(program, reader, function.address, function.end)
            block = code.block(code.steps, "")
            functions += 1
            instructions += len(block)
            unknown.update(one.problem for one in block.unknown)
    print(f"{folder}: {unknown.most_common(5)}")
    return [
        Check(
            f"unknown instructions in {functions} functions of {folder}",
            share(unknown.total(), instructions),
            f"<= {UNKNOWN:.1%}",
            unknown.total() <= UNKNOWN * instructions,
        ),
        Check("loops in them, CPU time", f"{loops}, {time.process_time() - start:.1f} s"),
    ]


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--reference", type=Path, required=True)
    options.add_argument("--objects", type=Path, action="append", default=[])
    chosen = options.parse_args()
    present("blocks", lambda: blocks(chosen.reference, chosen.objects))


if __name__ == "__main__":
    main()
