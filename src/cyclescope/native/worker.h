/* Shared between the parts of the runner. */
#ifndef CYCLESCOPE_WORKER_H
#define CYCLESCOPE_WORKER_H

#include "arch.h"
#include "protocol.h"
#include <setjmp.h>

/* Memory both the supervisor and its workers see. Measured code may have written anything here: the
 * supervisor reads each word once, and keeps its own copy of what outlives a worker. */
struct shared {
    volatile uint32_t progress; /* items finished by the current worker */
    volatile uint32_t active;   /* item being worked on */
    volatile uint32_t disturbed; /* how often a worker has asked for another CPU */
    int32_t filter_error, counter_error;
    uint32_t counters_open;
    struct calibration calibration;
    double calibrated_at; /* CLOCK_MONOTONIC seconds */
    uint32_t scale;       /* of the loops that the clock is calibrated with */
    uint32_t canary_trips;
    double known_nop; /* of the last request that had one */
    double grain;    /* ticks that two times of one code may differ by: a step of the clock, or its scatter */
    double moment;   /* core cycles of the shorter reference chain and its entry; 0: the clock is too coarse */
    double entry;    /* core cycles of entering and leaving the canary, when last undisturbed; 0: never */
    double loop_end; /* core cycles of the end of a loop that fills the front end, per trip */
};
extern struct shared *shared;

/* emulation.c */
int emulated(void);

/* memory.c */
int memory_map(void);
void memory_renew(void);
int memory_meet(int file); /* map what other runners map as well */
void memory_fill(const struct state *state);
#define CODE ((uint8_t *)CODE_BASE)

/* faults.c: a fault in a kernel comes back through `fault_return`. */
struct fault {
    int signal; /* SIGALRM for a hang */
    uint64_t address, pc; /* pc: a byte of the instruction */
};
extern sigjmp_buf fault_return;
extern volatile sig_atomic_t fault_armed;
extern struct fault fault;
void faults_install(void);
/* Where a fault is in so many copies of code that begin at `start`, -1 where it is in none. */
static inline int32_t fault_offset(const uint8_t *start, size_t bytes, size_t copies)
{
    uint64_t at = fault.pc - (uint64_t)start;
    return bytes && at < bytes * copies ? (int32_t)(at % bytes) : -1;
}
void fault_beat(void); /* what takes long is under way: no hang */

/* limits.c */
void limits_close_files(void); /* all */
void limits_set(void);         /* no more files, processes, core files, and no endless stack */

/* Exit statuses of a worker. */
#define EXIT_COUNTERS_LOST 98 /* the kernel took its clock away */
#define EXIT_FAULT 99         /* a fault outside of measured code */

/* counters.c */
void counters_open(const struct setup *setup);
int counters_usable(void);     /* core cycles can be read from user space */
unsigned counters_count(void); /* events open beside the cycles */
uint64_t clock_ticks(void);
void counters_read(uint64_t *values);
/* For reads within code: the indices of the clock and of what is counted; how often the kernel changed what these
 * mean; a difference of two such reads. */
unsigned counters_indices(int32_t indices[COUNTERS_MAX]);
uint32_t counters_changes(void);
int64_t counters_signed(unsigned i, uint64_t difference);
#ifdef CYCLESCOPE_INSIDE /* in another program, which goes on */
void counters_lost(void);
#else
#define counters_lost() _exit(EXIT_COUNTERS_LOST)
#endif

/* clock.c: the code area is cut into regions for kernels and one for the clock's own loops. */
#define REGIONS 8
/* Whole pages and more: the same code at the same place in two regions has the same low address bits. */
#define REGION_BYTES (CODE_SIZE / (REGIONS + 1) & ~0xfffful)
#define MAX_SAMPLES 2048
#define CLOCK_CODE_BYTES 0x50000ul
#ifdef CYCLESCOPE_INSIDE
extern uint8_t *clock_code;
#define CLOCK_CODE clock_code
#else
#define CLOCK_CODE ((uint8_t *)(CODE_BASE + REGIONS * REGION_BYTES))
#endif
#define REFRESH_SECONDS 2.0 /* a calibration is used for so long */
void calibrate(const struct calibrate *request, struct calibration *out);
void clock_prepare(void);
#define RECENT 24 /* runs of the chain that a frequency is followed by, at most */
void clock_follow(unsigned wanted); /* before samples: of a coarse clock so many runs of both chains */
double clock_moment(void); /* ticks per core cycle now, 0 if the clock counts cycles */
void clock_judge(int undisturbed); /* what ran since the last call: no clock where it was disturbed */
int clock_same(double one, double other);
/* Whether code reads the clock itself, behind all that enters it and before all that leaves it: to load registers and to
 * jump there takes some tens of cycles more or less from run to run, of which none is in a time then. */
int clock_within(void);
double clock_beside(double *low, double *high); /* in other code: what says how long a core cycle is */

/* canary.c */
int core_undisturbed(void); /* run a canary */
int core_undisturbed_beside(double ticks_per_cycle); /* in other code */
void loops_calibrate(void);  /* before loops that are watched by a loop of nothing */
int loops_undisturbed(void); /* its trips, each of which is a taken branch, take as long as on an undisturbed core */

/* clusters.c */
double low_cluster(const double *v, unsigned n, unsigned *members, double *width);

/* sampling.c */
void measure_all(const struct measure *request, const struct kernel *const *kernels,
                 const struct state *states, uint32_t count, struct result *results,
                 uint32_t first);
uint32_t measure_order(const struct measure *request, uint32_t count, uint32_t item);

int await_quiet(void);       /* whether it became quiet */
void sample_dither(unsigned i); /* a delay of varying length, so that samples meet every phase of a coarse clock */
unsigned clock_runs(uint32_t want); /* of the clock's chain before so many samples */

/* pages.c: the pages that a block touches. The supervisor keeps the list, workers map them. */
#define PAGES_MAX 512
enum page { PAGE_ADDED, PAGE_IMPOSSIBLE, PAGE_TOO_MANY };
void pages_forget(void);
enum page pages_add(uint64_t address, unsigned most);
unsigned pages_count(void);
void pages_map(void);          /* in a worker, while it may still make system calls */
uint64_t pages_refused(void);  /* the address of one that could not be mapped, or 0 */
void pages_fill(void);         /* with pointers to places */

/* blocks.c */
extern unsigned blocks_halvings; /* how often the usual number of copies is halved */
uint32_t blocks_copies(const struct kernel *kernel, unsigned halvings);
void block_one(const struct blocks *request, const struct kernel *kernel, const struct state *state,
               struct block_result *out);

/* burst.c */
void burst_prepare(void); /* once per worker, while it may still make system calls */
size_t burst_bytes(const struct bursts *request); /* of a result with its runs */
void burst_one(const struct bursts *request, const struct kernel *kernel, const struct state *state,
               struct burst_result *out);

/* probe.c */
void probe_one(const struct kernel *kernel, const struct state *state, struct probe_result *out);

/* differ.c */
void differ_prepare(void); /* once per worker, while it may still make system calls */
void differ_one(const struct differ *request, const struct kernel *kernel,
                const struct state *state, struct differ_result *out);

#endif
