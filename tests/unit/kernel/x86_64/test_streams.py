"""Throughput sequences, decoded: instances are independent, and no reserved register is written."""

from __future__ import annotations

import itertools
import random

import pytest

from cyclescope.isa.x86_64.unmeasurable import unmeasurable
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY
from cyclescope.kernel.state import FIRST_WINDOW, SECOND_WINDOW, STACK_TOP
from cyclescope.kernel.x86_64.registers import ALIAS, BASE, COUNTER, NARROW_BASE, STACK
from cyclescope.measure.plan import Planner
from tests.support.code.decoded import FLAG_BITS, body
from tests.support.code.flow import Access, Addresses
from tests.support.code.forms import chosen, usable

CONTROL = {"branch", "call", "return", "conditional_branch"}
LEAVING = ("FINCSTP", "FDECSTP", "FNINIT")
FRAMES = ("ENTER", "LEAVE")
MOVES = ("XOR", "MOV", "ADD", "SUB", "LEA")  # what puts an address back, or depends on a result


@pytest.fixture(scope="module")
def planner(table):
    return Planner(table, lambda form: True)


@pytest.fixture(scope="module")
def forms(table):
    """A sample over all forms that can be timed, and some of every kind."""
    timed = [f for f in table if not unmeasurable(f) and not any("PADLOCK" in n for n in f.features)]
    some = random.Random(3).sample(timed, 900)
    return list({f.id: f for f in (*some, *chosen(table, seed=5))}.values())


@pytest.fixture(scope="module")
def throughput(planner, forms):
    return [(form, e) for form in forms for e in planner.throughput(form)]


@pytest.fixture(scope="module")
def everything(planner, forms, throughput):
    return [*throughput, *((form, e) for form in forms[::3] for e in planner.latency(form))]


# --- places --------------------------------------------------------------------------------------


UPDATED = 32  # places of 8 bytes that a displacement of 8 bits reaches


@pytest.mark.parametrize("name", ["ADD (M64, R64)", "ROL (M8, I8)", "ADC (M16, I8)", "ADD_LOCK (M32, R32)"])
def test_memory_that_is_updated_is_as_many_places_as_displacements_reach(planner, table, name):
    """An update that comes back to what it stored 16 updates ago still waits for that on a Zen 3."""
    sequences = {e.variant: e for e in planner.throughput(table[name])}
    for variant in ("plain x32", "unrolled x32", "indexed x32"):
        places = places_of(sequences[variant])
        assert len(places) == len(set(places)) == UPDATED
        assert all(abs(a - b) >= 8 for a, b in itertools.combinations(places, 2))


def test_memory_that_is_only_read_or_written_is_fewer_places(planner, table):
    for name in ("MOV (R64, M64)", "MOV (M64, R64)", "ADD (R64, M64)"):
        counts = {e.count for e in planner.throughput(table[name])}
        assert max(counts) <= UPDATED / 2


def places_of(experiment):
    addresses = Addresses(experiment.kernel.state)
    loads = [addresses.of(m) for ins in body(experiment.kernel.code) for m in ins.memory if m.read]
    return [load.address for load in loads]


# --- independence -------------------------------------------------------------------------------


def dependencies(form, experiment):
    """Places that an instance reads and another one of the same body has written."""
    addresses = Addresses(experiment.kernel.state)
    written, stored, found = set(), [], set()
    for ins in body(experiment.kernel.code):
        explicit = {where for role, where in ins.sources if not role.startswith(("reg", "flag"))}
        loads = [addresses.of(m) for m in ins.memory if m.read]
        found |= {w for w in explicit if w in written}
        found |= {a for a in loads for s in stored if Access.overlaps(a, s)}
        written |= {where for _, where in ins.targets}
        stored += [addresses.of(m) for m in ins.memory if m.write]
        addresses.step(ins)
    return found


def implicit(form):
    """Whether instances share what they read and write: fixed registers, the x87 stack, flags."""
    fixed = any(op.fixed and op.is_register and op.write for op in form.operands)
    stack = not form.attributes.isdisjoint(("x87", "stack", "string", "rep", "repne"))
    return fixed or stack or form.flags_read & form.flags_written


def dependent(experiments):
    """Sequences of ordinary forms whose instances depend on each other; and how many there are."""
    wrong, seen = [], 0
    for form, e in experiments:
        plain = e.variant.startswith(("plain", "unrolled", "indexed"))
        if not plain or implicit(form) or not usable(form) or "COMPRESS" in form.mnemonic:
            continue  # a compressed store overlaps the next one, but reads nothing
        seen += 1
        if found := dependencies(form, e):
            wrong.append((form.id, e.variant, sorted(map(str, found))))
    return wrong, seen


def test_instances_do_not_depend_on_each_other(throughput):
    wrong, seen = dependent((f, e) for f, e in throughput if "lea" not in f.attributes)
    assert seen > 2500
    assert not wrong, wrong


def test_instances_of_lea_do_not_depend_on_each_other(planner, table):
    forms = [f for f in table if "lea" in f.attributes]
    wrong, seen = dependent((f, e) for f in forms for e in planner.throughput(f))
    assert seen > 50
    assert not wrong, wrong


def test_sequences_have_as_many_instances_as_they_say(throughput):
    for form, e in throughput:
        own = sum(instruction.form is form for instruction in e.kernel.body)
        assert own == e.count, (form.id, e.variant)


def test_throughput_is_measured_with_canaries(throughput):
    unguarded = {form.id for form, e in throughput if not e.kernel.flags & CANARY}
    assert not unguarded, unguarded


def test_lengths_differ_so_that_linearity_shows(planner, forms):
    for form in forms:
        variants = [s.variant for s, _ in planner.plan(form).streams]
        if "plain" in variants:
            assert "unrolled" in variants, form.id


# --- reserved registers -------------------------------------------------------------------------


def writes(experiment):
    for ins in body(experiment.kernel.code):
        yield from ((ins, where) for _, where in ins.targets)


def test_the_loop_counter_is_never_touched(everything):
    for form, e in everything:
        for ins in body(e.kernel.code):
            places = {where for _, where in (*ins.sources, *ins.targets)}
            assert f"r{COUNTER}" not in places, (form.id, e.variant)


def test_the_stack_pointer_comes_back(everything):
    for form, e in everything:
        if not form.attributes.isdisjoint(CONTROL) or form.mnemonic in FRAMES:
            continue
        addresses = Addresses(e.kernel.state)
        for ins in body(e.kernel.code):
            addresses.step(ins)
            lost = any(where == f"r{STACK}" for _, where in ins.targets) and ins.mnemonic not in MOVES
            assert not lost, (form.id, e.variant)
        assert addresses.values[STACK] == STACK_TOP, (form.id, e.variant)


def test_addresses_are_only_replaced_by_addresses(everything):
    """XOR with a value twice, a constant or another address: nothing else reaches a pointer."""
    wrong = []
    for form, e in everything:
        if not form.attributes.isdisjoint(("string", "rep", "repne", *CONTROL)) or form.mnemonic in FRAMES:
            continue
        instructions = body(e.kernel.code)
        pointers = {m.base for ins in instructions for m in ins.memory} - {f"r{STACK}", ""}
        wrong += [
            (form.id, e.source, e.target, e.variant, ins.mnemonic, where)
            for ins, where in writes(e)
            if where in pointers and ins.mnemonic not in MOVES and not ins.mnemonic.startswith("CMOV")
        ]
    assert not wrong, wrong


def test_pointers_begin_in_the_filled_windows(everything):
    windows = [(base - 0x800, base + 0x800) for base in (FIRST_WINDOW, SECOND_WINDOW, STACK_TOP)]
    outside = set()
    for form, e in everything:
        if not form.attributes.isdisjoint(CONTROL) or form.mnemonic in FRAMES:
            continue
        addresses = Addresses(e.kernel.state)
        for ins in body(e.kernel.code):
            for access in [addresses.of(m) for m in ins.memory if m.read or m.write]:
                if not any(
                    low <= access.address and access.address + access.size <= high for low, high in windows
                ):
                    outside.add((form.id, e.variant, hex(access.address)))
            addresses.step(ins)
    assert not outside, sorted(outside)[:20]


def test_base_registers_are_no_operands(forms, planner):
    for form in forms:
        narrow = "high_byte" in form.attributes
        bases = {NARROW_BASE if narrow else BASE, *(() if narrow else (ALIAS,))}
        for stream, _ in planner.plan(form).streams:
            for ins in body(b"".join(i.code for i in instructions(form, stream))):
                explicit = {where for role, where in ins.targets if role.startswith("op")}
                if form.memory >= 0:
                    assert not explicit & {f"r{n}" for n in bases - {ALIAS}}, (form.id, stream.variant)


def instructions(form, stream):
    from cyclescope.kernel.instruction import Instruction

    for item in stream.items:
        if isinstance(item, Instruction):
            yield item
        else:
            yield Instruction(form, item.registers, item.displacement, item.immediates, item.index)


def test_no_kernel_changes_the_direction_flag(everything):
    assert "DF" in FLAG_BITS
    for form, e in everything:
        if form.mnemonic not in ("STD", "CLD"):
            assert all(where != "DF" for _, where in writes(e)), form.id


def unbalanced(experiments):
    """Forms whose body leaves the x87 stack with more or fewer registers than it had."""
    return {form.id for form, e in experiments if sum(ins.pushes for ins in body(e.kernel.code))}


def test_the_x87_stack_stays_balanced_in_sequences(planner, table):
    forms = [f for f in table if "x87" in f.attributes and not unmeasurable(f) and f.mnemonic not in LEAVING]
    assert len(forms) > 80
    assert unbalanced((f, e) for f in forms for e in planner.throughput(f)) == set()


@pytest.mark.parametrize(
    ("name", "cut"),
    [("FSQRT", True), ("FDIV (M64)", True), ("FDIV (STi, ST0)", False), ("FXAM", False)],
)
def test_what_is_on_top_of_the_x87_stack_is_put_there_anew(planner, table, name, cut):
    """Instances that read and write it do not wait for each other behind FSTP and FLD1."""
    streams = planner.sequences(table[name]).streams
    broken = [one for one, _ in streams if one.variant == "broken"]
    assert bool(broken) is cut
    for one in broken:
        others = [item.form.mnemonic for item in one.items if isinstance(item, Instruction)]
        assert others == ["FSTP", "FLD1"] * one.count


def test_the_x87_stack_stays_balanced_in_chains(planner, table):
    forms = [f for f in table if "x87" in f.attributes and not unmeasurable(f) and f.mnemonic not in LEAVING]
    assert unbalanced((f, e) for f in forms for e in planner.latency(f)) == set()


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("VPXORD_Z (YMM, K, YMM, YMM)", True),
        ("VPXORD (YMM, K, YMM, YMM)", False),  # its old value is a source
        ("VPCMPEQD (K, K, YMM, YMM)", False),
        ("VPXORD (YMM, YMM, YMM)", True),
    ],
)
def test_a_mask_that_zeroes_is_no_source_of_an_idiom(planner, table, name, asked):
    found = [e.kernel.body for e in planner.throughput(table[name]) if e.variant == "same register"]
    assert len(found) == asked
    assert all({one.registers[0] for one in body} == set(body[0].registers[-2:]) for body in found)


@pytest.mark.parametrize(("name", "cut"), [("SBB_19 (R32, R32)", True), ("SUB_29 (R32, R32)", False)])
def test_a_chain_through_flags_hides_no_idiom(planner, table, name, cut):
    body = next(e.kernel.body for e in planner.throughput(table[name]) if e.variant == "same register")
    assert [one.form.mnemonic for one in body] == [*["TEST"] * cut, name[:3]] * 4


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("VPTESTNMD (K, YMM, YMM)", {1, 2, 3, 4, 5}),
        ("VPTESTNMD (K, K, YMM, YMM)", {1, 2, 3, 4, 5, 7}),
        ("KADDB (K, K, K)", {1, 2, 3, 4, 5, 6, 7}),
        ("VPADDD_Z (YMM, K, YMM, YMM)", None),  # writes none
        ("VGATHERDPS (YMM, K, VSIB_YMM)", None),  # reads what it writes
    ],
)
def test_masks_that_nobody_uses_hold_no_value(planner, table, name, held):
    """What is in flight has those: how many there are depends on what else the core runs."""
    zero = [planner.dialect.helpers.mask_zero(number).code for number in range(8)]
    for experiment in planner.throughput(table[name]):
        if experiment.variant.startswith(("plain x", "unrolled", "indexed")) and experiment.count >= 8:
            emptied = {number for number in range(8) if zero[number] in experiment.kernel.setup}
            assert emptied == (set(range(8)) - held if held else set())
