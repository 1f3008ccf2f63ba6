"""Idioms under a mask that zeroes: it is no source that keeps them from being some."""

from __future__ import annotations

import pytest

from cyclescope.analyze.predict.predictor import Predictor
from tests.support.code.blocks import block, changed, toy


@pytest.mark.parametrize("text", ["vaddpd ymm0{k1}{z}, ymm0, ymm0", "vaddpd ymm0{k1}{z}, ymm1, ymm1"])
def test_a_mask_that_zeroes_does_not_keep_idioms_from_being_some(text):
    costs = {"idiom": "zero", "latencies": {"op2->op1": 3.0, "op3->op1": 1.0, "op4->op1": 1.0}}
    machine = changed(toy(), VADDPD_Z_YMM_K_YMM_YMM=costs)
    assert Predictor(machine).predict(block(text)).lcd == 0
    others = block("vaddpd ymm0{k1}{z}, ymm0, ymm2")
    assert Predictor(machine).predict(others).lcd == 1
