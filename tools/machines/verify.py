"""Compare shipped x86-64 machines with llvm-mca's instruction tables.

    python -m tools.machines.verify [MACHINE]...

Needs llvm-mc and llvm-mca of LLVM 22. Prints how many forms agree in micro-operations, latency and
reciprocal throughput, and examples of the others.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from typing import Any

from cyclescope.model.machine import FormCost, MachineModel
from cyclescope.model.ports import notation, port_throughput
from cyclescope.session.machines import load_model

from .samples import samples

MACHINES = ("znver3", "znver4", "skylake", "icelake-server")
# Prefixes that llvm-mc writes as instructions of their own, and what ends llvm-mca.
UNSUITABLE = re.compile(r"^\s*(lock|rep\w*|xacquire|xrelease|data16|addr32|(push|pop)[wq]?\s+%[fg]s)\b|[;#]")


def assembly(machine: MachineModel) -> dict[str, str]:
    """AT&T text of the forms that LLVM can write and read again."""
    chosen = [s for s in samples() if s.form.id in machine.forms]
    given = "\n".join(" ".join(f"0x{byte:02x}" for byte in s.code) for s in chosen)
    command = ["llvm-mc-22", "-disassemble", "-triple=x86_64", "-mattr=+avx512f"]
    lines = subprocess.run(
        command, input=given, capture_output=True, text=True, check=False
    ).stdout.splitlines()
    texts = [line for line in lines if line.startswith("\t") and not line.startswith("\t.")]
    if len(texts) != len(chosen):
        raise ValueError(f"{len(chosen)} forms, {len(texts)} lines of assembly")
    usable = [(s, text) for s, text in zip(chosen, texts, strict=True) if not UNSUITABLE.search(text)]
    opcodes = _read_again([text for _, text in usable], machine.name)
    return {s.form.id: text for (s, text), name in zip(usable, opcodes, strict=True) if name == s.form.llvm}


def _read_again(texts: list[str], cpu: str) -> list[str]:
    """LLVM's opcode of every line, empty where it does not read it for the CPU.

    What it writes of an EVEX form can be a VEX form when it is read again.
    """
    command = ["llvm-mc-22", "-triple=x86_64", f"-mcpu={cpu}", "-show-inst"]
    done = subprocess.run(command, input="\n".join(texts), capture_output=True, text=True, check=False)
    refused = {int(line) for line in re.findall(r"<stdin>:(\d+):\d+: error", done.stderr)}
    names = iter(re.findall(r"<MCInst #\d+ (\w+)", done.stdout))
    return ["" if line in refused else next(names) for line in range(1, len(texts) + 1)]


def tables(name: str, texts: list[str]) -> list[dict[str, Any]]:
    """What llvm-mca says about instructions."""
    command = ["llvm-mca-22", f"-mcpu={name}", "-mtriple=x86_64", "-instruction-tables=full", "-json"]
    done = subprocess.run(command, input="\n".join(texts), capture_output=True, text=True, check=True)
    view: list[dict[str, Any]] = json.loads(done.stdout)["CodeRegions"][0]["InstructionInfoView"][
        "InstructionList"
    ]
    return view


def differences(cost: FormCost, said: dict[str, Any]) -> list[str]:
    """What is not equal; llvm-mca's latency is the largest, before reads that come late."""
    found = []
    if cost.slots != said["NumMicroOpcodes"]:
        found.append("micro-operations")
    if cost.latencies and max(cost.latencies.values()) != said["Latency"]:
        found.append("latency")
    if cost.operations and abs(port_throughput(cost.operations) - said["RThroughput"]) > 0.006:
        found.append("throughput")
    return found


def compare(name: str) -> None:
    """Print the agreement of one machine."""
    machine = load_model(name)
    texts = assembly(machine)
    counts: Counter[str] = Counter(forms=len(texts))
    examples = defaultdict(list)
    for (form, text), said in zip(texts.items(), tables(name, list(texts.values())), strict=True):
        cost = machine.forms[form]
        for what in differences(cost, said):
            counts[what] += 1
            usage = notation(cost.operations or (), machine.ports)
            largest = max(cost.latencies.values(), default=0)
            examples[what].append(
                f"{text.strip()}: {cost.slots} slots, {usage}, latency {largest}; llvm-mca"
                f" {said['NumMicroOpcodes']}, {said['RThroughput']}, {said['Latency']}"
            )
    print(name, dict(counts))
    for what, lines in examples.items():
        print(f"  {what}", *lines[:: max(1, len(lines) // 6)], sep="\n    ")


def main() -> None:
    """Compare the machines given, or some."""
    for name in sys.argv[1:] or MACHINES:
        compare(name)


if __name__ == "__main__":
    main()
