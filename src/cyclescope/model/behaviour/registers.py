"""What cores do with moves, idioms, and their dividers where LLVM's model of them says something else.

LLVM's models of Intel's Golden Cove and of cores after it have neither idioms nor eliminated moves, two or
three cycles for operations of one, and dividers that begin a division each cycle.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from cyclescope.model.machine import FormCost, Operation


class RegisterCorrection(msgspec.Struct, frozen=True):
    """What is known of the forms whose ids match `forms` as a whole.

    `idiom` is what one register for all sources makes of them, `latency` are the cycles from each register to
    each result, `address` those from an address of what does not load, `busy` those that they keep the only
    port of a kind; what is `eliminated` is executed by the renamer. What `adds_early` takes no time from a
    register to itself, where its flags are there as late as before.
    """

    forms: str
    idiom: str = ""
    latency: float | None = None
    address: float | None = None
    busy: float | None = None
    eliminated: bool = False
    adds_early: bool = False

    def of(self, cost: FormCost) -> FormCost:
        """The cost as it is known."""
        if self.eliminated:
            return msgspec.structs.replace(
                cost, operations=(), eliminated=True, latencies=dict.fromkeys(cost.latencies, 0)
            )
        if self.adds_early:
            return msgspec.structs.replace(cost, operations=(), latencies={**cost.latencies, "op1->op1": 0})
        return msgspec.structs.replace(
            cost,
            idiom=self.idiom or cost.idiom,
            latencies=self._latencies(cost),
            operations=self._operations(cost),
        )

    def _latencies(self, cost: FormCost) -> Mapping[str, float]:
        known = (
            (pair, self.address if "." in pair.partition("->")[0] else self.latency)
            for pair in cost.latencies
        )
        return {**cost.latencies, **{pair: cycles for pair, cycles in known if cycles is not None}}

    def _operations(self, cost: FormCost) -> tuple[Operation, ...] | None:
        if self.busy is None or cost.operations is None:
            return cost.operations
        return tuple(
            msgspec.structs.replace(op, count=1.0, cycles=self.busy) if len(op.ports) == 1 else op
            for op in cost.operations
        )


_VECTORS = r"(XMM|YMM|ZMM)"
_LIKE_SOURCES = rf"(_\w+)? \((R32, R32|R64, R64|({_VECTORS}(, )?)+)\)"
_MOVED_VECTORS = r"V?MOV([AU]P[SD]|DQ[AU](8|16|32|64)?)"
_SAME_LENGTH = r"(XMM, XMM|YMM, YMM|ZMM, ZMM)"
_FLOATS = ("SS", "SD", "PS", "PD")
_INTEGERS = {"(R8|M8|R16|M16|R32|M32)[lh]?": 6.0, "(R64|M64)": 10.0}
_DIVISIONS: Mapping[str, Mapping[str, float]] = {  # cycles, by their first operand
    "I?DIV": _INTEGERS,
    "V?DIV[SP]S": {"XMM": 3.0, "YMM": 5.0, "ZMM": 10.0},
    "V?DIV[SP]D": {"XMM": 4.0, "YMM": 8.0, "ZMM": 16.0},
    "V?SQRT[SP]S": {"XMM": 3.0, "YMM": 6.0, "ZMM": 12.0},
    "V?SQRT[SP]D": {"XMM": 4.5, "YMM": 9.0, "ZMM": 18.0},
}
# Intel's manual ("Clearing Registers and Dependency Breaking Idioms", "Zero-Latency MOV Instructions"); of
# constants that the renamer adds, latencies and divisions, Fog. All of it as measured on a core of the kind.
GOLDEN_COVE = (
    RegisterCorrection(rf"XOR{_LIKE_SOURCES}", idiom="zero", latency=1),
    RegisterCorrection(
        rf"(SUB|V?XORP[SD]|V?PXOR[DQ]?|V?PSUB[BWDQ]|V?PCMPGT[BWDQ]){_LIKE_SOURCES}", idiom="zero"
    ),
    RegisterCorrection(r"MOV_8[9B] \((R32, R32|R64, R64)\)|MOVZX \(R(32|64), R8l\)", eliminated=True),
    RegisterCorrection(rf"{_MOVED_VECTORS}(_\w+)? \({_SAME_LENGTH}\)", eliminated=True),
    RegisterCorrection(r"LEA_B(_D8|_D32)? \(R64\)", eliminated=True),
    RegisterCorrection(r"LEA_(B_)?IS(_D8|_D32)? \(R(32|64)\)", address=2),
    RegisterCorrection(r"(ADD|SUB) \(R64, I8\)|(INC|DEC) \(R64\)", adds_early=True),
    RegisterCorrection(r"(AND|OR)(_\w+)? \((R32|R64), (R32|R64|I8|I32)\)", latency=1),
    RegisterCorrection(r"SET[A-Z]+ \(R8l\)|BT[SRC]? \(R64, R64\)", latency=1),
    RegisterCorrection(r"(BZHI|S[AH][LR]X|BLSR|BLSMSK|BLSI|ANDN) \(.*\)", latency=1),
    RegisterCorrection(r"V?(ADD|SUB)[PS][SD](_\w+)? \((XMM|YMM).*\)", latency=2),  # see EARLY_ADDITIONS
    *(
        RegisterCorrection(rf"{mnemonic}(_\w+)? \({first}\b.*\)", busy=cycles)
        for mnemonic, some in _DIVISIONS.items()
        for first, cycles in some.items()
    ),
)
# To each other: to everything else their results come a cycle later.
EARLY_ADDITIONS = {f"{v}{name}{kind}": 1.0 for v in ("", "V") for name in ("ADD", "SUB") for kind in _FLOATS}


def with_corrections(
    forms: Mapping[str, FormCost], corrections: Sequence[RegisterCorrection]
) -> Mapping[str, FormCost]:
    """Costs of forms, by their ids, each after the first correction that is about it."""
    any_of_them = re.compile("|".join(f"(?P<of{n}>{one.forms})" for n, one in enumerate(corrections)))
    matches = ((form, any_of_them.fullmatch(form)) for form in forms)
    known = {form: corrections[int((match.lastgroup or "")[2:])] for form, match in matches if match}
    return {**forms, **{form: one.of(forms[form]) for form, one in known.items()}}
