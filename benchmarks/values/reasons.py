"""Why some kernels cannot be proved by values: what is known of the instruction, not of the kernel."""

from __future__ import annotations

import re

from benchmarks.values.follow import Finding

# (form id, what was found, the reason)
_KNOWN = (
    (
        r"ST(Z?2?G|ZG|GP)|LDG|IRG|SUBG|ADDG|GMI",
        r"no value|no difference|not come back",
        "memory tags, and the register that new ones are drawn with, are no locations",
    ),
    (
        r"AUT|PAC|XPAC",
        r"no value|no difference",
        "a signature is checked: what does not fit becomes the same invalid address",
    ),
    (r"LDR\w+l$|LDRSWl", r"no difference", "the data are constants in the code"),
    (
        r"ST(L|LT|T)?X",
        r"no difference",
        "an exclusive store works directly behind its load, which stepping separates",
    ),
    (r"FMOPA|\w*_M(PPZZ|XI|PPZ)|ZERO_M|\w*_ZPMXI|LDR_ZA|STR_ZA|\w*ZA", r"does not run",
     "the matrix of SME needs streaming mode, which the tracer does not enter"),
    (r"CMPXCHG(8|16)B", r"more than one store", "it stores on a condition that other values rarely meet"),
)  # fmt: skip


def known(finding: Finding) -> str:
    """The reason why a kernel has no proof, or ""."""
    if finding.reason:
        return finding.reason
    for form, problem, reason in _KNOWN:
        if re.match(form, finding.form) and re.search(problem, finding.problem):
            return reason
    return ""
