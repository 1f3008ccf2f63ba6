"""The commands on this machine, from measuring to running a kernel again."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from cyclescope.measure.sampling import AGREE
from cyclescope.measure.store import Store
from tests.support.programs.processes import NOISY, patiently, until

pytestmark = pytest.mark.hardware

SOME = "isa:BMI2"  # forms that take a few seconds


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store.sqlite"


def test_from_measuring_to_the_kernel_that_proves_it(cyclescope, store):
    def prove():
        code, out, err = cyclescope.run(
            "measure", "imul rax, rbx", "add rax, rbx", "--fresh", "--store", store
        )
        assert code == 0, err
        assert "executed by this CPU" in out
        assert "Traceback" not in err

        code, out, _ = cyclescope.run("show", "imul rax, rbx", "add rax, rbx", "--json", "--store", store)
        imul, add = _one_of_each(json.loads(out)["forms"])
        assert (imul["status"], add["status"]) == ("ok", "ok")
        chains = {(x["source"], x["target"]): x["max"] for x in imul["latencies"]}
        assert chains["op1", "op1"] == pytest.approx(chains["op2", "op1"], rel=0.1)
        assert chains["op1", "op1"] >= 2 * _chain(add)

        code, out, _ = cyclescope.run("show", "IMUL (R64, R64)", "--evidence", "--store", store)
        number, cycles = re.search(r"\[(\d+)\] latency op1 -> op1, \S+ ([\d.]+) cycles", out).groups()
        again = re.search(rf"again: cyclescope (bench --rerun {number} --store .*)", out)[1]
        code, out, err = cyclescope.run(*shlex.split(again))
        assert code == 0 or NOISY in err, err
        assert float(re.search(r"([\d.]+) core cycles", out)[1]) == pytest.approx(float(cycles), rel=0.05)

    patiently(prove)


def _one_of_each(forms):
    by_mnemonic = {form["id"].partition(" ")[0].partition("_")[0]: form for form in forms}
    return by_mnemonic["IMUL"], by_mnemonic["ADD"]


def _chain(form):
    return next(x["max"] for x in form["latencies"] if (x["source"], x["target"]) == ("op1", "op1"))


def test_forms_that_no_cpu_executes(cyclescope, store):
    code, out, err = cyclescope.run("measure", "UD2", "--store", store, "--json")
    assert code == 3
    assert json.loads(out)["forms"][0]["status"] == "SIGILL: it is there to be refused"
    assert err.splitlines()[-1].startswith("error: this CPU executes none of 1 form: SIGILL")


@pytest.mark.parametrize(
    ("snippet", "code", "said"),
    [
        ("ud2", 3, "SIGILL"),
        ("mov rax, [0x10]", 1, "SIGSEGV at 0x10 in instruction 1, `mov rax, .*`: RSP is a stack"),
        ("hlt", 1, "SIGSEGV at 0x0 in instruction 1, `hlt`: .* may not run in user space"),
        ("xor ecx, ecx; div ecx", 1, "SIGFPE"),
        ("int3", 1, "SIGTRAP"),
        ("mov eax, 60; syscall", 1, "SIGSYS"),
        ("1: jmp 1b", 1, "hang"),
    ],
)
def test_a_snippet_that_does_not_run(cyclescope, snippet, code, said):
    got, out, err = cyclescope.run("bench", "--asm", snippet)
    assert (got, out) == (code, "")
    assert re.fullmatch(rf"error: .*{said}.*\n", err)


def test_host(cyclescope):
    code, out, _ = cyclescope.run("host", "--json")
    host = json.loads(out)
    assert code == 0
    assert host["cpu"]["vendor"]
    assert {"BASE", "SSE2"} <= set(host["features"])
    assert 1e8 < host["clock"]["core_frequency"] < 1e10
    assert host["pinned_to"] in os.sched_getaffinity(0)
    assert host["counters"]["available"] or host["counters"]["why_not"]


def test_one_cpu(cyclescope, store):
    cpu = min(os.sched_getaffinity(0))
    only = {"preexec_fn": lambda: os.sched_setaffinity(0, {cpu})}

    def check():
        code, out, err = cyclescope.run("measure", "add rax, rbx", "--fresh", "--store", store, **only)
        assert code == 0, err
        assert " 0 without a value" in out

    patiently(check)
    with closing(Store(store, readonly=True)) as opened:
        assert opened.sessions()[0]["cpu"] == cpu


# --- runs that are killed -----------------------------------------------------------------------


def rows(store):
    """Number, cycles and verdict of every measurement, by its experiment: none without a table."""
    with closing(sqlite3.connect(store)) as db:  # a killed writer leaves what the next one has to undo
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'measurement'").fetchone():
            return {}
        found = db.execute(
            "SELECT id, cycles, verdict, form, quantity, source, target, variant FROM measurement"
        )
        return {row[3:]: row[:3] for row in found}


def kept(before, now):
    """Whether nothing was lost; what is disturbed is measured again when a run has come to its end."""
    return all(now.get(key) == row for key, row in before.items() if row[2] == "ok")


def latencies(cyclescope, store):
    """Every latency but for those through memory, by its pair.

    A core that sometimes renames memory has two latencies through it, and a run sees one of them.
    """
    forms = json.loads(cyclescope.run("show", SOME, "--json", "--store", store)[1])["forms"]
    return {
        (form["id"], pair["source"], pair["target"]): pair
        for form in forms
        for pair in form["latencies"]
        if not pair["source"].endswith(".data") and not pair["target"].endswith(".data")
    }


def trusted(pair):
    return (pair["kind"], pair["confidence"]) == ("exact", "high")


def same(one, other):
    """Whether two latencies are equal within their spreads and what rounds of one run may differ by."""
    a, b = one["max"], other["max"]
    return abs(a - b) <= one["spread"] + other["spread"] + max(AGREE * max(a, b), 0.02)


def test_kill_at_any_moment_and_go_on(cyclescope, store, tmp_path):
    """Nothing that was written is lost or measured again, and the results are those of one run."""
    draw = random.Random(os.getpid())
    finished = {}
    for delay in (draw.uniform(0.2, 0.6), draw.uniform(0.4, 1.2), draw.uniform(0.4, 1.6)):
        process = cyclescope.start("measure", SOME, "--store", store)
        time.sleep(delay)
        process.kill()
        process.communicate()
        assert until(lambda: not cyclescope.running()), "the runner outlived its master"
        if store.exists():
            now = rows(store)
            assert kept(finished, now)
            finished = now
    code, _, err = cyclescope.run("measure", SOME, "--store", store)
    assert code == 0, err
    assert kept(finished, rows(store))
    assert not Path(f"{store}-lock").exists()

    def agree():
        other = tmp_path / "undisturbed.sqlite"
        assert cyclescope.run("measure", SOME, "--fresh", "--store", other)[0] == 0
        mine, theirs = latencies(cyclescope, store), latencies(cyclescope, other)
        assert mine.keys() == theirs.keys()
        both = [key for key in mine if trusted(mine[key]) and trusted(theirs[key])]
        assert len(both) > 20, "neighbours leave fewer, never none"
        far = [key for key in both if not same(mine[key], theirs[key])]
        assert len(far) <= 0.03 * len(both), far

    patiently(agree, tries=3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_measuring(cyclescope, store, number):
    process = cyclescope.start("measure", "isa:AVX2", "--store", store)
    assert until(lambda: store.exists() and store.stat().st_size and _measurements(store))
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert err.splitlines()[-1].startswith("error: interrupted: what was measured is kept in ")
    assert not cyclescope.running()
    assert _measurements(store)


def _measurements(store):
    try:
        return len(rows(store))
    except sqlite3.OperationalError:  # being made
        return 0


def test_a_second_run_on_a_store_waits_for_nobody(cyclescope, store):
    """It is refused; reading is not; the first run does not notice."""
    first = cyclescope.start("measure", SOME, "--store", store)
    assert until(lambda: store.exists() and _measurements(store))
    first.send_signal(signal.SIGSTOP)  # so that it cannot be over too soon
    code, out, err = cyclescope.run("measure", "imul", "--store", store)
    reading = cyclescope.run("store", "info", "--store", store)
    first.send_signal(signal.SIGCONT)
    assert (code, out) == (1, "")
    assert re.fullmatch(r"error: the store .* is in use: .*\n", err)
    assert reading[0] == 0
    _, err = first.communicate(timeout=120)
    assert first.returncode == 0, err
    with closing(sqlite3.connect(store)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
