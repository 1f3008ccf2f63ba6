"""Kernels as a store has them: whatever packs them, zlib reads them."""

from __future__ import annotations

import sys
import zlib

import pytest

from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.state import MachineState
from cyclescope.measure import rows
from cyclescope.measure.rows import pack_kernel, unpack_kernel


@pytest.fixture(params=["zlib-ng", "zlib"])
def packer(request, monkeypatch):
    rows._packer.cache_clear()
    if request.param == "zlib":
        monkeypatch.setitem(sys.modules, "zlib_ng.zlib_ng", None)
    else:
        pytest.importorskip("zlib_ng")
    yield request.param
    rows._packer.cache_clear()


@pytest.mark.parametrize("times", [0, 1, 1000])
def test_what_is_packed_is_read(packer, times):
    kernel = Kernel(b"\x48\x01\xc8" * times, 3 * times, MachineState(()), b"\x90" * times)
    packed = pack_kernel(kernel)
    assert unpack_kernel(packed) == (kernel.setup, kernel.code, kernel.text())
    assert zlib.decompress(packed), "old programs read it, too"
    assert len(packed) < 200
    assert (rows._packer() is rows._packed) == (packer == "zlib")
