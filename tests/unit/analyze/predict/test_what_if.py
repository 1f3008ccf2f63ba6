"""Changes of a core or of code, as people write them."""

from __future__ import annotations

import msgspec
import pytest

from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.analyze.predict.what_if import ChangedSetting, changed
from cyclescope.errors import UsageError
from cyclescope.model.facts import CACHES, CoreAnswer, Fact, level_subject
from cyclescope.model.machine import STATIC
from tests.support.code.blocks import block, toy

CODE = "mov rax, [rsi]; imul rax, rbx; imul rcx, rbx, 3; mov rsi, rax; nop"


def cycles(text, *changes, machine=None):
    setting = ChangedSetting(machine or toy(), block(text))
    for one in changes:
        setting = changed(setting, one)
    return Predictor(setting.machine).predict(setting.block).cycles


def test_one_more_port():
    assert cycles("imul rax, rbx, 3; imul rcx, rbx, 5") == 2
    assert cycles("imul rax, rbx, 3; imul rcx, rbx, 5", "port=a") == 1
    assert cycles("imul rax, rbx, 3; imul rcx, rbx, 5", "port=a", "port=a.2") == pytest.approx(2 / 3)


def test_one_more_port_is_one_more_of_the_resources_that_it_is_of_alone():
    """A core that gets work to two of its ports 4 % slower than both could take it."""
    text = "imul rax, rbx, 3; imul rcx, rbx, 5"
    some = {"pa": 1.04, "pload": 1.04, "what limits imul": 0.3}
    forms = {name: msgspec.structs.replace(cost, resources=some) for name, cost in toy().forms.items()}
    machine = msgspec.structs.replace(
        toy(), forms=forms, resources={"pa": 1.0, "pload": 1.0, "what limits imul": 1.0}
    )
    assert cycles(text, machine=machine) == pytest.approx(2.08)
    assert cycles(text, "port=b", machine=machine) == pytest.approx(2.08)
    assert cycles(text, "port=load", machine=machine) == pytest.approx(2.08)
    assert cycles(text, "port=a", "port=load", machine=machine) == pytest.approx(1.04)


@pytest.mark.parametrize(("measured", "taken"), [(1.0, 1.0), (2.0, 4.0)])
def test_one_more_port_is_not_held_up_by_what_was_measured_without_it(measured, taken):
    """What a form takes alone is what its ports allow, or else what a unit does, which stays as it is."""
    text = "imul rax, rbx, 3; imul rcx, rbx, 5"
    more = {"throughput": measured, "resources": {"a unit": 0.5}}
    forms = {name: msgspec.structs.replace(cost, **more) for name, cost in toy().forms.items()}
    machine = msgspec.structs.replace(toy(), forms=forms, resources={"a unit": 1.0})
    assert cycles(text, machine=machine) == 2 * measured
    assert cycles(text, "port=a", machine=machine) == taken
    assert cycles(text, "port=b", machine=machine) == 2 * measured


def test_one_more_port_is_single_as_the_one_beside_it():
    core = msgspec.structs.replace(toy().core, binding=STATIC, single=(0,))
    setting = ChangedSetting(msgspec.structs.replace(toy(), core=core), block(CODE))
    assert changed(setting, f"port={toy().ports[0]}").machine.core.single == (0, len(toy().ports))
    assert changed(setting, f"port={toy().ports[1]}").machine.core.single == (0,)


def test_another_front_end():
    assert (cycles("nop; " * 7 + "nop"), cycles("nop; " * 7 + "nop", "width=8")) == (2, 1)


def test_another_latency_of_a_line():
    assert cycles("imul rax, rbx; nop") == 3
    assert cycles("imul rax, rbx; nop", "latency=1:2") == 2
    assert cycles("imul rax, rbx; imul rcx, rdx", "latency=1:1,latency=2:1.5") == 2  # the port of both


@pytest.mark.parametrize(("text", "usual"), [("mov rsi, [rsi]", 4), ("imul rax, [rsi]; mov rsi, rax", 8)])
def test_a_load_from_further_away(text, usual):
    assert cycles(text) == usual
    assert cycles(text, "load=1:14") == usual + 10
    fact = Fact(CACHES, level_subject(2), CoreAnswer.VALUE, 15.0)
    machine = toy()
    known = type(machine)(
        **{name: getattr(machine, name) for name in machine.__struct_fields__} | {"facts": (fact,)}
    )
    assert cycles(text, "load=1:L2", machine=known) == usual + 11


def test_what_is_computed_with_a_register_does_not_wait_for_a_slow_load():
    assert cycles("imul rax, [rsi]") == cycles("imul rax, [rsi]", "load=1:200") == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("", "no change: ''"), ("port", "no change: 'port'"), ("port=", "no change"),
        ("x=1", "no change: 'x=1'"),
        ("port=z", "toy has no port 'z': its ports are a, b, c, load, store"),
        ("width=x", "no number of slots"),
        ("width=0", "no front end of 0 slots"), ("width=65", "no front end of 65 slots"),
        ("latency=9:1", "no instruction at '9': there are some at 1, 2, 3, 4, 5"),
        ("latency=1", "no instruction at ''"), ("latency=1:-1", "no number of cycles"),
        ("load=2:9", "loads nothing"), ("load=1:L2", "does not say how long a load from L2 takes"),
        ("port=a,", "no change: ''"), ("latency=1:1" + "0" * 99, "no number of cycles"),
    ],
)  # fmt: skip
def test_what_is_no_change_is_told(change, said):
    with pytest.raises(UsageError, match=said.replace("'", "'")):
        cycles(CODE, change)


def test_the_widest_front_end_that_is_taken():
    assert cycles("nop; nop", "width=64") == pytest.approx(1 / 32)
