/* A loop on a core, cycle by cycle, to the steady state. */
#include "run.h"
#include <stdlib.h>
#include <string.h>

#define SPACING 64 /* instructions, those in flight apart, between two looks for a state seen before */
#define SLOTS 1024 /* of the table of states */

/* A state seen: when, how many had retired, and what had been issued by then. Retired, not dispatched: a
 * front end that is hardly faster than the ports fills the buffers for long. */
struct seen {
    uint64_t hash;
    int64_t cycle, instructions;
    int64_t issued[PORTS];
};

struct history {
    struct seen *rows;
    int32_t count, room, slots[SLOTS];
    int64_t next; /* iteration of the next look */
};

/* --- one cycle ------------------------------------------------------------------------------- */

static void retire(struct run *r)
{
    while (r->head < r->tail) {
        int64_t sequence = r->head;
        const struct instance *i = instance_of(r, sequence);
        if (i->left || i->complete_at > r->now * ONE)
            return;
        const struct template *form = r->p->body[i->index].form;
        r->entries -= form->entries;
        r->loads -= form->loads;
        r->stores -= form->stores;
        if (r->trace && sequence < r->trace->iterations * r->p->count) {
            r->trace->instructions[INSTRUCTION_ROW * sequence + 1] = in_cycles(i->complete_at);
            r->trace->instructions[INSTRUCTION_ROW * sequence + 2] = r->now;
        }
        r->head++;
        r->active = 1;
    }
}

static int fits(int32_t used, int32_t more, int32_t room)
{
    return !more || !used || used + more <= room;
}

static int refuse(struct run *r, int32_t buffer)
{
    if (r->refused_at == NONE)
        r->refused_at = r->now;
    r->refused_by = buffer;
    return 0;
}

/* Room in the reorder buffer, the load and store buffers, and the queues. */
static int allocate(struct run *r, const struct template *form)
{
    if (!fits(r->entries, form->entries, r->core->entries))
        return refuse(r, REORDER_BUFFER);
    if (!fits(r->loads, form->loads, r->core->loads))
        return refuse(r, LOAD_BUFFER);
    if (!fits(r->stores, form->stores, r->core->stores))
        return refuse(r, STORE_BUFFER);
    if (!bind_all(r, r->tail))
        return refuse(r, QUEUE);
    r->entries += form->entries;
    r->loads += form->loads;
    r->stores += form->stores;
    return 1;
}

static void enter(struct run *r, const struct template *form)
{
    int64_t sequence = r->tail++;
    *instance_of(r, sequence) =
        (struct instance){r->position, form->operations + r->p->body[r->position].lives, r->now, r->now * ONE};
    if (r->trace && sequence < r->trace->iterations * r->p->count) {
        int64_t *row = &r->trace->instructions[INSTRUCTION_ROW * sequence];
        row[0] = r->now;
        row[3] = r->refused_at;
        row[4] = r->refused_by;
    }
    r->refused_at = NONE;
    connect(r, sequence);
    r->dispatched += form->slots;
    r->position = r->position + 1 < r->p->count ? r->position + 1 : 0;
    r->remaining = NONE;
    r->active = 1;
}

/* Instructions in program order, as many as the slots of a cycle allow. A microcoded one shares its
 * cycles with no other. */
static void dispatch(struct run *r)
{
    if (r->core->policy == GROUPED && r->entries && r->entries + r->core->width / ONE > r->core->entries) {
        refuse(r, REORDER_BUFFER); /* a group is dispatched as a whole */
        return;
    }
    for (int64_t budget = r->core->width; budget > 0;) {
        const struct template *form = r->p->body[r->position].form;
        int alone = form->flags & MICROCODED;
        if (r->remaining == NONE) {
            if ((alone || form->needed > budget) && budget < r->core->width)
                return;
            r->remaining = form->slots;
        }
        if (r->remaining > budget) {
            r->remaining -= budget;
            r->active = 1;
            return;
        }
        r->room = alone ? 0 : budget - r->remaining;
        if (!allocate(r, form))
            return;
        budget = alone ? 0 : budget - r->remaining;
        enter(r, form);
    }
}

static int64_t next_wake(const struct run *r)
{
    for (int64_t cycle = r->now + 1; cycle < r->now + WHEEL; cycle++) {
        if (r->hoping_later[cycle % WHEEL] != NONE)
            return cycle;
        for (int32_t place = r->wheel[cycle % WHEEL]; place != NONE; place = r->operations[place].next)
            if (r->operations[place].ready == cycle)
                return cycle;
    }
    for (int32_t bucket = 0; bucket < WHEEL; bucket++)
        if (r->wheel[bucket] != NONE)
            return r->now + WHEEL;
    return UNKNOWN;
}

static int64_t next_in_order(struct run *r)
{
    int64_t first = UNKNOWN, slot = r->oldest_waiting & r->mask;
    if (r->oldest_waiting >= r->tail)
        return first;
    const struct pending *ops = operations_of(r, slot);
    for (int32_t o = 0; o < r->p->body[r->instances[slot].index].form->operations; o++)
        if (ops[o].issued == NONE && !ops[o].waits && ops[o].ready > r->now && ops[o].ready < first)
            first = ops[o].ready;
    return first;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The next cycle in which anything can happen, when nothing happened in this one. */
static int64_t next_event(struct run *r)
{
    int64_t next = least(next_port(r), r->core->in_order ? next_in_order(r) : next_wake(r));
    const struct instance *oldest = instance_of(r, r->head);
    if (r->head < r->tail && !oldest->left)
        next = least(next, in_cycles(oldest->complete_at));
    return next;
}

static void cycle(struct run *r)
{
    r->active = 0;
    retire(r);
    if (!r->core->in_order)
        wake(r);
    if (r->core->announcing)
        ask_early(r);
    issue(r);
    if (r->core->announcing)
        announce(r);
    dispatch(r);
}

static void advance(struct run *r)
{
    int64_t next = r->active ? r->now + 1 : next_event(r);
    if (next == UNKNOWN || next <= r->now)
        r->failed = FAILED_STUCK;
    else
        r->now = next;
}

/* --- the steady state ------------------------------------------------------------------------ */

static struct seen *remember(struct history *h, const struct run *r, uint64_t hash)
{
    if (h->count == h->room) {
        int32_t room = h->room ? 2 * h->room : 32;
        struct seen *rows = realloc(h->rows, (size_t)room * sizeof *rows);
        if (!rows)
            return NULL;
        h->rows = rows;
        h->room = room;
    }
    struct seen *row = &h->rows[h->count++];
    *row = (struct seen){hash, r->now, r->head, {0}};
    memcpy(row->issued, r->issued, sizeof row->issued);
    return row;
}

/* The row of the same state, else NULL; the state becomes a row of its own. */
static const struct seen *look(struct history *h, struct run *r)
{
    uint64_t hash = fingerprint(r);
    uint32_t slot = (uint32_t)(hash >> 20) % SLOTS;
    for (; h->slots[slot]; slot = (slot + 1) % SLOTS)
        if (h->rows[h->slots[slot] - 1].hash == hash)
            return &h->rows[h->slots[slot] - 1];
    if (h->count >= SLOTS - 1)
        return NULL;
    if (!remember(h, r, hash))
        r->failed = FAILED_MEMORY;
    else
        h->slots[slot] = h->count;
    return NULL;
}

static void conclude(const struct run *r, const struct seen *from, int exact, struct outcome *out)
{
    double iterations = (double)(r->head - from->instructions) / r->p->count;
    out->cycles = (double)(r->now - from->cycle) / iterations;
    for (int32_t port = 0; port < r->core->ports; port++)
        out->operations[port] = (double)(r->issued[port] - from->issued[port]) / iterations;
    out->exact = exact;
    out->simulated_cycles = r->now;
    out->simulated_instructions = r->tail;
}

static int is_due(const struct run *r, struct history *h)
{
    int64_t iteration = r->tail / r->p->count;
    if (iteration < h->next)
        return 0;
    h->next = iteration + 1 + (SPACING + r->tail - r->head) / r->p->count;
    return 1;
}

/* Runs until a state comes back, or to the limit: then the second half counts. */
static void settle_down(struct run *r, int64_t limit, struct outcome *out, struct history *h)
{
    struct seen half = {0, 0, 0, {0}};
    while (!r->failed) {
        cycle(r);
        const struct seen *same = is_due(r, h) ? look(h, r) : NULL;
        if (same) {
            conclude(r, same, 1, out);
            return;
        }
        if (!half.cycle && r->head >= limit / 2) {
            half = (struct seen){0, r->now, r->head, {0}};
            memcpy(half.issued, r->issued, sizeof half.issued);
        }
        if (r->head >= limit && r->head > half.instructions) {
            conclude(r, &half, 0, out);
            return;
        }
        advance(r);
    }
}

static void run_traced(struct run *r, struct outcome *out)
{
    const struct seen start = {0, 0, 0, {0}};
    while (!r->failed && r->head < r->trace->iterations * r->p->count) {
        cycle(r);
        advance(r);
    }
    if (!r->failed)
        conclude(r, &start, 0, out);
}

/* --- setting up ------------------------------------------------------------------------------ */

static int32_t ring_size(const struct core *core)
{
    int32_t size = 16;
    while (size < core->entries + 2)
        size *= 2;
    return size;
}

/* A piece of the memory of runs; NULL while it is only measured. */
static void *piece(struct core *core, size_t *used, size_t count, size_t size)
{
    void *start = core->memory ? (char *)core->memory + *used : NULL;
    *used += (count * size + 63) & ~(size_t)63;
    return start;
}

static size_t lay_out(struct run *r, size_t ring)
{
    const struct program *p = r->p;
    size_t used = 0;
    r->instances = piece(r->core, &used, ring, sizeof *r->instances);
    r->operations = piece(r->core, &used, ring * (size_t)p->most_operations, sizeof *r->operations);
    r->values = piece(r->core, &used, ring * (size_t)p->most_targets, sizeof *r->values);
    r->arrivals = piece(r->core, &used, ring * (size_t)p->most_sources, sizeof *r->arrivals);
    r->next_reader = piece(r->core, &used, ring * (size_t)p->most_links, sizeof *r->next_reader);
    r->asked = piece(r->core, &used, ring * (size_t)p->most_operations, sizeof *r->asked);
    r->hoping = piece(r->core, &used, ring * (size_t)p->most_operations, sizeof *r->hoping);
    r->in_vain = piece(r->core, &used, PORTS, sizeof *r->in_vain);
    return used;
}

static int allocate_all(struct run *r, size_t ring)
{
    size_t needed = lay_out(r, ring);
    if (needed > r->core->room) {
        free(r->core->memory);
        r->core->memory = malloc(needed);
        r->core->room = r->core->memory ? needed : 0;
    }
    lay_out(r, ring);
    return r->core->memory != NULL;
}

static void set_up(struct run *r)
{
    const struct core *core = r->core;
    r->remaining = r->refused_at = NONE;
    count_shares(r);
    for (int32_t i = 0; i < WHEEL; i++)
        r->wheel[i] = r->hoping_later[i] = NONE;
    memset(r->turn, PORTS - 1, sizeof r->turn);
    for (int32_t rank = 0; rank < core->ports; rank++) {
        r->queue_of[rank] = NONE;
        for (int32_t q = core->queues - 1; q >= 0; q--)
            if (core->queue_ports[q] >> r->p->port_of[rank] & 1)
                r->queue_of[rank] = q;
    }
    for (int32_t i = 0; i < MOST_OPERATIONS; i++)
        r->core->heaps[i].count = 0;
}

int core_simulate(struct core *core, const struct program *p, int64_t limit, struct outcome *out,
                  struct trace *trace)
{
    struct run r = {.core = core, .p = p, .trace = trace};
    struct history *h = calloc(1, sizeof *h);
    int32_t ring = ring_size(core);
    int64_t fewest = 8 * (int64_t)p->count + 4 * core->entries;
    r.mask = ring - 1;
    if (!h || !allocate_all(&r, (size_t)ring)) {
        r.failed = FAILED_MEMORY;
    } else {
        set_up(&r);
        if (trace)
            run_traced(&r, out);
        else
            settle_down(&r, limit > fewest ? limit : fewest, out, h);
    }
    if (h)
        free(h->rows);
    free(h);
    return r.failed;
}
