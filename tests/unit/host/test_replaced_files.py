"""What is put in place of a file: a plain file, or where a link leads to; no device is replaced."""

from __future__ import annotations

import os
import threading

import pytest

from cyclescope.backend.build import build
from cyclescope.errors import UsageError
from cyclescope.host.uname import host_isa
from cyclescope.report.site.pages import INDEX
from cyclescope.report.site.writing import write_site
from cyclescope.session.batch.file import predict_file


def written(kind, path, blocks):
    if kind == "predictions":
        predict_file(blocks, path, "skylake", jobs=1)
    elif kind == "site":
        write_site({INDEX: "a page"}, path)
    else:
        build(host_isa(), path, "cc")


@pytest.fixture
def blocks(tmp_path):
    path = tmp_path / "blocks.txt"
    path.write_text("4801d8\n480fafc3\n")
    return path


@pytest.mark.parametrize("kind", ["predictions", "site", "runner"])
def test_no_device_or_pipe_is_replaced(kind, tmp_path, blocks):
    pipe = tmp_path / "a.html"
    os.mkfifo(pipe)
    link = tmp_path / "link.html"
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(UsageError, match="no plain file"):
            written(kind, path, blocks)
    assert pipe.is_fifo() and link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "blocks.txt", "link.html"]


@pytest.mark.parametrize("kind", ["predictions", "site"])
def test_a_link_stays_and_what_it_leads_to_is_written(kind, tmp_path, blocks):
    (tmp_path / "large").mkdir()
    link = tmp_path / "out.html"
    link.symlink_to(tmp_path / "large" / "out.html")
    for _ in range(2):  # where it leads to nothing yet, and to a file
        written(kind, link, blocks)
        assert link.is_symlink()
        assert [path.name for path in (tmp_path / "large").iterdir()] == ["out.html"]


def test_blocks_come_through_a_pipe(tmp_path, blocks, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=lambda: pipe.write_text(blocks.read_text()), daemon=True).start()
    predict_file(pipe, tmp_path / "out.csv", "skylake", jobs=1)
    predict_file(blocks, tmp_path / "same.csv", "skylake", jobs=1)
    assert (tmp_path / "out.csv").read_text() == (tmp_path / "same.csv").read_text()
