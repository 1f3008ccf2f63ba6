/* States to start from, for differential execution.
 *
 * A base is one of four flavours: values of the form's element type, special ones of them, small
 * integers, and equal values everywhere. Registers that the state points into data, stack or code
 * stay pointers.
 */
#define _GNU_SOURCE
#include "values.h"
#include <string.h>

enum flavour { ELEMENTS, SPECIAL, SMALL, EQUAL, FLAVOURS };
#define LAST_ATTEMPT 4u

static uint64_t mixed_integer(struct values *v)
{
    uint64_t value = values_next(v);
    switch (value >> 62) {
    case 0:
        return values_next(v);
    case 1:
        return value & UINT32_MAX;
    default:
        return values_small(v);
    }
}

static void draw_general(struct values *v, unsigned base, unsigned attempt)
{
    uint64_t equal = values_small(v);
    for (unsigned n = 0; n < GENERALS; n++) {
        uint64_t given = v->state->general[n], *to = &arch_in.general[n];
        enum role role = values_role(given);
        if (role != PLAIN)
            *to = values_pointer(v, role);
        else if (base == 0 || attempt >= LAST_ATTEMPT)
            *to = given;
        else if (base % FLAVOURS == EQUAL)
            *to = equal;
        else
            *to = attempt || base % FLAVOURS == SMALL ? values_small(v) : mixed_integer(v);
    }
}

static void draw_vector(struct values *v, uint8_t *to, size_t size, enum flavour flavour)
{
    if (flavour == SMALL)
        values_fill_small(v, to, size);
    else if (flavour == SPECIAL && values_below(v, 4) == 0)
        values_fill(v, to, size, DIFFER_INTEGER, OFTEN);
    else
        values_fill(v, to, size, values_kind(v), flavour == SPECIAL ? OFTEN : RARE);
}

/* Empty registers stay empty. */
static void draw_x87(struct values *v, uint8_t *slot, enum flavour flavour)
{
    const uint16_t exponent = UINT16_MAX;
    if (v->kernel->flags & DIFFER_MMX) {
        draw_vector(v, slot, MMX_BYTES, flavour);
        memcpy(slot + MMX_BYTES, &exponent, sizeof exponent);
    } else if (slot[X87_TAG]) {
        values_fill_x87(v, slot);
    }
}

static void draw_register(struct values *v, unsigned location, unsigned base)
{
    const struct location *l = &arch_locations[location];
    uint8_t *at = values_register(location);
    enum flavour flavour = base % FLAVOURS;
    switch (l->kind) {
    case LOCATION_VECTOR:
        if (values_is_index(v, location))
            values_fill_index(v, at, l->size);
        else
            draw_vector(v, at, l->size, flavour);
        break;
    case LOCATION_MASK:
        values_fill_with(at, l->size, base ? values_mask(v) : UINT64_MAX);
        break;
    case LOCATION_X87:
        draw_x87(v, at, flavour);
        break;
    case LOCATION_BITS:
        if (base)
            values_flip(l, at, (uint32_t)values_next(v));
        break;
    default:
        break;
    }
}

/* Every vector register becomes the first one, part by part. */
static void make_equal(void)
{
    for (unsigned n = VECTOR_FIRST; n < VECTOR_FIRST + 32 * VECTOR_PARTS; n++) {
        const struct location *l = &arch_locations[n];
        if (l->kind == LOCATION_VECTOR)
            memcpy(values_register(n), values_register(values_part(n)), l->size);
    }
}

static void fill_pattern(uint8_t *page, const uint8_t pattern[64])
{
    for (size_t at = 0; at < PAGE_BYTES; at += 64)
        memcpy(page + at, pattern, 64);
}

static void draw_page(struct values *v, unsigned page, unsigned base, unsigned attempt)
{
    uint8_t *to = v->page[page];
    if (values_hold_code(v, page))
        values_fill_with(to, PAGE_BYTES, values_code_pointer(v));
    else if (base == 0 || attempt >= LAST_ATTEMPT)
        fill_pattern(to, v->state->fill[page]);
    else if (base % FLAVOURS == EQUAL)
        values_fill_with(to, PAGE_BYTES, arch_in.general[0]);
    else
        draw_vector(v, to, PAGE_BYTES, base % FLAVOURS);
}

void values_start(struct values *v, const struct kernel *kernel, const struct state *state,
                  uint32_t seed)
{
    const uint8_t *code = (const uint8_t *)(kernel + 1) + kernel->setup;
    v->kernel = kernel;
    v->state = state;
    v->random = seed + 0x9e3779b97f4a7c15ull;
    for (unsigned n = 0; n < kernel->body; n++)
        v->random = (v->random ^ code[n]) * 0x100000001b3ull;
    v->random |= 1;
}

/* A later attempt is less adventurous; the last has what the state gives. */
void values_draw(struct values *v, unsigned base, unsigned attempt)
{
    arch_machine_reset(v->kernel->flags);
    draw_general(v, base, attempt);
    for (unsigned n = AT_REGISTERS; n < LOCATIONS_END; n++)
        draw_register(v, n, base);
    if (base % FLAVOURS == EQUAL && !(v->kernel->flags & DIFFER_INDEXED))
        make_equal();
    for (unsigned page = 0; page < PAGES; page++)
        draw_page(v, page, base, attempt);
}
