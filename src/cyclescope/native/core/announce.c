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

/* When an operation could start if what was announced comes; UNKNOWN where something was not, or a load that it
 * belongs to has not begun. */
static int64_t due_at(struct run *r, int64_t slot, int32_t o)
{
    const struct instance *i = &r->instances[slot];
    const struct instruction *ins = &r->p->body[i->index];
    const struct operation *form = &ins->form->operation[o];
    int64_t due = (i->dispatched + 1) * ONE, first = sequence_of(r, slot) - i->index;
    for (int32_t other = 0; ins->form->early && !form->early && other < ins->form->operations; other++)
        if (ins->form->operation[other].early && operations_of(r, slot)[other].issued == NONE)
            return UNKNOWN;
    for (int32_t l = 0; l < ins->links; l++) {
        const struct link *link = &r->p->links[ins->first_link + l];
        int64_t from = first + link->producer - (int64_t)link->distance * r->p->count;
        if (from < r->head || form->after[link->source] == NEVER)
            continue;
        const struct value *value = &values_of(r, from & r->mask)[link->target];
        if (value->at == UNKNOWN && !value->announced)
            return UNKNOWN;
        if (value->at == UNKNOWN && r->now * ONE + form->after[link->source] > due)
            due = r->now * ONE + form->after[link->source];
    }
    for (int32_t s = 0; s < ins->form->sources; s++) {
        int64_t from = start_of(&arrivals_of(r, slot)[s], (i->dispatched + 1) * ONE);
        if (form->after[s] != NEVER && from + form->after[s] > due)
            due = from + form->after[s];
    }
    return due;
}

/* It hopes again so many cycles from now. */
static void hope_in(struct run *r, int32_t place, int64_t cycles)
{
    int32_t *bucket = &r->hoping_later[(r->now + cycles) % WHEEL];
    r->operations[place].early = LATER;
    r->operations[place].next_later = *bucket;
    *bucket = place;
}

/* An operation that waits asks for a port, from the next cycle on at the earliest, when all its sources are there
 * or announced. */
void hope(struct run *r, int64_t slot, int32_t o)
{
    struct pending *op = &operations_of(r, slot)[o];
    if (op->early || op->issued != NONE || !op->waits || !is_announcing(r, r->p->masks[op->class]))
        return;
    int64_t due = due_at(r, slot, o), ahead = due == UNKNOWN ? WHEEL : in_cycles(due) - 1 - r->now;
    int32_t place = (int32_t)(slot * r->p->most_operations + o);
    if (ahead >= WHEEL)
        return;
    if (ahead > 0) {
        hope_in(r, place, ahead);
        return;
    }
    op->early = HOPING;
    r->hoping[r->hopes++] = place;
}

/* What was too early to hope before does so now. */
static void hope_now(struct run *r)
{
    int32_t place = r->hoping_later[r->now % WHEEL];
    r->hoping_later[r->now % WHEEL] = NONE;
    while (place != NONE) {
        struct pending *op = &r->operations[place];
        int32_t next = op->next_later;
        op->early = 0;
        hope(r, place / r->p->most_operations, place % r->p->most_operations);
        place = next;
    }
}

static void ask_as(struct run *r, int64_t slot, int32_t o, int64_t age)
{
    const struct pending *op = &operations_of(r, slot)[o];
    if (heap_push(&r->core->heaps[r->core->policy == IDEAL ? op->class : op->port], key_of(slot, o, age)))
        r->failed = FAILED_MEMORY;
    r->ready++;
}

/* An operation asks for a port from now on: the oldest first, as far as it is known which those are. */
void ask(struct run *r, int64_t slot, int32_t o)
{
    int64_t age = operations_of(r, slot)[o].age;
    if (r->core->blur)
        age += (uint32_t)(any_number(age % SPREAD * PATTERN + r->now % PATTERN) >> 32) % (uint32_t)(r->core->blur + 1);
    ask_as(r, slot, o, age);
}

/* Those that hoped in the cycle before ask now, beside those that are ready. */
void ask_early(struct run *r)
{
    int32_t most = r->p->most_operations;
    for (int32_t n = 0; n < r->hopes; n++) {
        struct pending *op = &r->operations[r->hoping[n]];
        op->early = !op->waits && op->ready <= r->now ? 0 : ASKING; /* what is ready asks already */
        if (op->early)
            ask(r, r->hoping[n] / most, r->hoping[n] % most);
    }
    r->hopes = 0;
    hope_now(r);
}

/* A port is lost for this cycle: the operation asks again in the next one. */
void lose(struct run *r, uint64_t key, int32_t rank)
{
    r->busy_at[rank] = (r->now + 1) * ONE;
    r->in_vain[r->vain++] = key;
    r->active = 1;
}

/* Whether an operation got its port too early: it finds that out before it hopes again, and leaves out a cycle. */
int is_vain(struct run *r, uint64_t key, int32_t rank)
{
    int32_t place = (int32_t)(slot_of(key) * r->p->most_operations + (int64_t)(key & 255));
    const struct pending *op = &r->operations[place];
    if (!op->early || (!op->waits && op->ready <= r->now))
        return 0;
    r->busy_at[rank] = (r->now + 1) * ONE;
    r->active = 1;
    hope_in(r, place, 1);
    return 1;
}

static struct pending *operation_of(struct run *r, uint64_t key)
{
    return &operations_of(r, slot_of(key))[key & 255];
}

/* What lost its port to another result asks again in the next cycle. Who does for long is taken for no older than it
 * is: else it could keep what it waits for from ever getting a port. */
void ask_again(struct run *r)
{
    while (r->vain) {
        uint64_t key = r->in_vain[--r->vain];
        struct pending *op = operation_of(r, key);
        if (op->refused++ < PATTERN)
            ask(r, slot_of(key), (int32_t)(key & 255));
        else
            ask_as(r, slot_of(key), (int32_t)(key & 255), op->age + r->core->blur);
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
