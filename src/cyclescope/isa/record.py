"""What code for all instruction sets asks about one: a record per instruction set, `isa/NAME/record.py`.

A record is data, and where to find the modules that are code. It imports nothing that is slow, for a command
line asks for all of them to know which there are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum, auto
from importlib import import_module
from types import ModuleType
from typing import cast

import msgspec

from cyclescope.isa.variants import Variants, VectorTypes


class Toolchain(msgspec.Struct, frozen=True, kw_only=True):
    """What compilers, assemblers and llvm-mca are told: names, options, directives.

    `gnu_options` are tried one after the other: an older assembler refuses newer names. `extensions` are
    allowed one by one by `allowing`, a directive with a place for the name, where a text is refused;
    `gnu_extensions` says that GNU's assembler needs that too, `fixed_options` that a text cannot change
    what clang's options allow. `features` are LLVM's names of extensions, `packages` Debian's of a
    cross compiler. LLVM's assembler wants `llvm_rewrites` of a form's text, patterns with what takes their
    place, and the word of `llvm_prefixes` for an attribute in front.
    """

    triple: str
    packages: str = ""
    gnu_names: tuple[str, ...] = ()
    gnu_options: tuple[tuple[str, ...], ...] = ((),)
    gnu_extensions: bool = False
    llvm_mc_options: tuple[str, ...] = ()
    clang_options: tuple[str, ...] = ()
    fixed_options: bool = False
    allowing: str = ""
    extensions: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    header: str = ".text"
    osaca_options: tuple[str, ...] = ()
    llvm_rewrites: tuple[tuple[str, str], ...] = ()
    llvm_prefixes: Mapping[str, str] = {}


class Writing(msgspec.Struct, frozen=True, kw_only=True):
    """How assembly text looks, as regular expressions where nothing else is said.

    `comments` begin one anywhere, `whole_line` at the beginning of a line only. `operands` and `mnemonics`
    tell the instruction set of a text, `vectors` how much vector state it needs, by names of
    `measure.bench.VECTOR_LEVELS`, the most first; `other_mode` is a directive of code for 32 bits,
    `mode_note` what is said where that is read all the same (else it is refused). `att` is what AT&T's syntax
    alone has, where there is Intel's, too. `listed` is what disassemblers call the instruction set, `words`
    are the sizes in bytes of code that they print as one number. `header` stands before an example.
    """

    comments: tuple[str, ...]
    listed: str
    operands: str = r"(?!)"
    mnemonics: str = r"(?!)"
    whole_line: str = ""
    vectors: Mapping[str, str] = msgspec.field(default_factory=lambda: {"float": ""})
    other_mode: str = ""
    mode_note: str = ""
    att: str = ""
    words: tuple[int, ...] = ()
    header: str = ""


class Relocations(msgspec.Struct, frozen=True, kw_only=True):
    """Kinds of relocations in ELF files that mean something of their own.

    `hints` tell a linker how it may shorten code, `relative` count from the end of an instruction, with what
    is written behind the symbol then. `branch_fields` are where, from a branch's end, its target may be,
    none where that is its beginning. `joint_jump` are the low seven bits of a jump whose target the
    instruction before it may make. `sums` are of debugging information: the sign with which a symbol is
    added to what is there (0: it takes its place), and bytes.
    """

    hints: tuple[int, ...] = ()
    relative: Mapping[int, str] = {}
    branch_fields: tuple[int, ...] = ()
    joint_jump: int = -1
    sums: Mapping[int, tuple[int, int]] = {}


class Markers(msgspec.Struct, frozen=True, kw_only=True):
    """Markers of regions that are instructions: a move of a number, then some bytes.

    `moves` are mnemonics with the registers that they load, `stored` begins a store of the number in place of
    both; `tool` is whose markers they are.
    """

    codes: tuple[bytes, ...] = ()
    moves: Mapping[str, Sequence[tuple[str, int]]] = {}
    stored: bytes = b""
    tool: str = "OSACA"


class GeneralRegisters(msgspec.Struct, frozen=True, kw_only=True):
    """General registers by number, and who uses them.

    Programs' code may not use those that are `kept` for the runner; those in `set_apart` (the stack pointer,
    what is always 0) never count its trips; `untouched` are left as they are at the start. `zero` is LLVM's
    name of a register that is always 0 though its name is a usual one. A snippet may not use the `counter`
    (a regular expression), nor `marks` where reads of the clock are within it; `start` says where its
    pointers point, `usual` what vectors machine code may use.
    A write of at least `whole` bits leaves nothing of what a register held. Code has a displacement behind
    those that are `displaced`, even if it is 0.
    `conditions` is the register of condition flags, where forms have it as an operand (`Operand.fixed`).
    `has_floats`: floating-point numbers have registers of their own. `returns` are LLVM's names of registers
    that jumps keep the way back in, where those are no calls of their own. `system` are the names that forms
    have for system registers, by the number in the instruction; others are the prefix and the number.
    """

    count: int
    whole: int = 32
    kept: Collection[int] = ()
    set_apart: Collection[int] = ()
    displaced: Collection[int] = ()
    untouched: tuple[int, ...] = ()
    zero: str = ""
    counter: str = r"(?!)"
    marks: str = r"(?!)"
    start: str = ""
    usual: str = "float"
    has_floats: bool = False
    returns: tuple[str, ...] = ()
    conditions: str = ""
    system: Mapping[int, tuple[str, ...]] = {}
    system_prefix: str = ""


class FormRoles(msgspec.Struct, frozen=True, kw_only=True):
    """Ids of forms that do what many questions need; those that a table or a core lacks are left out.

    `nop` is nothing but a front-end slot, as a rule. `load` and `store` move a general register, `loads` and
    `stores` are the same of vectors. `slow` takes several cycles; `beside` is quick, and any of several ports
    does it. `simple` are forms of a slot by kind (`measure.front_end`), `sized` NOPs, one of each length.
    `moves` are beginnings of mnemonics of instructions that a core may do by renaming, `signed` of loads that
    extend the sign where others do not. `plain` are what every program uses, by what it is: on a core with
    ports each has one.
    """

    nop: str
    load: str
    store: str
    loads: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    slow: str = ""
    beside: str = ""
    simple: Mapping[str, tuple[str, ...]] = {}
    sized: tuple[str, ...] = ()
    moves: tuple[str, ...] = ()
    signed: tuple[str, ...] = ()
    plain: Mapping[str, tuple[str, ...]] = {}

    @property
    def plain_moves(self) -> tuple[str, ...]:
        """Plain loads and stores."""
        return (self.load, self.store, *self.loads, *self.stores)


class ResultKind(Enum):
    """What an instruction writes to a general register, made of its operands in the order of the assembler.

    `SUM`, `DIFFERENCE`, `SHIFTED` (to the left) and `PRODUCT` are of the last two, `UP` and `DOWN` are one
    more and one less, `MOVED` is the second, `ADDRESS` what memory would be accessed at, `LOADED` what is
    there. `SAME_IS_ZERO` says that two equal ones give 0, `OF_ZERO` that the last is moved where the one
    before it is 0, `BIT_FIELD` is AArch64's move of one, of which shifts to the left are made.
    """

    MOVED = auto()
    ADDRESS = auto()
    LOADED = auto()
    SUM = auto()
    DIFFERENCE = auto()
    UP = auto()
    DOWN = auto()
    SHIFTED = auto()
    PRODUCT = auto()
    SAME_IS_ZERO = auto()
    OF_ZERO = auto()
    BIT_FIELD = auto()


class ElementRules(msgspec.Struct, frozen=True, kw_only=True):
    """How wide the elements of vectors are, as regular expressions of whole mnemonics.

    `floats` and `integers` compute with elements of the form's type, `changing` have two types, `untyped`
    move anything whatever type the table has for it. `typed` says that a form's memory operand has a type at
    all. `pairs` access two of what they move, `parts` a number of bytes that their registers do not say.
    `listed` is of ids: a group `letter` is one of `letters` (bytes), a group `bits` a number.
    """

    floats: str = r"(?!)"
    integers: str = r"(?!)"
    changing: str = r"(?!)"
    untyped: str = r"(?!)"
    typed: bool = False
    pairs: str = r"(?!)"
    parts: Mapping[str, int] = {}
    listed: str = r"(?!)"
    letters: Mapping[str, int] = {}


class CostClasses(msgspec.Struct, frozen=True, kw_only=True):
    """Which mnemonics cost alike, as on the machines that are drawn at random; VEX's letter is left out.

    `divisions` and `multiplications` are beginnings. `moves` do nothing else where both sides are alike,
    `microcoded` are long sequences whatever their attributes say. `outside` wait for what is behind a core:
    the caches of all others, a source of random numbers, whoever runs a virtual machine.
    """

    zero_idioms: Collection[str] = ()
    divisions: tuple[str, ...] = ()
    multiplications: tuple[str, ...] = ()
    simple: Collection[str] = ()
    moves: Collection[str] = ()
    microcoded: Collection[str] = ()
    outside: Collection[str] = ()


class MnemonicKinds(msgspec.Struct, frozen=True, kw_only=True):
    """Mnemonics by what code for all instruction sets asks about them: see `isa.registry.mnemonics`.

    `streaming` begin stores that go around the caches. `idioms` begin, without VEX's letter, those of which
    vendors' optimization manuals say that one register for both sources makes a zero idiom or breaks the
    dependency (Intel: dependency breaking idioms; AMD: zeroing idioms). `counting` begin branches that count
    beside what they test. `reloads` load a general register whole, `fillers` do nothing but move between
    registers; `moving` is in the names of all moves. What is `answered` is so by the machine around a core,
    what is `ordered` waits for what is before it, or holds up what is behind: barriers of code and memory.
    `modes` set how the core does what follows, with more work where that changes.
    `exchanges` leave in each operand what was in the other, `sums` put a sum in the place of one of both.

    On simulated cores `after_moves` may share a slot with one of `copies` to their target.
    """

    streaming: tuple[str, ...] = ()
    idioms: tuple[str, ...] = ()
    counting: tuple[str, ...] = ()
    reloads: tuple[str, ...] = ()
    fillers: tuple[str, ...] = ()
    moving: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    ordered: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    exchanges: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    after_moves: tuple[str, ...] = ()


class Arithmetic(msgspec.Struct, frozen=True, kw_only=True):
    """Meanings of mnemonics: `results` of those that addresses are made by, elements, costs, other kinds."""

    results: Mapping[str, ResultKind] = {}
    kinds: MnemonicKinds = MnemonicKinds()
    elements: ElementRules = ElementRules()
    costs: CostClasses = CostClasses()


class LinkRules(msgspec.Struct, frozen=True, kw_only=True):
    """Links of latency chains that are more than one instruction, by the beginnings of their names.

    `doubled` are two dependent ones. `through_vector` go from a general register to memory, or back, by way
    of a vector register. `cut_hides` says that the instruction that cuts other dependencies may take as long
    as the chain that is measured, and hide it: so it is where cores issue in order. `cut_fixed` says that
    sequences cut dependencies through fixed registers and flags, too, if they cut any.
    """

    doubled: tuple[str, ...] = ("restore.",)
    through_vector: tuple[str, ...] = ()
    cut_hides: bool = True
    cut_fixed: bool = False


NO_BLOCKERS = frozenset(
    ("atomic", "exclusive", "branch", "call", "return", "trap", "side_effects", "writeback", "compressed",
     "predicated", "merging", "zeroing", "unique_registers", "optional")
)  # fmt: skip
"""Attributes of forms of instruction sets with fields that are no blocking instructions."""


class BlockingRules(msgspec.Struct, frozen=True, kw_only=True):
    """Which forms may be blocking instructions of port experiments, and which units forms work on.

    `classes` of registers are as wide as a unit, a form has one at least; `beside` it may have others: both
    are regular expressions. `left_out` are attributes of forms that are none, `longest` the bytes that
    fetching still delivers, `accesses` loads and stores that are some, in place of `FormRoles.plain_moves`.
    A form must not read registers of `few` that it writes: too few are independent. `widest`,
    of `widest_bits`, may need units of their own; forms with an attribute of `only_widest` are blocking
    instructions on such alone.

    `files` gives register files another letter, or none. Those `in_vectors` are worked on by units of
    vectors, but masks by mnemonics that begin with `own_units`; `floats` are in the file of that letter where
    no register tells it.
    """

    classes: str
    beside: str = r"(?!)"
    left_out: Collection[str] = NO_BLOCKERS
    longest: int = 0
    accesses: tuple[str, ...] = ()
    few: str = ""
    widest: str = ""
    widest_bits: int = 0
    only_widest: Collection[str] = ()
    files: Mapping[str, str] = msgspec.field(default_factory=lambda: {"?": ""})
    in_vectors: str = ""
    own_units: str = ""
    floats: str = ""


class InstructionSet(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One instruction set.

    `name` is what users and files call it. `home` has a place for the room: `cyclescope.{}.riscv64` has its
    modules in `cyclescope.isa.riscv64`, `cyclescope.kernel.riscv64`. `runner` is its number in the runner's
    protocol, `elf` in ELF files; `machines` are names that `uname -m` has for it. `lengths` are bytes of an
    instruction by its first byte, None where only a decoder of its own tells, `longest` the most;
    instructions begin at multiples of `step` bytes, and are made longer by prefixes where it is `padded`.
    Constants in code of more than `short_constant` bits take more places of a cache of decoded instructions.
    `fixed_width` says that the table has fields of bits (`isa/fixed_width.py`), `varies` that it does not
    list all forms, `asks_files` that CPUs do not tell programs what they are, `has_configurations` that
    instructions set what vectors others work on (`isa/NAME/vector_types.py`). `llvm_operands` says that
    operands are LLVM's, in its order. `nop` is machine code, `returns` what ends functions, `identity` how
    the numbers of a CPU are shown, `default_machine` whose model is taken where nothing is known of the host.
    """

    name: str
    home: str
    runner: int
    elf: int
    machines: tuple[str, ...]
    nop: bytes
    toolchain: Toolchain
    writing: Writing
    registers: GeneralRegisters
    roles: FormRoles
    arithmetic: Arithmetic = Arithmetic()
    markers: Markers = Markers()
    links: LinkRules = LinkRules()
    blocking: BlockingRules = BlockingRules(classes=r"GPR.*")
    relocations: Relocations = Relocations()
    lengths: tuple[int, ...] | None = None
    longest: int = 4
    short_constant: int = 32
    step: int = 1
    padded: bool = False
    fixed_width: bool = True
    llvm_operands: bool = True
    varies: bool = False
    asks_files: bool = False
    has_configurations: bool = False
    identity: str = "family {family} model {model} stepping {stepping}"
    default_machine: str = ""
    returns: tuple[bytes, ...] = ()

    @property
    def folder(self) -> str:
        """The name of its folders."""
        return self.home.rpartition(".")[2]

    @property
    def tables(self) -> str:
        """The package with the folder of its tables."""
        return self.home.format("isa")

    def module(self, room: str, name: str) -> ModuleType:
        """One of its modules in a room: (`kernel`, `dialect`) is `cyclescope.kernel.NAME.dialect`."""
        return import_module(f"{self.home.format(room)}.{name}")

    @property
    def variants(self) -> Variants | None:
        """Forms that the table does not list, None where it lists all."""
        found: Variants | None = self.module("isa", "variants").VARIANTS if self.varies else None
        return found

    @property
    def vector_types(self) -> VectorTypes | None:
        """What instructions set for vectors, None where they set nothing."""
        return cast("VectorTypes", self.module("isa", "vector_types")) if self.has_configurations else None

    def length(self, first: int) -> int:
        """Bytes of the instruction that begins with a byte. Raises TypeError where a byte does not tell."""
        assert self.lengths is not None, self.name
        return self.lengths[first]
