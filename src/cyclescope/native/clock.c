/* The clock: ticks per core cycle by a chain of dependent ADDs, and how quiet the core is by canaries. */
#define _GNU_SOURCE
#include "worker.h"
#include <math.h>
#include <string.h>
#include <time.h>

#define CANARY_COPIES 128
#define CANARY_TRIPS 3
#define REFERENCE_COPIES 200
#define REFERENCE_SHORT 5
#define REFERENCE_LONG 30
#define TOLERANCE 0.003 /* of the low cluster */
#define CANARY_TOLERANCE 0.03
#define DRIFT 0.002
#define REFRESH_SECONDS 2.0
#define REFRESH_SAMPLES 120
#define STEPS_SEEN 16       /* of a clock so slow that most of its readings are equal */
#define EQUAL_MAX 4000000u
#define REFERENCE_STEPS 100 /* the least length of the longer reference chain */
#define SCALE_MAX 1000

static uint8_t *const tools = (uint8_t *)(CODE_BASE + REGIONS * REGION_BYTES);
static uint8_t *canary_code, *reference_short, *reference_long;

static struct calibration *cal(void)
{
    return &shared->calibration;
}

static uint8_t *build_loop(uint8_t *at, const uint8_t *body, size_t bytes, unsigned copies,
                           uint32_t trips)
{
    uint8_t *p = arch_emit_align(arch_emit_counter(at, trips));
    const uint8_t *start = p;
    for (unsigned i = 0; i < copies; i++, p += bytes)
        memcpy(p, body, bytes);
    p = arch_emit_exit(arch_emit_loop_end(p, start));
    arch_code_written(at, p);
    return p;
}

/* The clock's own loops, `scale` times as long as usual. */
static void build_tools(void)
{
    if (shared->scale == 0)
        shared->scale = 1;
    canary_code = tools;
    reference_short = tools + 0x10000;
    reference_long = tools + 0x20000;
    build_loop(canary_code, arch_canary, arch_canary_bytes, CANARY_COPIES,
               CANARY_TRIPS * shared->scale);
    build_loop(reference_short, arch_reference, arch_reference_bytes, REFERENCE_COPIES,
               REFERENCE_SHORT * shared->scale);
    build_loop(reference_long, arch_reference, arch_reference_bytes, REFERENCE_COPIES,
               REFERENCE_LONG * shared->scale);
}

/* Cycles between the two lengths of the reference chain. */
static double reference_cycles(void)
{
    return REFERENCE_COPIES * (double)(REFERENCE_LONG - REFERENCE_SHORT) * shared->scale;
}

static double time_plain(const void *code)
{
    uint64_t before = clock_ticks();
    arch_call_plain(code);
    return (double)(clock_ticks() - before);
}

/* Mean of the samples within 1.3 clock steps and 0.3 % of the smallest: quantisation dithers
 * itself, so this mean is unbiased where minimum and median are not. */
double low_cluster(const double *v, unsigned n, unsigned *members, double *width)
{
    double least = v[0], sum = 0, most = 0;
    unsigned count = 0;
    for (unsigned i = 1; i < n; i++)
        least = v[i] < least ? v[i] : least;
    double limit = least + 1.3 * cal()->step + TOLERANCE * least;
    for (unsigned i = 0; i < n; i++)
        if (v[i] <= limit) {
            sum += v[i];
            most = v[i] > most ? v[i] : most;
            count++;
        }
    *members = count;
    *width = (most - least) / 2;
    return sum / count;
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

/* On a slow clock, everything that is timed has to be longer. */
static void find_step_and_scale(void)
{
    shared->scale = 1;
    build_tools();
    cal()->step = find_step();
    double least = time_plain(reference_long), wanted = REFERENCE_STEPS * cal()->step;
    for (int i = 0; i < 20; i++) {
        double t = time_plain(reference_long);
        least = t < least ? t : least;
    }
    double scale = wanted / (least > cal()->step ? least : cal()->step);
    shared->scale = scale > SCALE_MAX ? SCALE_MAX : scale > 1 ? (uint32_t)scale + 1 : 1;
    build_tools();
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The best canary ever seen is the measure of an undisturbed core. */
static void note_canary(const double *canary, unsigned n)
{
    unsigned members;
    double width, cycles = low_cluster(canary, n, &members, &width) / cal()->ticks_per_cycle;
    if (cal()->canary == 0 || (members >= 4 && cycles < cal()->canary))
        cal()->canary = cycles;
}

static double canary_limit(void)
{
    double best = cal()->canary * cal()->ticks_per_cycle;
    return best * (1 + CANARY_TOLERANCE) + cal()->step;
}

void calibrate(const struct calibrate *request, struct calibration *out)
{
    static double low[MAX_SAMPLES], high[MAX_SAMPLES], canary[MAX_SAMPLES];
    unsigned n = request->samples < MAX_SAMPLES ? request->samples : MAX_SAMPLES, members;
    double width;
    build_tools();
    if (cal()->step == 0)
        find_step_and_scale();
    for (int i = 0; i < 20; i++)
        time_plain(reference_long);
    double wall = seconds();
    uint64_t first = clock_ticks();
    for (unsigned i = 0; i < n; i++) {
        low[i] = time_plain(reference_short);
        high[i] = time_plain(reference_long);
        canary[i] = time_plain(canary_code);
    }
    cal()->seconds_per_tick = (seconds() - wall) / (double)(clock_ticks() - first);
    double a = low_cluster(low, n, &members, &width);
    double b = low_cluster(high, n, &members, &width);
    cal()->ticks_per_cycle = (b - a) / reference_cycles();
    cal()->spread = width / b;
    note_canary(canary, n);
    unsigned clean = 0;
    for (unsigned i = 0; i < n; i++)
        clean += canary[i] <= canary_limit();
    cal()->clean_share = (double)clean / n;
    shared->calibrated_at = seconds();
    *out = *cal();
}

/* Follow a clock whose frequency changes, by the low clusters of the last reference runs. */
#define RECENT 16
void clock_follow(void)
{
    static double low[RECENT], high[RECENT];
    static unsigned count;
    unsigned in_low, in_high;
    double width;
    low[count % RECENT] = time_plain(reference_short);
    high[count % RECENT] = time_plain(reference_long);
    if (++count < RECENT)
        return;
    double a = low_cluster(low, RECENT, &in_low, &width);
    double b = low_cluster(high, RECENT, &in_high, &width);
    if (in_low < RECENT / 2 || in_high < RECENT / 2)
        return;
    double ticks = (b - a) / reference_cycles();
    double change = ticks / cal()->ticks_per_cycle;
    if (change > 1 + DRIFT || change < 1 - DRIFT)
        cal()->ticks_per_cycle = ticks;
}

int core_undisturbed(void)
{
    return time_plain(canary_code) <= canary_limit();
}

/* What a worker needs before it can measure: its code, and a clock that is not long forgotten. */
void clock_prepare(void)
{
    build_tools();
    if (seconds() - shared->calibrated_at > REFRESH_SECONDS) {
        const struct calibrate refresh = {REFRESH_SAMPLES, 0};
        struct calibration unused;
        calibrate(&refresh, &unused);
    }
}
