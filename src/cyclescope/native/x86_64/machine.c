/* x86-64: entering and leaving code with every register, for differential execution. */
#define _GNU_SOURCE
#include "../arch.h"
#include <cpuid.h>
#include <string.h>

#define HIDDEN __attribute__((visibility("hidden")))

_Static_assert(offsetof(struct machine, flags) == 128, "used in assembly below");
_Static_assert(offsetof(struct machine, exit) == 136, "used in assembly below");
_Static_assert(offsetof(struct machine, extended) == 192, "used in assembly below");

HIDDEN struct machine arch_in, arch_out;
HIDDEN uint64_t machine_stack, machine_code;
HIDDEN uint32_t machine_components; /* for XSAVE; 0: FXSAVE */
struct location arch_locations[LOCATIONS];
extern HIDDEN uint64_t saved_fs, saved_gs;
extern HIDDEN uint8_t has_avx, has_fsgsbase;

void enter_machine(const void *code);
extern const uint8_t leave_machine[];
#define LEAVE_BYTES 16

/* clang-format off */
__asm__(
    ".text\n"
    ".globl enter_machine\n.hidden enter_machine\n.type enter_machine, @function\n"
    "enter_machine:\n"
    "  push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
    "  mov %rsp, machine_stack(%rip)\n"
    "  mov %rdi, machine_code(%rip)\n"
    "  mov machine_components(%rip), %eax\n"
    "  xor %edx, %edx\n"
    "  test %eax, %eax\n je 1f\n"
    "  xrstor64 arch_in+192(%rip)\n jmp 2f\n"
    "1: fxrstor64 arch_in+192(%rip)\n"
    "2:\n"
    "  pushq arch_in+128(%rip)\n popfq\n"
    "  mov arch_in(%rip), %rax\n mov arch_in+8(%rip), %rcx\n"
    "  mov arch_in+16(%rip), %rdx\n mov arch_in+24(%rip), %rbx\n"
    "  mov arch_in+32(%rip), %rsp\n mov arch_in+40(%rip), %rbp\n"
    "  mov arch_in+48(%rip), %rsi\n mov arch_in+56(%rip), %rdi\n"
    ".irp n,8,9,10,11,12,13,14,15\n"
    "  mov arch_in+8*\\n(%rip), %r\\n\n"
    ".endr\n"
    "  jmp *machine_code(%rip)\n"

    ".globl leave_machine\n.hidden leave_machine\n"
    ".balign 16\n"
    "leave_machine:\n" /* one entry of 16 bytes per exit; MOV leaves the flags alone */
    ".irp n,0,1,2,3\n"
    "  movq $\\n, arch_out+136(%rip)\n"
    "  jmp 9f\n"
    "  .balign 16\n"
    ".endr\n"
    "9:\n"
    "  mov %rax, arch_out(%rip)\n mov %rcx, arch_out+8(%rip)\n"
    "  mov %rdx, arch_out+16(%rip)\n mov %rbx, arch_out+24(%rip)\n"
    "  mov %rsp, arch_out+32(%rip)\n mov %rbp, arch_out+40(%rip)\n"
    "  mov %rsi, arch_out+48(%rip)\n mov %rdi, arch_out+56(%rip)\n"
    ".irp n,8,9,10,11,12,13,14,15\n"
    "  mov %r\\n, arch_out+8*\\n(%rip)\n"
    ".endr\n"
    "  mov machine_stack(%rip), %rsp\n"
    "  pushfq\n popq arch_out+128(%rip)\n"
    "  pushq $0x202\n popfq\n"
    "  mov machine_components(%rip), %eax\n"
    "  xor %edx, %edx\n"
    "  test %eax, %eax\n je 1f\n"
    "  xsave64 arch_out+192(%rip)\n jmp 2f\n"
    "1: fxsave64 arch_out+192(%rip)\n"
    "2:\n"
    "  ldmxcsr default_mxcsr(%rip)\n"
    "  cmpb $0, has_avx(%rip)\n je 3f\n vzeroupper\n3:\n"
    "  pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
    "  ret\n"
);
/* clang-format on */

/* --- the XSAVE area ----------------------------------------------------------------------------- */

enum { X87 = 1, SSE = 2, AVX = 4, MASKS = 0x20, ZMM_HIGH = 0x40, ZMM_16 = 0x80, AVX512 = 0xe0 };
enum { AT_FCW = 0, AT_FSW = 2, AT_FTW = 4, AT_POINTERS = 6, AT_MXCSR = 24, AT_X87 = 32 };
enum { AT_XMM = 160, AT_HEADER = 512, HEADER_BYTES = 64 };

static uint32_t component_offset[8]; /* from the start of the area */

static uint32_t component(uint32_t number, uint32_t bytes)
{
    uint32_t a, b, c, d;
    __cpuid_count(0xd, number, a, b, c, d);
    (void)c, (void)d;
    if (a != bytes || b + a > EXTENDED_BYTES)
        return 0;
    component_offset[number] = b;
    return 1u << number;
}

static uint32_t find_components(void)
{
    uint64_t enabled = arch_xcr0();
    uint32_t found = 0, wide;
    if ((enabled & (X87 | SSE)) != (X87 | SSE))
        return 0;
    found = X87 | SSE;
    if (enabled & AVX)
        found |= component(2, 256);
    if (!(found & AVX) || (enabled & AVX512) != AVX512)
        return found;
    wide = component(5, 64) | component(6, 512) | component(7, 1024);
    return wide == AVX512 ? found | wide : found;
}

/* --- locations ---------------------------------------------------------------------------------- */

static void place(unsigned number, uint32_t kind, size_t offset, uint32_t size)
{
    const struct location l = {kind, (uint32_t)offset, size, 0, 0};
    arch_locations[number] = l;
}

static void place_bits(unsigned number, size_t offset, uint32_t size, uint32_t watched,
                       uint32_t free)
{
    const struct location l = {LOCATION_BITS, (uint32_t)offset, size, watched, free};
    arch_locations[number] = l;
}

#define EXTENDED(at) (offsetof(struct machine, extended) + (at))
#define RESULT_FLAGS 0xcd5u

static void place_general(void)
{
    static const uint8_t bits[] = {0, 2, 4, 6, 7, 11, 10};
    for (unsigned n = 0; n < 16; n++)
        place(X86_GENERAL + n, LOCATION_GENERAL, 8 * n, 8);
    for (unsigned n = 0; n < sizeof bits; n++)
        place_bits(X86_FLAGS + n, offsetof(struct machine, flags), 8, 1u << bits[n], 1u << bits[n]);
    place(AT_EXIT, LOCATION_OUTPUT, offsetof(struct machine, exit), 8);
}

static void place_vectors(void)
{
    const uint32_t *at = component_offset;
    for (unsigned n = 0; n < 16; n++) {
        place(X86_XMM + n, LOCATION_VECTOR, EXTENDED(AT_XMM + 16 * n), 16);
        if (machine_components & AVX)
            place(X86_YMM + n, LOCATION_VECTOR, EXTENDED(at[2] + 16 * n), 16);
    }
    if (!(machine_components & MASKS))
        return;
    for (unsigned n = 0; n < 16; n++) {
        size_t high = EXTENDED(at[7] + 64 * n);
        place(X86_ZMM + n, LOCATION_VECTOR, EXTENDED(at[6] + 32 * n), 32);
        place(X86_XMM + 16 + n, LOCATION_VECTOR, high, 16);
        place(X86_YMM + 16 + n, LOCATION_VECTOR, high + 16, 16);
        place(X86_ZMM + 16 + n, LOCATION_VECTOR, high + 32, 32);
    }
    for (unsigned n = 0; n < 8; n++)
        place(X86_MASK + n, LOCATION_MASK, EXTENDED(at[5] + 8 * n), 8);
}

/* Exceptions stay masked: rounding, denormals and sticky flags are what may be changed. */
static void place_control(void)
{
    for (unsigned n = 0; n < 8; n++)
        place(X86_X87 + n, LOCATION_X87, EXTENDED(AT_X87 + 16 * n), X87_TAG + 1);
    place_bits(X86_MXCSR, EXTENDED(AT_MXCSR), 4, 0xffff, 0xe07f);
    place_bits(X86_FCW, EXTENDED(AT_FCW), 2, 0xffff, 0x0f00);
    place_bits(X86_FSW, EXTENDED(AT_FSW), 2, 0xffff, 0x477f);
}

void arch_machine_prepare(void)
{
    machine_components = find_components();
    memset(arch_locations, 0, sizeof arch_locations);
    place_general();
    place_vectors();
    place_control();
    if (has_fsgsbase) { /* signal handlers restore them */
        __asm__ volatile("rdfsbase %0" : "=r"(saved_fs));
        __asm__ volatile("rdgsbase %0" : "=r"(saved_gs));
    }
}

/* Setups are for loops: a single instruction starts from a state of its own. */
void arch_machine_setup(const struct state *state, const uint8_t *code, size_t bytes,
                        unsigned flags)
{
    (void)state, (void)code, (void)bytes, (void)flags;
}

/* --- running ------------------------------------------------------------------------------------ */

/* The top of the x87 stack is register 0. In x87 mode register 7 is empty, so that a push fits. */
void arch_machine_reset(unsigned flags)
{
    const unsigned mmx = flags & DIFFER_MMX;
    const uint16_t fcw = 0x37f;
    const uint32_t mxcsr = 0x1f80;
    memset(&arch_in, 0, sizeof arch_in);
    uint8_t *area = arch_in.extended;
    memcpy(area + AT_FCW, &fcw, sizeof fcw);
    memcpy(area + AT_MXCSR, &mxcsr, sizeof mxcsr);
    area[AT_FTW] = mmx ? 0xff : 0x7f;
    memcpy(area + AT_HEADER, &machine_components, sizeof machine_components);
    for (unsigned n = 0; n < 8; n++)
        area[AT_X87 + 16 * n + X87_TAG] = area[AT_FTW] >> n & 1;
    arch_in.flags = 0x202;
}

/* XSAVE need not write what is in its initial state. */
static void fill_initial(uint8_t *area)
{
    uint32_t saved, missing;
    memcpy(&saved, area + AT_HEADER, sizeof saved);
    missing = machine_components & ~saved;
    if (missing & X87) {
        const uint16_t fcw = 0x37f;
        memset(area, 0, AT_MXCSR);
        memset(area + AT_X87, 0, 128);
        memcpy(area + AT_FCW, &fcw, sizeof fcw);
    }
    if (missing & SSE)
        memset(area + AT_XMM, 0, 256);
    if (missing & AVX)
        memset(area + component_offset[2], 0, 256);
    if (missing & MASKS)
        memset(area + component_offset[5], 0, 64);
    if (missing & ZMM_HIGH)
        memset(area + component_offset[6], 0, 512);
    if (missing & ZMM_16)
        memset(area + component_offset[7], 0, 1024);
}

/* From the order of the stack to that of the registers, with the tags in bytes that the area does
 * not use; empty ones hold 0. */
static void settle_x87(uint8_t *area)
{
    uint8_t slots[128];
    unsigned top = area[AT_FSW + 1] >> 3 & 7;
    memcpy(slots, area + AT_X87, sizeof slots);
    memset(area + AT_X87, 0, sizeof slots);
    for (unsigned n = 0; n < 8; n++) {
        uint8_t *to = area + AT_X87 + 16 * n;
        if (!(area[AT_FTW] >> n & 1))
            continue;
        memcpy(to, slots + 16 * ((n - top) & 7), X87_TAG);
        to[X87_TAG] = 1;
    }
    memset(area + AT_POINTERS, 0, AT_MXCSR - AT_POINTERS);
}

void arch_machine_run(const void *code)
{
    uint8_t *area = arch_out.extended;
    enter_machine(code);
    if (machine_components)
        fill_initial(area);
    settle_x87(area);
    memcpy(area + AT_HEADER, arch_in.extended + AT_HEADER, HEADER_BYTES);
    arch_out.flags = (arch_out.flags & RESULT_FLAGS) | 0x202;
}

/* --- code --------------------------------------------------------------------------------------- */

static void emit_exit(uint8_t *p, unsigned number)
{
    const uint8_t opcode[] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp [rip] */
    const uint8_t *target = leave_machine + LEAVE_BYTES * number;
    memcpy(p, opcode, sizeof opcode);
    memcpy(p + sizeof opcode, &target, sizeof target);
}

void arch_emit_exits(uint8_t *code, uint8_t *end)
{
    emit_exit(end, 0);
    for (unsigned n = 1; n < EXITS; n++)
        emit_exit(code + EXIT_SPACING * n, n);
}
