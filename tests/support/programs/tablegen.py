"""llvm-tblgen, where it is installed, on drafts of scheduling models."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from cyclescope.formats.llvm.scheduling import BEFORE, NO_INSTANCES

NAMES = ("llvm-tblgen", *(f"llvm-tblgen-{n}" for n in range(14, 24)))
TARGETS = ("lib/llvm-{}/include/llvm/Target/Target.td", "include/llvm-{}/llvm/Target/Target.td")
RENAMED = 18  # version from which cycles of resources have today's name
LISTED = 22  # version from which TableGen lists what a target has defined
# As targets have it: classes of their own, which a model has to know, of instructions that no draft has; one
# is another model's name for several.
OWN_CLASSES = """
    def WriteOwn : SchedWrite;
    def WritePair : SchedWrite;
    def WriteBoth : WriteSequence<[WriteOwn, WriteOwn]>;
    def ReadOwn : SchedRead;
    def Elsewhere : SchedMachineModel { let CompleteModel = 0; }
    def : SchedAlias<WritePair, WriteBoth> { let SchedModel = Elsewhere; }
    def NotInDrafts : Known, Sched<[WriteOwn, ReadOwn]>;
    def NorThis : Known, Sched<[WritePair]>;
"""


def version_of(program: str) -> int:
    """The first number of an LLVM tool's version."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"LLVM version (\d+)", said)
    assert found
    return int(found[1])


def installed() -> list[tuple[str, int, Path]]:
    """Each llvm-tblgen with its version and the includes of that version, one per version."""
    found = {}
    for program in filter(None, map(shutil.which, NAMES)):
        version = version_of(program)
        for target in (Path("/usr") / place.format(version) for place in TARGETS):
            if target.exists():
                found.setdefault(version, (program, version, target.parents[2]))
    return list(found.values())


TBLGENS = installed()


def opcodes(text: str) -> list[str]:
    """All opcodes that a draft names, once each."""
    lists = re.findall(r"(?:\(instrs\s|Class<\[)([\w,\s]*)", text)
    return list(dict.fromkeys(word for one in lists for word in re.split(r"[,\s]+", one.strip())))


def generated(text: str, what: str, tblgen: tuple[str, int, Path], folder: Path) -> str:
    """What llvm-tblgen makes of a draft, in a target with its opcodes and register files."""
    program, version, includes = tblgen
    lists = " ".join(re.findall(r"RegisterFile<\d+, \[([^]]*)\]", text))
    classes = dict.fromkeys(re.findall(r"\w+", lists))
    model = re.search(r"def (\w+) : SchedMachineModel", text)
    assert model
    (folder / "draft.td").write_text(text)
    (folder / "all.td").write_text(f"""
        include "llvm/Target/Target.td"
        class Known : Instruction {{
          let Namespace = "X"; let OutOperandList = (outs); let InOperandList = (ins); let AsmString = "";
        }}
        {"".join(f'def R{c} : Register<"r{c}">; ' for c in classes)}
        {"".join(f'def {c} : RegisterClass<"X", [i64], 64, (add R{c})>; ' for c in classes)}
        {"".join(f"def {one} : Known; " for one in opcodes(text))}
        {OWN_CLASSES if version >= LISTED else ""}
        def XInstrInfo : InstrInfo;
        def X : Target {{ let InstructionSet = XInstrInfo; }}
        include "draft.td"
        def : ProcessorModel<"measured", {model[1]}, []>;
    """)
    options = [f"-D{BEFORE}"] if version < RENAMED else []
    options += [f"-D{NO_INSTANCES}"] if version < LISTED else []
    done = subprocess.run(
        [program, what, *options, "-I", folder, "-I", includes, folder / "all.td"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
