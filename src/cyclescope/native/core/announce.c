/* Results that are announced before they are there.
 *
 * A scheduler that wakes up what reads a result of one cycle when the operation asks for a port, not when it
 * gets one, wakes it up too early where it gets none: the reader asks in vain, and the port that it gets is lost
 * for a cycle. */
#include "run.h"

/* Whether operations of a set of ports (in ranks) announce, and hear of what others announce. */
static int is_announcing(const struct run *r, uint64_t ports)
{
    for (; ports; ports &= ports - 1)
        if (!(r->core->announcing >> r->p->port_of[__builtin_ctzll(ports)] & 1))
            return 0;
    return 1;
}

/* When a result is there if what was announced comes, UNKNOWN where it was not. */
static int64_t expected_at(const struct run *r, const struct value *value)
{
    return value->at == UNKNOWN && value->announced ? r->now * ONE : value->at;
}

/* Whether all that an operation waits for is there or announced by the next cycle. */
static int is_due(struct run *r, int64_t slot, int32_t o)
{
    const struct instance *i = &r->instances[slot];
    const struct instruction *ins = &r->p->body[i->index];
    const struct operation *form = &ins->form->operation[o];
    int64_t first = r->head + ((slot - r->head) & r->mask) - i->index;
    for (int32_t l = 0; l < ins->links; l++) {
        const struct link *link = &r->p->links[ins->first_link + l];
        int64_t from = first + link->producer - (int64_t)link->distance * r->p->count;
        if (from < r->head || form->after[link->source] == NEVER)
            continue;
        int64_t at = expected_at(r, &values_of(r, from & r->mask)[link->target]);
        if (at == UNKNOWN || at + form->after[link->source] > (r->now + 1) * ONE)
            return 0;
    }
    return !ins->form->early || form->early;
}

/* An operation that waits asks for a port in the next cycle if all its sources are announced. */
void hope(struct run *r, int64_t slot, int32_t o)
{
    struct pending *op = &operations_of(r, slot)[o];
    if (op->early || op->issued != NONE || !op->waits || !is_announcing(r, r->p->masks[op->class]))
        return;
    if (!is_due(r, slot, o))
        return;
    op->early = HOPING;
    r->hoping[r->hopes++] = (int32_t)(slot * r->p->most_operations + o);
}

static void push(struct run *r, const struct pending *op, uint64_t key)
{
    if (heap_push(&r->core->heaps[op->class], key))
        r->failed = FAILED_MEMORY;
    r->ready++;
}

/* Those that hoped in the cycle before ask now, beside those that are ready. */
void ask_early(struct run *r)
{
    int32_t most = r->p->most_operations;
    for (int32_t n = 0; n < r->hopes; n++) {
        int64_t slot = r->hoping[n] / most, sequence = r->head + ((slot - r->head) & r->mask);
        struct pending *op = &r->operations[r->hoping[n]];
        op->early = !op->waits && op->ready <= r->now ? 0 : ASKING; /* what is ready asks already */
        if (op->early)
            push(r, op, key_of(sequence, r->hoping[n] % most));
    }
    r->hopes = 0;
}

static struct pending *operation_of(struct run *r, uint64_t key)
{
    return &operations_of(r, (int64_t)(key >> 8) & r->mask)[key & 255];
}

/* Whether an operation got its port too early; the port is lost for this cycle. */
int is_vain(struct run *r, uint64_t key, int32_t rank)
{
    const struct pending *op = operation_of(r, key);
    if (!op->early || (!op->waits && op->ready <= r->now))
        return 0;
    r->busy_at[rank] = (r->now + 1) * ONE;
    r->in_vain[r->vain++] = key;
    r->active = 1;
    return 1;
}

/* What asked in vain asks again in the next cycle. */
void ask_again(struct run *r)
{
    while (r->vain) {
        uint64_t key = r->in_vain[--r->vain];
        push(r, operation_of(r, key), key);
    }
}

static void tell_readers(struct run *r, struct value *value)
{
    value->announced = 1;
    for (int32_t reader = value->readers; reader != NONE; reader = r->next_reader[reader]) {
        int64_t there = reader / r->p->most_links;
        int32_t operations = r->p->body[r->instances[there].index].form->operations;
        for (int32_t o = 0; o < operations; o++)
            hope(r, there, o);
    }
}

/* Operations that asked for the first time and got no port: who reads their results hears of them. */
void announce(struct run *r)
{
    int32_t most = r->p->most_operations;
    for (int32_t n = 0; n < r->asking; n++) {
        int64_t slot = r->asked[n] / most;
        const struct pending *op = &r->operations[r->asked[n]];
        const struct template *form = r->p->body[r->instances[slot].index].form;
        uint32_t left = form->operation[r->asked[n] % most].announced & live_of(r, slot);
        if (op->issued != NONE || !is_announcing(r, r->p->masks[op->class]))
            continue;
        for (; left; left &= left - 1)
            tell_readers(r, &values_of(r, slot)[__builtin_ctz(left)]);
    }
    r->asking = 0;
}
