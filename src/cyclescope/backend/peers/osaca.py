"""OSACA's program as a predictor of blocks: another process, which reads and writes files."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cyclescope.backend.peers.analyzers import TimedOut, ending, find_programs, run_program
from cyclescope.errors import UsageError
from cyclescope.isa.registry import instruction_set

_PATIENCE = 60.0  # seconds for a block: most take one, hundreds of instructions half a minute
# OSACA's models by LLVM's names of cores; a core that has none is asked of no other.
ARCHES = {
    "sandybridge": "SNB", "ivybridge": "IVB", "haswell": "HSW", "broadwell": "BDW", "skylake": "SKX",
    "skylake-avx512": "SKX", "cascadelake": "CSX", "icelake-client": "ICL", "icelake-server": "ICX",
    "rocketlake": "ICL", "sapphirerapids": "SPR", "znver1": "ZEN1", "znver2": "ZEN2", "znver3": "ZEN3",
    "znver4": "ZEN4", "thunderx2t99": "TX2", "neoverse-n1": "N1", "neoverse-v2": "V2", "a64fx": "A64FX",
    "tsv110": "TSV110", "cortex-a72": "A72", "apple-a14": "M1",
}  # fmt: skip
_REMEDY = "pip install osaca"
_SUMMARY = re.compile(r"^Summary:\n(.*?)^\S", re.MULTILINE | re.DOTALL)


class Osaca:
    """OSACA's model of a core, by LLVM's name of it.

    Unknown instructions count as nothing, as with its --ignore-unknown. Raises BackendUnavailable where the
    program is absent, UsageError where it has no model of the core.
    """

    def __init__(self, cpu: str, isa: str, executable: str | None = None) -> None:
        self._program = find_programs(("osaca",), executable, _REMEDY)[0]
        if cpu not in ARCHES:
            raise UsageError(f"OSACA has no model of {cpu}", f"it has {', '.join(sorted(ARCHES))}")
        self._options = ["--arch", ARCHES[cpu], "--ignore-unknown"]
        self._options += instruction_set(isa).toolchain.osaca_options
        said = run_program([self._program, "--version"], "", _PATIENCE).stdout.split()
        self.description = f"OSACA {said[-1] if said else ''}, model of {ARCHES[cpu]}"

    def cycles(self, lines: Sequence[str]) -> tuple[float | None, str]:
        """Cycles per iteration of a block (of x86-64 in AT&T's syntax), or None and why."""
        with tempfile.TemporaryDirectory(prefix="cyclescope-") as folder:
            source, found = Path(folder) / "block.s", Path(folder) / "found.yaml"
            source.write_text("".join(f"\t{line}\n" for line in lines))
            command = [self._program, *self._options, "--yaml-out", str(found), str(source)]
            try:
                done = run_program(command, "", _PATIENCE)
            except TimedOut as error:
                return None, error.message
            if done.returncode or not found.is_file():
                return None, f"OSACA {ending(done)}"
            return _summary(found.read_text())


def _summary(text: str) -> tuple[float | None, str]:
    """The greater of the fullest port and the loop-carried dependency; the rest holds OSACA's objects."""
    import yaml

    match = _SUMMARY.search(text)
    summary = yaml.safe_load(match[0].rpartition("\n")[0])["Summary"] if match else {}
    pressure = summary.get("PortPressure")
    if not pressure:
        return None, "OSACA prints no summary"
    return max(*pressure.values(), summary.get("LCD") or 0.0), ""
