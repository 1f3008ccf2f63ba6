/* The clock and the event counters: perf_event counters read with RDPMC where the kernel allows,
 * else the time-stamp counter. */
#define _GNU_SOURCE
#include "worker.h"
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct perf_event_mmap_page *pages[COUNTERS_MAX];
static uint32_t indices[COUNTERS_MAX];
static unsigned open_count;

static int open_event(const struct counter_event *event, int group)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = event->type;
    attr.config = event->config;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    attr.pinned = group < 0;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, group, 0);
}

/* Opens what it can, in order; an event that cannot be read with RDPMC ends the list. */
void counters_open(const struct setup *setup)
{
    int group = -1;
    open_count = 0;
    shared->counter_error = 0;
    for (uint32_t i = 0; i < setup->counters && i < COUNTERS_MAX; i++) {
        int fd = open_event(&setup->events[i], group);
        if (fd < 0) {
            shared->counter_error = errno;
            break;
        }
        void *page = mmap(NULL, (size_t)getpagesize(), PROT_READ, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED) {
            shared->counter_error = errno;
            break;
        }
        pages[i] = page;
        if (!pages[i]->cap_user_rdpmc || !pages[i]->index) {
            shared->counter_error = EOPNOTSUPP;
            break;
        }
        indices[i] = pages[i]->index - 1;
        group = group < 0 ? fd : group;
        open_count = i + 1;
    }
    shared->counters_open = open_count;
}

int counters_usable(void)
{
    return open_count > 0;
}

unsigned counters_count(void)
{
    return open_count ? open_count - 1 : 0;
}

static uint64_t read_one(unsigned i)
{
    unsigned width = pages[i]->pmc_width ? pages[i]->pmc_width : 48;
    uint64_t value = arch_read_counter(indices[i]) + (uint64_t)pages[i]->offset;
    return width < 64 ? value & ((1ull << width) - 1) : value;
}

uint64_t clock_ticks(void)
{
    return open_count ? read_one(0) : arch_ticks();
}

void counters_read(uint64_t *values)
{
    for (unsigned i = 1; i < open_count; i++)
        values[i - 1] = read_one(i);
}
