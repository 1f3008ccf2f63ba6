/* Entries of regions: the clock before and after, beside what says whether the core was ours. */
#define _GNU_SOURCE
#include "inside.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define EMPTY_ENTRIES 100 /* of the region that says what an empty one takes */

static __thread const char *problem = "";
static __thread cyclescope_region *open_region;

static pthread_mutex_t learning = PTHREAD_MUTEX_INITIALIZER;
static __thread int learner;
static int empty_known;
static cyclescope_region nothing = {.name = "nothing"};

EXPORT const char *cyclescope_error(void)
{
    return problem;
}

int inside_fail(const char *why)
{
    problem = why;
    return -1;
}

/* The first mistake is the one to mend. */
int inside_misuse(cyclescope_region *region, const char *why)
{
    if (!region->problem[0])
        snprintf(region->problem, sizeof region->problem, "region %s: %s", region->name, why);
    return inside_fail(region->problem);
}

/* --- a region's life ----------------------------------------------------------------------------- */

static int good_name(const char *name)
{
    size_t length = name ? strlen(name) : 0;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 127)
            return 0;
    return length > 0 && length < NAME_MOST;
}

EXPORT cyclescope_region *cyclescope_region_new(const char *name)
{
    if (!good_name(name)) {
        inside_fail("a region needs a name of 1 to 63 printable bytes");
        return NULL;
    }
    cyclescope_region *made = calloc(1, sizeof *made);
    if (made)
        strcpy(made->name, name);
    else
        inside_fail("no memory for a region");
    return made;
}

EXPORT void cyclescope_region_free(cyclescope_region *region)
{
    if (region && open_region == region)
        open_region = NULL;
    free(region);
}

/* --- what an empty region takes ------------------------------------------------------------------ */

/* As its callers see it: by the way of the loader's tables. */
static void enter_nothing(void)
{
    int (*volatile begin)(cyclescope_region *) = cyclescope_begin;
    int (*volatile end)(cyclescope_region *) = cyclescope_end;
    memset(&nothing.clean, 0, sizeof nothing.clean);
    memset(&nothing.other, 0, sizeof nothing.other);
    for (int i = 0; i < EMPTY_ENTRIES; i++)
        if (begin(&nothing) || end(&nothing))
            return;
}

static void learn_empty(void)
{
    enter_nothing();
    struct kept *kept = nothing.clean.count >= EMPTY_ENTRIES / 4 ? &nothing.clean : &nothing.other;
    if (!kept->count)
        return;
    nothing.empty = inside_median(kept->cycles, kept->count);
    for (unsigned i = 0; i < kept->count; i++)
        kept->cycles[i] = fabs(kept->cycles[i] - nothing.empty);
    nothing.empty_error = inside_median(kept->cycles, kept->count);
    for (unsigned i = 0; i < COUNTERS_MAX; i++)
        nothing.empty_counts[i] = nothing.counts[i] / (double)nothing.entries;
    empty_known = 1;
}

/* By the first thread that needs it, once. */
static void know_empty(void)
{
    if (learner)
        return;
    pthread_mutex_lock(&learning);
    if (!empty_known) {
        learner = 1;
        learn_empty();
        learner = 0;
    }
    pthread_mutex_unlock(&learning);
}

static void use_empty(cyclescope_region *region)
{
    if (region == &nothing || region->empty > 0)
        return;
    region->empty = nothing.empty;
    region->empty_error = nothing.empty_error;
    memcpy(region->empty_counts, nothing.empty_counts, sizeof region->empty_counts);
}

EXPORT int cyclescope_empty(cyclescope_region *region, double cycles, double error)
{
    if (!region || !(cycles >= 0 && cycles < 1e9) || !(error >= 0 && error < 1e9))
        return inside_fail("an empty region takes 0 to 1e9 cycles, with such an error");
    region->empty = cycles;
    region->empty_error = error;
    return 0;
}

/* --- entries ------------------------------------------------------------------------------------- */

/* Of more entries than there is room for, every second, every fourth, ... */
static void keep(struct kept *kept, double cycles, double doubt)
{
    if (kept->stride == 0)
        kept->stride = 1;
    if (kept->seen == 0 || cycles < kept->least)
        kept->least = cycles;
    if (kept->seen++ % kept->stride)
        return;
    if (kept->count == KEPT_MOST) {
        for (unsigned i = 0; i < KEPT_MOST / 2; i++) {
            kept->cycles[i] = kept->cycles[2 * i];
            kept->doubts[i] = kept->doubts[2 * i];
        }
        kept->count = KEPT_MOST / 2;
        kept->stride *= 2;
    }
    kept->doubts[kept->count] = doubt;
    kept->cycles[kept->count++] = cycles;
}

static const char *why_not(const cyclescope_region *region)
{
    if (region->open)
        return "begun again before it ended";
    if (open_region)
        return "begun while another region of this thread is open; regions are not nested";
    if (inside_foreign())
        return "begun in another thread than the first region: its counters count that one alone";
    return NULL;
}

/* Under the lock. */
static int prepare(cyclescope_region *region)
{
    if (inside_prepare())
        return -1;
    use_empty(region);
    region->before = inside_cycle();
    region->quiet = core_undisturbed_beside(region->before.ticks);
    region->switches = inside_switches();
    return 0;
}

EXPORT int cyclescope_begin(cyclescope_region *region)
{
    if (!region)
        return inside_fail("there is no region to begin");
    const char *why = why_not(region);
    if (why && open_region && open_region != region)
        inside_misuse(open_region, "another region of its thread was begun in it; regions are not nested");
    if (why)
        return inside_misuse(region, why);
    know_empty();
    inside_lock();
    int failed = prepare(region);
    inside_unlock();
    if (failed)
        return inside_misuse(region, problem);
    region->open = 1;
    open_region = region;
    counters_read(region->counted);
    region->start = clock_ticks();
    return 0;
}

/* Under the lock. */
static void note(cyclescope_region *region, uint64_t end, const uint64_t *counted)
{
    long switches = inside_switches();
    struct cycle before = region->before, after = inside_cycle();
    double cycle = (before.ticks + after.ticks) / 2, cycles = (double)(end - region->start) / cycle;
    int interrupted = switches != region->switches;
    int quiet = core_undisturbed_beside(after.ticks) && region->quiet;
    int clean = quiet && !interrupted && clock_same(before.ticks, after.ticks);
    region->entries++;
    region->interrupted += interrupted != 0;
    region->disturbed += !clean;
    region->sum += cycles;
    region->cycle = cycle;
    region->step = shared->calibration.step / cycle;
    double doubt = fmax(before.error, after.error) + fabs(before.ticks - after.ticks) / (2 * cycle);
    for (unsigned i = 0; i < counters_count(); i++)
        region->counts[i] += (double)(counted[i] - region->counted[i]);
    keep(clean ? &region->clean : &region->other, cycles, doubt);
}

EXPORT int cyclescope_end(cyclescope_region *region)
{
    uint64_t end = clock_ticks(), counted[COUNTERS_MAX];
    counters_read(counted);
    if (!region)
        return inside_fail("there is no region to end");
    if (!region->open)
        return inside_misuse(region, "ended without having begun");
    if (open_region != region)
        return inside_misuse(region, "ended in another thread than it began in");
    region->open = 0;
    open_region = NULL;
    inside_lock();
    note(region, end, counted);
    inside_unlock();
    if (inside_lost())
        return inside_misuse(region, "the kernel took the counters away");
    return region->problem[0] ? inside_fail(region->problem) : 0;
}
