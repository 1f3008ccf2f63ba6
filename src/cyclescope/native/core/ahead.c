/* Single ports are given away so that as many as possible of the operations that follow in a cycle find one. */
#include "run.h"

#define FOLLOWERS 16 /* operations that are looked at: more than single ports take in a cycle */

/* The sets of single ports that the next operations of this cycle need, in program order: how many, and which. */
static int32_t followers(const struct run *r, int32_t number, uint64_t *sets)
{
    int32_t count = 0, index = r->position;
    int64_t room = r->room;
    for (int32_t o = number + 1; count < FOLLOWERS; o = 0) {
        const struct instruction *ins = &r->p->body[index];
        for (; o < ins->form->operations && count < FOLLOWERS; o++) {
            uint64_t ports = r->p->ports[ins->first_operation + o];
            if (!(ports & ~r->core->single) && ins->form->operation[o].result != BROUGHT)
                sets[count++] = ports;
        }
        index = index + 1 < r->p->count ? index + 1 : 0;
        room -= r->p->body[index].form->slots;
        if (room < 0 || r->p->body[index].form->flags & MICROCODED)
            break;
    }
    return count;
}

static int place(const uint64_t *sets, int32_t n, uint64_t open, uint64_t *seen, int32_t *holder)
{
    for (uint64_t left; (left = sets[n] & open & ~*seen);) {
        int32_t port = __builtin_ctzll(left);
        *seen |= 1ull << port;
        if (holder[port] == NONE || place(sets, holder[port], open, seen, holder)) {
            holder[port] = n;
            return 1;
        }
    }
    return 0;
}

/* How many of the followers, from the first on, find open ports, each one of its own. */
static int32_t placed(const uint64_t *sets, int32_t count, uint64_t open)
{
    int32_t holder[PORTS], n = 0;
    for (uint64_t left = open; left; left &= left - 1)
        holder[__builtin_ctzll(left)] = NONE;
    for (uint64_t seen = 0; n < count && place(sets, n, open, &seen, holder); n++)
        seen = 0;
    return n;
}

/* Those of some ports that leave one to most of the operations that follow. */
uint64_t leaving(const struct run *r, uint64_t ports, int32_t number)
{
    uint64_t sets[FOLLOWERS], open = r->core->single, best = 0;
    if (ports & ~r->core->single || !(ports & (ports - 1)))
        return ports;
    for (uint64_t left = open; left; left &= left - 1)
        if (r->last[__builtin_ctzll(left)].at == r->now + 1)
            open &= ~(left & -left);
    int32_t count = followers(r, number, sets), most = -1;
    for (uint64_t left = count ? ports : 0; left; left &= left - 1) {
        int32_t many = placed(sets, count, open & ~(left & -left));
        if (many > most)
            most = many, best = 0;
        if (many == most)
            best |= left & -left;
    }
    return count ? best : ports;
}
