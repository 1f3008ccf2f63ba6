/* sampling.c and clock.c on a core that plays its part, in a time of its own.
 *
 * Its instructions are letters: n takes a slot of the front end, c one of its six ALUs, a waits for the
 * a before it, m for five cycles, longer beside a neighbour; d is an n that is slow to decode, once where the
 * core keeps it decoded, which it does for the loop that has had the most trips; s is an n that is slower by a factor
 * where the way into its loop happened to leave the core in its other state; u updates memory, for the u after it, which
 * a short loop learns to know by its register; w is a chain through memory that takes less in a loop's first trips; f goes on behind the code, until that drains. A trip through a loop that
 * fills the front end takes a whole number of cycles more, which depends on the loop's length and place, unless
 * it is long. A kernel that did not run last takes some cycles more to be entered, and so does, now and then, other code
 * of whose decoded instructions the kernel before it has taken the place. A neighbour takes from the
 * front end. Another program may take the CPU after the clock was asked, one time in sixteen; to ask it takes some
 * cycles more or less. Code may ask it itself, behind what enters it; to enter a longer chain takes more in each run.
 */
#define _GNU_SOURCE
#include "worker.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define ALUS 6
#define SHORT_LOOP 200 /* instructions: of longer ones the whole cycles are hidden */
#define ENTRY 180      /* cycles of entering and leaving */
#define FORWARDING 5   /* cycles of an m */
#define UPDATE 7       /* cycles of a u, through memory, and of one that is known by its register */
#define KNOWN 1
#define LEARNED 24     /* of so many in a loop */
#define STORED 8       /* cycles of a w, of which the first trips take two */
#define FIRST_TRIPS 7
#define SOONER 2
#define DECODING 3     /* cycles more of a d */
#define FLUSHING 50    /* cycles that an f takes when it has left the core */
#define HERTZ 3.7e9

static struct shared area;
struct shared *shared = &area;
sigjmp_buf fault_return;
volatile sig_atomic_t fault_armed;
struct fault fault;

static double away, jitter, own, hiccup, cold, evicted, entering, states, entries, uneven, chained, stored, width, rate = 1, step = 1, slower = 1, from, until, period, wander, cycles;
static int counts, within;
static unsigned moves; /* until it is on a CPU without a neighbour */

const uint8_t arch_reference[] = {'a'};
const size_t arch_reference_bytes = 1;
const uint8_t arch_canary[] = {'n', 'n', 'n', 'n', 'n', 'n', 'n', 'n'};
const size_t arch_canary_bytes = 8;

/* --- time -------------------------------------------------------------------------------------- */

static double seconds_now(void)
{
    return cycles / HERTZ;
}

/* Ticks per cycle, for a frequency that changes every millisecond. */
static double ticks_per_cycle(void)
{
    return rate * (1 + wander * sin(floor(seconds_now() * 1000)));
}

static int disturbed(void)
{
    double phase = period ? fmod(seconds_now(), period) / period : seconds_now();
    return !(moves && shared->disturbed >= moves) && phase >= from && phase < until;
}

/* By how much what fills the front end is slower now: by the whole, or unevenly, and the chain a little too. What
 * comes back with a period may keep pace with what is measured: a neighbour does not. */
static double share(double chain)
{
    uint32_t drawn = (uint32_t)(seconds_now() * 1e6 * uneven) * 2654435761u;
    drawn = (drawn ^ drawn >> 15) * 2246822519u;
    double part = uneven ? fabs(sin(drawn >> 16)) : 1;
    return disturbed() ? 1 + (slower - 1) * part * chain : 1;
}

static double ticks;
static void pass(double more)
{
    cycles += more;
    ticks += more * ticks_per_cycle();
}

static uint32_t state = 1;
static unsigned chance(unsigned below)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % below;
}

uint64_t arch_ticks(void)
{
    pass(20 + chance(3) + chance(1 + (unsigned)jitter) + chance(1 + (unsigned)jitter));
    return (uint64_t)(floor(ticks / step) * step);
}

uint64_t clock_ticks(void)
{
    uint64_t now = arch_ticks();
    pass(away && !chance(16) ? away : 0);
    return now;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    now->tv_sec = (time_t)seconds_now();
    now->tv_nsec = (long)((seconds_now() - (double)now->tv_sec) * 1e9);
    return 0;
}

/* --- code --------------------------------------------------------------------------------------- */

uint8_t *arch_emit_counter(uint8_t *p, uint32_t trips)
{
    *p = 'T';
    memcpy(p + 1, &trips, 4);
    return p + 5;
}

uint8_t *arch_emit_align(uint8_t *p)
{
    while ((uintptr_t)p & 63)
        *p++ = 'n';
    return p;
}

uint8_t *arch_emit_idle(uint8_t *p, size_t bytes)
{
    memset(p, 'n', bytes);
    return p + bytes;
}

void arch_emit_jump(uint8_t *p, const uint8_t *target)
{
    uint32_t distance = (uint32_t)(target - p);
    *p = 'J';
    memcpy(p + 1, &distance, 4);
}

uint8_t *arch_emit_drain(uint8_t *p)
{
    *p = 'D';
    return p + 1;
}

int arch_marks_are_free(void)
{
    return within;
}

uint8_t *arch_emit_mark(uint8_t *p, int resumes, const int32_t *indices, unsigned count)
{
    if (indices[0] != CLOCK_INDEX || count != 1)
        exit(2);
    *p = resumes ? 'B' : 'E';
    return p + 1;
}

uint8_t *arch_emit_loop_end(uint8_t *p, const uint8_t *start)
{
    uint32_t distance = (uint32_t)(p - start);
    *p = 'L';
    memcpy(p + 1, &distance, 4);
    return p + 5;
}

uint8_t *arch_emit_exit(uint8_t *p)
{
    *p = 'X';
    return p + 1;
}

static double trip_of(const uint8_t *start, const uint8_t *end)
{
    double slots = (double)(end - start) + 1, alus = 0, chain = 0, memory = 0, updates = 0;
    for (const uint8_t *p = start; p < end; p++) {
        alus += *p == 'c';
        chain += *p == 'a';
        memory += *p == 'm' ? FORWARDING : 0;
        memory += *p == 'w' ? STORED : 0;
        updates += *p == 'u';
    }
    memory += updates * (updates > LEARNED ? UPDATE : KNOWN);
    double front = slots / width > alus / ALUS ? slots / width : alus / ALUS;
    if (slots < SHORT_LOOP)
        front = ceil(front) + (double)(((uintptr_t)start % PAGE_BYTES / 4 + (uintptr_t)(end - start) * 7) % 6);
    return fmax(front * share(1), chain * share(chained) + memory * share(stored));
}

/* What the first trips take less. */
static double sooner(const uint8_t *start, const uint8_t *end, uint32_t trips)
{
    double less = 0;
    for (const uint8_t *p = start; p < end; p++)
        less += *p == 'w' ? SOONER : 0;
    return less * (trips < FIRST_TRIPS ? trips : FIRST_TRIPS);
}

/* What the first trip takes longer. */
static double decoding(const uint8_t *start, const uint8_t *end, uint32_t trips)
{
    static const uint8_t *kept;
    static uint32_t most;
    double slow = 0;
    for (const uint8_t *p = start; p < end; p++)
        slow += *p == 'd' ? DECODING : 0;
    if (slow == 0 || start == kept)
        return 0;
    if (trips > most)
        kept = start, most = trips;
    return slow;
}

static const uint8_t *next_of(const uint8_t *p)
{
    int32_t distance;
    memcpy(&distance, p + 1, 4);
    return p + (*p == 'T' ? 5 : *p == 'J' ? distance : 1);
}

/* The end of the loop that code leads to, or the way out. */
static const uint8_t *end_of(const uint8_t *p, uint32_t *trips)
{
    for (; *p != 'X' && *p != 'L' && *p != 'E'; p = next_of(p))
        if (*p == 'T')
            memcpy(trips, p + 1, 4);
    return p;
}

/* How much slower a loop is by the way into it, at random as it seems, or by each time it is entered. */
static double state_of(const uint8_t *code, const uint8_t *start, const uint8_t *end)
{
    uint32_t way = (uint32_t)((uintptr_t)code / 64) * 2654435761u;
    int other = entries ? chance(100) < entries : way >> 31;
    return memchr(start, 's', (size_t)(end - start)) && other ? states : 1;
}

/* What loops have flushed is over. */
static double flushing;
static void drain(void)
{
    pass(flushing);
    flushing = 0;
}

/* Before its loop. */
static int begins_with_mark(const uint8_t *code)
{
    while (*code == 'n' || *code == 'T' || *code == 'J')
        code = next_of(code);
    return *code == 'B';
}

static void run(const uint8_t *code)
{
    uint32_t trips = 1, distance;
    const uint8_t *p = end_of(code, &trips);
    pass(ENTRY + chance(40) / 20);
    if (begins_with_mark(code))
        MARKS->start[0] = arch_ticks();
    if (*p == 'L') {
        memcpy(&distance, p + 1, 4);
        double trip = trip_of(p - distance, p) * state_of(code, p - distance, p);
        pass(trips * trip + decoding(p - distance, p, trips) - sooner(p - distance, p, trips) + chance(4));
        for (const uint8_t *at = p - distance; at < p; at++)
            flushing += *at == 'f' ? FLUSHING * trips : 0;
        p += 5;
    }
    if (*p == 'D') {
        drain();
        p++;
    }
    if (*p == 'E')
        MARKS->end[0] = arch_ticks();
}

static const uint8_t *last; /* the end of the kernel's loop that ran last, which is entered faster again */
static unsigned kernels;

void arch_call(const struct state *state, const void *code)
{
    uint32_t trips;
    const uint8_t *end = end_of(code, &trips);
    (void)state;
    if (end != last)
        pass(cold);
    last = end;
    kernels++;
    pass(chance(1 + (unsigned)own));
    run(code);
}

/* What other code takes longer after a kernel. */
static double evicted_by_kernel(const uint8_t *code)
{
    static const uint8_t *known[8];
    static unsigned since[8];
    unsigned i = 0;
    while (*code == 'T' || *code == 'J') /* the same code, with whatever number of trips */
        code = next_of(code);
    while (known[i] && known[i] != code)
        i++;
    int other = since[i] != kernels;
    known[i] = code;
    since[i] = kernels;
    return other && chance(2) ? evicted : 0;
}

void arch_call_plain(const void *code)
{
    static unsigned number;
    uint32_t trips = 1;
    int is_long = end_of(code, &trips)[-1] == 'a' && trips > 1; /* what takes longer is interrupted more often */
    pass(evicted_by_kernel(code) + (is_long ? entering : 0));
    run(code);
    pass(is_long && number++ % 5 == 0 ? hiccup : 0);
    last = NULL;
}

/* --- nothing of interest ---------------------------------------------------------------------- */

uint32_t arch_exceptions(void)
{
    return 0;
}

void arch_recover(void)
{
}

static unsigned beats; /* signs of life */

void fault_beat(void)
{
    beats++;
}

void memory_fill(const struct state *state)
{
    (void)state;
}

int counters_usable(void)
{
    return counts;
}

unsigned counters_count(void)
{
    return 0;
}

void counters_read(uint64_t *values)
{
    (void)values;
}

/* --- what is asked ------------------------------------------------------------------------------ */

static double option(const char *name, double otherwise)
{
    const char *text = getenv(name);
    return text ? atof(text) : otherwise;
}

static void set_up(void)
{
    away = option("AWAY", 0), jitter = option("JITTER", 0), own = option("OWN", 0), cold = option("COLD", 100), evicted = option("EVICTED", 0), entering = option("ENTERING", 0), states = option("STATES", 1), entries = option("ENTRIES", 0), hiccup = option("HICCUP", 0);
    width = option("WIDTH", 8), slower = option("SLOWER", 1), uneven = option("UNEVEN", 0), chained = option("CHAINED", 0), stored = option("STORED", 0), wander = option("WANDER", 0);
    from = option("FROM", 0), until = option("UNTIL", INFINITY), period = option("PERIOD", 0);
    state = (uint32_t)option("SEED", 1);
    within = option("WITHIN", 0) != 0, counts = option("COUNTERS", 1) != 0, moves = (unsigned)option("MOVES", 0);
    if (!counts)
        rate = 0.7, step = 26;
    rate = option("RATE", rate), step = option("STEP", step);
    void *code = mmap((void *)CODE_BASE, CODE_SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    void *marks = mmap((void *)MARKS_BASE, MARKS_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (code == MAP_FAILED || marks == MAP_FAILED)
        exit(2);
}

static struct kernel *kernel_of(const char *body, unsigned flags)
{
    size_t length = strlen(body);
    struct kernel *made = calloc(1, sizeof *made + length);
    made->flags = (uint16_t)flags;
    made->instructions = made->body = (uint16_t)length;
    memcpy(made + 1, body, length);
    return made;
}

/* Of so many looks at a loop of nothing, how many find it undisturbed: without a neighbour, and beside it. */
static int look_at_loops(unsigned looks)
{
    unsigned clear[2] = {0, 0}, all[2] = {0, 0};
    loops_calibrate();
    for (unsigned i = 0; i < looks; i++) {
        int before = disturbed(), found = loops_undisturbed();
        if (before == disturbed()) {
            all[before]++;
            clear[before] += found != 0;
        }
    }
    printf("%g %g\n", (double)clear[0] / (all[0] + !all[0]), (double)clear[1] / (all[1] + !all[1]));
    return 0;
}

/* fake_core ROUNDS WANT TARGET (BODY FLAGS)...: a line per calibration and per sample. */
int main(int argc, char **argv)
{
    static struct state state;
    static struct result results[1024];
    static const struct kernel *kernels[64];
    struct calibrate first = {400, 0, option("NOP", 0)};
    struct calibration found;
    uint32_t count = 0;
    set_up();
    for (int i = 4; i + 1 < argc; i += 2)
        kernels[count++] = kernel_of(argv[i], (unsigned)atoi(argv[i + 1]));
    calibrate(&first, &found);
    printf("%g %g %g %g %g\n", found.ticks_per_cycle, found.nop, found.clean_share, shared->loop_end,
           found.canary);
    if (option("LOOPS", 0))
        return look_at_loops((unsigned)option("LOOPS", 0));
    struct measure request = {(uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2]), 300, 1, atof(argv[3])};
    double began = seconds_now();
    for (uint32_t first = 0; first < count * request.rounds; first += count)
        measure_all(&request, kernels, &state, count, results, first);
    for (uint32_t i = 0; i < count * request.rounds; i++) {
        struct result *r = &results[i];
        printf("%u %u %.6f %u %u %u %u %u %u %.6f\n", i / request.rounds, r->status, r->cycles, r->accepted,
               r->rejected, r->disturbed, r->short_units, r->long_units, r->trips, r->other);
    }
    printf("%g %u %u\n", seconds_now() - began, shared->disturbed, beats);
    return 0;
}
