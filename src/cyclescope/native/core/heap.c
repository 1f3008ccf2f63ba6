/* Ready operations, oldest first. */
#include "core.h"
#include <stdlib.h>

int heap_push(struct heap *h, uint64_t key)
{
    if (h->count == h->room) {
        int32_t room = h->room ? 2 * h->room : 64;
        uint64_t *keys = realloc(h->keys, (size_t)room * sizeof *keys);
        if (!keys)
            return -1;
        h->keys = keys;
        h->room = room;
    }
    int32_t i = h->count++;
    for (; i && h->keys[(i - 1) / 2] > key; i = (i - 1) / 2)
        h->keys[i] = h->keys[(i - 1) / 2];
    h->keys[i] = key;
    return 0;
}

uint64_t heap_pop(struct heap *h)
{
    uint64_t top = h->keys[0], last = h->keys[--h->count];
    int32_t i = 0, n = h->count;
    for (int32_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && h->keys[child + 1] < h->keys[child];
        if (h->keys[child] >= last)
            break;
        h->keys[i] = h->keys[child];
    }
    h->keys[i] = last;
    return top;
}
