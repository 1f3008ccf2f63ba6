/* Copies of code that run once, as nanoBench times them.
 *
 * A run: registers of a state, the setup, a read of the clock and of the counters, what comes late, the copies
 * (with a loop count as a loop), another read. Two lengths run in turn; each measurement is as many runs of both as
 * a coarse clock needs, and each run is timed within its own code, so that neither entering nor the setup counts.
 *
 * A mark in the code that pauses or resumes counting becomes a jump to a read of its own and back: so branches
 * that lead across it keep their distance.
 */
#define _GNU_SOURCE
#include "worker.h"
#include <math.h>
#include <string.h>

#define CALLS_MAX 400 /* in a measurement, of each length */
#define TRIES 8       /* times as many as measurements, beside neighbours */
#define ONE_TIME 2    /* the region of what runs once */
/* Seconds of a measurement with what runs before the code: in most longer ones there is an interrupt. */
#define LONGEST 0.005

enum length { SHORTER, LONGER, LENGTHS };

static struct burst {
    const struct bursts *request;
    const struct kernel *kernel;
    const uint8_t *one_time, *late, *body;
    uint32_t bytes; /* of the body */
    struct state state __attribute__((aligned(64)));
    int32_t indices[COUNTERS_MAX];
    unsigned counted; /* the clock is the first */
    uint8_t *late_at[LENGTHS], *first[LENGTHS]; /* where they are in both */
    uint32_t calls;
} burst;

struct sums {
    double ticks, events[COUNTERS_MAX];
};

static int is_emulated; /* known before system calls are none of the worker's business */
static struct sums events; /* of all measurements, longer less shorter; `ticks` is how many there are */
static uint32_t changes;   /* of the counters, when a measurement began */

static const struct calibration *cal(void)
{
    return &shared->calibration;
}

void burst_prepare(void)
{
    is_emulated = emulated();
}

size_t burst_bytes(const struct bursts *request)
{
    return sizeof(struct burst_result) + 2 * sizeof(double) * request->measurements;
}

enum mark { NO_MARK, PAUSES, RESUMES };

/* nanoBench's: 0xF0B513B1C2813F04 pauses, 0xE0B513B1C2813F04 resumes. */
static enum mark mark_at(const uint8_t *code, const uint8_t *end)
{
    static const uint8_t mark[MARK_BYTES - 1] = {0x04, 0x3f, 0x81, 0xc2, 0xb1, 0x13, 0xb5};
    if (end - code < (ptrdiff_t)MARK_BYTES || memcmp(code, mark, sizeof mark))
        return NO_MARK;
    uint8_t last = code[MARK_BYTES - 1];
    return last == 0xf0 ? PAUSES : last == 0xe0 ? RESUMES : NO_MARK;
}

static unsigned marks_in_body(void)
{
    unsigned count = 0;
    for (const uint8_t *at = burst.body; at < burst.body + burst.bytes; at++)
        count += mark_at(at, burst.body + burst.bytes) != NO_MARK;
    return count;
}

static uint8_t *copied(uint8_t *p, const uint8_t *code, size_t bytes)
{
    memcpy(p, code, bytes);
    return p + bytes;
}

/* The reads that marks of the copies stand for, from `p` on. */
static uint8_t *build_reads(uint8_t *copies, const uint8_t *end, uint8_t *p)
{
    for (uint8_t *at = copies; at < end; at++) {
        enum mark mark = mark_at(at, end);
        if (mark == NO_MARK)
            continue;
        p = arch_emit_align(p);
        arch_emit_jump(at, p);
        p = arch_emit_mark(p, mark == RESUMES, burst.indices, burst.counted);
        arch_emit_jump(p, at + MARK_BYTES);
        p += JUMP_BYTES;
    }
    return p;
}

static int drains(void)
{
    return (burst.request->flags & BURST_DRAIN) != 0;
}

/* What follows no taken branch may be decoded again in every run: a jump leads to the copies, and one away from
 * them, so that what is behind the last one begins where a line does, whatever their number. */
static uint8_t *jump_on(uint8_t *from, uint32_t offset)
{
    uint8_t *to = arch_emit_align(from + JUMP_BYTES);
    arch_emit_jump(from, to + (drains() ? 0 : offset));
    return arch_emit_idle(drains() ? arch_emit_flood(to) : to, offset);
}

/* The setup leaves nothing in the front end either. */
static uint8_t *drained(uint8_t *p)
{
    return drains() ? arch_emit_flood(arch_emit_align(p)) : p;
}

static void build(enum length length, uint32_t copies, uint32_t trips)
{
    uint8_t *start = CODE + length * REGION_BYTES;
    uint8_t *p = copied(start, (const uint8_t *)(burst.kernel + 1), burst.kernel->setup);
    p = arch_emit_mark(arch_emit_marks_base(drained(p)), 1, burst.indices, burst.counted);
    burst.late_at[length] = p;
    p = copied(p, burst.late, burst.request->late);
    p = trips ? arch_emit_counter(p, trips) : p;
    uint8_t *first = burst.first[length] = p = jump_on(p, burst.request->offset);
    for (uint32_t i = 0; i < copies; i++)
        p = copied(p, burst.body, burst.bytes);
    const uint8_t *end = p;
    p = trips ? arch_emit_loop_end(p, first) : p;
    p = arch_emit_exit(arch_emit_mark(jump_on(p, 0), 0, burst.indices, burst.counted));
    arch_code_written(start, build_reads(first, end, p));
}

static int fits(void)
{
    const struct bursts *request = burst.request;
    uint64_t copies = 2ul * request->unroll * burst.bytes;
    uint64_t marks = 2ul * request->unroll * marks_in_body() * MARK_ROOM;
    uint64_t around = burst.kernel->setup + request->late + request->offset + 3 * MARK_ROOM + (drains() ? 3 * FLOOD_ROOM : 0);
    return request->offset < REGION_BYTES && copies + marks + around <= REGION_BYTES;
}

static void build_both(void)
{
    const struct bursts *request = burst.request;
    int basic = request->flags & BURST_BASIC;
    changes = counters_changes();
    burst.counted = counters_indices(burst.indices);
    build(SHORTER, basic ? 0 : request->unroll, basic ? 0 : request->loop);
    build(LONGER, basic ? request->unroll : 2 * request->unroll, request->loop);
}

/* What the kernel changed since counts nothing that a read in the code would know of. */
static void follow_counters(void)
{
    if (counters_changes() != changes)
        build_both();
}

static void run_one_time(void)
{
    uint8_t *start = CODE + ONE_TIME * REGION_BYTES;
    uint8_t *end = arch_emit_exit(arch_emit_drain(copied(start, burst.one_time, burst.request->one_time)));
    arch_code_written(start, end);
    if (burst.request->one_time)
        arch_call(&burst.state, start);
}

static void run(enum length length, struct sums *to)
{
    for (unsigned i = 0; i < burst.counted; i++)
        MARKS->sum[i] = 0;
    fault_beat();
    arch_call(&burst.state, CODE + length * REGION_BYTES);
    to->ticks += (double)counters_signed(0, MARKS->sum[0]);
    for (unsigned i = 1; i < burst.counted; i++)
        to->events[i - 1] += (double)counters_signed(i, MARKS->sum[i]);
}

static struct sums runs(enum length length, uint32_t calls)
{
    struct sums unused = {0}, sums = {0};
    run(length, &unused); /* what ran last is entered faster */
    for (uint32_t i = 0; i < calls; i++) {
        sample_dither(i);
        run(length, &sums);
    }
    return sums;
}

static void plan(void)
{
    double target = burst.request->target * cal()->ticks_per_cycle, coarse = 150 * cal()->step;
    uint64_t before = clock_ticks();
    double ticks = runs(LONGER, 1).ticks, whole = (double)(clock_ticks() - before); /* of two runs, a call of both */
    double calls = ceil((target > coarse ? target : coarse) / (ticks > 1 ? ticks : 1));
    calls = fmin(calls, LONGEST / cal()->seconds_per_tick / (whole > 1 ? whole : 1));
    burst.calls = is_emulated ? 1 : calls < 1 ? 1 : calls < CALLS_MAX ? (uint32_t)calls : CALLS_MAX;
}

/* One measurement from the moment `*then` on, in core cycles per run; whether it was of one frequency. */
static int take_one(double *then, double cycles[LENGTHS])
{
    double start = *then;
    follow_counters();
    struct sums shorter = runs(SHORTER, burst.calls), longer = runs(LONGER, burst.calls);
    *then = clock_moment();
    double ticks = (*then ? (start + *then) / 2 : cal()->ticks_per_cycle) * burst.calls;
    cycles[SHORTER] = shorter.ticks / ticks;
    cycles[LONGER] = longer.ticks / ticks;
    if (!clock_same(start, *then) || counters_changes() != changes)
        return 0;
    events.ticks++;
    for (unsigned i = 0; i < counters_count(); i++)
        events.events[i] += (longer.events[i] - shorter.events[i]) / burst.calls;
    return 1;
}

static void warm_up(void)
{
    for (uint32_t i = 0; i < burst.request->initial_warm_up; i++)
        runs(SHORTER, 0);
    for (uint32_t i = 0; i < burst.request->warm_up; i++) {
        runs(SHORTER, 0);
        runs(LONGER, 0);
    }
}

/* Measurements between clean canaries; where there are too few of them, others in their place. */
static void measure(struct burst_result *out)
{
    uint32_t wanted = burst.request->measurements, tries = 0, most = TRIES * wanted;
    double(*found)[LENGTHS] = (double(*)[LENGTHS])(out + 1), then;
    int before;
    most = most < MAX_SAMPLES ? most : MAX_SAMPLES;
    most = is_emulated ? wanted : most;
    clock_follow(clock_runs(wanted));
    before = core_undisturbed();
    then = clock_moment();
    for (uint32_t have = 0; have < wanted; tries++) {
        double cycles[LENGTHS];
        int same = take_one(&then, cycles), after = core_undisturbed(), clean = before && after && same;
        clock_judge(before && after);
        if (clean || tries + (wanted - have) >= most) {
            memcpy(found[have++], cycles, sizeof cycles);
            out->accepted += (uint32_t)clean;
            shared->progress = have;
        }
        out->disturbed += !(before && after);
        then = before && after ? then : 0;
        before = after || await_quiet();
        then = then > 0 ? then : clock_moment();
    }
    out->rejected = tries - out->accepted;
    out->status = out->accepted == wanted ? STATUS_OK : STATUS_UNCLEAN;
}

static void tell(struct burst_result *out)
{
    out->calls = burst.calls;
    for (unsigned i = 0; i < counters_count() && events.ticks > 0; i++)
        out->counters[i] = events.events[i] / events.ticks;
}

/* Offset in the kernel of a fault in so many copies of a part of it, or -1. */
static int32_t fault_in(const uint8_t *start, const uint8_t *part, size_t bytes, size_t copies)
{
    int32_t at = start ? fault_offset(start, bytes, copies) : -1;
    return at < 0 ? -1 : (int32_t)(part - (const uint8_t *)(burst.kernel + 1)) + at;
}

static void fault_told(struct burst_result *out)
{
    arch_recover();
    memset(out + 1, 0, burst_bytes(burst.request) - sizeof *out);
    out->status = fault.signal == SIGALRM ? STATUS_HANG : STATUS_SIGNAL;
    out->detail = (uint32_t)fault.signal;
    out->address = fault.address;
    out->instruction = fault_in(CODE + ONE_TIME * REGION_BYTES, burst.one_time, burst.request->one_time, 1);
    for (unsigned length = 0; length < LENGTHS && out->instruction < 0; length++) {
        const uint8_t *setup = (const uint8_t *)(burst.kernel + 1);
        out->instruction = fault_in(CODE + length * REGION_BYTES, setup, burst.kernel->setup, 1);
        if (out->instruction < 0)
            out->instruction = fault_in(burst.late_at[length], burst.late, burst.request->late, 1);
        if (out->instruction < 0)
            out->instruction = fault_in(burst.first[length], burst.body, burst.bytes, 2ul * burst.request->unroll);
    }
}

static int prepare(const struct bursts *request, const struct kernel *kernel, const struct state *state)
{
    if (request->one_time > kernel->body || request->late > kernel->body - request->one_time)
        return -1;
    memset(&burst, 0, sizeof burst);
    memset(&events, 0, sizeof events);
    burst.request = request;
    burst.kernel = kernel;
    burst.state = *state;
    burst.one_time = (const uint8_t *)(kernel + 1) + kernel->setup;
    burst.late = burst.one_time + request->one_time;
    burst.body = burst.late + request->late;
    burst.bytes = kernel->body - request->one_time - request->late;
    return burst.bytes && fits() ? 0 : -1;
}

void burst_one(const struct bursts *request, const struct kernel *kernel, const struct state *state,
               struct burst_result *out)
{
    memset(out, 0, burst_bytes(request));
    for (unsigned i = 0; i < COUNTERS_MAX; i++)
        out->counters[i] = NAN;
    out->instruction = -1;
    if (prepare(request, kernel, state)) {
        out->status = STATUS_TOO_LONG;
        return;
    }
    clock_prepare();
    memory_fill(&burst.state);
    if (sigsetjmp(fault_return, 0) == 0) {
        fault_armed = 1;
        run_one_time();
        build_both();
        warm_up();
        plan();
        measure(out);
        fault_armed = 0;
        tell(out);
        return;
    }
    fault_told(out);
}
