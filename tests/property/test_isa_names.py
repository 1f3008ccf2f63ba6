"""Register names and patterns, against independent definitions."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iced_x86 import Register, RegisterExt

from cyclescope.errors import UsageError
from cyclescope.isa.find.pattern import names, select
from cyclescope.isa.register import domain, register_name, register_number
from cyclescope.isa.table import Table, load_table

TABLE = Table("x86-64", {}, load_table("x86-64").forms[::23])  # a search looks at every name
COUNTS = {
    "R8l": range(16), "R8h": range(4, 8), "R16": range(16), "R32": range(16), "R64": range(16),
    "XMM": range(32), "YMM": range(32), "ZMM": range(32), "K": range(8), "MM": range(8), "ST": range(8),
    "SEG": range(6), "BND": range(4), "TMM": range(8), "CR": range(16), "DR": range(16),
}  # fmt: skip
REGISTERS = [(cls, number) for cls, numbers in COUNTS.items() for number in numbers]
DOMAINS = {"R8h": "h", "K": "k", "MM": "m", "ST": "x", "XMM": "v", "YMM": "v", "ZMM": "v"}
CONTROL = {"SEG", "BND", "TMM", "CR", "DR"}

ALL_NAMES = sorted({name for form in TABLE for name in names(form)})
FEATURES = sorted({name for form in TABLE for name in form.features})


# --- registers -----------------------------------------------------------------------------------


@given(st.sampled_from(REGISTERS))
def test_a_name_says_class_and_number(register):
    assert register_number(register_name(*register)) == register


@given(st.sampled_from(REGISTERS))
def test_iced_knows_the_name_and_the_number(register):
    cls, number = register
    name = register_name(cls, number).replace("(", "").replace(")", "")
    name = re.sub(r"^R(\d+)B$", r"R\1L", name)  # R8B is R8L there
    known = getattr(Register, name)
    behind_high_bytes = 4 if cls == "R8l" and number >= 4 else 0
    assert RegisterExt.number(known) == number + behind_high_bytes
    assert RegisterExt.is_gpr(known) == cls.startswith("R")
    if cls.startswith("R"):
        assert RegisterExt.size(known) * 8 == int(re.sub(r"\D", "", cls))


def test_names_are_unique():
    assert len({register_name(*register) for register in REGISTERS}) == len(REGISTERS)


@given(st.sampled_from(REGISTERS))
def test_registers_have_a_file(register):
    cls, _ = register
    assert domain(cls) == ("?" if cls in CONTROL else DOMAINS.get(cls, "r"))


@given(st.text(alphabet="ABCDEHLMPRSTXYZ0123456789", max_size=5))
def test_what_is_no_register_is_a_key_error(name):
    known = {register_name(*register) for register in REGISTERS} | {f"ST{n}" for n in range(8)}
    if name in known:
        assert register_name(*register_number(name)) in (name, f"ST({name[2:]})")
    else:
        with pytest.raises(KeyError):
            register_number(name)


# --- patterns ------------------------------------------------------------------------------------


@st.composite
def globs(draw, of_features: bool = False) -> str:
    """A name with some of it replaced by wildcards, in any case."""
    known = FEATURES if of_features else ALL_NAMES
    name = known[draw(st.integers(0, len(known) - 1))]
    kinds = st.sampled_from(["same"] * 6 + ["?", "*", "lower"])
    change = {"same": str, "lower": str.lower, "?": lambda c: "?", "*": lambda c: "*"}
    text = "".join(change[draw(kinds)](c) for c in name[: draw(st.integers(1, len(name)))])
    return text if len(text) == len(name) else text + "*"


def matches(name: str, pattern: str) -> bool:
    literal = pattern.lower().replace("[", "[[]")  # brackets are part of ids, not classes
    return fnmatchcase(name.lower(), literal)


@given(globs())
def test_globs_are_those_of_the_shell(pattern):
    wanted = [form for form in TABLE if any(matches(name, pattern) for name in names(form))]
    if TABLE.get(pattern):  # an id is that form alone
        wanted = [TABLE[pattern]]
    assert wanted
    assert select(TABLE, [pattern]) == wanted


@given(globs(of_features=True))
def test_globs_over_features_are_those_of_the_shell(pattern):
    wanted = [form for form in TABLE if any(matches(name, pattern) for name in form.features)]
    assert select(TABLE, [f"isa:{pattern}"]) == wanted


@given(st.integers(0, len(TABLE) - 1))
def test_every_name_of_a_form_finds_it(number):
    form = TABLE.forms[number]
    for name in filter(None, (form.id, form.mnemonic.lower(), form.llvm, form.uops_info)):
        assert form in select(TABLE, [name])


PIECES = ["rax", "xmm1", "st", "007", "0x", "-5", "[", "]", "{", "}", "k1", "{z}", "1to8", ",", " ", "*2"]
EXAMPLES = st.lists(st.sampled_from(PIECES), max_size=8).map(lambda pieces: "add " + "".join(pieces))


@given(st.text(max_size=30) | EXAMPLES)
def test_no_text_breaks_the_search(text):
    """Whatever a user types: forms, or one usage error."""
    try:
        assert select(TABLE, [text])
    except UsageError as error:
        assert error.remedy
