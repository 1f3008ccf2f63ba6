"""The Python examples of the documentation run, but for those that measure or ask other programs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
ELSEWHERE = ("measure_forms", "NativeBackend", "native", "llvm_mca")  # a measured host, or another program
EXAMPLES = [
    (path.relative_to(DOCS).as_posix(), number, code)
    for path in sorted(DOCS.rglob("*.md"))
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)
    )
    if not any(name in code for name in ELSEWHERE)
]


def test_there_are_examples():
    assert any(name == "howto/scripts.md" for name, _, _ in EXAMPLES)


@pytest.mark.parametrize(("name", "number", "code"), EXAMPLES, ids=[f"{name}-{n}" for name, n, _ in EXAMPLES])
def test_an_example_runs(name, number, code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "triad.s").write_text(".L1:\n imul %rax, %rax\n dec %rcx\n jnz .L1\n")
    (tmp_path / "blocks.txt").write_text("480fafc0\n")
    exec(compile(code, f"{name}, example {number}", "exec"), {})
