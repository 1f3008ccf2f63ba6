"""Reading other projects' tables."""

from __future__ import annotations

import pytest

from benchmarks.lib.reference import load, microarchitecture, summary
from cyclescope.errors import UsageError


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("4", (4.0, 4.0, False, False)),
        ("[1;≤6]", (1.0, 6.0, False, True)),
        ("≤9", (9.0, 9.0, True, True)),
        ("[≤8;≤10]", (8.0, 10.0, True, True)),
        ("[≤7;12]", (7.0, 12.0, True, False)),
    ],
)
def test_a_summary_has_two_ends(text, ends):
    (found,) = summary(text)
    assert (found.low, found.high, found.low_bound, found.high_bound) == ends
    assert found.pair == ""


def test_an_empty_summary_has_none():
    assert summary("") == ()


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("uops_info_zen3_half.csv", "znver3"),
        ("winic_zen4", "znver4"),
        ("winic_neoverse_v2", "neoverse-v2"),
        ("mine.csv", ""),
    ],
)
def test_a_file_names_its_microarchitecture(name, found):
    assert microarchitecture(name) == found


def test_uops_info_gives_the_measured_throughput(tmp_path):
    path = tmp_path / "zen3.csv"
    path.write_text(
        "instruction,family,latency,throughput,uops,ports\n"
        '"ADD (R64, R64)",X,1,0.25,1,\n'
        '"FOO (XMM, M128)",X,[1;≤9],0.50 / 1.00,1,\n'
        '"BAR",X,,,1,\n'
    )
    table = load(path, "uops.info")
    assert {name: row.throughput for name, row in table.rows.items()} == {
        "ADD (R64, R64)": 0.25, "FOO (XMM, M128)": 1.0, "BAR": None,
    }  # fmt: skip
    assert table.rows["BAR"].latencies == ()
    assert (table.naming, table.microarchitecture) == ("uops_info", "znver3")


@pytest.fixture
def winic(tmp_path):
    (tmp_path / "winic_zen4_tp.csv").write_text(
        "llvm_name,value_min,value_max,status,flags,helper,anomaly\n"
        "GOOD,0.5,0.5,OK,,,\n"
        "RANGED,0.25,0.5,RANGE,,H=0.25,\n"
        "DOUBTFUL,5.9,5.9,OK,fp_denormal_init,,\n"
        "SKIPPED,,,SKIP_MAY_LOAD,,,\n"
    )
    (tmp_path / "winic_zen4_lat.csv").write_text(
        "llvm_name,pair,value_min,value_max,status,flags,combined,helpers\n"
        "GOOD,1:GR64->0:GR64,1.01,1.01,OK,,,\n"
        "GOOD,1:GR64->EFLAGS,3,2,RANGE,,3.04,ADC\n"
        "GOOD,2:GR64->0:GR64,9,9,OK,wide,,\n"
        "SKIPPED,1:GR64->0:GR64,,,ERROR_ILLEGAL_INSTRUCTION,,,\n"
    )
    return load(tmp_path / "winic_zen4_lat.csv", "winic")


def test_only_rows_that_winic_does_not_doubt_are_used(winic):
    assert {name: row.throughput for name, row in winic.rows.items()} == {
        "GOOD": 0.5, "RANGED": None, "DOUBTFUL": None, "SKIPPED": None,
    }  # fmt: skip
    assert [latency.pair for latency in winic.rows["GOOD"].latencies] == ["1:GR64->0:GR64", "1:GR64->EFLAGS"]
    assert winic.rows["SKIPPED"].latencies == ()
    assert winic.left_out == 2


def test_inverted_ranges_are_put_in_order(winic):
    ranged = winic.rows["GOOD"].latencies[1]
    assert (ranged.low, ranged.high, ranged.combined, ranged.helpers) == (2.0, 3.0, 3.04, "ADC")


def test_a_missing_table_is_one_clear_line(tmp_path):
    with pytest.raises(UsageError, match="no reference at"):
        load(tmp_path / "none.csv", "uops.info")


def test_a_table_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UsageError, match="is no"):
        load(path, "uops.info")
