"""Which rows of a reference have kernels, on a table made up here."""

from __future__ import annotations

import pytest

from benchmarks.tables.kernel_coverage import Coverage, covered, end, forms_of, valued
from cyclescope.isa.table import load_table

THROUGHPUT = """llvm_name,value_min,value_max,status,flags,helper,anomaly
ADDXrs,0.25,0.25,OK,,,
SVC,1,1,OK,,,
BFMMLA_ZZZ,1,1,OK,,,
NOTHING,1,1,OK,,,
LDRXui,,,SKIP,,,
"""
LATENCY = """llvm_name,pair,value_min,value_max,status,flags,combined,helpers
ABS_ZPmZ_B,1:ZPR->0:ZPR,2,2,OK,,,
ABS_ZPmZ_B,3:ZPR->0:ZPR,2,2,OK,,,
ADDXrs,7:GPR64->0:GPR64,2,2,OK,,,
"""


@pytest.fixture
def reference(tmp_path):
    files = tmp_path / "tp.csv", tmp_path / "lat.csv"
    for file, text in zip(files, (THROUGHPUT, LATENCY), strict=True):
        file.write_text(text)
    return files


def test_rows_without_a_value_are_not_looked_at(reference):
    assert [row["llvm_name"] for row in valued(reference[0])] == ["ADDXrs", "SVC", "BFMMLA_ZZZ", "NOTHING"]


def test_a_row_has_a_kernel_or_a_reason(reference):
    coverage = Coverage("aarch64")
    assert coverage.throughputs(valued(reference[0])) == (2, 3)  # SVC is no business of user space
    assert coverage.latencies(valued(reference[1])) == (2, 3)
    assert coverage.examples["not in the table"] == "NOTHING throughput"
    assert any(reason.startswith("left out") for reason in coverage.reasons)


def test_operands_are_counted_from_zero_and_tied_ones_are_the_result():
    form = load_table("aarch64")["ABS_ZPmZ_B"]
    assert [end(form, f"{n}:ZPR", written=False) for n in range(4)] == ["op1", "op1", "op3", "op4"]
    assert end(form, "NZCV", written=True) == "NZCV"


def test_a_vector_instruction_is_all_its_configurations():
    found = {form.id for form in forms_of(load_table("riscv64"), "VADD_VV")}
    assert found >= {"VADD_VV@e32,m1", "VADD_VV@e32,m8"}


def test_a_missing_kernel_fails(reference, capsys):
    checks = covered("aarch64", *reference)
    assert [check.passed for check in checks[:2]] == [False, False]
    assert all(check.passed for check in checks[2:])
    assert "NOTHING" in capsys.readouterr().out
