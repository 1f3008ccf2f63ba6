"""Names of measured ports."""

from __future__ import annotations

import pytest

from cyclescope.infer.ports.naming import port_groups, port_names
from cyclescope.model.machine import EXTRACTED, Core, FormCost, MachineModel, Operation, Provenance

# Measured: two groups, {0, 1, 2} with a class inside another, and {3, 4}.
SETS = {"wide": (0, 1, 2), "narrow": (1,), "load": (3, 4)}
MEMBERS = {"wide": ["ADD", "SUB", "LEA"], "narrow": ["IMUL"], "load": ["MOV"]}


def known(ports="ABCDE", **usages):
    """A machine with the ports that each form's operations use, given as text."""
    forms = {
        form: FormCost(
            operations=tuple(Operation(tuple(ports.index(p) for p in some)) for some in usage.split("+"))
        )
        for form, usage in usages.items()
    }
    return MachineModel("known", "x86-64", Provenance(EXTRACTED), Core(4), tuple(ports), forms)


def names(machine, sets=SETS, members=MEMBERS, count=5):
    return port_names(count, sets, members, machine)


def test_ports_that_serve_the_same_classes_have_the_names_of_the_known_machine():
    machine = known(ADD="BCD", SUB="BCD", LEA="BCD", IMUL="C", MOV="AE")
    assert names(machine) == ("B", "C", "D", "A", "E")


def test_a_form_that_the_known_machine_has_elsewhere_is_outvoted():
    machine = known(ADD="BCD", SUB="BCD", LEA="AE", IMUL="C", MOV="AE")
    assert names(machine)[:3] == ("B", "C", "D")


def test_forms_with_more_or_fewer_ports_there_have_no_vote():
    machine = known(ADD="BCD", SUB="BC", LEA="BC", IMUL="C", MOV="AE")
    assert names(machine)[:3] == ("B", "C", "D")


def test_classes_of_the_same_ports_vote_together():
    machine = known(ADD="BCD", SUB="BCD", LEA="BCD", IMUL="C", CRC32="B", MOV="AE", PEXT="C")
    sets, members = SETS | {"alone": (1,)}, MEMBERS | {"narrow": ["IMUL", "PEXT"], "alone": ["CRC32"]}
    assert names(machine, sets, members)[:3] == ("B", "C", "D")


@pytest.mark.parametrize(
    "wrong",
    [
        {"ADD": "BC", "SUB": "BC", "LEA": "BC"},  # too few ports
        {"ADD": "BCD", "SUB": "ABD", "LEA": "ABC"},  # no majority
        {"ADD": "ABD", "SUB": "ABD", "LEA": "ABD"},  # the narrow class is not inside
        {"ADD": "BCD+A", "SUB": "BCD+A", "LEA": "BCD+A"},  # two operations
        {},
    ],
)
def test_a_group_that_does_not_match_has_neutral_names(wrong):
    machine = known(**({"IMUL": "C", "MOV": "AE"} | wrong))
    assert names(machine) == ("x0", "x1", "x2", "A", "E")


@pytest.mark.parametrize(
    ("votes", "told"), [(("BC", "BC", "CD"), True), (("BC", "CD"), False), (("BC", "BC", "CD", "BD"), False)]
)
def test_which_ports_a_class_has_there_is_told_by_more_than_half_of_it(votes, told):
    """Of a class of a Zen 5 LLVM has 35 forms at two ports, 33 or 35 at two others, by the run."""
    members = {f"F{n}": ports for n, ports in enumerate(votes)}
    machine = known(ADD="BCD", IMUL="C", ROR="CD", **members)
    sets = {"wide": (0, 1, 2), "narrow": (1,), "two": (1, 2), "votes": (0, 1)}
    of = {"wide": ["ADD"], "narrow": ["IMUL"], "two": ["ROR"], "votes": [*members]}
    assert names(machine, sets, of, 3) == (("B", "C", "D") if told else ("0", "1", "2"))


def test_a_class_that_the_known_machine_lacks_does_not_count_where_the_others_tell_all_ports_apart():
    machine = known(ADD="BCD", SUB="BCD", IMUL="C", ROR="CD", BSR="BCD")
    sets = {"wide": (0, 1, 2), "narrow": (1,), "two": (1, 2), "new": (0, 1)}
    members = {"wide": ["ADD"], "narrow": ["IMUL"], "two": ["ROR"], "new": ["BSR"]}
    assert names(machine, sets, members, 3) == ("B", "C", "D")
    del sets["two"]  # now only the new class tells 0 from 2
    assert names(machine, sets, members, 3) == ("0", "1", "2")


def test_as_many_ports_are_not_the_same_ports():
    machine = known(ADD="BCD", SUB="BC", LEA="BC")
    sets = {"wide": (0, 1, 2), "left": (0, 1), "right": (1, 2)}
    assert names(machine, sets, {"wide": ["ADD"], "left": ["SUB"], "right": ["LEA"]}, 3) == ("0", "1", "2")


def test_one_known_port_is_not_two_measured_ones():
    machine = known(ADD="BCD", SUB="BCD", LEA="BCD", IMUL="C", MOV="BD")
    assert names(machine) == ("0", "1", "2", "3", "4")


def test_without_a_known_machine_ports_are_numbers():
    assert names(None) == ("0", "1", "2", "3", "4")
    assert names(None, {"a": tuple(range(12))}, {"a": ["ADD"]}, 12)[9:] == ("9", "a", "b")


def test_a_port_of_no_class_has_a_neutral_name():
    machine = known(ADD="BCD", SUB="BCD", LEA="BCD", IMUL="C", MOV="AE")
    assert names(machine, count=6) == ("B", "C", "D", "A", "E", "x0")


def test_groups_are_joined_by_a_class_that_comes_late():
    groups = port_groups({"a": (0,), "b": (1,), "c": (2,), "d": (1, 0)})
    assert sorted(map(sorted, groups)) == [["a", "b", "d"], ["c"]]
