"""Counting what a run covers."""

from __future__ import annotations

import pytest
from making import latency, missing, throughput, timing

from benchmarks.measuring import coverage
from cyclescope.infer.timing.results import INTERVAL, UPPER_BOUND, Latency

ADD, JUMP, SYSTEM = "ADD_01 (R64, R64)", "JZ (Rel8)", "SYSCALL"


def complete(table, name, value=1.0):
    """A timing with a value for every pair."""
    from cyclescope.isa.dataflow import pairs

    found = [latency(p.source.name, p.target.name, value) for p in pairs(table[name])]
    return timing(name, 0.25, *found)


def checks(found):
    return {check.name: check for check in found}


@pytest.mark.parametrize(
    ("found", "open_"),
    [
        (latency("a", "b", 3.0), False),
        (latency("a", "b", 3.0, UPPER_BOUND), True),
        (Latency("a", "b", 3.0, 3.4, INTERVAL, 0.0), False),
        (Latency("a", "b", 3.0, 3.6, INTERVAL, 0.0), True),
        (latency("a", "b", 18.0, values={"fast": 10.0, "slow": 18.0}), False),
        (missing("a", "b", "why"), False),
    ],
)
def test_more_than_half_a_cycle_is_open(found, open_):
    assert coverage.wide(found) is open_


def test_a_complete_form_has_no_undeclared_pair(table):
    assert coverage.undeclared(table[ADD], complete(table, ADD)) == []


def test_a_pair_nobody_mentions_is_found(table, capsys):
    shortened = timing(ADD, 0.25, *complete(table, ADD).latencies[1:])
    (name,) = coverage.undeclared(table[ADD], shortened)
    assert name.startswith(ADD)
    found = checks(coverage.pair_checks([(table[ADD], shortened)]))
    assert found["pairs missing without a reason"].passed is False


def test_pairs_with_a_reason_are_not_silent_but_count(table, capsys):
    first, *rest = complete(table, ADD).latencies
    some = timing(ADD, 0.25, missing(first.source, first.target, "no link"), *rest)
    found = checks(coverage.pair_checks([(table[ADD], some)]))
    assert found["pairs missing without a reason"].passed is True
    assert found["declared pairs with a value"].passed is False  # 11 of 12
    assert "no link" in capsys.readouterr().out


def test_a_reason_may_not_be_empty(table, capsys):
    first, *rest = complete(table, ADD).latencies
    some = timing(ADD, 0.25, missing(first.source, first.target), *rest)
    assert (
        checks(coverage.pair_checks([(table[ADD], some)]))["pairs missing without a reason"].passed is False
    )


def test_a_complete_form_passes(table, capsys):
    found = coverage.pair_checks([(table[ADD], complete(table, ADD))])
    assert all(check.passed is not False for check in found)


def test_jumps_need_both_directions(table):
    one = timing(JUMP, throughput(0.5, taken_x8=1.0))
    both = timing(JUMP, throughput(0.5, taken_x8=1.0, not_taken_x8=0.5))
    name = "conditional jumps"
    assert checks(coverage.special_checks([(table[JUMP], one)]))[name].passed is False
    assert checks(coverage.special_checks([(table[JUMP], both)]))[name].passed is True


def test_a_kind_nobody_executes_is_no_failure(table):
    found = checks(coverage.special_checks([(table[ADD], complete(table, ADD))]))
    assert found["x87"].passed is None


@pytest.fixture
def three(table, monkeypatch):
    """A table of three forms."""
    names = (ADD, JUMP, SYSTEM)
    monkeypatch.setattr(coverage, "forms", lambda: [table[name] for name in names])
    return names


def test_a_fault_counts_as_executed_but_not_measured(three, capsys):
    found = checks(
        coverage.form_checks(
            [
                timing(ADD, 0.25),
                timing(JUMP, None, status="SIGSEGV at 0x0"),
                timing(SYSTEM, None, status="SIGSYS"),
            ]
        )
    )
    assert found["forms with a throughput"].found == "50.00 % (1 of 2)"
    assert found["forms with a throughput"].passed is False
    assert found["forms without a throughput or a reason"].passed is True


def test_system_instructions_are_left_out_with_their_reason(three, capsys):
    found = checks(coverage.form_checks([timing(ADD, 0.25), timing(JUMP, 0.5), timing(SYSTEM, None)]))
    assert found["forms with a throughput"].found == "100.00 % (2 of 2)"
    assert "a system instruction" in capsys.readouterr().out


def test_forms_that_never_ran_are_missed(three, capsys):
    found = checks(
        coverage.form_checks(
            [timing(ADD, 0.25), timing(JUMP, 0.5), timing(SYSTEM, None, status="not run")],
        )
    )
    assert found["forms of the table tried"].passed is False
