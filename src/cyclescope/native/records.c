/* Whether what a worker wrote can be true: measured code can write there too. */
#define _GNU_SOURCE
#include "supervisor.h"
#include "worker.h"
#include <math.h>
#include <string.h>

#define SIGNAL_MAX 64u
#define LONGEST_CYCLES 1e12 /* minutes: whatever takes as long was killed */
#define EXCEPTIONS 0x3fu

int records_clock(const struct calibration *c)
{
    return isfinite(c->ticks_per_cycle) && c->ticks_per_cycle > 0 && isfinite(c->step) &&
           c->step > 0 && isfinite(c->canary) && isfinite(c->spread) && c->clean_share >= 0 &&
           c->clean_share <= 1 && isfinite(c->seconds_per_tick) && isfinite(c->nop) && c->nop >= 0;
}

static int is_length(double cycles)
{
    return fabs(cycles) < LONGEST_CYCLES;
}

/* A status with the detail that belongs to it. */
static int is_end(uint32_t status, uint32_t detail)
{
    switch (status) {
    case STATUS_SIGNAL:
    case STATUS_HANG:
        return detail > 0 && detail <= SIGNAL_MAX;
    case STATUS_DIED:
        return detail <= DIED_OF_NONSENSE;
    default:
        return status <= STATUS_NOT_RUN && detail == 0;
    }
}

static int has_value(const struct result *r)
{
    if (r->status == STATUS_UNCLEAN && isnan(r->cycles) && isnan(r->spread))
        return 1; /* no sample was clean */
    if (r->status == STATUS_OK || r->status == STATUS_UNCLEAN)
        return is_length(r->cycles) && is_length(r->spread) && r->spread >= 0 && is_length(r->other);
    return r->cycles == 0 && r->spread == 0 && r->other == 0;
}

static int counts(const struct result *r)
{
    for (unsigned i = 0; i < COUNTERS_MAX; i++)
        if (isinf(r->counters[i]))
            return 0;
    return r->accepted <= MAX_SAMPLES && r->rejected <= MAX_SAMPLES && r->disturbed <= MAX_SAMPLES;
}

static int in_code(int32_t instruction)
{
    return instruction >= -1 && instruction < (int32_t)REGION_BYTES;
}

void records_check_result(struct result *r)
{
    if (is_end(r->status, r->detail) && has_value(r) && counts(r) && in_code(r->instruction) &&
        r->mxcsr <= EXCEPTIONS)
        return;
    memset(r, 0, sizeof *r);
    r->status = STATUS_DIED;
    r->detail = DIED_OF_NONSENSE;
    r->instruction = -1;
}

static int block_has_value(const struct block_result *r)
{
    if (r->status == STATUS_UNCLEAN && isnan(r->cycles) && isnan(r->spread))
        return 1;
    if (r->status == STATUS_OK || r->status == STATUS_UNCLEAN)
        return is_length(r->cycles) && is_length(r->spread) && r->spread >= 0 && is_length(r->linearity);
    return r->cycles == 0 && r->spread == 0 && r->linearity == 0;
}

void records_check_block(struct block_result *r)
{
    if (is_end(r->status, r->detail) && block_has_value(r) && in_code(r->instruction) &&
        r->accepted <= MAX_SAMPLES && r->rejected <= MAX_SAMPLES && r->disturbed <= MAX_SAMPLES &&
        r->pages <= PAGES_MAX)
        return;
    memset(r, 0, sizeof *r);
    r->status = STATUS_DIED;
    r->detail = DIED_OF_NONSENSE;
    r->instruction = -1;
}

static int has_runs(const struct burst_result *r, uint32_t measurements)
{
    const double *runs = (const double *)(r + 1);
    int good = r->accepted <= MEASUREMENTS_MAX && r->rejected <= MAX_SAMPLES && r->disturbed <= MAX_SAMPLES;
    for (uint32_t i = 0; i < 2 * measurements; i++)
        good &= is_length(runs[i]);
    for (unsigned i = 0; i < COUNTERS_MAX; i++)
        good &= !isinf(r->counters[i]);
    return good;
}

void records_check_burst(struct burst_result *r, uint32_t measurements)
{
    if (is_end(r->status, r->detail) && has_runs(r, measurements) && in_code(r->instruction))
        return;
    memset(r, 0, sizeof *r + 2 * measurements * sizeof(double));
    r->status = STATUS_DIED;
    r->detail = DIED_OF_NONSENSE;
    r->instruction = -1;
}

void records_check_probe(struct probe_result *r)
{
    if (is_end(r->status, r->detail) && in_code(r->instruction))
        return;
    memset(r, 0, sizeof *r);
    r->status = STATUS_DIED;
    r->detail = DIED_OF_NONSENSE;
    r->instruction = -1;
}

/* Of places that this instruction set has. */
static int is_set_of_places(const uint8_t *bits)
{
    for (unsigned n = LOCATIONS_END; n < LOCATIONS; n++)
        if (bits[n / 8] >> n % 8 & 1)
            return 0;
    return 1;
}

static int has_places(const struct differ_result *r)
{
    static const uint8_t none[LOCATIONS / 8];
    int good = is_set_of_places(r->present) && is_set_of_places(r->written) &&
               is_set_of_places(r->unstable);
    for (unsigned n = 0; n < LOCATIONS; n++) {
        const uint8_t *outputs = r->depends[n];
        good &= n < LOCATIONS_END ? is_set_of_places(outputs)
                                  : memcmp(outputs, none, sizeof none) == 0;
    }
    return good;
}

void records_check_differ(struct differ_result *r, const struct differ *request)
{
    if (is_end(r->status, r->detail) && r->bases <= request->bases && r->faults <= r->trials &&
        has_places(r))
        return;
    memset(r, 0, sizeof *r);
    r->status = STATUS_DIED;
    r->detail = DIED_OF_NONSENSE;
}
