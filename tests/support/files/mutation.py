"""Mutated machine models: a small sound one, leaves or branches of its JSON replaced, left out, doubled."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

from hypothesis import strategies as st

from cyclescope.model.schema import encode
from tests.support.code.blocks import toy

KERNEL = "mov rax, [rdi]; imul rax, [rsi]; add rax, rdx; mov [rdi], rax; add rdi, 8; cmp rdi, rcx; jne .-20"
_FORMS = ("MOV (R64, M64)", "IMUL (R64, M64)", "ADD_01 (R64, R64)", "MOV (M64, R64)", "ADD (R64, I8)",
          "CMP_39 (R64, R64)", "JNZ (Rel8)", "NOP_90")  # fmt: skip
NASTY = (
    None, True, False, "", " ", "x", "\x1b[31m", "a" * 100_000, "0", "->",
    0, -1, 1, 2**31, 2**63, 10**30, 64, 65,

    -0.0, 0.5, 1e-300, 1e-6, 5e-7, 1e5, 1e6, 1.1e6, 1e12, 1e18, 1e300, -1e300, [], {}, [[]], [0], [-1], [99],
    [0, 0], [[0], 1, 1], [[[0], 1, 1]] * 65, [[[0], 1e6, 1e6]], [0] * 50_000, {"a": {}}, {"": 1}, {"a->b": 1},
    [str(n) for n in range(65)], [str(n) for n in range(20_000)],
)  # fmt: skip
RAW = (b"1e999", b"-1e999", b"NaN", b"Infinity", b"1" + b"0" * 5000, b"[" * 100_000, b'{"a":' * 100_000,
       b'"\\ud800"', b'"\xff"', b"", b"[" * 600 + b"]" * 600)  # fmt: skip
_MARK = "@@here@@"


@cache
def small() -> bytes:
    """A sound model of the forms of `KERNEL`."""
    machine = json.loads(encode(toy()))
    machine["forms"] = {form: cost for form, cost in machine["forms"].items() if form in _FORMS}
    machine["core"]["schedulers"] = [{"name": "all", "ports": [0, 1, 2], "entries": 20}]
    machine["resources"] = {"mul": 1.0}
    imul = machine["forms"]["IMUL (R64, M64)"]
    imul |= {"resources": {"mul": 1.0}, "throughput": 1.5, "ranges": {"op1->op1": [2, 3]}}
    return json.dumps(machine).encode()


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in items for place in _places(one, (*path, key)))]


_PLACES = [place for place in _places(json.loads(small())) if place]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A file that was a machine model."""
    machine = json.loads(small())
    raw = None
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(_PLACES))
        parent = machine
        try:
            for key in way:
                parent = parent[key]
            raw = _change(draw, parent, last) or raw
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took it away
    data = json.dumps(machine).encode()
    return data if raw is None else data.replace(json.dumps(_MARK).encode(), raw)


def _change(draw: st.DrawFn, parent: Any, key: Any) -> bytes | None:
    what = draw(st.sampled_from(["replace", "replace", "raw", "delete", "double", "rename"]))
    if what == "raw":
        parent[key] = _MARK
        return draw(st.sampled_from(RAW))
    if what == "delete":
        del parent[key]
    elif what == "double" and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(parent[key]))
    elif what in ("double", "rename") and isinstance(parent, dict):
        parent[draw(st.sampled_from(["", "x", "name", "a" * 1000, "\x1b[31m", "op1->op1"]))] = copy.deepcopy(
            parent[key]
        )
    else:
        parent[key] = copy.deepcopy(draw(st.sampled_from(NASTY)))
    return None
