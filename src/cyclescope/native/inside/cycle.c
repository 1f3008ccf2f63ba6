/* How long a core cycle is at this moment, by chains beside the region.
 *
 * A neighbour can slow a chain, nothing makes it faster: of those of the same moment the fastest that have
 * company say how long a cycle is, and how much longer most of them were says how far to trust that. */
#include "inside.h"
#include <math.h>
#include <string.h>
#include <time.h>

#define READINGS 24       /* at most */
#define MOMENT 0.0005     /* seconds: frequencies stay the same for so long */
#define NEW_READINGS 3    /* at each beginning and end */

struct reading {
    double low, high, when;
};
static struct reading readings[READINGS];
static unsigned next;

double inside_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double read_chains(void)
{
    struct reading *r = &readings[next++ % READINGS];
    double cycles = clock_beside(&r->low, &r->high);
    r->when = inside_seconds();
    return cycles;
}

/* The new ones and others of this moment. */
static unsigned recent(double *low, double *high, double *each)
{
    unsigned n = 0;
    double now = inside_seconds();
    for (unsigned age = 1; age <= READINGS && age <= next; age++) {
        const struct reading *r = &readings[(next - age) % READINGS];
        if (age <= NEW_READINGS || now - r->when <= MOMENT) {
            low[n] = r->low;
            high[n] = r->high;
            each[n++] = r->high - r->low;
        }
    }
    return n;
}

struct cycle inside_cycle(void)
{
    double low[READINGS], high[READINGS], each[READINGS], width, cycles = 0;
    unsigned members;
    if (counters_usable())
        return (struct cycle){shared->calibration.ticks_per_cycle, shared->calibration.spread};
    for (int i = 0; i < NEW_READINGS; i++)
        cycles = read_chains();
    unsigned n = recent(low, high, each);
    double between = low_cluster(high, n, &members, &width) - low_cluster(low, n, &members, &width);
    double doubt = fabs(inside_median(each, n) - between) + shared->calibration.step;
    return (struct cycle){between / cycles, doubt / between};
}
