"""Blocks that compilers make of C, for AArch64 and RISC-V: none fails, none is unknown, and beside llvm-mca.

    python -m benchmarks.predicting.compiled [--isa ISA] [--sources FOLDER]... [--most N]

Sources are `kernels.c` here, cyclescope's own C code, and all C files of the folders that compile by
themselves. They are compiled by the cross compilers that are there (GCC, clang, `zig cc`), at several levels,
with and without vectors. Every basic block and every innermost loop counts once, and is analysed on several
machines; at most N of each kind of code are, drawn evenly.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.lib.common import ROOT, Check, at_least, parser, present, table
from benchmarks.lib.stated import differences
from cyclescope.analyze.choose.loops import innermost_loops
from cyclescope.analyze.decode.block import Block
from cyclescope.analyze.decode.decoder import Flow, decoder
from cyclescope.analyze.predict.prediction import Prediction
from cyclescope.analyze.predict.predictor import Predictor, UnknownInstructions
from cyclescope.analyze.read.objects import object_program
from cyclescope.analyze.read.program import Code
from cyclescope.errors import CyclescopeError, SourceError
from cyclescope.model.library import llvm_model

FEWEST = 1000  # blocks of each instruction set
UNKNOWN = 0.005  # of the instructions
PER_1000 = 1.0  # seconds
SHORTEST = 2  # instructions of a block
MOST_SHOWN = 10
LEVELS = ("-O1", "-O2", "-O3", "-Ofast")
OWN = ("benchmarks/predicting/kernels.c", "tests/unit/analyze/snippets", "src/cyclescope/native")


class Kind(msgspec.Struct, frozen=True):
    """One kind of code: what GCC, clang and Zig are told to make it, and machines that execute it."""

    name: str
    gcc: tuple[str, ...]
    clang: tuple[str, ...]
    zig: str
    machines: tuple[str, ...]


_GC = "rv64gc"
KINDS = {
    "aarch64": (
        Kind("armv8", ("-march=armv8-a",), ("-march=armv8-a",), "generic",
             ("neoverse-n1", "neoverse-v2", "cortex-a57", "cortex-a55", "apple-a7", "thunderx2t99", "a64fx")),
        Kind("armv8 with SVE", ("-march=armv8.2-a+sve",), ("-march=armv8.2-a+sve",), "a64fx",
             ("neoverse-v1", "neoverse-v2", "a64fx")),
        Kind("armv9", ("-march=armv9-a",), ("-march=armv9-a",), "neoverse_v2",
             ("neoverse-n2", "neoverse-v2", "neoverse-v3")),
    ),
    "riscv64": (
        Kind(_GC, (f"-march={_GC}",), (f"-march={_GC}",), "baseline_rv64",
             ("sifive-p670", "sifive-7-series", "spacemit-x60", "sifive-p550", "rocket", "xiangshan-nanhu",
              "tt-ascalon-d8")),
        Kind("rv64gc with Zb", (f"-march={_GC}_zba_zbb_zbs",), (f"-march={_GC}_zba_zbb_zbs",),
             "baseline_rv64+zba+zbb+zbs",
             ("sifive-p670", "spacemit-x60", "xiangshan-nanhu", "tt-ascalon-d8")),
        Kind("rv64gcv", (), ("-march=rv64gcv_zba_zbb_zbs",), "baseline_rv64+v+zba+zbb+zbs",
             ("sifive-p670", "sifive-x390", "spacemit-x60", "tt-ascalon-d8")),
    ),
}  # fmt: skip
_GCC = {"aarch64": "aarch64-linux-gnu-gcc", "riscv64": "riscv64-linux-gnu-gcc"}
_TRIPLES = {"aarch64": "aarch64-linux", "riscv64": "riscv64-linux"}


# --- compilers -------------------------------------------------------------------------------------


def commands(isa: str, kind: Kind) -> dict[str, list[str]]:
    """The compilers that are there and can make a kind of code, by name."""
    found = {}
    gcc, clang, zig = (shutil.which(name) for name in (_GCC[isa], "clang", "zig"))
    if gcc and kind.gcc:
        found["gcc"] = [gcc, *kind.gcc]
    if clang:
        found["clang"] = [clang, f"--target={_TRIPLES[isa]}-gnu", *kind.clang]
    if zig:
        found["zig cc"] = [zig, "cc", "-target", f"{_TRIPLES[isa]}-musl", f"-mcpu={kind.zig}"]
    return found


def sources(folders: Sequence[Path]) -> list[Path]:
    """The C files, in order."""
    found = []
    for place in (*(ROOT / name for name in OWN), *folders):
        found += sorted(place.rglob("*.c")) if place.is_dir() else [place]
    return found


def objects(command: Sequence[str], files: Sequence[Path], folder: Path) -> Iterator[Path]:
    """Object files of what compiles; errors of the rest are no matter."""
    for number, file in enumerate(files):
        for level in LEVELS:
            output = folder / f"{number}{level}.o"
            done = subprocess.run(
                [*command, level, "-w", "-c", "-I", str(ROOT / "src/cyclescope/native"), str(file), "-o",
                 str(output)],
                capture_output=True, check=False,
            )  # fmt: skip
            if done.returncode:
                break
            yield output


# --- blocks ----------------------------------------------------------------------------------------


def blocks(path: Path) -> Iterator[Block]:
    """The basic blocks and the innermost loops of an object file."""
    try:
        program = object_program(path.read_bytes(), path.name)
    except SourceError:  # data alone
        return
    code = Code(program, decoder(program.isa))
    leaders = {step.target for step in code.steps if step.flow in (Flow.BRANCH, Flow.JUMP)}
    leaders |= {function.address for function in program.functions}
    current: list[int] = []
    for number, step in enumerate(code.steps):
        if step.address in leaders and current:
            yield code.block((code.steps[n] for n in current), "basic block")
            current = []
        current.append(number)
        if step.flow != Flow.NEXT:
            yield code.block((code.steps[n] for n in current), "basic block")
            current = []
    for loop in innermost_loops(code):
        yield code.block(loop.steps, "loop")


def _unique(paths: Iterator[Path], known: dict[bytes, Block]) -> None:
    for path in paths:
        for block in blocks(path):
            if len(block) >= SHORTEST:
                known.setdefault(b"".join(one.code for one in block) + b"L" * block.loop, block)


def _drawn(every: Sequence[Block], most: int) -> list[Block]:
    step = max(len(every) / most, 1.0)
    return [every[int(n * step)] for n in range(int(len(every) / step))]


def collected(isa: str, kind: Kind, files: Sequence[Path], most: int) -> list[Block]:
    """Different blocks of one kind of code."""
    known: dict[bytes, Block] = {}
    for command in commands(isa, kind).values():
        with tempfile.TemporaryDirectory() as folder:
            _unique(objects(command, files, Path(folder)), known)
    return _drawn(list(known.values()), most)


# --- analyses --------------------------------------------------------------------------------------


class Tally(msgspec.Struct):
    """What came out of the blocks of one kind on one machine."""

    predictions: list[tuple[Block, Prediction]] = []
    failed: list[str] = []
    unknown: Counter[str] = msgspec.field(default_factory=Counter)
    instructions: int = 0
    seconds: float = 0.0


def analysed(some: Sequence[Block], machine: str) -> Tally:
    """Every block on a machine."""
    found = Tally()
    predictor = Predictor(llvm_model(machine))
    start = time.process_time()
    for block in some:
        found.instructions += len(block)
        try:
            found.predictions.append((block, predictor.predict(block, simulate=False)))
        except UnknownInstructions as error:
            found.unknown.update(one.reason for one in error.unknown)
        except CyclescopeError as error:
            found.failed.append(f"{machine}: {error}")
    found.seconds = time.process_time() - start
    return found


def _invalid(some: Sequence[Block]) -> Counter[str]:
    return Counter(one.problem for block in some for one in block.unknown)


def compiled(isas: Sequence[str], folders: Sequence[Path], most: int) -> Sequence[Check]:
    """All checks."""
    checks: list[Check] = []
    files = sources(folders)
    for isa in isas:
        total, rows, tallies = 0, [], []
        for kind in KINDS[isa]:
            some = collected(isa, kind, files, most)
            total += len(some)
            for problem, count in _invalid(some).most_common(MOST_SHOWN):
                print(f"{kind.name}: {problem}, {count} times")
            for machine in kind.machines if some else ():
                tally = analysed(some, machine)
                tallies.append(tally)
                predictor = Predictor(llvm_model(machine))
                rows.append(
                    _row(kind, machine, tally, differences(isa, machine, predictor, tally.predictions))
                )
        print(table(_HEAD, rows))
        checks += _checks(isa, total, tallies, rows)
    return checks


_HEAD = (
    "code",
    "machine",
    "blocks",
    "failed",
    "unknown",
    "s per 1000",
    "compared",
    "equal",
    "explained",
    "left",
)


def _row(kind: Kind, machine: str, tally: Tally, reasons: Sequence[tuple[str, str]]) -> tuple[object, ...]:
    """A row of the table; what is not explained is printed."""
    for problem, count in tally.unknown.most_common(MOST_SHOWN):
        print(f"{machine}: {problem}, {count} times")
    counts = Counter(reason for reason, _ in reasons)
    for reason, count in counts.most_common():
        if reason not in ("equal", ""):
            print(f"{machine}, {kind.name}: {reason}: {count}")
    for shown in [text for reason, text in reasons if not reason][:MOST_SHOWN]:
        print(f"{machine}, {kind.name}: UNEXPLAINED {shown}")
    done = len(tally.predictions)
    explained = len(reasons) - counts["equal"] - counts[""]
    return (
        kind.name, machine, done, len(tally.failed), tally.unknown.total(),
        f"{tally.seconds * 1000 / max(done, 1):.2f}", len(reasons), counts["equal"], explained, counts[""],
    )  # fmt: skip


def _checks(isa: str, total: int, tallies: Sequence[Tally], rows: Sequence[Sequence[object]]) -> list[Check]:
    for failure in [one for tally in tallies for one in tally.failed][:MOST_SHOWN]:
        print(failure)
    unknown = sum(tally.unknown.total() for tally in tallies)
    instructions = sum(tally.instructions for tally in tallies)
    failed = sum(len(tally.failed) for tally in tallies)
    compared, left = (sum(int(str(row[k])) for row in rows) for k in (6, 9))
    slowest = max((tally.seconds * 1000 / max(len(tally.predictions), 1) for tally in tallies), default=0.0)
    count = sum(len(tally.predictions) for tally in tallies)
    return [
        Check(f"{isa}: different blocks", str(total), f">= {FEWEST}", total >= FEWEST),
        Check(f"{isa}: analyses that fail, of {count}", str(failed), "0", failed == 0),
        Check(
            f"{isa}: unknown instructions, of {instructions}", f"{unknown / max(instructions, 1):.3%}",
            f"<= {UNKNOWN:.1%}", unknown <= UNKNOWN * instructions,
        ),
        at_least(f"{isa}: throughput equal to llvm-mca's, or explained", compared - left, compared, 0.99),
        Check(f"{isa}: CPU time per 1000 blocks, slowest machine", f"{slowest:.2f} s", f"<= {PER_1000:.0f} s",
              slowest <= PER_1000),
    ]  # fmt: skip


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--isa", choices=list(KINDS), action="append")
    options.add_argument("--sources", type=Path, action="append", default=[])
    options.add_argument("--most", type=int, default=2500)
    chosen = options.parse_args()
    present("compiled", lambda: compiled(chosen.isa or list(KINDS), chosen.sources, chosen.most))


if __name__ == "__main__":
    main()
