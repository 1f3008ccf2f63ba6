"""Target modules of SLOTHY: what Python makes of them, and reading them again without running them."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.formats.exchange import FormatError, ImportRequest
from cyclescope.formats.registry import by_name
from cyclescope.formats.slothy.spelling import spelling
from cyclescope.model.machine import FormCost, Operation
from tests.support.made.models import exchanged

MULTIPLY, LOAD, ADD = "FMADDDrrr", "LDRXui", "ADDXrs"


class Instruction:
    """What SLOTHY gives a target: something that can be written."""

    def __init__(self, text):
        self.text = text

    def write(self):
        return self.text


def model(**forms):
    return msgspec.structs.replace(exchanged(1, "aarch64"), forms=forms)


def target(text):
    """The module's names, as importing it makes them."""
    names = {}
    exec(compile(text, "target.py", "exec"), names)
    return names


def cost(*operations, **latencies):
    return FormCost(1.0, operations, {name.replace("_", "->"): cycles for name, cycles in latencies.items()})


@pytest.mark.parametrize(
    ("one", "other"),
    [("add x0, x1, x2", "ADD  x30,x3, xzr"), ("ldr q0, [x1]", "ldr q7, [sp, #16]"),
     ("mul v0.4s, v1.4s, v2.s[3]", "mul v9.4s, v8.4s, v7.s[0]"), ("ldr x0, [x1], #8", "ldr x9, [x2], #-16"),
     ("movk w1, #0x3f, lsl #16", "movk w2, #3, lsl #0"),
     ("ldp q0, q1, [x0, #32]!", "ldp q8, q9, [x1, #-64]!")],
)  # fmt: skip
def test_registers_and_constants_make_no_difference(one, other):
    assert spelling(one) == spelling(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("add x0, x1, x2", "add w0, w1, w2"), ("add x0, x1, x2", "add x0, x1, x2, lsl #3"),
     ("add x0, x1, x2", "add x0, x1, #2"), ("mul v0.4s, v1.4s, v2.4s", "mul v0.4s, v1.4s, v2.s[3]"),
     ("mul v0.4s, v1.4s, v2.4s", "mul v0.8h, v1.8h, v2.8h"), ("ldr x0, [x1], #8", "ldr x0, [x1, #8]"),
     ("ldr x0, [x1, #8]", "ldr x0, [x1, #8]!"), ("ldr x0, [x1]", "ldr x0, [x1, x2]"),
     ("fadd d0, d1, d2", "fadd s0, s1, s2")],
)  # fmt: skip
def test_what_is_another_instruction_looks_otherwise(one, other):
    assert spelling(one) != spelling(other)


def test_slothy_is_answered():
    forms = {MULTIPLY: cost(Operation((0, 1)), op2_op1=4.0, op4_op1=2.0), LOAD: cost(Operation((2,)))}
    forms[LOAD] = msgspec.structs.replace(forms[LOAD], ranges={"op2->op1": (3.0, 5.0)})
    names = target(by_name("slothy").write(model(**forms)).text)
    one, load = Instruction("fmadd d4, d1, d2, d3"), Instruction("ldr x3, [x4, #24]")
    unit = names["ExecutionUnit"]
    assert names["issue_rate"] == 6
    assert names["get_units"](one) == [unit.P_0, unit.P_1]
    assert names["get_units"](load) == [unit.P_2]
    assert [names["get_latency"](found, 0, None) for found in (one, load)] == [4, 5]
    assert names["get_inverse_throughput"](one) == 1
    with pytest.raises(KeyError, match="no cost of"):
        names["get_latency"](Instruction("sdiv x0, x1, x2"), 0, None)


def test_several_units_are_taken_together():
    form = cost(Operation((0, 1)), Operation((2,), 1, 3), op2_op1=4.0)
    names = target(by_name("slothy").write(model(**{MULTIPLY: form})).text)
    one, unit = Instruction("fmadd d4, d1, d2, d3"), names["ExecutionUnit"]
    assert names["get_units"](one) == [[unit.P_0, unit.P_2], [unit.P_1, unit.P_2]]
    assert names["get_inverse_throughput"](one) == 3
    names = target(by_name("slothy").write(model(**{MULTIPLY: cost(Operation((0, 1), 3), op2_op1=4.0)})).text)
    assert names["get_units"](one) == [[names["ExecutionUnit"].P_0, names["ExecutionUnit"].P_1]]
    assert names["get_inverse_throughput"](one) == 2


def test_what_is_not_known_is_left_out():
    forms = {
        MULTIPLY: cost(Operation((0,))),
        LOAD: FormCost(1.0),
        ADD: cost(op2_op1=0.0),
        "LDRWui": cost(Operation((2,)), op2_op1=4.0),
    }
    left = {item.place: item.reason for item in by_name("slothy").write(model(**forms)).left_out}
    assert left == {
        MULTIPLY: "its latency is not known", LOAD: "its ports are not known",
        ADD: "it takes no unit, which SLOTHY has no word for",
    }  # fmt: skip
    with pytest.raises(FormatError, match="x86-64"):
        by_name("slothy").write(exchanged(1))
    with pytest.raises(FormatError, match="no form whose ports"):
        by_name("slothy").write(model(**{LOAD: FormCost(1.0)}))


def test_names_are_no_code():
    forms = {LOAD: cost(Operation((0,)), op2_op1=4.0)}
    nasty = msgspec.structs.replace(
        model(**forms), name='x""";raise(SystemExit)#', ports=("'''0);import_os", "1", "2", "3", "4", "a\nb")
    )
    names = target(by_name("slothy").write(nasty).text)
    assert names["get_units"](Instruction("ldr x0, [x1]")) == [names["ExecutionUnit"].P____0__import_os]


def test_it_is_read_again_without_being_run(tmp_path):
    forms = {MULTIPLY: cost(Operation((0, 1)), op2_op1=4.0, op3_op1=4.0, op4_op1=4.0),
             LOAD: cost(Operation((2, 3), 2), op2_op1=5.0)}  # fmt: skip
    path = tmp_path / "target.py"
    path.write_text("raise SystemExit\n" + by_name("slothy").write(model(**forms)).text)
    found = by_name("slothy").read(path, ImportRequest("again", "a file", isa="aarch64")).model
    assert found.core.width == 6
    ranges = found.forms[MULTIPLY].ranges
    assert {"op2->op1", "op3->op1", "op4->op1"} <= ranges.keys()
    assert set(ranges.values()) == {(0.0, 4.0)}, "which source it was is not said"
    for form, ports, count in ((MULTIPLY, ("0", "1"), 1), (LOAD, ("2", "3"), 2)):
        (operation,) = found.forms[form].operations
        assert (tuple(found.ports[p] for p in operation.ports), operation.count) == (ports, count)


NOT_COSTS = ("[[],1,1]", "[[[]],1,1]", '[[["P_0"]],0,1]', '[[["P_0"]],1,-1]', '[[["0"]],1,1]',
             '[[["P_0"]],1,9e99]', '[[["P_0"]],1,2000000]', "[]", "7")  # fmt: skip


@pytest.mark.parametrize("value", NOT_COSTS)
def test_costs_that_cannot_be_are_refused(value, tmp_path):
    path = tmp_path / "target.py"
    good = '"fmadd d, d, d, d": [[["P_0"]],1,4]'
    table = f'{{{good}, "ldr x, [x, #]": {value}}}'
    path.write_text(f"COSTS = json.loads(r'''{table}''')\n")
    found = by_name("slothy").read(path, ImportRequest("m", "f", isa="aarch64"))
    assert list(found.model.forms) == [MULTIPLY]
    assert len(found.refused) == 1


def test_slothys_own_targets_are_refused(tmp_path):
    path = tmp_path / "cortex_a55.py"
    path.write_text("execution_units = {\n    vadd: ExecutionUnit.VEC0,\n}\n")
    with pytest.raises(FormatError, match="no table of costs"):
        by_name("slothy").read(path, ImportRequest("m", "f"))
