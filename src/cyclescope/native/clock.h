/* What the clock, its canaries and the statistics of both share. */
#ifndef CYCLESCOPE_CLOCK_H
#define CYCLESCOPE_CLOCK_H

#include "worker.h"

static inline struct calibration *cal(void)
{
    return &shared->calibration;
}

static inline double time_plain(const void *code)
{
    uint64_t before = clock_ticks();
    arch_call_plain(code);
    return (double)(clock_ticks() - before);
}

#define FIRST_WAY 0x3000 /* behind the beginning of a loop: another way into it, for few trips */

/* In the middle of other code, which took the place of the loop's decoded instructions and of its branches: of two
 * runs in a row the second counts, and what both lengths share goes out. The first brings the loop back, which takes
 * no more than a few trips. */
static inline double time_again(const void *code)
{
    time_plain((const uint8_t *)code + FIRST_WAY);
    return time_plain(code);
}

/* clock.c */
double least_plain(const void *code); /* of some runs */
uint8_t *build_loop(uint8_t *at, const uint8_t *body, size_t bytes, unsigned copies, uint32_t trips);

/* clusters.c */
double median_of(const double *v, unsigned n); /* 0 where there are none */
double scatter_of(const double *v, unsigned n); /* ticks, of three times or more */
/* Like low_cluster, of times of one code that may scatter by more than a grain. */
double low_cluster_of_its_own(const double *v, unsigned n, unsigned *members, double *width);

/* canary.c */
extern uint8_t *canary_code, *canary_longer; /* the second makes CANARY_LONGER times as many trips */
#define CANARY_LONGER 3 /* the difference is free of entry and exit */
#define CLEAR_LEAST 4   /* undisturbed canaries that agree: two or three by chance */
void canary_build(void);
void canary_note_base(double nop);
void canary_note(const double *canary, const double *longer, unsigned n);
double canary_limit(void); /* ticks of a canary that nothing disturbed, at most */
double canary_trips(void); /* core cycles that the longer takes more, on an undisturbed core */
/* Whether so many cycles more are as many as on an undisturbed core. */
int canary_undisturbed(double trips);

#endif
