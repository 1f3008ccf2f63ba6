"""Forms of AArch64 that user space cannot measure, and why."""

from __future__ import annotations

import re

from cyclescope.isa.form import InstructionForm

_SYSTEM = {
    "SVC", "HVC", "SMC", "BRK", "HLT", "ERET", "ERETAA", "ERETAB", "DRPS", "DCPS1", "DCPS2", "DCPS3", "UDF",
    "SYS", "SYSL", "SYSP", "MSRR", "MRRS", "WFE", "WFI", "WFET", "WFIT", "TSTART", "TCOMMIT", "TCANCEL",
    "TTEST", "BRB", "TRCIT", "GCSSS1", "GCSSS2", "GCSPUSHM", "GCSPOPM", "GCSSTR", "GCSSTTR", "TENTER",
    "TEXIT", "DC", "IC", "AT", "TLBI",
}  # fmt: skip
_SIGNED = re.compile(r"(RETA|BRA|BLRA|LDRA|RETAASP|RETABSP)[AB]|RETA")


def unmeasurable(form: InstructionForm) -> str:
    """Why user space cannot measure a form, or ""."""
    name = form.mnemonic
    if name in _SYSTEM or "trap" in form.attributes:
        return "a system instruction: it enters the kernel, waits, or changes machine state"
    if name == "MSR" and form.id != "MSR":
        return "changes a field of the processor state"
    if name == "MOVPRFX":
        return "only the first half of another instruction: alone its outcome is unpredictable"
    if any(feature.startswith("MOPS") for feature in form.features):
        return "one of three instructions that only work in order: prologue, main, epilogue"
    if _SIGNED.match(name):
        return "branches and loads with a signed address, which a kernel cannot sign beforehand"
    if form.id.startswith("AUT") and "SPPC" in form.id:
        return "checks a signature that depends on where the code is"
    if any(op.fixed == "FPMR" and op.write for op in form.operands):
        return "writes machine state"
    return ""


unfit = unmeasurable  # copies of what can be measured can be run
