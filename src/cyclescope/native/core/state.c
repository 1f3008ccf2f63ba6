/* The state as a number: what comes back will go on as it did before. */
#include "run.h"

static uint64_t mix(uint64_t hash, int64_t word)
{
    hash = (hash ^ (uint64_t)word) * 0x9E3779B97F4A7C15ull;
    return hash ^ hash >> 29;
}

static int64_t ahead(int64_t at, int64_t now_at)
{
    return at > now_at ? at - now_at : 0;
}

static uint64_t mix_values(uint64_t hash, struct run *r, int64_t slot, int64_t now_at)
{
    const struct value *values = values_of(r, slot);
    for (uint32_t left = live_of(r, slot); left; left &= left - 1) {
        int32_t t = __builtin_ctz(left);
        int known = values[t].at != UNKNOWN;
        hash = mix(hash, known ? ahead(values[t].at, now_at) : -1 - values[t].late);
        if (values[t].announced)
            hash = mix(hash, t);
    }
    return hash;
}

/* What an instruction that is not done still depends on. */
static uint64_t mix_unfinished(uint64_t hash, struct run *r, int64_t slot, int64_t now_at)
{
    const struct instance *i = &r->instances[slot];
    const struct template *form = r->p->body[i->index].form;
    const struct arrival *arrivals = arrivals_of(r, slot);
    const struct pending *ops = operations_of(r, slot);
    int64_t first = (i->dispatched + 1) * ONE;
    hash = mix(hash, first - now_at);
    for (int32_t s = 0; s < form->sources; s++)
        hash = mix(hash, ahead(arrivals[s].at, first) * 64 + arrivals[s].late);
    for (int32_t o = 0; o < form->operations; o++) {
        int waits = ops[o].issued == NONE;
        hash = mix(hash, waits ? ops[o].waits * 4096 + ops[o].port * 64 + ops[o].queue : -2);
        if (waits && !ops[o].waits)
            hash = mix(hash, ops[o].ready - r->now);
        if (waits && r->p->writing)
            hash = mix(hash, ops[o].refused);
        if (waits && (ops[o].early || r->core->clusters))
            hash = mix(hash, ops[o].early * MOST_OPERATIONS + ops[o].class);
    }
    return hash;
}

/* By how many operations ports that some operation may use are ahead of each other, and who got one last. */
static uint64_t mix_shares(uint64_t hash, const struct run *r)
{
    for (int32_t c = 0; c < r->p->class_count; c++) {
        if (!(r->p->masks[c] & ~r->core->rotating))
            continue;
        int32_t least = INT32_MAX;
        for (uint64_t left = r->p->masks[c]; left; left &= left - 1)
            if (r->got[__builtin_ctzll(left)] < least)
                least = r->got[__builtin_ctzll(left)];
        for (uint64_t left = r->p->masks[c]; left; left &= left - 1) {
            int32_t port = __builtin_ctzll(left), earlier = 0;
            for (uint64_t others = r->p->masks[c]; others; others &= others - 1)
                earlier += r->got_last[__builtin_ctzll(others)] < r->got_last[port];
            hash = mix(hash, (int64_t)(r->got[port] - least) * PORTS + earlier);
        }
    }
    return hash;
}

/* Which of the ports that take operations in turn got one before which. */
static uint64_t mix_turns(uint64_t hash, const struct run *r)
{
    for (uint64_t left = r->core->rotating; left; left &= left - 1) {
        int32_t port = __builtin_ctzll(left), earlier = 0;
        for (uint64_t others = r->core->rotating; others; others &= others - 1)
            earlier += r->got_last[__builtin_ctzll(others)] < r->got_last[port];
        hash = mix(hash, earlier);
    }
    return hash;
}

/* What the parts of ports are about to do. */
static uint64_t mix_parts(uint64_t hash, const struct run *r)
{
    for (int32_t n = 0; n < r->core->clusters; n++)
        hash = mix(mix(hash, r->ordered[n] % SPREAD), (int64_t)taken_of(r, n));
    for (int32_t c = 0; r->p->leading && c < r->p->class_count; c++)
        hash = mix(mix(hash, r->dealt[c]), r->turn[c]);
    return r->p->leading ? mix(hash, r->dispatched % r->core->width) : hash;
}

/* Equal for equal states, whenever they occur. */
uint64_t fingerprint(struct run *r)
{
    int64_t now_at = r->now * ONE;
    uint64_t hash = mix(mix(r->tail - r->head, r->position), r->remaining);
    for (int32_t rank = 0; rank < r->core->ports; rank++)
        hash = mix(hash, ahead(r->busy_at[rank], now_at));
    for (uint64_t left = r->p->writing | r->p->losing; left; left &= left - 1)
        hash = mix(hash, (int64_t)results_of(r, __builtin_ctzll(left)));
    if (r->core->policy == ROUND_ROBIN)
        for (int32_t c = 0; c < r->p->class_count; c++)
            hash = mix(hash, r->turn[c]);
    if (r->core->policy == GROUPED)
        hash = mix(hash, r->now % PATTERN);
    if (r->core->policy == EVENLY)
        hash = mix_shares(hash, r);
    if (r->core->rotating)
        hash = mix_turns(hash, r);
    if (r->core->clusters || r->core->blur)
        hash = mix(hash, r->tail % SPREAD);
    if (r->core->clusters)
        hash = mix_parts(hash, r);
    if (r->core->blur)
        hash = mix(hash, r->now % PATTERN);
    for (int64_t sequence = r->head; sequence < r->tail; sequence++) {
        int64_t slot = sequence & r->mask;
        const struct instance *i = &r->instances[slot];
        hash = mix(hash, ahead(i->complete_at, now_at) * 64 + i->left);
        if (!i->left && i->complete_at <= now_at)
            continue;
        hash = mix_values(hash, r, slot, now_at);
        if (i->left)
            hash = mix_unfinished(hash, r, slot, now_at);
    }
    return hash;
}
