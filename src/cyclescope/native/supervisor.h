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
int supervise_calibration(const struct calibrate *request); /* -1: it died */
void supervise_measure(const struct batch *batch);
void supervise_probe(const struct batch *batch);
void supervise_differ(const struct batch *batch);

/* runner.c: say why on standard error, and end. */
void fail(const char *text);

#endif
