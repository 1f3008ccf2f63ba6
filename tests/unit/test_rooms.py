"""The plan of the source: no folder that nobody can take in, no module that repeats the folder's name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import cyclescope
from cyclescope.isa.registry import instruction_sets
from cyclescope.isa.table import load_table

PACKAGE = Path(cyclescope.__file__).parent
ROOT = Path(__file__).parents[2]
MOST = 15  # modules in a folder; `__init__` and `conftest`, which every folder may have, are not counted
# Where instruction sets are named: what registers them, other tools' files, which are of one, and what Linux
# says of a CPU in files; probes, whose kernels are written for each.
NAMING = ("isa/registry.py", "formats/", "host/", "probe/")


def rooms() -> Iterator[tuple[Path, list[str]]]:
    """Every folder of modules with their names."""
    for init in sorted(PACKAGE.rglob("__init__.py")):
        folder = init.parent
        yield folder, sorted(path.stem for path in folder.glob("*.py") if path != init)


def repeats(folder: str, module: str) -> bool:
    """Whether a module's name says again what its folder's says, in singular or plural, and then more."""
    words = {word.rstrip("s") for word in folder.split("_")}
    return len(words) == 1 and words < {word.rstrip("s") for word in module.split("_")}


def test_folders_are_small_enough_to_be_taken_in():
    sizes = {str(folder.relative_to(PACKAGE)): len(modules) for folder, modules in rooms()}
    assert len(sizes) > 20, "all folders were found"
    assert {folder: size for folder, size in sizes.items() if size > MOST} == {}


def test_folders_of_tests_benchmarks_and_tools_are_as_small():
    files = [path for top in ("tests", "benchmarks", "tools") for path in (ROOT / top).rglob("*.py")]
    sizes = Counter(path.parent for path in files if path.stem not in ("__init__", "conftest"))
    assert len(sizes) > 40, "all folders were found"
    assert {str(folder.relative_to(ROOT)): size for folder, size in sizes.items() if size > MOST} == {}


LONGEST = 400  # lines of a file


def test_files_are_short_enough_to_be_read():
    files = [path for top in ("src", "tests", "benchmarks", "tools") for path in (ROOT / top).rglob("*.py")]
    sizes = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in files}
    assert len(sizes) > 900, "all files were found"
    assert {name: size for name, size in sizes.items() if size > LONGEST} == {}


def test_modules_do_not_repeat_the_name_of_their_folder():
    found = [
        f"{folder.name}/{module}"
        for folder, modules in rooms()
        for module in modules
        if repeats(folder.name, module)
    ]
    assert found == []


def test_every_folder_says_what_it_is_for():
    assert [
        str(folder) for folder, _ in rooms() if not (folder / "__init__.py").read_text().startswith('"""')
    ] == []


def test_what_repeats():
    assert repeats("ports", "port_usage")
    assert repeats("kernel", "kernel_state")
    assert not repeats("ports", "usage")
    assert not repeats("kernel", "kernel"), "what the folder is about"
    assert not repeats("fixed_width", "fixed")


def named_in(path: Path, names: set[str]) -> list[str]:
    """Names of instruction sets that a module has as values, not in its text for people."""
    found = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))
    return sorted({value for value in found if isinstance(value, str) and value in names})


def test_no_module_for_all_instruction_sets_names_one():
    names, folders = ({getattr(r, key) for r in instruction_sets()} for key in ("name", "folder"))
    found = {
        name: named
        for path in sorted(PACKAGE.rglob("*.py"))
        if not folders.intersection(path.parts) and path.stem not in folders
        if not (name := str(path.relative_to(PACKAGE))).startswith(NAMING)
        if (named := named_in(path, names | folders))
    }
    assert found == {}


def test_names_of_instruction_sets_are_seen(tmp_path):
    file = tmp_path / "one.py"
    file.write_text('"""Of aarch64."""\nif isa == "aarch64":\n    pass\n')
    assert named_in(file, {"aarch64"}) == ["aarch64"]


# Modules for all instruction sets that import from the folder of one: registries, each with the reason.
REGISTRIES = {
    "analyze/decode/decoder.py": "the decoder of another program, which alone knows lengths of x86-64",
    "host/cpuinfo.py": "Linux tells extensions of RISC-V in a file",
    "host/features.py": "how a CPU's features are told",
    "host/identity.py": "what a CPU's numbers mean",
}


def imported(text: str) -> set[str]:
    """Every part of a name that a module imports or imports from, wherever in it."""
    parts: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            parts.update(part for alias in node.names for part in alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            parts.update([*(node.module or "").split("."), *(alias.name for alias in node.names)])
    return parts


def test_registries_alone_import_from_the_folder_of_an_instruction_set():
    """What else wants of one stands in its record, or in a module that the record leads to."""
    folders = {record.folder for record in instruction_sets()}
    found = {
        str(path.relative_to(PACKAGE))
        for path in sorted(PACKAGE.rglob("*.py"))
        if not folders & {path.stem, *path.parts} and folders & imported(path.read_text())
    }
    assert found == REGISTRIES.keys()


def test_every_way_to_import_is_seen():
    for text in (
        "from cyclescope.isa.riscv64 import types",
        "from cyclescope.isa import riscv64",
        "import cyclescope.kernel.riscv64.special",
        "def later():\n    from cyclescope.isa.riscv64.types import sets_type",
    ):
        assert "riscv64" in imported(text)
    assert "riscv64" not in imported('"""Of riscv64."""\nfrom cyclescope.isa.table import load_table')


# Where an instruction set need not be named: the reason is who calls it.
BY_DEFAULT = {
    "analyze/choose/source.py": "scripts",
    "backend/peers/llvm_mca.py": "scripts",
    "formats/exchange.py": "most tools' files are of x86-64, and do not say it",
    "measure/bench.py": "scripts",
    "measure/store.py": "the file says it, if there is one",
    "session/blocks.py": "scripts",
    "session/machines.py": "scripts",
    "session/sources.py": "scripts",
    "session/subjects.py": "scripts",
    "simulate/draw.py": "scripts",
}


def takes_a_default(tree: ast.AST) -> bool:
    """Whether a function's or a structure's instruction set is x86-64 where nobody says another one."""
    return any(isinstance(node, ast.Name) and node.id == "DEFAULT" for node in defaults(tree))


def defaults(tree: ast.AST) -> Iterator[ast.AST]:
    """Defaults of parameters and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            yield from (value for value in (*node.defaults, *node.kw_defaults) if value is not None)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield node.value


def test_what_has_to_be_told_its_instruction_set_is():
    """Else code for all of them would take any for x86-64 where somebody forgot to say which."""
    found = {
        str(path.relative_to(PACKAGE))
        for path in sorted(PACKAGE.rglob("*.py"))
        if takes_a_default(ast.parse(path.read_text()))
    }
    assert found == BY_DEFAULT.keys()
    assert takes_a_default(ast.parse("def one(isa: str = DEFAULT): ..."))
    assert takes_a_default(ast.parse("def one(*, isa: str = DEFAULT): ..."))
    assert not takes_a_default(ast.parse("def one(isa: str): return isa or DEFAULT"))


ASKS_FOR_FIELDS = re.compile(r"(?<!assert form)(?<!assert self\.form)\.bits is (not )?None")
ASKS_FOR_TEMPLATE = re.compile(r"^(?!\s*assert).*\.encoding is (not )?None", re.MULTILINE)
OF_FIELDS = ("isa/", "kernel/fixed_width/", "analyze/decode/fixed_width.py")  # what has fields of bits
OF_TEMPLATES = (  # what encodes, or asks how long the code is
    "isa/", "kernel/", "infer/ports/candidates.py", "model/check.py", "session/search/drawing.py",
)  # fmt: skip


def test_no_module_takes_a_form_without_fields_for_one_of_x86():
    """What differs by instruction set stands in its record, which `form.isa` leads to."""
    found = {
        name
        for path in sorted(PACKAGE.rglob("*.py"))
        if not (name := str(path.relative_to(PACKAGE))).startswith(OF_FIELDS)
        if ASKS_FOR_FIELDS.search(path.read_text())
    }
    assert found == set()
    for path in sorted(PACKAGE.rglob("*.py")):
        if not str(path.relative_to(PACKAGE)).startswith(OF_TEMPLATES):
            assert not ASKS_FOR_TEMPLATE.search(path.read_text()), path
    assert ASKS_FOR_TEMPLATE.search("    if form.encoding is None:")
    assert not ASKS_FOR_TEMPLATE.search("    assert form.encoding is not None")
    assert ASKS_FOR_FIELDS.search("if form.bits is None:")
    assert not ASKS_FOR_FIELDS.search("assert form.bits is not None")


def test_every_record_names_forms_of_its_table():
    lost = []
    for record in instruction_sets():
        table, roles = load_table(record.name), record.roles
        simple = [name for names in roles.simple.values() for name in names]
        every = [roles.nop, *roles.plain_moves, roles.slow, roles.beside, *roles.sized, *simple]
        every += record.blocking.accesses
        lost += [name for name in every if name not in table]
    assert lost == []


def test_there_is_one_skeleton_of_pages():
    pages = [path for path in PACKAGE.rglob("*.html") if "<!doctype" in path.read_text().lower()]
    assert [path.name for path in pages] == ["skeleton.html"]
    whole = [path for path in PACKAGE.rglob("*.html") if '{% extends "skeleton.html" %}' in path.read_text()]
    assert len(whole) == 7


ALIGNS = re.compile(r"\.[lr]just\(|\.center\(|:[^:\"']?[<>^]\{")  # cells of a width that is computed


def test_there_is_one_printer_of_tables():
    found = {
        str(path.relative_to(PACKAGE)): len(aligning)
        for path in sorted(PACKAGE.rglob("*.py"))
        if (aligning := ALIGNS.findall(path.read_text()))
    }
    assert found == {"report/predictions/simulation.py": 1}, (
        "the lanes of a timeline are as long as its scale"
    )
    assert ALIGNS.search("f'{cell:>{width}}'")


def test_no_two_files_of_tests_have_one_name():
    """Without packages pytest takes them for one module, and runs none of them."""
    names = Counter(path.name for path in Path(__file__).parents[1].rglob("test_*.py"))
    assert {name: number for name, number in names.items() if number > 1} == {}


LIBRARIES = {
    "highspy": ["infer/timing/solver.py"],
    "elftools": ["analyze/read/binary.py", "analyze/read/dwarf.py"],
    "jinja2": ["report/pages/rendering.py"],
    "rich": ["report/progress.py", "report/tables.py"],
}


def libraries(path: Path) -> set[str]:
    """Packages that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_each_library_is_known_in_one_place():
    used = {str(path.relative_to(PACKAGE)): libraries(path) for path in sorted(PACKAGE.rglob("*.py"))}
    assert {name: [file for file, some in used.items() if name in some] for name in LIBRARIES} == LIBRARIES


# Mnemonics in code for all instruction sets, each with the reason why they are in no record.
WITH_MNEMONICS = {
    "analyze/choose/loops.py": "the ends of names of what computes with one number",
    "analyze/decode/system_registers.py": "AArch64 and RISC-V share it, each with its own moves",
    "isa/dataflow.py": "what the table has of an instruction is another than its operands say",
    "isa/text.py": "assemblers want operands unsaid",
    "measure/front_end.py": "a kind of loops",
    "model/behaviour/published.py": "what is published of cores, by their names",
    "model/behaviour/registers.py": "what is published of cores, by names of forms",
    "model/facts.py": "what a probe calls its subject",
    "report/pages/core_summary.py": "what probes call their subjects",
    "session/validation.py": "words that are in the names of slow instructions",
}


def mnemonics_in(path: Path, names: set[str]) -> list[str]:
    """Mnemonics that a module has as values."""
    return [name for name in named_in(path, names) if len(name) > 1 and name.isupper()]


def test_mnemonics_are_in_records():
    folders = {record.folder for record in instruction_sets()} | {"fixed_width"}
    names = {form.mnemonic for record in instruction_sets() for form in load_table(record.name)}
    found = {
        name: some
        for path in sorted(PACKAGE.rglob("*.py"))
        if not (folders | {"fixed_width"}).intersection(path.parts)
        and path.stem not in folders | {"fixed_width"}
        if not (name := str(path.relative_to(PACKAGE))).startswith(NAMING)
        if (some := mnemonics_in(path, names))
    }
    assert found.keys() == WITH_MNEMONICS.keys(), found
