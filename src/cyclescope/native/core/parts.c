/* Ports in parts, a scheduler in front of each.
 *
 * An operation that may use the ports of all parts gets one of these at dispatch. One that may use some of several
 * waits for any of its ports, or is dealt to one: then every cycle of dispatch gives such operations the ports of the
 * leading part first, then the others, and only then goes on where it stopped. */
#include "run.h"

#define CROWDED 4 /* cycles of dispatch: a cluster in which as many more operations wait than in another gets none */

/* A part gets the less of what is dispatched the more operations wait in it. */
void count_shares(struct run *r)
{
    int64_t every = 0, count = r->core->clusters;
    r->counted_at = r->now;
    r->shares = 0;
    for (int32_t n = 0; n < count; n++)
        every += r->within[n];
    for (int32_t n = 0; n < count; n++) {
        int64_t less = 2 * (every - count * r->within[n]) + count * CROWDED * r->core->width / ONE;
        r->shares += r->share[n] = less > 0 ? less : 0;
    }
}

/* Any of the parts, the less often the more operations waited in it when the cycle began: what is dispatched in the
 * cycle is not counted yet. */
static int32_t any_cluster(struct run *r, int64_t number)
{
    if (r->counted_at != r->now)
        count_shares(r);
    int64_t chance = (int64_t)((any_number(number) >> 32) % (uint64_t)r->shares);
    int32_t cluster = 0;
    while (chance >= r->share[cluster])
        chance -= r->share[cluster++];
    return cluster;
}

/* The cycle of dispatch, were all its slots used. */
static int64_t group(const struct run *r)
{
    return 1 + r->dispatched / r->core->width;
}

static int32_t dealt_port(struct run *r, uint64_t ports, int32_t class)
{
    if (r->dealt_in[class] != group(r))
        r->dealt[class] = 0;
    r->dealt_in[class] = group(r);
    int32_t number = r->dealt[class]++;
    uint64_t first = ports & r->p->leading, left = ports & ~first;
    int32_t many = __builtin_popcountll(first);
    if (number >= __builtin_popcountll(ports))
        return in_turn(r, ports, class);
    if (number < many)
        left = first;
    else
        number -= many;
    while (number--)
        left &= left - 1;
    return __builtin_ctzll(left);
}

/* The class of an operation, within one of the parts if it may use the ports of all, or of the port that it is dealt. */
int32_t class_of(struct run *r, int32_t at)
{
    int32_t class = r->p->classes[at], first = r->p->within[class];
    int32_t operation = at - r->p->body[r->position].first_operation;
    if (r->p->leading && is_brought(r, operation))
        return r->p->alone[in_turn(r, r->p->ports[at], class)];
    if (r->p->parted[class])
        return r->p->alone[dealt_port(r, r->p->ports[at], class)];
    if (first == NEVER)
        return class;
    return first + any_cluster(r, r->tail % SPREAD * MOST_OPERATIONS + operation);
}

/* An operation that was dealt a port is not dispatched in this cycle. */
void take_back(struct run *r, int32_t at)
{
    if (r->p->parted[r->p->classes[at]] && !is_brought(r, at - r->p->body[r->position].first_operation))
        r->dealt[r->p->classes[at]]--;
}

/* What operations are ordered by: the number within their part, where parts take all that have some of their ports. */
int64_t age_of(struct run *r, int32_t class)
{
    int32_t part = r->p->leading ? r->p->cluster[class] : NONE;
    return part == NONE ? r->tail : r->ordered[part]++;
}

/* The cycles from now on in which a part has no room for one result, as a set. */
uint64_t taken_of(const struct run *r, int32_t part)
{
    int64_t gone = r->now - r->taken_from[part];
    return gone < RESULTS ? r->taken[part] >> gone : 0;
}

/* Whether the result of an operation that starts now finds room. What is dealt to a leading port always does, and
 * takes it, in its part, from one that may use any port. */
int finds_room(struct run *r, int32_t at, int32_t rank, int32_t after)
{
    int32_t part = r->p->cluster[r->p->alone[rank]], class = r->p->classes[at];
    uint64_t when = after > 0 && after < RESULTS ? 1ull << after : 0;
    if (after == BROUGHT)
        return 1;
    if (r->p->parted[class] || (r->p->within[class] != NEVER && taken_of(r, part) & when)) {
        uint64_t taken = taken_of(r, part);
        r->taken[part] = !r->p->parted[class] ? taken & ~when : r->p->leading >> rank & 1 ? taken | when : taken;
        r->taken_from[part] = r->now;
        return r->p->parted[class];
    }
    return takes_result(r, rank, after);
}
