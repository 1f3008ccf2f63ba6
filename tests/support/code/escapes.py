"""Ways for measured x86-64 code to make a system call, or to harm the process that watches it.

Each attempt is assembly that a kernel consists of. `path` is where it may make a folder, `end` the address
behind the kernel, where the runner's way out is: `jmp [rip]` and the address of `leave_kernel`. Symbols of
the runner are known by their distance from there, as whoever attacks would read them from the file.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from cyclescope.kernel.kernel import Kernel
from cyclescope.measure.bench import default_state

NATIVE = Path(__file__).parents[3] / "src/cyclescope/native"
TOOLS = ("cc", "as", "objcopy", "nm")
ROOM = 256  # bytes for the path
STATE = default_state(1)
MARKER = 0xDEAD000  # a fault here says that a call has returned
SYMBOLS = ("saved_stack", "syscall", "shared", "states", "fault_armed", "fault_return")

_HEAD = f"""
.set MKDIR, 83
.set MKDIR_32, 39
.set MODE, 0755
.macro RUNNER register, symbol
  mov end+6(%rip), \\register
  lea \\symbol(\\register), \\register
.endm
.macro FIND_SYSCALL from # rbx: the next 0f 05
  mov \\from, %rbx
90: inc %rbx
  cmpw $0x050f, (%rbx)
  jne 90b
.endm
.macro MKDIR_ARGUMENTS
  mov $MKDIR, %eax
  lea path(%rip), %rdi
  mov $MODE, %esi
.endm
.macro MKDIR_ARGUMENTS_32
  mov $MKDIR_32, %eax
  lea path(%rip), %rbx
  mov $MODE, %ecx
.endm
.macro TO_32_BITS
  MKDIR_ARGUMENTS_32
  mov %ecx, %ebp
  push $0x23
  lea 1f(%rip), %rdx
  push %rdx
  lretq
  .code32
1:
.endm
.macro RETURNED
  mov %rax, {MARKER:#x}
.endm
.macro FORGE_FRAME # of a signal, on the stack; rdi, rsi, rax and rbx are what the registers become
  sub $2048, %rsp
  and $-64, %rsp
  mov %rsp, %rcx
  xor %edx, %edx
91: movq $0, (%rcx,%rdx,8)
  inc %edx
  cmp $128, %edx
  jne 91b
  mov %rdi, 104(%rsp)
  mov %rsi, 112(%rsp)
  mov %rax, 144(%rsp)
  lea 1024(%rsp), %rcx
  mov %rcx, 160(%rsp)
  mov %rbx, 168(%rsp)
  movq $0x202, 176(%rsp)
  movw $0x33, 184(%rsp)
.endm
"""
_TAIL = f"""
.balign 8
path: .fill {ROOM}, 1, 0x40
end:
"""


class Attempt(NamedTuple):
    """A way out; `everywhere` if each x86-64 Linux has it where nothing stops it."""

    source: str
    everywhere: bool = True


FOLDERS = {  # attempts that make a folder
    "a system call": Attempt("MKDIR_ARGUMENTS\n syscall"),
    "one of 32 bits": Attempt("MKDIR_ARGUMENTS_32\n int $0x80", False),
    "sysenter": Attempt("MKDIR_ARGUMENTS_32\n mov %rsp, %rbp\n sysenter", False),
    "a call of the runner's own function": Attempt("""
        lea path(%rip), %rsi
        mov $MODE, %edx
        mov $MKDIR, %edi
        RUNNER %rax, syscall
        call *%rax"""),
    "a jump to any such instruction in the runner": Attempt("""
        mov end+6(%rip), %rcx
        FIND_SYSCALL %rcx
        MKDIR_ARGUMENTS
        jmp *%rbx"""),
    "int 0x80 in 32-bit mode": Attempt("TO_32_BITS\n int $0x80", False),
    "syscall in 32-bit mode": Attempt("TO_32_BITS\n syscall", False),
    "sysenter in 32-bit mode": Attempt(
        "TO_32_BITS\n push %ecx\n push %edx\n push %ebp\n mov %esp, %ebp\n sysenter", False
    ),
    "a number of x32": Attempt("MKDIR_ARGUMENTS\n or $0x40000000, %eax\n syscall", False),
    "the vDSO's system call": Attempt("""
        RUNNER %rax, saved_stack
        mov (%rax), %rax
      1: add $8, %rax # to the vectors that the kernel has left above: AT_SYSINFO_EHDR
        cmpq $33, (%rax)
        jne 1b
        mov 8(%rax), %rcx
        test $0xfff, %ecx
        jnz 1b
        mov %rcx, %rdx
        shr $41, %rdx
        cmp $0x3f, %edx # 7e... or 7f...: it is drawn with the stack and the libraries
        jne 1b
        FIND_SYSCALL %rcx
        MKDIR_ARGUMENTS
        jmp *%rbx"""),
    "a forged signal frame": Attempt("""
        mov end+6(%rip), %rcx
        FIND_SYSCALL %rcx
        MKDIR_ARGUMENTS
        FORGE_FRAME
        mov $15, %eax
        jmp *%rbx"""),
    "a forged signal frame, in 32-bit mode": Attempt(
        """
        mov end+6(%rip), %rcx
        FIND_SYSCALL %rcx
        lea 1f(%rip), %rax
        xchg %rax, %rbx
        FORGE_FRAME
        lea path(%rip), %rcx
        mov %rcx, 128(%rsp) # rbx
        movq $MKDIR_32, 144(%rsp) # rax
        movq $MODE, 152(%rsp) # rcx
        movw $0x23, 184(%rsp) # cs
        movw $0x2b, 190(%rsp) # ss
        mov %rax, %rdx
        mov $15, %eax
        jmp *%rdx
        .code32
      1: int $0x80""",
        False,
    ),
    "a forged stack for the way back to C": Attempt("""
        RUNNER %rax, syscall
        mov %rax, -72(%rsp)
        lea -120(%rsp), %rcx
        RUNNER %rax, saved_stack
        mov %rcx, (%rax)
        mov $MKDIR, %edi
        lea path(%rip), %rsi
        mov $MODE, %edx
        jmp end"""),
    "C code that returns into the kernel": Attempt("""
        RUNNER %rax, saved_stack
        mov (%rax), %rcx
        lea 1f(%rip), %rax
        mov %rax, 48(%rcx)
        jmp end
      1: lea path(%rip), %rsi
        mov $MODE, %edx
        mov $MKDIR, %edi
        RUNNER %rax, syscall
        call *%rax"""),
    "a child process": Attempt("""
        mov $57, %eax
        syscall
        test %eax, %eax
        jnz 1f
        MKDIR_ARGUMENTS
        syscall
        mov $231, %eax
        xor %edi, %edi
        syscall
      1: mov $10000000, %ecx # what it does can be seen when this has ended
      2: loop 2b"""),
    "another thread": Attempt("""
        mov $56, %eax
        mov $0x50f00, %edi # CLONE_VM, ..., CLONE_THREAD
        lea -4096(%rsp), %rsi
        xor %edx, %edx
        xor %r10d, %r10d
        xor %r8d, %r8d
        syscall
        test %eax, %eax
        jnz 1f
        MKDIR_ARGUMENTS
        syscall
        movl $1, (%rsp)
        mov $60, %eax
        syscall
      1: cmpl $1, -4096(%rsp)
        jne 1b"""),
}

RETURNS = {  # attempts that show by coming back
    "the vsyscall page": Attempt(
        "xor %edi, %edi\n mov $0xffffffffff600400, %rax\n call *%rax\n RETURNED", False
    ),
    "another clock": Attempt("mov $228, %eax\n xor %edi, %edi\n lea -64(%rsp), %rsi\n syscall\n RETURNED"),
    "the right clock, and more above": Attempt("""
        mov $228, %eax
        mov $0x100000001, %rdi
        lea -64(%rsp), %rsi
        syscall
        RETURNED"""),
    "memory that can be executed": Attempt("""
        mov $9, %eax
        xor %edi, %edi
        mov $4096, %esi
        mov $7, %edx
        mov $0x22, %r10d
        mov $-1, %r8
        xor %r9d, %r9d
        syscall
        RETURNED"""),
    "another filter": Attempt("mov $157, %eax\n mov $22, %edi\n mov $2, %esi\n syscall\n RETURNED"),
    "a ring of requests": Attempt(
        "mov $425, %eax\n mov $1, %edi\n lea -512(%rsp), %rsi\n syscall\n RETURNED"
    ),
    "a signal to itself later": Attempt("mov $37, %eax\n mov $100, %edi\n syscall\n RETURNED"),
}

KILL_PARENT = """
    mov $110, %eax
    syscall
    mov %eax, %edi
    mov $9, %esi
    mov $62, %eax
    syscall"""
WRITE_TO_PIPE = """
    mov $1, %edi
    mov $1, %esi
    lea path(%rip), %rdx
    mov $64, %ecx
    RUNNER %rax, syscall
    call *%rax"""


def call(number, *arguments):
    """A system call, and a fault at MARKER if it returns."""
    registers = ("rdi", "rsi", "rdx")
    moves = [f"mov ${value:#x}, %{register}" for register, value in zip(registers, arguments, strict=False)]
    return "\n".join([*moves, f"mov ${number:#x}, %rax", "syscall", "RETURNED"])


def forge(progress, active, then):
    """Write what the supervisor reads of a worker, then do something."""
    return f"""
        RUNNER %rax, shared
        mov (%rax), %rax
        movl ${progress:#x}, (%rax)
        movl ${active:#x}, 4(%rax)
        {then}"""


UNARMED_FAULT = """
    RUNNER %rax, fault_armed
    movl $0, (%rax)
    ud2"""
END_WELL = "xor %edi, %edi\n mov $231, %eax\n syscall"
SPOIL_STATES = """
    RUNNER %rax, states
    mov (%rax), %rdi
    mov $0x4141414141414141, %rax
    mov $4096, %ecx
    rep stosq"""
SPOIL_DATA = f"""
    mov ${MARKER:#x}, %eax
    mov %rax, 0x70030000"""
SHOW_DATA = """
    mov 0x70030000, %rax
    mov (%rax), %rax"""
SPOIL_CLOCK = """
    RUNNER %rax, shared
    mov (%rax), %rax
    movsd 24(%rax), %xmm0
    addsd %xmm0, %xmm0
    movsd %xmm0, 24(%rax)"""
SPOIL_RESULTS = """
    RUNNER %rax, saved_stack
    mov (%rax), %rax
  1: add $8, %rax # until it points to a page that starts with a record: not run
    mov (%rax), %rdi
    test $0xfff, %edi
    jnz 1b
    mov %rdi, %rdx
    shr $41, %rdx # 7e or 7f: up to a terabyte below the stack
    cmp $0x3f, %edx
    jne 1b
    cmpl $6, 8(%rdi)
    jne 1b
    mov $-1, %rax
    mov $512, %ecx
    rep stosq
""" + forge(3, 3, END_WELL)
RETURN_FROM_NO_SIGNAL = f"""
    mov ${MARKER:#x}, %eax
    lea 1f(%rip), %rbx
    FORGE_FRAME
    mov $15, %eax
    syscall
  1: mov (%rax), %rax"""
LOOP_WITHOUT_SIGNALS = """
    RUNNER %rdx, shared
    mov (%rdx), %r8
    lea 1f(%rip), %rbx
    FORGE_FRAME
    movq $-1, 296(%rsp) # the mask
    mov %r8, 40(%rsp)
    mov $15, %eax
    syscall
  1: lock incl (%r8)
    jmp 1b"""
GROW_STACK = f"""
    RUNNER %rax, saved_stack
    mov (%rax), %rax
    mov $16384, %ecx # 64 MiB
  1: sub $4096, %rax
    movq $0, (%rax)
    loop 1b
    mov %rax, {MARKER:#x}"""


class Escapes:
    """A runner, made of the sources, and kernels that know their way about in it."""

    def __init__(self, folder: Path, sources) -> None:
        self.folder = folder
        self.runner = folder / "runner"
        command = [
            "cc",
            "-O1",
            "-fno-stack-protector",
            "-DSTALL_SECONDS=1",
            f"-I{NATIVE}",
            *map(str, sources),
        ]
        for place in (("-static-pie", "-fPIE"), ("-static",)):
            done = subprocess.run([*command, *place, "-lm", "-o", str(self.runner)], check=False)
            if not done.returncode:
                break
        self.moves = "-static-pie" in place
        listed = subprocess.run(["nm", self.runner], check=True, capture_output=True, text=True).stdout
        places = {
            words[-1]: int(words[0], 16) for line in listed.splitlines() if len(words := line.split()) == 3
        }
        sets = [f".set {name}, {places[name] - places['leave_kernel']}" for name in SYMBOLS]
        self._head = "\n".join([*sets, _HEAD])

    def code(self, source: str, path: Path) -> bytes:
        """Machine code of an attempt that may make a folder."""
        text, made, code = (self.folder / f"attempt.{end}" for end in ("s", "o", "bin"))
        text.write_text(f"{self._head}\n{source}\n.code64\njmp end\n{_TAIL}")
        subprocess.run(["as", "--64", text, "-o", made], check=True)
        subprocess.run(["objcopy", "-O", "binary", "-j", ".text", made, code], check=True)
        name = str(path).encode()
        assert len(name) < ROOM
        return code.read_bytes()[:-ROOM] + name.ljust(ROOM, b"\0")

    def kernel(self, source: str, path: Path = Path("/")) -> Kernel:
        return Kernel(self.code(source, path), 1, STATE)


def missing_tool() -> str:
    return next((name for name in TOOLS if not shutil.which(name)), "")
