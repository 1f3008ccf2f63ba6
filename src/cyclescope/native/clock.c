/* The clock: ticks per core cycle by a chain of dependent ADDs, and how quiet the core is by canaries.
 *
 * What shares a core's front end (a hardware thread, another guest) slows what waits for its own results least,
 * so the chain keeps time; it slows code that fills the front end most of all. The canary is such code, a loop of
 * NOPs, and where it is slow the chain is no clock either. Its undisturbed time is no quantile of what was seen lately,
 * which moves when everything is slow, but a fixed base: the least time per NOP ever derived. */
#define _GNU_SOURCE
#include "clock.h"
#include <math.h>
#include <string.h>
#include <time.h>

#define CANARY_CYCLES 1000  /* the least length of a canary in core cycles, ... */
#define CANARY_STEPS 50     /* ... and in steps of the clock, to see 2 % */
#define CANARY_TRIPS_MAX 100000
#define COUNTS_CYCLES 0.01    /* ticks that are so near to a cycle are cycles */
#define REFERENCE_COPIES 1000
#define REFERENCE_SHORT 1 /* trips: few, so that the ends of both loops are predicted */
#define REFERENCE_LONG 6
#define FIRST_COPIES 160 /* of a body that bring its loop back: four trips of a canary. After two, one of a hundred
                          * on a Zen 5 looks disturbed that is not */
#define REFERENCE_STEPS 100 /* the least length of the longer reference chain */
#define SCALE_MAX 1000
#define STRETCHES 10
#define STRETCH_CHAINS 16 /* some 20 us: long against reading both clocks */
#define MOMENT_STEPS 300 /* of a clock within the shorter chain: it tells frequencies of 1 % apart */
#define MOMENT_SCALE 6 /* times as long as usual it may be for that: beyond, pairs of chains take less time */
#define MOMENT_SECONDS 5e-4 /* for so long a frequency is the same */
#define PAIR_STEPS 2.0 /* of the clock: what rounding to them makes of the difference of two times */
#define FEW_PAIRS (RECENT / 4) /* whose mean is right to a quarter of this: */
#define MOMENT_SAME 0.006 /* of the chain's time: steps of a frequency are 100 MHz, some 2 to 3 % */
#define REFRESH_SAMPLES 120
#define STEPS_SEEN 16       /* of a clock so slow that most of its readings are equal */
#define EQUAL_MAX 4000000u
#define SCATTER_SAMPLES 256 /* before there is a scatter, which later calibrations find again */

static uint8_t *reference_short, *reference_long;

static uint32_t first_trips(unsigned copies, uint32_t trips)
{
    uint32_t few = copies && copies < FIRST_COPIES ? FIRST_COPIES / copies : 1;
    return few < trips ? few : trips;
}

/* The counter of a loop at `code`, and the other way in, which leads through all that comes before the loop, too: a
 * core has to decode that again as well. */
static uint8_t *emit_ways_in(uint8_t *code, unsigned copies, uint32_t trips)
{
    uint8_t *p = arch_emit_counter(code, trips);
    uint8_t *first = arch_emit_counter(code + FIRST_WAY, first_trips(copies, trips));
    arch_emit_jump(first, p);
    arch_code_written(code + FIRST_WAY, first + JUMP_BYTES);
    return p;
}

static uint8_t *emit_loop(uint8_t *p, const uint8_t *body, size_t bytes, unsigned copies)
{
    p = arch_emit_align(p);
    const uint8_t *start = p;
    for (unsigned i = 0; i < copies; i++, p += bytes)
        memcpy(p, body, bytes);
    return arch_emit_loop_end(p, start);
}

uint8_t *build_loop(uint8_t *at, const uint8_t *body, size_t bytes, unsigned copies,
                           uint32_t trips)
{
    uint8_t *p = arch_emit_exit(emit_loop(emit_ways_in(at, copies, trips), body, bytes, copies));
    arch_code_written(at, p);
    return p;
}

#ifdef CYCLESCOPE_INSIDE /* where nothing is mapped that code could leave the time in */
int clock_within(void)
{
    return 0;
}

static void build_chain(uint8_t *at, uint32_t trips)
{
    build_loop(at, arch_reference, arch_reference_bytes, REFERENCE_COPIES, trips);
}

static double time_chain(const void *code)
{
    return time_again(code);
}
#else
int clock_within(void)
{
    return arch_marks_are_free() && !counters_usable();
}

static void build_chain(uint8_t *at, uint32_t trips)
{
    static const int32_t the_clock = CLOCK_INDEX;
    int within = clock_within();
    uint8_t *p = emit_ways_in(at, REFERENCE_COPIES, trips);
    p = emit_loop(within ? arch_emit_mark(p, 1, &the_clock, 1) : p, arch_reference, arch_reference_bytes,
                  REFERENCE_COPIES);
    arch_code_written(at, arch_emit_exit(within ? arch_emit_mark(p, 0, &the_clock, 1) : p));
}

/* Of two runs in a row the second counts, and what enters and leaves the chain does not: in some copies of the same
 * program entering one of both took 40 cycles more of a Zen 4, in each run. */
static double time_chain(const void *code)
{
    double around = time_again(code);
    return clock_within() ? (double)(MARKS->end[0] - MARKS->start[0]) : around;
}
#endif

/* The clock's own loops, `scale` times as long as usual. */
static void build_tools(void)
{
    if (shared->scale == 0)
        shared->scale = 1;
    if (shared->canary_trips == 0)
        shared->canary_trips = 1;
    canary_build();
    reference_short = CLOCK_CODE + 0x10000;
    reference_long = CLOCK_CODE + 0x20000;
    build_chain(reference_short, REFERENCE_SHORT * shared->scale);
    build_chain(reference_long, REFERENCE_LONG * shared->scale);
}

/* Cycles between the two lengths of the reference chain. */
static double reference_cycles(void)
{
    return REFERENCE_COPIES * (double)(REFERENCE_LONG - REFERENCE_SHORT) * shared->scale;
}

static double find_step(void)
{
    double step = 1e9;
    unsigned equal = 0, different = 0;
    while (equal + different < 4000 || (different < STEPS_SEEN && equal < EQUAL_MAX)) {
        uint64_t a = clock_ticks(), b = clock_ticks();
        equal += a == b;
        different += a != b;
        if (b > a && (double)(b - a) < step)
            step = (double)(b - a);
    }
    if (equal > different) /* a slow clock, whose steps may differ by a tick */
        return step;
    /* Two serialised reads are never closer than their own cost: look at differences of
     * differences to find the grain of a fine counter. */
    double grain = step;
    for (int i = 0; i < 4000; i++) {
        uint64_t a = clock_ticks(), b = clock_ticks();
        double d = fabs((double)(b - a) - step);
        if (d > 0 && d < grain)
            grain = d;
    }
    return grain;
}

double least_plain(const void *code)
{
    double least = time_plain(code);
    for (int i = 0; i < 20; i++) {
        double t = time_plain(code);
        least = t < least ? t : least;
    }
    return least;
}

static uint32_t times(double wanted, double one, uint32_t most)
{
    double found = wanted / one;
    return found > most ? most : found > 1 ? (uint32_t)found + 1 : 1;
}

static double longer_than(double time, double limit)
{
    return time > limit ? time : limit;
}

/* A fine clock tells more than a core repeats: to serialise it takes some cycles more or less. Nothing makes a core
 * more regular than it is, so that the least is kept. */
static void note_scatter(const double *v, unsigned n)
{
    double found = longer_than(scatter_of(v, n), cal()->step);
    if (shared->grain == 0 || found < shared->grain)
        shared->grain = found;
}

static void first_scatter(double ticks_per_cycle)
{
    static double v[SCATTER_SAMPLES];
    cal()->ticks_per_cycle = ticks_per_cycle;
    shared->grain = 0;
    for (unsigned i = 0; i < SCATTER_SAMPLES; i++)
        v[i] = time_again(canary_code);
    note_scatter(v, SCATTER_SAMPLES);
}

/* On a slow clock, everything that is timed has to be longer. */
static void find_step_and_scale(void)
{
    shared->scale = shared->canary_trips = 1;
    shared->entry = shared->loop_end = 0; /* perhaps of another clock */
    build_tools();
    cal()->step = find_step();
    double step = cal()->step, chain = longer_than(least_plain(reference_long), step);
    shared->scale = times(REFERENCE_STEPS * step, chain, SCALE_MAX);
    double ticks = chain / (REFERENCE_COPIES * REFERENCE_LONG); /* per cycle, about */
    double wanted = longer_than(CANARY_CYCLES * ticks, CANARY_STEPS * step);
    shared->canary_trips = 8; /* enough to time one */
    build_tools();
    double trip = (least_plain(canary_longer) - least_plain(canary_code)) / (8 * (CANARY_LONGER - 1));
    shared->canary_trips = times(wanted, trip > ticks ? trip : ticks, CANARY_TRIPS_MAX);
    build_tools();
    first_scatter(ticks);
    uint32_t long_enough = times(MOMENT_STEPS * shared->grain, REFERENCE_COPIES * ticks, SCALE_MAX);
    if (long_enough <= MOMENT_SCALE && long_enough > shared->scale) {
        shared->scale = long_enough;
        build_tools();
    }
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct chains {
    double low[MAX_SAMPLES], high[MAX_SAMPLES], canary[MAX_SAMPLES], longer[MAX_SAMPLES];
};

static void run_chains(struct chains *c, unsigned n)
{
    for (int i = 0; i < 20; i++)
        time_plain(reference_long);
    for (unsigned i = 0; i < n; i++) {
        c->low[i] = time_chain(reference_short);
        c->high[i] = time_chain(reference_long);
        c->canary[i] = time_again(canary_code);
        c->longer[i] = time_again(canary_longer);
    }
}

/* By the least of a few stretches of code: a counter stands still while the process does. */
static double seconds_per_tick(void)
{
    double least = INFINITY;
    for (int i = 0; i < STRETCHES; i++) {
        double wall = seconds();
        uint64_t first = clock_ticks();
        for (int j = 0; j < STRETCH_CHAINS; j++)
            arch_call_plain(reference_long);
        double ticks = (double)(clock_ticks() - first), found = (seconds() - wall) / ticks;
        least = found < least ? found : least;
    }
    return least;
}

/* Core cycles of the shorter chain with entering and leaving it: by how much longer the other takes, of
 * runs beside each other, since the frequency may be another one a millisecond later. A neighbour slows the chain
 * and not the way into it, so that those beside canaries whose trips are as long as they should are asked, if there
 * are some. */
static double moment_cycles(const struct chains *c, unsigned n)
{
    static double ratio[2][MAX_SAMPLES];
    unsigned count[2] = {0, 0};
    for (unsigned i = 0; i < n; i++) {
        double trips = (c->longer[i] - c->canary[i]) / (c->high[i] - c->low[i]) * reference_cycles();
        int clear = canary_undisturbed(trips);
        ratio[clear][count[clear]++] = c->high[i] / c->low[i];
    }
    int clear = count[1] >= CLEAR_LEAST;
    double found = median_of(ratio[clear], count[clear]);
    return found > 1 ? reference_cycles() / (found - 1) : 0;
}

/* Mean of the times that are the same as one of them. */
static double company(const double *v, unsigned n, double one)
{
    double sum = 0;
    unsigned same = 0;
    for (unsigned i = 0; i < n; i++)
        if (fabs(v[i] - one) <= MOMENT_SAME * one) {
            sum += v[i];
            same++;
        }
    return sum / same;
}

/* Canaries as long as at the frequency of the clock, of which the chain beside each says its own. */
static void at_one_frequency(struct chains *c, unsigned n)
{
    double nominal = cal()->ticks_per_cycle * shared->moment;
    for (unsigned i = 0; i < n; i++) {
        double part = nominal / company(c->low, n, c->low[i]);
        c->canary[i] *= part;
        c->longer[i] *= part;
    }
}

/* A clock of core cycles counts one for each addition of the chain; what is measured is that and noise. */
static void set_ticks(double ticks)
{
    int counts = counters_usable() && fabs(ticks - 1) < COUNTS_CYCLES;
    cal()->ticks_per_cycle = counts ? 1 : ticks;
}

void calibrate(const struct calibrate *request, struct calibration *out)
{
    static struct chains c;
    unsigned n = request->samples < MAX_SAMPLES ? request->samples : MAX_SAMPLES, clean = 0, members;
    double width;
    build_tools();
    if (cal()->step == 0)
        find_step_and_scale();
    if (request->nop > 0)
        shared->known_nop = request->nop;
    canary_note_base(shared->known_nop);
    run_chains(&c, n);
    cal()->seconds_per_tick = seconds_per_tick();
    double a = low_cluster(c.low, n, &members, &width);
    double b = low_cluster(c.high, n, &members, &width);
    set_ticks((b - a) / reference_cycles());
    note_scatter(c.canary, n);
    shared->moment = !counters_usable() && a > MOMENT_STEPS * shared->grain ? moment_cycles(&c, n) : 0;
    cal()->spread = width / b;
    if (shared->moment > 0)
        at_one_frequency(&c, n);
    canary_note(c.canary, c.longer, n);
    for (unsigned i = 0; i < n; i++)
        clean += c.canary[i] <= canary_limit();
    cal()->clean_share = (double)clean / n;
    shared->calibrated_at = seconds();
    *out = *cal();
}

/* Runs of both chains, one after the other. */
struct pair {
    double longer; /* ticks more than the shorter */
    uint64_t at;
};
static struct pair pairs[RECENT];
static unsigned paired, pairs_judged;
static double moments[RECENT]; /* ticks of the shorter chain alone */
static unsigned moments_run, moments_judged;

static void run_pair(void)
{
    double low = time_chain(reference_short), high = time_chain(reference_long); /* what ran last is entered sooner */
    pairs[paired++ % RECENT] = (struct pair){high - low, clock_ticks()};
}

/* What is left of the pairs, the last one first: those that nothing disturbed, of the last half of a millisecond.
 * Returns how many. */
static unsigned last_pairs(double *v)
{
    unsigned n = 0;
    double age = MOMENT_SECONDS / cal()->seconds_per_tick;
    uint64_t now = clock_ticks();
    for (unsigned i = 1; i <= RECENT && i <= paired; i++) {
        const struct pair *pair = &pairs[(paired - i) % RECENT];
        if (pair->longer > 0 && (double)(now - pair->at) < age)
            v[n++] = pair->longer;
    }
    return n;
}

/* By how much two pairs of one frequency differ at most. */
static double pair_limit(double longer)
{
    return PAIR_STEPS * shared->grain + MOMENT_SAME * longer;
}

/* Mean of pairs, for the steps of a coarse clock dither themselves, but for those that something interrupted. 0 where
 * no two agree. */
static double mean_pair(const double *v, unsigned n)
{
    unsigned members = 0;
    double sum = 0, middle = median_of(v, n), limit = pair_limit(middle);
    for (unsigned i = 0; i < n; i++)
        if (fabs(v[i] - middle) <= limit) {
            sum += v[i];
            members++;
        }
    return members > 1 ? sum / members : 0;
}

/* Ticks per core cycle by the last pairs: by a few of them alone where those before had another frequency. */
static double by_pairs(void)
{
    static double v[RECENT];
    unsigned n = last_pairs(v), few = n < FEW_PAIRS ? n : FEW_PAIRS;
    double last = mean_pair(v, few), before = mean_pair(v + few, n - few);
    int same = last > 0 && before > 0 && clock_same(before, last);
    return (same || !(last > 0) ? mean_pair(v, n) : last) / reference_cycles();
}

/* One pair in so many samples is enough: those that are kept reach as far back as a frequency is the same. Where the
 * last one was disturbed, or differs from the mean, the next one is due. */
static int pair_is_due(void)
{
    const struct pair *last = &pairs[(paired - 1) % RECENT];
    double mean = cal()->ticks_per_cycle * reference_cycles(), apart = MOMENT_SECONDS / RECENT;
    return !paired || fabs(last->longer - mean) > pair_limit(mean) / 2 ||
           (double)(clock_ticks() - last->at) > apart / cal()->seconds_per_tick;
}

static double moment_by_pairs(void)
{
    double ticks = 0; /* while all are too old: another program had the CPU */
    for (unsigned i = 0; i < RECENT && !(ticks > 0); i++) {
        run_pair();
        ticks = by_pairs();
    }
    if (ticks > 0)
        set_ticks(ticks);
    return cal()->ticks_per_cycle;
}

/* Ticks per core cycle now, by the shorter chain and its last runs at the same frequency, or by the last pairs of
 * chains where the clock is too coarse for one. 0 where it counts cycles. Its second run: behind code that took its
 * place, the first is entered 36 or 82 cycles later on an Emerald Rapids, which is no other frequency. */
double clock_moment(void)
{
    if (counters_usable())
        return 0;
    if (shared->moment == 0)
        return pair_is_due() ? moment_by_pairs() : cal()->ticks_per_cycle;
    double now = moments[moments_run++ % RECENT] = time_chain(reference_short);
    set_ticks(company(moments, RECENT, now) / shared->moment);
    return cal()->ticks_per_cycle;
}

/* Of canaries around what ran since the last call, whether both were clean. A neighbour slows the chain, too, if
 * less than most: of a Zen 3 by a percent, at times by four, and what is divided by it reads as much too short. */
void clock_judge(int undisturbed)
{
    for (; pairs_judged != paired; pairs_judged++)
        pairs[pairs_judged % RECENT].longer *= undisturbed;
    for (; moments_judged != moments_run; moments_judged++)
        moments[moments_judged % RECENT] *= undisturbed;
}

/* Whether two moments had one frequency. */
int clock_same(double one, double other)
{
    return fabs(one - other) <= MOMENT_SAME * one;
}

/* What was not measured for a while has another frequency: on a coarse clock so many pairs say which. */
void clock_follow(unsigned wanted)
{
    static double v[RECENT];
    unsigned have = shared->moment == 0 && !counters_usable() ? last_pairs(v) : wanted;
    for (; have + 1 < wanted; have++)
        run_pair();
    clock_moment();
}

/* Ticks of a shorter and a longer chain; returns the core cycles between them. */
double clock_beside(double *low, double *high)
{
    *low = time_chain(reference_short);
    *high = time_chain(reference_long);
    return reference_cycles();
}

/* What a worker needs before it can measure: its code, and a clock that is not long forgotten. */
void clock_prepare(void)
{
    build_tools();
    if (seconds() - shared->calibrated_at > REFRESH_SECONDS) {
        const struct calibrate refresh = {REFRESH_SAMPLES, 0, 0};
        struct calibration unused;
        calibrate(&refresh, &unused);
    }
}
