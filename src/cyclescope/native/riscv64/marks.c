/* RISC-V: reads of the clock and the counters within code. s10 leads to what they leave. */
#define _GNU_SOURCE
#include "../arch.h"
#include <string.h>

enum { T0 = 5, T1 = 6, S10 = 26 };
#define CYCLE 0xc00u /* counters follow it; the clock is the first of them, or the second */

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
    return emit(p, 0x3003u | reg << 7 | S10 << 15 | offset_of(place) << 20); /* ld */
}

static uint8_t *store(uint8_t *p, unsigned reg, const volatile uint64_t *place)
{
    uint32_t offset = offset_of(place);
    return emit(p, 0x3023u | (offset & 31) << 7 | S10 << 15 | reg << 20 | offset >> 5 << 25); /* sd */
}

static uint8_t *read_one(uint8_t *p, int32_t index, const volatile uint64_t *place)
{
    uint32_t number = index == CLOCK_INDEX ? !arch_counts_cycles() : (uint32_t)index;
    p = emit(arch_emit_fence(p), 0x2073u | T0 << 7 | (CYCLE + number) << 20); /* csrr t0 */
    return store(arch_emit_fence(p), T0, place);
}

static uint8_t *add(uint8_t *p, unsigned i)
{
    p = load(load(p, T0, &MARKS->end[i]), T1, &MARKS->start[i]);
    p = emit(p, 0x40000033u | T0 << 7 | T0 << 15 | T1 << 20); /* sub t0, t0, t1 */
    p = emit(load(p, T1, &MARKS->sum[i]), 0x33u | T0 << 7 | T0 << 15 | T1 << 20); /* add t0, t0, t1 */
    return store(p, T0, &MARKS->sum[i]);
}

int arch_marks_are_free(void)
{
    return 0;
}

uint8_t *arch_emit_marks_base(uint8_t *p)
{
    return emit(p, 0x37u | S10 << 7 | MARKS_BASE); /* lui s10 */
}

uint8_t *arch_emit_mark(uint8_t *p, int resumes, const int32_t *indices, unsigned count)
{
    p = store(store(p, T0, &MARKS->kept[0]), T1, &MARKS->kept[1]);
    for (unsigned i = 0; i < count; i++)
        p = read_one(p, indices[i], resumes ? &MARKS->start[i] : &MARKS->end[i]);
    for (unsigned i = 0; i < count && !resumes; i++)
        p = add(p, i);
    return arch_emit_fence(load(load(p, T0, &MARKS->kept[0]), T1, &MARKS->kept[1]));
}
