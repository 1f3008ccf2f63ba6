/* counters.c on a kernel that plays its part: `fits` events count at once, `opens` can be opened. */
#define _GNU_SOURCE
#include "worker.h"
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct shared area;
struct shared *shared = &area;
static struct perf_event_mmap_page pages[COUNTERS_MAX];
static uint64_t raw[COUNTERS_MAX];
static unsigned fits, opens, opened, closed;
static int readable = 1;

static void schedule(int running)
{
    for (unsigned i = 0; i < COUNTERS_MAX; i++)
        pages[i].index = running && i < opened ? i + 1 : 0;
}

long __wrap_syscall(long number, ...)
{
    if (opened >= opens) {
        errno = ENOENT;
        return -1;
    }
    return 100 + opened++;
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    pages[fd - 100].cap_user_rdpmc = readable;
    schedule(opened <= fits); /* one too many stops the group */
    return &pages[fd - 100];
}

int __wrap_munmap(void *at, size_t size)
{
    return 0;
}

int __wrap_close(int fd)
{
    opened--;
    closed++;
    return 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
    schedule(opened <= fits);
    return 0;
}

uint64_t arch_read_counter(uint32_t index)
{
    return raw[index];
}

uint64_t arch_ticks(void)
{
    return 42;
}

/* fake_kernel OPENS FITS READABLE WANTED [raw offset width lost] */
int main(int argc, char **argv)
{
    struct setup setup = {.counters = (uint32_t)atoi(argv[4])};
    opens = (unsigned)atoi(argv[1]), fits = (unsigned)atoi(argv[2]), readable = atoi(argv[3]);
    area.calibration.ticks_per_cycle = 7;
    area.calibrated_at = 7;
    counters_open(&setup);
    printf("%u %d %u %g %u\n", area.counters_open, area.counter_error, counters_count(),
           area.calibration.ticks_per_cycle, closed);
    if (argc > 5) {
        raw[0] = strtoull(argv[5], NULL, 0);
        pages[0].offset = strtoll(argv[6], NULL, 0);
        pages[0].pmc_width = (uint16_t)atoi(argv[7]);
        if (atoi(argv[8]))
            pages[0].index = 0;
    }
    printf("%llu\n", (unsigned long long)clock_ticks());
    return 0;
}
