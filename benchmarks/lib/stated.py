"""What llvm-mca says of blocks of AArch64 and RISC-V, and why ours is something else."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cyclescope.analyze.decode.block import Block
from cyclescope.analyze.predict.bounds import port_loads
from cyclescope.analyze.predict.prediction import FRONT_END, PORTS, Prediction
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.backend.peers.analyzers import find_programs
from cyclescope.backend.peers.llvm_mca import NAMES
from cyclescope.errors import BackendUnavailable
from cyclescope.model.binding import port_bound

EQUAL = 0.02
_BY_OPERANDS = "an instruction whose cost depends on its operands: the model has that of one example"
_BY_TYPE = "a vector instruction, whose cost depends on VTYPE: the model has the worst"
_CPUS = {"rocket": "rocket-rv64", "sifive-7-series": "sifive-u74"}
_TRIPLES = {"aarch64": "aarch64-linux-gnu", "riscv64": "riscv64-linux-gnu"}
_ATTRIBUTES = {
    "aarch64": "+all",
    "riscv64": "+m,+a,+f,+d,+c,+v,+zba,+zbb,+zbs,+zifencei",
}


def newest() -> str | None:
    """The llvm-mca of the newest LLVM that is installed, None without one."""
    try:
        programs = find_programs(NAMES, None, "install LLVM")
    except BackendUnavailable:
        return None
    return max(programs, key=lambda path: int(path.rpartition("-")[2]) if path[-1].isdigit() else 0)


def differences(
    isa: str, machine: str, predictor: Predictor, predictions: Sequence[tuple[Block, Prediction]]
) -> list[tuple[str, str]]:
    """Per block that llvm-mca reads whole: why ours differs (`equal`, a reason, "" without one), and both."""
    program = newest()
    if program is None:
        return []
    found = []
    regions = _regions(program, isa, machine, [block for block, _ in predictions])
    for number, (block, ours) in enumerate(predictions):
        region = regions.get(f"b{number}")
        if region is not None and region["SummaryView"]["Instructions"] == len(block):
            found.append((_reason(predictor, block, ours, region), _shown(block, ours, region)))
    return found


def _regions(program: str, isa: str, machine: str, blocks: Sequence[Block]) -> dict[str, Any]:
    """What llvm-mca says by region; instructions that it does not read are left out of theirs."""
    mark = "//" if isa == "aarch64" else "#"
    lines = []
    for number, block in enumerate(blocks):
        body = "\n".join(one.text for one in block)
        lines.append(f"{mark} LLVM-MCA-BEGIN b{number}\n{body}\n{mark} LLVM-MCA-END")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "blocks.s"
        source.write_text("\n".join(lines) + "\n")
        done = subprocess.run(
            [program, f"-mtriple={_TRIPLES[isa]}", f"-mcpu={_CPUS.get(machine, machine)}",
             f"-mattr={_ATTRIBUTES[isa]}", "-iterations=1", "-json", "-resource-pressure=0",
             "-skip-unsupported-instructions=any", str(source)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    regions = json.loads(done.stdout)["CodeRegions"] if done.stdout else []
    return {region["Name"]: region for region in regions if "SummaryView" in region}


def _ours(prediction: Prediction) -> float:
    return max(prediction.bounds[PORTS], prediction.bounds[FRONT_END])


def _reason(predictor: Predictor, block: Block, ours: Prediction, region: Any) -> str:
    mine, theirs = _ours(ours), region["SummaryView"]["BlockRThroughput"]
    if abs(mine - theirs) <= EQUAL * theirs:
        return "equal"
    costs = predictor.graph(block.instructions).costs
    single = max((cycles / ports.bit_count() for ports, cycles in port_loads(costs).items()), default=0.0)
    if mine > theirs and max(single, ours.bounds[FRONT_END]) <= theirs * (1 + EQUAL):
        return "sets of ports that are full together, which llvm-mca does not look at"
    for placed, stated in zip(costs, region["InstructionInfoView"]["InstructionList"], strict=True):
        alone = port_bound(dict(placed.work))[0]
        same = abs(alone - stated["RThroughput"]) <= EQUAL * max(alone, stated["RThroughput"])
        if placed.slots != stated["NumMicroOpcodes"] or not same:
            vector = "vector" in placed.form.attributes or placed.form.mnemonic.startswith("V")
            return _BY_TYPE if block.isa == "riscv64" and vector else _BY_OPERANDS
    return ""


def _shown(block: Block, ours: Prediction, region: Any) -> str:
    text = "; ".join(one.text for one in block)
    return f"{_ours(ours):.2f} beside {region['SummaryView']['BlockRThroughput']:.2f}: {text[:160]}"
