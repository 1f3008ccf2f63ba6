/* Shared between the parts of the runner. */
#ifndef CYCLESCOPE_WORKER_H
#define CYCLESCOPE_WORKER_H

#include "arch.h"
#include "protocol.h"
#include <setjmp.h>

/* Memory both the supervisor and its workers see. */
struct shared {
    volatile uint32_t progress; /* items finished by the current worker */
    volatile uint32_t active;   /* item being worked on */
    int32_t filter_error, counter_error;
    uint32_t counters_open;
    struct calibration calibration;
    double calibrated_at; /* CLOCK_MONOTONIC seconds */
    uint32_t scale;       /* of the loops that the clock is calibrated with */
};
extern struct shared *shared;

/* emulation.c */
int emulated(void);

/* memory.c */
int memory_map(void);
void memory_fill(const struct state *state);
#define CODE ((uint8_t *)CODE_BASE)

/* faults.c: a fault in a kernel comes back through `fault_return`. */
struct fault {
    int signal; /* SIGALRM for a hang */
    uint64_t address, pc;
};
extern sigjmp_buf fault_return;
extern volatile sig_atomic_t fault_armed;
extern struct fault fault;
void faults_install(void);
int faults_filter_calls(void); /* errno, or 0 */

/* counters.c */
#define EXIT_COUNTERS_LOST 98 /* of a worker whose clock the kernel took away */
void counters_open(const struct setup *setup);
int counters_usable(void);     /* core cycles can be read from user space */
unsigned counters_count(void); /* events open beside the cycles */
uint64_t clock_ticks(void);
void counters_read(uint64_t *values);

/* clock.c: the code area is cut into regions for kernels and one for the clock's own loops. */
#define REGIONS 8
#define REGION_BYTES (CODE_SIZE / (REGIONS + 1) & ~63ul)
#define MAX_SAMPLES 2048
void calibrate(const struct calibrate *request, struct calibration *out);
void clock_prepare(void);
void clock_follow(void);    /* follow a frequency that changes; now and then, between kernels */
int core_undisturbed(void); /* run a canary */
double low_cluster(const double *v, unsigned n, unsigned *members, double *width);

/* sampling.c */
void measure_all(const struct measure *request, const struct kernel *const *kernels,
                 const struct state *states, uint32_t count, struct result *results,
                 uint32_t first);
uint32_t measure_order(const struct measure *request, uint32_t count, uint32_t item);

/* probe.c */
void probe_one(const struct kernel *kernel, const struct state *state, struct probe_result *out);

/* differ.c */
void differ_one(const struct differ *request, const struct kernel *kernel,
                const struct state *state, struct differ_result *out);

#endif
