/* What stands for the runner in another program: memory for the clock's code, its state, a lock. */
#define _GNU_SOURCE
#include "inside.h"
#include <errno.h>
#include <fenv.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_CALIBRATIONS 5 /* the least disturbed says what an undisturbed core is, ... */
#define MOST_CALIBRATIONS 50 /* ... or the first that finds one, of some ms each */

static struct shared own;
struct shared *shared = &own;
uint8_t *clock_code;
sigjmp_buf fault_return;
volatile sig_atomic_t fault_armed;
struct fault fault;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fenv_t environment; /* of who has the lock */
static struct setup events = {.cpu = -1, .counters = 1, .events = {{PERF_TYPE_HARDWARE, 0, PERF_COUNT_HW_CPU_CYCLES}}};
static char event_names[COUNTERS_MAX][NAME_MOST];
static char uncounted[PROBLEM_MOST];
static int lost;
static long owner; /* the thread that counters are of */

/* The clock's code leaves the floating-point environment as C begins with, which is not the program's. */
void inside_lock(void)
{
    pthread_mutex_lock(&lock);
    fegetenv(&environment);
}

void inside_unlock(void)
{
    fesetenv(&environment);
    pthread_mutex_unlock(&lock);
}

/* Signals are the program's own. */
void on_signal(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info, (void)context;
    abort();
}

void counters_lost(void)
{
    lost = 1;
}

int inside_lost(void)
{
    return lost;
}

static long thread(void)
{
    return syscall(SYS_gettid);
}

int inside_foreign(void)
{
    return counters_usable() && owner != thread();
}

int inside_emulated(void)
{
    static int known, found;
    if (!known)
        found = emulated();
    known = 1;
    return found;
}

long inside_switches(void)
{
    struct rusage used;
    return getrusage(RUSAGE_THREAD, &used) ? 0 : used.ru_nvcsw + used.ru_nivcsw;
}

static int map_code(void)
{
    const int all = PROT_READ | PROT_WRITE | PROT_EXEC;
    void *area = mmap(NULL, CLOCK_CODE_BYTES, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED)
        return inside_fail("this system gives no memory for the clock's code (writable and executable)");
    clock_code = area;
    return 0;
}

static const char *why_uncounted(int error)
{
    if (error == EACCES || error == EPERM)
        return "the kernel forbids it (kernel.perf_event_paranoid)";
    if (error == ENOENT || error == ENODEV || error == EOPNOTSUPP)
        return "this machine offers no such counter to programs (`cyclescope counters list` says what it does)";
    return strerror(error);
}

static void open_events(void)
{
    if (events.counters < 2)
        return;
    counters_open(&events);
    owner = thread();
    if (counters_count() + 1u < events.counters)
        snprintf(uncounted, sizeof uncounted, "%s: %s", event_names[counters_count()],
                 why_uncounted(shared->counter_error));
}

static int start(void)
{
    if (map_code())
        return -1;
    arch_init();
    open_events();
    for (int i = 0; i < FIRST_CALIBRATIONS || (i < MOST_CALIBRATIONS && own.calibration.nop == 0); i++) {
        own.calibrated_at = 0;
        clock_prepare();
    }
    return 0;
}

int inside_prepare(void)
{
    if (!clock_code)
        return start();
    if (inside_seconds() - own.calibrated_at > REFRESH_SECONDS)
        clock_prepare();
    return 0;
}

/* --- events -------------------------------------------------------------------------------------- */

static const char *const general[] = {
    [PERF_COUNT_HW_CPU_CYCLES] = "cycles",
    [PERF_COUNT_HW_INSTRUCTIONS] = "instructions",
    [PERF_COUNT_HW_CACHE_REFERENCES] = "cache-references",
    [PERF_COUNT_HW_CACHE_MISSES] = "cache-misses",
    [PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = "branches",
    [PERF_COUNT_HW_BRANCH_MISSES] = "branch-misses",
};

/* NAME, or NAME=TYPE:CONFIG in decimal and hexadecimal. Returns whether it is one. */
static int read_event(const char *text, struct counter_event *event, char *name)
{
    unsigned type;
    unsigned long long config;
    int end = 0;
    if (sscanf(text, "%63[^=]=%u:%llx%n", name, &type, &config, &end) == 3 && !text[end]) {
        *event = (struct counter_event){type, 0, config};
        return 1;
    }
    for (unsigned i = 0; i < sizeof general / sizeof *general; i++)
        if (strcmp(text, general[i]) == 0) {
            *event = (struct counter_event){PERF_TYPE_HARDWARE, 0, i};
            strcpy(name, text);
            return 1;
        }
    return 0;
}

static int read_events(char *text)
{
    char *rest;
    unsigned n = 1;
    for (char *one = strtok_r(text, ",", &rest); one; one = strtok_r(NULL, ",", &rest), n++) {
        if (n == COUNTERS_MAX)
            return inside_fail("more than 9 events");
        if (!read_event(one, &events.events[n], event_names[n - 1]))
            return inside_fail("an event is neither NAME=TYPE:CONFIG nor a general one: cycles, instructions, "
                               "cache-references, cache-misses, branches, branch-misses");
    }
    events.counters = (uint16_t)n;
    return 0;
}

EXPORT int cyclescope_count(const char *text)
{
    char copy[1024];
    if (clock_code)
        return inside_fail("events are named before the first region begins");
    if (!text || strlen(text) >= sizeof copy)
        return inside_fail("no list of events, or a longer one than 1023 bytes");
    strcpy(copy, text);
    events.counters = 1;
    return read_events(copy);
}

const char *inside_event(unsigned number)
{
    return event_names[number];
}

const char *inside_uncounted(void)
{
    return uncounted;
}
