"""Gathers of this CPU: what they touch, which is no question of time."""

from __future__ import annotations

from contextlib import closing

import pytest

from cyclescope.backend.native import NativeBackend
from tests.support.made.probed import misled_gathers

pytestmark = pytest.mark.hardware


def test_gathers_touch_what_their_indices_and_masks_say():
    with closing(NativeBackend()) as backend:
        assert list(misled_gathers(backend, backend.capabilities().isa)) == []
