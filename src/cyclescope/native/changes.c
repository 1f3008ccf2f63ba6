/* Changes of one location, for differential execution. */
#define _GNU_SOURCE
#include "values.h"
#include <string.h>

static void change_general(struct values *v, unsigned n, unsigned kind)
{
    uint64_t *to = &arch_in.general[n];
    enum role role = values_role(v->state->general[n]);
    if (role != PLAIN) {
        *to = values_pointer(v, role);
        return;
    }
    switch (kind % 6) {
    case 0:
        *to ^= 1u << values_below(v, 8);
        break;
    case 1:
        *to = values_next(v);
        break;
    case 2:
        *to = values_small(v);
        break;
    case 3:
        *to = arch_in.general[(n + 1 + values_below(v, GENERALS - 1)) % GENERALS];
        break;
    case 4:
        *to ^= 1ull << values_below(v, 64);
        break;
    default:
        *to = *to ? 0 : UINT64_MAX;
        break;
    }
}

/* Another register's value of the same part. */
static void copy_vector(struct values *v, unsigned location)
{
    unsigned other = values_part(location) + values_below(v, 16);
    memcpy(values_register(location), values_register(other), arch_locations[location].size);
}

static void change_bytes(struct values *v, uint8_t *at, size_t size, unsigned kind)
{
    switch (kind % 6) {
    case 0:
        values_fill(v, at, size, values_kind(v), RARE);
        break;
    case 1:
        at[values_below(v, size < 4 ? (uint32_t)size : 4)] ^= 1u << values_below(v, 8);
        break;
    case 2:
        values_fill(v, at, size, values_kind(v), OFTEN);
        break;
    case 3:
        values_fill(v, at, size, DIFFER_INTEGER, RARE);
        break;
    case 4:
        for (size_t n = 0; n < size; n++)
            at[n] ^= 0x80;
        break;
    default:
        values_fill_small(v, at, size);
        break;
    }
}

static void change_vector(struct values *v, unsigned location, unsigned kind)
{
    const struct location *l = &arch_locations[location];
    if (values_is_index(v, location))
        values_fill_index(v, values_register(location), l->size);
    else if (kind % 7 == 6)
        copy_vector(v, location);
    else
        change_bytes(v, values_register(location), l->size, kind % 7);
}

static void change_mask(struct values *v, uint8_t *at, size_t size, unsigned kind)
{
    uint64_t value = 0;
    size = size < sizeof value ? size : sizeof value;
    memcpy(&value, at, size);
    switch (kind % 5) {
    case 0:
        value ^= 1u << values_below(v, 8);
        break;
    case 1:
        value = values_mask(v);
        break;
    case 2:
        value = value ? 0 : UINT64_MAX;
        break;
    case 3:
        value = value == UINT64_MAX ? 0 : UINT64_MAX;
        break;
    default:
        value ^= 1ull << values_below(v, 64);
        break;
    }
    memcpy(at, &value, size);
}

static void change_x87(struct values *v, uint8_t *slot, unsigned kind)
{
    if (v->kernel->flags & DIFFER_MMX)
        change_bytes(v, slot, MMX_BYTES, kind);
    else if (slot[X87_TAG])
        values_fill_x87(v, slot);
}

/* One bit or many of a control register. */
static void change_bits(struct values *v, const struct location *l, uint8_t *at, unsigned kind)
{
    uint32_t which = 0;
    while (!(which & l->free))
        which = kind & 1 ? 1u << values_below(v, 32) : (uint32_t)values_next(v);
    values_flip(l, at, which);
}

static void change_page(struct values *v, unsigned page, unsigned kind)
{
    uint8_t *to = v->page[page];
    uint64_t bit = 1ull << values_below(v, 8);
    if (values_hold_code(v, page) && kind % 2 == 0) {
        values_fill_with(to, PAGE_BYTES, values_code_pointer(v));
        return;
    }
    switch (kind % 5) {
    case 0:
        values_fill(v, to, PAGE_BYTES, values_kind(v), 1 + values_below(v, RARE));
        break;
    case 1:
        for (size_t at = 0; at < PAGE_BYTES; at += 4)
            to[at] ^= (uint8_t)bit;
        break;
    case 2:
        values_fill(v, to, PAGE_BYTES, DIFFER_INTEGER, RARE);
        break;
    case 3:
        values_fill_with(to, PAGE_BYTES, arch_in.general[0]);
        break;
    default:
        values_fill_small(v, to, PAGE_BYTES);
        break;
    }
}

void values_change(struct values *v, unsigned location, unsigned kind)
{
    const struct location *l = &arch_locations[location];
    if (location < PAGES)
        change_page(v, location, kind);
    else if (l->kind == LOCATION_GENERAL)
        change_general(v, location - AT_REGISTERS, kind);
    else if (l->kind == LOCATION_VECTOR)
        change_vector(v, location, kind);
    else if (l->kind == LOCATION_MASK)
        change_mask(v, values_register(location), l->size, kind);
    else if (l->kind == LOCATION_X87)
        change_x87(v, values_register(location), kind);
    else if (l->kind == LOCATION_BITS)
        change_bits(v, l, values_register(location), kind);
}
