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

uint32_t supervise_leaves(struct cpuid_leaf *out, uint32_t maximum);
void supervise_setup(const struct setup *request, struct setup_reply *answer);
int supervise_calibration(const struct calibrate *request, struct calibration *answer); /* or -1 */
void supervise_measure(const struct batch *batch);
void supervise_probe(const struct batch *batch);
void supervise_differ(const struct batch *batch);

/* records.c: what a worker wrote, made into the record of a worker that died where it makes no sense. */
int records_clock(const struct calibration *c); /* whether it makes sense */
void records_check_result(struct result *r);
void records_check_probe(struct probe_result *r);
void records_check_differ(struct differ_result *r, const struct differ *request);

/* runner.c: say why on standard error, and end. */
void fail(const char *text);

#endif
