/* Ports that take operations in turn: each waits its turn, however many operations it got. */
#include "run.h"

static void look_for_idle_ones(struct run *r)
{
    r->rotated_at = r->now;
    r->idle = 0;
    for (uint64_t left = r->core->rotating; left; left &= left - 1)
        if (!r->waiting[__builtin_ctzll(left)])
            r->idle |= left & -left;
}

/* The port that has been left out for longest, of those for which none waited when the cycle began, or else of all
 * that have room; NONE where no port has. */
int32_t next_in_turn(struct run *r, uint64_t ports)
{
    if (r->rotated_at != r->now)
        look_for_idle_ones(r);
    int32_t best = NONE;
    for (uint64_t left = ports; left; left &= left - 1) {
        int32_t port = __builtin_ctzll(left);
        if (!has_room(r, r->queue_of[port]))
            continue;
        int sooner = best != NONE && (r->idle >> port & 1) != (r->idle >> best & 1)
                         ? (int)(r->idle >> port & 1)
                         : best == NONE || r->got_last[port] < r->got_last[best];
        if (sooner)
            best = port;
    }
    return best;
}
