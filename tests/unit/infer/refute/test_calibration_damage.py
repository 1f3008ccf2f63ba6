"""Verdicts of mixes in a store that is damaged."""

from __future__ import annotations

from contextlib import closing

import pytest

from cyclescope.errors import StoreError
from cyclescope.infer.refute.calibration import NOTE, stored_verdicts
from cyclescope.measure.store import Store


@pytest.mark.parametrize("text", ['{"claims" 1}', '{"claims": "many"}', "[" * 100_000])
def test_damaged_verdicts_are_a_damaged_store(tmp_path, text):
    with closing(Store(tmp_path / "store.sqlite", "core")) as store:
        assert stored_verdicts(store) is None
        store.write_note(NOTE, text)
        with pytest.raises(StoreError, match="damaged"):
            stored_verdicts(store)
