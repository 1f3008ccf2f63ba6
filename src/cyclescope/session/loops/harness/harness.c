/* Times a loop, and counts how often it goes round.
 *
 *   most                             rounds that `run` can do
 *   time N1 N2 SAMPLES NANOSECONDS   per sample the clock's ticks: of `run` with N1 and with N2 rounds as often as
 *                                    the first line says, of two chains of additions, of two runs of NOPs, of two
 *                                    loops of nothing
 *   count OFFSET N                   steps of `run` with N rounds, and how often it is at OFFSET bytes from its start
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

long run(long n);
__attribute__((weak)) void prepare(void);
__attribute__((weak)) extern const long most;
__attribute__((weak)) extern char __bss_start[], _end[]; /* as linkers name them: where data that is 0 lies */
static volatile long sink;

#define CHAIN 500     /* additions in a loop */
#define CHAIN_FEW 2   /* trips */
#define CHAIN_MANY 10
#define NOPS 500
#define NOPS_FEW 8 /* trips: the first ones bring the code, and the end is not foreseen, */
#define NOPS_MANY 80 /* so many that a step of a slow clock is a hundredth */
#define TRIPS_FEW 1000 /* of a loop of nothing, a cycle each at least: as long as the NOPs */
#define TRIPS_MANY 9000
#define QUICKEST 3 /* runs of which the quickest tells how long a number of rounds takes */
#define REPEATED(text, count) ".rept " #count "\n\t" text "\n\t.endr\n\t"
#define TIMES(text, count) REPEATED(text, count)

#if defined __x86_64__
static unsigned long ticks(void)
{
    unsigned low, high;
    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
    return (unsigned long)high << 32 | low;
}
#define ADDITION "add %1, %0"
#define TRIP "1: dec %0\n\tjnz 1b"
#elif defined __aarch64__
static unsigned long ticks(void)
{
    unsigned long t;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(t)::"memory");
    return t;
}
#define ADDITION "add %0, %0, %1"
#define TRIP "1: sub %0, %0, #1\n\tcbnz %0, 1b"
#elif defined __riscv
static unsigned long ticks(void)
{
    unsigned long t;
    __asm__ volatile("fence\n\trdtime %0\n\tfence" : "=r"(t)::"memory");
    return t;
}
#define ADDITION "add %0, %0, %1"
#define TRIP "1: addi %0, %0, -1\n\tbnez %0, 1b"
#else
#error "there is no clock for this instruction set"
#endif

static void chain(int trips)
{
    long value = 1, more = 3;
    while (trips--)
        __asm__ volatile(TIMES(ADDITION, CHAIN) : "+r"(value) : "r"(more));
    sink = value;
}

static void nops(int trips)
{
    while (trips--)
        __asm__ volatile(TIMES("nop", NOPS));
}

/* From the beginning of a line on, so that all of it is in one. */
static void nothing(int trips)
{
    long left = trips;
    __asm__ volatile(".p2align 6\n" TRIP : "+r"(left) : : "cc");
}

/* After a run that does not count: it brings back what others, and what is timed between, have driven out. */
static unsigned long time_runs(long n, long repeats)
{
    sink = run(n);
    unsigned long before = ticks();
    for (long i = 0; i < repeats; i++)
        sink = run(n);
    return ticks() - before;
}

static unsigned long time_of(void (*function)(int), int trips)
{
    unsigned long before = ticks();
    function(trips);
    return ticks() - before;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The quickest of some runs: an interruption makes a few rounds look like many. */
static double nanoseconds_of(long n, long repeats)
{
    double least = 0;
    for (int i = 0; i < QUICKEST; i++) {
        double before = now();
        time_runs(n, repeats);
        double took = now() - before;
        if (i == 0 || took < least)
            least = took;
    }
    return least;
}

/* So many that they take the wanted time. */
static long repeats_of(long n, double nanoseconds)
{
    long repeats = 1;
    while (nanoseconds_of(n, repeats) < nanoseconds / 2 && repeats < 1000000)
        repeats *= 2;
    return 2 * repeats;
}

static int time_samples(long few, long many, int samples, double nanoseconds)
{
    long repeats = repeats_of(many, nanoseconds);
    printf("%ld %d %d %d\n", repeats, CHAIN * (CHAIN_MANY - CHAIN_FEW), NOPS * (NOPS_MANY - NOPS_FEW),
           TRIPS_MANY - TRIPS_FEW);
    for (int i = 0; i < samples; i++) {
        unsigned long a = time_runs(few, repeats), b = time_runs(many, repeats);
        unsigned long low = time_of(chain, CHAIN_FEW), high = time_of(chain, CHAIN_MANY);
        time_of(nops, NOPS_FEW);
        unsigned long short_nops = time_of(nops, NOPS_FEW), long_nops = time_of(nops, NOPS_MANY);
        unsigned long short_trips = time_of(nothing, TRIPS_FEW), long_trips = time_of(nothing, TRIPS_MANY);
        printf("%lu %lu %lu %lu %lu %lu %lu %lu\n", a, b, low, high, short_nops, long_nops, short_trips, long_trips);
    }
    return 0;
}

/* A page of its own for all data. What nobody has written to is one page of zeros everywhere, and caches that guess
 * their ways from addresses take its other addresses for misses: nothing of a program that has data. */
static void own_pages(void)
{
    long size = sysconf(_SC_PAGESIZE);
    for (volatile char *at = __bss_start; at && at < _end; at += size)
        *at = *at;
    if (_end > __bss_start)
        ((volatile char *)_end)[-1] = _end[-1];
}

static unsigned long program_counter(pid_t child)
{
#if defined __x86_64__
    return (unsigned long)ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.rip), NULL);
#elif defined __aarch64__
    struct user_regs_struct registers;
    struct iovec into = {&registers, sizeof registers};
    ptrace(PTRACE_GETREGSET, child, (void *)1, &into); /* NT_PRSTATUS */
    return registers.pc;
#else
    (void)child;
    return 0;
#endif
}

static int count(unsigned long offset, long n)
{
    unsigned long place = (unsigned long)run + offset, steps = 0, found = 0;
    int status;
    pid_t child = fork();
    if (child < 0)
        return 2;
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
            _exit(2);
        raise(SIGSTOP);
        sink = run(n);
        _exit(0);
    }
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        steps++;
        found += program_counter(child) == place;
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL)) {
            kill(child, SIGKILL);
            return 3;
        }
    }
    printf("%lu %lu\n", steps, found);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

int main(int argc, char **argv)
{
    own_pages();
    if (prepare)
        prepare();
    if (argc == 2 && strcmp(argv[1], "most") == 0)
        return printf("%ld\n", &most ? most : 0) < 0;
    if (argc == 6 && strcmp(argv[1], "time") == 0)
        return time_samples(atol(argv[2]), atol(argv[3]), atoi(argv[4]), atof(argv[5]));
    if (argc == 4 && strcmp(argv[1], "count") == 0)
        return count(strtoul(argv[2], NULL, 0), atol(argv[3]));
    return 1;
}
