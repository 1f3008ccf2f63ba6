/* Runs batches in workers: whatever a kernel does to its worker, it becomes a record and a fresh
 * worker goes on with the next item. */
#ifndef CYCLESCOPE_SUPERVISOR_H
#define CYCLESCOPE_SUPERVISOR_H

#include "protocol.h"

struct batch {
    const struct kernel *const *kernels;
    const struct state *states;
    uint32_t count;
    const void *request;
    void *results; /* shared with the workers */
};

/* Something for workers to do: `function` in the sandbox, `prepare` before it. */
struct task {
    void (*function)(const struct batch *batch, uint32_t first);
    void (*prepare)(void);
    void (*died)(const struct batch *batch, uint32_t item, uint32_t detail);
};

void fail(const char *text); /* say why on standard error, and end */

/* Do the items of a batch from `first` on in one worker. Returns -1 when done, else the item that
 * killed the worker, with `detail` set to the signal or exit status. */
int64_t run_in_worker(const struct task *task, const struct batch *batch, uint32_t first, uint32_t items,
                      uint32_t *detail);
int counters_taken_away(uint32_t detail); /* whether the worker died of that: then go on without */
void refresh_clock(void);

uint32_t supervise_leaves(struct cpuid_leaf *out, uint32_t maximum);
void supervise_setup(const struct setup *request, struct setup_reply *answer);
int supervise_calibration(const struct calibrate *request, struct calibration *answer); /* or -1 */
void supervise_measure(const struct batch *batch);
void supervise_probe(const struct batch *batch);
void supervise_differ(const struct batch *batch);

/* cpus.c */
int cpu_pin(int cpu);  /* this process; errno, or 0. Less than 0 is any CPU */
int cpu_next(int cpu); /* the next that this program may use, of the same kind, or the same one */

/* attempts.c */
void supervise_blocks(const struct batch *batch);
void supervise_bursts(const struct batch *batch);

/* records.c: what a worker wrote, made into the record of a worker that died where it makes no sense. */
int records_clock(const struct calibration *c); /* whether it makes sense */
void records_check_result(struct result *r);
void records_check_block(struct block_result *r);
void records_check_burst(struct burst_result *r, uint32_t measurements);
void records_check_probe(struct probe_result *r);
void records_check_differ(struct differ_result *r, const struct differ *request);

#endif
