/* Cycles of basic blocks as they are in programs: without a loop of ours, or as loops.
 *
 * Copies of a block follow each other, and a fence behind them waits for their stores; about a quarter, a half
 * and all of them are timed in turn. Cycles are from the difference of the longer two; that of the shorter two
 * shows whether copies take the same time wherever they are. A loop goes round a quarter, a half and all of
 * its trips. How copies begin and end is the same for all lengths, so that it is no part of the difference.
 *
 * Registers are those of a state. Before every sample memory holds the same again. A sample is many calls,
 * since copies have to stay within what micro-operation caches hold.
 */
#define _GNU_SOURCE
#include "worker.h"
#include <math.h>
#include <string.h>

#define LENGTHS 3
#define UNROLLED_INSTRUCTIONS 1200 /* twice of what large reorder buffers hold, in the half of them */
#define UNROLLED_BYTES 10000       /* copies: what micro-operation caches hold of usual code */
#define LOOP_INSTRUCTIONS 20000    /* of all trips: an end that is mispredicted is a thousandth */
#define FEWEST 8                   /* copies */
#define LONGER 2                   /* quarters that fill lines at most: no more than a fourth more copies for that */
#define CALLS_MAX 100
#define WHOLE_TARGETS 4 /* a call that takes more of them has too many copies */
#define LINE 64         /* bytes: what arch_emit_align aligns */
#define LOOKS 2         /* at all lengths, for pages that are touched later */
#define SAME 0.005      /* times so near to each other are the same, beside neighbours or not */
#define GROUP 4         /* samples after which it is asked whether they are enough */

unsigned blocks_halvings;

struct block {
    const struct kernel *kernel;
    const uint8_t *body;
    struct state state __attribute__((aligned(64))); /* one for all lengths: entering takes the same time */
    const uint8_t *code[LENGTHS], *first[LENGTHS]; /* entered, and the first copy */
    uint32_t copies[LENGTHS], calls;
};

struct times {
    double ticks[LENGTHS][MAX_SAMPLES], mean[LENGTHS], width[LENGTHS];
    unsigned count, fewest; /* samples; members of the smallest cluster */
};

static struct block block;
static struct times clean, disturbed;
static unsigned tries;
static double followed; /* ticks per cycle of the first sample, which the others are made one of; or 0 */

static const struct calibration *cal(void)
{
    return &shared->calibration;
}

static int is_loop(const struct kernel *kernel)
{
    return kernel->flags & BLOCK_LOOP;
}

/* A multiple of 4. */
uint32_t blocks_copies(const struct kernel *kernel, unsigned halvings)
{
    uint32_t each = kernel->instructions ? kernel->instructions : 1, bytes = kernel->body ? kernel->body : 1;
    uint32_t copies = (is_loop(kernel) ? LOOP_INSTRUCTIONS : UNROLLED_INSTRUCTIONS) / each;
    if (!is_loop(kernel) && copies * bytes > UNROLLED_BYTES)
        copies = UNROLLED_BYTES / bytes;
    copies = copies >> halvings & ~3u;
    return copies < FEWEST ? FEWEST : copies;
}

/* Jumps lead to the copies and away from them: what follows no taken branch may be decoded again in every call,
 * or come from where decoded instructions are kept, as it happens. On a Zen 5 the same block took 0.25 cycles or
 * 0.50. What is behind the last copy begins where a line does, whatever the length of the copies. */
static uint8_t *behind_jump(uint8_t *from)
{
    return arch_emit_align(from + JUMP_BYTES);
}

/* The copies wait for no fence: a front end that runs ahead meanwhile by so and so many of them is slower behind
 * these, and no number of copies is then free of where that is. They end where a line does: where in a line the
 * jump behind them lies is worth up to 6 cycles on a Zen 4, which are 6 % of the difference of two lengths.
 * A loop begins where a line does. */
static uint8_t *first_copy(uint8_t *start, uint32_t copies)
{
    uint32_t beyond = is_loop(block.kernel) ? 0 : copies * block.kernel->body % LINE;
    return behind_jump(start) + (beyond ? LINE - beyond : 0);
}

static uint8_t *jump(uint8_t *from, uint8_t *to)
{
    arch_emit_jump(from, to);
    return to;
}

static const uint8_t *build(unsigned length, uint32_t copies)
{
    uint8_t *start = CODE + length * REGION_BYTES, *p = jump(start, first_copy(start, copies));
    block.first[length] = p;
    for (uint32_t i = 0; i < copies; i++, p += block.kernel->body)
        memcpy(p, block.body, block.kernel->body);
    arch_code_written(start, arch_emit_exit(arch_emit_drain(jump(p, behind_jump(p)))));
    return start;
}

static uint32_t whole(uint32_t copies, uint32_t lines)
{
    uint32_t rounded = (copies + lines / 2) / lines * lines;
    return rounded ? rounded : lines;
}

/* Copies that fill lines, or parts of them if these are too many: lengths that differ by so many begin at the same
 * place in a line too. Others were up to 5 cycles apart on a Zen 5, in some processes and not in others. */
static uint32_t line_copies(uint32_t quarter)
{
    uint32_t lines = is_loop(block.kernel) ? 1 : LINE;
    while (lines > 1 && block.kernel->body % (LINE / lines * 2) == 0)
        lines /= 2;
    while (lines > LONGER * quarter)
        lines /= 2;
    return lines;
}

static void set_copies(uint32_t copies)
{
    uint32_t quarter = copies / 4, lines = line_copies(quarter);
    block.copies[0] = quarter;
    block.copies[1] = block.copies[0] + whole(quarter, lines);
    block.copies[2] = block.copies[1] + whole(2 * quarter, lines);
    for (unsigned i = 0; i < LENGTHS; i++) {
        block.code[i] = build(i, is_loop(block.kernel) ? 1 : block.copies[i]);
    }
}

static void set_counter(unsigned length)
{
    if (is_loop(block.kernel))
        block.state.general[block.kernel->flags >> BLOCK_COUNTER_SHIFT & 31] = block.copies[length];
}

static void call(unsigned length, uint32_t calls)
{
    set_counter(length);
    for (uint32_t i = 0; i < calls; i++)
        arch_call(&block.state, block.code[length]);
}

static double time_calls(unsigned length, uint32_t calls)
{
    uint64_t before = clock_ticks();
    call(length, calls);
    return (double)(clock_ticks() - before);
}

/* A sample: the first call finds memory as it was filled, and brings it into the caches. */
static double sample(unsigned length)
{
    fault_beat();
    pages_fill();
    call(length, 1);
    return time_calls(length, block.calls);
}

/* Touch every page, with as many calls as a sample has. */
static void look(void)
{
    for (unsigned i = 0; i < LOOKS * LENGTHS; i++) {
        pages_fill();
        call(i % LENGTHS, block.calls + 1);
    }
}

static double target_ticks(const struct blocks *request)
{
    double target = request->target * cal()->ticks_per_cycle, coarse = 150 * cal()->step;
    return target > coarse ? target : coarse;
}

static double pilot(void)
{
    pages_fill();
    call(LENGTHS - 1, 1);
    double one = time_calls(LENGTHS - 1, 1), two = time_calls(LENGTHS - 1, 1), least = one < two ? one : two;
    return least > 1 ? least : 1;
}

/* Copies and calls for a sample of about `target` ticks. */
static void plan(double target)
{
    uint32_t copies = blocks_copies(block.kernel, blocks_halvings);
    block.calls = 1;
    set_copies(copies);
    look();
    double time = pilot();
    if (time > WHOLE_TARGETS * target) {
        uint32_t fewer = (uint32_t)(copies * target / time) & ~3u;
        set_copies(fewer < FEWEST ? FEWEST : fewer);
        return;
    }
    double calls = ceil(target / time);
    block.calls = calls < CALLS_MAX ? (uint32_t)calls : CALLS_MAX;
    look();
}

static void summarise(struct times *t)
{
    t->fewest = MAX_SAMPLES;
    for (unsigned i = 0; i < LENGTHS; i++) {
        unsigned members;
        t->mean[i] = low_cluster(t->ticks[i], t->count, &members, &t->width[i]);
        t->fewest = members < t->fewest ? members : t->fewest;
    }
}

static int enough(struct times *t, uint32_t want)
{
    if (t->count < want || t->count % GROUP)
        return 0;
    summarise(t);
    return t->fewest >= want;
}

static int quiet(void)
{
    return core_undisturbed() && (!is_loop(block.kernel) || (loops_undisturbed() || loops_undisturbed()));
}

static void add(struct times *to, const double ticks[LENGTHS], double factor)
{
    for (unsigned i = 0; i < LENGTHS; i++)
        to->ticks[i][to->count] = ticks[i] * factor;
    to->count++;
}

/* One sample of all lengths from the moment `*then` on, unless the frequency changes meanwhile. Returns whether
 * the core is quiet behind it. */
static int take_one(int before, double *then)
{
    double ticks[LENGTHS], start = *then;
    sample_dither(tries++);
    for (unsigned i = 0; i < LENGTHS; i++)
        ticks[i] = sample(i);
    *then = clock_moment();
    int after = quiet();
    clock_judge(before && after);
    if (clock_same(start, *then))
        add(before && after ? &clean : &disturbed, ticks, *then ? 2 * followed / (start + *then) : 1);
    if (after && !before)
        *then = clock_moment();
    return after;
}

static void take_samples(const struct blocks *request)
{
    unsigned maximum = request->maximum < MAX_SAMPLES ? request->maximum : MAX_SAMPLES, known = 0;
    int before = quiet();
    double then = followed = clock_moment();
    clean.count = clean.fewest = disturbed.count = 0;
    for (tries = 0; tries < maximum;) {
        before = take_one(before, &then);
        if (clean.count > known && enough(&clean, request->want))
            return;
        known = clean.count;
        if (!before) {
            before = await_quiet();
            then = clock_moment();
        }
    }
    if (clean.count)
        summarise(&clean);
}

static double longer_half(const struct times *t)
{
    return t->mean[LENGTHS - 1] - t->mean[LENGTHS - 2];
}

/* As samples of kernels: what waits for its own results takes the same time beside a neighbour. */
static int indifferent(uint32_t want)
{
    if (clean.count < 2 || disturbed.count < want)
        return 0;
    summarise(&disturbed);
    double one = longer_half(&clean), other = longer_half(&disturbed);
    return disturbed.fewest >= want && fabs(one - other) < SAME * one + cal()->step;
}

static void tell(const struct times *t, struct block_result *out)
{
    double each = (followed ? followed : cal()->ticks_per_cycle) * block.calls, longer = longer_half(t) / each;
    double shorter = (t->mean[1] - t->mean[0]) / each;
    double copies = block.copies[2] - block.copies[1], fewer = block.copies[1] - block.copies[0];
    out->cycles = longer / copies;
    out->spread = (t->width[1] + t->width[2]) / each / copies;
    out->linearity = longer > 0 ? shorter / fewer / out->cycles : 0;
}

static void measure(const struct blocks *request, struct block_result *out)
{
    clock_follow(clock_runs(request->want));
    take_samples(request);
    const struct times *t = &clean;
    int good = clean.fewest >= request->want;
    if (!good && indifferent(request->want)) {
        t = &disturbed;
        good = 1;
    }
    out->status = good ? STATUS_OK : STATUS_UNCLEAN;
    out->accepted = t->count ? t->fewest : 0;
    out->rejected = tries - out->accepted;
    out->disturbed = t == &clean ? disturbed.count : 0;
    out->cycles = out->spread = NAN;
    if (t->count)
        tell(t, out);
}

static void fault_told(struct block_result *out)
{
    arch_recover();
    out->status = fault.signal == SIGALRM ? STATUS_HANG : STATUS_SIGNAL;
    out->detail = (uint32_t)fault.signal;
    out->address = fault.address;
    uint64_t most = (uint64_t)block.kernel->body * block.copies[LENGTHS - 1];
    for (unsigned i = 0; i < LENGTHS; i++) {
        uint64_t offset = fault.pc - (uint64_t)block.first[i]; /* huge in front of it */
        if (offset < most)
            out->instruction = (int32_t)(offset % block.kernel->body);
    }
}

void block_one(const struct blocks *request, const struct kernel *kernel, const struct state *state,
               struct block_result *out)
{
    memset(out, 0, sizeof *out);
    out->instruction = -1;
    out->pages = pages_count();
    block.kernel = kernel;
    block.state = *state;
    block.body = (const uint8_t *)(kernel + 1) + kernel->setup;
    if (pages_refused()) {
        out->status = STATUS_SIGNAL;
        out->detail = SIGSEGV;
        out->address = pages_refused();
        return;
    }
    clock_prepare();
    if (is_loop(kernel))
        loops_calibrate();
    if (sigsetjmp(fault_return, 0) == 0) {
        fault_armed = 1;
        plan(target_ticks(request));
        measure(request, out);
        fault_armed = 0;
        out->copies = block.copies[LENGTHS - 1];
        out->calls = block.calls;
        return;
    }
    fault_told(out);
}
