/* The two regions whose times are differenced: how many copies and trips, and running them. */
#ifndef CYCLESCOPE_REGION_H
#define CYCLESCOPE_REGION_H

#include "worker.h"

struct region {
    uint8_t *code, *counter, *copies;
    unsigned units;
    uint32_t trips;
};

struct job {
    const struct kernel *kernel;
    const struct state *state;
    const uint8_t *setup, *body;
    struct region shorter, longer;
    unsigned place; /* of the loops, in bytes behind an alignment */
};

/* Build both for a round. Returns -1 where the body is too long. */
int region_plan(struct job *job, const struct measure *request, uint32_t round);
/* Copies of the body by which the regions differ. */
double region_copies(const struct job *job);
double region_time(const struct job *job, const struct region *region); /* ticks */
/* Whether times of both regions, in ticks, are of the same state of the core. */
int region_is_even(struct job *job, double shorter, double longer);
void region_enter_again(const struct job *job); /* before the shorter region is timed */
extern uint32_t region_raised; /* exceptions of the last run; what runs after it forgets them */

#endif
