"""Links: helper instructions that carry a dependency from one register file to another.

A latency chain runs through the form under test and back through a link. Every link has a key; its
latency is measured first (see infer/timing/latency_system.py) and subtracted. Links never use eliminated
moves, zero idioms or XCHG, whose cost depends on history. Nor, between vector registers, logic where
saturating additions do: some cores take one or two cycles for simple vector operations, as full as the
scheduler is, and the same for these. A link that ends in floating-point data restores the form's value, so
that no operand decays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise

import msgspec

from cyclescope.kernel.chain import Unmeasurable
from cyclescope.kernel.instruction import Instruction
from cyclescope.kernel.place import LinkStep, Place
from cyclescope.kernel.x86_64.helpers.memory import NARROWEST, SCRATCH_VECTOR, MemoryLinks
from cyclescope.kernel.x86_64.registers import (
    ALIAS,
    CONSTANT,
    TEMPORARY,
    VECTOR_CONSTANT,
    VECTOR_ONES,
    VECTOR_ZERO,
)

_SATURATING = {
    128: "P{}USB (XMM, XMM, XMM)", 256: "P{}USB (YMM, YMM, YMM)", 512: "P{}USB (ZMM, ZMM, ZMM)",
}  # fmt: skip
CONDITIONS = {"CF": "B", "PF": "P", "ZF": "Z", "SF": "S", "OF": "O"}
SPILL = 64  # distance of the place through which x87 values reach general registers
_ONE = 0x3FF0000000000000  # the bits of 1.0
LOW_SCRATCH = 5  # RBP: reachable without a REX prefix, in no pool of high-byte forms


Emitter = Callable[[Place, Place], list[Instruction]]


class X86Helpers(MemoryLinks):
    """Links between any two places, as far as this CPU has instructions for them."""

    @cached_property
    def edges(self) -> dict[tuple[str, str], tuple[str, Emitter]]:
        """(source kind, target kind) -> (key, emitter), for one-step links."""
        found: dict[tuple[str, str], tuple[str, Emitter]] = {
            ("r", "r"): ("r>r", self._general_to_general),
            ("h", "r"): ("h>r", self._high_to_general),
            ("r", "h"): ("r>h", self._general_to_high),
            ("r", "flag"): ("r>flag", lambda s, t: [self.make("CMP_39 (R64, R64)", s.number, CONSTANT)]),
            ("flag", "r"): ("flag>r", self._flag_to_general),
            ("r", "v"): ("r>v", self._general_to_vector),
            ("v", "r"): ("v>r", self._vector_to_general),
            ("r", "mem"): ("r>mem", self._general_to_memory),
            ("mem", "r"): ("mem>r", self._memory_to_general),
            ("v", "mem"): ("v>mem", self._vector_to_memory),
            ("mem", "v"): ("mem>v", self._memory_to_vector),
            ("v", "v"): ("v>v", self._vector_to_vector),
        }
        if self.has("MOVD (MM, R32)"):
            found |= {
                ("r", "m"): ("r>m", lambda s, t: [self.make("MOVD (MM, R32)", t.number, s.number)]),
                ("m", "r"): ("m>r", lambda s, t: [self.make("MOVD (R32, MM)", t.number, s.number)]),
                ("m", "mem"): ("m>mem", self._mmx_to_memory),
                ("mem", "m"): ("mem>m", self._memory_to_mmx),
            }
        if self.has("FST (M64)"):
            found |= {
                ("x", "mem"): ("x>mem", self._x87_to_memory),
                ("mem", "x"): ("mem>x", self._memory_to_x87),
            }
        if self.avx512:
            found |= {
                ("r", "k"): ("r>k", lambda s, t: [self.make("KMOVQ (K, R64)", t.number, s.number)]),
                ("k", "r"): ("k>r", lambda s, t: [self.make("KMOVQ (R64, K)", t.number, s.number)]),
                ("v", "k"): ("v>k", self._vector_to_mask),
                ("k", "v"): ("k>v", self._mask_to_vector),
                ("k", "mem"): ("k>mem", self._mask_to_memory),
                ("mem", "k"): ("mem>k", self._memory_to_mask),
            }
        return found

    def _general_to_general(self, source: Place, target: Place) -> list[Instruction]:
        name = {8: "MOVSX (R64, R8l)", 16: "MOVSX (R64, R16)"}.get(source.width, "MOVSXD (R64, R32)")
        return [self.make(name, target.number, source.number)]

    def _high_to_general(self, source: Place, target: Place) -> list[Instruction]:
        low = target.number if target.number < 8 else LOW_SCRATCH  # AH excludes a REX prefix
        move = self.make("MOVSX (R32, R8h)", low, source.number + 4)
        return [move] if low == target.number else [move, *self._copy(low, target.number)]

    def _copy(self, source: int, target: int) -> list[Instruction]:
        return self._general_to_general(Place("r", source, 64), Place("r", target))

    def _general_to_high(self, source: Place, target: Place) -> list[Instruction]:
        n = target.number
        move = [] if source.number == n else self._general_to_general(source, Place("r", n))
        return [*move, self.make("MOV_88 (R8h, R8l)", n + 4, n)]

    def _flag_to_general(self, source: Place, target: Place) -> list[Instruction]:
        if source.flag == "AF":
            return [
                self.constant(0),
                self.make("LAHF"),
                self.make("MOVSXD (R64, R32)", target.number, 0),
            ]
        name = f"CMOV{CONDITIONS[source.flag]} (R64, R64)"
        return [self.constant(target.number), self.make(name, target.number, CONSTANT)]

    def _flag_to_double(self, source: Place, target: Place) -> tuple[Instruction, ...]:
        """1.0 in a general register, whatever the flag is: small integers are denormal as floating-point
        values, whose loads are microcoded on some cores.
        """
        n, name = target.number, f"CMOV{CONDITIONS[source.flag]} (R64, R64)"
        return self.make("MOV (R64, I64)", n, immediates=(_ONE,)), self.make(name, n, n)

    def _general_to_vector(self, source: Place, target: Place) -> list[Instruction]:
        name = "VMOVD (XMM, R32)" if self.avx else "MOVD (XMM, R32)"
        move = self.make(name, target.number, source.number)
        return [move, *self._restore(target)]

    def _restore(self, target: Place) -> list[Instruction]:
        """The form's value again, still depending on the register: all taken away, and the constant added."""
        n, width = target.number, max(target.width, 128)
        if self.has_saturating(width):
            return [
                self._saturating("SUB", n, n, VECTOR_ONES, width),
                self._saturating("ADD", n, n, VECTOR_CONSTANT, width),
            ]
        if width == 512:
            return [
                self.make("VPANDD (ZMM, ZMM, ZMM)", n, n, VECTOR_ZERO),
                self.make("VPORD (ZMM, ZMM, ZMM)", n, n, VECTOR_CONSTANT),
            ]
        return [
            self.make("VANDPS (YMM, YMM, YMM)", n, n, VECTOR_ZERO),
            self.make("VORPS (YMM, YMM, YMM)", n, n, VECTOR_CONSTANT),
        ]

    def _saturating(self, what: str, target: int, source: int, other: int, width: int) -> Instruction:
        """Bytes of `source` and `other`, added or subtracted without carry out; the target is the source
        without AVX.
        """
        if not self.avx:
            return self.make(f"P{what}USB (XMM, XMM)", target, other)
        return self.make(f"V{_SATURATING[width].format(what)}", target, source, other)

    def has_saturating(self, width: int) -> bool:
        """Whether this CPU has saturating additions of so many bits."""
        name = f"V{_SATURATING[width].format('ADD')}" if self.avx else "PADDUSB (XMM, XMM)"
        return (self.avx or width == 128) and self.has(name)

    def again(self, source: int, target: int, value: int, width: int) -> list[Instruction]:
        """target := (source AND 0) OR value, in the floating-point domain where there is one.

        Empty where the CPU has no such instructions between different registers.
        """
        if width == 512:
            names = ("VPANDD (ZMM, ZMM, ZMM)", "VPORD (ZMM, ZMM, ZMM)")
        elif width == 256:
            names = ("VANDPS (YMM, YMM, YMM)", "VORPS (YMM, YMM, YMM)")
        elif self.avx:
            names = ("VANDPS (XMM, XMM, XMM)", "VORPS (XMM, XMM, XMM)")
        elif source != target:
            return []
        else:
            cut = self.make("ANDPS (XMM, XMM)", target, VECTOR_ZERO)
            return [cut, self.make("ORPS (XMM, XMM)", target, value)]
        cut = self.make(names[0], target, source, VECTOR_ZERO)
        return [cut, self.make(names[1], target, target, value)]

    def _vector_to_general(self, source: Place, target: Place) -> list[Instruction]:
        name = "VMOVD (R32, XMM)" if self.avx else "MOVD (R32, XMM)"
        return [self.make(name, target.number, source.number)]

    def _vector_to_vector(self, source: Place, target: Place) -> list[Instruction]:
        if not self.avx:
            return [self.make("PSHUFD (XMM, XMM, I8)", target.number, source.number, immediates=(0xE4,))]
        width = max(source.width, target.width, 128)
        if self.has_saturating(width):
            return [self._saturating("ADD", target.number, source.number, VECTOR_ZERO, width)]
        name = "VPANDD (ZMM, ZMM, ZMM)" if width == 512 else "VANDPS (YMM, YMM, YMM)"
        return [self.make(name, target.number, source.number, VECTOR_ONES)]

    def bypass(self, number: int, width: int, kind: str) -> Instruction:
        """An identity in the `integer` or `fp` domain, in place, that shows the bypass delay."""
        names = {
            ("integer", 128): "VPAND (XMM, XMM, XMM)" if self.avx else "PAND (XMM, XMM)",
            ("fp", 128): "VANDPS (XMM, XMM, XMM)" if self.avx else "ANDPS (XMM, XMM)",
            ("integer", 256): "VPAND (YMM, YMM, YMM)",
            ("fp", 256): "VANDPS (YMM, YMM, YMM)",
            ("integer", 512): "VPANDD (ZMM, ZMM, ZMM)",
            ("fp", 512): "VANDPS (ZMM, ZMM, ZMM)",
        }
        registers = (number, number, VECTOR_ONES) if self.avx else (number, VECTOR_ONES)
        return self.make(names[kind, width], *registers)

    def has_bypass(self, width: int) -> bool:
        """Whether both identities exist at this width."""
        needed = {128: "PAND (XMM, XMM)", 256: "VPAND (YMM, YMM, YMM)", 512: "VANDPS (ZMM, ZMM, ZMM)"}
        return width in needed and self.has(needed[width])

    def fill(self, place: Place) -> tuple[Instruction, str]:
        """What takes a cycle or two in place in a register, and its key. Raises Unmeasurable."""
        n, width = place.number, max(place.width, 128)
        if place.kind == "r":
            return self.make("MOVSXD (R64, R32)", n, n), "r>r"
        if place.kind == "k":
            return self.make("KORD (K, K, K)", n, n, n), "k>k"
        if place.kind == "v" and self.has_saturating(width):
            return self._saturating("ADD", n, n, VECTOR_ZERO, width), f"steady.{width}"
        if place.kind == "v":
            return self.bypass(n, width, "integer"), f"bypass.integer.{width}"
        raise Unmeasurable(f"nothing fills a chain through {place.kind}")

    def _vector_to_mask(self, source: Place, target: Place) -> list[Instruction]:
        return [self.make("VPTESTNMB (K, ZMM, ZMM)", target.number, source.number, VECTOR_ZERO)]

    def _mask_to_vector(self, source: Place, target: Place) -> list[Instruction]:
        name = {512: "VPBLENDMD (ZMM, K, ZMM, ZMM)", 256: "VPBLENDMD (YMM, K, YMM, YMM)"}.get(
            target.width, "VPBLENDMD (XMM, K, XMM, XMM)"
        )
        constant = VECTOR_CONSTANT
        return [self.make(name, target.number, source.number, constant, constant)]

    def load(self, target: Place, width: int) -> Instruction | None:
        """A plain load into a register of any file, or None."""
        source = Place("mem", width=width)
        if target.kind == "r":
            names = {8: "MOVZX (R32, M8)", 16: "MOVZX (R32, M16)", 32: "MOV (R32, M32)"}
            name = names.get(width, "MOV (R64, M64)")
            return self._memory(name, (target.number, ALIAS), source)
        step = self.step(source, target)
        return step.instructions[0] if step else None

    # --- paths -----------------------------------------------------------------------------------

    @cached_property
    def _paths(self) -> dict[tuple[Place, Place], LinkStep | None]:
        return {}

    def step(self, source: Place, target: Place) -> LinkStep | None:
        """A one-step link, or None where none exists."""
        if target.kind == "mem" and source.kind in ("r", "v", "m"):
            target = msgspec.structs.replace(target, width=max(target.width, NARROWEST))
        edge = self.edges.get((source.kind, target.kind))
        if edge is None or not self._fits(source, target):
            return None
        key, emit = edge
        instructions = tuple(emit(source, target))
        extra = ("r>r",) if "h" in (source.kind, target.kind) and len(instructions) == 2 else ()
        return LinkStep(instructions, (key + _detail(source, target), *extra))

    def _fits(self, source: Place, target: Place) -> bool:
        kinds = {source.kind, target.kind}
        if "mem" not in kinds:
            return True
        width = source.width if source.kind == "mem" else target.width
        allowed = {
            "x": (32, 64),
            "r": (8, 16, 32, 64),
            "v": (32, 64, 128, 256, 512),
            "m": (32, 64),
            "k": (8, 16, 32, 64),
        }
        other = (kinds - {"mem"}).pop() if len(kinds) == 2 else ""
        if other == "v" and not self.has_vector_move(width):
            return False
        return width in allowed.get(other, ())

    def path(self, source: Place, target: Place) -> LinkStep | None:
        """The shortest way from one place to another: directly, or through up to two registers.

        Many forms ask for the same one.
        """
        ends = source, target
        if ends not in self._paths:
            self._paths[ends] = self._path(source, target)
        return self._paths[ends]

    def _path(self, source: Place, target: Place) -> LinkStep | None:
        general = Place("r", TEMPORARY, 64)
        vector = Place("v", SCRATCH_VECTOR, max(128, _vector_width(source), _vector_width(target)))
        spill = Place("mem", width=64, offset=SPILL)
        routes = [(), (general,), (vector,), (general, vector), (vector, general)]
        routes += [(spill, general), (general, spill), (spill, general, vector)]
        for middle in routes:
            found = self.through(source, middle, target)
            if found is not None:
                return found
        return None

    def through(self, source: Place, middle: tuple[Place, ...], target: Place) -> LinkStep | None:
        """The way from one place to another through given ones, or None where a step is missing."""
        places = (source, *middle, target)
        instructions: tuple[Instruction, ...] = ()
        keys: tuple[str, ...] = ()
        for a, b in pairwise(places):
            step = self.step(a, b)
            if step is None:
                return None
            as_double = a.kind == "flag" and a.flag in CONDITIONS and target.kind == "x"
            instructions += self._flag_to_double(a, b) if as_double else step.instructions
            keys += step.keys
        return LinkStep(instructions, keys)


def _vector_width(place: Place) -> int:
    return place.width if place.kind in ("v", "mem") else 0


def _detail(source: Place, target: Place) -> str:
    """What distinguishes links between the same register files: widths and flags."""
    if source.kind == "flag":
        return f".{source.flag}"
    if target.kind == "flag":
        return f".{target.flag}"
    if "mem" in (source.kind, target.kind):
        return f".{source.width if source.kind == 'mem' else target.width}"
    if target.kind == "v":
        return f".{max(target.width, source.width if source.kind == 'v' else 0, 128)}"
    return ""
