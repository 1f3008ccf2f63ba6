"""Kernels that keep one destination: nothing but its old value is between one instance and the next."""

from __future__ import annotations

import random
from functools import cache

import pytest

from cyclescope.isa.dataflow import overwritten, register_place
from cyclescope.isa.table import load_table
from cyclescope.kernel.chain import Unmeasurable, Use
from cyclescope.kernel.overwriting import chosen_stream, emptied, independent, own_destinations
from cyclescope.kernel.stream import LENGTHS, Stream, kind_of
from cyclescope.kernel.variant import Kind, variant_of
from cyclescope.measure.plan import Planner
from tests.support.code.flow import period
from tests.support.made.truth import Truth

ISAS = ("x86-64", "aarch64", "riscv64")
COUNT = 4  # one-cycle instructions behind an instance


@cache
def planner(isa):
    return Planner(load_table(isa), lambda form: True)


@cache
def sample(isa, count=300):
    able = [form for form in load_table(isa) if overwritten(form)]
    some = random.Random(3).sample(able, min(count, len(able)))
    return tuple(form for form in some if kept(isa, form))


def kept(isa, form):
    return [e for e in planner(isa).latency(form) if e.variant == Kind.KEPT]


def rotating(isa, form):
    """Registers of the instances of the sequence with several destinations."""
    stream, _ = chosen_stream(form, planner(isa).sequences(form).streams)
    return [item.registers for item in stream.items if isinstance(item, Use)]


def own(isa, form, experiment):
    return [i for i in experiment.kernel.body if i.form is form]


def number(form, pair, instruction):
    return instruction.registers[register_place(form, pair.target.operand)]


@pytest.mark.parametrize("isa", ISAS)
def test_all_instances_write_one_destination_that_none_reads(isa):
    dialect, seen = planner(isa).dialect, 0
    for form in sample(isa):
        for pair, experiment in zip(overwritten(form), kept(isa, form), strict=False):
            instances = own(isa, form, experiment)
            assert len(instances) == experiment.count > 1
            assert len({number(form, pair, i) for i in instances}) == 1, form.id
            place, first = register_place(form, pair.target.operand), instances[0].registers
            several = [other_use[place] for other_use in rotating(isa, form)]
            moved = (*first[:place], next(n for n in several if n != first[place]), *first[place + 1 :])
            destination = dialect.written(form, first) - dialect.written(form, moved)
            assert destination
            for other in instances:
                assert destination <= dialect.written(form, other.registers)
                assert destination.isdisjoint(dialect.read(form, other.registers)), (form.id, other.text)
            seen += 1
    assert seen > (60 if isa == "riscv64" else 200)


@pytest.mark.parametrize("isa", ISAS)
def test_kept_and_rotating_kernels_differ_in_the_destination_alone(isa):
    seen = 0
    for form in sample(isa):
        streams = {e.variant: e for e in planner(isa).throughput(form)}
        kind = kind_of(variant_of(name).kind for name in streams)
        of_kind = [e for name, e in streams.items() if variant_of(name).kind is kind]
        for pair, experiment in zip(overwritten(form), kept(isa, form), strict=False):
            place = register_place(form, pair.target.operand)
            longest = max(of_kind, key=lambda e: e.count)
            assert experiment.kernel.state == longest.kernel.state
            for one, other in zip(experiment.kernel.body, longest.kernel.body, strict=False):
                assert one.form is other.form
                if one.form is form:
                    rest = [n for n, both in enumerate(zip(one.registers, other.registers, strict=True))
                            if both[0] != both[1]]  # fmt: skip
                    assert set(rest) <= {place}, (form.id, one.text, other.text)
                    assert one.displacement == other.displacement
            seen += 1
    assert seen > (60 if isa == "riscv64" else 200)


def test_on_x86_no_value_goes_from_one_instance_to_the_next():
    """By a decoder that is not the package's: with a latency of 1 for all, nothing takes a cycle per trip."""
    seen = 0
    for form in sample("x86-64"):
        implicit = any(op.fixed and op.read and op.write for op in form.operands)
        if form.mnemonic.startswith(("DIV", "IDIV")) or implicit or "x87" in form.attributes:
            continue
        for experiment in kept("x86-64", form):
            found = period(Truth(1), experiment.kernel.code, experiment.kernel.state)
            assert found.dependency == 0, (form.id, experiment.kernel.text())
            seen += 1
    assert seen > 200


@pytest.mark.parametrize("isa", ISAS)
def test_filled_kernels_have_as_much_behind_every_instance(isa):
    seen = 0
    for form in sample(isa)[::3]:
        for pair in overwritten(form):
            both = planner(isa).filled_output(form, pair.source.name, COUNT)
            if not both:
                continue
            chain, apart = both
            assert (chain.variant, apart.variant) == (Kind.FILLED, Kind.FILLED_APART)
            assert len(chain.links) == COUNT * chain.count
            assert apart.links == ()
            assert [i.form for i in chain.kernel.body] == [i.form for i in apart.kernel.body]
            one, several = ([number(form, pair, i) for i in own(isa, form, e)] for e in both)
            assert len(set(one)) == 1
            assert len(set(several)) > 1
            seen += 1
    assert seen > 20


def test_the_destination_is_what_is_filled():
    (form,) = [f for f in load_table("x86-64") if f.id == "POPCNT (R64, R64)"]
    chain, apart = planner("x86-64").filled_output(form, "op1.old", 1)
    assert chain.kernel.text().splitlines()[:2] == ["popcnt rax, r12", "movsxd rax, eax"]
    assert apart.kernel.text().splitlines()[2:4] == ["popcnt rcx, r12", "movsxd rcx, ecx"]


def test_of_several_destinations_one_is_kept():
    form = load_table("aarch64")["LDPXi"]
    first, second = kept("aarch64", form)
    numbers = [[i.registers[:2] for i in own("aarch64", form, e)] for e in (first, second)]
    assert len({a for a, _ in numbers[0]}) == len({b for _, b in numbers[1]}) == 1
    assert len({b for _, b in numbers[0]}) > 5
    assert len({a for a, _ in numbers[1]}) > 5
    assert all(a != b for a, b in (*numbers[0], *numbers[1]))


def test_what_runs_with_others_only_has_no_such_kernel():
    with pytest.raises(Unmeasurable, match="other instructions around it"):
        chosen_stream(load_table("x86-64")["POP (R64)"], [(Stream("with stack adjustment", 1, (), 1), "")])


def test_the_sequence_that_cuts_most_is_taken():
    assert kind_of([Kind.PLAIN, Kind.BROKEN, Kind.UNROLLED]) is Kind.BROKEN
    assert kind_of([Kind.PLAIN, Kind.BASES, Kind.BROKEN]) is Kind.BASES
    assert kind_of([Kind.FAST, Kind.SLOW]) is Kind.FAST
    assert kind_of([Kind.TAKEN, Kind.OTHER]) is None


def test_every_overwritten_register_has_a_kernel_or_a_reason():
    for isa in ISAS:
        for form in sample(isa):
            plan = planner(isa).plan(form)
            for pair in overwritten(form):
                chains = [c for c in plan.chains if c.source == pair.source.name]
                assert bool(chains) != bool(planner(isa).reason(form, pair.source.name, pair.target.name))


@cache
def reading_their_own(isa, count=150):
    able = [form for form in load_table(isa) if own_destinations(form)]
    some = random.Random(5).sample(able, min(count, len(able)))
    return tuple(form for form in some if planner(isa).further(form, independent))


@pytest.mark.parametrize("isa", ISAS)
def test_destinations_are_overwritten_by_what_waits_for_no_instance(isa):
    dialect, seen = planner(isa).dialect, 0
    for form in reading_their_own(isa):
        for experiment in planner(isa).further(form, independent):
            assert experiment.count <= LENGTHS[1]
            written = set()
            for item in experiment.kernel.body:
                if item.form is form:
                    written |= dialect.written(form, item.registers)
            for item in experiment.kernel.body:
                if item.form is not form:
                    assert written.isdisjoint(dialect.read(item.form, item.registers)), item.text
                    assert dialect.written(item.form, item.registers) & written, item.text
            seen += 1
    assert seen > 30


@pytest.mark.parametrize("isa", ISAS)
def test_all_destinations_are_overwritten_or_one_of_so_many(isa):
    for form in reading_their_own(isa):
        for experiment in planner(isa).further(form, independent):
            share = int(experiment.variant.split()[4]) if experiment.variant.startswith(Kind.PARTLY) else 1
            before = [i.form is form for i in experiment.kernel.body]
            cut = [n for n in range(1, len(before)) if before[n] and not before[n - 1]]
            assert len(cut) == -(-experiment.count // share), (form.id, experiment.variant)


def test_on_x86_no_instance_waits_for_another_one():
    """By a decoder that is not the package's: with a latency of 1 for all, nothing takes a cycle per trip."""
    seen = 0
    for form in reading_their_own("x86-64"):
        both = [op for op in form.operands if op.read and op.write]
        if any(op.fixed or op.is_memory for op in both) or form.flags_read:
            continue
        for experiment in planner("x86-64").further(form, independent):
            if experiment.variant.startswith(Kind.OVERWRITTEN):
                found = period(Truth(1), experiment.kernel.code, experiment.kernel.state)
                assert found.dependency == 0, (form.id, experiment.kernel.text())
                seen += 1
    assert seen > 50


MASKED, UNMASKED = "VPCMPGTD (K, K, XMM, M128)", "VPCMPGTD_EVEX (K, XMM, M128)"


def test_masks_that_no_instance_uses_are_emptied_before_a_sequence_with_one_destination():
    """A write mask too, whose value does not matter; sources that are masks keep theirs."""
    names = (MASKED, UNMASKED, "KMOVQ (K, R64)", "KADDW (K, K, K)")
    for name, used in zip(names, ({1}, {1}, {1}, {1, 6, 7}), strict=True):
        form = load_table("x86-64")[name]
        (experiment,) = planner("x86-64").further(form, emptied)
        assert variant_of(experiment.variant).kind is Kind.EMPTIED
        body = experiment.kernel.body
        assert {i.registers[0] for i in body} == {1}, "one destination"
        assert len(body) == experiment.count == max(e.count for e in planner("x86-64").throughput(form))
        zeroed = b"".join(zeroed_by_idiom(number) for number in range(8) if number not in used)
        assert experiment.kernel.setup == zeroed


def zeroed_by_idiom(number):
    """KXORQ of one mask register."""
    return bytes((0xC4, 0xE1, 0xFC ^ number << 3, 0x47, 0xC0 | number * 9))


def test_without_masks_of_64_bits_16_are_emptied():
    narrow = Planner(load_table("x86-64"), lambda form: form.id != "KXORQ (K, K, K)")
    (experiment,) = narrow.further(load_table("x86-64")["KMOVW (K, R32)"], emptied)
    assert experiment.kernel.setup[:4] == bytes((0xC5, 0xFC, 0x47, 0xC0))


@pytest.mark.parametrize("isa", ISAS)
def test_registers_that_are_no_masks_are_not_emptied(isa):
    for form in sample(isa):
        if not any(op.cls == "K" and op.write for op in form.operands):
            assert not planner(isa).further(form, emptied), form.id
