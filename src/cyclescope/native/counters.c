/* The clock and the event counters: perf_event counters read with RDPMC where the kernel allows,
 * else the time-stamp counter. */
#define _GNU_SOURCE
#include "worker.h"
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct counter {
    int fd;
    const volatile struct perf_event_mmap_page *page;
};
static struct counter counters[COUNTERS_MAX];
static unsigned open_count;

static int open_event(const struct counter_event *event, int group)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = event->type;
    attr.config = event->config;
    attr.config1 = EVENT_CONFIG1;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    attr.pinned = group < 0;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, group, 0);
}

static void close_counter(struct counter *c)
{
    if (c->page)
        munmap((void *)c->page, (size_t)getpagesize());
    if (c->fd >= 0)
        close(c->fd);
    *c = (struct counter){-1, NULL};
}

/* Returns errno, or 0. */
static int open_counter(struct counter *c, const struct counter_event *event, int group)
{
    c->fd = open_event(event, group);
    if (c->fd < 0)
        return errno;
    void *page = mmap(NULL, (size_t)getpagesize(), PROT_READ, MAP_SHARED, c->fd, 0);
    if (page == MAP_FAILED)
        return errno;
    c->page = page;
    return c->page->cap_user_rdpmc && c->page->index ? 0 : EOPNOTSUPP;
}

/* An event too many stops the whole group: without it, start the others again. */
static int revive(void)
{
    if (!open_count)
        return 0;
    ioctl(counters[0].fd, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
    for (unsigned i = 0; i < open_count; i++)
        if (!counters[i].page->index)
            return EBUSY;
    return 0;
}

static void close_all(void)
{
    while (open_count)
        close_counter(&counters[--open_count]);
}

/* Opens what it can, in order; an event that cannot be read with RDPMC ends the list. Without the
 * first, the core cycles, there are none. */
void counters_open(const struct setup *setup)
{
    int had_counters = shared->counters_open > 0;
    shared->counter_error = 0;
    for (uint32_t i = 0; i < setup->counters && i < COUNTERS_MAX; i++) {
        counters[i] = (struct counter){-1, NULL};
        int error = open_counter(&counters[i], &setup->events[i], i ? counters[0].fd : -1);
        if (error) {
            close_counter(&counters[i]);
            shared->counter_error = error;
            break;
        }
        open_count = i + 1;
    }
    if (revive())
        close_all();
    shared->counters_open = open_count;
    if (had_counters != (open_count > 0)) { /* what was calibrated was another clock */
        memset(&shared->calibration, 0, sizeof shared->calibration);
        shared->calibrated_at = 0;
    }
}

int counters_usable(void)
{
    return open_count > 0;
}

unsigned counters_count(void)
{
    return open_count ? open_count - 1 : 0;
}

/* As linux/perf_event.h says: the page may change while it is read, and says so. */
static uint64_t read_one(unsigned i)
{
    const volatile struct perf_event_mmap_page *page = counters[i].page;
    for (;;) {
        uint32_t sequence = page->lock, index = page->index, width = page->pmc_width;
        __asm__ volatile("" ::: "memory");
        uint64_t offset = (uint64_t)page->offset;
        if (index) {
            unsigned unused = width && width < 64 ? 64 - width : 0;
            offset += (uint64_t)((int64_t)(arch_read_counter(index - 1) << unused) >> unused);
        }
        __asm__ volatile("" ::: "memory");
        if (page->lock != sequence)
            continue;
        if (!index)
            counters_lost();
        return offset;
    }
}

unsigned counters_indices(int32_t indices[COUNTERS_MAX])
{
    indices[0] = CLOCK_INDEX;
    for (unsigned i = 0; i < open_count; i++) {
        indices[i] = (int32_t)counters[i].page->index - 1;
        if (indices[i] == CLOCK_INDEX) /* it counts no more */
            counters_lost();
    }
    return open_count ? open_count : 1;
}

uint32_t counters_changes(void)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < open_count; i++)
        sum += counters[i].page->lock;
    return sum;
}

int64_t counters_signed(unsigned i, uint64_t difference)
{
    unsigned width = open_count ? counters[i].page->pmc_width : 64;
    unsigned unused = width && width < 64 ? 64 - width : 0;
    return (int64_t)(difference << unused) >> unused;
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
