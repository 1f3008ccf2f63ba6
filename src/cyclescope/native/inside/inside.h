/* Shared between the parts of the library that times regions of another program. */
#ifndef CYCLESCOPE_INSIDE_H
#define CYCLESCOPE_INSIDE_H

#include "../worker.h"
#include "cyclescope.h"

#define EXPORT __attribute__((visibility("default")))
#define NAME_MOST 64
#define KEPT_MOST 4096   /* entries whose times are kept: then every second one is, of twice as many */
#define PROBLEM_MOST 200
#define FEWEST_ENTRIES 4 /* undisturbed, that tell an error */

/* Ticks of a core cycle, and the relative error of that. */
struct cycle {
    double ticks, error;
};

struct cyclescope_region {
    char name[NAME_MOST], problem[PROBLEM_MOST];
    int open;
    /* While it is open. */
    struct cycle before;
    long switches;       /* of the thread */
    int quiet;
    uint64_t start, counted[COUNTERS_MAX];
    /* Of all entries. */
    uint64_t entries, disturbed, interrupted;
    double sum, counts[COUNTERS_MAX];
    double cycle, step; /* of the last entry: ticks per cycle; cycles */
    /* Of undisturbed and of disturbed ones. */
    struct kept {
        double cycles[KEPT_MOST], doubts[KEPT_MOST], least; /* doubts: relative errors */
        unsigned count;
        uint64_t seen, stride;
    } clean, other;
    double empty, empty_error, empty_counts[COUNTERS_MAX];
};

/* entries.c */
int inside_fail(const char *problem);                              /* -1 */
int inside_misuse(cyclescope_region *region, const char *problem); /* -1 */

/* cycle.c, under the lock */
struct cycle inside_cycle(void);
double inside_seconds(void);

/* result.c */
double inside_median(double *v, unsigned n); /* sorts */

/* program.c: what stands for the runner. Under its lock. */
int inside_prepare(void); /* the clock's code, and a calibration that is not long forgotten */
int inside_emulated(void);
long inside_switches(void); /* how often this thread was switched away */
const char *inside_event(unsigned number);
const char *inside_uncounted(void);
int inside_foreign(void); /* counters are of another thread */
int inside_lost(void);    /* counters were taken away */
void inside_lock(void);
void inside_unlock(void);

#endif
