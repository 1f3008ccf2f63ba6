"""The tool of Compiler Explorer, with texts as that hands them over."""

from __future__ import annotations

import json

import pytest

from cyclescope.cli.explorer import NAME, command
from cyclescope.cli.main import run

USAGE, UNKNOWN = 2, 3
INTEL = """sum(double const*, long):
        test    rsi, rsi
        jle     .L4
        lea     rax, [rdi+rsi*8]
        vxorpd  xmm0, xmm0, xmm0
.L3:
        .loc 1 4 7
        vaddsd  xmm0, xmm0, QWORD PTR [rdi]
        .loc 1 3 24 is_stmt 1
        add     rdi, 8
        cmp     rdi, rax
        jne     .L3
        ret
.L4:
        vxorpd  xmm0, xmm0, xmm0
        ret
"""
ARM = """sum(double const*, long):
        cmp     x1, 0
        ble     .L4
        add     x1, x0, x1, lsl 3
        movi    d0, #0
.L3:
        ldr     d1, [x0], 8
        fadd    d0, d0, d1
        cmp     x0, x1
        bne     .L3
        ret
"""
RISCV = """sum(double const*, long):
        fmv.d.x fa0,zero
.L3:
        fld     fa5,0(a0)
        addi    a0,a0,8
        fadd.d  fa0,fa0,fa5
        bne     a0,a1,.L3
        ret
"""


@pytest.fixture
def explore(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/nonexistent")

    def call(text, *options):
        path = tmp_path / "output.s"
        path.write_text(text)
        with pytest.raises(SystemExit) as end:
            run(command, NAME, [*options, str(path)])
        done = capsys.readouterr()
        return end.value.code or 0, done.out, done.err

    return call


@pytest.mark.parametrize(
    ("text", "machine"), [(INTEL, "sapphirerapids"), (ARM, "neoverse-v2"), (RISCV, "sifive-p670")]
)
def test_the_innermost_loop_on_a_machine_that_is_no_servers(explore, text, machine):
    code, out, err = explore(text)
    assert (code, err) == (0, "")
    assert out.startswith(f"machine: {machine}, since none is named")
    assert "ret" not in out
    assert "cycles" in out


@pytest.mark.parametrize(
    ("options", "machine"),
    [(["-mcpu=znver4"], "znver4"), (["--arch", "znver3"], "znver3"), (["-march=skylake"], "skylake"),
     (["-mtriple=x86_64-linux-gnu", "-march=generic64"], "sapphirerapids")],
)  # fmt: skip
def test_machines_as_compilers_name_them(explore, options, machine):
    code, out, _ = explore(INTEL, *options, "--json")
    assert code == 0
    assert json.loads(out)["machine"] == machine


@pytest.mark.parametrize(
    ("options", "said"),
    [(["-mcpu=native"], "server"), (["-march=native"], "server"), (["-mcpu=/etc/passwd"], "is a file"),
     (["-mcpu=nix"], "nix"), (["-mtriple=sparc-sun"], "sparc"), (["--nix"], "nix")],
)  # fmt: skip
def test_errors_are_one_short_line(explore, options, said):
    code, out, err = explore(INTEL, *options)
    assert code == USAGE
    assert out == ""
    assert err.count("\n") == 1
    assert said in err
    assert len(err) < 500


def test_what_is_not_known_is_refused_unless_one_says_so(explore):
    text = INTEL.replace("vaddsd ", "encls\n        vaddsd ")
    code, _, err = explore(text)
    assert code == UNKNOWN
    assert "encls" in err.lower()
    assert explore(text, "--ignore-unknown")[0] == 0
