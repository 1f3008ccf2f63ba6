"""What the values of AArch64 and RISC-V forms are: numbers of which type, and which forms divide."""

from __future__ import annotations

import re

from cyclescope.isa.form import InstructionForm

FLOATS = ("f16", "bf16", "f32", "f64")
_FLOATING = re.compile(r"F(?!FR)|BF(?!I|M$|C$|X)|[SU]CVTF")
_LANES = re.compile(r"(?:ZPR(?:[34]b)?|FPR)(16|32|64)|Z_([hsd])")
_WRITTEN = re.compile(r"\.\d*([bhsdq])\b")
_SIZES = {"h": "f16", "s": "f32", "d": "f64", "16": "f16", "32": "f32", "64": "f64"}
# Forms whose result is no number of their source's type: of comparisons, conversions, classes and exponents,
# and of vectors with wider or narrower elements.
_OTHER_RESULT = re.compile(
    r"(F|BF)(CM(?!LA)|AC|CVT|CLASS|LOGB|MV|ML[AS]L|DOT|MMLA|MLAL|JCVT|LE|LT|EQ|GE|GT)|F(LE|LT|EQ|GE|GT)Q?\.|FJCVT"
    r"|F(MIN|MAX|MINNM|MAXNM|ADD)(V|P|QV)$|FEXPA"
    r"|VF(W|N|CLASS|CVT)|VMF|FLT\.|FLE\.|FEQ\."
)
_SCALAR_DIVISION = re.compile(r"[SU]DIV$|(C\.)?(DIV|REM)U?W?$")
_VECTOR_DIVISION = re.compile(r"[SU]DIVR?$|V(DIV|REM)U?\.")
_ROOT = re.compile(r"V?FSQRT")
_FLOAT_DIVISION = re.compile(r"V?FR?DIV")
_REVERSED = re.compile(r"[SUF]DIVR$|VFRDIV")
_COMPARE_AND_SWAP = re.compile(r"(?:RCW)?S?CAS(P?)|AMOCAS\.")


def is_floating(form: InstructionForm) -> bool:
    """Whether an AArch64 form works on floating-point numbers."""
    return bool(_FLOATING.match(form.mnemonic))


def number_type(form: InstructionForm) -> str:
    """The type of the values that a form reads.

    The table has that of the result for scalars of RISC-V, and none for AArch64's scalable vectors.
    """
    if form.configuration is None:
        sources = (op for op in form.operands if op.read and op.cls.startswith("FPR") and op.file == "f")
        scalar = next((f"f{op.width}" for op in sources), "")
        if scalar:
            return scalar
    found = _lanes(form) if is_floating(form) else ""
    return "bf16" if found == "f16" and form.mnemonic.startswith("BF") else found or form.element


def _lanes(form: InstructionForm) -> str:
    """The type of numbers in the last vector that a form of AArch64 reads, "" where it reads none."""
    sources = [op for op in form.operands if op.read and op.file == "v" and not op.fixed and not op.role]
    if not sources or form.syntax is None or form.configuration is not None:
        return ""
    size = _LANES.match(sources[-1].cls)
    written = _WRITTEN.findall(form.syntax.template)
    found = (size[1] or size[2]) if size else (written[-1] if written else "")
    return _SIZES.get(found, "")


def keeps_numbers(form: InstructionForm) -> bool:
    """Whether the result may be the next source: a number of the same type, neither 0, denormal nor NaN."""
    scalar_of_element = form.id.endswith("_indexed") and "v1i" in form.id  # it leaves 0 in the other elements
    other = scalar_of_element or _OTHER_RESULT.match(form.mnemonic)
    return number_type(form) not in FLOATS or not other


def exponent_operand(form: InstructionForm) -> int:
    """The position of the vector of whole numbers that a form adds to exponents, -1 where it has none."""
    if form.mnemonic != "FSCALE":
        return -1
    return max(n for n, op in enumerate(form.operands) if op.file == "v" and op.read and not op.write)


def is_scaling(form: InstructionForm) -> bool:
    """Whether the form multiplies by a constant that is not 1."""
    return form.mnemonic == "FMUL" and any(op.kind == "immediate" for op in form.operands)


def compared_bytes(form: InstructionForm) -> int:
    """Bytes that each register of a compare-and-swap has in memory, 0 for other forms."""
    found = _COMPARE_AND_SWAP.match(form.mnemonic)
    if found is None:
        return 0
    width = next(op.width for op in form.operands if op.is_memory)
    return min(width // (2 if found[1] else 1), 64) // 8


# --- divisions -------------------------------------------------------------------------------------


def is_integer_division(form: InstructionForm) -> bool:
    """Whether the form divides general registers."""
    return bool(_SCALAR_DIVISION.match(form.mnemonic)) and not has_vectors(form)


def is_integer_vector_division(form: InstructionForm) -> bool:
    """Whether the form divides vectors of integers."""
    return bool(_VECTOR_DIVISION.match(form.mnemonic)) and has_vectors(form)


def is_vector_division(form: InstructionForm) -> bool:
    """Whether the form divides floating-point numbers or vectors, or takes roots."""
    return is_root(form) or bool(_FLOAT_DIVISION.match(form.mnemonic)) or is_integer_vector_division(form)


def is_division(form: InstructionForm) -> bool:
    """Whether the time depends on the values."""
    return is_integer_division(form) or is_vector_division(form)


def is_root(form: InstructionForm) -> bool:
    """Whether the form takes square roots."""
    return bool(_ROOT.match(form.mnemonic))


def is_reversed(form: InstructionForm) -> bool:
    """Whether the first source is the divisor."""
    return bool(_REVERSED.match(form.mnemonic))


def has_vectors(form: InstructionForm) -> bool:
    """Whether the form works on vector registers."""
    return any(op.file == "v" for op in form.operands)


def integer_bits(form: InstructionForm) -> int:
    """Bits of the integers that a form divides."""
    if form.configuration is not None:
        return form.configuration.sew
    if has_vectors(form):
        lanes = (_LANES.match(op.cls) for op in form.operands)
        found = next((match[1] or match[2] for match in lanes if match), "64")
        return {"h": 16, "s": 32, "d": 64}.get(found) or int(found)
    return 32 if form.mnemonic.endswith("W") or form.operands[0].width == 32 else 64
