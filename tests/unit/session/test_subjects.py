"""Machines beside each other."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.model.schema import write_model
from cyclescope.session.subjects import beside
from tests.support.made.models import exchanged


@pytest.fixture
def files(tmp_path):
    found = []
    for file, name in (("a.json", "Intel 1 core"), ("b.json", "Intel 1 core"), ("c.json", "another")):
        write_model(msgspec.structs.replace(exchanged(1), name=name), tmp_path / file)
        found.append(str(tmp_path / file))
    return found


def test_machines_of_one_name_have_their_files_behind_it(files):
    assert [one.model.name for one in beside(files)] == [
        "Intel 1 core, a.json", "Intel 1 core, b.json", "another"
    ]  # fmt: skip


def test_other_names_stay_as_they_are(files):
    assert [one.model.name for one in beside(files[1:])] == ["Intel 1 core", "another"]
