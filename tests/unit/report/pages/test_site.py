"""Sites of machines: what is packed is what was measured, and nothing from outside is more than text."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from cyclescope.errors import UsageError
from cyclescope.measure.kernels import ShownKernel
from cyclescope.measure.record import Record
from cyclescope.model.calibration import ClaimCalibration, TriedMixes
from cyclescope.model.machine import FormCost
from cyclescope.report.site import pages
from cyclescope.report.site.experiments import SEVERAL, Experiments, Splitter
from cyclescope.report.site.packing import FORMS, Words, packed, unpacked
from cyclescope.report.site.pages import _FIRST, site
from cyclescope.report.site.rows import columns, latency_reach
from cyclescope.report.site.writing import check_target, write_site
from cyclescope.session.subjects import Subject
from tests.support.made.models import exchanged
from tests.support.programs.read_page import NASTY, Page

NODE = shutil.which("node")
TEMPLATES = Path(pages.__file__).parent / "templates"


def kernel(form="ADD (R64, R64)", number=1, lines=("add rax, rbx",), code=b"\x48\x01\xd8", **more):
    parts = {"quantity": "latency", "source": "op1", "target": "op1", "variant": "self"} | more
    record = Record(form=form, cycles=1.0, spread=0.01, verdict="ok", count=1, links=(), id=number, **parts)
    return ShownKernel(record, code, lines)


def page(*models, **more):
    return Page(site([Subject(model) for model in models], single=True, **more)["index.html"])


# --- packing -----------------------------------------------------------------------------------------


def test_what_is_packed_is_unpacked():
    data = {"a": ["b", 1.5, None, "\u2192"], "more": list(range(1000))}
    assert unpacked(packed(data)) == data
    assert len(packed(data)) < len(json.dumps(data))


def test_what_is_packed_begins_no_element():
    assert not any("<" in packed(list(range(n, n + 50))) for n in range(300))


def test_what_is_packed_ends_no_element():
    assert not any(set("<&") & set(packed(list(range(n, n + 50)))) - {"&"} for n in range(300))


def test_kernels_are_divided_into_instructions_with_their_bytes():
    whole = kernel(lines=("add rax, rbx", "imul rcx, rdx"), code=b"\x48\x01\xd8\x48\x0f\xaf\xca")
    splitter = Splitter("x86-64")
    divided = [("add rax, rbx", b"\x48\x01\xd8"), ("imul rcx, rdx", b"\x48\x0f\xaf\xca")]
    assert splitter.split(whole) == divided
    assert splitter.split(whole) == divided, "from memory"
    again = kernel(lines=("imul rcx, rdx",), code=b"\x90\x90")
    assert splitter.split(again) == [("imul rcx, rdx", b"\x90\x90")], (
        "bytes are the kernel's, not the memory's"
    )


def test_what_cannot_be_divided_is_one_instruction():
    odd = kernel(lines=("add rax, rbx", "nop", "nop"), code=b"\x48\x01\xd8")
    assert Splitter("x86-64").split(odd) == [("add rax, rbx\nnop\nnop", b"\x48\x01\xd8")]


def test_instructions_of_several_forms_are_written_once():
    written = Experiments("x86-64")
    words, shapes = Words(), Words()
    found = [written.of([kernel(str(n), n + 1)], words, shapes) for n in range(SEVERAL + 1)]
    assert [bool(one["own"]) for one in found] == [True] * SEVERAL + [False]
    assert written.lines() == [("add rax, rbx", "4801d8")]
    assert shapes.texts == ["-1", "0"], "forms alike have one kernel"


def test_an_instruction_of_one_form_stays_its_own():
    written = Experiments("x86-64")
    words, shapes = Words(), Words()
    written.of([kernel("A", n) for n in range(1, 2 * SEVERAL)], words, shapes)
    assert written.lines() == []


# --- rows --------------------------------------------------------------------------------------------


def test_latencies_in_a_row():
    assert latency_reach(None) is None
    assert latency_reach(FormCost()) is None
    assert latency_reach(FormCost(latencies={"a->b": 3.0})) == [3]
    assert latency_reach(FormCost(latencies={"a->b": 3.0, "a->c": 4.5})) == [3, 4.5]
    bound = FormCost(latencies={"a->b": 3.0}, ranges={"a->c": (0.0, 5.0)})
    assert latency_reach(bound) == [3, 5], "an upper bound says nothing of the least"
    both = FormCost(latencies={"a->b": 3.0}, ranges={"a->b": (1.0, 9.0)})
    assert latency_reach(both) == [3], "a value goes before what is proved without it"


def test_machines_stand_beside_each_other_and_differences_are_told(table):
    first = exchanged(1)
    name = "IMUL (R64, R64)"
    cost = first.forms[name]
    slower = msgspec.structs.replace(cost, throughput=2 * cost.throughput)
    second = msgspec.structs.replace(first, name="slower", forms={**first.forms, name: slower})
    forms = [form for form in table if form.id in first.forms]
    found = columns(forms, [first, second])
    row = found["form"].index(name)
    one, other = found["machines"]
    assert other["throughput"][row] == pytest.approx(2 * one["throughput"][row], abs=0.002)
    assert "differs" not in one
    assert {row for row, bits in enumerate(other["differs"]) if bits} == {row}
    assert other["differs"][row] == 2, "the throughput alone"


# --- pages -------------------------------------------------------------------------------------------


def test_a_page_asks_for_nothing_from_elsewhere():
    found = page(exchanged(1), exchanged(2))
    assert {link for link in found.links if not link.startswith("#")} == set()
    text = site([Subject(exchanged(1))], single=True)["index.html"]
    assert re.search("default-src 'none'", text)
    assert not re.search(r"https?://|@import|url\(", text)


def test_a_page_has_every_form():
    model = exchanged(1)
    found = page(model)
    rows = unpacked(found.scripts["part-rows"])
    assert set(rows["form"]) == set(model.forms)
    head = json.loads(found.scripts["head"])
    assert head["size"] == FORMS
    cards = unpacked(found.scripts["part-0"])["forms"]
    card = cards[rows["form"].index("IMUL (R64, R64)")]
    assert card["costs"][0]["latencies"] == model.forms["IMUL (R64, R64)"].latencies
    assert "timing" not in card


def test_a_folder_has_its_cards_in_files_of_their_own(tmp_path):
    files = site([Subject(exchanged(1))], single=False)
    assert set(files) == {"index.html", "parts/0.js", "parts/lines.js"}
    assert set(Page(files["index.html"]).scripts) == {"head", "part-rows", "code"}
    size = write_site(files, tmp_path / "site")
    assert size == sum(path.stat().st_size for path in (tmp_path / "site").rglob("*") if path.is_file())
    (tmp_path / "site/parts/7.js").write_text("of a larger one before")
    write_site(files, tmp_path / "site")
    assert not (tmp_path / "site/parts/7.js").exists()


def test_what_comes_from_outside_is_text():
    model = exchanged(1)
    forms = {name: msgspec.structs.replace(cost, note=NASTY) for name, cost in model.forms.items()}
    provenance = msgspec.structs.replace(model.provenance, source=NASTY, notes=(NASTY,), missing=(NASTY,))
    nasty = msgspec.structs.replace(model, name=NASTY, forms=forms, provenance=provenance)
    rows = [{"form": NASTY, "text": NASTY, "alike": 0}]
    group = {"key": "k", "title": NASTY, "about": NASTY, "total": 1, "kinds": 1, "rows": rows, "missing": ""}
    text = site([Subject(nasty), Subject(nasty)], single=True, pages={"findings": [group]})["index.html"]
    found = Page(text)
    assert "img" not in found.tags
    assert found.tags.count("script") == text.count("</script>"), "none of them is from outside"
    assert "\x1b" not in text
    assert json.loads(found.scripts["head"])["title"].startswith("</script>")


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [("file", "file", "no folder"), ("full", "full", "other files"), ("a.html", "folder", "is a folder"),
     ("none/a.html", "", "no such folder")],
)  # fmt: skip
def test_nothing_else_is_written_over(tmp_path, name, kind, said):
    path = tmp_path / name
    if kind == "file":
        path.write_text("something")
    elif kind:
        path.mkdir()
        (path / "letter.txt").write_text("something")
    with pytest.raises(UsageError, match=said):
        check_target(path)


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "a.html").mkdir()
    with pytest.raises(OSError):
        write_site({"index.html": "text"}, tmp_path / "a.html")
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]


# --- scripts -----------------------------------------------------------------------------------------


def computed(script):
    """What an expression is, with the functions of `table.js` at hand."""
    code = f"Object.assign(globalThis, require({json.dumps(str(TEMPLATES / 'table.js'))}));"
    done = subprocess.run([NODE, "-e", f"{code} console.log(JSON.stringify({script}))"],
                          capture_output=True, text=True, check=True, timeout=60)  # fmt: skip
    return json.loads(done.stdout)


ROWS = {
    "form": ["ADD (R64, R64)", "ADD (M64, R64)", "VADDPD (ZMM, ZMM, ZMM)"],
    "words": ["ADD", "BASE", "VADDPD", "AVX512F", "1*p0", ""],
    "mnemonic": [0, 0, 2],
    "extension": [1, 1, 3],
    "machines": [
        {"latency": [[1], [1, 6], None], "throughput": [0.25, None, 0.5], "slots": [1, 2, 1],
         "ports": [4, 5, 4], "confidence": [3, 0, 1]},
        {"latency": [[1], [1], [4]], "throughput": [0.25, 1, 1], "slots": [1, 2, 1], "ports": [5, 5, 5],
         "confidence": [0, 0, 0], "differs": [0, 0, 2]},
    ],
}  # fmt: skip
EVERY = {"search": "", "extension": "", "mnemonic": "", "confidence": 0, "differing": False}


@pytest.mark.skipif(NODE is None, reason="no node")
class TestScript:
    @pytest.mark.parametrize(
        ("filter_", "rows"),
        [({}, [0, 1, 2]), ({"search": "add r64"}, [0, 1]), ({"search": "M64 add"}, [1]),
         ({"extension": "AVX512F"}, [2]), ({"mnemonic": "ADD"}, [0, 1]), ({"confidence": 2}, [0]),
         ({"differing": True}, [2]), ({"search": "nix"}, [])],
    )  # fmt: skip
    def test_filters(self, filter_, rows):
        texts = [form.lower() for form in ROWS["form"]]
        arguments = ", ".join(map(json.dumps, (ROWS, texts, EVERY | filter_)))
        assert computed(f"chosen({arguments})") == rows

    @pytest.mark.parametrize(
        ("what", "descending", "rows"),
        [("throughput", False, [0, 2, 1]), ("throughput", True, [2, 0, 1]), ("latency", True, [1, 0, 2]),
         ("ports", False, [0, 2, 1]), ("confidence", True, [0, 2, 1])],
    )  # fmt: skip
    def test_order(self, what, descending, rows):
        column = {"what": what, "machine": 0}
        arguments = ", ".join(map(json.dumps, (ROWS, [0, 1, 2], column, descending)))
        assert computed(f"ordered({arguments})") == rows, "what has no value is last both ways"

    def test_kernels_are_what_was_packed(self):
        written = Experiments("x86-64")
        words, shapes = Words(), Words()
        kernels = [
            kernel("A", 5),
            kernel("A", 9, ("imul rcx, rdx", "add rax, rbx"), b"\x48\x0f\xaf\xca\x48\x01\xd8"),
        ]
        of = written.of(kernels, words, shapes)
        arguments = ", ".join(map(json.dumps, (of, words.texts, shapes.texts)))
        first, second = computed(f"experiments({arguments})")
        assert (first["id"], second["id"], first["source"], first["verdict"]) == (5, 9, "op1", "ok")
        rest = ", ".join(map(json.dumps, (of["own"], written.lines())))
        found = computed(f"instructions({json.dumps(second['shape'])}, {rest})")
        assert found == [["imul rcx, rdx", "480fafca"], ["add rax, rbx", "4801d8"]]

    def test_base_85_is_read_as_it_is_written(self):
        every = [bytes(range(255, 255 - length, -1)) for length in range(12)]
        texts = [base64.b85encode(data).decode().replace("<", ",") for data in every]
        assert computed(f"{json.dumps(texts)}.map((text) => [...bytesOf(text)])") == list(map(list, every))

    def test_words_for_a_shell(self):
        assert computed(f"quoted({json.dumps('/tmp/a.sqlite')})") == "/tmp/a.sqlite"
        assert computed(f"""quoted({json.dumps("it's (R64)")})""") == """'it'"'"'s (R64)'"""

    @pytest.mark.parametrize(
        ("latency", "text"),
        [({"min": 3, "max": 3, "kind": "exact"}, "3"), ({"min": 3, "max": 3.5, "kind": "interval"}, "3–3.5"),
         ({"min": 0, "max": 5, "kind": "upper_bound"}, "≤ 5"), ({"min": None, "max": None}, "–"),
         ({"min": 7, "max": 7, "kind": "exact", "convention": "loads"}, "7*"),
         ({"min": 9, "max": 17, "kind": "exact", "values": {"fast": 9, "slow": 17}}, "fast 9, slow 17")],
    )  # fmt: skip
    def test_latencies_as_text(self, latency, text):
        assert computed(f"latencyText({json.dumps(latency)})") == text

    @pytest.mark.parametrize(
        ("slots", "text"), [(None, ""), (2, "2"), ([2.0, 4.0], "2–4"), ([2.0, 2.0], "probably 2")]
    )
    def test_slots_as_text(self, slots, text):
        assert computed(f"reach({json.dumps(slots)})") == text

    def test_flags_alike_share_a_column_and_others_do_not(self):
        def one(target, value):
            return {"source": "op1", "target": target, "min": value, "max": value, "kind": "exact"}

        some = [one("op1", 1), one("flags.CF", 1), one("flags.OF", 1), one("flags.AF", 2)]
        found = computed(f"matrix({json.dumps(some)})")
        assert found["sources"] == ["op1"]
        assert [column["targets"] for column in found["columns"]] == [
            ["op1"],
            ["flags.CF", "flags.OF"],
            ["flags.AF"],
        ]


# --- what else is told -------------------------------------------------------------------------------


def test_the_first_findings_are_seen_at_once_and_the_others_on_demand():
    rows = [{"form": f"F{n}", "text": f"found {n}", "alike": n} for n in range(_FIRST + 3)]
    group = {"key": "k", "title": "t", "about": "a", "total": 99, "kinds": 50, "rows": rows, "missing": ""}
    text = site([Subject(exchanged(1))], single=True, pages={"findings": [group]})["index.html"]
    seen, _, more = text.partition('id="findings"')[2].partition("<details>")
    assert seen.count("#/form/F") == _FIRST
    assert more.count("#/form/F") == 3
    assert "3 more of 42, the most telling first" in more


def test_the_calibration_of_a_machine_is_told():
    known = ClaimCalibration(
        {"high": TriedMixes(200, 190, 0.02)}, orders=(0.01, 0.05), claims=300, covered=250, refuted=7
    )
    found = page(msgspec.structs.replace(exchanged(1), calibration=known))
    words = " ".join(" ".join(found.words).split())
    assert "high 95.0% of 200 (it says 95%, mean error 2.0%)" in words
    assert "refuted 7" in words
    assert "calibration" not in " ".join(page(exchanged(1)).words)


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (("GenuineIntel 6-a7-1 znver5", "znver4"), ["znver5", "znver4"]),
        (("AMD 1 znver5, a.sqlite", "AMD 1 znver5, b.sqlite"), ["a.sqlite", "b.sqlite"]),
        (("AMD 1 znver5", "AMD 2 znver5"), ["AMD 1 znver5", "AMD 2 znver5"]),
        (("Intel 6-a7-1 unknown", "znver4"), ["Intel 6-a7-1 unknown", "znver4"]),
    ],
)
def test_narrow_columns_have_the_core_where_that_tells_machines_apart(names, short):
    models = [msgspec.structs.replace(exchanged(1), name=name) for name in names]
    head = json.loads(page(*models).scripts["head"])
    assert [machine["short"] for machine in head["machines"]] == short
    assert [machine["name"] for machine in head["machines"]] == list(names)
