"""Damaged, hostile and senseless files: one clear line each, soon, and nothing made of them."""

from __future__ import annotations

import time

import pytest

from cyclescope.errors import CyclescopeError
from cyclescope.formats import text
from cyclescope.formats.exchange import (
    SENTENCE,
    Draft,
    FormatError,
    ImportRequest,
    cycles,
    rate,
    shortened,
)
from cyclescope.formats.registry import READABLE, by_name, of_contents
from cyclescope.isa.table import load_table
from tests.support.made.models import exchanged

ENTITIES = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))
BOMB = f'<?xml version="1.0"?><!DOCTYPE root [<!ENTITY a0 "ha">{ENTITIES}]><root>&a9;</root>'
OUTSIDE = '<!DOCTYPE root [<!ENTITY x SYSTEM "file:///etc/passwd">]><root>&x;</root>'
ALIASES = "a: &a [x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{f'*{chr(97 + n)},' * 9}]\n" for n in range(9)
)
OBJECT = "!!python/object/apply:os.system ['touch /tmp/never']\n"


@pytest.mark.parametrize("name", READABLE)
@pytest.mark.parametrize(
    "contents", ["", "nonsense\n", "{", "<root", "\x00" * 99, "a: [" * 20000, "---\n" * 50,
                 BOMB, ALIASES, OBJECT,
                 "instruction,latency\n1,2\n", "form,throughput\n1,2,3,4,5\n"]
)  # fmt: skip
def test_no_file_of_the_format(name, contents, tmp_path):
    path = tmp_path / "file"
    path.write_text(contents)
    start = time.process_time()
    with pytest.raises(CyclescopeError) as caught:
        by_name(name).read(path, ImportRequest("m", "file"))
    assert time.process_time() - start < 5
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500 + len(str(path))


@pytest.mark.parametrize("contents", [BOMB, OUTSIDE])
def test_document_types_are_not_read(contents, tmp_path):
    path = tmp_path / "file.xml"
    path.write_text(contents)
    with pytest.raises(FormatError, match="document type"):
        by_name("uops-info").read(path, ImportRequest("m", "file", column="SKL"))


def test_aliases_of_yaml_are_not_read(tmp_path):
    path = tmp_path / "file.yml"
    path.write_text(ALIASES)
    with pytest.raises(FormatError, match="aliases"):
        by_name("osaca").read(path, ImportRequest("m", "file"))


def test_a_file_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "MOST_BYTES", 100)
    path = tmp_path / "file.csv"
    path.write_text("form,throughput,latency\n" + "x,1,\n" * 100)
    with pytest.raises(FormatError, match="larger than"):
        by_name("csv").read(path, ImportRequest("m", "file"))


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "file.csv"
    path.write_bytes(b"form,throughput,latency\n\xff\xfe,1,\n")
    with pytest.raises(FormatError, match="no UTF-8"):
        by_name("csv").read(path, ImportRequest("m", "file"))


@pytest.mark.parametrize("given", ["nan", "inf", "-1", "-0.001", "1e9", "9.2e18", "", "three", "1 2", None])
def test_numbers_that_are_no_cycles(given):
    with pytest.raises(ValueError, match=r"cycles|number"):
        cycles(given)


def test_bounds_of_cycles():
    assert cycles("1000000") == 1e6
    assert rate(1 / 64) == 1 / 64
    for given in (1000001, 0.0156):
        with pytest.raises(ValueError, match="more than"):
            rate(given)


def test_cells_in_messages_are_short_and_printable():
    assert shortened("\x1b[31mred") == "?[31mred"
    assert len(shortened("x" * 10**6)) < 80


@pytest.mark.parametrize("name", ["uops-info", "osaca", "winic", "csv", "exegesis-throughput"])
def test_every_truncation_is_refused_or_read_in_part(name, tmp_path):
    whole = by_name(name).write(exchanged(1)).text
    path = tmp_path / "file"
    for share in (0.1, 0.37, 0.8, 0.99):
        path.write_text(whole[: int(len(whole) * share)])
        try:
            by_name(name).read(path, ImportRequest("m", "file"))
        except CyclescopeError as error:
            assert "\n" not in str(error)


def test_a_file_of_no_known_format(tmp_path):
    path = tmp_path / "file"
    path.write_text("root:x:0:0:root:/root:/bin/bash\n")
    with pytest.raises(CyclescopeError, match="no known format"):
        of_contents(path)


@pytest.mark.parametrize("name", ["csv", "uops-info-csv"])
def test_a_table_with_other_ends_of_lines(name, tmp_path):
    head = "form,instruction,family,latency,throughput,uops,ports"
    path = tmp_path / "file"
    imul = '"IMUL (R64, R64)","IMUL (R64, R64)",x,,1,1,'
    path.write_bytes(f'{head}\r"NIX (R8)","NIX (R8)",x,1,1,1,\r\n"a\nb",b,x,1,1,1,\n{imul}\n'.encode())
    found = by_name(name).read(path, ImportRequest("m", "file"))
    assert found.model.forms["IMUL (R64, R64)"].throughput == 1
    assert [item.place.partition(":")[0] for item in found.refused] == ["line 2", "line 4"]


@pytest.mark.parametrize("name", ["csv", "uops-info-csv"])
@pytest.mark.parametrize("line", [1, 3])
def test_a_cell_without_end_has_its_line(name, line, tmp_path):
    rows = ["form,instruction,family,latency,throughput,uops,ports", "NIX,NIX,x,1,1,1,", "NIX,NIX,x,1,1,1,"]
    rows[line - 1] += "," + "x" * 200_000
    path = tmp_path / "file"
    path.write_text("\n".join(rows))
    with pytest.raises(FormatError, match=rf"file, line {line}: no row of a table \(field larger"):
        by_name(name).read(path, ImportRequest("m", "file"))


def test_what_is_refused_is_told_in_a_line(tmp_path):
    """Whatever a cell has."""
    path = tmp_path / "file"
    path.write_text(
        "form,llvm,uops_info,throughput,slots,ports,confidence,latency,note\n"
        f'"IMUL (R64, R64)",,,1,1,,,{"[" * 5000}\x1b[2J,\n'
    )
    (item,) = by_name("csv").read(path, ImportRequest("m", "file")).refused
    assert item.reason.endswith("is no latency")
    for told in (item.place, item.reason, item.detail):
        assert len(told) < 200
        assert told.isprintable()


def test_a_reason_is_cut_where_it_is_kept():
    draft = Draft(load_table("x86-64"), ImportRequest("m", "file"))
    draft.refuse("place", "x" * 5000, "\n" * 5000)
    (item,) = draft.refused
    assert (len(item.reason), len(item.detail)) == (SENTENCE + 3, SENTENCE + 3)
