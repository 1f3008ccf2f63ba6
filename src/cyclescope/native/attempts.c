/* Basic blocks: a worker for each, and another one with every page that it turns out to need; bursts of copies:
 * a worker for each, which finds memory that nobody wrote to. */
#define _GNU_SOURCE
#include "supervisor.h"
#include "worker.h"
#include <signal.h>
#include <string.h>

#define FEW_PAGES 6 /* what walks through more than these is not in the first-level cache any more */

static void block_work(const struct batch *b, uint32_t item)
{
    const struct kernel *kernel = b->kernels[item];
    shared->active = item;
    block_one(b->request, kernel, &b->states[kernel->state], (struct block_result *)b->results + item);
    shared->progress = item + 1;
}

static void block_died(const struct batch *b, uint32_t item, uint32_t detail)
{
    struct block_result *r = (struct block_result *)b->results + item;
    memset(r, 0, sizeof *r);
    r->status = STATUS_DIED;
    r->detail = detail;
    r->instruction = -1;
}

/* A block that walks through memory touches fewer pages in fewer copies; one that touches many anyway gets
 * all that it may. Returns whether to begin again, without pages. */
static int fewer_copies(const struct kernel *kernel, int *walks)
{
    if (!*walks)
        return 0;
    *walks = blocks_copies(kernel, blocks_halvings + 1) < blocks_copies(kernel, blocks_halvings);
    blocks_halvings = *walks ? blocks_halvings + 1 : 0;
    pages_forget();
    return 1;
}

/* Whether a block is to be run again, with a page more or with fewer copies. */
static int again(const struct kernel *kernel, const struct blocks *request, struct block_result *r, int *walks)
{
    uint32_t most = request->pages;
    if (r->status != STATUS_SIGNAL || r->detail != SIGSEGV)
        return 0;
    switch (pages_add(r->address, *walks && most > FEW_PAGES ? FEW_PAGES : most)) {
    case PAGE_ADDED:
        return 1;
    case PAGE_IMPOSSIBLE:
        return 0;
    default:
        if (fewer_copies(kernel, walks))
            return 1;
        r->status = STATUS_PAGES;
        r->detail = 0;
        return 0;
    }
}

static void supervise_block(const struct batch *batch, uint32_t item)
{
    static const struct task task = {block_work, pages_map, block_died};
    const struct blocks *request = batch->request;
    struct block_result *r = (struct block_result *)batch->results + item;
    int walks = 1;
    pages_forget();
    blocks_halvings = 0;
    for (;;) {
        uint32_t detail = 0;
        r->status = STATUS_NOT_RUN;
        refresh_clock();
        if (run_in_worker(&task, batch, item, item + 1, &detail) >= 0) {
            if (counters_taken_away(detail))
                continue;
            block_died(batch, item, detail);
        }
        records_check_block(r);
        if (!again(batch->kernels[item], request, r, &walks))
            return;
    }
}

void supervise_blocks(const struct batch *batch)
{
    const struct blocks *request = batch->request;
    const struct measure order = {.rounds = 1, .seed = request->seed};
    struct block_result *results = batch->results;
    for (uint32_t i = 0; i < batch->count; i++)
        results[i].status = STATUS_NOT_RUN;
    for (uint32_t i = 0; i < batch->count; i++)
        supervise_block(batch, measure_order(&order, batch->count, i));
}

/* --- bursts ------------------------------------------------------------------------------------- */

static uint32_t burst_item; /* the kernel that a worker is for: what it finishes are measurements */

static struct burst_result *burst_at(const struct batch *b)
{
    return (struct burst_result *)((uint8_t *)b->results + burst_item * burst_bytes(b->request));
}

static void burst_work(const struct batch *b, uint32_t first)
{
    const struct kernel *kernel = b->kernels[burst_item];
    const struct bursts *request = b->request;
    (void)first;
    burst_one(request, kernel, &b->states[kernel->state], burst_at(b));
    shared->progress = request->measurements;
}

static void burst_died(const struct batch *b, uint32_t item, uint32_t detail)
{
    struct burst_result *r = burst_at(b);
    (void)item;
    memset(r, 0, burst_bytes(b->request));
    r->status = STATUS_DIED;
    r->detail = detail;
    r->instruction = -1;
}

static void supervise_burst(const struct batch *batch)
{
    static const struct task task = {burst_work, burst_prepare, burst_died};
    const struct bursts *request = batch->request;
    uint32_t detail = 0;
    burst_at(batch)->status = STATUS_NOT_RUN;
    refresh_clock();
    if (run_in_worker(&task, batch, 0, request->measurements, &detail) >= 0) {
        if (counters_taken_away(detail))
            supervise_burst(batch); /* once: there are none now */
        else
            burst_died(batch, 0, detail);
    }
    records_check_burst(burst_at(batch), request->measurements);
}

void supervise_bursts(const struct batch *batch)
{
    for (burst_item = 0; burst_item < batch->count; burst_item++)
        supervise_burst(batch);
}
