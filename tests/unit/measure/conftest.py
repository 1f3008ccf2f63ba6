"""A store in a folder of its own."""

from __future__ import annotations

from contextlib import closing

import pytest

from cyclescope.measure.store import Store
from tests.support.files.stores import HERE


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite"


@pytest.fixture
def store(path):
    with closing(Store(path, HERE)) as opened:
        opened.begin_session("now", {"cpu": 1})
        yield opened
