"""Loads that wait until a store is in the cache, one after the other."""

from __future__ import annotations

import itertools
import random
import shutil

import msgspec
import pytest

from cyclescope.analyze.depend.waits import CacheWait, longest_round
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model.behaviour.found import measured_behaviour
from cyclescope.model.behaviour.published import LoadedStores
from cyclescope.model.facts import (
    BANKS,
    FORWARDING,
    RENAMING,
    CoreAnswer,
    Fact,
    MemoryWay,
    forwarding_subject,
    stores_apart,
    stores_loaded,
)
from cyclescope.model.machine import MEASURED, Provenance
from tests.support.code.blocks import block, toy

needs_assembler = pytest.mark.skipif(shutil.which("as") is None, reason="needs as and objcopy of binutils")
FAILED = 15.0  # cycles of a load that is not forwarded
FACTS = (
    Fact(FORWARDING, forwarding_subject(64, 64, 0), CoreAnswer.FORWARDED, 4.0, 0.05),
    Fact(FORWARDING, forwarding_subject(32, 32, 0), CoreAnswer.FORWARDED, 4.0, 0.05),
    Fact(FORWARDING, forwarding_subject(32, 64, 0), CoreAnswer.FAILED, FAILED, 0.05),
    Fact(RENAMING, MemoryWay.BASE, CoreAnswer.FORWARDED, 4.0, 0.05),
)


def cycles(text, *facts):
    machine = msgspec.structs.replace(toy(), provenance=Provenance(MEASURED), facts=facts)
    found = Predictor(machine).predict(block(text), simulate=False)
    assert found.lower < FAILED
    return found.bounds.get("cache_waits", 0.0)


@needs_assembler
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mov [rdi], eax; mov rcx, [rdi]", FAILED),
        ("mov [rdi], eax; imul rcx, [rdi]", FAILED + 3),  # retires when it has computed
        ("mov rcx, [rdi]; mov [rdi], eax", FAILED),  # of the iteration before
        ("mov [rdi], ax; mov rcx, [rdi]", FAILED),  # as the failure that was asked
        (
            "mov [rdi], eax; mov rcx, [rdi]; imul rcx, rdx; imul rcx, rdx",
            FAILED + 6,
        ),  # in front of the next store
        ("mov [rdi], eax; imul rcx, rdx; mov rcx, [rdi]", FAILED),  # behind it
        (
            "mov [rdi], eax; mov rcx, [rdi]; imul rbx, rdx; nop; nop; nop; nop; nop",
            FAILED + 1,
        ),  # seven slots, of which four retire a cycle earlier
        ("mov [rdi], rax; mov rcx, [rdi]", 0),  # is forwarded
        ("mov [rdi], eax; mov ecx, [rdi]", 0),
        ("mov [rdi], eax; mov rcx, [rdi + 16]", 0),
        ("mov [rdi], eax; mov rcx, [rdi]; mov [rsi], eax; mov rcx, [rsi]", 2 * FAILED),
        ("mov [rdi], eax; mov [rsi], eax; mov rcx, [rdi]; mov rcx, [rsi]", FAILED),  # both wait at once
        ("mov [rdi], eax; mov rcx, [rdi]; imul rbx, [rdi]", FAILED + 3),  # for one store
    ],
)
def test_waits_follow_each_other(text, expected):
    assert cycles(text, *FACTS) == pytest.approx(expected)
    assert cycles(text) == 0  # nothing was found out


def test_the_longest_round_is_that_of_all_choices():
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - to repeat it
    draw = random.Random(seed)
    for _ in range(300):
        length = draw.randint(1, 9)
        waits = []
        for _ in range(draw.randint(0, 5)):
            start = draw.randrange(length)
            waits.append(CacheWait(start, start + draw.randint(1, length), float(draw.randint(1, 20))))
        assert longest_round(waits, length) == _every_choice(waits, length), waits


def _every_choice(waits, length):
    """The most of all sets of waits that share no step of the round."""
    most = 0.0
    for size in range(len(waits) + 1):
        for some in itertools.combinations(waits, size):
            steps = [step % length for wait in some for step in range(wait.start, wait.end)]
            if len(set(steps)) == len(steps):
                most = max(most, sum(wait.cycles for wait in some))
    return most


LOADED = (
    Fact(BANKS, stores_apart(0), CoreAnswer.VALUE, 2.0, 0.02),
    *(Fact(BANKS, stores_loaded(n), CoreAnswer.VALUE, 0.5 if n < 4 else 2.0, 0.01) for n in (2, 3, 4, 6)),
)
THREE = "mov [rdi], rcx; mov [rdi + 8], rcx; mov [rdi + 16], rcx; "


@needs_assembler
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (THREE, None),
        (THREE + "mov rax, [rdi]", 6),
        (THREE + "mov rax, [rdi]; mov rdx, [rdi + 8]", 6),
        ("mov rax, [rdi]; " + THREE, 6),  # of the iteration before
        (THREE + "cmp rax, [rdi]", 6),
        (THREE + "mov rax, [rdi + 24]", None),
        (THREE + "mov [rdi + 24], rcx; mov rax, [rdi]", None),
        (THREE + "mov [rdi + 24], rcx; mov rax, [rdi]; mov rdx, [rdi]", 8),
        (THREE + "add [rdi + 24], rcx", None),  # what it loads an update stored
        (THREE + "mov rax, [rdi]; add rdx, rbx", 6),
        (THREE + "mov rax, [rdi]; add rdx, rbx; add rdx, rbx", None),  # too seldom
    ],
)
def test_stores_that_are_loaded_again_leave_one_by_one(text, expected):
    machine = msgspec.structs.replace(toy(), provenance=Provenance(MEASURED), facts=LOADED)
    found = Predictor(machine).predict(block(text), simulate=False)
    assert found.bounds.get("loaded_stores") == expected
    assert found.lower < 6
    older = msgspec.structs.replace(machine, facts=LOADED[:1])
    assert "loaded_stores" not in Predictor(older).predict(block(text), simulate=False).bounds


@pytest.mark.parametrize(
    ("rates", "share"),
    [
        ({2: 1.0, 3: 1.01, 4: 1.9, 6: 2.0}, 1 / 3),
        ({2: 1.0, 3: 1.01, 6: 2.0}, 1 / 3),
        ({2: 1.0, 3: 1.8, 4: 2.0, 6: 2.0}, 1 / 2),
        ({2: 1.0, 3: 1.0, 4: 1.0, 6: 1.0}, None),  # nobody knows how few are enough
        ({2: 2.0, 3: 1.0, 4: 2.0, 6: 2.0}, None),  # it is not for the share of loads
        ({2: 2.0, 3: 2.0, 4: 2.0, 6: 2.0}, None),
        ({}, None),
    ],
)
def test_stores_are_slow_where_enough_of_them_are_loaded_again(rates, share):
    facts = [Fact(BANKS, stores_loaded(n), CoreAnswer.VALUE, rate, 0.02) for n, rate in rates.items()]
    told = measured_behaviour([*LOADED[:1], *facts], isa="x86-64").loaded_stores
    assert told == (None if share is None else LoadedStores(1.0, share, 2.0))
    assert measured_behaviour(facts, isa="x86-64").loaded_stores is None  # nobody knows how fast others are
