/* cyclescope-runner: executes the kernels it is sent and says how long they took.
 *
 * This process, the supervisor, reads requests and answers them; kernels run in its workers.
 */
#define _GNU_SOURCE
#include "supervisor.h"
#include "worker.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STATES 1024
#define BATCH_MAX 65536
#define ROUNDS_MAX 1000
#define LEAVES 160

static struct state *states;

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

static struct cpuid_leaf own_leaf(void)
{
    const struct cpuid_leaf leaf = {.leaf = RUNNER_LEAF,
                                    .ebx = ARCH_ISA,
                                    .eax = (emulated() ? RUNNER_EMULATED : 0u) |
                                           (arch_counts_cycles() ? RUNNER_COUNTS_CYCLES : 0u)};
    return leaf;
}

static void say_hello(void)
{
    static struct {
        struct hello hello;
        struct cpuid_leaf leaves[LEAVES];
    } answer;
    struct hello *h = &answer.hello;
    h->version = PROTOCOL_VERSION;
    h->isa = ARCH_ISA;
    h->leaves = supervise_leaves(answer.leaves, LEAVES - 1);
    answer.leaves[h->leaves++] = own_leaf();
    h->page = (uint32_t)getpagesize();
    h->code_base = CODE_BASE, h->code_size = CODE_SIZE;
    h->data_base = DATA_BASE, h->data_size = DATA_SIZE;
    h->stack_base = STACK_BASE, h->stack_size = STACK_SIZE;
    h->xcr0 = arch_xcr0();
    reply(FRAME_HELLO, h->leaves, &answer, sizeof *h + h->leaves * sizeof(struct cpuid_leaf));
}

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

static void set_state(const uint8_t *payload, size_t bytes)
{
    uint32_t index;
    if (bytes != 8 + sizeof(struct state))
        return;
    memcpy(&index, payload, 4);
    if (index < STATES)
        memcpy(&states[index], payload + 8, sizeof(struct state));
}

static size_t read_text(int file, char *text, size_t room)
{
    size_t got = 0;
    for (ssize_t n = 1; n > 0 && got < room; got += n > 0 ? (size_t)n : 0)
        n = read(file, text + got, room - got);
    close(file);
    return got;
}

static size_t read_names(DIR *folder, char *text, size_t room)
{
    size_t got = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name);
        if (entry->d_name[0] == '.' || got + length + 1 > room)
            continue;
        memcpy(text + got, entry->d_name, length);
        text[got + length] = '\n';
        got += length + 1;
    }
    closedir(folder);
    return got;
}

/* What /proc and /sys of this machine say. */
static void send_file(const uint8_t *path, size_t bytes)
{
    static char text[65536];
    char name[256] = "";
    if (bytes < sizeof name)
        memcpy(name, path, bytes);
    DIR *folder = opendir(name);
    int file = folder ? -1 : open(name, O_RDONLY | O_CLOEXEC);
    size_t got = folder ? read_names(folder, text, sizeof text)
                 : file >= 0 ? read_text(file, text, sizeof text) : 0;
    reply(FRAME_READ, folder || file >= 0, text, got);
}

static void do_setup(const struct setup *request)
{
    struct setup_reply answer;
    supervise_setup(request, &answer);
    reply(FRAME_SETUP, 1, &answer, sizeof answer);
}

static void do_calibrate(const struct calibrate *request)
{
    struct calibration answer;
    if (supervise_calibration(request, &answer))
        reply_error("the clock cannot be calibrated");
    else
        reply(FRAME_CALIBRATE, 1, &answer, sizeof answer);
}

/* A batch whose answer has `record` bytes per kernel. */
static void do_batch(uint32_t type, void (*supervise)(const struct batch *), const void *request,
                     uint32_t count, size_t record)
{
    size_t bytes = record * count;
    if (bytes > UINT32_MAX) {
        reply_error("an answer longer than a frame");
        return;
    }
    void *results = shared_memory(bytes ? bytes : 1);
    const struct batch batch = {kernel_list, states, count, request, results};
    supervise(&batch);
    reply(type, count, results, bytes);
    munmap(results, bytes ? bytes : 1);
}

static void do_measure(const struct measure *request, uint32_t count)
{
    if (request->rounds == 0 || request->rounds > ROUNDS_MAX)
        reply_error("too many rounds, or none");
    else
        do_batch(FRAME_MEASURE, supervise_measure, request, count,
                 sizeof(struct result) * request->rounds);
}

static void do_bursts(const struct bursts *request, uint32_t count)
{
    if (request->measurements == 0 || request->measurements > MEASUREMENTS_MAX || request->unroll == 0)
        reply_error("too many measurements, or none");
    else
        do_batch(FRAME_BURSTS, supervise_bursts, request, count, burst_bytes(request));
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
    case FRAME_BLOCKS:
        return sizeof(struct blocks);
    case FRAME_BURSTS:
        return sizeof(struct bursts);
    default:
        return 0;
    }
}

static int has_kernels(uint32_t type)
{
    return type == FRAME_MEASURE || type == FRAME_PROBE || type == FRAME_DIFFER || type == FRAME_BLOCKS ||
           type == FRAME_BURSTS;
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
        do_calibrate((const struct calibrate *)payload);
        break;
    case FRAME_STATE:
        set_state(payload, frame->length);
        break;
    case FRAME_MEASURE:
        do_measure((const struct measure *)payload, frame->count);
        break;
    case FRAME_PROBE:
        do_batch(FRAME_PROBE, supervise_probe, payload, frame->count, sizeof(struct probe_result));
        break;
    case FRAME_DIFFER:
        do_batch(FRAME_DIFFER, supervise_differ, payload, frame->count, sizeof(struct differ_result));
        break;
    case FRAME_BLOCKS:
        do_batch(FRAME_BLOCKS, supervise_blocks, payload, frame->count, sizeof(struct block_result));
        break;
    case FRAME_BURSTS:
        do_bursts((const struct bursts *)payload, frame->count);
        break;
    case FRAME_READ:
        send_file(payload, frame->length);
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

/* Whoever started us may ignore or block what the supervisor and its workers wait for. */
static void usual_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("cyclescope-runner protocol %u\n", PROTOCOL_VERSION);
        return 0;
    }
    usual_signals();
    fcntl(0, F_SETPIPE_SZ, 1 << 20);
    fcntl(1, F_SETPIPE_SZ, 1 << 20);
    shared = shared_memory(sizeof *shared);
    states = calloc(STATES, sizeof *states); /* what workers write there is theirs alone */
    if (!states)
        fail("out of memory");
    arch_init();
    if (memory_map())
        fail("cannot map code, data and stack at their fixed addresses");
    if (argc > 2 && strcmp(argv[1], "--meet") == 0 && memory_meet(atoi(argv[2])))
        fail("cannot map the memory where kernels meet");
    serve();
    return 0;
}
