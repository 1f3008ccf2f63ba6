"""What llvm-mca 19 printed for single instructions on znver4, given again without the program.

Each alone, with the options of `LlvmMcaBackend`, for 1 iteration and for as many as ports are taken in turn.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from cyclescope.backend.peers import llvm_mca

FILE = Path(__file__).parent / "recorded/llvm_mca_19_znver4.json"
_REGISTER = re.compile(r"\b(?:([xyz]mm)\d+|r(?:\d+|[a-z]{2}))\b")


def plain(line: str) -> str:
    """An instruction without the numbers of registers, which a plan may choose otherwise."""
    return _REGISTER.sub(lambda found: found[1] or "r", line)


def recorded_mca(patch) -> llvm_mca.LlvmMcaBackend:
    """llvm-mca as it was; what was not recorded is unknown to it."""
    known = json.loads(FILE.read_text())

    def answer(command, text, patience):
        if "--version" in command:
            return subprocess.CompletedProcess(command, 0, "LLVM version 19.1.7", "")
        if "--help" in command:
            return subprocess.CompletedProcess(command, 0, "=parse-failure", "")
        count = next((o.partition("=")[2] for o in command if o.startswith("-iterations=")), "1")
        blocks = re.findall(r"# LLVM-MCA-BEGIN (\d+)\n(.*)\n# LLVM-MCA-END", text)
        found = known["regions"][count]
        regions = [found[plain(line)] | {"Name": name} for name, line in blocks if plain(line) in found]
        printed = json.dumps({"CodeRegions": regions, "TargetInfo": {"Resources": known["resources"]}})
        return subprocess.CompletedProcess(command, 0, printed, "")

    patch.setattr(llvm_mca, "find_programs", lambda *_: ["llvm-mca-19"])
    patch.setattr(llvm_mca, "run_program", answer)
    return llvm_mca.LlvmMcaBackend("znver4")
