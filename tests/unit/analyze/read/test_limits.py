"""Nothing that is read, assembled or printed can take all of the machine."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import threading
import time

import pytest

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.read import assembler
from cyclescope.analyze.read import contents as reading
from cyclescope.analyze.read.assemblers import Tool, tools
from cyclescope.errors import SourceError, UnsupportedInstruction
from cyclescope.isa.assembly import limits
from cyclescope.isa.assembly.assemble import assemble

pytestmark = pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_devices_without_end(device, tmp_path):
    (tmp_path / "k.s").symlink_to(device)
    with pytest.raises(SourceError, match="is binary, but no ELF file"):
        read_block(tmp_path / "k.s")


def test_a_pipe_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_LONGEST", 1 << 17)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def fill():
        with pipe.open("wb", buffering=0) as file, pytest.raises(BrokenPipeError):
            while True:
                file.write(b"nop\n" * 1000)

    writer = threading.Thread(target=fill)
    writer.start()
    with pytest.raises(SourceError, match="pipe is longer than 0 MiB: give a part of it"):
        read_block(pipe)
    writer.join(10)
    assert not writer.is_alive()


def test_a_text_as_long_as_allowed_is_read(tmp_path, monkeypatch):
    path = tmp_path / "k.s"
    path.write_text("nop\n" + "#" * 60)
    monkeypatch.setattr(reading, "_LONGEST", 64)
    assert len(read_block(path)) == 1
    monkeypatch.setattr(reading, "_LONGEST", 63)
    with pytest.raises(SourceError, match="is longer than"):
        read_block(path)


@pytest.mark.parametrize(
    "text",
    [
        "nop\n.skip 100000000000\n",
        "nop\n.org 1000000000000\n",
        '.include "/dev/zero"\nnop\n',
        "nop\n.rept 1000000000\nnop\n.endr\n",
        ".macro again\nagain\nagain\n.endm\nnop\nagain\n",
    ],
)
def test_an_assembler_is_stopped_in_time(text, monkeypatch):
    monkeypatch.setattr(limits, "_SECONDS", 1.0)
    start = time.process_time() + sum(os.times()[2:4])
    with pytest.raises((SourceError, UnsupportedInstruction)) as raised:
        read_block(text)
    assert time.process_time() + sum(os.times()[2:4]) - start < 5
    assert len(str(raised.value)) < 400


@pytest.mark.skipif(None in map(shutil.which, ("as", "objcopy")), reason="needs binutils")
@pytest.mark.parametrize(
    "text", [".skip 100000000000", '.include "/dev/zero"', ".rept 1000000000; nop; .endr", "x" * 10_000]
)
def test_an_assembler_of_kernels_is_stopped_in_time(text, monkeypatch):
    monkeypatch.setattr(limits, "_SECONDS", 1.0)
    start = time.process_time() + sum(os.times()[2:4])
    with pytest.raises((SourceError, UnsupportedInstruction)) as raised:
        assemble(text)
    assert time.process_time() + sum(os.times()[2:4]) - start < 5
    assert len(str(raised.value)) < 400


def script(folder, text):
    path = folder / "as"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return Tool("made", (str(path),), False, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("while :; do :; done", "made is not done after 1 seconds"),
        ("head -c 1000000000 /dev/zero > ${0%as}out", "made makes more than 64 MiB of it"),
        (
            "while :; do echo 'x.s:1: Error: no'; done",
            "made makes more than 64 MiB of it|made is not done after 1 seconds",
        ),
        ("echo 'out of memory allocating 5 bytes'; exit 1", "made wants more than 300 MiB of memory"),
    ],
)
def test_each_limit_has_its_words(text, said, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "_SECONDS", 0.5)
    tool = script(tmp_path, text)
    monkeypatch.setattr(assembler, "tools", lambda _: (tool,))
    with pytest.raises(SourceError, match=f"text is too much to assemble: ({said}): look for .rept"):
        read_block("nop")


def test_time_is_limited_once_not_per_assembler(tmp_path, monkeypatch):
    """What was refused first says more than that there is no time for another assembler."""
    tried = []
    run, seconds = limits.Budget.run, itertools.count()  # half of one more whenever it is asked for

    def counted(self, name, command, folder):
        tried.append(name)
        return run(self, name, command, folder)

    refusing = script(tmp_path, "echo 'x.s:2: Error: no'; exit 1")
    monkeypatch.setattr(limits.Budget, "run", counted)
    monkeypatch.setattr(limits, "_used", lambda: next(seconds) / 2)
    monkeypatch.setattr(limits, "_SECONDS", 2.0)
    monkeypatch.setattr(assembler, "tools", lambda _: (refusing,) * 50)
    with pytest.raises(UnsupportedInstruction, match=r"text, line 1: made refuses 'nop' \(no\)"):
        read_block("nop")
    assert len(tried) < 10


def test_a_budget_grows_with_the_text():
    small, large = limits.Budget("a", 100), limits.Budget("a", 20_000_000)
    assert small._seconds < 2.1
    assert large._seconds > 20
    assert large._memory > 2 * small._memory


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_long_text_is_assembled_within_its_budget():
    """50 000 lines that an assembler takes are none too many for what is allowed."""
    assert len(read_block("add rax, rbx\n" * 50_000 + ".L: jmp .L\n", choice=Choice(lines="1-3"))) == 3


@pytest.mark.parametrize(
    "text", ["add " + "x" * 200_000, "nop (" + ")" * 200_000, "frob\x1b[2J\x07 rax", "\u202efrob rax"]
)
def test_messages_are_short_and_control_no_terminal(text):
    command = [sys.executable, "-m", "cyclescope", "analyze", "-", "--arch", "skylake"]
    result = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    assert (result.returncode, result.stdout) == (3, b"")
    line = result.stderr.decode().removesuffix("\n")
    assert len(line) < 600
    assert line.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "#" * 300_000 + "\nnop", "a:" * 200_000, '"a"' * 100_000, "/**/" * 100_000 + "nop", "a b:" * 100_000,
        "\n" * 300_000 + "frob", ".ascii " + '"a"' * 100_000 + "\nnop", "nop " + "@" * 300_000,
    ],
)  # fmt: skip
def test_reading_takes_time_in_proportion_to_the_text(text):
    start = time.process_time()
    try:
        read_block(text, "x86-64")
    except (SourceError, UnsupportedInstruction) as error:
        assert len(str(error)) < 600
    assert time.process_time() - start < 5


def test_a_part_that_is_too_large_is_refused():
    many = b"\x48\x01\xd8" * 20_001
    with pytest.raises(SourceError, match="20001 instructions, more than 20000: choose a smaller part"):
        read_block(many, choice=Choice(whole=True))
    assert len(read_block(many[3:], choice=Choice(whole=True))) == 20_000
    with pytest.raises(SourceError, match=r"3 MiB of code: choose a part with .*function.* or .*addresses"):
        read_block(b"\x90" * (3 << 20), choice=Choice(addresses="0-0x300000"))


def test_lines_of_a_text_with_much_code():
    text = "f:\n inc %rax\n.rept 750000\n incq %rax\n.endr\n dec %rbx\n"
    assert [one.text for one in read_block(text, choice=Choice(lines="6"))] == ["dec %rbx"]
    with pytest.raises(SourceError, match="2 MiB of code"):
        read_block(text, choice=Choice(function="f"))
    with pytest.raises(SourceError, match="2 MiB of code"):
        read_block(text)


@pytest.mark.parametrize("address", ["ffffffffffffffff", "fffffffffffffffe"])
def test_code_at_the_end_of_all_addresses(address):
    text = f"k.o: file format elf64-x86-64\n\n{address} <f>:\n{address}:\t48 01 d8 \tadd %rbx,%rax\n"
    with pytest.raises(SourceError, match="has code at the end of all addresses"):
        read_block(text)


@pytest.mark.parametrize("line", ["npad {}", "DB {} DUP(0)", "x DQ {} DUP(?)"])
def test_numbers_of_thousands_of_digits(line):
    with pytest.raises((SourceError, UnsupportedInstruction)):
        read_block(f"f PROC\n {line.format('9' * 5000)}\n frob\nf ENDP\n")
