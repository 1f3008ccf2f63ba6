/* The supervisor's side of a batch: start workers, watch them, record what killed them. */
#define _GNU_SOURCE
#include "supervisor.h"
#include "filter.h"
#include "worker.h"
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef STALL_SECONDS
#define STALL_SECONDS 8
#endif
/* A calibration runs no code of others, which might hang: beside busy programs, with a slow clock or under an
 * emulator, it takes as long as it takes. */
#define CLOCK_STALL_SECONDS (8 * STALL_SECONDS)
#define LISTENER_SECONDS 0.1 /* between two looks whether anybody still listens */

#define CLOCK_SECONDS 0.5 /* that a calibration is used for, in which the frequency may change */
#define CLOCK_SAMPLES 120
#define CALIBRATIONS 3 /* tried until one makes sense */
#define LOOKS 8        /* at CPUs until there is a base, and as many until one is quiet: 5 ms each */
#define QUIET_SHARE 0.9 /* of its canaries */

struct shared *shared;

static struct setup setup = {.cpu = -1};

/* What is known of the clock, from workers that have run no measured code. */
static struct {
    struct calibration calibration;
    double calibrated_at;
    uint32_t scale, counters_open, canary_trips;
    double known_nop, grain, moment, entry, loop_end;
} clock_kept;

void fail(const char *text)
{
    fprintf(stderr, "cyclescope-runner: %s\n", text);
    exit(2);
}

/* Where the kernels run is disturbed for long: on with another CPU. */
static void move(pid_t worker)
{
    cpu_set_t set;
    if (setup.cpu < 0 || !setup.movable)
        return;
    setup.cpu = cpu_next(setup.cpu);
    CPU_ZERO(&set);
    CPU_SET(setup.cpu, &set);
    sched_setaffinity(worker, sizeof set, &set);
}

static void start_worker(const struct task *task, pid_t supervisor)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor) /* it died before we asked to follow it */
        _exit(0);
    cpu_pin(setup.cpu);
    limits_close_files();
    counters_open(&setup);
    if (task->prepare)
        task->prepare();
    faults_install();
    limits_set();
    shared->filter_error = filter_install();
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Whoever sent the request may be gone, killed perhaps: then the batch is for nobody. */
static void end_if_alone(pid_t worker)
{
    struct pollfd output = {STDOUT_FILENO, 0, 0};
    if (poll(&output, 1, 0) == 1 && output.revents & (POLLERR | POLLHUP)) /* a pipe, a socket */ {
        kill(worker, SIGKILL);
        exit(0);
    }
}

/* Wait for a worker; kill it when nothing has moved for too long. Returns its wait status. Items are
 * finished one after the other: a worker that says anything else has not moved. */
static int await(pid_t worker, uint32_t first, uint32_t items)
{
    uint32_t seen = first, disturbed = shared->disturbed;
    double patience = items ? STALL_SECONDS : CLOCK_STALL_SECONDS;
    double since = now(), looked = since;
    const struct timespec pause = {0, 200000};
    for (int status;;) {
        if (waitpid(worker, &status, WNOHANG) == worker)
            return status;
        double time = now();
        uint32_t progress = shared->progress;
        if (progress > seen && progress <= items) {
            seen = progress;
            since = time;
        } else if (time - since > patience) {
            kill(worker, SIGKILL);
        }
        if (shared->disturbed != disturbed) {
            disturbed = shared->disturbed;
            move(worker);
        }
        if (time - looked > LISTENER_SECONDS) {
            end_if_alone(worker);
            looked = time;
        }
        nanosleep(&pause, NULL);
    }
}

/* What a worker finds, whatever the one before it has left. */
static void hand_over(uint32_t first)
{
    memset(shared, 0, sizeof *shared);
    shared->progress = shared->active = first;
    shared->calibration = clock_kept.calibration;
    shared->calibrated_at = clock_kept.calibrated_at;
    shared->scale = clock_kept.scale;
    shared->counters_open = clock_kept.counters_open;
    shared->canary_trips = clock_kept.canary_trips;
    shared->known_nop = clock_kept.known_nop;
    shared->grain = clock_kept.grain;
    shared->moment = clock_kept.moment;
    shared->entry = clock_kept.entry;
    shared->loop_end = clock_kept.loop_end;
}

int64_t run_in_worker(const struct task *task, const struct batch *batch, uint32_t first,
                      uint32_t items, uint32_t *detail)
{
    hand_over(first);
    memory_renew();
    pid_t supervisor = getpid(), worker = fork();
    if (worker < 0)
        fail("cannot start a worker process");
    if (worker == 0) {
        start_worker(task, supervisor);
        task->function(batch, first);
        _exit(0);
    }
    int status = await(worker, first, items);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && shared->progress >= items)
        return -1;
    *detail = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status)
                                  : DIED_BY_EXIT + (uint32_t)WEXITSTATUS(status);
    uint32_t item = shared->active;
    return item >= first && item < items ? item : first;
}

/* The time-stamp counter cannot be. */
int counters_taken_away(uint32_t detail)
{
    if (!setup.counters || detail != DIED_BY_EXIT + EXIT_COUNTERS_LOST)
        return 0;
    setup.counters = 0;
    return 1;
}

/* The same from an item on, with as many workers as it takes. */
static void run_all(const struct task *task, const struct batch *batch, uint32_t first, uint32_t items)
{
    while (first < items) {
        uint32_t detail = 0;
        int64_t item = run_in_worker(task, batch, first, items, &detail);
        if (item < 0)
            return;
        if (counters_taken_away(detail)) {
            first = (uint32_t)item;
            continue;
        }
        task->died(batch, (uint32_t)item, detail);
        first = (uint32_t)item + 1;
    }
}

/* --- the clock ---------------------------------------------------------------------------------- */

static void nothing(const struct batch *batch, uint32_t first)
{
    (void)batch, (void)first;
}

static void calibrate_work(const struct batch *batch, uint32_t first)
{
    struct calibration unused;
    (void)first;
    calibrate(batch->request, &unused);
}

static void keep_clock(void)
{
    clock_kept.calibration = shared->calibration;
    clock_kept.calibrated_at = shared->calibrated_at;
    clock_kept.scale = shared->scale;
    clock_kept.counters_open = shared->counters_open;
    clock_kept.canary_trips = shared->canary_trips;
    clock_kept.known_nop = shared->known_nop;
    clock_kept.grain = shared->grain;
    clock_kept.moment = shared->moment;
    clock_kept.entry = shared->entry;
    clock_kept.loop_end = shared->loop_end;
}

static int calibrate_once(const struct calibrate *request)
{
    static const struct task task = {.function = calibrate_work};
    const struct batch batch = {.request = request};
    for (;;) {
        uint32_t detail;
        if (run_in_worker(&task, &batch, 0, 0, &detail) < 0)
            return records_clock(&shared->calibration) ? 0 : -1;
        if (!counters_taken_away(detail))
            return -1;
    }
}

/* The share of clean canaries on a CPU; less than 0 where the clock cannot be calibrated there. */
static double looked_at(int cpu, double known)
{
    const struct calibrate request = {CLOCK_SAMPLES, 0, known};
    setup.cpu = cpu;
    if (calibrate_once(&request))
        return -1;
    keep_clock();
    return clock_kept.calibration.clean_share;
}

/* Beside a neighbour that takes its half, a core looks like one of half the width, and what is measured there like
 * what such a core takes: some CPUs are looked at before there is a base, and the first quiet one is taken. */
static void look_around(double known)
{
    int home = setup.cpu, best = home, cpu = home;
    double most = -1;
    for (int look = 0; look < LOOKS && !(known > 0); look++, cpu = cpu_next(cpu))
        looked_at(cpu, known);
    cpu = home;
    for (int look = 0; look < LOOKS && most < QUIET_SHARE && (cpu != home || !look); look++, cpu = cpu_next(cpu)) {
        double share = looked_at(cpu, known);
        best = share > most ? cpu : best;
        most = share > most ? share : most;
    }
    setup.cpu = best;
}

int supervise_calibration(const struct calibrate *request, struct calibration *answer)
{
    if (clock_kept.calibration.step == 0 && setup.cpu >= 0 && setup.movable && cpu_next(setup.cpu) != setup.cpu)
        look_around(request->nop);
    for (int i = 0; i < CALIBRATIONS; i++)
        if (calibrate_once(request) == 0) {
            keep_clock();
            *answer = clock_kept.calibration;
            return 0;
        }
    return -1;
}

/* Workers with measured code cannot be believed what they say of the clock. Without it they look for
 * themselves. */
void refresh_clock(void)
{
    const struct calibrate request = {CLOCK_SAMPLES, 0, 0};
    struct calibration unused;
    if (now() - clock_kept.calibrated_at > CLOCK_SECONDS)
        (void)supervise_calibration(&request, &unused);
}

/* --- batches ------------------------------------------------------------------------------------ */

static void measure_work(const struct batch *b, uint32_t first)
{
    measure_all(b->request, b->kernels, b->states, b->count, b->results, first);
}

static void measure_died(const struct batch *b, uint32_t item, uint32_t detail)
{
    const struct measure *request = b->request;
    uint32_t kernel = measure_order(request, b->count, item);
    struct result *r = (struct result *)b->results + kernel * request->rounds + item / b->count;
    memset(r, 0, sizeof *r);
    r->status = STATUS_DIED;
    r->detail = detail;
    r->instruction = -1;
}

void supervise_measure(const struct batch *batch)
{
    static const struct task task = {measure_work, NULL, measure_died};
    const struct measure *request = batch->request;
    struct result *results = batch->results;
    uint32_t items = batch->count * request->rounds;
    for (uint32_t i = 0; i < items; i++)
        results[i].status = STATUS_NOT_RUN;
    refresh_clock();
    for (uint32_t first = 0; first < items; first += batch->count) /* each round in memory of its own */
        run_all(&task, batch, first, first + batch->count);
    for (uint32_t i = 0; i < items; i++)
        records_check_result(&results[i]);
}

static void probe_work(const struct batch *b, uint32_t first)
{
    struct probe_result *results = b->results;
    for (uint32_t i = first; i < b->count; i++) {
        shared->active = i;
        probe_one(b->kernels[i], &b->states[b->kernels[i]->state], &results[i]);
        shared->progress = i + 1;
    }
}

static void probe_died(const struct batch *b, uint32_t item, uint32_t detail)
{
    struct probe_result *r = (struct probe_result *)b->results + item;
    memset(r, 0, sizeof *r);
    r->status = STATUS_DIED;
    r->detail = detail;
    r->instruction = -1;
}

void supervise_probe(const struct batch *batch)
{
    static const struct task task = {probe_work, NULL, probe_died};
    struct probe_result *results = batch->results;
    for (uint32_t i = 0; i < batch->count; i++)
        results[i].status = STATUS_NOT_RUN;
    run_all(&task, batch, 0, batch->count);
    for (uint32_t i = 0; i < batch->count; i++)
        records_check_probe(&results[i]);
}

static void differ_work(const struct batch *b, uint32_t first)
{
    struct differ_result *results = b->results;
    for (uint32_t i = first; i < b->count; i++) {
        shared->active = i;
        differ_one(b->request, b->kernels[i], &b->states[b->kernels[i]->state], &results[i]);
        shared->progress = i + 1;
    }
}

static void differ_died(const struct batch *b, uint32_t item, uint32_t detail)
{
    struct differ_result *r = (struct differ_result *)b->results + item;
    memset(r, 0, sizeof *r);
    r->status = STATUS_DIED;
    r->detail = detail;
}

void supervise_differ(const struct batch *batch)
{
    static const struct task task = {differ_work, differ_prepare, differ_died};
    struct differ_result *results = batch->results;
    for (uint32_t i = 0; i < batch->count; i++)
        results[i].status = STATUS_NOT_RUN;
    run_all(&task, batch, 0, batch->count);
    for (uint32_t i = 0; i < batch->count; i++)
        records_check_differ(&results[i], batch->request);
}

/* --- setup -------------------------------------------------------------------------------------- */

/* What the CPU of the kernels says: the others may be of another kind. */
uint32_t supervise_leaves(struct cpuid_leaf *out, uint32_t maximum)
{
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    cpu_pin(setup.cpu);
    uint32_t count = arch_leaves(out, maximum);
    sched_setaffinity(0, sizeof before, &before);
    return count;
}

void supervise_setup(const struct setup *request, struct setup_reply *answer)
{
    static const struct task task = {.function = nothing};
    cpu_set_t before;
    uint32_t detail;
    memset(answer, 0, sizeof *answer);
    if (request->cpu != setup.cpu) /* another core, another clock */
        memset(&clock_kept, 0, sizeof clock_kept);
    setup = *request;
    sched_getaffinity(0, sizeof before, &before);
    answer->pin_error = cpu_pin(setup.cpu);
    sched_setaffinity(0, sizeof before, &before);
    if (answer->pin_error)
        setup.cpu = -1;
    answer->cpu = setup.cpu;
    run_in_worker(&task, NULL, 0, 0, &detail);
    keep_clock();
    answer->filter_error = shared->filter_error;
    answer->counter_error = shared->counter_error;
    answer->counters_open = shared->counters_open;
}
