/* What instructions make of the values of their operands, as far as addresses need it. */
#include "search.h"

#define SHIFTS 63 /* by which a factor can be shifted here */

/* The values of the operands that a programmer writes. */
static int32_t explicit_values(const struct sight *s, const struct value **values)
{
    int32_t count = 0;
    for (int32_t n = 0; n < s->line->operand_count; n++)
        if (!(s->line->operands[n].flags & OPERAND_IMPLICIT))
            values[count++] = s->operands[n];
    return count;
}

static const struct value *one_of(struct knowledge *k, const struct sight *s, int32_t number)
{
    const struct value *values[MOST_OPERANDS];
    if (number < explicit_values(s, values))
        return values[number];
    k->odd = 1;
    return NULL;
}

static const struct value *first_address(const struct sight *s)
{
    for (int32_t n = 0; n < s->line->address_count; n++)
        if (s->addresses[n])
            return s->addresses[n];
    return NULL;
}

static const struct value *loaded(const struct sight *s)
{
    for (int32_t n = 0; n < s->line->operand_count; n++)
        if (s->line->operands[n].flags & OPERAND_MEMORY)
            return s->operands[n];
    return NULL;
}

/* The last two operands: of `add a, b` and `add d, a, b` alike. A fourth would shift the third. */
static int two(const struct sight *s, const struct value **first, const struct value **second)
{
    const struct value *values[MOST_OPERANDS];
    int32_t count = explicit_values(s, values);
    if (count < 2 || count > 3 || !values[count - 2] || !values[count - 1])
        return 0;
    *first = values[count - 2];
    *second = values[count - 1];
    return 1;
}

static const struct value *of_two(struct knowledge *k, const struct sight *s, int32_t rule)
{
    const struct value *one, *other;
    if (!two(s, &one, &other))
        return NULL;
    if (rule == SUM || rule == DIFFERENCE)
        return sum_of(k, one, other, rule == SUM ? 1 : -1);
    if (rule == SAME_IS_ZERO)
        return same_value(one, other) ? number_value(k, 0) : NULL;
    if (other->count)
        return NULL;
    if (rule == PRODUCT)
        return multiple_of(k, one, other->constant);
    if (other->constant < 0 || other->constant > SHIFTS)
        return NULL;
    k->odd |= other->constant == SHIFTS;
    return multiple_of(k, one, k->odd ? 1 : (int64_t)1 << other->constant);
}

static const struct value *counted(struct knowledge *k, const struct sight *s, int64_t change)
{
    const struct value *value = one_of(k, s, 0);
    return value ? sum_of(k, value, number_value(k, change), 1) : NULL;
}

/* AArch64 writes a move as an OR with the zero register. */
static const struct value *of_zero(const struct sight *s)
{
    const struct value *values[MOST_OPERANDS];
    int is_move = explicit_values(s, values) > 2 && values[1] && !values[1]->count && !values[1]->constant;
    return is_move ? values[2] : NULL;
}

/* AArch64 writes a shift to the left as a move of a bit field. */
static const struct value *bit_field(struct knowledge *k, const struct sight *s)
{
    const struct value *values[MOST_OPERANDS];
    if (explicit_values(s, values) != 4) {
        k->odd = 1;
        return NULL;
    }
    const struct value *source = values[1], *rotated = values[2], *last = values[3];
    if (!source || !rotated || !last || (uint64_t)rotated->constant != (uint64_t)last->constant + 1)
        return NULL;
    int32_t width = s->line->operands[0].width;
    k->odd |= rotated->constant > width || width - SHIFTS >= rotated->constant;
    return multiple_of(k, source, k->odd ? 1 : (int64_t)1 << (width - rotated->constant));
}

const struct value *by_rule(struct knowledge *k, const struct sight *s, int32_t rule)
{
    switch (rule) {
    case MOVED:
        return one_of(k, s, 1);
    case ADDRESS:
        return first_address(s);
    case LOADED:
        return loaded(s);
    case UP:
    case DOWN:
        return counted(k, s, rule == UP ? 1 : -1);
    case OF_ZERO:
        return of_zero(s);
    case BIT_FIELD:
        return bit_field(k, s);
    default:
        return of_two(k, s, rule);
    }
}

/* The base of an address afterwards: the address, or what an immediate makes of it; NULL where that is not told. */
const struct value *written_back(struct knowledge *k, const struct sight *s, const struct value *old,
                                 const struct line_address *address)
{
    const struct value *only = NULL;
    int32_t immediates = 0;
    if (address->writeback == WRITTEN_BEFORE)
        return sum_of(k, old, number_value(k, address->constant), 1);
    for (int32_t n = 0; n < s->line->operand_count; n++) {
        const struct line_operand *op = &s->line->operands[n];
        const struct value *value = s->operands[n];
        if (op->flags & OPERAND_AMOUNT && value) {
            int is_implied = !value->count && !value->constant;
            return sum_of(k, old, is_implied ? number_value(k, op->amount) : value, 1);
        }
        if (op->flags & OPERAND_IMMEDIATE && value) {
            only = value;
            immediates++;
        }
    }
    return immediates == 1 ? sum_of(k, old, only, 1) : NULL;
}
