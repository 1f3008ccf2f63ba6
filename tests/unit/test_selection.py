"""Which tests a command selects: what takes minutes only where it is named."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.conftest import pytest_collection_modifyitems


def item(*markers):
    return SimpleNamespace(markers=markers, get_closest_marker=lambda name: name in markers or None)


@pytest.mark.parametrize(
    ("expression", "left"),
    [("", 2), ("not hardware", 2), ("hardware", 2), ("slow", 3), ("slow or hardware", 3)],
)
def test_what_takes_minutes_is_run_where_it_is_named(expression, left):
    dropped = []
    hook = SimpleNamespace(pytest_deselected=lambda items: dropped.extend(items))  # noqa: PLW0108
    items = [item(), item("hardware"), item("slow")]
    pytest_collection_modifyitems(
        SimpleNamespace(option=SimpleNamespace(markexpr=expression), hook=hook), items
    )
    assert (len(items), len(dropped)) == (left, 3 - left)
    assert all("slow" in one.markers for one in dropped)
