/* Memory of one call, given back all at once. */
#include "bounds.h"
#include <stdlib.h>

#define ROOM 32768   /* bytes that are got at once, for whatever is small */
#define ALIGNMENT 16 /* bytes */

struct chunk {
    struct chunk *next;
    size_t room, used;
    size_t padding;
};

static struct chunk *chunk_of(struct arena *a, size_t bytes)
{
    size_t room = bytes > ROOM ? bytes : ROOM;
    struct chunk *chunk = malloc(sizeof *chunk + room);
    if (!chunk)
        return NULL;
    *chunk = (struct chunk){a->chunks, room, 0, 0};
    a->chunks = chunk;
    return chunk;
}

void *take(struct arena *a, size_t count, size_t size)
{
    if (count > MOST_BYTES / size) {
        a->failed = 1;
        return NULL;
    }
    size_t bytes = (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct chunk *chunk = a->chunks;
    if (!chunk || bytes > chunk->room - chunk->used)
        chunk = chunk_of(a, bytes);
    if (!chunk) {
        a->failed = 1;
        return NULL;
    }
    void *found = (char *)(chunk + 1) + chunk->used;
    chunk->used += bytes;
    return found;
}

void release(struct arena *a)
{
    for (struct chunk *next; a->chunks; a->chunks = next) {
        next = a->chunks->next;
        free(a->chunks);
    }
}
