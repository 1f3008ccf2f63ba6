"""What probes have to find on simulated cores of known truth, by the subject of a question."""

from __future__ import annotations

import random
import re

from cyclescope.isa.table import load_table
from cyclescope.model.behaviour.nops import BeforeNop, before_nop, is_nop
from cyclescope.model.facts import CoreAnswer, LoadWork
from cyclescope.model.machine import MachineModel
from cyclescope.probe.core.fusion import WITH
from cyclescope.probe.core.moves import ITSELF
from cyclescope.simulate.front_end import FrontEnd
from cyclescope.simulate.passing import ANY, BY_STACK, SAME, Passing

FIRSTS = ("CMP", "TEST", "AND", "ADD", "SUB", "OR", "XOR", "INC", "DEC", "NEG", "ADC", "BT")
BRANCHES = ("JE", "JB", "JBE", "JL", "JLE", "JS", "JO", "JP")
MOVED = ("ADD", "SUB", "AND", "OR", "XOR", "INC", "NOT")  # what the simulated front end fuses with moves


def moved(machine: MachineModel, subject: str) -> CoreAnswer:
    """Of a move."""
    cost = machine.forms[subject.removesuffix(ITSELF)]
    return CoreAnswer.ELIMINATED if cost.eliminated else CoreAnswer.EXECUTED


def broken(machine: MachineModel, subject: str) -> CoreAnswer:
    """Of an instruction whose sources are one register: whether it waits for it."""
    return CoreAnswer.BREAKING if machine.forms[subject].idiom else CoreAnswer.DEPENDENT


def idle(machine: MachineModel, subject: str) -> CoreAnswer:
    """Of such an instruction: whether it needs an execution unit."""
    return CoreAnswer.ZERO if machine.forms[subject].idiom == "zero" else CoreAnswer.EXECUTED


def fused(front_end: FrontEnd, subject: str) -> CoreAnswer:
    """Of two instructions next to each other."""
    first, second = subject.split(WITH)
    forms = [load_table("x86-64")[name] for name in (first, second)]
    pair = tuple(form.mnemonic for form in forms)
    if is_nop(forms[1]):
        trails = front_end.trails and before_nop(forms[0]) is not BeforeNop.VECTORS
        return CoreAnswer.FUSED if trails else CoreAnswer.SEPARATE
    move = first == "MOV_89 (R64, R64)" and front_end.fuses and pair[1] in MOVED and "(R32" not in second
    return CoreAnswer.FUSED if pair in front_end.branches or move else CoreAnswer.SEPARATE


def draw_passing(seed: int) -> Passing:
    """A way through memory with drawn conditions."""
    draw = random.Random(seed)
    renamed = draw.choice(("", BY_STACK, SAME, ANY))
    return Passing(renamed, draw.choice((8, 32)), draw.choice((64, 128)), draw.choice((6, 13, 1 << 20)),
                   failed=draw.choice((8.0, 14.0)), worked=draw.random() < 0.5)  # fmt: skip


def is_renamed(passing: Passing, subject: str) -> bool:
    """Whether a way of the probe is renamed: its base, bits and stores in between."""
    word = subject.split()
    bits = int(word[0]) if "bits" in subject else 64
    stacked = "stack pointer" in subject
    between = int(word[0]) if "stores" in subject else 0
    rewritten = any(way in subject for way in ("base written", "another base", "copied base", "overwritten"))
    rewritten |= subject == "stack pointer"  # by PUSH and POP
    works = any(work in subject for work in LoadWork)
    narrowest = 0 if passing.worked and works else passing.narrowest
    fits = narrowest <= bits <= passing.widest and between <= passing.distance and "load of" not in subject
    by_base = {"": False, BY_STACK: stacked, SAME: not rewritten, ANY: True}[passing.renamed]
    return fits and by_base


def renamed(passing: Passing, subject: str) -> CoreAnswer:
    """Of a way through memory."""
    return CoreAnswer.RENAMED if is_renamed(passing, subject) else CoreAnswer.FORWARDED


def forwarded(subject: str) -> CoreAnswer:
    """Of a load from what was stored before: whether the store has all bytes of it."""
    stored, loaded, offset = (int(number) for number in re.findall(r"\d+", subject)[:3])
    return CoreAnswer.FORWARDED if 8 * offset + loaded <= stored else CoreAnswer.FAILED
