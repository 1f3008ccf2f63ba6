/* Ports that write one result in a cycle: what would write a second one waits. */
#include "run.h"

/* Whether a port can write the result of an operation that starts now; then it will. */
int takes_result(struct run *r, int32_t port, int32_t after)
{
    r->results[port] = results_of(r, port);
    r->written_from[port] = r->now;
    if (after > 0 && after < RESULTS && r->results[port] >> after & 1)
        return 0;
    if (after == BROUGHT || after == 1) {
        if (r->short_at[port] == r->now + 1)
            return 0;
        r->short_at[port] = r->now + 1;
    }
    if (after <= 0 || after >= RESULTS)
        return 1;
    r->results[port] |= 1ull << after;
    return 1;
}

/* The oldest first. One whose result would come with another one lets younger ones start
 * before it, for some cycles. */
void issue_writing(struct run *r, int32_t port, int32_t queue)
{
    struct heap *heap = &r->core->heaps[queue];
    uint64_t aside[RESULTS];
    int32_t waiting = 0;
    while (heap->count && waiting < RESULTS && r->busy_at[port] < (r->now + 1) * ONE) {
        uint64_t key = heap->keys[0];
        int64_t slot = slot_of(key);
        struct pending *op = &operations_of(r, slot)[key & 255];
        int32_t after = r->p->body[r->instances[slot].index].form->operation[key & 255].result;
        if (r->core->patience < 0 || takes_result(r, port, after)) {
            r->ready--;
            start(r, heap_pop(heap), port);
            continue;
        }
        r->active = 1;
        if (op->refused >= r->core->patience)
            break;
        op->refused++;
        aside[waiting++] = heap_pop(heap);
    }
    while (waiting)
        if (heap_push(heap, aside[--waiting]))
            r->failed = FAILED_MEMORY;
}

/* When a port writes, from now on. */
uint64_t results_of(const struct run *r, int32_t port)
{
    int64_t gone = r->now - r->written_from[port];
    return gone < RESULTS ? r->results[port] >> gone : 0;
}
