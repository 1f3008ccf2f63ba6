"""What a format says is there again when it is read."""

from __future__ import annotations

import random
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from cyclescope.formats.exchange import FormatError, ImportRequest
from cyclescope.formats.osaca.operands import latency
from cyclescope.formats.registry import FORMATS, by_name, of_contents
from cyclescope.isa.table import load_table
from cyclescope.model.check import problems
from cyclescope.model.facts import FUSION, CoreAnswer, Fact, fused_subject
from cyclescope.model.machine import FormCost, MachineModel, Operation
from tests.support.files.kept import ALL, NONE, SOME, cell, counts, table
from tests.support.made.models import exchanged, plain, suited

SEEDS = (1, 2, 3)
KEPT = ("slots", "operations", "latencies", "throughput", "confidence", "idiom", "note", "ranges")


def again(model: MachineModel, name: str, tmp_path) -> MachineModel:
    path = tmp_path / "file"
    path.write_text(by_name(name).write(model).text, encoding="utf-8")
    return by_name(name).read(path, ImportRequest("again", "a file", isa=model.isa)).model


def kept(model: MachineModel, *fields: str) -> dict[str, tuple[object, ...]]:
    return {name: tuple(getattr(cost, f) for f in fields) for name, cost in plain(model).forms.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_uops_info_keeps_all_but_resources(seed, tmp_path):
    model = exchanged(seed)
    found = again(model, "uops-info", tmp_path)
    assert kept(found, *KEPT) == kept(model, *KEPT)
    assert found.core.width == model.core.width
    assert set(found.ports) == set(model.ports)


def test_uops_info_takes_doubtful_ports_for_ours_alone(tmp_path):
    """Other readers do not know how sure they are."""
    model = exchanged(1)
    name = "IMUL (R64, R64)"
    for confidence, seen in (("high", True), ("medium", True), ("low", False)):
        cost = msgspec.structs.replace(
            model.forms[name], operations=(Operation((0, 1)),), confidence=confidence
        )
        one = msgspec.structs.replace(model, forms={name: cost})
        text = by_name("uops-info").write(one).text
        assert [f' {key}="' in text for key in ("uops", "ports", "TP_ports")] == [seen] * 3
        assert 'x_ports="1*p01"' in text
        assert again(one, "uops-info", tmp_path).forms[name].operations == cost.operations


def test_uops_info_has_what_fuses_with_branches():
    model = exchanged(1)
    pairs = (
        ("IMUL (R64, R64)", "JZ (Rel8)"), ("IMUL (R64, R64)", "JB (Rel8)"),
        ("SHL (R64, I8)", "JZ (Rel8)"), ("MUL (R64)", "ADD (R64, I8)"),
    )  # fmt: skip
    answers = (CoreAnswer.FUSED, CoreAnswer.FUSED, CoreAnswer.SEPARATE, CoreAnswer.FUSED)
    facts = tuple(
        Fact(FUSION, fused_subject(*pair), answer, confidence="high")
        for pair, answer in zip(pairs, answers, strict=True)
    )
    text = by_name("uops-info").write(msgspec.structs.replace(model, facts=facts)).text
    found = [
        (node.get("string"), node.find("architecture/measurement").get("macro_fusible"))
        for node in ElementTree.fromstring(text).iter("instruction")
    ]
    assert [one for one in found if one[1]] == [("IMUL (R64, R64)", "JB (Rel8);JZ (Rel8)")]
    doubtful = tuple(msgspec.structs.replace(fact, confidence="medium") for fact in facts)
    assert (
        "macro_fusible" not in by_name("uops-info").write(msgspec.structs.replace(model, facts=doubtful)).text
    )


@pytest.mark.parametrize("name", ["uops-info", "csv"])
def test_false_dependencies_are_kept(name, tmp_path):
    """uops.info has them as latencies from an operand that is only written to itself."""
    model = exchanged(1)
    form = "MULX (R64, R64, R64)"
    latencies = {"op1.old->op1": 3.0, "op3->op1": 4.0}
    cost = msgspec.structs.replace(next(iter(model.forms.values())), latencies=latencies, ranges={})
    model = msgspec.structs.replace(model, forms={form: cost})
    assert list(problems(model)) == []
    assert again(model, name, tmp_path).forms[form].latencies == latencies


def test_only_what_is_overwritten_has_an_old_value():
    model = exchanged(1)
    cost = msgspec.structs.replace(model.forms["IMUL (R64, R64)"], latencies={"op1.old->op1": 3.0}, ranges={})
    found = problems(msgspec.structs.replace(model, forms={"IMUL (R64, R64)": cost}))
    assert any("the form has no such pair" in problem for problem in found)


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_table_keeps_all_but_ports(isa, seed, tmp_path):
    model = exchanged(seed, isa)
    fields = ("slots", "latencies", "throughput", "confidence", "note", "ranges")
    assert kept(again(model, "csv", tmp_path), *fields) == kept(model, *fields)


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_winic_keeps_throughputs_and_latencies_of_registers(isa, tmp_path):
    model = exchanged(1, isa)
    found = again(model, "winic", tmp_path)
    left = {item.place for item in by_name("winic").write(model).left_out if "name" in item.reason}
    for name, cost in model.forms.items():
        if name in left:
            continue
        assert found.forms[name].throughput == cost.throughput
        for pair, value in cost.latencies.items():
            if "data" in pair or "index" in pair or "address" in pair or "flags" in pair:
                continue
            assert found.forms[name].latencies[pair] == value


def test_winic_has_one_of_several_forms_that_is_neither_slow_nor_fast():
    costs = {"LEA_B (R64)": 0.12, "LEA_B_D8 (R64)": 0.25, "LEA_B_D32 (R64)": 0.25, "LEA_B_I (R64)": None}
    forms = {name: FormCost(1.0, (), {}, rate) for name, rate in costs.items()}
    text = by_name("winic").write(msgspec.structs.replace(exchanged(1), forms=forms)).text
    assert text.count("llvmName:        LEA64r\n") == 1
    assert "throughput:      0.25\n" in text


def test_winic_joins_flags_to_one_register_with_the_least_and_the_most(tmp_path):
    model = exchanged(1)
    name = "ADD_01 (R64, R64)"
    cost = msgspec.structs.replace(
        model.forms[name], ranges={}, latencies={"op2->flags.CF": 1.0, "op2->flags.ZF": 2.0}
    )
    found = again(msgspec.structs.replace(model, forms={name: cost}), "winic", tmp_path)
    assert found.forms[name].ranges["op2->flags.OF"] == (1.0, 2.0)


def test_exegesis_keeps_throughputs(tmp_path):
    model = exchanged(1)
    found = again(model, "exegesis-throughput", tmp_path)
    shared = found.forms.keys() & model.forms.keys()
    assert len(shared) > len(model.forms) - 4  # without string instructions and lock prefixes
    assert all(found.forms[name].throughput == model.forms[name].throughput for name in shared)


def test_exegesis_latency_is_the_most_between_registers(tmp_path):
    model = exchanged(1)
    name = "SHL (R64, I8)"
    cost = msgspec.structs.replace(model.forms[name], latencies={
        "op1->op1": 3.0, "op1->flags.CF": 8.0, "op2.address->op1": 9.0, "op2.data->op1": 7.0,
        "op1.old->op1": 5.0,
    })  # fmt: skip
    found = again(msgspec.structs.replace(model, forms={name: cost}), "exegesis-latency", tmp_path)
    assert found.forms[name].latencies == {"op1->op1": 3.0}


def test_osaca_has_the_most_of_a_range():
    table = load_table("x86-64")
    cost = FormCost(latencies={"op2->op1": 4.0}, ranges={"op1->op1": (3.0, 6.0)})
    assert latency(table["IMUL (R64, R64)"], cost) == 6.0


def test_osaca_keeps_ports_and_throughputs_of_what_it_can_tell_apart(tmp_path):
    model = exchanged(2)
    written = by_name("osaca").write(model)
    found = again(model, "osaca", tmp_path)
    left = {item.place for item in written.left_out if "else limits it" not in item.reason}
    names = [name for name in plain(model).forms if name not in left]
    assert len(names) > 5
    for name in names:
        ours, theirs = model.forms[name], found.forms[name]
        assert theirs.throughput == ours.throughput
        assert busy(theirs, found.ports) == busy(ours, model.ports)


def test_osaca_has_extending_moves_as_att_spells_them():
    model = exchanged(1)
    cost = msgspec.structs.replace(model.forms["SHL (R64, I8)"], operations=(Operation((0, 1)),))
    moves = ("MOVZX (R32, R8l)", "MOVSX (R64, R16)", "MOVSXD (R64, R32)")
    forms = dict.fromkeys((*moves, "MOV (R64, M64)", "MOV (M64, R64)"), cost)
    text = by_name("osaca").write(msgspec.structs.replace(model, forms=forms)).text
    assert [name in text for name in ("name: movzbl", "name: movswq", "name: movslq")] == [True] * 3


def busy(cost, ports) -> list[tuple[float, tuple[str, ...]]]:
    return sorted((op.count * op.cycles, tuple(sorted(ports[p] for p in op.ports))) for op in cost.operations)


@pytest.mark.parametrize("name", [f.name for f in FORMATS if f.reader and f.writer])
def test_a_file_is_known_by_its_contents_and_what_is_read_is_a_sound_model(name, tmp_path):
    path = tmp_path / "anything"
    path.write_text(by_name(name).write(suited(name, 2)).text, encoding="utf-8")
    assert of_contents(path).name == name
    found = by_name(name).read(path, ImportRequest("again", "a file")).model
    assert list(problems(found)) == []


@pytest.mark.parametrize("name", ["uops-info", "osaca", "exegesis-latency"])
def test_formats_of_one_instruction_set_refuse_the_others(name):
    with pytest.raises(FormatError, match="riscv64"):
        by_name(name).write(exchanged(1, "riscv64"))


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_operands_of_no_form_stop_a_writer(isa):
    """Every seventh form of the table, another seventh each time."""
    model = exchanged(1, isa)
    start = random.randrange(7)
    cost = msgspec.structs.replace(next(iter(model.forms.values())), latencies={}, ranges={})
    some = dict.fromkeys([*model.forms, *[form.id for form in list(load_table(isa))[start::7]]], cost)
    whole = msgspec.structs.replace(model, forms=some)
    for name in ("uops-info", "osaca", "exegesis-throughput") if isa == "x86-64" else ("winic", "csv"):
        assert by_name(name).write(whole).text, f"every seventh form from {start} on"


def test_the_page_of_limits_says_what_is_kept():
    """`python -m tests.support.files.kept` prints the table."""
    page = Path("docs/reference/format-limits.md").read_text(encoding="utf-8")
    assert "\n".join(table()) in page


def test_what_is_kept_is_counted():
    assert counts("uops-info")["latencies"] > (100, 100)
    assert counts("llvm-td")["latencies"][0] < counts("llvm-td")["latencies"][1]
    assert [cell(one) for one in ((3, 3), (1, 3), (0, 3))] == [ALL, SOME, NONE]
