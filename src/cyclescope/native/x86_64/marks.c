/* x86-64: reads of the clock and the counters within code, which keep all registers and flags. */
#define _GNU_SOURCE
#include "../arch.h"
#include <string.h>

enum { RAX, RCX, RDX };

static uint8_t *bytes(uint8_t *p, const void *code, size_t n)
{
    memcpy(p, code, n);
    return p + n;
}

/* mov between a register and an absolute address, `wide` of 64 bits. */
static uint8_t *move(uint8_t *p, int wide, uint8_t opcode, unsigned reg, const volatile void *place)
{
    uint32_t address = (uint32_t)(uintptr_t)place;
    if (wide)
        *p++ = 0x48;
    *p++ = opcode;
    *p++ = (uint8_t)(0x04 | reg << 3);
    *p++ = 0x25;
    return bytes(p, &address, sizeof address);
}

static uint8_t *store(uint8_t *p, unsigned reg, const volatile uint64_t *place)
{
    return move(p, 1, 0x89, reg, place);
}

static uint8_t *load(uint8_t *p, unsigned reg, const volatile uint64_t *place)
{
    return move(p, 1, 0x8b, reg, place);
}

/* lfence; rdtsc or rdpmc; lfence; the halves to memory. */
static uint8_t *read_one(uint8_t *p, int32_t index, const volatile uint64_t *place)
{
    static const uint8_t clock[] = {0x0f, 0xae, 0xe8, 0x0f, 0x31, 0x0f, 0xae, 0xe8};
    static const uint8_t counter[] = {0x0f, 0xae, 0xe8, 0x0f, 0x33, 0x0f, 0xae, 0xe8};
    if (index == CLOCK_INDEX) {
        p = bytes(p, clock, sizeof clock);
    } else {
        *p++ = 0xb9; /* mov ecx, index */
        p = bytes(bytes(p, &index, sizeof index), counter, sizeof counter);
    }
    p = move(p, 0, 0x89, RAX, place);
    return move(p, 0, 0x89, RDX, (const volatile uint8_t *)place + 4);
}

/* sum += end - start, without flags: NOT and LEA leave them alone. */
static uint8_t *add(uint8_t *p, unsigned i)
{
    static const uint8_t negate[] = {0x48, 0xf7, 0xd0, 0x48, 0x8d, 0x40, 0x01}; /* not rax; lea rax, [rax+1] */
    static const uint8_t sum[] = {0x48, 0x8d, 0x04, 0x10};                      /* lea rax, [rax+rdx] */
    p = bytes(load(p, RAX, &MARKS->start[i]), negate, sizeof negate);
    p = bytes(load(p, RDX, &MARKS->end[i]), sum, sizeof sum);
    p = bytes(load(p, RDX, &MARKS->sum[i]), sum, sizeof sum);
    return store(p, RAX, &MARKS->sum[i]);
}

int arch_marks_are_free(void)
{
    return 1;
}

uint8_t *arch_emit_marks_base(uint8_t *p)
{
    return p;
}

uint8_t *arch_emit_mark(uint8_t *p, int resumes, const int32_t *indices, unsigned count)
{
    static const uint8_t fence[] = {0x0f, 0xae, 0xe8};
    for (unsigned reg = RAX; reg <= RDX; reg++)
        p = store(p, reg, &MARKS->kept[reg]);
    for (unsigned i = 0; i < count; i++)
        p = read_one(p, indices[i], resumes ? &MARKS->start[i] : &MARKS->end[i]);
    for (unsigned i = 0; i < count && !resumes; i++)
        p = add(p, i);
    for (unsigned reg = RAX; reg <= RDX; reg++)
        p = load(p, reg, &MARKS->kept[reg]);
    return bytes(p, fence, sizeof fence);
}
