"""Which constants of port inference count, and how what they change is counted."""

from __future__ import annotations

import math
from collections import Counter
from types import SimpleNamespace

from benchmarks.drawn.port_constants import ROOMS, Changed, Read, changed, compared, report, together
from benchmarks.lib.constants import mutants
from cyclescope.infer.ports.approach import read_approach
from cyclescope.measure.record import Record

BEFORE = {"add": ("1*p01", "high"), "shift": ("1*p0", "high"), "move": ("-", "low")}


def test_usages_with_other_ports_and_other_confidence_are_counted_apart():
    after = {"add": ("1*p01", "low"), "shift": ("1*p1", "high"), "load": ("1*p2", "high")}
    found = changed(BEFORE, after)
    assert found == Changed(ports=3, confidence=3, every=4)
    assert changed(BEFORE, BEFORE) == Changed(0, 0, 3)
    assert together([found, changed(BEFORE, BEFORE)]) == Changed(3, 3, 7)


def test_all_constants_of_port_inference_are_halved_and_doubled():
    found = list(mutants(ROOMS, ()))
    rooms = Counter(mutant.place.module.rpartition("/")[0] for mutant in found)
    assert rooms.keys() == set(ROOMS)
    factors = Counter(mutant.factor for mutant in found)
    assert factors[0.5] == factors[2.0] == len({mutant.place for mutant in found})


def test_one_that_changes_too_much_or_ends_inference_fails(capsys):
    one, other, third = list(mutants(ROOMS, ()))[:3]
    few, many = Changed(4, 9, 1000), Changed(5, 0, 1000)
    assert report([(one, few)], 3)[0].passed
    assert not report([(one, few), (other, many)], 3)[0].passed
    assert not report([(one, few), (third, None)], 3)[0].passed
    assert str(other) in capsys.readouterr().out


def test_what_inference_reads_of_a_store_is_read_once(table):
    """A form that may be executed by the renamer is asked for its chains, one by one."""
    names = "LEA_B (R64)", "ADD (R64, R64)"
    rows = [Record(name, "throughput", "", "", "plain x8", 1.0, 0.01, "ok", 8, ()) for name in names]
    asked = []

    def records_of(quantities, forms=None):
        asked.append(quantities)
        return [row for row in rows if row.quantity in quantities]

    store = SimpleNamespace(
        throughputs=lambda: dict.fromkeys(names, 1.0), events=list, links=dict, emulated=False,
        readings=lambda quantity: [], records_of=records_of,
    )  # fmt: skip
    read = Read(store)
    assert read_approach(read, table).ports is None
    assert [record.form for record in read.records_of(("throughput",), names[:1])] == [names[0]]
    assert len(asked) == len(set(asked))


def test_what_was_found_is_kept_and_not_looked_for_again(tmp_path):
    some, kept, said, inferred = list(mutants(ROOMS, ()))[:2], tmp_path / "changes.jsonl", [], tmp_path / "n"

    def usages():
        with inferred.open("a") as file:
            file.write("x")
        return {"add": ("1*p01", "high" if inferred.stat().st_size % 2 else "low")}

    machine = SimpleNamespace(name="drawn:1", usages=usages)
    found = [compared([machine], some[:n], 1, math.inf, kept, said.append) for n in (1, 2)]
    assert found[1] == [(m, Changed(0, 1, 1)) for m in some]
    assert inferred.stat().st_size == 4  # one before the changes in each run, and each change once
    assert len(said) == 2 and str(some[0]) in said[0]
    with kept.open("ab") as file:
        file.write(b'{"machine": "dra')
    assert len(compared([machine], some, 1, -math.inf, kept, said.append)) == 2
