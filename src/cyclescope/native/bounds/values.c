/* Sums of unknowns, and what registers and memory hold while a block is gone through. */
#include "search.h"

enum { AT_THE_START = 1, IN_MEMORY };

int know(struct knowledge *k, struct arena *a, int32_t locations)
{
    k->a = a;
    k->odd = 0;
    k->unknown_count = k->unknown_room = k->length = 0;
    k->memory = NULL;
    k->unknowns = NULL;
    k->registers = take(a, (size_t)locations, sizeof *k->registers);
    if (a->failed)
        return NO_MEMORY;
    for (int32_t n = 0; n < locations; n++)
        k->registers[n] = NULL;
    for (int32_t n = 0; n < BUCKETS; n++)
        k->buckets[n] = NONE;
    return 0;
}

static const struct value nothing = {0, 0, {{0, 0}}}; /* where there is no memory */

static struct value *new_value(struct knowledge *k)
{
    return take(k->a, 1, sizeof(struct value));
}

const struct value *number_value(struct knowledge *k, int64_t constant)
{
    struct value *found = new_value(k);
    if (!found)
        return &nothing;
    found->constant = constant;
    found->count = 0;
    return found;
}

static void add_term(struct knowledge *k, struct value *sum, int32_t unknown, int64_t factor)
{
    if (!factor)
        return;
    if (sum->count == MOST_SUM) {
        k->odd = 1;
        return;
    }
    sum->terms[sum->count++] = (struct term){unknown, factor};
}

static int64_t multiplied(struct knowledge *k, int64_t one, int64_t other)
{
    int64_t found = 0;
    k->odd |= __builtin_mul_overflow(one, other, &found);
    return found;
}

static int64_t added(struct knowledge *k, int64_t one, int64_t other)
{
    int64_t found = 0;
    k->odd |= __builtin_add_overflow(one, other, &found);
    return found;
}

const struct value *sum_of(struct knowledge *k, const struct value *one, const struct value *other, int64_t factor)
{
    struct value *sum = new_value(k);
    if (!sum)
        return &nothing;
    int32_t a = 0, b = 0;
    sum->count = 0;
    sum->constant = added(k, one->constant, multiplied(k, factor, other->constant));
    while (a < one->count || b < other->count) {
        const struct term *own = a < one->count ? &one->terms[a] : NULL;
        const struct term *its = b < other->count ? &other->terms[b] : NULL;
        int32_t unknown = !its || (own && own->unknown < its->unknown) ? own->unknown : its->unknown;
        int64_t times = 0;
        if (own && own->unknown == unknown) {
            times = own->factor;
            a++;
        }
        if (its && its->unknown == unknown) {
            times = added(k, times, multiplied(k, factor, its->factor));
            b++;
        }
        add_term(k, sum, unknown, times);
    }
    return sum;
}

const struct value *multiple_of(struct knowledge *k, const struct value *one, int64_t factor)
{
    return sum_of(k, &nothing, one, factor);
}

int same_terms(const struct value *one, const struct value *other)
{
    if (one == other)
        return 1;
    if (one->count != other->count)
        return 0;
    for (int32_t n = 0; n < one->count; n++)
        if (one->terms[n].unknown != other->terms[n].unknown || one->terms[n].factor != other->terms[n].factor)
            return 0;
    return 1;
}

/* Whether some term is in both. */
int shares_terms(const struct value *one, const struct value *other)
{
    for (int32_t a = 0; a < one->count; a++)
        for (int32_t b = 0; b < other->count; b++)
            if (one->terms[a].unknown == other->terms[b].unknown && one->terms[a].factor == other->terms[b].factor)
                return 1;
    return 0;
}

int same_value(const struct value *one, const struct value *other)
{
    return one->constant == other->constant && same_terms(one, other);
}

/* --- unknowns, each with a key: the same whenever the same is computed --- */

void begin_key(struct knowledge *k, int64_t kind)
{
    k->length = 0;
    add_to_key(k, kind);
}

void add_to_key(struct knowledge *k, int64_t number)
{
    if (k->length == MOST_KEY)
        k->odd = 1;
    else
        k->key[k->length++] = number;
}

void add_value_to_key(struct knowledge *k, const struct value *value)
{
    if (!value) {
        add_to_key(k, NONE);
        return;
    }
    add_to_key(k, value->count);
    add_to_key(k, value->constant);
    for (int32_t n = 0; n < value->count; n++) {
        add_to_key(k, value->terms[n].unknown);
        add_to_key(k, value->terms[n].factor);
    }
}

static uint32_t bucket_of(const int64_t *key, int32_t length)
{
    uint64_t hash = 0;
    for (int32_t n = 0; n < length; n++)
        hash = (hash ^ (uint64_t)key[n]) * 0x9E3779B97F4A7C15ull;
    return (uint32_t)(hash >> 40) % BUCKETS;
}

static int is_key(const struct knowledge *k, const struct unknown *one)
{
    if (one->length != k->length)
        return 0;
    for (int32_t n = 0; n < k->length; n++)
        if (one->key[n] != k->key[n])
            return 0;
    return 1;
}

static int grow(struct knowledge *k)
{
    int32_t room = k->unknown_room ? 2 * k->unknown_room : 64;
    struct unknown *unknowns = take(k->a, (size_t)room, sizeof *unknowns);
    if (!unknowns)
        return NO_MEMORY;
    for (int32_t n = 0; n < k->unknown_count; n++)
        unknowns[n] = k->unknowns[n];
    k->unknowns = unknowns;
    k->unknown_room = room;
    return 0;
}

/* The number of a new unknown with the key. */
static int32_t new_unknown(struct knowledge *k, uint32_t bucket)
{
    int64_t *key = take(k->a, (size_t)k->length, sizeof *key);
    if (!key || (k->unknown_count == k->unknown_room && grow(k)))
        return 0;
    for (int32_t n = 0; n < k->length; n++)
        key[n] = k->key[n];
    k->unknowns[k->unknown_count] = (struct unknown){key, k->length, k->buckets[bucket]};
    k->buckets[bucket] = k->unknown_count;
    return k->unknown_count++;
}

const struct value *unknown_of_key(struct knowledge *k)
{
    uint32_t bucket = bucket_of(k->key, k->length);
    int32_t number = k->buckets[bucket];
    while (number != NONE && !is_key(k, &k->unknowns[number]))
        number = k->unknowns[number].next;
    if (number == NONE)
        number = new_unknown(k, bucket);
    struct value *found = new_value(k);
    if (!found)
        return &nothing;
    *found = (struct value){0, 1, {{number, 1}}};
    return found;
}

/* --- registers and memory --- */

const struct value *register_value(struct knowledge *k, int32_t location)
{
    if (!k->registers[location]) {
        begin_key(k, AT_THE_START);
        add_to_key(k, location);
        k->registers[location] = unknown_of_key(k);
    }
    return k->registers[location];
}

const struct value *loaded_value(struct knowledge *k, const struct value *address)
{
    for (const struct stored_value *one = k->memory; one; one = one->next)
        if (same_value(one->address, address))
            return one->value;
    begin_key(k, IN_MEMORY);
    add_value_to_key(k, address);
    return unknown_of_key(k);
}

void store_value(struct knowledge *k, const struct value *address, const struct value *value)
{
    struct stored_value *stored = take(k->a, 1, sizeof *stored);
    if (!stored)
        return;
    *stored = (struct stored_value){address, value, k->memory};
    k->memory = stored;
}
