/* RISC-V: entering and leaving code with every register, for differential execution. */
#define _GNU_SOURCE
#include "../worker.h"
#include <string.h>

#define HIDDEN __attribute__((visibility("hidden")))

_Static_assert(offsetof(struct machine, exit) == 256, "used in assembly below");
_Static_assert(offsetof(struct machine, fflags) == 264, "used in assembly below");
_Static_assert(offsetof(struct machine, vtype) == 304, "used in assembly below");
_Static_assert(offsetof(struct machine, scalar) == 320, "used in assembly below");
_Static_assert(offsetof(struct machine, vector) == 576, "used in assembly below");

HIDDEN struct machine arch_in, arch_out;
HIDDEN uint64_t machine_stack, machine_code, machine_vectors;
struct location arch_locations[LOCATIONS];
extern HIDDEN uint32_t vector_bytes;

void enter_machine(const void *code);
extern const uint8_t leave_machine[];
#define LEAVE_BYTES 32

/* s11 (x27) leads in and out; gp and tp stay. */
/* clang-format off */
__asm__(
    ".text\n.option push\n.option norelax\n.balign 4\n"
    ".globl enter_machine\n.hidden enter_machine\n.type enter_machine, @function\n"
    "enter_machine:\n"
    "  addi sp, sp, -208\n"
    "  sd s0, 0(sp)\n sd s1, 8(sp)\n sd s2, 16(sp)\n sd s3, 24(sp)\n sd s4, 32(sp)\n sd s5, 40(sp)\n"
    "  sd s6, 48(sp)\n sd s7, 56(sp)\n sd s8, 64(sp)\n sd s9, 72(sp)\n sd s10, 80(sp)\n sd s11, 88(sp)\n"
    "  sd ra, 96(sp)\n"
    "  fsd fs0, 104(sp)\n fsd fs1, 112(sp)\n fsd fs2, 120(sp)\n fsd fs3, 128(sp)\n"
    "  fsd fs4, 136(sp)\n fsd fs5, 144(sp)\n fsd fs6, 152(sp)\n fsd fs7, 160(sp)\n"
    "  fsd fs8, 168(sp)\n fsd fs9, 176(sp)\n fsd fs10, 184(sp)\n fsd fs11, 192(sp)\n"
    "  lla t0, machine_stack\n sd sp, 0(t0)\n"
    "  lla t0, machine_code\n sd a0, 0(t0)\n"
    "  lla s11, arch_in\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "  fld f\\n, 320 + 8 * \\n(s11)\n"
    ".endr\n"
    "  ld t0, 264(s11)\n csrw 0x001, t0\n"   /* fflags */
    "  ld t0, 272(s11)\n csrw 0x002, t0\n"   /* frm */
    "  lla t0, machine_vectors\n ld t0, 0(t0)\n beqz t0, 1f\n"
    "  ld t0, 280(s11)\n csrw 0x00a, t0\n"   /* vxrm */
    "  ld t0, 288(s11)\n csrw 0x009, t0\n"   /* vxsat */
    "  addi a0, s11, 576\n"
    "  .word 0x0c3072d7\n"                   /* vsetvli t0, zero, e8, m8, ta, ma */
    "  .word 0x02050007\n add a0, a0, t0\n"  /* vle8.v v0, (a0) */
    "  .word 0x02050407\n add a0, a0, t0\n"
    "  .word 0x02050807\n add a0, a0, t0\n"
    "  .word 0x02050c07\n"
    "  ld t1, 296(s11)\n ld t2, 304(s11)\n"
    "  .word 0x80737057\n"                   /* vsetvl zero, t1, t2 */
    "1:\n"
    "  ld x1, 8(s11)\n ld x2, 16(s11)\n"
    ".irp n,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,28,29,30,31\n"
    "  ld x\\n, 8 * \\n(s11)\n"
    ".endr\n"
    "  lla s11, machine_code\n ld s11, 0(s11)\n"
    "  jr s11\n"

    ".globl leave_machine\n.hidden leave_machine\n"
    ".balign 32\n"
    "leave_machine:\n" /* one entry of 32 bytes per exit */
    ".irp n,0,1,2,3\n"
    "  lla s11, arch_out\n sd a0, 80(s11)\n li a0, \\n\n"
    "  j 9f\n"
    "  .balign 32\n"
    ".endr\n"
    "9:\n"
    "  sd a0, 256(s11)\n"
    "  sd x1, 8(s11)\n sd x2, 16(s11)\n"
    ".irp n,5,6,7,8,9,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,28,29,30,31\n"
    "  sd x\\n, 8 * \\n(s11)\n"
    ".endr\n"
    "  csrr t0, 0x001\n sd t0, 264(s11)\n"
    "  csrr t0, 0x002\n sd t0, 272(s11)\n"
    "  csrw fcsr, zero\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "  fsd f\\n, 320 + 8 * \\n(s11)\n"
    ".endr\n"
    "  lla t0, machine_vectors\n ld t0, 0(t0)\n beqz t0, 1f\n"
    "  csrr t0, 0x00a\n sd t0, 280(s11)\n"
    "  csrr t0, 0x009\n sd t0, 288(s11)\n"
    "  csrr t0, 0xc20\n sd t0, 296(s11)\n"   /* vl */
    "  csrr t0, 0xc21\n sd t0, 304(s11)\n"   /* vtype */
    "  addi a0, s11, 576\n"
    "  .word 0x0c3072d7\n"
    "  .word 0x02050027\n add a0, a0, t0\n"  /* vse8.v v0, (a0) */
    "  .word 0x02050427\n add a0, a0, t0\n"
    "  .word 0x02050827\n add a0, a0, t0\n"
    "  .word 0x02050c27\n"
    "1:\n"
    "  lla t0, machine_stack\n ld sp, 0(t0)\n"
    "  ld s0, 0(sp)\n ld s1, 8(sp)\n ld s2, 16(sp)\n ld s3, 24(sp)\n ld s4, 32(sp)\n ld s5, 40(sp)\n"
    "  ld s6, 48(sp)\n ld s7, 56(sp)\n ld s8, 64(sp)\n ld s9, 72(sp)\n ld s10, 80(sp)\n ld s11, 88(sp)\n"
    "  ld ra, 96(sp)\n"
    "  fld fs0, 104(sp)\n fld fs1, 112(sp)\n fld fs2, 120(sp)\n fld fs3, 128(sp)\n"
    "  fld fs4, 136(sp)\n fld fs5, 144(sp)\n fld fs6, 152(sp)\n fld fs7, 160(sp)\n"
    "  fld fs8, 168(sp)\n fld fs9, 176(sp)\n fld fs10, 184(sp)\n fld fs11, 192(sp)\n"
    "  addi sp, sp, 208\n"
    "  ret\n"
    ".option pop\n"
);
/* clang-format on */

/* --- locations ---------------------------------------------------------------------------------- */

static uint64_t first_vl, first_vtype; /* of the form */
static unsigned values_of_form;        /* DIFFER_INTEGER, ... */

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

static void place_general(void)
{
    for (unsigned n = 1; n < GENERALS; n++)
        if (n != 3 && n != 4 && n != 27)
            place(RISCV_GENERAL + n, LOCATION_GENERAL, 8 * n, 8);
    place(AT_EXIT, LOCATION_OUTPUT, offsetof(struct machine, exit), 8);
    for (unsigned n = 0; n < 32; n++)
        place(RISCV_FLOAT + n, LOCATION_VECTOR, offsetof(struct machine, scalar) + 8 * n, 8);
    place_bits(RISCV_FFLAGS, offsetof(struct machine, fflags), UINT32_MAX, 0x1f);
    place_bits(RISCV_FRM, offsetof(struct machine, frm), UINT32_MAX, 3); /* others may be reserved */
}

static void place_vectors(void)
{
    for (unsigned n = 0; n < 32; n++)
        place(RISCV_VECTOR + n, LOCATION_VECTOR, offsetof(struct machine, vector) + n * vector_bytes,
              vector_bytes);
    place_bits(RISCV_VXRM, offsetof(struct machine, vxrm), UINT32_MAX, 3);
    place_bits(RISCV_VXSAT, offsetof(struct machine, vxsat), UINT32_MAX, 1);
    place(RISCV_VTYPE, LOCATION_OUTPUT, offsetof(struct machine, vtype), 8);
}

void arch_machine_prepare(void)
{
    memset(arch_locations, 0, sizeof arch_locations);
    machine_vectors = vector_bytes && vector_bytes <= LONGEST_VECTOR;
    place_general();
    if (machine_vectors)
        place_vectors();
}

/* --- running ------------------------------------------------------------------------------------ */

/* A setup sets vl and vtype, and vl may be changed in the bits that keep it legal: it starts one
 * below its power of two. */
void arch_machine_setup(const struct state *state, const uint8_t *code, size_t bytes,
                        unsigned flags)
{
    if (!machine_vectors)
        return;
    struct state plain = *state;
    plain.vector_level = VECTOR_SCALABLE;
    uint8_t *start = (uint8_t *)CODE_BASE;
    memcpy(start, code, bytes);
    arch_code_written(start, arch_emit_exit(start + bytes));
    if (sigsetjmp(fault_return, 0) == 0) {
        fault_armed = 1;
        arch_call(&plain, start);
        fault_armed = 0;
    }
    __asm__ volatile("csrr %0, 0xc20" : "=r"(first_vl));
    __asm__ volatile("csrr %0, 0xc21" : "=r"(first_vtype));
    uint32_t below = (uint32_t)first_vl - 1;
    if (first_vl > 1 && (first_vl & below) == 0 && !(flags & DIFFER_WHOLE)) {
        first_vl = below;
        place_bits(RISCV_VL, offsetof(struct machine, vl), UINT32_MAX, below);
    } else {
        place(RISCV_VL, LOCATION_OUTPUT, offsetof(struct machine, vl), 8);
    }
}

void arch_machine_reset(unsigned flags)
{
    memset(&arch_in, 0, sizeof arch_in);
    arch_in.vl = first_vl;
    arch_in.vtype = first_vtype;
    values_of_form = flags & DIFFER_VALUES;
}

/* A narrow number is in a register of 64 bits whose other bits are ones. */
static void box(void)
{
    static const uint64_t others[DIFFER_VALUES + 1] = {
        [DIFFER_F16] = ~0xffffull, [DIFFER_BF16] = ~0xffffull, [DIFFER_F32] = ~0xffffffffull};
    for (unsigned n = 0; n < 32; n++)
        arch_in.scalar[n] |= others[values_of_form];
}

void arch_machine_run(const void *code)
{
    box();
    enter_machine(code);
}

/* --- code --------------------------------------------------------------------------------------- */

static void emit_exit(uint8_t *p, unsigned number)
{
    uint8_t *end = arch_emit_exit(p);
    const uint8_t *target = leave_machine + LEAVE_BYTES * number;
    memcpy(end - sizeof target, &target, sizeof target);
}

void arch_emit_exits(uint8_t *code, uint8_t *end)
{
    emit_exit(end, 0);
    for (unsigned n = 1; n < EXITS; n++)
        emit_exit(code + EXIT_SPACING * n, n);
}
