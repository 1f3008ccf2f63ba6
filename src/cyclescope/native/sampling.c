/* Cycles of a kernel on a machine nobody prepared.
 *
 * Two regions run alternately; the difference of their low clusters is the reading. Samples count only between
 * clean canaries, those of chains as well: an instruction of several operations waits for ports, too, which a
 * neighbour takes or, where it keeps the scheduler empty, gives, and the clock is a chain that it slows.
 */
#define _GNU_SOURCE
#include "clock.h"
#include "region.h"
#include <math.h>
#include <string.h>

#define MANY_SAMPLES 32          /* of so many it is asked less often whether they are enough */
#define DISTURBED_RUN 16         /* canaries in a row that fail: no short burst */
#define PATIENCE_SECONDS 0.05    /* of a first wait for a quiet moment */
#define ELSEWHERE_SECONDS 0.002  /* of waiting on one CPU: what disturbs it lasts for longer, to move takes less */
#define WAITED_PART 0.5          /* of a worker's time at most: what is never quiet takes twice as long */
#define WAITED_FIRST 1.0         /* seconds that the workers of a batch wait before that counts */
#define SAME 0.005               /* times so near to each other are the same */
#define BUILDS 3                 /* of a loop whose two ways in find the core in different states */
#define CLOCK_RUNS 4             /* of the clock's chain between two looks whether it is quiet */

void sample_dither(unsigned i)
{
    for (unsigned j = i * 11 % 37; j; j--)
        __asm__ volatile("" ::: "memory");
}

struct samples {
    double a[MAX_SAMPLES], b[MAX_SAMPLES];
    double mean_a, mean_b, width_a, width_b;
    unsigned count, in_a, in_b;
};

/* Samples between clean canaries, and all others. */
static struct samples clean, disturbed;
static unsigned tries;
static double shares = 1; /* workers that a batch has if none dies: one per round */
static double followed; /* ticks per core cycle that samples of changing frequencies were made of, or 0 */

static void summarise(struct samples *s)
{
    s->mean_a = low_cluster_of_its_own(s->a, s->count, &s->in_a, &s->width_a);
    s->mean_b = low_cluster_of_its_own(s->b, s->count, &s->in_b, &s->width_b);
}

static int enough(struct samples *s, const struct measure *request)
{
    if (s->count < request->want || (s->count > MANY_SAMPLES && s->count % 8))
        return 0;
    summarise(s);
    return s->in_a >= request->want && s->in_b >= request->want;
}

/* The supervisor is asked to move this worker to another CPU, again and again while none is quiet: of the CPUs of a
 * host with many guests some are. Returns when it was asked last. */
static uint64_t ask_to_move(uint64_t asked, uint64_t now)
{
    if (asked && (double)(now - asked) * cal()->seconds_per_tick < ELSEWHERE_SECONDS)
        return asked;
    shared->disturbed++;
    return now;
}

/* Wait for a quiet moment, here or on another CPU. What disturbs lasts for some milliseconds to a tenth of a second or
 * more; so that a core that is hardly ever quiet does not take forever, each wait in vain is followed by one half as
 * long, and all together take no more than a part of the worker's time. Returns whether it is quiet. */
int await_quiet(void)
{
    static double patience = PATIENCE_SECONDS, waited;
    static uint64_t began;
    uint64_t start = clock_ticks(), now = start, asked = ask_to_move(0, now);
    double ticks = patience / cal()->seconds_per_tick;
    int quiet = 0;
    if (began == 0)
        began = start;
    if (waited > WAITED_FIRST / shares / cal()->seconds_per_tick + WAITED_PART * (double)(start - began))
        return 0;
    for (; !quiet && (double)(now - start) < ticks; now = clock_ticks()) {
        fault_beat();
        clock_follow(CLOCK_RUNS);
        quiet = core_undisturbed() && core_undisturbed();
        clock_judge(quiet);
        asked = quiet ? asked : ask_to_move(asked, now);
    }
    waited += (double)(now - start);
    patience = quiet ? PATIENCE_SECONDS : patience / 2;
    return quiet;
}

static void take_samples(struct job *job, const struct measure *request)
{
    unsigned maximum = request->maximum < MAX_SAMPLES ? request->maximum : MAX_SAMPLES, failed = 0;
    int canary = job->kernel->flags & (KERNEL_CANARY | KERNEL_WATCHED), before = !canary || core_undisturbed();
    clean.count = clean.in_a = clean.in_b = disturbed.count = 0;
    double before_it = clock_moment(), first = before_it ? before_it : 1;
    for (tries = 0; tries < maximum;) {
        fault_beat(); /* beside programs on the same CPU all samples take seconds, one alone does not */
        region_enter_again(job);
        sample_dither(tries);
        double ta = region_time(job, &job->shorter);
        sample_dither(tries + 5);
        double tb = region_time(job, &job->longer), after_it = clock_moment();
        int after = !canary || core_undisturbed(), same = clock_same(before_it, after_it);
        clock_judge(before && after);
        struct samples *to = before && after ? &clean : &disturbed;
        tries++;
        if (same) { /* of another frequency than that of the first it is made one of it */
            double to_first = after_it ? 2 * first / (before_it + after_it) : 1;
            to->a[to->count] = ta * to_first;
            to->b[to->count++] = tb * to_first;
        }
        before_it = after && !before ? clock_moment() : after_it;
        before = after;
        failed = after ? 0 : failed + 1;
        if (failed == DISTURBED_RUN) {
            before = await_quiet();
            before_it = clock_moment();
            maximum = before || maximum < tries + DISTURBED_RUN ? maximum : tries + DISTURBED_RUN;
        }
        if (to == &clean && same && enough(&clean, request))
            break;
    }
    followed = before_it ? first : 0;
    if (clean.count)
        summarise(&clean);
    if (disturbed.count)
        summarise(&disturbed);
}

/* What waits for its own results takes the same time beside a neighbour: then there is nothing to
 * reject. Some clean samples have to be there to show it. */
static int indifferent(const struct measure *request, double ticks)
{
    if (clean.count < 2 || !enough(&disturbed, request))
        return 0;
    double one = clean.mean_b - clean.mean_a, other = disturbed.mean_b - disturbed.mean_a;
    return fabs(one - other) < SAME * one + ticks;
}

/* Before a kernel's samples: two for three samples wanted. */
unsigned clock_runs(uint32_t want)
{
    uint32_t runs = want * 2 / 3;
    return runs > RECENT / 2 ? RECENT / 2 : runs ? runs : 1;
}

/* Sample, and build anew where a reading would be of two states. Returns whether it is of one. */
static int sample_evenly(struct job *job, const struct measure *request, uint32_t round)
{
    for (int build = 1;; build++) {
        take_samples(job, request);
        if (clean.count == 0 || region_is_even(job, clean.mean_a, clean.mean_b))
            return 1;
        if (build == BUILDS || region_plan(job, request, round))
            return 0;
    }
}

/* Code may run at two rates, as entering it happened to leave the core: on a Zen 5 eight VFMADD132SS in turn take 4.00
 * cycles, or 4.33 until the loop is left. What disturbs scatters, and an interrupt takes as long in the shorter region
 * as in the longer one; a second rate repeats, and takes its part of both. Returns what the regions differ by at it, in
 * ticks, or 0. */
static double other_difference(const struct job *job, const struct samples *s, uint32_t want)
{
    static double above[MAX_SAMPLES];
    double part = (double)job->shorter.units * job->shorter.trips / ((double)job->longer.units * job->longer.trips);
    double width, longer, shorter, more;
    unsigned n = 0, members;
    for (unsigned i = 0; i < s->count; i++)
        if (s->b[i] > (1 + 4 * SAME) * s->mean_b)
            above[n++] = s->b[i];
    if (4 * n < want || n < 2)
        return 0;
    longer = low_cluster_of_its_own(above, n, &members, &width);
    if (4 * members < want || members < 2 || width > SAME * longer)
        return 0;
    more = part * (longer - s->mean_b);
    n = 0;
    for (unsigned i = 0; i < s->count; i++)
        if (fabs(s->a[i] - s->mean_a - more) < more / 4)
            above[n++] = s->a[i];
    if (4 * n < want || n < 2)
        return 0;
    shorter = low_cluster_of_its_own(above, n, &members, &width);
    return 4 * members < want || members < 2 ? 0 : longer - shorter;
}

static void sample(struct job *job, const struct measure *request, uint32_t round, struct result *out)
{
    clock_follow(clock_runs(request->want));
    int even = sample_evenly(job, request, round);
    const struct samples *s = &clean;
    unsigned fewer = s->in_a < s->in_b ? s->in_a : s->in_b;
    if (fewer < request->want && indifferent(request, cal()->step)) {
        s = &disturbed;
        fewer = s->in_a < s->in_b ? s->in_a : s->in_b;
    }
    double scale = region_copies(job) * (followed ? followed : cal()->ticks_per_cycle);
    int hides = !(job->kernel->flags & KERNEL_CANARY); /* a chain does: its end waits for nothing in it */
    double ends = hides ? 0 : (double)(job->longer.trips - job->shorter.trips) * shared->loop_end;
    out->accepted = fewer;
    out->rejected = tries - fewer;
    out->disturbed = s == &clean ? disturbed.count : 0;
    out->status = fewer >= request->want && even ? STATUS_OK : STATUS_UNCLEAN;
    if (s->count == 0)
        s = &disturbed; /* better than nothing; the status says so */
    out->cycles = s->count ? (s->mean_b - s->mean_a) / scale - ends / region_copies(job) : NAN;
    out->spread = s->count ? (s->width_a + s->width_b) / scale : NAN;
    double other = out->status == STATUS_OK && s == &clean ? other_difference(job, s, request->want) : 0;
    out->other = other > 0 ? other / scale - ends / region_copies(job) : 0;
    out->short_units = job->shorter.units;
    out->long_units = job->longer.units;
    out->trips = job->longer.trips;
}

static void count_events(struct job *job, struct result *out)
{
    uint64_t v[4][COUNTERS_MAX];
    unsigned n = counters_count();
    if (!n)
        return;
    counters_read(v[0]);
    region_time(job, &job->shorter);
    counters_read(v[1]);
    counters_read(v[2]);
    region_time(job, &job->longer);
    counters_read(v[3]);
    for (unsigned i = 0; i < n; i++)
        out->counters[i] =
            (double)((int64_t)(v[3][i] - v[2][i]) - (int64_t)(v[1][i] - v[0][i])) / region_copies(job);
}

/* Offset of a fault in the setup and the body, or -1. */
static int32_t fault_in(const struct job *job, const struct region *region)
{
    const struct kernel *k = job->kernel;
    int32_t before = fault_offset(region->code, k->setup, 1);
    int32_t within = fault_offset(region->copies, k->body, region->units);
    return within < 0 ? before : k->setup + within;
}

static void measure_one(const struct measure *request, const struct kernel *kernel,
                        const struct state *states, uint32_t round, struct result *out)
{
    struct job job = {kernel, &states[kernel->state], (const uint8_t *)(kernel + 1), NULL,
                      {0}, {0}, 0};
    job.body = job.setup + kernel->setup;
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < COUNTERS_MAX; i++)
        out->counters[i] = NAN;
    out->instruction = -1;
    memory_fill(job.state);
    if (sigsetjmp(fault_return, 0) == 0) {
        fault_armed = 1;
        if (region_plan(&job, request, round)) {
            out->status = STATUS_TOO_LONG;
        } else {
            sample(&job, request, round, out);
            count_events(&job, out);
            out->mxcsr = region_raised;
        }
        fault_armed = 0;
        return;
    }
    arch_recover();
    out->status = fault.signal == SIGALRM ? STATUS_HANG : STATUS_SIGNAL;
    out->detail = (uint32_t)fault.signal;
    out->address = fault.address;
    out->instruction = fault_in(&job, &job.shorter);
    if (out->instruction < 0)
        out->instruction = fault_in(&job, &job.longer);
}

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* A permutation that both the supervisor and every worker of a batch can compute. */
static const uint32_t *shuffled(const struct measure *request, uint32_t count, uint32_t round)
{
    static uint32_t order[1 << 16];
    uint32_t random = (request->seed | 1) + round * 2654435761u;
    random = random ? random : 1;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = next_random(&random) % i, t = order[i - 1];
        order[i - 1] = order[j];
        order[j] = t;
    }
    return order;
}

uint32_t measure_order(const struct measure *request, uint32_t count, uint32_t item)
{
    return shuffled(request, count, item / count)[item % count];
}

static void measure_item(const struct measure *request, const struct kernel *kernel,
                         const struct state *states, uint32_t round, struct result *rounds)
{
    uint32_t status = rounds[0].status;
    if (status == STATUS_SIGNAL || status == STATUS_DIED || status == STATUS_HANG) {
        rounds[round] = rounds[0]; /* a fault needs no second opinion */
        return;
    }
    measure_one(request, kernel, states, round, &rounds[round]);
}

/* All kernels of the round of item `first` in a random order, from there on. */
void measure_all(const struct measure *request, const struct kernel *const *kernels,
                 const struct state *states, uint32_t count, struct result *results,
                 uint32_t first)
{
    clock_prepare();
    shares = request->rounds;
    const uint32_t round = first / count, *order = shuffled(request, count, round);
    for (uint32_t item = first; item < (round + 1) * count; item++) {
        uint32_t k = order[item % count];
        shared->active = item;
        measure_item(request, kernels[k], states, round, &results[k * request->rounds]);
        shared->progress = item + 1;
    }
}
