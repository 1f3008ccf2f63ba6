"""Records that are read again and again while more come."""

from __future__ import annotations

from types import SimpleNamespace

from cyclescope.infer.refute.reading import ReadOnce


def record(number, key):
    return SimpleNamespace(id=number, key=key)


def test_what_was_read_is_not_read_again_and_the_later_of_one_experiment_counts():
    kept, read = [record(3, "one"), record(2, "two")], []

    def records_of(quantities, since):
        assert quantities == ("mix",)
        found = [one for one in kept if one.id >= since]
        read.extend(found)
        return found

    mixes = ReadOnce(SimpleNamespace(records_of=records_of))
    assert [one.key for one in mixes.records_of(("mix",))] == ["one", "two"]
    assert [one.key for one in mixes.records_of(("mix",))] == ["one", "two"]
    kept[0] = record(4, "one")
    kept.append(record(5, "three"))
    assert [(one.id, one.key) for one in mixes.records_of(("mix",))] == [(2, "two"), (4, "one"), (5, "three")]
    assert [one.id for one in read] == [3, 2, 4, 5]
