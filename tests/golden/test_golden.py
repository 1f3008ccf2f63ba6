"""Whole reports of kernels as they were checked by hand against what is published and measured of them."""

from __future__ import annotations

import pytest

from cyclescope.analyze.read.assemblers import tools
from tests.golden.cases import CASES, FOLDER, printed


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.folder}/{case.expected}")
def test_the_report_of_a_kernel(case):
    if not tools(case.isa):
        pytest.skip(f"no assembler for {case.isa}: a cross as, llvm-mc, clang or zig")
    assert printed(case) == (FOLDER / case.folder / case.expected).read_text()
