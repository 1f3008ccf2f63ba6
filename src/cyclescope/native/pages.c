/* The pages that a basic block touches.
 *
 * Nobody says where a block's pointers lead. So it is run until it faults, by a worker that may not map
 * memory: the fault ends this run, and the next worker has one page more before measured code runs in it.
 * Every page is memory of its own: several addresses of one line are slow where the first-level cache
 * predicts its ways by linear addresses.
 */
#define _GNU_SOURCE
#include "worker.h"
#include <sys/mman.h>
#include <unistd.h>

#define LOWEST 0x10000ul /* below, Linux maps nothing for user space */
#define HIGHEST 0x7ffffffff000ul
#define STRIDE 7 /* neighbouring words point to different places */

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static uint64_t pages[PAGES_MAX], refused;
static unsigned count;

static uint64_t page_bytes(void)
{
    static uint64_t bytes;
    if (!bytes)
        bytes = (uint64_t)getpagesize();
    return bytes;
}

void pages_forget(void)
{
    count = 0;
}

unsigned pages_count(void)
{
    return count;
}

enum page pages_add(uint64_t address, unsigned most)
{
    uint64_t page = address & ~(page_bytes() - 1);
    if (page < LOWEST || page >= HIGHEST)
        return PAGE_IMPOSSIBLE;
    for (unsigned i = 0; i < count; i++)
        if (pages[i] == page) /* what faults although it is mapped, or cannot be */
            return PAGE_IMPOSSIBLE;
    if (count >= most || count >= PAGES_MAX)
        return PAGE_TOO_MANY;
    pages[count++] = page;
    return PAGE_ADDED;
}

static void map_page(uint64_t page)
{
    void *wanted = (void *)page;
    void *got = mmap(wanted, page_bytes(), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != wanted)
        refused = page;
}

void pages_map(void)
{
    for (unsigned i = 0; i < count; i++)
        map_page(pages[i]);
}

uint64_t pages_refused(void)
{
    return refused;
}

void pages_fill(void)
{
    for (unsigned i = 0; i < count; i++) {
        volatile uint64_t *word = (uint64_t *)pages[i];
        for (unsigned j = 0; j < page_bytes() / sizeof *word; j++)
            word[j] = PLACES_BASE + (j * STRIDE + i) % PLACES * PLACE_STEP;
    }
}
