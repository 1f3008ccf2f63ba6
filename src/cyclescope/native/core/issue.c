/* Operations to ports: at dispatch, or when they issue. */
#include "run.h"
#include <string.h>

#define NEAR 5 /* operations more than the least loaded port waits for: ports with as many are left out */

int has_room(const struct run *r, int32_t queue)
{
    return queue == NONE || r->queued[queue] < r->core->queue_entries[queue] || r->head == r->tail;
}

/* The least loaded port with room in its queue, or NONE. */
static int32_t least_loaded(const struct run *r, uint64_t ports)
{
    int32_t best = NONE;
    for (; ports; ports &= ports - 1) {
        int32_t port = __builtin_ctzll(ports);
        if (has_room(r, r->queue_of[port]) && (best == NONE || r->waiting[port] < r->waiting[best]))
            best = port;
    }
    return best;
}

/* The next port of the class in turn, whether it is loaded or not; NONE where its queue is full. */
int32_t in_turn(struct run *r, uint64_t ports, int32_t class)
{
    uint64_t above = ports & ~((2ull << r->turn[class]) - 1);
    int32_t port = __builtin_ctzll(above ? above : ports);
    if (!has_room(r, r->queue_of[port]))
        return NONE;
    r->turn[class] = (uint8_t)port;
    return port;
}

/* Of the ports with room that got fewest operations so far, the one that has been left out for longest. */
static int32_t evenly(const struct run *r, uint64_t ports)
{
    int32_t best = NONE;
    for (; ports; ports &= ports - 1) {
        int32_t port = __builtin_ctzll(ports);
        if (!has_room(r, r->queue_of[port]))
            continue;
        if (best == NONE || r->got[port] < r->got[best] ||
            (r->got[port] == r->got[best] && r->got_last[port] < r->got_last[best]))
            best = port;
    }
    return best;
}

/* Other ports within a cycle of dispatch, those first that were least loaded when it began: what was counted by
 * then is all that is known (after Abel and Reineke, uiCA 2022). Which of equals comes first is not known. */
static int32_t in_group(struct run *r, uint64_t ports)
{
    if (r->grouped_at != r->now) {
        r->grouped_at = r->now;
        for (int32_t port = 0; port < r->core->ports; port++) {
            r->before[port] = r->waiting[port] << 8 | (int32_t)(any_number(r->now % PATTERN * PORTS + port) >> 56);
            r->used[port] = 0;
        }
    }
    int32_t best = NONE, least = INT32_MAX;
    for (uint64_t left = ports; left; left &= left - 1)
        if (r->before[__builtin_ctzll(left)] < least)
            least = r->before[__builtin_ctzll(left)];
    for (; ports; ports &= ports - 1) {
        int32_t port = __builtin_ctzll(ports);
        if (!has_room(r, r->queue_of[port]) || r->before[port] >> 8 >= (least >> 8) + NEAR)
            continue;
        if (best == NONE || r->used[port] < r->used[best] ||
            (r->used[port] == r->used[best] && r->before[port] < r->before[best]))
            best = port;
    }
    if (best != NONE)
        r->used[best]++;
    return best;
}

/* The emptiest queue in front of a port of the set; NONE also where some port has no queue. */
static int bind_queue(struct run *r, uint64_t ports, struct pending *op)
{
    int32_t best = NONE, most = INT32_MIN;
    op->port = NONE;
    for (; ports; ports &= ports - 1) {
        int32_t queue = r->queue_of[__builtin_ctzll(ports)];
        if (queue == NONE) {
            op->queue = NONE;
            return 1;
        }
        int32_t room = r->core->queue_entries[queue] - r->queued[queue];
        if (room > most)
            most = room, best = queue;
    }
    op->queue = best;
    return has_room(r, best);
}

/* Ports without those that have got an operation in this cycle and get no other one. The operations of an instruction
 * are dispatched together: where others took a port that it needs, it waits for the next cycle. What it has more of
 * than there are ports it gives to those that got one of its own: it could never be dispatched. */
static uint64_t left_of(const struct run *r, uint64_t ports)
{
    uint64_t taken = 0, own = 0;
    for (uint64_t single = ports & r->core->single; single; single &= single - 1) {
        const struct last *last = &r->last[__builtin_ctzll(single)];
        if (last->at == r->now + 1)
            *(last->by == r->tail ? &own : &taken) |= single & -single;
    }
    uint64_t left = ports & ~(taken | own);
    return left || taken ? left : own;
}

/* Whether another unit makes what an operation writes: its port is not chosen with those of others. */
int is_brought(const struct run *r, int32_t number)
{
    const struct operation *what = &r->p->body[r->position].form->operation[number];
    return what->result == BROUGHT;
}

static int32_t chosen(struct run *r, int32_t at)
{
    int32_t number = at - r->p->body[r->position].first_operation;
    if (is_brought(r, number))
        return in_turn(r, r->p->ports[at], r->p->classes[at]);
    uint64_t ports = left_of(r, r->p->ports[at]);
    if (!ports)
        return NONE;
    if (!(ports & ~r->core->rotating))
        return next_in_turn(r, ports);
    if (r->core->ahead)
        ports = leaving(r, ports, number);
    switch (r->core->policy) {
    case STATIC:
        return least_loaded(r, ports);
    case GROUPED:
        return in_group(r, ports);
    case EVENLY:
        return evenly(r, ports);
    default:
        return in_turn(r, ports, r->p->classes[at]);
    }
}

/* The least loaded of the ports that write one result in a cycle; 0 where none has room in its queue. */
static int bind_writing(struct run *r, uint64_t ports, struct pending *op)
{
    op->port = least_loaded(r, ports);
    if (op->port == NONE)
        return 0;
    op->queue = r->queue_of[op->port];
    op->class = r->p->alone[op->port];
    return 1;
}

static int bind_one(struct run *r, int32_t at, struct pending *op)
{
    op->class = class_of(r, at);
    op->age = age_of(r, op->class);
    if (r->core->policy == IDEAL && !(r->p->ports[at] & ~r->p->writing))
        return bind_writing(r, r->p->ports[at], op);
    if (r->core->policy == IDEAL)
        return bind_queue(r, r->p->masks[op->class], op);
    op->port = chosen(r, at);
    op->queue = op->port == NONE ? NONE : r->queue_of[op->port];
    return op->port != NONE;
}

static void count(struct run *r, const struct pending *op, int32_t change)
{
    if (r->core->clusters && r->p->cluster[op->class] != NONE)
        r->within[r->p->cluster[op->class]] += change;
    if (op->queue != NONE)
        r->queued[op->queue] += change;
    if (op->port != NONE)
        r->waiting[op->port] += change;
}

/* Binds the operations of an instruction about to be dispatched; 0 where a queue is full. */
int bind_all(struct run *r, int64_t sequence)
{
    const struct instruction *ins = &r->p->body[r->position];
    struct pending *ops = operations_of(r, sequence & r->mask);
    int32_t before[MOST_OPERATIONS]; /* when each port had got its last one */
    struct last last[MOST_OPERATIONS];
    for (int32_t o = 0; o < ins->form->operations; o++) {
        int32_t at = ins->first_operation + o;
        ops[o].ready = r->turn[r->p->classes[at]]; /* where the turn goes back to */
        ops[o].refused = 0;
        if (bind_one(r, at, &ops[o])) {
            count(r, &ops[o], 1);
            if (ops[o].port != NONE && !is_brought(r, o)) {
                before[o] = r->got_last[ops[o].port];
                last[o] = r->last[ops[o].port];
                r->last[ops[o].port] = (struct last){r->now + 1, sequence};
                r->got_last[ops[o].port] = ++r->bound;
                r->got[ops[o].port]++;
            }
            continue;
        }
        for (int32_t none = o; o >= 0; o--) {
            take_back(r, ins->first_operation + o);
            r->turn[r->p->classes[ins->first_operation + o]] = (uint8_t)ops[o].ready;
            if (o == none)
                continue;
            count(r, &ops[o], -1);
            if (ops[o].port == NONE || is_brought(r, o))
                continue;
            r->got_last[ops[o].port] = before[o];
            r->last[ops[o].port] = last[o];
            r->got[ops[o].port]--;
        }
        return 0;
    }
    return 1;
}

/* Starts an operation on a port. */
void start(struct run *r, uint64_t key, int32_t rank)
{
    int64_t slot = slot_of(key), sequence = sequence_of(r, slot);
    int32_t o = (int32_t)(key & 255), port = r->p->port_of[rank];
    struct instance *i = &r->instances[slot];
    const struct instruction *ins = &r->p->body[i->index];
    struct pending *op = &operations_of(r, slot)[o];
    int64_t from = r->busy_at[rank] > r->now * ONE ? r->busy_at[rank] : r->now * ONE;
    if (ins->form->operation[o].result != BROUGHT)
        r->busy_at[rank] = from + ins->form->operation[o].cycles;
    r->issued[port]++;
    count(r, op, -1);
    op->issued = r->now;
    op->port = rank;
    i->left--;
    if (i->complete_at < (r->now + 1) * ONE)
        i->complete_at = (r->now + 1) * ONE;
    if (r->trace && sequence < r->trace->iterations * r->p->count) {
        int64_t row = sequence / r->p->count * r->p->operations + ins->first_operation + o;
        int64_t *cells = &r->trace->operations[OPERATION_ROW * row];
        cells[0] = r->now;
        cells[1] = port;
        cells[2] = op->ready;
        cells[3] = op->last;
    }
    r->active = 1;
    const struct operation *what = &ins->form->operation[o];
    int64_t late = r->now - op->ready - what->slack;
    if (what->early)
        load(r, slot, what, late);
    else
        feed(r, slot, what->feeds, late);
}

static uint64_t free_ports(const struct run *r)
{
    uint64_t set = 0;
    for (int32_t rank = 0; rank < r->core->ports; rank++)
        set |= (uint64_t)(r->busy_at[rank] < (r->now + 1) * ONE) << rank;
    return set;
}

/* Who gets which port in this cycle. */
struct match {
    uint64_t free, taken;
    uint64_t key[PORTS], ports[PORTS]; /* by rank */
};

/* Finds a port for an operation, moving others that could use another one. */
static int assign(struct match *m, uint64_t key, uint64_t ports, uint64_t *seen)
{
    uint64_t open = ports & m->free & ~m->taken;
    if (open) {
        int32_t rank = __builtin_ctzll(open);
        m->taken |= 1ull << rank;
        m->key[rank] = key;
        m->ports[rank] = ports;
        return 1;
    }
    for (uint64_t left; (left = ports & m->free & ~*seen);) {
        int32_t rank = __builtin_ctzll(left);
        *seen |= 1ull << rank;
        if (assign(m, m->key[rank], m->ports[rank], seen)) {
            m->key[rank] = key;
            m->ports[rank] = ports;
            return 1;
        }
    }
    return 0;
}

/* Whether the result of an operation would come together with another one of its port, which is lost then. */
static int is_in_the_way(struct run *r, uint64_t key, int32_t rank)
{
    const struct instruction *ins = &r->p->body[r->instances[slot_of(key)].index];
    int32_t o = (int32_t)(key & 255), after = ins->form->operation[o].result;
    if (!(r->p->losing >> rank & 1) ||
        (r->p->leading ? finds_room(r, ins->first_operation + o, rank, after) : takes_result(r, rank, after)))
        return 0;
    lose(r, key, rank);
    return 1;
}

static void start_all(struct run *r, const struct match *m)
{
    for (uint64_t left = m->taken; left; left &= left - 1) {
        int32_t rank = __builtin_ctzll(left);
        if (!is_vain(r, m->key[rank], rank) && !is_in_the_way(r, m->key[rank], rank))
            start(r, m->key[rank], rank);
    }
}

/* As many operations as possible, the oldest of them: a class that finds no port finds none later. */
static int issue_ideal(struct run *r)
{
    struct match m; /* the keys of what is taken are set when it is */
    m.free = free_ports(r), m.taken = 0;
    uint64_t masks[MOST_OPERATIONS];
    int32_t classes[MOST_OPERATIONS], alive = 0, started = 0;
    for (int32_t c = 0; c < r->p->class_count; c++)
        if (r->core->heaps[c].count && r->p->masks[c] & m.free && r->p->masks[c] & ~r->p->writing)
            masks[alive] = r->p->masks[c], classes[alive++] = c;
    while (alive && m.taken != m.free) {
        int32_t oldest = 0;
        for (int32_t n = 1; n < alive; n++)
            if (r->core->heaps[classes[n]].keys[0] < r->core->heaps[classes[oldest]].keys[0])
                oldest = n;
        struct heap *heap = &r->core->heaps[classes[oldest]];
        uint64_t seen = 0;
        int placed = assign(&m, heap->keys[0], masks[oldest], &seen);
        if (placed) {
            heap_pop(heap);
            r->ready--;
            started++;
        }
        if (!placed || !heap->count) {
            alive--;
            masks[oldest] = masks[alive];
            classes[oldest] = classes[alive];
        }
    }
    start_all(r, &m);
    return started;
}

static void issue_bound(struct run *r)
{
    for (int32_t port = 0; port < r->core->ports; port++) {
        struct heap *heap = &r->core->heaps[port];
        if (r->p->writing >> port & 1) {
            issue_writing(r, port, port);
            continue;
        }
        while (heap->count && r->busy_at[port] < (r->now + 1) * ONE) {
            r->ready--;
            start(r, heap_pop(heap), port);
        }
    }
}

/* One instruction's operations in program order; 0 where one cannot issue now. */
static int match_in_order(struct run *r, struct match *m, int64_t sequence)
{
    int64_t slot = sequence & r->mask;
    const struct instruction *ins = &r->p->body[r->instances[slot].index];
    struct pending *ops = operations_of(r, slot);
    for (int32_t o = 0; o < ins->form->operations; o++) {
        if (ops[o].issued != NONE)
            continue;
        uint64_t ports = r->p->ports[ins->first_operation + o], seen = 0;
        if (r->core->policy != IDEAL)
            ports = 1ull << ops[o].port;
        if (ops[o].waits || ops[o].ready > r->now || !assign(m, key_of(slot, o, sequence), ports, &seen))
            return 0;
    }
    return 1;
}

static void issue_in_order(struct run *r)
{
    struct match m = {free_ports(r), 0, {0}, {0}};
    if (r->oldest_waiting < r->head)
        r->oldest_waiting = r->head;
    while (r->oldest_waiting < r->tail && match_in_order(r, &m, r->oldest_waiting))
        r->oldest_waiting++;
    start_all(r, &m);
}

/* Issues what can be issued in this cycle. */
void issue(struct run *r)
{
    if (r->core->in_order)
        issue_in_order(r);
    else if (r->core->policy != IDEAL)
        issue_bound(r);
    else {
        for (uint64_t left = r->p->writing; left; left &= left - 1)
            issue_writing(r, __builtin_ctzll(left), r->p->alone[__builtin_ctzll(left)]);
        while (r->ready && issue_ideal(r) && r->p->fractional)
            ;
    }
    ask_again(r);
}

/* The first cycle after this one in which a busy port is free, UNKNOWN where none is busy. */
int64_t next_port(const struct run *r)
{
    int64_t first = UNKNOWN;
    for (int32_t rank = 0; rank < r->core->ports; rank++)
        if (r->busy_at[rank] >= (r->now + 1) * ONE && r->busy_at[rank] / ONE < first)
            first = r->busy_at[rank] / ONE;
    return first;
}
