/* Cycles of a kernel on a machine nobody prepared.
 *
 * A region of U1 and one of U2 body copies run alternately, the same number of trips each; the
 * difference of their low clusters is free of entry, exit and loop overhead. Throughput samples
 * count only between clean canaries.
 */
#define _GNU_SOURCE
#include "worker.h"
#include <math.h>
#include <string.h>

#define FEW_INSTRUCTIONS 12
#define MANY_INSTRUCTIONS 48
#define HUNDRED_INSTRUCTIONS 100
#define UNROLLED_BYTES 24576 /* stay within the first-level instruction cache */
#define CLOCK_EVERY 4        /* kernels between two reference runs */

static const struct calibration *cal(void)
{
    return &shared->calibration;
}

struct region {
    uint8_t *code, *counter;
    unsigned units;
};

struct job {
    const struct kernel *kernel;
    const struct state *state;
    const uint8_t *setup, *body;
    struct region shorter, longer;
    uint32_t trips;
};

static uint8_t *next_region(void)
{
    static unsigned turn;
    return CODE + (turn++ % REGIONS) * REGION_BYTES;
}

static int build(struct job *job, struct region *region, unsigned units)
{
    const struct kernel *k = job->kernel;
    uint8_t *p = next_region();
    if ((size_t)k->setup + (size_t)k->body * units + 512 > REGION_BYTES)
        return -1;
    region->code = p;
    region->units = units;
    memcpy(p, job->setup, k->setup);
    region->counter = p + k->setup;
    p = arch_emit_align(arch_emit_counter(region->counter, 1));
    const uint8_t *start = p;
    for (unsigned i = 0; i < units; i++, p += k->body)
        memcpy(p, job->body, k->body);
    if (!(k->flags & KERNEL_UNROLLED))
        p = arch_emit_loop_end(p, start);
    arch_code_written(region->code, arch_emit_exit(p));
    return 0;
}

static void write_trips(const struct region *region, uint32_t trips)
{
    arch_code_written(region->counter, arch_emit_counter(region->counter, trips));
}

static void set_trips(struct job *job, uint32_t trips)
{
    job->trips = trips;
    write_trips(&job->shorter, trips);
    write_trips(&job->longer, trips);
}

static int build_both(struct job *job, unsigned u1, unsigned u2)
{
    job->trips = 1;
    return build(job, &job->shorter, u1) || build(job, &job->longer, u2);
}

static double time_region(const struct job *job, const struct region *region)
{
    uint64_t before = clock_ticks();
    arch_call(job->state, region->code);
    return (double)(clock_ticks() - before);
}

static double least_of(const struct job *job, const struct region *region, int times)
{
    double least = time_region(job, region);
    for (int i = 1; i < times; i++) {
        double t = time_region(job, region);
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

/* Ticks of one trip through the longer region. */
static double pilot(struct job *job)
{
    double fixed = overhead(job), coarse = 10 * cal()->step;
    double t = least_of(job, &job->longer, 2) - fixed;
    if (t >= coarse || job->kernel->flags & KERNEL_UNROLLED)
        return t > 0 ? t : 1;
    set_trips(job, 16);
    t = (least_of(job, &job->longer, 2) - fixed) / 16;
    return t > 0.5 ? t : 0.5;
}

static double target_ticks(const struct measure *request)
{
    double target = request->target * cal()->ticks_per_cycle;
    return target > 150 * cal()->step ? target : 150 * cal()->step;
}

/* Copies and trips: enough instructions for a body that is not short, a region of about `target`
 * cycles. Rounds differ in the lengths, so that agreement of rounds is linearity. */
static int plan_once(struct job *job, double target, uint32_t round)
{
    const struct kernel *k = job->kernel;
    unsigned least = k->flags & KERNEL_LONG   ? HUNDRED_INSTRUCTIONS
                     : k->flags & KERNEL_FAST ? MANY_INSTRUCTIONS
                                              : FEW_INSTRUCTIONS;
    unsigned per_unit = k->instructions ? k->instructions : 1;
    unsigned u1 = (least + per_unit - 1) / per_unit, factor = round & 1 ? 4 : 5;
    if (round & 1)
        u1 += (u1 + 1) / 2;
    if (build_both(job, u1, factor * u1))
        return -1;
    double trip = pilot(job);
    if (k->flags & KERNEL_UNROLLED && trip < target) {
        double more = target / trip;
        size_t room = UNROLLED_BYTES / ((size_t)k->body * factor);
        unsigned wanted = (unsigned)(u1 * more) + 1;
        u1 = wanted < room ? wanted : (unsigned)room;
        return u1 ? build_both(job, u1, factor * u1) : -1;
    }
    if (trip > 1.5 * target) {
        unsigned u2 = (unsigned)(target / (trip / (factor * u1)));
        u2 = u2 < 2 ? 2 : u2;
        u1 = u2 / factor ? u2 / factor : 1;
        return build_both(job, u1, u2 + (round & 1));
    }
    uint32_t trips = (uint32_t)(target / trip + 0.5);
    set_trips(job, trips ? trips : 1);
    return 0;
}

/* A pilot can be disturbed: check the region's real length, and plan again when it is far off. */
static int plan(struct job *job, const struct measure *request, uint32_t round)
{
    double target = target_ticks(request);
    for (int attempt = 0; attempt < 4; attempt++) {
        if (plan_once(job, target, round))
            return -1;
        double t = least_of(job, &job->longer, 2) - overhead(job);
        int smallest = job->trips == 1 && job->longer.units <= 3;
        if (t >= 0.5 * target && (t <= 3 * target || smallest))
            return 0;
    }
    return 0;
}

/* A delay of varying length, so that samples meet every phase of a coarse clock. */
static void dither(unsigned i)
{
    for (unsigned j = i * 11 % 37; j; j--)
        __asm__ volatile("" ::: "memory");
}

struct samples {
    double a[MAX_SAMPLES], b[MAX_SAMPLES];
    double mean_a, mean_b, width_a, width_b;
    unsigned count, in_a, in_b, tries;
};

static void summarise(struct samples *s)
{
    s->mean_a = low_cluster(s->a, s->count, &s->in_a, &s->width_a);
    s->mean_b = low_cluster(s->b, s->count, &s->in_b, &s->width_b);
}

static void take_samples(struct job *job, const struct measure *request, struct samples *s)
{
    unsigned maximum = request->maximum < MAX_SAMPLES ? request->maximum : MAX_SAMPLES;
    int canary = job->kernel->flags & KERNEL_CANARY, before = !canary || core_undisturbed();
    s->count = s->in_a = s->in_b = 0;
    for (s->tries = 0; s->tries < maximum;) {
        dither(s->tries);
        double ta = time_region(job, &job->shorter);
        dither(s->tries + 5);
        double tb = time_region(job, &job->longer);
        int after = !canary || core_undisturbed();
        s->tries++;
        if (before && after) {
            s->a[s->count] = ta;
            s->b[s->count++] = tb;
        }
        before = after;
        if (s->count < request->want || s->count % 2)
            continue;
        summarise(s);
        if (s->in_a >= request->want && s->in_b >= request->want)
            break;
    }
    if (s->count)
        summarise(s);
}

static void sample(struct job *job, const struct measure *request, struct result *out)
{
    static struct samples s;
    take_samples(job, request, &s);
    unsigned fewer = s.in_a < s.in_b ? s.in_a : s.in_b;
    double copies = ((double)job->longer.units - job->shorter.units) * job->trips;
    double scale = copies * cal()->ticks_per_cycle;
    out->accepted = fewer;
    out->rejected = s.tries - fewer;
    out->status = fewer >= request->want ? STATUS_OK : STATUS_UNCLEAN;
    out->cycles = s.count ? (s.mean_b - s.mean_a) / scale : NAN;
    out->spread = s.count ? (s.width_a + s.width_b) / scale : NAN;
    out->short_units = job->shorter.units;
    out->long_units = job->longer.units;
    out->trips = job->trips;
}

static void count_events(struct job *job, struct result *out)
{
    uint64_t v[4][COUNTERS_MAX];
    unsigned n = counters_count();
    if (!n)
        return;
    counters_read(v[0]);
    time_region(job, &job->shorter);
    counters_read(v[1]);
    counters_read(v[2]);
    time_region(job, &job->longer);
    counters_read(v[3]);
    double copies = ((double)job->longer.units - job->shorter.units) * job->trips;
    for (unsigned i = 0; i < n; i++)
        out->counters[i] =
            (double)((int64_t)(v[3][i] - v[2][i]) - (int64_t)(v[1][i] - v[0][i])) / copies;
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
    if (sigsetjmp(fault_return, 1) == 0) {
        fault_armed = 1;
        if (plan(&job, request, round)) {
            out->status = STATUS_TOO_LONG;
        } else {
            sample(&job, request, out);
            count_events(&job, out);
            out->mxcsr = arch_exceptions();
        }
        fault_armed = 0;
        return;
    }
    arch_recover();
    out->status = fault.signal == SIGALRM ? STATUS_HANG : STATUS_SIGNAL;
    out->detail = (uint32_t)fault.signal;
    out->address = fault.address;
    uint64_t start = (uint64_t)job.shorter.code, end = start + REGION_BYTES;
    if (fault.pc >= start && fault.pc < end)
        out->instruction = (int32_t)(fault.pc - start);
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
    if (!counters_usable() && shared->active % CLOCK_EVERY == 0)
        clock_follow();
}

/* All kernels once per round, in a random order, from item `first` on. */
void measure_all(const struct measure *request, const struct kernel *const *kernels,
                 const struct state *states, uint32_t count, struct result *results,
                 uint32_t first)
{
    clock_prepare();
    for (uint32_t round = 0; round < request->rounds; round++) {
        const uint32_t *order = shuffled(request, count, round);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t item = round * count + i, k = order[i];
            if (item < first)
                continue;
            shared->active = item;
            measure_item(request, kernels[k], states, round, &results[k * request->rounds]);
            shared->progress = item + 1;
        }
    }
}
