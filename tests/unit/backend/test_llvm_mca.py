"""llvm-mca as a backend: against a program of the test that speaks like it, and once against itself."""

from __future__ import annotations

import shutil
import sys

import pytest

from cyclescope.backend.base import DIED, NOT_RUN, OK, Effort, Outcome
from cyclescope.backend.peers.llvm_mca import NAMES, LlvmMcaBackend, Stated, line, lines
from cyclescope.errors import BackendUnavailable, UsageError
from cyclescope.isa.table import load_table
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.kernel import CANARY, Kernel, kernel_of
from cyclescope.kernel.state import MachineState
from cyclescope.measure.plan import Planner
from tests.support.programs.installed_mca import backend_for

SIGILL = Outcome(1, 4, 0, 0)
RAMP = 1000  # cycles before the steady state

# Speaks like llvm-mca: NOT takes 2 cycles, others 1; `neg` is no mnemonic, `dec` has no model, `bswap`
# crashes when analysed, `cpuid` takes forever. Options are appended to a log.
FAKE = f"""#!{sys.executable} -IS
import json, re, sys, time
MODERN, LOG, VERSION = %(modern)r, %(log)r, %(version)r
options, text = sys.argv[1:], sys.stdin.read()
open(LOG, "a").write(" ".join(options) + "\\n")
if "--version" in options:
    sys.exit(print("LLVM version", VERSION))
if "--help" in options:
    sys.exit(print("=parse-failure" if MODERN else ""))
if "-mcpu=frob" in options:
    print("'frob' is not a recognized processor for this target (ignoring processor)", file=sys.stderr)
if "-mcpu=i386" in options:
    print("error: unable to find instruction-level scheduling information for it.", file=sys.stderr)
    sys.exit(1)
count = int(next((o[12:] for o in options if o.startswith("-iterations=")), 100))
regions, body, name = [], [], ""
for number, line in enumerate(text.splitlines(), 1):
    if line.startswith("# LLVM-MCA-BEGIN"):
        name, body = line.split()[2], []
    elif line.startswith("# LLVM-MCA-END"):
        if body:
            cycles = sum(2 if i.startswith("not") else 1 for i in body)
            region = dict(Name=name, Instructions=body)
            total = {RAMP} + cycles * count
            region["SummaryView"] = dict(TotalCycles=total, Iterations=count, BlockRThroughput=cycles / 4)
            if "-instruction-info=1" in options:
                info = [dict(Latency=cycles, NumMicroOpcodes=2, RThroughput=7) for _ in body]
                region["InstructionInfoView"] = dict(InstructionList=info)
            if "-resource-pressure=1" in options:
                rows = [dict(InstructionIndex=n, ResourceIndex=1, ResourceUsage=c)
                        for n, c in ((0, 9.0), (len(body), float(len(body))))]
                region["ResourcePressureView"] = dict(ResourcePressureInfo=rows)
            regions.append(region)
    elif line.startswith("neg"):
        print(f"<stdin>:{{number}}:1: error: invalid instruction mnemonic", file=sys.stderr)
    elif line.startswith("dec"):
        print("note: instruction:\\tdec", file=sys.stderr)
        if not (MODERN and "-skip-unsupported-instructions=any" in options):
            sys.exit(1)
    elif line.startswith("bswap") and count > 1:
        sys.exit(134)
    elif line.startswith("cpuid"):
        time.sleep(60)
    elif not line.startswith("."):
        body.append(line)
print(json.dumps(dict(CodeRegions=regions, TargetInfo=dict(Resources=["P0", "P1.\\0", "P1.\\1"]))))
"""


@pytest.fixture
def state():
    return MachineState((0,) * 16)


@pytest.fixture
def kernel(table, state):
    """Kernels of forms, all registers 3."""

    def make(*forms: str, flags: int = 0) -> Kernel:
        found = [table[form] for form in forms]
        return kernel_of([Instruction(f, (3,) * len(f.encoding.slots)) for f in found], state, flags=flags)

    return make


@pytest.fixture
def program(tmp_path):
    """Makes a program in place of llvm-mca, by default a modern one."""

    def make(name: str = "llvm-mca", modern: bool = True, version: str = "99.1") -> str:
        path = tmp_path / name
        path.write_text(FAKE % {"modern": modern, "log": str(tmp_path / "log"), "version": version})
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def calls(tmp_path):
    """The options of all analysing calls so far."""
    return lambda: [o for o in (tmp_path / "log").read_text().splitlines() if "-iterations" in o]


ADD, NOT, NEG = "ADD_01 (R64, R64)", "NOT (R64)", "NEG (R64)"
INC, DEC, BSWAP = "INC (R64)", "DEC (R64)", "BSWAP (R64)"


# --- the program --------------------------------------------------------------------------------


def test_no_llvm_mca_is_one_clear_line(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackendUnavailable) as caught:
        LlvmMcaBackend("znver4")
    assert str(caught.value) == (
        "llvm-mca is not installed: install LLVM (apt install llvm), or name another program"
    )
    assert caught.value.exit_code == 4


def test_the_newest_is_taken_unless_one_is_named(monkeypatch, tmp_path, program):
    assert (NAMES[0], NAMES[1], NAMES[-1]) == ("llvm-mca", "llvm-mca-22", "llvm-mca-14")
    monkeypatch.setenv("PATH", str(tmp_path))
    old = program("llvm-mca", version="9.0.1")
    program("llvm-mca-15", version="15.0.7git")
    program("llvm-mca-14", version="14.0.6")
    found = LlvmMcaBackend("znver4")
    assert found.program == str(tmp_path / "llvm-mca-15")
    assert found.capabilities().description == "llvm-mca 15.0.7, model of znver4"
    assert LlvmMcaBackend("znver4", old).program == old


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        (None, 0, "is missing"),
        ("x", 0o644, "is not executable"),
        ("#!/bin/sh\necho no >&2\nexit 3\n", 0o755, r"is no llvm-mca: it ended with exit status 3 \(no\)"),
        ("\0", 0o755, "cannot be started"),
    ],
)
def test_a_program_that_is_no_llvm_mca(tmp_path, text, mode, said):
    path = tmp_path / "tool"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    with pytest.raises(BackendUnavailable, match=said) as caught:
        LlvmMcaBackend("znver4", str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("cpu", "said"),
    [("frob", "LLVM 99.1 knows no CPU 'frob'"), ("i386", "LLVM 99.1 has no scheduling model of 'i386'")],
)
def test_an_unknown_cpu_is_one_clear_line(program, cpu, said):
    with pytest.raises(UsageError) as caught:
        LlvmMcaBackend(cpu, program())
    assert caught.value.message == said
    assert "-mcpu=help" in caught.value.remedy


def test_a_program_that_does_not_answer(tmp_path):
    path = tmp_path / "llvm-mca"
    path.write_text("#!/bin/sh\nexec sleep 60\n")
    path.chmod(0o755)
    with pytest.raises(BackendUnavailable, match=r"has not answered for 0\.2 s"):
        LlvmMcaBackend("znver4", str(path), patience=0.2)


def test_what_the_backend_says_of_itself(program):
    found = LlvmMcaBackend("znver4", program()).capabilities()
    assert (found.description, found.counters) == ("llvm-mca 99.1, model of znver4", ("P0", "P1.0", "P1.1"))
    assert not found.real_time
    assert LlvmMcaBackend("znver4", program()).calibrate().ticks_per_cycle == 1.0


# --- samples ------------------------------------------------------------------------------------


def collected(backend, kernels, rounds=2):
    backend.submit(kernels, Effort(rounds=rounds))
    return backend.collect()


def test_cycles_are_those_of_the_steady_state(program, kernel):
    backend = LlvmMcaBackend("znver4", program())
    one, two = collected(backend, [kernel(ADD, NOT, NOT), kernel(ADD)])
    assert [(s.cycles, s.status) for s in one] == [(5.0, OK)] * 2
    assert [(s.cycles, s.status) for s in two] == [(1.0, OK)] * 2
    assert (one[0].counters, two[0].counters) == ((0.0, 3.0, 0.0), (0.0, 1.0, 0.0))


def test_what_is_stated_for_an_instruction_alone(program, kernel):
    backend = LlvmMcaBackend("znver4", program())
    some = [i for k in (kernel(NOT), kernel(NEG), kernel(ADD)) for i in k.body]
    assert backend.stated(some) == [Stated(2.0, 0.5, 2, 1), None, Stated(1.0, 0.25, 2, 1)]


def test_what_an_instruction_alone_takes_of_each_port(program, kernel, calls):
    backend = LlvmMcaBackend("znver4", program())
    some = [i for k in (kernel(NOT), kernel(NEG)) for i in k.body]
    assert backend.pressures(some) == [(0.0, 1.0, 0.0), None]
    count = int(next(o for o in calls()[-1].split() if o.startswith("-iterations=")).partition("=")[2])
    assert all(count % ports == 0 for ports in (2, 3, 4, 5, 6, 8, 10, 12)), "each port is taken as often"
    assert count == 240, "no more than that takes"


def test_batches_are_answered_in_order(program, kernel):
    backend = LlvmMcaBackend("znver4", program())
    backend.submit([kernel(ADD)], Effort(rounds=1))
    backend.submit([kernel(NOT), kernel(ADD, ADD)], Effort(rounds=3))
    assert [[s.cycles for s in k] for k in backend.collect()] == [[1.0]]
    assert [[s.cycles for s in k] for k in backend.collect()] == [[2.0] * 3, [2.0] * 3]
    backend.close()


def test_hundreds_of_kernels_are_a_handful_of_calls(program, kernel, calls):
    kernels = [kernel(*[ADD, NOT] * (1 + n % 4)) for n in range(600)]
    samples = collected(LlvmMcaBackend("znver4", program()), kernels)
    assert [s[0].cycles for s in samples] == [3.0 * (1 + n % 4) for n in range(600)]
    assert len(calls()) < 25


def test_memory_aliases_in_chains_and_not_in_streams(program, kernel, calls):
    backend = LlvmMcaBackend("znver4", program())
    backend.probe([kernel(ADD)])
    before = len(calls())
    collected(backend, [kernel(ADD), kernel(ADD, flags=CANARY)])
    assert sorted("-noalias=true" in options for options in calls()[before:]) == [False, False, True, True]


# --- what it does not know ----------------------------------------------------------------------


@pytest.mark.parametrize("modern", [True, False])
def test_an_unknown_instruction_spoils_no_other(program, kernel, modern):
    backend = LlvmMcaBackend("znver4", program(modern=modern))
    kernels = [kernel(ADD), kernel(NOT), kernel(INC), kernel(NEG), kernel(DEC), kernel(ADD, NOT, DEC)]
    ok, last = Outcome(OK), Outcome(1, 4, 0, 2)
    assert backend.probe(kernels) == [ok, ok, ok, SIGILL, SIGILL, last]
    assert backend.probe(kernels)[3].describe() == "SIGILL"
    assert backend.refused == {
        "neg rbx": "invalid instruction mnemonic",
        "dec rbx": "znver4 has no scheduling information",
    }
    samples = [s[0] for s in collected(backend, kernels)]
    assert [s.usable for s in samples] == [True, True, True, False, False, False]
    assert [s.cycles for s in samples[:3]] == [1.0, 2.0, 1.0]


@pytest.mark.parametrize("modern", [True, False])
def test_where_nothing_is_known_nothing_is_claimed(program, kernel, modern):
    backend = LlvmMcaBackend("znver4", program(modern=modern))
    assert backend.probe([kernel(NEG), kernel(DEC)]) == [SIGILL, SIGILL]
    assert collected(backend, []) == []


def test_what_crashes_it_spoils_no_other(program, kernel):
    backend = LlvmMcaBackend("znver4", program())
    kernels = [kernel(ADD), kernel(BSWAP), kernel(NOT), kernel(ADD, BSWAP)]
    samples = [s[0] for s in collected(backend, kernels)]
    assert [s.status for s in samples] == [OK, DIED, OK, DIED]
    assert [samples[0].cycles, samples[2].cycles] == [1.0, 2.0]


def test_what_it_never_ends_on_spoils_no_other(program, kernel):
    backend = LlvmMcaBackend("znver4", program(), patience=2.0)
    assert [o.status for o in backend.probe([kernel(ADD), kernel("CPUID")])] == [OK, SIGILL.status]
    assert list(backend.refused) == ["cpuid"]
    assert "has not answered for 2" in backend.refused["cpuid"]


def test_machine_code_alone_is_not_run(program, state):
    bare = Kernel(b"\x90", 1, state)
    backend = LlvmMcaBackend("znver4", program())
    assert backend.probe([bare])[0].status == NOT_RUN
    assert collected(backend, [bare])[0][0].status == NOT_RUN


# --- text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form_id", "arguments", "text"),
    [
        ("IMUL (R64, R64)", {"registers": (0, 3)}, "imul rax, rbx"),
        ("VADDPD (YMM, YMM, YMM)", {"registers": (1, 2, 3)}, "{vex} vaddpd ymm1, ymm2, ymm3"),
        ("VADDPD_EVEX (YMM, YMM, YMM)", {"registers": (1, 2, 3)}, "{evex} vaddpd ymm1, ymm2, ymm3"),
        ("JZ (Rel8)", {"registers": ()}, "je next"),
        ("CALL_NEAR (Rel32)", {"registers": (), "immediates": (-300,)}, "call next"),
        ("VADDPS_ER (ZMM, ZMM, ZMM)", {"registers": (1, 2, 3)}, "{evex} vaddps zmm1, zmm2, zmm3, {rn-sae}"),
        (
            "VCVTSI2SS_EVEX_ER (XMM, XMM, R32)",
            {"registers": (1, 2, 3)},
            "{evex} vcvtsi2ss xmm1, xmm2, {rn-sae}, ebx",
        ),
        (
            "VCVTSI2SS_EVEX_ER (XMM, XMM, R64)",
            {"registers": (1, 2, 9)},
            "{evex} vcvtsi2ss xmm1, xmm2, {rn-sae}, r9",
        ),
    ],
)
def test_text_for_llvm(table, form_id, arguments, text):
    assert line(Instruction(table[form_id], **arguments)) == text


# --- the real one -------------------------------------------------------------------------------

real = pytest.mark.skipif(not any(map(shutil.which, NAMES)), reason="needs llvm-mca")


@pytest.fixture(scope="module")
def installed():
    return LlvmMcaBackend("znver3")


@real
def test_the_real_one_knows_most_instructions(table, installed):
    planner = Planner(table, lambda form: True)
    forms = [f for f in table if f.encoding is not None and "evex" not in f.attributes][::40]
    kernels = [planner.probe_kernel(form) for form in forms]
    outcomes = installed.probe(kernels)
    known = sum(o.status == OK for o in outcomes)
    assert len(forms) > 100
    assert known > 0.9 * len(forms)
    assert [lines(k) for k, o in zip(kernels, outcomes, strict=True) if o.status not in (OK, 1)] == []


@real
def test_the_real_one_knows_latencies_and_throughputs(kernel, table, state, installed):
    add, imul = table[ADD], table["IMUL (R64, R64)"]
    chain = kernel_of([Instruction(imul, (0, 0))], state)
    apart = kernel_of([Instruction(add, (n, 8)) for n in range(4)], state, flags=CANARY)
    serial, parallel = (s[0].cycles for s in collected(installed, [chain, apart]))
    assert serial == 3.0
    assert abs(parallel - 1.0) < 0.005


@real
def test_the_real_one_refuses_a_cpu_it_does_not_know():
    with pytest.raises(UsageError, match="knows no CPU 'znver99'"):
        LlvmMcaBackend("znver99")


@pytest.mark.parametrize(
    ("isa", "form_id", "registers"),
    [("aarch64", "FMADDDrrr", (0, 1, 2, 0)), ("riscv64", "MUL", (10, 10, 11))],
)
def test_regions_are_marked_as_llvm_mca_reads_their_names(isa, form_id, registers, program, state):
    """Behind `//`, AArch64's comments, it reads markers, but no names."""
    kernel = kernel_of([Instruction(load_table(isa)[form_id], registers)], state)
    assert LlvmMcaBackend("made", program(), isa=isa).probe([kernel])[0].status == OK


@real
@pytest.mark.parametrize(
    ("isa", "cpu", "form_id", "registers", "cycles"),
    [
        ("aarch64", "neoverse-v2", "FMADDDrrr", (0, 1, 2, 0), 2.0),
        ("aarch64", "neoverse-v2", "FMADDDrrr", (0, 0, 1, 2), 4.0),
        ("riscv64", "spacemit-x60", "MUL", (10, 10, 11), 6.0),
    ],
)
def test_the_real_one_knows_other_instruction_sets(isa, cpu, form_id, registers, cycles, state):
    table = load_table(isa)
    backend = backend_for(cpu, isa)
    chain = kernel_of([Instruction(table[form_id], registers)], state)
    assert backend.capabilities().isa == isa
    assert backend.probe([chain])[0].status == OK
    assert [s[0].cycles for s in collected(backend, [chain])] == [cycles]
