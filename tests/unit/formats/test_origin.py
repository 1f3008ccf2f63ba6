"""Exported files say what they are from, and with a digest of their values."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.formats.exchange import ImportRequest
from cyclescope.formats.origin import digest
from cyclescope.formats.registry import FORMATS, by_name, of_contents
from cyclescope.host.cpuinfo import microcode
from cyclescope.model.machine import Core
from tests.support.made.models import exchanged, suited

TOLD = [
    form.name for form in FORMATS if form.reader and form.writer and (form.comment or form.suffix == ".td")
]


@pytest.mark.parametrize("name", TOLD)
def test_files_say_what_they_are_from_and_are_read_again(name, tmp_path):
    model = suited(name, 1)
    nasty = msgspec.structs.replace(model.provenance, notes=("--> a\nnote: -- <b>\x1b & more",))
    model = msgspec.structs.replace(model, provenance=nasty)
    text = by_name(name).write(model).text
    assert f"SHA-256 of the values: {digest(model)}" in text
    assert "drawn in a test" in text
    assert "\x1b" not in text
    path = tmp_path / "file"
    path.write_text(text)
    assert of_contents(path).name == name
    again = by_name(name).read(path, ImportRequest("again", "file"))
    assert again.model.forms


def test_the_digest_is_of_the_values():
    model = exchanged(1)
    assert len(digest(model)) == 64
    assert digest(msgspec.structs.replace(model, name="another")) == digest(model)
    assert digest(msgspec.structs.replace(model, core=Core(5))) != digest(model)
    forms = dict(reversed(model.forms.items()))
    assert digest(msgspec.structs.replace(model, forms=forms)) == digest(model), "the order says nothing"
    name = next(iter(forms))
    forms[name] = msgspec.structs.replace(forms[name], throughput=77.0)
    assert digest(msgspec.structs.replace(model, forms=forms)) != digest(model)


def test_microcode():
    assert microcode("processor\t: 0\nmicrocode\t: 0xa20120e\nflags: x\n") == "0xa20120e"
    assert microcode("processor\t: 0\n") == ""
    assert microcode("microcode\t: a text\n") == ""
