"""Latency chains, decoded: the critical path runs through the pair, as often as they say."""

from __future__ import annotations

import random

import pytest

from cyclescope.isa.dataflow import is_old, pairs
from cyclescope.kernel.kernel import CANARY, FAST, WATCHED, WITHOUT_LOOP
from cyclescope.kernel.state import FIRST_WINDOW, SECOND_WINDOW
from cyclescope.kernel.x86_64.addresses import ROTATION
from cyclescope.kernel.x86_64.helpers.breakers import CONSTANT_VALUE
from cyclescope.kernel.x86_64.registers import VECTOR_ZERO
from cyclescope.measure.plan import Planner
from tests.support.code.decoded import body
from tests.support.code.flow import period
from tests.support.code.forms import chosen, role, usable
from tests.support.made.truth import Truth

LONG = 1000.0
LOOP_END = ("PF", "AF", "ZF", "SF", "OF")  # what the loop counter destroys


class Stretched(Truth):
    """Every latency is a cycle, but one pair's of one opcode is longer."""

    def __init__(self, code, source, target, by):
        super().__init__()
        self.stretched, self.by = (code, source, target), by

    def latency(self, ins, source, target, slow=False):
        longer = self.by if (ins.code, source, target) == self.stretched else 0.0
        return 1.0 + longer


@pytest.fixture(scope="module")
def planner(table):
    return Planner(table, lambda form: True)


@pytest.fixture(scope="module")
def forms(table):
    """A few of every group, and some of all."""
    some = random.Random(5).sample([f for f in table if usable(f)], 150)
    return list({f.id: f for f in (*chosen(table, seed=9), *some)}.values())


@pytest.fixture(scope="module")
def experiments(planner, forms):
    """Chains through a pair; those of what is overwritten go through none."""
    return [(form, e) for form in forms for e in planner.latency(form) if not is_old(e.source)]


@pytest.fixture(scope="module")
def cycles(planner):
    return planner.link_experiments()


def test_chains_are_watched(experiments, cycles):
    """Neighbours delay some of them, and the clock beside all; sequences have their own flag."""
    kernels = [e.kernel for e in (*(e for _, e in experiments), *cycles)]
    assert all(bool(kernel.flags & WATCHED) != bool(kernel.flags & CANARY) for kernel in kernels)
    assert sum(kernel.flags & WATCHED > 0 for kernel in kernels) > 100


def test_chains_through_memory_have_one_long_loop(experiments):
    """A short one may know by registers what goes through memory."""
    chains = [e for _, e in experiments if e.kernel.flags & WATCHED]
    through = [e for e in chains if ".data" in e.source + e.target]
    assert {e.kernel.flags & FAST for e in through} == {0}
    assert {e.kernel.flags & FAST for e in chains if e not in through} == {FAST}
    assert {e.source for e in through} > {"op1.data", "op1.address"}


def test_registers_of_mmx_are_written_as_such(planner, table, cycles):
    """The x87's FNINIT wrote them before: then some cores take longer for every read."""
    written = b"".join(bytes([0x0F, 0xEF, 0xC0 | 9 * n]) for n in range(8))  # pxor mmN, mmN
    form = table["PSRAD (MM, MM)"]
    kernels = [e.kernel for e in (*planner.throughput(form), *planner.latency(form))]
    kernels += [e.kernel for e in cycles if e.form.startswith("m>mem")]
    assert len(kernels) > 6
    assert all(written in kernel.setup for kernel in kernels)
    assert not any(written in e.kernel.setup for e in planner.latency(table["FADD (ST0, STi)"]))


@pytest.mark.parametrize("name", ["VPGATHERDQ (XMM, VSIB_XMM, XMM)", "VGATHERQPS (XMM, VSIB_YMM, XMM)"])
def test_what_is_gathered_is_no_index(planner, table, name):
    """The index depends on it, and is 0."""
    (chain,) = [e for e in planner.latency(table[name]) if (e.source, e.target) == ("op2.index", "op1")]
    cut, again = chain.kernel.body[-2:]
    zero = cut.registers[-1]
    assert (cut.form.mnemonic, again.form.mnemonic) == ("VANDPS", "VORPS")
    assert again.registers == (cut.registers[0], cut.registers[0], zero)
    assert zero == VECTOR_ZERO
    assert chain.links == (f"restore.{128 if 'XMM' in cut.form.id else 256}",)


def moves_stack(form):
    return any(a.startswith(("x87+", "x87-")) for a in form.attributes)


def stretch(form, experiment):
    """How much longer the body takes when the pair takes LONG longer; None where it is a helper, too."""
    pair = next(
        p for p in pairs(form) if (p.source.name, p.target.name) == (experiment.source, experiment.target)
    )
    code, state = experiment.kernel.code, experiment.kernel.state
    own = [ins for ins in body(code) if ins.code == form.code]
    if len(own) != experiment.count:
        return None
    ends = role(form, pair.source, own[0]), role(form, pair.target, own[0])
    short, long = (period(Stretched(form.code, *ends, by), code, state) for by in (LONG, 2 * LONG))
    return long.dependency - short.dependency


def test_the_pair_is_on_the_critical_path_as_often_as_said(experiments):
    wrong, seen = [], 0
    for form, e in experiments:
        if moves_stack(form):
            continue
        found = stretch(form, e)
        seen += found is not None
        if found is not None and found != LONG * e.count:
            wrong.append((form.id, e.source, e.target, e.variant, found / LONG, e.count))
    assert seen > 2500
    assert not wrong, wrong


def test_no_chain_goes_through_what_the_loop_counter_destroys(experiments, cycles):
    truth, wrong = Truth(1), []
    for name, e in [(form.id, e) for form, e in experiments] + [(e.form, e) for e in cycles]:
        kernel = e.kernel
        if kernel.flags & WITHOUT_LOOP:
            continue
        whole, cut = (period(truth, kernel.code, kernel.state, drop) for drop in ((), LOOP_END))
        if whole.dependency != cut.dependency:
            wrong.append((name, e.source, e.target, e.variant, whole.dependency, cut.dependency))
    assert not wrong, wrong


def test_a_cut_chain_of_links_has_no_dependency_left(cycles):
    truth = Truth(1)
    chains = {e.form: e for e in cycles if e.links and not e.variant}
    cuts = {e.form: e for e in cycles if e.links and e.variant == "cut"}
    assert set(chains) == set(cuts)
    assert len(chains) > 60
    for name, e in chains.items():
        whole = period(truth, e.kernel.code, e.kernel.state).dependency
        cut = period(truth, cuts[name].kernel.code, cuts[name].kernel.state).dependency
        assert cut <= whole - 1 or whole == 0, name
        assert whole >= 1, name


def test_every_pair_has_a_chain_or_a_reason(planner, forms):
    for form in forms:
        plan = planner.plan(form)
        have = {(c.source, c.target) for c in plan.chains}
        lack = {(m.source, m.target): m.reason for m in plan.missing}
        for pair in pairs(form):
            key = pair.source.name, pair.target.name
            assert (key in have) != (key in lack), (form.id, key)
            assert key in have or lack[key], (form.id, key)


def test_experiments_have_keys_of_their_own(planner, forms):
    for form in forms:
        keys = [e.key for e in (*planner.throughput(form), *planner.latency(form))]
        assert len(keys) == len(set(keys)), form.id


def test_kernels_are_the_bytes_of_their_instructions(experiments):
    for form, e in experiments[::7]:
        assert e.kernel.code == b"".join(i.code for i in e.kernel.body), form.id
        assert e.kernel.instructions == len(e.kernel.body) == len(body(e.kernel.code)), form.id
        assert e.kernel.text().count("\n") == e.kernel.instructions - 1


def test_no_filled_chain_from_the_address_of_what_it_stores(planner, table):
    """At one address the core predicts the store that a load takes its data from, and skips the address.

    But for what is locked, which no store is predicted for.
    """
    for name, source, target in (
        ("SUB (M64, I32)", "op1.address", "flags.OF"),
        ("SUB (M64, I32)", "op1.index", "op1.data"),
        ("VMOVUPS (M128, XMM)", "op1.address", "op1.data"),
    ):
        assert planner.filled(table[name], source, target, 5) is None
    assert planner.filled(table["SUB (M64, I32)"], "op1.data", "flags.OF", 5) is not None
    assert planner.filled(table["SUB_LOCK (M64, I32)"], "op1.address", "flags.OF", 5) is not None
    assert planner.filled(table["IMUL (R64, M64)"], "op2.address", "op1", 5) is not None


def test_filled_chains_have_their_filling_on_the_path(planner, forms):
    wrong, seen = [], 0
    for form in forms[::3]:
        if moves_stack(form):
            continue
        for chain in (c for c in planner.plan(form).chains if not is_old(c.source)):
            filled = planner.filled(form, chain.source, chain.target, 5)
            found = stretch(form, filled) if filled else None
            seen += found is not None
            if found is not None and found != LONG * filled.count:
                wrong.append((form.id, chain.source, chain.target, found / LONG))
    assert seen > 500
    assert not wrong, wrong


# --- only what the CPU has ----------------------------------------------------------------------

WIDE_ONLY = (
    "CLZERO",
    "STTILECFG",
    "AESENCWIDE256KL",
    "AESDECWIDE256KL",
    "AESENC256KL",
    "AESDEC256KL",
    "VZEROUPPER",
)


def legal_planner(table, missing):
    truth = Truth(1, missing=missing)
    known = {}

    def executes(form):
        if form.id not in known:
            kernel = everything.probe_kernel(form)
            known[form.id] = kernel is not None and all(truth.executes(i) for i in body(kernel.code))
        return known[form.id]

    everything = Planner(table, lambda form: True)
    return Planner(table, executes), executes


def strangers(table, forms, missing):
    """Forms whose kernels need instructions that the CPU lacks."""
    planner, executes = legal_planner(table, missing)
    return {
        form.id
        for form in forms
        if executes(form)
        for e in (*planner.throughput(form), *planner.latency(form))
        if not all(executes(i.form) for i in e.kernel.body)
    }


@pytest.mark.parametrize("missing", ["AVX512F", "AVX", "MMX"])
def test_kernels_need_nothing_that_the_cpu_lacks(table, forms, missing):
    assert strangers(table, [f for f in forms if not f.mnemonic.startswith(WIDE_ONLY)], (missing,)) == set()


@pytest.mark.parametrize("missing", ["AVX512F", "AVX"])
def test_wide_operands_of_other_extensions(table, missing):
    forms = [f for f in table if f.mnemonic in WIDE_ONLY]
    assert len(forms) > 5
    assert strangers(table, forms, (missing,)) == set()


@pytest.mark.parametrize(
    "name",
    ["VPCOMPRESSW (ZMM, ZMM)", "VPEXPANDD (YMM, YMM)", "VCOMPRESSPS (XMM, XMM)", "VEXPANDPD (ZMM, ZMM)",
     "VMOVAPS (ZMM, ZMM)", "MOV_89 (R64, R64)", "VBLENDMPD (ZMM, ZMM, ZMM)", "VPBLENDMB (XMM, XMM, XMM)"],
)  # fmt: skip
def test_what_may_copy_a_register_does_not_copy_one_onto_itself(planner, table, name):
    form = table[name]
    source = "op3" if "BLEND" in name else "op2"
    chains = [e for e in planner.latency(form) if (e.source, e.target) == (source, "op1")]
    assert chains
    for item in (item for e in chains for item in e.kernel.body if item.form is form):
        assert item.registers[0] != item.registers[-1]


def chain(planner, table, form_id, source, target):
    """The text of the first chain of a pair."""
    found = planner.latency(table[form_id])
    return next(e.kernel.text() for e in found if (e.source, e.target) == (source, target)).splitlines()


@pytest.mark.parametrize(
    ("form_id", "source", "target", "elsewhere", "here"),
    [
        ("CMPSQ", "[RSI].data", "flags.ZF", "rdi", "rsi"),
        ("CMPSB_REPE", "[RDI].data", "flags.CF", "rsi", "rdi"),
        ("MOVSQ", "RDI", "[RDI].data", "rsi", "rdi"),
    ],
)
def test_what_is_only_read_beside_the_source_is_in_another_place(
    planner, table, form_id, source, target, elsewhere, here
):
    """What is compared with itself is equal whatever it is; what has just been stored would be a chain."""
    text = chain(planner, table, form_id, source, target)
    distance = SECOND_WINDOW - FIRST_WINDOW
    assert f"lea {elsewhere}, [r13+{distance}]" in text
    assert f"mov {here}, r13" in text


def test_a_string_is_copied_where_it_is(planner, table):
    """From data to data the chain is through one place."""
    assert not any("lea" in line for line in chain(planner, table, "MOVSQ", "[RSI].data", "[RDI].data"))


@pytest.mark.parametrize(("source", "count"), [("[RSI].data", 1), ("RSI", CONSTANT_VALUE)])
def test_of_repeated_loads_the_first_is_the_last(planner, table, source, count):
    assert f"mov ecx, {count}" in chain(planner, table, "LODSQ_REPE", source, "RAX")


@pytest.mark.parametrize(
    ("form_id", "source", "target"),
    [
        ("ADC (M16, I8)", "flags.CF", "flags.OF"),
        ("RCL (M8, I8)", "flags.CF", "flags.CF"),
        ("SHLD (M64, R64, I8)", "op2", "flags.CF"),
        ("XADD (M32, R32)", "op2", "op1.data"),
    ],
)
def test_updates_of_memory_are_at_several_places_in_turn(planner, table, form_id, source, target):
    """A store that cuts memory would be what the update waits for."""
    form = table[form_id]
    experiments = [e for e in planner.latency(form) if (e.source, e.target) == (source, target)]
    assert [e.count for e in experiments] == [ROTATION]
    body = experiments[0].kernel.body
    assert len({item.displacement for item in body if item.form is form}) == ROTATION
    others = [item for item in body if item.form is not form and item.form.memory >= 0]
    assert not any(item.form.operands[item.form.memory].write for item in others)
    assert len({item.displacement for item in others}) == (ROTATION if target == "op1.data" else 0)


def test_two_operations_that_fill_a_chain_of_masks_fit_into_a_cycle(planner, table):
    """Else they would take as long without the chain."""
    filled = planner.filled(table["VPGATHERDD (XMM, K, VSIB_XMM)"], "op2", "op2", 8)
    assert filled.kernel.text().count("kord") == 8
