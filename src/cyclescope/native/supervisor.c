/* The supervisor's side of a batch: start workers, watch them, record what killed them. */
#define _GNU_SOURCE
#include "supervisor.h"
#include "worker.h"
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STALL_SECONDS 8
#define LISTENER_SECONDS 0.1 /* between two looks whether anybody still listens */
#define DIED_BY_EXIT 1000u   /* added to an exit status, which is no signal */

typedef void (*work)(const struct batch *batch, uint32_t first);

static struct setup setup = {.cpu = -1};

/* Returns errno, or 0. */
static int pin(int cpu)
{
    cpu_set_t set;
    if (cpu < 0)
        return 0;
    if (cpu >= CPU_SETSIZE)
        return EINVAL;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) ? errno : 0;
}

static void start_worker(pid_t supervisor)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor) /* it died before we asked to follow it */
        _exit(0);
    pin(setup.cpu);
    counters_open(&setup);
    faults_install();
    shared->filter_error = faults_filter_calls();
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

/* Wait for a worker; kill it when nothing has moved for too long. Returns its wait status. */
static int await(pid_t worker)
{
    uint32_t seen = shared->progress;
    double since = now(), looked = since;
    const struct timespec pause = {0, 200000};
    for (int status;;) {
        if (waitpid(worker, &status, WNOHANG) == worker)
            return status;
        double time = now();
        if (shared->progress != seen) {
            seen = shared->progress;
            since = time;
        } else if (time - since > STALL_SECONDS) {
            kill(worker, SIGKILL);
        }
        if (time - looked > LISTENER_SECONDS) {
            end_if_alone(worker);
            looked = time;
        }
        nanosleep(&pause, NULL);
    }
}

/* Do a batch from item `first` on in one worker. Returns -1 when done, else the item that killed
 * the worker, with `detail` set to the signal or exit status. */
static int64_t run_in_worker(work function, const struct batch *batch, uint32_t first, uint32_t *detail)
{
    pid_t supervisor = getpid(), worker = fork();
    if (worker < 0)
        fail("cannot start a worker process");
    if (worker == 0) {
        start_worker(supervisor);
        function(batch, first);
        _exit(0);
    }
    int status = await(worker);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return -1;
    *detail = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status)
                                  : DIED_BY_EXIT + (uint32_t)WEXITSTATUS(status);
    return shared->active;
}

/* The same with as many workers as it takes; `died` writes the record of an item that killed one. */
static void run_all(work function, const struct batch *batch, uint32_t items,
                    void (*died)(const struct batch *batch, uint32_t item, uint32_t detail))
{
    shared->progress = 0;
    for (uint32_t first = 0; first < items;) {
        uint32_t detail = 0;
        int64_t item = run_in_worker(function, batch, first, &detail);
        if (item < 0)
            return;
        if (setup.counters && detail == DIED_BY_EXIT + EXIT_COUNTERS_LOST) {
            setup.counters = 0; /* the time-stamp counter cannot be taken away */
            first = (uint32_t)item;
            continue;
        }
        died(batch, (uint32_t)item, detail);
        first = (uint32_t)item + 1;
    }
}

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
    const struct measure *request = batch->request;
    struct result *results = batch->results;
    uint32_t items = batch->count * request->rounds;
    for (uint32_t i = 0; i < items; i++)
        results[i].status = STATUS_NOT_RUN;
    run_all(measure_work, batch, items, measure_died);
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
    r->status = STATUS_DIED;
    r->detail = detail;
    r->instruction = -1;
}

void supervise_probe(const struct batch *batch)
{
    run_all(probe_work, batch, batch->count, probe_died);
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
    r->status = STATUS_DIED;
    r->detail = detail;
}

void supervise_differ(const struct batch *batch)
{
    run_all(differ_work, batch, batch->count, differ_died);
}

static void calibrate_work(const struct batch *batch, uint32_t first)
{
    struct calibration unused;
    (void)first;
    calibrate(batch->request, &unused);
}

int supervise_calibration(const struct calibrate *request)
{
    const struct batch batch = {.request = request};
    for (;;) {
        uint32_t detail;
        shared->progress = shared->active = 0;
        if (run_in_worker(calibrate_work, &batch, 0, &detail) < 0)
            return 0;
        if (detail != DIED_BY_EXIT + EXIT_COUNTERS_LOST || !setup.counters)
            return -1;
        setup.counters = 0;
    }
}

/* What the CPU of the kernels says: the others may be of another kind. */
uint32_t supervise_leaves(struct cpuid_leaf *out, uint32_t maximum)
{
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    pin(setup.cpu);
    uint32_t count = arch_leaves(out, maximum);
    sched_setaffinity(0, sizeof before, &before);
    return count;
}

static void nothing(const struct batch *batch, uint32_t first)
{
    (void)batch, (void)first;
}

void supervise_setup(const struct setup *request, struct setup_reply *answer)
{
    cpu_set_t before;
    uint32_t detail;
    memset(answer, 0, sizeof *answer);
    setup = *request;
    sched_getaffinity(0, sizeof before, &before);
    answer->pin_error = pin(setup.cpu);
    sched_setaffinity(0, sizeof before, &before);
    if (answer->pin_error)
        setup.cpu = -1;
    answer->cpu = setup.cpu;
    run_in_worker(nothing, NULL, 0, &detail);
    answer->filter_error = shared->filter_error;
    answer->counter_error = shared->counter_error;
    answer->counters_open = shared->counters_open;
}
