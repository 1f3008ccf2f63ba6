/* AArch64: entering and leaving kernels, the clock, what the CPU says of itself. */
#define _GNU_SOURCE
#include "../arch.h"
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>

_Static_assert(offsetof(struct state, vector) == 512, "used in assembly below");
_Static_assert(offsetof(struct state, flags) == 2816, "used in assembly below");
_Static_assert(offsetof(struct state, control) == 2824, "used in assembly below");
_Static_assert(offsetof(struct state, vector_level) == 2828, "used in assembly below");
_Static_assert(offsetof(struct state, bits) == 2830, "used in assembly below");
_Static_assert(STATE_STREAMING == 2, "bit 1, used in assembly below");

#define HIDDEN __attribute__((visibility("hidden")))

/* What C expects to find again, and what the assembly needs meanwhile. */
struct saved {
    uint64_t general[12]; /* x19 to x30 */
    uint64_t stack, platform;
    uint64_t vector[8]; /* the low halves of v8 to v15 */
    uint64_t thread, code;
};
_Static_assert(offsetof(struct saved, stack) == 96, "used in assembly below");
_Static_assert(offsetof(struct saved, vector) == 112, "used in assembly below");
_Static_assert(offsetof(struct saved, thread) == 176, "used in assembly below");
_Static_assert(offsetof(struct saved, code) == 184, "used in assembly below");

HIDDEN struct saved saved;
HIDDEN uint64_t kernel_exceptions;
HIDDEN uint8_t has_sve, has_sme;
/* The scalable registers of a state, as long as they are. */
HIDDEN uint8_t scalable_vectors[32 * LONGEST_VECTOR] __attribute__((aligned(256)));
HIDDEN uint8_t scalable_masks[16 * LONGEST_VECTOR / 8] __attribute__((aligned(256)));

void enter_kernel(const struct state *state, const void *code);
void enter_plain(const void *code);
extern const uint8_t leave_kernel[];

/* x28 counts the trips of the loop: it leads into the kernel and out of it. Where the compiler marks
 * its code for branch target identification, a branch may only lead to a landing pad. */
/* clang-format off */
__asm__(
    ".text\n.balign 4\n"
    ".macro ADDRESS register, symbol\n"
    "  adrp \\register, \\symbol\n  add \\register, \\register, :lo12:\\symbol\n"
    ".endm\n"
    ".macro SAVE code\n"
    "  ADDRESS x9, saved\n"
    "  stp x19, x20, [x9]\n  stp x21, x22, [x9, #16]\n  stp x23, x24, [x9, #32]\n"
    "  stp x25, x26, [x9, #48]\n  stp x27, x28, [x9, #64]\n  stp x29, x30, [x9, #80]\n"
    "  mov x10, sp\n  stp x10, x18, [x9, #96]\n"
    "  stp d8, d9, [x9, #112]\n  stp d10, d11, [x9, #128]\n"
    "  stp d12, d13, [x9, #144]\n  stp d14, d15, [x9, #160]\n"
    "  mrs x10, tpidr_el0\n  stp x10, \\code, [x9, #176]\n"
    ".endm\n"

    ".globl enter_kernel\n.hidden enter_kernel\n.type enter_kernel, %function\n"
    "enter_kernel:\n"
    "  SAVE x1\n"
    "  mov x28, x0\n"
    "  ldrh w10, [x28, #2828]\n"
    "  cbz w10, 9f\n"
    "  cmp w10, #4\n  b.lt 1f\n"
    "  ldrh w12, [x28, #2830]\n  tbnz w12, #1, 2f\n"
    "  ADDRESS x11, has_sve\n  ldrb w11, [x11]\n  cbz w11, 1f\n"
    "  .inst 0x252c9000\n" /* setffr */
    "  b 3f\n"
    "2: .inst 0xd503477f\n" /* smstart */
    "3: ADDRESS x11, scalable_vectors\n"
    "  ADDRESS x12, scalable_masks\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "  .inst 0x85804160 + \\n + ((\\n & 7) << 10) + ((\\n >> 3) << 16)\n" /* ldr zn, [x11, #n, mul vl] */
    ".endr\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "  .inst 0x85800180 + \\n + ((\\n & 7) << 10) + ((\\n >> 3) << 16)\n" /* ldr pn, [x12, #n, mul vl] */
    ".endr\n"
    "  b 9f\n"
    "1:\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "  ldr q\\n, [x28, #512 + 64 * \\n]\n"
    ".endr\n"
    "9:\n"
    "  ldr w10, [x28, #2824]\n  msr fpcr, x10\n  msr fpsr, xzr\n"
    "  ldr x10, [x28, #2816]\n  msr nzcv, x10\n"
    "  ldr x10, [x28, #248]\n  mov sp, x10\n"
    "  ldp x0, x1, [x28]\n  ldp x2, x3, [x28, #16]\n  ldp x4, x5, [x28, #32]\n"
    "  ldp x6, x7, [x28, #48]\n  ldp x8, x9, [x28, #64]\n  ldp x10, x11, [x28, #80]\n"
    "  ldp x12, x13, [x28, #96]\n  ldp x14, x15, [x28, #112]\n  ldp x16, x17, [x28, #128]\n"
    "  ldp x18, x19, [x28, #144]\n  ldp x20, x21, [x28, #160]\n  ldp x22, x23, [x28, #176]\n"
    "  ldp x24, x25, [x28, #192]\n  ldp x26, x27, [x28, #208]\n"
    "  ldp x29, x30, [x28, #232]\n"
    "  adrp x28, saved + 184\n  ldr x28, [x28, :lo12:saved + 184]\n"
    "  br x28\n"

    ".globl leave_kernel\n.hidden leave_kernel\n"
    "leave_kernel:\n"
    "  hint #36\n" /* bti j */
    "  ADDRESS x9, saved\n"
    "  mrs x10, fpsr\n"
    "  ADDRESS x11, kernel_exceptions\n  str x10, [x11]\n"
    "  ADDRESS x11, has_sme\n  ldrb w11, [x11]\n  cbz w11, 1f\n"
    "  .inst 0xd503467f\n" /* smstop */
    "1: msr fpsr, xzr\n  msr fpcr, xzr\n"
    "  ldr x10, [x9, #176]\n  msr tpidr_el0, x10\n"
    "  ldp d8, d9, [x9, #112]\n  ldp d10, d11, [x9, #128]\n"
    "  ldp d12, d13, [x9, #144]\n  ldp d14, d15, [x9, #160]\n"
    "  ldp x10, x18, [x9, #96]\n  mov sp, x10\n"
    "  ldp x19, x20, [x9]\n  ldp x21, x22, [x9, #16]\n  ldp x23, x24, [x9, #32]\n"
    "  ldp x25, x26, [x9, #48]\n  ldp x27, x28, [x9, #64]\n  ldp x29, x30, [x9, #80]\n"
    "  ret\n"

    ".globl enter_plain\n.hidden enter_plain\n.type enter_plain, %function\n"
    "enter_plain:\n"
    "  SAVE x0\n"
    "  br x0\n"
);
/* clang-format on */

const uint8_t arch_reference[] = {0, 0, 1, 0x8b}; /* add x0, x0, x1 */
const size_t arch_reference_bytes = sizeof arch_reference;
const uint8_t arch_canary[] = {
    0x1f, 0x20, 0x03, 0xd5, 0x1f, 0x20, 0x03, 0xd5, 0x1f, 0x20, 0x03, 0xd5, 0x1f, 0x20, 0x03, 0xd5,
    0x1f, 0x20, 0x03, 0xd5, 0x1f, 0x20, 0x03, 0xd5, 0x1f, 0x20, 0x03, 0xd5, 0x1f, 0x20, 0x03, 0xd5};
const size_t arch_canary_bytes = sizeof arch_canary;

/* --- what the CPU says -------------------------------------------------------------------------- */

#ifndef AT_HWCAP3
#define AT_HWCAP3 29
#endif
#define SVE_IN_HWCAP (1ul << 22)
#define IDENTITY_IN_HWCAP (1ul << 11)
#define SME_IN_HWCAP2 (1ul << 23)

HIDDEN uint32_t vector_bytes;
static uint32_t streaming_bytes;

void arch_init(void)
{
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(saved.thread)); /* a signal may come before a kernel */
    has_sve = (getauxval(AT_HWCAP) & SVE_IN_HWCAP) != 0;
    has_sme = (getauxval(AT_HWCAP2) & SME_IN_HWCAP2) != 0;
    register uint64_t bytes __asm__("x0") = 0;
    if (has_sve) {
        __asm__ volatile(".inst 0x04bf5020" : "+r"(bytes)); /* rdvl x0, #1 */
        vector_bytes = (uint32_t)bytes;
    }
    if (has_sme) {
        __asm__ volatile(".inst 0x04bf5820" : "+r"(bytes)); /* rdsvl x0, #1 */
        streaming_bytes = (uint32_t)bytes;
    }
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(saved.thread));
}

static struct cpuid_leaf leaf_of(uint32_t leaf, uint32_t subleaf, uint64_t first, uint64_t second)
{
    const struct cpuid_leaf made = {leaf, subleaf, (uint32_t)first, (uint32_t)(first >> 32),
                                    (uint32_t)second, (uint32_t)(second >> 32)};
    return made;
}

/* 1: MIDR_EL1 and REVIDR_EL1 where the kernel lets user space read them; 2: HWCAP and HWCAP2, 2.1:
 * HWCAP3; 3: bytes of SVE vectors and of streaming ones, frequency of the clock. */
uint32_t arch_leaves(struct cpuid_leaf *out, uint32_t maximum)
{
    uint64_t identity = 0, revision = 0, frequency;
    if (maximum < 4)
        return 0;
    if (getauxval(AT_HWCAP) & IDENTITY_IN_HWCAP) {
        __asm__ volatile("mrs %0, midr_el1" : "=r"(identity));
        __asm__ volatile("mrs %0, revidr_el1" : "=r"(revision));
    }
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(frequency));
    out[0] = leaf_of(1, 0, identity, revision);
    out[1] = leaf_of(2, 0, getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
    out[2] = leaf_of(2, 1, getauxval(AT_HWCAP3), 0);
    out[3] = leaf_of(3, 0, (uint64_t)streaming_bytes << 32 | vector_bytes, frequency);
    return 4;
}

uint64_t arch_xcr0(void)
{
    return 0;
}

int arch_counts_cycles(void)
{
    return 0;
}

/* --- clocks ------------------------------------------------------------------------------------- */

uint64_t arch_ticks(void)
{
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks)::"memory");
    return ticks;
}

#define EVENT_COUNTER(n) \
    case n: \
        __asm__ volatile("isb\n\tmrs %0, pmevcntr" #n "_el0\n\tisb" : "=r"(value)::"memory"); \
        break;

/* Index 31 is the cycle counter. */
uint64_t arch_read_counter(uint32_t index)
{
    uint64_t value = 0;
    switch (index) {
        EVENT_COUNTER(0) EVENT_COUNTER(1) EVENT_COUNTER(2) EVENT_COUNTER(3) EVENT_COUNTER(4)
        EVENT_COUNTER(5) EVENT_COUNTER(6) EVENT_COUNTER(7) EVENT_COUNTER(8) EVENT_COUNTER(9)
        EVENT_COUNTER(10) EVENT_COUNTER(11) EVENT_COUNTER(12) EVENT_COUNTER(13) EVENT_COUNTER(14)
        EVENT_COUNTER(15) EVENT_COUNTER(16) EVENT_COUNTER(17) EVENT_COUNTER(18) EVENT_COUNTER(19)
        EVENT_COUNTER(20) EVENT_COUNTER(21) EVENT_COUNTER(22) EVENT_COUNTER(23) EVENT_COUNTER(24)
        EVENT_COUNTER(25) EVENT_COUNTER(26) EVENT_COUNTER(27) EVENT_COUNTER(28) EVENT_COUNTER(29)
        EVENT_COUNTER(30)
    default:
        __asm__ volatile("isb\n\tmrs %0, pmccntr_el0\n\tisb" : "=r"(value)::"memory");
    }
    return value;
}

/* --- running ------------------------------------------------------------------------------------ */

/* Scalable registers of a state that is not the one they were made for. A worker never sees a state
 * change. */
static void expand(const struct state *state)
{
    static const struct state *made_for;
    uint32_t bytes = state->bits & STATE_STREAMING ? streaming_bytes : vector_bytes;
    if (state == made_for)
        return;
    made_for = state;
    for (unsigned n = 0; n < 32; n++)
        for (uint32_t i = 0; i < bytes; i++)
            scalable_vectors[n * bytes + i] = state->vector[n][i % sizeof state->vector[n]];
    for (unsigned n = 0; n < 16; n++)
        for (uint32_t i = 0; i < bytes / 8; i++)
            scalable_masks[n * (bytes / 8) + i] = (uint8_t)(state->mask[n] >> 8 * (i % 8));
}

void arch_call(const struct state *state, const void *code)
{
    if (state->vector_level >= VECTOR_SCALABLE)
        expand(state);
    enter_kernel(state, code);
}

void arch_call_plain(const void *code)
{
    enter_plain(code);
}

/* In the order of MXCSR: invalid, denormal, divided by zero, overflow, underflow, inexact. */
uint32_t arch_exceptions(void)
{
    uint32_t e = (uint32_t)kernel_exceptions;
    return (e & 1) | (e >> 7 & 1) << 1 | (e >> 1 & 15) << 2;
}

void arch_signal(int signal, siginfo_t *info, void *context)
{
    __asm__ volatile("msr tpidr_el0, %0" ::"r"(saved.thread));
    on_signal(signal, info, context);
}

void arch_recover(void)
{
    __asm__ volatile("msr fpcr, xzr\n\tmsr fpsr, xzr" ::: "memory");
}

uint64_t arch_fault_pc(const void *context)
{
    return ((const ucontext_t *)context)->uc_mcontext.pc;
}

/* --- code --------------------------------------------------------------------------------------- */

static uint8_t *emit(uint8_t *p, uint32_t word)
{
    memcpy(p, &word, sizeof word);
    return p + sizeof word;
}

uint8_t *arch_emit_counter(uint8_t *p, uint32_t trips)
{
    p = emit(p, 0x5280001cu | (trips & 0xffff) << 5);   /* mov w28, #low */
    return emit(p, 0x72a0001cu | (trips >> 16) << 5); /* movk w28, #high, lsl #16 */
}

uint8_t *arch_emit_align(uint8_t *p)
{
    while ((uintptr_t)p & 3) /* after a setup that is no code */
        *p++ = 0;
    while ((uintptr_t)p & 63)
        p = emit(p, 0xd503201f); /* nop */
    return p;
}

uint8_t *arch_emit_idle(uint8_t *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 4)
        p = emit(p, 0xd503201f); /* nop */
    return p;
}

void arch_emit_jump(uint8_t *p, const uint8_t *target)
{
    emit(p, 0x14000000u | ((uint32_t)((target - p) / 4) & 0x3ffffff)); /* b target */
}

/* CBNZ reaches 1 MiB. The flags are left alone. */
uint8_t *arch_emit_loop_end(uint8_t *p, const uint8_t *start)
{
    p = emit(p, 0xd100079c); /* sub x28, x28, #1 */
    if (p - start < 0x100000)
        return emit(p, 0xb500001cu | ((uint32_t)((start - p) / 4) & 0x7ffff) << 5); /* cbnz x28 */
    p = emit(p, 0xb400005c); /* cbz x28, past the branch */
    return emit(p, 0x14000000u | ((uint32_t)((start - p) / 4) & 0x3ffffff));
}

uint8_t *arch_emit_exit(uint8_t *p)
{
    const uint8_t *target = leave_kernel;
    p = emit(p, 0x5800005c); /* ldr x28, past the branch */
    p = emit(p, 0xd61f0380); /* br x28 */
    memcpy(p, &target, sizeof target);
    return p + sizeof target;
}

uint8_t *arch_emit_fence(uint8_t *p)
{
    return emit(p, 0xd5033fdf); /* isb */
}

uint8_t *arch_emit_drain(uint8_t *p)
{
    return arch_emit_fence(emit(p, 0xd5033b9f)); /* dsb ish */
}

/* ISB has what follows fetched anew. */
uint8_t *arch_emit_flood(uint8_t *p)
{
    return arch_emit_idle(arch_emit_align(arch_emit_fence(p)), 1024);
}

void arch_emit_padding(uint8_t *p, size_t bytes)
{
    memset(p, 0, bytes); /* udf #0 */
}
