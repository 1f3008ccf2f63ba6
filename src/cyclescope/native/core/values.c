/* Values: when they are there, and what becomes ready with them. */
#include "run.h"

/* An operation that knows all it waits for. */
static void schedule(struct run *r, int64_t slot, int32_t o)
{
    const struct instance *i = &r->instances[slot];
    const struct template *form = r->p->body[i->index].form;
    const struct arrival *arrivals = arrivals_of(r, slot);
    struct pending *op = &operations_of(r, slot)[o];
    int64_t first = (i->dispatched + 1) * ONE, ready_at = first;
    op->last = NONE;
    for (int32_t s = 0; s < form->sources; s++) {
        int32_t after = form->operation[o].after[s];
        if (after == NEVER)
            continue;
        int64_t from = form->operation[o].early ? arrivals[s].at : start_of(&arrivals[s], first);
        if (from + after > ready_at) {
            ready_at = from + after;
            op->last = s;
        }
    }
    op->ready = in_cycles(ready_at);
    if (op->ready <= r->now)
        op->ready = r->now + 1;
    if (r->core->in_order)
        return;
    int32_t *bucket = &r->wheel[op->ready % WHEEL];
    op->next = *bucket;
    *bucket = (int32_t)(slot * r->p->most_operations + o);
}

static void settle(struct run *r, int64_t slot, int32_t t);

/* Source `s` of an instance has arrived from one more of its producers. */
static void arrive(struct run *r, int64_t slot, int32_t s, int64_t at)
{
    const struct template *form = r->p->body[r->instances[slot].index].form;
    struct arrival *arrival = &arrivals_of(r, slot)[s];
    if (at > arrival->at)
        arrival->at = at;
    struct pending *ops = operations_of(r, slot);
    for (int32_t o = 0; o < form->operations; o++)
        if (form->operation[o].after[s] != NEVER) {
            if (!--ops[o].waits)
                schedule(r, slot, o);
            else if (r->core->announcing)
                hope(r, slot, o);
        }
    struct value *values = values_of(r, slot);
    for (uint32_t left = live_of(r, slot); left; left &= left - 1) {
        int32_t t = __builtin_ctz(left);
        if (form->latency[s * form->targets + t] != NEVER && !--values[t].waits)
            settle(r, slot, t);
    }
}

static int64_t value_at(const struct run *r, int64_t slot, int32_t t, const struct value *value)
{
    const struct instance *i = &r->instances[slot];
    const struct template *form = r->p->body[i->index].form;
    const struct arrival *arrivals = arrivals_of(r, slot);
    int64_t first = (i->dispatched + 1) * ONE, at = first + form->base[t];
    for (int32_t s = 0; s < form->sources; s++) {
        int32_t latency = form->latency[s * form->targets + t];
        int64_t from = start_of(&arrivals[s], first);
        if (latency != NEVER && from + latency > at)
            at = from + latency;
    }
    return at + value->late * ONE;
}

/* A target whose sources and operations are all known. */
static void settle(struct run *r, int64_t slot, int32_t t)
{
    struct instance *i = &r->instances[slot];
    struct value *value = &values_of(r, slot)[t];
    value->at = value_at(r, slot, t, value);
    if (value->at < r->now * ONE) /* it waited for an operation that it does not depend on */
        value->at = r->now * ONE;
    if (value->at > i->complete_at)
        i->complete_at = value->at;
    i->left--;
    int32_t reader = value->readers;
    value->readers = NONE;
    while (reader != NONE) {
        int32_t next = r->next_reader[reader], link = reader % r->p->most_links;
        int64_t there = reader / r->p->most_links;
        const struct instruction *ins = &r->p->body[r->instances[there].index];
        arrive(r, there, r->p->links[ins->first_link + link].source, value->at);
        reader = next;
    }
}

/* A load has issued: what it waited for counts from when it got a port. */
void load(struct run *r, int64_t slot, const struct operation *early, int64_t late)
{
    const struct template *form = r->p->body[r->instances[slot].index].form;
    struct arrival *arrivals = arrivals_of(r, slot);
    for (int32_t s = 0; s < form->sources; s++)
        if (early->after[s] != NEVER && late > arrivals[s].late)
            arrivals[s].late = late;
    struct pending *ops = operations_of(r, slot);
    for (int32_t o = 0; o < form->operations; o++)
        if (!form->operation[o].early) {
            if (!--ops[o].waits)
                schedule(r, slot, o);
            else if (r->core->announcing)
                hope(r, slot, o);
        }
    feed(r, slot, early->feeds, 0);
}

/* One operation fewer that targets wait for, `late` cycles after it was ready. */
void feed(struct run *r, int64_t slot, uint32_t targets, int64_t late)
{
    for (targets &= live_of(r, slot); targets; targets &= targets - 1) {
        int32_t t = __builtin_ctz(targets);
        struct value *value = &values_of(r, slot)[t];
        if (late > value->late)
            value->late = late;
        if (!--value->waits)
            settle(r, slot, t);
    }
}

static void wait_for(struct run *r, int64_t slot, int32_t s)
{
    const struct template *form = r->p->body[r->instances[slot].index].form;
    struct pending *ops = operations_of(r, slot);
    struct value *values = values_of(r, slot);
    for (int32_t o = 0; o < form->operations; o++)
        ops[o].waits += form->operation[o].after[s] != NEVER;
    for (uint32_t left = live_of(r, slot); left; left &= left - 1) {
        int32_t t = __builtin_ctz(left);
        values[t].waits += form->latency[s * form->targets + t] != NEVER;
    }
}

/* Links of a new instance to its producers in flight. What has retired is there. */
static void link_up(struct run *r, int64_t sequence)
{
    int64_t slot = sequence & r->mask;
    const struct instruction *ins = &r->p->body[r->instances[slot].index];
    struct arrival *arrivals = arrivals_of(r, slot);
    for (int32_t l = 0; l < ins->links; l++) {
        const struct link *link = &r->p->links[ins->first_link + l];
        int64_t from = sequence - r->instances[slot].index + link->producer -
                       (int64_t)link->distance * r->p->count;
        if (from < r->head)
            continue;
        struct value *value = &values_of(r, from & r->mask)[link->target];
        if (value->at != UNKNOWN) {
            if (value->at > arrivals[link->source].at)
                arrivals[link->source].at = value->at;
            continue;
        }
        int32_t reader = (int32_t)(slot * r->p->most_links + l);
        r->next_reader[reader] = value->readers;
        value->readers = reader;
        wait_for(r, slot, link->source);
    }
}

/* Lets a dispatched instruction wait for its sources, or start where there are none to wait for. */
void connect(struct run *r, int64_t sequence)
{
    int64_t slot = sequence & r->mask;
    const struct template *form = r->p->body[r->instances[slot].index].form;
    struct pending *ops = operations_of(r, slot);
    struct value *values = values_of(r, slot);
    uint32_t live = live_of(r, slot);
    for (int32_t s = 0; s < form->sources; s++)
        arrivals_of(r, slot)[s] = (struct arrival){0, 0};
    for (uint32_t left = live; left; left &= left - 1)
        values[__builtin_ctz(left)] = (struct value){UNKNOWN, 0, 1, 0, NONE}; /* 1: until all is linked */
    for (int32_t o = 0; o < form->operations; o++) {
        ops[o].waits = form->operation[o].early ? 0 : form->early;
        ops[o].issued = NONE;
        ops[o].early = 0;
        for (uint32_t fed = form->operation[o].feeds & live; fed; fed &= fed - 1)
            values[__builtin_ctz(fed)].waits++;
    }
    link_up(r, sequence);
    for (int32_t o = 0; o < form->operations; o++)
        if (!ops[o].waits)
            schedule(r, slot, o);
        else if (r->core->announcing)
            hope(r, slot, o);
    for (; live; live &= live - 1)
        if (!--values[__builtin_ctz(live)].waits)
            settle(r, slot, __builtin_ctz(live));
}

/* Moves operations that are ready in this cycle to the heaps. */
void wake(struct run *r)
{
    int32_t *bucket = &r->wheel[r->now % WHEEL], kept = NONE;
    int32_t most = r->p->most_operations;
    while (*bucket != NONE) {
        int32_t place = *bucket;
        struct pending *op = &r->operations[place];
        *bucket = op->next;
        if (op->ready > r->now) {
            op->next = kept;
            kept = place;
            continue;
        }
        if (r->core->announcing)
            r->asked[r->asking++] = place;
        if (op->early == ASKING)
            continue;
        ask(r, place / most, place % most);
    }
    *bucket = kept;
}
