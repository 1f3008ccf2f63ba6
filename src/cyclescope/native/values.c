/* Random numbers, pointers and the places of registers, for differential execution. */
#define _GNU_SOURCE
#include "values.h"
#include <string.h>

#define SMALL_MASK 127u
#define MIDDLE (PAGE_BYTES / 2)

uint8_t *const page_address[PAGES] = {(uint8_t *)PAGE_FIRST, (uint8_t *)PAGE_SECOND,
                                      (uint8_t *)PAGE_STACK};

/* --- random numbers ----------------------------------------------------------------------------- */

uint64_t values_next(struct values *v)
{
    v->random ^= v->random >> 12;
    v->random ^= v->random << 25;
    v->random ^= v->random >> 27;
    return v->random * 2685821657736338717ull;
}

uint32_t values_below(struct values *v, uint32_t limit)
{
    return (uint32_t)((values_next(v) >> 32) * limit >> 32);
}

enum { NORMAL, ZERO, DENORMAL, INFINITE, NOT_A_NUMBER, SMALLEST, ONE, CLASSES };

/* A floating-point number near 1, or one of a special class. */
static uint64_t number(struct values *v, unsigned class, unsigned bits, unsigned fraction)
{
    uint64_t random = values_next(v), mantissa = random & ((1ull << fraction) - 1);
    uint64_t largest = (1ull << (bits - fraction - 1)) - 1, bias = largest >> 1;
    const uint64_t near = bias - 6 + (random >> 32) % 13;
    const uint64_t exponent[CLASSES] = {near, 0, 0, largest, largest, 1, bias};
    if (class == ZERO || class == INFINITE || class == ONE)
        mantissa = 0;
    return (random >> 63) << (bits - 1) | exponent[class] << fraction | mantissa;
}

/* Bytes and fraction bits of each kind of values; an integer is a random word. */
static const struct {
    uint8_t bytes, fraction;
} formats[] = {[DIFFER_INTEGER] = {8, 0}, [DIFFER_F16] = {2, 10}, [DIFFER_BF16] = {2, 7},
               [DIFFER_F32] = {4, 23},    [DIFFER_F64] = {8, 52}};

/* Values of one kind, one in `rare` a special number. */
void values_fill(struct values *v, uint8_t *to, size_t size, unsigned kind, uint32_t rare)
{
    const unsigned bytes = formats[kind].bytes, fraction = formats[kind].fraction;
    for (size_t at = 0; at < size; at += bytes) {
        unsigned class = values_below(v, rare) ? NORMAL : values_below(v, CLASSES);
        uint64_t value = fraction ? number(v, class, 8 * bytes, fraction) : values_next(v);
        memcpy(to + at, &value, bytes < size - at ? bytes : size - at);
    }
}

/* One in eight is 0: a count that leaves everything alone. */
uint64_t values_small(struct values *v)
{
    uint64_t value = values_next(v);
    return value >> 62 ? value & SMALL_MASK : value & 1;
}

void values_fill_small(struct values *v, uint8_t *to, size_t size)
{
    for (size_t at = 0; at < size; at += 8) {
        uint64_t value = values_small(v);
        memcpy(to + at, &value, size - at < 8 ? size - at : 8);
    }
}

void values_fill_with(uint8_t *to, size_t size, uint64_t value)
{
    for (size_t at = 0; at < size; at += 8)
        memcpy(to + at, &value, size - at < 8 ? size - at : 8);
}

/* A normal number around 1, of 80 bits. */
void values_fill_x87(struct values *v, uint8_t *slot)
{
    uint64_t random = values_next(v), mantissa = values_next(v) | 1ull << 63;
    uint16_t exponent = (uint16_t)(0x3ffc + random % 7) | (uint16_t)(random >> 48 & 0x8000);
    memcpy(slot, &mantissa, sizeof mantissa);
    memcpy(slot + sizeof mantissa, &exponent, sizeof exponent);
}

/* Scalar forms look at the lowest bit only: set in three of four. */
uint64_t values_mask(struct values *v)
{
    return values_next(v) | (values_next(v) & 1);
}

unsigned values_kind(const struct values *v)
{
    unsigned kind = v->kernel->flags & DIFFER_VALUES;
    return kind <= DIFFER_F64 ? kind : DIFFER_INTEGER;
}

/* --- pointers ----------------------------------------------------------------------------------- */

static int within(uint64_t address, uint64_t base, uint64_t size)
{
    return address >= base && address < base + size;
}

enum role values_role(uint64_t value)
{
    if (within(value, DATA_BASE, DATA_SIZE))
        return value < (PAGE_FIRST + PAGE_SECOND) / 2 ? FIRST : SECOND;
    if (within(value, STACK_BASE, STACK_SIZE))
        return STACK;
    return within(value, CODE_BASE, CODE_SIZE) ? CODE_POINTER : PLAIN;
}

uint64_t values_code_pointer(struct values *v)
{
    return CODE_BASE + EXIT_SPACING * (1 + values_below(v, EXITS - 1));
}

uint64_t values_pointer(struct values *v, enum role role)
{
    uint64_t steps = values_below(v, 9);
    switch (role) {
    case FIRST:
        return PAGE_FIRST + MIDDLE - 256 + 64 * steps;
    case SECOND:
        return PAGE_SECOND + MIDDLE - 256 + 64 * steps;
    case STACK:
        return PAGE_STACK + MIDDLE - 128 + 32 * steps;
    default:
        return values_code_pointer(v);
    }
}

int values_hold_code(const struct values *v, unsigned page)
{
    uint64_t first;
    if (page == AT_STACK)
        return 1;
    memcpy(&first, v->state->fill[page], sizeof first);
    return values_role(first) == CODE_POINTER;
}

/* --- registers ---------------------------------------------------------------------------------- */

uint8_t *values_register(unsigned location)
{
    return (uint8_t *)&arch_in + arch_locations[location].offset;
}

/* The first location of the part of a vector register that a location is. */
unsigned values_part(unsigned location)
{
    return VECTOR_FIRST + (location - VECTOR_FIRST) / 32 * 32;
}

/* Elements of a vector of indices: small numbers, or pointers of the size that the state has. */
void values_fill_index(struct values *v, uint8_t *to, size_t size)
{
    const unsigned number = v->kernel->flags >> DIFFER_INDEX_SHIFT & 31;
    uint64_t given, value;
    memcpy(&given, v->state->vector[number], sizeof given);
    size_t bytes = values_role(given) == PLAIN ? 4 : 8;
    enum role role = values_role(bytes == 4 ? (uint32_t)given : given);
    if (role == PLAIN) {
        values_fill_small(v, to, size);
        return;
    }
    for (size_t at = 0; at < size; at += bytes) {
        value = values_pointer(v, role);
        memcpy(to + at, &value, bytes < size - at ? bytes : size - at);
    }
}

int values_is_index(const struct values *v, unsigned location)
{
    unsigned number = v->kernel->flags >> DIFFER_INDEX_SHIFT & 31;
    if (!(v->kernel->flags & DIFFER_INDEXED))
        return 0;
    return location >= VECTOR_FIRST && location < VECTOR_FIRST + 32 * VECTOR_PARTS &&
           (location - VECTOR_FIRST - number) % 32 < 1u << (v->kernel->flags >> DIFFER_GROUP_SHIFT);
}

void values_flip(const struct location *l, uint8_t *at, uint32_t which)
{
    uint32_t word = 0;
    memcpy(&word, at, l->size < 4 ? l->size : 4);
    word ^= which & l->free;
    memcpy(at, &word, l->size < 4 ? l->size : 4);
}
