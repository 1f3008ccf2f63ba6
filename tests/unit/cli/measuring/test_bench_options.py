"""`bench` of several pieces, and with nanoBench's words, on a simulated machine."""

from __future__ import annotations

import csv
import io
import json

import pytest

from cyclescope.backend.base import OK, BurstSample
from cyclescope.infer.beside.bursts import TimedBurst
from cyclescope.measure.record import STABLE, UNSTABLE
from cyclescope.measure.sampling import DISAGREE, Measurement

PAUSE, RESUME = ".quad 0xF0B513B1C2813F04", ".quad 0xE0B513B1C2813F04"
ROUNDS = (5.0, 1.0, 2.0, 3.0, 2.0, 2.0, 4.0, 2.0, 2.0, 9.0)


@pytest.fixture
def timed(cyclescope, machine, monkeypatch):
    """`bench` of kernels that take as many cycles as they have bytes of code."""
    asked = []

    def reading(kernel, verdict=STABLE):
        cycles = float(len(kernel.code))
        values = tuple(cycles * value / 2 for value in ROUNDS)
        return Measurement(
            cycles, cycles / 100, verdict, 10, 0, values, error="" if verdict == STABLE else DISAGREE
        )

    def one(backend, kernel, rounds, places):
        asked.append((kernel, rounds))
        return reading(kernel)

    def several(backend, kernels, rounds, places):
        asked.extend((kernel, rounds) for kernel in kernels)
        return [reading(kernel, UNSTABLE if len(kernel.code) == 7 else STABLE) for kernel in kernels]

    monkeypatch.setattr("cyclescope.cli.commands.bench.time_kernel", one)
    monkeypatch.setattr("cyclescope.cli.commands.bench.time_kernels", several)
    run = lambda *args: cyclescope("bench", *args)  # noqa: E731
    run.asked = asked
    return run


@pytest.mark.parametrize(
    "words",
    [("-asm", "add rax, rbx", "-asm_init", "nop", "-unroll_count", "2", "-n_measurements", "3"),
     ("--asm", "add rax, rbx", "--asm_init=nop", "-unroll", "2", "-n", "3"),
     ("-asm=add rax, rbx", "-asm-init", "nop", "--unroll_count=2", "-n", "3"),
     ("--asm", "add rax, rbx", "--init", "nop", "--unroll", "2", "--n", "3")],
)  # fmt: skip
def test_both_spellings(timed, words):
    assert timed(*words).code == 0
    ((kernel, rounds),) = timed.asked
    assert (kernel.code.hex(), kernel.setup.hex(), rounds) == ("4801d8" * 2, "90", 3)


def test_what_comes_before_is_in_order(timed):
    timed("-asm", "nop", "-asm_late_init", "inc ecx", "-asm_init", "inc ebx", "-asm_one_time_init", "inc eax")
    assert timed.asked[0][0].setup.hex() == "ffc0ffc3ffc1"


@pytest.fixture
def in_copies(cyclescope, machine, monkeypatch):
    """`bench` of copies that run once: three cycles each, what was asked is kept."""
    asked = []

    def times(backend, bursts, rounds, places):
        asked.extend(bursts)
        sample = BurstSample((10.0, 11.0), (310.0, 312.0), (), OK, accepted=2, calls=7)
        measured = Measurement(3.0, 0.01, STABLE, 2, 0, (3.0,))
        return [TimedBurst(measured, 98.0 * bool(one.pairs), (sample,), one) for one in bursts]

    monkeypatch.setattr("cyclescope.infer.beside.bursts.time_bursts", times)
    run = lambda *args: cyclescope("bench", *args)  # noqa: E731
    run.asked = asked
    return run


@pytest.mark.parametrize(
    ("words", "meant"),
    [(("-loop_count", "0"), {"loop": 0, "warm_up": 5, "basic": False}),
     (("-l", "5"), {"loop": 5}), (("--loop", "5", "--unroll", "10"), {"loop": 5, "unroll": 10}),
     (("-warm_up_count", "3"), {"warm_up": 3}), (("-initial_warm_up_count", "4"), {"initial_warm_up": 4}),
     (("-basic_mode",), {"basic": True}), (("-no_mem",), {"basic": False, "loop": 0}),
     (("-alignment_offset", "27"), {"offset": 27}), (("-basic", "-n", "70"), {"measurements": 70})],
)  # fmt: skip
def test_nanobench_s_way_is_taken_where_it_is_asked_for(in_copies, words, meant):
    done = in_copies("-asm", "nop", *words)
    assert done.code == 0
    assert "3.0000 core cycles" in done.out
    assert "runs of both per measurement" in done.out
    assert {name: getattr(in_copies.asked[0].effort, name) for name in meant} == meant


def test_marks_take_nanobench_s_way(in_copies):
    text = f"{PAUSE}; nop; {RESUME}"
    assert "a pair of marks per copy, 98.00 cycles each, taken out" in in_copies("--asm", text).out
    data = json.loads(in_copies("--asm", text, "--json").out)
    assert data["copies"] == {
        "unroll": 100,
        "loop": 0,
        "basic": False,
        "drain": False,
        "pairs_of_marks": 1,
        "mark": 98.0,
        "beside": None,
    }
    assert in_copies("--hex", "90043f81c2b113b5f090043f81c2b113b5e0").code == 0


def test_parts_before_copies_stay_apart(in_copies):
    in_copies("--asm", "nop", "--loop", "0", "--init", "inc ebx", "--late-init", "inc ecx",
              "--one-time-init", "inc eax")  # fmt: skip
    (burst,) = in_copies.asked
    assert (burst.kernel.setup.hex(), burst.kernel.code.hex()) == ("ffc3", "ffc0ffc190")
    assert (burst.effort.one_time, burst.effort.late) == (2, 2)


def test_sums_of_measurements(in_copies):
    done = in_copies("--asm", "nop", "--basic", "--unroll", "100", "--max", "--verbose")
    assert "max of 2 measurements: 3.0100 core cycles" in done.out
    assert "longer: 310.0 312.0" in done.out


def test_the_counter_is_free_without_a_loop(in_copies, cyclescope):
    assert in_copies("--asm", "mov r15, 1", "--loop", "0").code == 0
    assert "r15 is needed" in in_copies("--asm", "mov r15, 1", "--loop", "2").error


@pytest.mark.parametrize("word", ["-msr_config", "-debug"])
def test_what_is_not_here_says_why(timed, word):
    done = timed("-asm", "nop", word)
    assert done.code == 2
    assert "of nanoBench cannot be had here: leave it out: " in done.error


@pytest.fixture
def machine_code(tmp_path):
    """Files of machine code, by what is in them."""

    def made(code):
        path = tmp_path / f"{code}.bin"
        path.write_bytes(bytes.fromhex(code))
        return str(path)

    return made


@pytest.mark.parametrize("dash", ["-code", "--code"])
def test_files_of_machine_code(timed, in_copies, machine_code, dash):
    named = {"": "4801d8", "_init": "ffc3", "_late_init": "ffc1", "_one_time_init": "ffc0"}
    words = [word for name, code in named.items() for word in (f"{dash}{name}", machine_code(code))]
    assert timed(*words).code == 0
    assert (timed.asked[0][0].code.hex(), timed.asked[0][0].setup.hex()) == ("4801d8", "ffc0ffc3ffc1")
    assert in_copies(*words, "-loop_count", "0").code == 0
    (burst,) = in_copies.asked
    assert (burst.kernel.setup.hex(), burst.kernel.code.hex()) == ("ffc3", "ffc0ffc14801d8")
    assert (burst.effort.one_time, burst.effort.late) == (2, 2)


def test_text_and_machine_code_before_it(timed, machine_code):
    assert timed("-asm", "nop", "-code_init", machine_code("ffc3"), "-asm_late_init", "inc ecx").code == 0
    assert timed.asked[0][0].setup.hex() == "ffc3ffc1"


def test_files_of_machine_code_that_say_why_not(timed, machine_code):
    nop, r15 = machine_code("90"), machine_code("49ffc7")
    for words, said, code in [
        (("-code", nop, "-asm", "nop"), "more than one thing to time", 2),
        (("-asm", "nop", "-asm_init", "nop", "-code_init", nop), "--init and --code-init are the same", 2),
        (("-code", machine_code("")), ".bin is empty", 1),
        (("-code", nop + "s"), "cannot be read (No such file", 2),
        (("-code", machine_code("90" * 50), "-no_normalization", "--threads", "2"), "per copy", 2),
        (("-code", r15), "inc r15 at byte 0: r15 counts", 2),
        (("-asm", "nop", "-code_init", r15), "inc r15 at byte 0: r15 counts", 2),
    ]:
        done = timed(*words)
        assert done.code == code
        assert said in done.error


def test_files_of_machine_code_are_as_long_as_code_may_be(timed, tmp_path):
    path = tmp_path / "code"
    for many, code in ((0xFFFF, 0), (0x10000, 1)):
        path.write_bytes(b"\x90" * many)
        assert timed("-code", str(path)).code == code
    assert "code has more than 65535 bytes" in timed("-code", "/dev/zero").error.replace("/dev/zero", "code")


def test_numbers_of_all_copies(timed, in_copies):
    """Code of one byte takes a cycle; a fake of copies three."""
    words = ("-asm", "nop", "-unroll_count", "4")
    assert "4.0000 core cycles +-0.0400 (ok, all 4 copies)" in timed(*words, "-no_normalization").out
    assert json.loads(timed(*words, "-no_normalization", "--json").out)["cycles_of"] == 4
    done = in_copies(*words, "-loop_count", "10", "-no_normalization", "-max")
    assert "120.0000 core cycles +-0.4000 (ok, all 40 copies)" in done.out
    assert "max of 2 measurements: 301.0000 core cycles" in done.out
    pieces = (*words, "-asm", "inc eax", "-no_normalization")
    assert "core cycles of all copies, on" in timed(*pieces).out
    rows = csv.DictReader(io.StringIO(timed(*pieces, "--csv").out))
    assert [float(row["cycles"]) for row in rows] == [4, 8]


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--csv", "--avg"), "--csv does not tell --avg"), (("--markdown", "--verbose"), "not tell --verbose"),
     (("--asm", "nop", "--min", "--max"), "a comparison does not tell --min, --max"),
     (("--threads", "2", "--csv", "--avg"), "as text or --json: not --avg, --csv"),
     (("--pin", "0,1", "-no_normalization"), "not --no-normalization")],
)  # fmt: skip
def test_what_is_not_told_is_not_taken(timed, words, said):
    done = timed("--asm", "nop", *words)
    assert done.code == 2
    assert said in done.error
    assert not timed.asked


def test_a_drained_front_end_is_told(in_copies):
    done = in_copies("-asm", "nop", "-df", "-unroll_count", "4")
    assert "8 copies less 4, behind a drained front end, 7 runs" in done.out
    assert in_copies.asked[0].effort.drain
    in_copies("-asm", "nop", "-loop_count", "0")
    assert not in_copies.asked[1].effort.drain


@pytest.mark.parametrize("words", [("-f", "-range"), ("-fixed_counters",), ("-usr", "1", "--os=0")])
def test_what_is_done_anyway_is_taken(timed, words):
    assert timed(*words, "-asm", "nop").code == 0
    assert timed("-asm", "nop", *words).code == 0


@pytest.mark.parametrize("words", [("-usr", "0"), ("--os=1",), ("-usr",)])
def test_only_user_space_is_counted(timed, words):
    assert "of nanoBench can only be " in timed("-asm", "nop", *words).error


def test_unclear_beginnings_are_no_option(timed):
    assert timed("-a", "nop").code == 2
    assert timed("--nonsense").code == 2


@pytest.mark.parametrize(("kind", "cycles"), [("min", 0.5), ("max", 4.5), ("median", 1.0), ("avg", 1.25)])
def test_ways_to_sum_up(timed, kind, cycles):
    assert f"{kind} of 10 rounds: {cycles:.4f} core cycles" in timed("--hex", "90", f"-{kind}").out
    data = json.loads(timed("--hex", "90", f"--{kind}", "--json").out)
    assert data["aggregate"] == {"kind": kind, "cycles": cycles}


def test_several_ways_to_sum_up(timed):
    lines = timed("--hex", "90", "--max", "--min").out.splitlines()
    assert [line.split()[0] for line in lines if " of 10 rounds: " in line] == ["min", "max"]
    data = json.loads(timed("--hex", "90", "--max", "--min", "--json").out)
    assert data["aggregate"] == [{"kind": "min", "cycles": 0.5}, {"kind": "max", "cycles": 4.5}]


def test_pieces_beside_each_other(timed):
    done = timed("--asm", "nop", "--asm", "add rax, rbx")
    assert done.code == 0
    rows = [line.split() for line in done.out.splitlines()[2:]]
    assert [row[-5:] for row in rows] == [
        ["1.0000", "0.0100", "1.000", "0.014", "ok"], ["3.0000", "0.0300", "3.000", "0.042", "ok"],
    ]  # fmt: skip


def test_formats_for_programs(timed):
    pieces = ("--asm", "nop", "--asm", "add rax, rbx")
    rows = list(csv.DictReader(io.StringIO(timed(*pieces, "--csv").out)))
    assert [(row["code"], row["cycles"], row["ratio"]) for row in rows] == [
        ("nop", "1.0000", "1.000"), ("add rax, rbx", "3.0000", "3.000"),
    ]  # fmt: skip
    data = json.loads(timed(*pieces, "--json").out)
    assert [(one["cycles"], one["ratio"]) for one in data["results"]] == [(1.0, 1.0), (3.0, 3.0)]
    table = timed(*pieces, "--markdown").out.splitlines()
    assert table[1].startswith("| --- | --: |")
    assert all(line.count("|") == table[0].count("|") for line in table)


def test_a_sweep_has_bars(timed):
    lines = timed("--asm", "{N}*|nop|", "--sweep", "N=1,2,4").out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["N=1", "N=2", "N=4"]
    assert [line.count("█") for line in lines] == [10, 20, 40]


def test_one_that_is_not_ok_fails_all(timed):
    done = timed("--asm", "nop", "--asm", "7*|nop|")
    assert done.code == 1
    assert "the reading of 7*|nop| is unstable" in done.error


def test_counters_say_why_there_are_none(timed, tmp_path, monkeypatch):
    monkeypatch.setattr("cyclescope.infer.api.counting", lambda *_: "no counters: a reason")
    path = tmp_path / "events.txt"
    path.write_text("0E.01 UOPS\n")
    assert "UOPS: n/a (no counters: a reason)" in timed("--hex", "90", "-config", path).out
    data = json.loads(timed("--hex", "90", "--config", path, "--json").out)
    assert (data["events"], data["not_counted"]) == ({"UOPS": None}, "no counters: a reason")
    assert "cannot be read" in timed("--hex", "90", "--config", tmp_path / "none").error


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--asm", "nop", "--threads", "2", "--pin", "0"), "2 threads on CPUs 0"),
     (("--asm", "nop", "--pin", "99999,99998"), "this program may use"),
     (("--asm", "nop", "--pin", "0"), "threads on CPUs 0: this program may use"),
     (("--asm", "nop", "--store", "some.sqlite"), "--store has the kernel of --rerun"),
     (("--hex", "90", "--sweep", "N=1..2"), "--sweep needs"),
     (("--hex", "90", "--function", "f"), "--function is of a file"),
     (("--hex", "9041bf01000000"), "mov r15d, 1 at byte 1: r15d counts"),
     (("--asm", PAUSE), "mark 1 of the code pauses, and none resumes"),
     (("--asm", f"{RESUME}; {PAUSE}"), "mark 1 of the code resumes what no mark paused"),
     (("--asm", "nop", "--init", f"{PAUSE}; {RESUME}", "--loop", "0"), "in code that is not counted"),
     (("--asm", "nop", "--pin", "0,1", "--loop", "0"), "go round a loop of their own"),
     (("--asm", "nop", "--loop", "0", "--n", "3000"), "more than 2048 measurements"),
     (("--asm", "1000*|nop;|", "--loop", "0", "--unroll", "10000"), "unroll less"),
     (("--asm", "|16"), "1 to 15"),
     (("none.s",), "none.s")],
)  # fmt: skip
def test_mistakes(timed, words, said):
    done = timed(*words)
    assert done.code in (1, 2)
    assert said in done.error


def test_from_is_another_word_for_rerun(cyclescope, machine, store):
    one, other = (cyclescope("bench", word, "1", "--store", store) for word in ("--from", "--rerun"))
    assert (one.code, one.out.splitlines()[0]) == (0, other.out.splitlines()[0])
