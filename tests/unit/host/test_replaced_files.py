"""What is put in place of a file: a plain file, or where a link leads to; no device is replaced."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from cyclescope.backend.build import build
from cyclescope.cli.writing import write_file
from cyclescope.errors import UsageError
from cyclescope.host.uname import host_isa
from cyclescope.report.site.pages import INDEX
from cyclescope.report.site.writing import write_site
from cyclescope.session.batch.file import predict_file
from cyclescope.session.block_files import TIMING_COLUMNS, write_timings


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


def write_page(path):
    write_file(path, "a page")


def write_rows(path):
    write_timings(path, [dict.fromkeys(TIMING_COLUMNS, 1)])


@pytest.mark.parametrize(
    "write",
    [write_page, write_rows, lambda p: write_site({INDEX: "x"}, p)],
)
def test_what_does_not_fit_on_a_disk_leaves_no_cut_file(write, tmp_path, monkeypatch):
    path = tmp_path / "out.html"
    whole = Path.write_bytes

    def full(self, data):
        whole(self, data[:1])
        raise OSError(28, "No space left on device")

    for before in ((), ("out.html",)):
        with monkeypatch.context() as patch, pytest.raises((UsageError, OSError), match="No space left"):
            patch.setattr(Path, "write_bytes", full)
            write(path)
        assert tuple(one.name for one in tmp_path.iterdir()) == before
        assert not before or path.read_text() == "old"
        path.write_text("old")
    path.chmod(0o640)
    write(path)
    assert path.read_text() != "old" and path.stat().st_mode & 0o777 == 0o640


def test_a_file_in_a_folder_that_takes_no_other_is_written_in_its_place(tmp_path, monkeypatch):
    path = tmp_path / "out.html"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(Path, "replace", lambda *_: pytest.fail("no other file may be made"))
    write_page(path)
    assert path.read_text() == "a page"
