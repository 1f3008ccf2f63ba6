/* cyclescope-runner: executes the kernels it is sent and says how long they took.
 *
 * The supervisor reads requests and forks a worker for each batch; whatever a kernel does to its
 * worker, the supervisor records it and a fresh worker goes on with the next item.
 */
#define _GNU_SOURCE
#include "worker.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STATES 1024
#define BATCH_MAX 65536
#define STALL_SECONDS 8

struct shared *shared;
static struct state *states;
static struct setup setup = {.cpu = -1};

static void fail(const char *text)
{
    fprintf(stderr, "cyclescope-runner: %s\n", text);
    exit(2);
}

static void *shared_memory(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        fail("out of memory");
    return p;
}

static int read_all(void *to, size_t bytes)
{
    uint8_t *p = to;
    while (bytes) {
        ssize_t n = read(0, p, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        p += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static void write_all(const void *from, size_t bytes)
{
    const uint8_t *p = from;
    while (bytes) {
        ssize_t n = write(1, p, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            exit(0); /* nobody listens any more */
        p += n;
        bytes -= (size_t)n;
    }
}

static void reply(uint32_t type, uint32_t count, const void *payload, size_t bytes)
{
    struct frame frame = {PROTOCOL_MAGIC, type, (uint32_t)bytes, count};
    write_all(&frame, sizeof frame);
    write_all(payload, bytes);
}

static void reply_error(const char *text)
{
    reply(FRAME_ERROR, 0, text, strlen(text));
}

static void say_hello(void)
{
    static struct {
        struct hello hello;
        struct cpuid_leaf leaves[160];
    } answer;
    struct hello *h = &answer.hello;
    h->version = PROTOCOL_VERSION;
    h->isa = 1;
    h->leaves = arch_leaves(answer.leaves, 160);
    h->page = (uint32_t)getpagesize();
    h->code_base = CODE_BASE, h->code_size = CODE_SIZE;
    h->data_base = DATA_BASE, h->data_size = DATA_SIZE;
    h->stack_base = STACK_BASE, h->stack_size = STACK_SIZE;
    h->xcr0 = arch_xcr0();
    reply(FRAME_HELLO, h->leaves, &answer, sizeof *h + h->leaves * sizeof(struct cpuid_leaf));
}

static int pin(int cpu)
{
    cpu_set_t set;
    if (cpu < 0)
        return 0;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) ? errno : 0;
}

static void start_worker(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(setup.cpu);
    counters_open(&setup);
    faults_install();
    shared->filter_error = faults_filter_calls();
}

typedef void (*work)(void *context, uint32_t first);

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Wait for a worker; kill it when nothing has moved for too long. Returns its wait status. */
static int await(pid_t worker)
{
    uint32_t seen = shared->progress;
    double since = now();
    const struct timespec pause = {0, 200000};
    for (;;) {
        int status;
        if (waitpid(worker, &status, WNOHANG) == worker)
            return status;
        if (shared->progress != seen) {
            seen = shared->progress;
            since = now();
        } else if (now() - since > STALL_SECONDS) {
            kill(worker, SIGKILL);
        }
        nanosleep(&pause, NULL);
    }
}

/* Run `items` of work in workers. Returns -1 when done, else the item that killed its worker, with
 * `detail` set to the signal or exit status. */
static int64_t run_in_worker(work function, void *context, uint32_t first, uint32_t *detail)
{
    fflush(NULL);
    pid_t worker = fork();
    if (worker < 0)
        fail("cannot fork");
    if (worker == 0) {
        start_worker();
        function(context, first);
        _exit(0);
    }
    int status = await(worker);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return -1;
    *detail = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 1000u + (uint32_t)WEXITSTATUS(status);
    return shared->active;
}

struct batch {
    const struct kernel **kernels;
    uint32_t count;
    const void *request;
    void *results;
};

static const struct kernel *kernel_list[BATCH_MAX];

/* Points `kernel_list` into a payload. Returns -1 when it does not add up. */
static int parse_kernels(const uint8_t *payload, size_t bytes, uint32_t count)
{
    const uint8_t *p = payload, *end = payload + bytes;
    if (count > BATCH_MAX)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        if ((size_t)(end - p) < sizeof(struct kernel))
            return -1;
        const struct kernel *k = (const struct kernel *)p;
        size_t size = sizeof *k + k->setup + k->body;
        size = (size + 3) & ~(size_t)3;
        if ((size_t)(end - p) < size || k->state >= STATES)
            return -1;
        kernel_list[i] = k;
        p += size;
    }
    return 0;
}

static void measure_work(void *context, uint32_t first)
{
    struct batch *b = context;
    measure_all(b->request, b->kernels, states, b->count, b->results, first);
}

static void do_measure(const struct measure *request, uint32_t count)
{
    size_t bytes = sizeof(struct result) * count * request->rounds;
    struct result *results = shared_memory(bytes ? bytes : 1);
    struct batch batch = {kernel_list, count, request, results};
    for (uint32_t i = 0; i < count * request->rounds; i++)
        results[i].status = STATUS_NOT_RUN;
    uint32_t first = 0, total = count * request->rounds;
    shared->progress = 0;
    while (first < total) {
        uint32_t detail = 0;
        int64_t died = run_in_worker(measure_work, &batch, first, &detail);
        if (died < 0)
            break;
        uint32_t item = (uint32_t)died, k = measure_order(request, count, item);
        struct result *r = &results[k * request->rounds + item / count];
        memset(r, 0, sizeof *r);
        r->status = STATUS_DIED;
        r->detail = detail;
        r->instruction = -1;
        first = item + 1;
    }
    reply(FRAME_MEASURE, count, results, bytes);
    munmap(results, bytes ? bytes : 1);
}

static void probe_work(void *context, uint32_t first)
{
    struct batch *b = context;
    struct probe_result *results = b->results;
    for (uint32_t i = first; i < b->count; i++) {
        shared->active = i;
        probe_one(b->kernels[i], &states[b->kernels[i]->state], &results[i]);
        shared->progress = i + 1;
    }
}

static void differ_work(void *context, uint32_t first)
{
    struct batch *b = context;
    struct differ_result *results = b->results;
    for (uint32_t i = first; i < b->count; i++) {
        shared->active = i;
        differ_one(b->request, b->kernels[i], &states[b->kernels[i]->state], &results[i]);
        shared->progress = i + 1;
    }
}

/* Items in order, each with a record that starts with a status; for PROBE and DIFFER. */
static void do_in_order(uint32_t type, work function, const void *request, uint32_t count,
                        size_t record)
{
    size_t bytes = record * count;
    uint8_t *results = shared_memory(bytes ? bytes : 1);
    struct batch batch = {kernel_list, count, request, results};
    size_t status_at = type == FRAME_PROBE ? offsetof(struct probe_result, status) : 0;
    uint32_t first = 0;
    shared->progress = 0;
    while (first < count) {
        uint32_t detail = 0, died_status[2] = {STATUS_DIED, 0};
        int64_t died = run_in_worker(function, &batch, first, &detail);
        if (died < 0)
            break;
        died_status[1] = detail;
        memcpy(results + record * (uint32_t)died + status_at, died_status, sizeof died_status);
        first = (uint32_t)died + 1;
    }
    reply(type, count, results, bytes);
    munmap(results, bytes ? bytes : 1);
}

static void calibrate_work(void *context, uint32_t first)
{
    struct calibration unused;
    (void)first;
    calibrate(context, &unused);
}

static void do_calibrate(struct calibrate *request)
{
    uint32_t detail;
    shared->progress = 0;
    shared->active = 0;
    if (run_in_worker(calibrate_work, request, 0, &detail) >= 0)
        reply_error("the calibration died");
    else
        reply(FRAME_CALIBRATE, 1, &shared->calibration, sizeof shared->calibration);
}

static void nothing(void *context, uint32_t first)
{
    (void)context, (void)first;
}

static void do_setup(const struct setup *request)
{
    struct setup_reply answer = {-1, 0, 0, 0, 0, 0};
    uint32_t detail;
    setup = *request;
    if (setup.cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(setup.cpu, &set);
        cpu_set_t before;
        sched_getaffinity(0, sizeof before, &before);
        answer.pin_error = sched_setaffinity(0, sizeof set, &set) ? errno : 0;
        sched_setaffinity(0, sizeof before, &before);
    }
    answer.cpu = answer.pin_error ? -1 : setup.cpu;
    if (answer.pin_error)
        setup.cpu = -1;
    run_in_worker(nothing, NULL, 0, &detail);
    answer.filter_error = shared->filter_error;
    answer.counter_error = shared->counter_error;
    answer.counters_open = shared->counters_open;
    reply(FRAME_SETUP, 1, &answer, sizeof answer);
}

static void set_state(const uint8_t *payload, size_t bytes)
{
    uint32_t index;
    if (bytes != 8 + sizeof(struct state))
        return;
    memcpy(&index, payload, 4);
    if (index < STATES)
        memcpy(&states[index], payload + 8, sizeof(struct state));
}

static size_t request_size(uint32_t type)
{
    switch (type) {
    case FRAME_SETUP:
        return sizeof(struct setup);
    case FRAME_CALIBRATE:
        return sizeof(struct calibrate);
    case FRAME_MEASURE:
        return sizeof(struct measure);
    case FRAME_PROBE:
        return sizeof(struct probe_request);
    case FRAME_DIFFER:
        return sizeof(struct differ);
    default:
        return 0;
    }
}

static int has_kernels(uint32_t type)
{
    return type == FRAME_MEASURE || type == FRAME_PROBE || type == FRAME_DIFFER;
}

static void answer(const struct frame *frame, uint8_t *payload)
{
    size_t head = request_size(frame->type);
    if (frame->length < head ||
        (has_kernels(frame->type) &&
         parse_kernels(payload + head, frame->length - head, frame->count))) {
        reply_error("malformed request");
        return;
    }
    switch (frame->type) {
    case FRAME_HELLO:
        say_hello();
        break;
    case FRAME_SETUP:
        do_setup((const struct setup *)payload);
        break;
    case FRAME_CALIBRATE:
        do_calibrate((struct calibrate *)payload);
        break;
    case FRAME_STATE:
        set_state(payload, frame->length);
        break;
    case FRAME_MEASURE:
        do_measure((const struct measure *)payload, frame->count);
        break;
    case FRAME_PROBE:
        do_in_order(FRAME_PROBE, probe_work, payload, frame->count, sizeof(struct probe_result));
        break;
    case FRAME_DIFFER:
        do_in_order(FRAME_DIFFER, differ_work, payload, frame->count, sizeof(struct differ_result));
        break;
    case FRAME_QUIT:
        exit(0);
    default:
        reply_error("unknown request");
    }
}

static void serve(void)
{
    struct frame frame;
    uint8_t *payload = NULL;
    size_t room = 0;
    while (read_all(&frame, sizeof frame) == 0) {
        if (frame.magic != PROTOCOL_MAGIC)
            fail("not a cyclescope frame on standard input");
        if (frame.length > room) {
            free(payload);
            room = frame.length;
            payload = malloc(room);
            if (!payload)
                fail("out of memory");
        }
        if (frame.length && read_all(payload, frame.length))
            break;
        answer(&frame, payload);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("cyclescope-runner protocol %u\n", PROTOCOL_VERSION);
        return 0;
    }
    signal(SIGPIPE, SIG_IGN);
    fcntl(0, F_SETPIPE_SZ, 1 << 20);
    fcntl(1, F_SETPIPE_SZ, 1 << 20);
    shared = shared_memory(sizeof *shared);
    states = shared_memory(sizeof(struct state) * STATES);
    arch_init();
    if (memory_map())
        fail("cannot map code, data and stack at their fixed addresses");
    serve();
    return 0;
}
