"""Forms of x86-64 that user space cannot measure, and why."""

from __future__ import annotations

from cyclescope.isa.form import InstructionForm

# User space cannot measure these (or only wait in them); the rule is documented in docs/.
_SYSTEM = {
    "SYSCALL", "SYSENTER", "SYSEXIT", "SYSRET", "HLT", "INT", "INT1", "INT3", "INTO", "XBEGIN",
    "XEND", "XABORT", "MONITOR", "MONITORX", "MWAIT", "MWAITX", "UMONITOR",
    "UMWAIT", "TPAUSE", "VMCALL", "VMMCALL", "VMGEXIT", "VMFUNC", "ENCLU", "GETSEC", "RSM",
    "UIRET", "SENDUIPI", "CLUI", "STUI", "TESTUI", "WRPKRU", "RDPKRU", "RDPMC", "WRFSBASE",
    "WRGSBASE", "SKINIT", "LOADALL", "ENQCMD", "ENQCMDS", "PTWRITE", "RDSSPD", "RDSSPQ", "INCSSPD",
    "INCSSPQ", "SAVEPREVSSP", "RSTORSSP", "WRSSD", "WRSSQ", "SETSSBSY", "CLRSSBSY", "TILELOADD",
    "LLWPCB", "SLWPCB", "LWPINS", "LWPVAL", "SEAMCALL", "TDCALL", "CCS_HASH", "CCS_ENCRYPT",
    "MONTMUL", "XSTORE", "POPF", "POPFQ",
    "SGDT", "SIDT", "SLDT", "SMSW", "STR",  # many kernels trap and emulate them
}  # fmt: skip
_REFUSED = {"UD0", "UD1", "UD2"}  # by every CPU
_STATE_SAVING = {"FLDENV", "FNSTENV", "FRSTOR", "FNSAVE"}


def unmeasurable(form: InstructionForm) -> str:
    """Why user space cannot measure a form, or ""."""
    return unfit(form) or ("no encoding template" if form.encoding is None else "")


def unfit(form: InstructionForm) -> str:
    """Why user space cannot run copies of a form, or ""; what has no template is run as it is."""
    attributes = form.attributes
    if "operand16" in attributes:
        return "a branch with 16-bit operand size leaves the address space"
    if "far" in attributes:
        return "far control flow"
    if "io" in attributes:
        return "I/O port access"
    if "state_save" in attributes or form.mnemonic in _STATE_SAVING:
        return "saves or restores processor state"
    if form.mnemonic in _REFUSED:
        return "it is there to be refused"
    if "interrupt" in attributes or form.mnemonic in _SYSTEM or form.mnemonic.startswith("XCRYPT"):
        return "a system instruction: it enters the kernel, waits, or changes machine state"
    if any(op.cls == "SEG" and op.write for op in form.operands):
        return "loads a segment register"
    if any(op.cls in ("TMM", "BND") for op in form.operands):
        return "tile and bound registers need state that user space has to be granted"
    return ""
