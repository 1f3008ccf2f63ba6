/* Regions: the loops around a body.
 *
 * Two regions run alternately; the difference of their low clusters is free of entry and exit.
 *
 * A trip through a short loop takes a whole number of extra cycles that depends on its length and place, so that two
 * lengths do not cancel them: eight NOPs read 0.92 or 1.03 cycles for 1.00. So both regions are one long loop that is
 * entered with t and with 4 t trips; what is left is the loop's own end, measured on a loop of NOPs, which a chain hides.
 * It is the same code and no copy of it: decoded instructions that are kept for one copy and not for the other read as if
 * instructions that are slow to decode took half of their time. And a short loop may know by its register what goes
 * through memory, where a long one waits for it: INC [m] takes 1 cycle in loops of up to 24 of a Zen 3 and 7.5 in longer
 * ones, and read 8 to 9.7 by the difference of 12 and 60. Rounds differ in length and place, so that their agreement
 * shows that neither matters.
 *
 * Chains that ask for short loops: U1 and U2 copies of the body, the same number of trips each.
 */
#define _GNU_SOURCE
#include "region.h"
#include <math.h>
#include <string.h>

#define FEW_INSTRUCTIONS 12
#define HUNDRED_INSTRUCTIONS 100 /* the loop of a slow throughput kernel */
#define LOOP_INSTRUCTIONS 400    /* of others: its end is half a percent of them and measured */
#define LOOP_BYTES 3072          /* of such a loop: within what micro-operation caches hold */
#define LONGER_TRIPS 4           /* times the trips of the shorter region */
#define LEAST_TRIPS 8            /* of chains through memory: in the first, cores learn which load meets which store */
#define PLACE_BYTES 20           /* the start of the loop moves so far between rounds */
#define ENTRY_CYCLES 150  /* what entering a loop is off by at most: of a Zen 5, 99 of 100 are within 126 */
#define ENTRY_RUNS 3      /* of which the least tells what entering takes, with what the setup does */
#define SLOW_CYCLES 2.0   /* per instruction: code that takes longer waits for other things than its issue */
#define AROUND_BYTES 768         /* at most, of what enters and leaves the copies */
#define UNROLLED_BYTES 24576     /* stay within the first-level instruction cache */

static const struct calibration *cal(void)
{
    return &shared->calibration;
}

/* Whether both regions are one loop, with different numbers of trips. */
static int one_loop(const struct job *job)
{
    uint32_t flags = job->kernel->flags, long_chain = (flags & (KERNEL_WATCHED | KERNEL_FAST)) == KERNEL_WATCHED;
    return !(flags & KERNEL_UNROLLED) && (flags & KERNEL_CANARY || long_chain);
}

static uint8_t *next_region(void)
{
    static unsigned turn;
    return CODE + (turn++ % REGIONS) * REGION_BYTES;
}

static int fits(const struct job *job, unsigned units)
{
    const struct kernel *k = job->kernel;
    return 2 * (size_t)k->setup + (size_t)k->body * units + AROUND_BYTES + job->place <= REGION_BYTES;
}

static const int32_t the_clock = CLOCK_INDEX;

/* Setup and counter; returns where they end. What the setup stores is in the cache before the loop: a load
 * that meets the store on its way may take less than any load, for as long as the store is under way. */
static uint8_t *enter(struct job *job, struct region *region, uint8_t *p, unsigned units)
{
    const struct kernel *k = job->kernel;
    region->code = p;
    region->units = units;
    memcpy(p, job->setup, k->setup);
    p = k->setup ? arch_emit_drain(p + k->setup) : p;
    region->counter = clock_within() ? arch_emit_mark(p, 1, &the_clock, 1) : p;
    return arch_emit_counter(region->counter, 1);
}

/* The copies, from `p` on, and the way out; returns the end. What they flush or store past the caches takes its time
 * behind them, and is waited for. */
static uint8_t *build_copies(const struct job *job, uint8_t *p, unsigned units)
{
    const struct kernel *k = job->kernel;
    const uint8_t *start = p;
    for (unsigned i = 0; i < units; i++, p += k->body)
        memcpy(p, job->body, k->body);
    if (!(k->flags & KERNEL_UNROLLED))
        p = arch_emit_loop_end(p, start);
    if (clock_within())
        p = arch_emit_mark(arch_emit_drain(p), 0, &the_clock, 1);
    return arch_emit_exit(p);
}

static int build(struct job *job, struct region *region, unsigned units)
{
    if (!fits(job, units))
        return -1;
    uint8_t *start = next_region();
    uint8_t *p = arch_emit_align(enter(job, region, start, units));
    region->copies = arch_emit_idle(p, job->place);
    arch_code_written(start, build_copies(job, region->copies, units));
    return 0;
}

/* One loop with two ways in, which differ in their trips alone. */
static int build_shared(struct job *job, unsigned units)
{
    if (!fits(job, units))
        return -1;
    job->shorter.trips = job->longer.trips = 1;
    uint8_t *start = next_region();
    uint8_t *first = enter(job, &job->shorter, start, units);
    uint8_t *second = enter(job, &job->longer, arch_emit_align(first + JUMP_BYTES), units);
    uint8_t *loop = arch_emit_idle(arch_emit_align(second + JUMP_BYTES), job->place);
    job->shorter.copies = job->longer.copies = loop;
    arch_emit_jump(first, loop);
    arch_emit_jump(second, loop);
    arch_code_written(start, build_copies(job, loop, units));
    return 0;
}

static void write_trips(struct region *region, uint32_t trips)
{
    region->trips = trips;
    arch_code_written(region->counter, arch_emit_counter(region->counter, trips));
}

static void set_trips(struct job *job, uint32_t shorter, uint32_t longer)
{
    write_trips(&job->shorter, shorter);
    write_trips(&job->longer, longer);
}

static int build_both(struct job *job, unsigned u1, unsigned u2)
{
    job->shorter.trips = job->longer.trips = 1;
    return build(job, &job->shorter, u1) || build(job, &job->longer, u2);
}

double region_copies(const struct job *job)
{
    return (double)job->longer.units * job->longer.trips -
           (double)job->shorter.units * job->shorter.trips;
}

uint32_t region_raised;

double region_time(const struct job *job, const struct region *region)
{
    uint64_t before = clock_ticks();
    arch_call(job->state, region->code);
    uint64_t after = clock_ticks();
    region_raised = arch_exceptions();
    return clock_within() ? (double)(MARKS->end[0] - MARKS->start[0]) : (double)(after - before);
}

/* What ran last is entered faster than what did not, by up to 100 cycles on a Zen 5, and the longer region runs right
 * after the shorter: without a run before that, NOPs read 0.122 cycles of 0.125. */
void region_enter_again(const struct job *job)
{
    if (one_loop(job))
        region_time(job, &job->shorter);
}

static double least_of(const struct job *job, const struct region *region, int times)
{
    double least = region_time(job, region);
    for (int i = 1; i < times; i++) {
        double t = region_time(job, region);
        least = t < least ? t : least;
    }
    return least;
}

/* Ticks to enter and leave a kernel from this state. */
static double overhead(const struct job *job)
{
    static double known[VECTOR_EVEX512 + 1][(STATE_X87 | STATE_STREAMING) + 1];
    double *slot = &known[job->state->vector_level][job->state->bits & (STATE_X87 | STATE_STREAMING)];
    if (*slot == 0) {
        static const struct kernel empty = {0, 0, 0, 0, 0};
        struct job nothing = {&empty, job->state, NULL, NULL, {0}, {0}, 0};
        if (build(&nothing, &nothing.longer, 0))
            return 0;
        *slot = least_of(&nothing, &nothing.longer, 12);
    }
    return *slot;
}

/* Whether both ways into a loop found the core in one state, by what is left of their times, `a` and `b` ticks, without
 * their trips: what entering takes, whichever way it was. Some code runs at two rates, as entering it happened to
 * leave the core, until it is left: a Zen 5 takes two or 1.7 of its comparisons into masks with memory a cycle. Of
 * one rate in the shorter region and the other in the longer one, the difference is neither. Slow code has buffers,
 * which take what comes first at another rate. */
int region_is_even(struct job *job, double a, double b)
{
    double trips = job->shorter.trips, each = (b - a) / (job->longer.trips - trips);
    double instructions = (double)job->kernel->instructions * job->shorter.units;
    double limit = ENTRY_CYCLES * cal()->ticks_per_cycle + 2 * cal()->step, left = a - trips * each;
    if (!one_loop(job) || each > SLOW_CYCLES * instructions * cal()->ticks_per_cycle ||
        fabs(left - overhead(job)) <= limit)
        return 1;
    set_trips(job, 1, job->longer.trips);
    double once = least_of(job, &job->shorter, ENTRY_RUNS);
    set_trips(job, (uint32_t)trips, job->longer.trips);
    return fabs(left - (once - each)) <= limit;
}

/* Ticks of one trip through the longer region. */
static double pilot(struct job *job)
{
    double fixed = overhead(job), coarse = 10 * cal()->step;
    double t = least_of(job, &job->longer, 2) - fixed;
    if (t >= coarse || job->kernel->flags & KERNEL_UNROLLED)
        return t > 0 ? t : 1;
    set_trips(job, 16, 16);
    t = (least_of(job, &job->longer, 2) - fixed) / 16;
    return t > 0.5 ? t : 0.5;
}

static double target_ticks(const struct measure *request)
{
    double target = request->target * cal()->ticks_per_cycle;
    return target > 150 * cal()->step ? target : 150 * cal()->step;
}

static unsigned copies_of(const struct kernel *k, unsigned instructions)
{
    unsigned per_unit = k->instructions ? k->instructions : 1;
    return (instructions + per_unit - 1) / per_unit;
}

/* Chains that are one loop go through memory. What the first trips take is no part of the difference if the shorter
 * region has them all: LOCK BTS and a load behind it read 25.0 to 25.5 cycles of 2 and 6 trips on a Zen 4, and 25.9 of
 * 8 and 24 as well as of more. */
static uint32_t least_trips(const struct job *job)
{
    return job->kernel->flags & KERNEL_CANARY ? 1 : LEAST_TRIPS;
}

/* One loop, t and 4 t trips, about `target` ticks together with entry and exit, or the least trips. Odd rounds have
 * three quarters of the length; slow kernels as few copies as make four trips. */
static int plan_loop(struct job *job, double target, uint32_t round)
{
    const struct kernel *k = job->kernel;
    int slow = !(k->flags & (KERNEL_FAST | KERNEL_LONG));
    unsigned units = copies_of(k, slow ? HUNDRED_INSTRUCTIONS : LOOP_INSTRUCTIONS);
    if (!(k->flags & KERNEL_LONG) && (size_t)units * k->body > LOOP_BYTES)
        units = LOOP_BYTES / k->body ? LOOP_BYTES / k->body : 1;
    units = round & 1 ? (3 * units + 3) / 4 : units;
    if (build_shared(job, units))
        return -1;
    double trip = pilot(job);
    if (trip * LONGER_TRIPS > 1.5 * target && units > 1) {
        unsigned fewer = (unsigned)(units * target / (trip * LONGER_TRIPS));
        units = fewer > 1 ? fewer : 1;
        trip = target / LONGER_TRIPS;
        if (build_shared(job, units))
            return -1;
    }
    uint32_t trips = (uint32_t)(target / trip / LONGER_TRIPS + 0.5);
    trips = trips > least_trips(job) ? trips : least_trips(job);
    set_trips(job, trips, LONGER_TRIPS * trips);
    return 0;
}

/* Copies that follow each other without a loop. */
static int plan_unrolled(struct job *job, double target, unsigned u1, unsigned factor)
{
    double trip = pilot(job);
    if (trip >= target)
        return 0;
    size_t room = UNROLLED_BYTES / ((size_t)job->kernel->body * factor);
    unsigned wanted = (unsigned)(u1 * target / trip) + 1;
    u1 = wanted < room ? wanted : (unsigned)room;
    return u1 ? build_both(job, u1, factor * u1) : -1;
}

/* Two lengths: enough instructions for a body that is not short, a region of about `target` ticks.
 * Rounds differ in the lengths, so that agreement of rounds is linearity. */
static int plan_lengths(struct job *job, double target, uint32_t round)
{
    unsigned u1 = copies_of(job->kernel, FEW_INSTRUCTIONS), factor = round & 1 ? 4 : 5;
    if (round & 1)
        u1 += (u1 + 1) / 2;
    if (build_both(job, u1, factor * u1))
        return -1;
    if (job->kernel->flags & KERNEL_UNROLLED)
        return plan_unrolled(job, target, u1, factor);
    double trip = pilot(job);
    if (trip > 1.5 * target) {
        unsigned u2 = (unsigned)(target / (trip / (factor * u1)));
        u2 = u2 < 2 ? 2 : u2;
        u1 = u2 / factor ? u2 / factor : 1;
        return build_both(job, u1, u2 + (round & 1));
    }
    uint32_t trips = (uint32_t)(target / trip + 0.5);
    set_trips(job, trips ? trips : 1, trips ? trips : 1);
    return 0;
}

static int plan_once(struct job *job, double target, uint32_t round)
{
    if (!one_loop(job))
        return plan_lengths(job, target, round);
    job->place = round * PLACE_BYTES % 64;
    return plan_loop(job, target, round);
}

/* A pilot can be disturbed: check the region's real length, and plan again when it is far off. */
int region_plan(struct job *job, const struct measure *request, uint32_t round)
{
    double target = target_ticks(request);
    for (int attempt = 0; attempt < 4; attempt++) {
        if (plan_once(job, target, round))
            return -1;
        double t = least_of(job, &job->longer, 2) - overhead(job);
        int smallest = one_loop(job) && least_trips(job) > 1 ? job->shorter.trips == least_trips(job)
                                                             : job->shorter.trips == 1 && job->longer.units <= 3;
        if (t >= 0.5 * target && (t <= 3 * target || smallest))
            return 0;
    }
    return 0;
}
