/* RISC-V, 64 bits: entering and leaving kernels, the clock, what the CPU says of itself. */
#define _GNU_SOURCE
#include "../arch.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

_Static_assert(offsetof(struct state, scalar) == 256, "used in assembly below");
_Static_assert(offsetof(struct state, control) == 2824, "used in assembly below");
_Static_assert(offsetof(struct state, vector_level) == 2828, "used in assembly below");

#define HIDDEN __attribute__((visibility("hidden")))

/* What C expects to find again, and what the assembly needs meanwhile. */
struct saved {
    uint64_t general[12]; /* s0 to s11 */
    uint64_t link, stack, global, thread;
    uint64_t floats[12]; /* fs0 to fs11 */
    uint64_t code, control;
};
_Static_assert(offsetof(struct saved, link) == 96, "used in assembly below");
_Static_assert(offsetof(struct saved, global) == 112, "used in assembly below");
_Static_assert(offsetof(struct saved, floats) == 128, "used in assembly below");
_Static_assert(offsetof(struct saved, code) == 224, "used in assembly below");

HIDDEN struct saved saved;
HIDDEN uint8_t *scalable_vectors; /* those of a state, as long as they are; NULL without RVV */

void enter_kernel(const struct state *state, const void *code);
void enter_plain(const void *code);
extern const uint8_t leave_kernel[];

/* s11 (x27) counts the trips of the loop: it leads into the kernel and out of it. Without gp there
 * is no relaxation. */
/* clang-format off */
__asm__(
    ".text\n.option push\n.option norelax\n.balign 4\n"
    ".macro SAVE code\n"
    "  lla t0, saved\n"
    "  sd s0, 0(t0)\n sd s1, 8(t0)\n sd s2, 16(t0)\n sd s3, 24(t0)\n sd s4, 32(t0)\n sd s5, 40(t0)\n"
    "  sd s6, 48(t0)\n sd s7, 56(t0)\n sd s8, 64(t0)\n sd s9, 72(t0)\n sd s10, 80(t0)\n sd s11, 88(t0)\n"
    "  sd ra, 96(t0)\n sd sp, 104(t0)\n sd gp, 112(t0)\n sd tp, 120(t0)\n"
    "  fsd fs0, 128(t0)\n fsd fs1, 136(t0)\n fsd fs2, 144(t0)\n fsd fs3, 152(t0)\n"
    "  fsd fs4, 160(t0)\n fsd fs5, 168(t0)\n fsd fs6, 176(t0)\n fsd fs7, 184(t0)\n"
    "  fsd fs8, 192(t0)\n fsd fs9, 200(t0)\n fsd fs10, 208(t0)\n fsd fs11, 216(t0)\n"
    "  sd \\code, 224(t0)\n"
    ".endm\n"

    ".globl enter_kernel\n.hidden enter_kernel\n.type enter_kernel, @function\n"
    "enter_kernel:\n"
    "  SAVE a1\n"
    "  mv s11, a0\n"
    "  li t1, 2824\n add t1, t1, s11\n"
    "  lw t2, 0(t1)\n csrw fcsr, t2\n"
    "  lhu t2, 4(t1)\n"
    "  beqz t2, 9f\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "  fld f\\n, 256 + 8 * \\n(s11)\n"
    ".endr\n"
    "  li t3, 4\n bltu t2, t3, 9f\n"
    "  lla t3, scalable_vectors\n ld a0, 0(t3)\n beqz a0, 9f\n"
    "  .word 0x0c3072d7\n"             /* vsetvli t0, zero, e8, m8, ta, ma */
    "  .word 0x02050007\n add a0, a0, t0\n" /* vle8.v v0, (a0) */
    "  .word 0x02050407\n add a0, a0, t0\n"
    "  .word 0x02050807\n add a0, a0, t0\n"
    "  .word 0x02050c07\n"
    "  csrw 0x00f, zero\n"             /* vcsr: vxrm, vxsat */
    "  .word 0x0c0072d7\n"             /* vsetvli t0, zero, e8, m1, ta, ma */
    "9:\n"
    "  ld x1, 8(s11)\n ld x2, 16(s11)\n"
    ".irp n,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,28,29,30,31\n"
    "  ld x\\n, 8 * \\n(s11)\n"
    ".endr\n"
    "  lla s11, saved\n ld s11, 224(s11)\n"
    "  jr s11\n"

    ".globl leave_kernel\n.hidden leave_kernel\n"
    "leave_kernel:\n"
    "  lla t0, saved\n"
    "  csrr t1, fcsr\n sd t1, 232(t0)\n csrw fcsr, zero\n"
    "  fld fs0, 128(t0)\n fld fs1, 136(t0)\n fld fs2, 144(t0)\n fld fs3, 152(t0)\n"
    "  fld fs4, 160(t0)\n fld fs5, 168(t0)\n fld fs6, 176(t0)\n fld fs7, 184(t0)\n"
    "  fld fs8, 192(t0)\n fld fs9, 200(t0)\n fld fs10, 208(t0)\n fld fs11, 216(t0)\n"
    "  ld s0, 0(t0)\n ld s1, 8(t0)\n ld s2, 16(t0)\n ld s3, 24(t0)\n ld s4, 32(t0)\n ld s5, 40(t0)\n"
    "  ld s6, 48(t0)\n ld s7, 56(t0)\n ld s8, 64(t0)\n ld s9, 72(t0)\n ld s10, 80(t0)\n ld s11, 88(t0)\n"
    "  ld ra, 96(t0)\n ld sp, 104(t0)\n ld gp, 112(t0)\n ld tp, 120(t0)\n"
    "  ret\n"

    ".globl enter_plain\n.hidden enter_plain\n.type enter_plain, @function\n"
    "enter_plain:\n"
    "  SAVE a0\n"
    "  jr a0\n"

    /* A kernel may have left anything in gp and tp, which C code relies on. */
    ".globl arch_signal\n.type arch_signal, @function\n"
    "arch_signal:\n"
    "  lla t0, saved\n ld gp, 112(t0)\n ld tp, 120(t0)\n"
    "  tail on_signal\n"
    ".option pop\n"
);
/* clang-format on */

const uint8_t arch_reference[] = {0x33, 0x05, 0xb5, 0}; /* add a0, a0, a1 */
const size_t arch_reference_bytes = sizeof arch_reference;
const uint8_t arch_canary[] = {0x13, 0, 0, 0, 0x13, 0, 0, 0, 0x13, 0, 0, 0, 0x13, 0, 0, 0,
                               0x13, 0, 0, 0, 0x13, 0, 0, 0, 0x13, 0, 0, 0, 0x13, 0, 0, 0};
const size_t arch_canary_bytes = sizeof arch_canary;

/* --- what the CPU says -------------------------------------------------------------------------- */

#define HWCAP_LEAF 0x100u
#define PROBE_KEYS 32u
#define SYS_HWPROBE 258

HIDDEN uint32_t vector_bytes;
static int cycles_readable;

static sigjmp_buf refused;

static void on_refusal(int signal)
{
    siglongjmp(refused, signal);
}

/* Whether code runs without SIGILL. */
static int runs(void (*code)(void))
{
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_refusal;
    sigaction(SIGILL, &action, &before);
    int ran = sigsetjmp(refused, 1) == 0;
    if (ran)
        code();
    sigaction(SIGILL, &before, NULL);
    return ran;
}

/* The draft of RVV that some cores have refuses this type, or has another length for it. */
static void read_vectors(void)
{
    uint64_t bytes, length, type;
    __asm__ volatile("csrr %0, 0xc22" : "=r"(bytes));                   /* vlenb */
    __asm__ volatile(".word 0x0c0072d7\n\tmv %0, t0" : "=r"(length)::"t0"); /* vsetvli t0, zero, e8, m1 */
    __asm__ volatile("csrr %0, 0xc21" : "=r"(type));
    if (length == bytes && (int64_t)type > 0)
        vector_bytes = (uint32_t)bytes;
}

static uint64_t read_cycles(void)
{
    uint64_t cycles;
    __asm__ volatile("fence\n\trdcycle %0\n\tfence" : "=r"(cycles)::"memory");
    return cycles;
}

static uint64_t read_time(void)
{
    uint64_t ticks;
    __asm__ volatile("fence\n\trdtime %0\n\tfence" : "=r"(ticks)::"memory");
    return ticks;
}

/* A counter that stands still is none. */
static void try_cycles(void)
{
    uint64_t first = read_cycles();
    for (int i = 0; i < 1000 && !cycles_readable; i++)
        cycles_readable = read_cycles() != first;
}

void arch_init(void)
{
    __asm__ volatile("mv %0, gp" : "=r"(saved.global));
    __asm__ volatile("mv %0, tp" : "=r"(saved.thread));
    if (!runs(read_vectors))
        vector_bytes = 0;
    if (vector_bytes)
        scalable_vectors = malloc(32 * (size_t)vector_bytes);
    if (!runs(try_cycles))
        cycles_readable = 0;
}

static struct cpuid_leaf leaf_of(uint32_t leaf, uint64_t first, uint64_t second)
{
    const struct cpuid_leaf made = {leaf, 0, (uint32_t)first, (uint32_t)(first >> 32),
                                    (uint32_t)second, (uint32_t)(second >> 32)};
    return made;
}

/* One leaf per key that riscv_hwprobe knows; 0x100: HWCAP and bytes of RVV vectors. */
uint32_t arch_leaves(struct cpuid_leaf *out, uint32_t maximum)
{
    uint32_t n = 0;
    if (maximum <= PROBE_KEYS)
        return 0;
    for (uint32_t key = 0; key < PROBE_KEYS; key++) {
        struct {
            int64_t key;
            uint64_t value;
        } pair = {key, 0};
        if (syscall(SYS_HWPROBE, &pair, 1, 0, NULL, 0) == 0 && pair.key == key)
            out[n++] = leaf_of(key, pair.value, 0);
    }
    out[n++] = leaf_of(HWCAP_LEAF, getauxval(AT_HWCAP), vector_bytes);
    return n;
}

uint64_t arch_xcr0(void)
{
    return 0;
}

int arch_counts_cycles(void)
{
    return cycles_readable;
}

/* --- clocks ------------------------------------------------------------------------------------- */

uint64_t arch_ticks(void)
{
    return cycles_readable ? read_cycles() : read_time();
}

#define EVENT_COUNTER(n) \
    case n: \
        __asm__ volatile("fence\n\tcsrr %0, 0xc00 + " #n "\n\tfence" : "=r"(value)::"memory"); \
        break;

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
        EVENT_COUNTER(30) EVENT_COUNTER(31)
    }
    return value;
}

/* --- running ------------------------------------------------------------------------------------ */

/* Scalable registers of a state that is not the one they were made for. A worker never sees a state
 * change. */
static void expand(const struct state *state)
{
    static const struct state *made_for;
    if (state == made_for || !scalable_vectors)
        return;
    made_for = state;
    for (unsigned n = 0; n < 32; n++)
        for (uint32_t i = 0; i < vector_bytes; i++)
            scalable_vectors[n * vector_bytes + i] = state->vector[n][i % sizeof state->vector[n]];
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
    uint32_t e = (uint32_t)saved.control;
    return (e >> 4 & 1) | (e >> 3 & 1) << 2 | (e >> 2 & 1) << 3 | (e >> 1 & 1) << 4 | (e & 1) << 5;
}

void arch_recover(void)
{
    __asm__ volatile("csrw fcsr, zero" ::: "memory");
}

uint64_t arch_fault_pc(const void *context)
{
    return ((const ucontext_t *)context)->uc_mcontext.__gregs[0];
}

/* --- code --------------------------------------------------------------------------------------- */

#define S11 27u
#define T6 31u

static uint8_t *emit(uint8_t *p, uint32_t word)
{
    memcpy(p, &word, sizeof word);
    return p + sizeof word;
}

static uint32_t high_part(uint32_t value)
{
    return (value + 0x800) & 0xfffff000u;
}

uint8_t *arch_emit_counter(uint8_t *p, uint32_t trips)
{
    p = emit(p, 0x37u | S11 << 7 | high_part(trips));                      /* lui s11, high */
    return emit(p, 0x1bu | S11 << 7 | S11 << 15 | (trips & 0xfff) << 20); /* addiw s11, s11, low */
}

uint8_t *arch_emit_align(uint8_t *p)
{
    const uint16_t short_nop = 1;
    if ((uintptr_t)p & 1) /* after a setup that is no code */
        *p++ = 0;
    if ((uintptr_t)p & 2) {
        memcpy(p, &short_nop, sizeof short_nop);
        p += sizeof short_nop;
    }
    while ((uintptr_t)p & 63)
        p = emit(p, 0x13); /* nop */
    return p;
}

uint8_t *arch_emit_idle(uint8_t *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 4)
        p = emit(p, 0x13); /* nop */
    return p;
}

static uint32_t branch_offset(int32_t d)
{
    uint32_t u = (uint32_t)d;
    return (u >> 12 & 1) << 31 | (u >> 5 & 0x3f) << 25 | (u >> 1 & 15) << 8 | (u >> 11 & 1) << 7;
}

static uint32_t jump_offset(int32_t d)
{
    uint32_t u = (uint32_t)d;
    return (u >> 20 & 1) << 31 | (u >> 1 & 0x3ff) << 21 | (u >> 11 & 1) << 20 | (u & 0xff000);
}

void arch_emit_jump(uint8_t *p, const uint8_t *target)
{
    emit(p, 0x6fu | jump_offset((int32_t)(target - p))); /* j target */
}

/* BNEZ reaches 4 KiB, JAL 1 MiB; a longer loop costs the kernel its t6. */
uint8_t *arch_emit_loop_end(uint8_t *p, const uint8_t *start)
{
    p = emit(p, 0x13u | S11 << 7 | S11 << 15 | 0xfffu << 20); /* addi s11, s11, -1 */
    if (p - start < 0x1000)
        return emit(p, 0x1063u | S11 << 15 | branch_offset((int32_t)(start - p))); /* bnez s11 */
    int far = p - start >= 0x100000 - 4;
    p = emit(p, 0x63u | S11 << 15 | branch_offset(far ? 12 : 8)); /* beqz s11, past the jump */
    int32_t distance = (int32_t)(start - p);
    if (!far)
        return emit(p, 0x6fu | jump_offset(distance)); /* j start */
    p = emit(p, 0x17u | T6 << 7 | high_part((uint32_t)distance)); /* auipc t6, high */
    return emit(p, 0x67u | T6 << 15 | ((uint32_t)distance & 0xfff) << 20); /* jr low(t6) */
}

/* The address is aligned: a load across its size may trap. */
uint8_t *arch_emit_exit(uint8_t *p)
{
    const uint8_t *target = leave_kernel;
    uint8_t *address = (uint8_t *)(((uintptr_t)p + 12 + 7) & ~(uintptr_t)7);
    uint32_t offset = (uint32_t)(address - p);
    p = emit(p, 0x17u | S11 << 7);                                       /* auipc s11, 0 */
    p = emit(p, 0x3003u | S11 << 7 | S11 << 15 | offset << 20); /* ld s11, offset(s11) */
    emit(p, 0x67u | S11 << 15);                                          /* jr s11 */
    memcpy(address, &target, sizeof target);
    return address + sizeof target;
}

/* It orders memory; nothing in user space orders the rest. */
uint8_t *arch_emit_fence(uint8_t *p)
{
    return emit(p, 0x0ff0000f); /* fence */
}

uint8_t *arch_emit_drain(uint8_t *p)
{
    return arch_emit_fence(p);
}

/* FENCE.I has what follows fetched anew. */
uint8_t *arch_emit_flood(uint8_t *p)
{
    return arch_emit_idle(arch_emit_align(emit(arch_emit_fence(p), 0x0000100f)), 1024);
}

void arch_emit_padding(uint8_t *p, size_t bytes)
{
    memset(p, 0, bytes); /* c.unimp */
}
