/* AArch64: reads of the clock and the counters within code. X27 leads to what they leave; flags stay. */
#define _GNU_SOURCE
#include "../arch.h"
#include <string.h>

enum { X0 = 0, X1 = 1, X27 = 27 };
#define CYCLE_COUNTER 31

static uint8_t *emit(uint8_t *p, uint32_t word)
{
    memcpy(p, &word, sizeof word);
    return p + sizeof word;
}

static uint32_t offset_of(const volatile uint64_t *place)
{
    return (uint32_t)((uintptr_t)place - MARKS_BASE);
}

static uint8_t *load(uint8_t *p, unsigned reg, const volatile uint64_t *place)
{
    return emit(p, 0xf9400000u | offset_of(place) / 8 << 10 | X27 << 5 | reg); /* ldr */
}

static uint8_t *store(uint8_t *p, unsigned reg, const volatile uint64_t *place)
{
    return emit(p, 0xf9000000u | offset_of(place) / 8 << 10 | X27 << 5 | reg); /* str */
}

static uint32_t read_of(int32_t index)
{
    uint32_t n = (uint32_t)index;
    if (index == CLOCK_INDEX)
        return 0xd53be040u; /* mrs x0, cntvct_el0 */
    if (index == CYCLE_COUNTER)
        return 0xd53b9d00u; /* mrs x0, pmccntr_el0 */
    return 0xd53be800u | n / 8 << 8 | n % 8 << 5; /* mrs x0, pmevcntrN_el0 */
}

static uint8_t *read_one(uint8_t *p, int32_t index, const volatile uint64_t *place)
{
    p = arch_emit_fence(emit(arch_emit_fence(p), read_of(index)));
    return store(p, X0, place);
}

static uint8_t *add(uint8_t *p, unsigned i)
{
    p = load(load(p, X0, &MARKS->end[i]), X1, &MARKS->start[i]);
    p = load(emit(p, 0xcb010000u), X1, &MARKS->sum[i]); /* sub x0, x0, x1 */
    return store(emit(p, 0x8b010000u), X0, &MARKS->sum[i]); /* add x0, x0, x1 */
}

int arch_marks_are_free(void)
{
    return 0;
}

uint8_t *arch_emit_marks_base(uint8_t *p)
{
    while ((uintptr_t)p & 3) /* after a setup that is no code */
        *p++ = 0;
    p = emit(p, 0x52800000u | (MARKS_BASE & 0xffff) << 5 | X27);        /* mov w27, #low */
    return emit(p, 0x72a00000u | (MARKS_BASE >> 16 & 0xffff) << 5 | X27); /* movk w27, #high, lsl #16 */
}

uint8_t *arch_emit_mark(uint8_t *p, int resumes, const int32_t *indices, unsigned count)
{
    p = store(store(p, X0, &MARKS->kept[X0]), X1, &MARKS->kept[X1]);
    for (unsigned i = 0; i < count; i++)
        p = read_one(p, indices[i], resumes ? &MARKS->start[i] : &MARKS->end[i]);
    for (unsigned i = 0; i < count && !resumes; i++)
        p = add(p, i);
    return arch_emit_fence(load(load(p, X0, &MARKS->kept[X0]), X1, &MARKS->kept[X1]));
}
