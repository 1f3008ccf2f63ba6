"""CPU time of another process."""

from __future__ import annotations

import os

import pytest

from cyclescope.host.spent import cpu_seconds


def test_cpu_time_of_a_process(tmp_path):
    (tmp_path / "proc/7").mkdir(parents=True)
    fields = ["S", *["0"] * 10, "100", "20", "300", "4", "99"]
    (tmp_path / "proc/7/stat").write_text(f"7 (a) b) {' '.join(fields)}\n")
    ticks = cpu_seconds(7, tmp_path) * os.sysconf("SC_CLK_TCK")
    assert ticks == pytest.approx(424)
    assert cpu_seconds(8, tmp_path) == 0
