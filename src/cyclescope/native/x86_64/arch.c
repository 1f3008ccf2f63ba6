/* x86-64: entering and leaving kernels, the clock, CPUID. */
#define _GNU_SOURCE
#include "../arch.h"
#include <cpuid.h>
#include <string.h>
#include <ucontext.h>

_Static_assert(offsetof(struct state, vector) == 512, "used in assembly below");
_Static_assert(offsetof(struct state, mask) == 2560, "used in assembly below");
_Static_assert(offsetof(struct state, flags) == 2816, "used in assembly below");
_Static_assert(offsetof(struct state, control) == 2824, "used in assembly below");
_Static_assert(offsetof(struct state, vector_level) == 2828, "used in assembly below");
_Static_assert(offsetof(struct state, bits) == 2830, "used in assembly below");

/* Read and written by the assembly below; hidden so that plain RIP-relative access works. */
__attribute__((visibility("hidden"))) uint64_t saved_stack, saved_code, saved_fs, saved_gs;
__attribute__((visibility("hidden"))) uint32_t kernel_mxcsr;
__attribute__((visibility("hidden"))) const uint32_t default_mxcsr = 0x1f80;
__attribute__((visibility("hidden"))) uint8_t has_avx, has_avx512, has_mask64, has_fsgsbase,
    leave_x87;

void enter_kernel(const struct state *state, const void *code);
void enter_plain(const void *code);
extern const uint8_t leave_kernel[], leave_plain[];

/* clang-format off */
__asm__(
    ".text\n"
    ".macro SAVE\n"
    "  push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
    "  mov %rsp, saved_stack(%rip)\n"
    ".endm\n"
    ".macro RESTORE\n"
    "  mov saved_stack(%rip), %rsp\n"
    "  pushq $0x202\n popfq\n"
    "  pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
    "  ret\n"
    ".endm\n"

    /* Always at the same place of a page, whatever code is in front of it: at some places copies of a block
     * take up to 12 % longer on a Zen 3, which differs with every change elsewhere. */
    ".p2align 12\n.skip 0xb90\n"
    ".globl enter_kernel\n.hidden enter_kernel\n.type enter_kernel, @function\n"
    "enter_kernel:\n"
    "  SAVE\n"
    "  mov %rsi, saved_code(%rip)\n"
    "  cmpb $0, has_fsgsbase(%rip)\n"
    "  je 1f\n"
    "  rdfsbase %rax\n mov %rax, saved_fs(%rip)\n"
    "  rdgsbase %rax\n mov %rax, saved_gs(%rip)\n"
    "1:\n"
    "  mov 2830(%rdi), %al\n and $1, %al\n mov %al, leave_x87(%rip)\n"
    "  ldmxcsr 2824(%rdi)\n"
    "  movzwl 2828(%rdi), %eax\n"
    "  cmpb $0, has_avx(%rip)\n je 2f\n vzeroupper\n2:\n"
    "  cmp $1, %eax\n jb 9f\n je 3f\n"
    "  cmp $3, %eax\n jb 4f\n je 5f\n jmp 6f\n"
    "3:\n" /* legacy SSE */
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "  movups 512+64*\\n(%rdi), %xmm\\n\n"
    ".endr\n  jmp 9f\n"
    "4:\n" /* VEX, 128 bits */
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "  vmovups 512+64*\\n(%rdi), %xmm\\n\n"
    ".endr\n  jmp 9f\n"
    "5:\n" /* VEX, 256 bits */
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "  vmovups 512+64*\\n(%rdi), %ymm\\n\n"
    ".endr\n  jmp 9f\n"
    "6:\n" /* EVEX, 512 bits, and masks */
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "  vmovups 512+64*\\n(%rdi), %zmm\\n\n"
    ".endr\n"
    "  cmpb $0, has_mask64(%rip)\n je 7f\n"
    ".irp n,0,1,2,3,4,5,6,7\n"
    "  kmovq 2560+8*\\n(%rdi), %k\\n\n"
    ".endr\n  jmp 9f\n"
    "7:\n"
    ".irp n,0,1,2,3,4,5,6,7\n"
    "  kmovw 2560+8*\\n(%rdi), %k\\n\n"
    ".endr\n"
    "9:\n"
    "  mov 32(%rdi), %rsp\n"
    "  pushq 2816(%rdi)\n popfq\n"
    "  mov 0(%rdi), %rax\n mov 8(%rdi), %rcx\n mov 16(%rdi), %rdx\n mov 24(%rdi), %rbx\n"
    "  mov 40(%rdi), %rbp\n mov 48(%rdi), %rsi\n"
    "  mov 64(%rdi), %r8\n mov 72(%rdi), %r9\n mov 80(%rdi), %r10\n mov 88(%rdi), %r11\n"
    "  mov 96(%rdi), %r12\n mov 104(%rdi), %r13\n mov 112(%rdi), %r14\n mov 120(%rdi), %r15\n"
    "  mov 56(%rdi), %rdi\n"
    "  jmp *saved_code(%rip)\n"

    ".globl leave_kernel\n.hidden leave_kernel\n"
    "leave_kernel:\n"
    "  cld\n"
    "  stmxcsr kernel_mxcsr(%rip)\n"
    "  ldmxcsr default_mxcsr(%rip)\n"
    "  cmpb $0, leave_x87(%rip)\n je 1f\n fninit\n1:\n"
    "  cmpb $0, has_avx(%rip)\n je 2f\n vzeroupper\n2:\n"
    "  cmpb $0, has_fsgsbase(%rip)\n je 3f\n"
    "  mov saved_fs(%rip), %rax\n wrfsbase %rax\n"
    "  mov saved_gs(%rip), %rax\n wrgsbase %rax\n"
    "3:\n"
    "  RESTORE\n"

    ".globl enter_plain\n.hidden enter_plain\n.type enter_plain, @function\n"
    "enter_plain:\n"
    "  SAVE\n"
    "  mov %rdi, saved_code(%rip)\n"
    "  jmp *saved_code(%rip)\n"
);
/* clang-format on */

const uint8_t arch_reference[] = {0x48, 0x01, 0xc8}; /* add rax, rcx */
const size_t arch_reference_bytes = sizeof arch_reference;
const uint8_t arch_canary[] = {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90};
const size_t arch_canary_bytes = sizeof arch_canary;

static void cpuid(uint32_t leaf, uint32_t subleaf, struct cpuid_leaf *out)
{
    out->leaf = leaf;
    out->subleaf = subleaf;
    __cpuid_count(leaf, subleaf, out->eax, out->ebx, out->ecx, out->edx);
}

uint64_t arch_xcr0(void)
{
    struct cpuid_leaf one;
    uint32_t low, high;
    cpuid(1, 0, &one);
    if (!(one.ecx >> 27 & 1))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

#include <sys/auxv.h>
#ifndef HWCAP2_FSGSBASE
#define HWCAP2_FSGSBASE (1 << 1)
#endif

static void save_bases(void)
{
    if (has_fsgsbase) {
        __asm__ volatile("rdfsbase %0" : "=r"(saved_fs));
        __asm__ volatile("rdgsbase %0" : "=r"(saved_gs));
    }
}

void arch_init(void)
{
    struct cpuid_leaf one, seven;
    uint64_t enabled = arch_xcr0();
    cpuid(1, 0, &one);
    cpuid(7, 0, &seven);
    has_avx = (one.ecx >> 28 & 1) && (enabled & 6) == 6;
    has_avx512 = (seven.ebx >> 16 & 1) && (enabled & 0xe6) == 0xe6;
    has_mask64 = has_avx512 && (seven.ebx >> 30 & 1);
    has_fsgsbase = (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE) != 0;
    save_bases(); /* a signal may come before the first kernel does */
}

static uint32_t add_leaf(struct cpuid_leaf *out, uint32_t n, uint32_t maximum, uint32_t leaf,
                         uint32_t subleaf)
{
    if (n < maximum)
        cpuid(leaf, subleaf, &out[n++]);
    return n;
}

uint32_t arch_leaves(struct cpuid_leaf *out, uint32_t maximum)
{
    uint32_t n = 0, highest = __get_cpuid_max(0, 0), extended = __get_cpuid_max(0x80000000u, 0);
    for (uint32_t leaf = 0; leaf <= highest && leaf <= 0x24; leaf++) {
        int many = leaf == 4 || leaf == 7 || leaf == 0xb || leaf == 0xd || leaf == 0x14 ||
                   leaf == 0x1f || leaf == 0x24;
        for (uint32_t sub = 0; sub < (many ? 4u : 1u); sub++)
            n = add_leaf(out, n, maximum, leaf, sub);
    }
    for (uint32_t leaf = 0x80000000u; leaf <= extended && leaf <= 0x80000022u; leaf++)
        n = add_leaf(out, n, maximum, leaf, 0);
    return n;
}

int arch_counts_cycles(void)
{
    return 0;
}

uint64_t arch_ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}

uint64_t arch_read_counter(uint32_t index)
{
    uint32_t low, high;
    __asm__ volatile("lfence\n\trdpmc\n\tlfence" : "=a"(low), "=d"(high) : "c"(index) : "memory");
    return (uint64_t)high << 32 | low;
}

void arch_call(const struct state *state, const void *code)
{
    enter_kernel(state, code);
}

void arch_call_plain(const void *code)
{
    leave_x87 = 0;
    save_bases(); /* leave_kernel restores them */
    enter_plain(code);
}

uint32_t arch_exceptions(void)
{
    return kernel_mxcsr & 0x3f;
}

void arch_signal(int signal, siginfo_t *info, void *context)
{
    if (has_fsgsbase) {
        __asm__ volatile("wrfsbase %0" ::"r"(saved_fs));
        __asm__ volatile("wrgsbase %0" ::"r"(saved_gs));
    }
    on_signal(signal, info, context);
}

void arch_recover(void)
{
    if (has_avx)
        __asm__ volatile("vzeroupper");
    __asm__ volatile("cld\n\tfninit\n\tldmxcsr default_mxcsr(%%rip)" ::: "memory");
}

uint64_t arch_fault_pc(const void *context)
{
    return (uint64_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

static uint8_t *emit(uint8_t *p, const void *bytes, size_t n)
{
    memcpy(p, bytes, n);
    return p + n;
}

uint8_t *arch_emit_counter(uint8_t *p, uint32_t trips)
{
    const uint8_t opcode[] = {0x41, 0xbf}; /* mov r15d, imm32 */
    p = emit(p, opcode, sizeof opcode);
    return emit(p, &trips, 4);
}

uint8_t *arch_emit_align(uint8_t *p)
{
    while ((uintptr_t)p & 63)
        *p++ = 0x90;
    return p;
}

uint8_t *arch_emit_idle(uint8_t *p, size_t bytes)
{
    memset(p, 0x90, bytes);
    return p + bytes;
}

void arch_emit_jump(uint8_t *p, const uint8_t *target)
{
    const uint8_t opcode[] = {0xe9};
    int32_t distance = (int32_t)(target - (p + 5));
    emit(emit(p, opcode, sizeof opcode), &distance, 4);
}

uint8_t *arch_emit_loop_end(uint8_t *p, const uint8_t *start)
{
    const uint8_t opcode[] = {0x49, 0xff, 0xcf, 0x0f, 0x85}; /* dec r15; jnz start */
    p = emit(p, opcode, sizeof opcode);
    int32_t distance = (int32_t)(start - (p + 4));
    return emit(p, &distance, 4);
}

extern const uint8_t leave_kernel_address[];
uint8_t *arch_emit_exit(uint8_t *p)
{
    const uint8_t opcode[] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp [rip] */
    const uint8_t *target = leave_kernel;
    p = emit(p, opcode, sizeof opcode);
    return emit(p, &target, 8);
}

uint8_t *arch_emit_fence(uint8_t *p)
{
    const uint8_t opcode[] = {0x0f, 0xae, 0xe8};
    return emit(p, opcode, sizeof opcode);
}

/* A locked operation starts when all stores before it are in the cache, and NOT keeps the flags. MFENCE does more:
 * behind it a Zen 5 decodes code anew that it had kept decoded. */
uint8_t *arch_emit_drain(uint8_t *p)
{
    const uint8_t opcode[] = {0xf0, 0xf7, 0x14, 0x25}; /* lock not dword [...] */
    const uint32_t nobodys = STACK_BASE;
    return arch_emit_fence(emit(emit(p, opcode, sizeof opcode), &nobodys, sizeof nobodys));
}

/* The short NOPs take the places of what was decoded before them; of the long ones no decoder brings more than it
 * has bytes for, one or two a cycle, and nothing waits for them. */
uint8_t *arch_emit_flood(uint8_t *p)
{
    static const uint8_t nop[15] = {0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84}; /* 15 bytes long */
    const size_t short_nops = 189, long_nops = 64;
    p = arch_emit_idle(arch_emit_fence(p), short_nops);
    for (size_t i = 0; i < long_nops; i++)
        p = emit(p, nop, sizeof nop);
    return p;
}

void arch_emit_padding(uint8_t *p, size_t bytes)
{
    memset(p, 0xcc, bytes);
}
