/* AArch64: entering and leaving code with every register, for differential execution. */
#define _GNU_SOURCE
#include "../arch.h"
#include <string.h>

#define HIDDEN __attribute__((visibility("hidden")))

_Static_assert(offsetof(struct machine, flags) == 256, "used in assembly below");
_Static_assert(offsetof(struct machine, exit) == 264, "used in assembly below");
_Static_assert(offsetof(struct machine, fpcr) == 272, "used in assembly below");
_Static_assert(offsetof(struct machine, predicate) == 320, "used in assembly below");
_Static_assert(offsetof(struct machine, vector) == 896, "used in assembly below");

HIDDEN struct machine arch_in, arch_out;
HIDDEN uint64_t machine_stack, machine_code;
struct location arch_locations[LOCATIONS];
extern HIDDEN uint8_t has_sve;
extern HIDDEN uint32_t vector_bytes;

void enter_machine(const void *code);
extern const uint8_t leave_machine[];
#define LEAVE_BYTES 32
#define COUNTER 28u /* leads in and out */

/* clang-format off */
__asm__(
    ".text\n.balign 4\n"
    ".macro PLACE register, symbol\n"
    "  adrp \\register, \\symbol\n  add \\register, \\register, :lo12:\\symbol\n"
    ".endm\n"

    ".globl enter_machine\n.hidden enter_machine\n.type enter_machine, %function\n"
    "enter_machine:\n"
    "  stp x29, x30, [sp, #-176]!\n"
    "  stp x19, x20, [sp, #16]\n  stp x21, x22, [sp, #32]\n  stp x23, x24, [sp, #48]\n"
    "  stp x25, x26, [sp, #64]\n  stp x27, x28, [sp, #80]\n  str x18, [sp, #96]\n"
    "  stp d8, d9, [sp, #112]\n  stp d10, d11, [sp, #128]\n"
    "  stp d12, d13, [sp, #144]\n  stp d14, d15, [sp, #160]\n"
    "  PLACE x9, machine_stack\n  mov x10, sp\n  str x10, [x9]\n"
    "  PLACE x9, machine_code\n  str x0, [x9]\n"
    "  PLACE x28, arch_in\n"
    "  add x11, x28, #896\n"
    "  PLACE x10, has_sve\n  ldrb w10, [x10]\n  cbz w10, 1f\n"
    "  add x12, x28, #320\n"
    "  .inst 0x85820180\n" /* ldr p0, [x12, #16, mul vl] */
    "  .inst 0x25289000\n" /* wrffr p0.b */
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "  .inst 0x85800180 + \\n + ((\\n & 7) << 10) + ((\\n >> 3) << 16)\n" /* ldr pn, [x12, #n, mul vl] */
    ".endr\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "  .inst 0x85804160 + \\n + ((\\n & 7) << 10) + ((\\n >> 3) << 16)\n" /* ldr zn, [x11, #n, mul vl] */
    ".endr\n"
    "  b 2f\n"
    "1:\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "  ldr q\\n, [x11, #16 * \\n]\n"
    ".endr\n"
    "2:\n"
    "  ldp x10, x11, [x28, #272]\n  msr fpcr, x10\n  msr fpsr, x11\n"
    "  ldr x10, [x28, #256]\n  msr nzcv, x10\n"
    "  ldr x10, [x28, #248]\n  mov sp, x10\n"
    "  ldp x0, x1, [x28]\n  ldp x2, x3, [x28, #16]\n  ldp x4, x5, [x28, #32]\n"
    "  ldp x6, x7, [x28, #48]\n  ldp x8, x9, [x28, #64]\n  ldp x10, x11, [x28, #80]\n"
    "  ldp x12, x13, [x28, #96]\n  ldp x14, x15, [x28, #112]\n  ldp x16, x17, [x28, #128]\n"
    "  ldp x18, x19, [x28, #144]\n  ldp x20, x21, [x28, #160]\n  ldp x22, x23, [x28, #176]\n"
    "  ldp x24, x25, [x28, #192]\n  ldp x26, x27, [x28, #208]\n  ldp x29, x30, [x28, #232]\n"
    "  PLACE x28, machine_code\n  ldr x28, [x28]\n"
    "  br x28\n"

    ".globl leave_machine\n.hidden leave_machine\n"
    ".balign 32\n"
    "leave_machine:\n" /* one entry of 32 bytes per exit; they leave the flags alone */
    ".irp n,0,1,2,3\n"
    "  hint #36\n" /* bti j */
    "  PLACE x28, arch_out\n  str x0, [x28]\n  mov x0, #\\n\n"
    "  b 9f\n"
    "  .balign 32\n"
    ".endr\n"
    "9:\n"
    "  str x0, [x28, #264]\n  str x1, [x28, #8]\n"
    "  stp x2, x3, [x28, #16]\n  stp x4, x5, [x28, #32]\n"
    "  stp x6, x7, [x28, #48]\n  stp x8, x9, [x28, #64]\n  stp x10, x11, [x28, #80]\n"
    "  stp x12, x13, [x28, #96]\n  stp x14, x15, [x28, #112]\n  stp x16, x17, [x28, #128]\n"
    "  stp x18, x19, [x28, #144]\n  stp x20, x21, [x28, #160]\n  stp x22, x23, [x28, #176]\n"
    "  stp x24, x25, [x28, #192]\n  stp x26, x27, [x28, #208]\n  stp x29, x30, [x28, #232]\n"
    "  mov x10, sp\n  str x10, [x28, #248]\n"
    "  mrs x10, nzcv\n  str x10, [x28, #256]\n"
    "  mrs x10, fpcr\n  mrs x11, fpsr\n  stp x10, x11, [x28, #272]\n"
    "  add x11, x28, #896\n"
    "  PLACE x10, has_sve\n  ldrb w10, [x10]\n  cbz w10, 1f\n"
    "  add x12, x28, #320\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "  .inst 0xe5800180 + \\n + ((\\n & 7) << 10) + ((\\n >> 3) << 16)\n" /* str pn, [x12, #n, mul vl] */
    ".endr\n"
    "  .inst 0x2519f000\n" /* rdffr p0.b */
    "  .inst 0xe5820180\n" /* str p0, [x12, #16, mul vl] */
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "  .inst 0xe5804160 + \\n + ((\\n & 7) << 10) + ((\\n >> 3) << 16)\n" /* str zn, [x11, #n, mul vl] */
    ".endr\n"
    "  b 2f\n"
    "1:\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "  str q\\n, [x11, #16 * \\n]\n"
    ".endr\n"
    "2:\n"
    "  msr fpcr, xzr\n  msr fpsr, xzr\n"
    "  PLACE x9, saved\n  ldr x10, [x9, #176]\n  msr tpidr_el0, x10\n"
    "  PLACE x9, machine_stack\n  ldr x9, [x9]\n  mov sp, x9\n"
    "  ldp x19, x20, [sp, #16]\n  ldp x21, x22, [sp, #32]\n  ldp x23, x24, [sp, #48]\n"
    "  ldp x25, x26, [sp, #64]\n  ldp x27, x28, [sp, #80]\n  ldr x18, [sp, #96]\n"
    "  ldp d8, d9, [sp, #112]\n  ldp d10, d11, [sp, #128]\n"
    "  ldp d12, d13, [sp, #144]\n  ldp d14, d15, [sp, #160]\n"
    "  ldp x29, x30, [sp], #176\n"
    "  ret\n"
);
/* clang-format on */

/* --- locations ---------------------------------------------------------------------------------- */

#define FLAG_N 31u
#define SETTABLE_FPCR 0x07c80000u /* AHP DN FZ RMode FZ16: no exception traps */
#define FPSR_BITS 0x0800009fu
#define LOW_BYTES 16u

static void place(unsigned number, uint32_t kind, size_t offset, uint32_t size)
{
    const struct location l = {kind, (uint32_t)offset, size, 0, 0};
    arch_locations[number] = l;
}

static void place_bits(unsigned number, size_t offset, uint32_t watched, uint32_t free)
{
    const struct location l = {LOCATION_BITS, (uint32_t)offset, 8, watched, free};
    arch_locations[number] = l;
}

static void place_vectors(uint32_t bytes)
{
    for (unsigned n = 0; n < 32; n++) {
        size_t at = offsetof(struct machine, vector) + n * bytes;
        place(A64_VECTOR + n, LOCATION_VECTOR, at, LOW_BYTES);
        if (bytes > LOW_BYTES)
            place(A64_WIDE + n, LOCATION_VECTOR, at + LOW_BYTES, bytes - LOW_BYTES);
    }
    for (unsigned n = 0; n < 17 && has_sve; n++)
        place(A64_PREDICATE + n, LOCATION_MASK, offsetof(struct machine, predicate) + n * bytes / 8,
              bytes / 8);
}

/* Those of some bits of FPCR that this CPU keeps. */
static uint32_t kept_fpcr(uint64_t bits)
{
    uint64_t kept;
    __asm__ volatile("msr fpcr, %1\n\tmrs %0, fpcr\n\tmsr fpcr, xzr" : "=&r"(kept) : "r"(bits));
    return (uint32_t)(kept & bits);
}

void arch_machine_prepare(void)
{
    memset(arch_locations, 0, sizeof arch_locations);
    for (unsigned n = 0; n < GENERALS; n++)
        if (n != COUNTER)
            place(A64_GENERAL + n, LOCATION_GENERAL, 8 * n, 8);
    for (unsigned n = 0; n < 4; n++)
        place_bits(A64_FLAGS + n, offsetof(struct machine, flags), 1u << (FLAG_N - n),
                   1u << (FLAG_N - n));
    place(AT_EXIT, LOCATION_OUTPUT, offsetof(struct machine, exit), 8);
    place_bits(A64_FPCR, offsetof(struct machine, fpcr), UINT32_MAX, kept_fpcr(SETTABLE_FPCR));
    place_bits(A64_FPSR, offsetof(struct machine, fpsr), UINT32_MAX, FPSR_BITS);
    place_vectors(has_sve ? vector_bytes : LOW_BYTES);
}

/* --- running ------------------------------------------------------------------------------------ */

/* Setups are for loops: a single instruction starts from a state of its own. */
void arch_machine_setup(const struct state *state, const uint8_t *code, size_t bytes,
                        unsigned flags)
{
    (void)state, (void)code, (void)bytes, (void)flags;
}

void arch_machine_reset(unsigned flags)
{
    (void)flags;
    memset(&arch_in, 0, sizeof arch_in);
}

/* The first-fault register is true up to some element. */
static void settle_first_fault(void)
{
    const struct location *l = &arch_locations[A64_FFR];
    uint8_t *at = (uint8_t *)&arch_in + l->offset;
    uint32_t i = 0;
    while (i < l->size && at[i] == UINT8_MAX)
        i++;
    if (i < l->size)
        at[i] &= (uint8_t)~(at[i] + 1);
    for (i++; i < l->size; i++)
        at[i] = 0;
}

void arch_machine_run(const void *code)
{
    settle_first_fault();
    enter_machine(code);
}

/* --- code --------------------------------------------------------------------------------------- */

static void emit_exit(uint8_t *p, unsigned number)
{
    const uint32_t code[] = {0x5800005c, 0xd61f0380}; /* ldr x28, past the branch; br x28 */
    const uint8_t *target = leave_machine + LEAVE_BYTES * number;
    memcpy(p, code, sizeof code);
    memcpy(p + sizeof code, &target, sizeof target);
}

void arch_emit_exits(uint8_t *code, uint8_t *end)
{
    emit_exit(end, 0);
    for (unsigned n = 1; n < EXITS; n++)
        emit_exit(code + EXIT_SPACING * n, n);
}
