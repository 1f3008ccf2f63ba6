/* The interface: machines and templates as lists of numbers. */
#include "core.h"
#include <stdlib.h>
#include <string.h>

#define CONFIGURATION 18 /* numbers ahead of the queues */
#define HEAD 9          /* numbers ahead of a template's latencies */

/* width, entries, loads, stores, in order, policy, ports, queues, announcing ports, clusters, single ports, writing
 * ports, their patience, whether it is looked ahead, rotating ports, by how many instructions ages are blurred, losing
 * ports, leading ones, then ports and entries per queue, then ports per cluster. Only where ports are chosen at issue
 * are there announcing ports, which are no writing ones, clusters, blurred ages, losing and leading ports, and single
 * and rotating ones only where they are chosen at dispatch. */
EXPORT struct core *core_new(const int64_t *words, int32_t count)
{
    if (count < CONFIGURATION || words[6] < 1 || words[6] > PORTS || words[7] < 0 ||
        words[7] > QUEUES || words[9] < 0 || words[9] > CLUSTERS ||
        count != CONFIGURATION + 2 * words[7] + words[9] || words[0] < 1 || words[1] < 1)
        return NULL;
    struct core *core = calloc(1, sizeof *core);
    if (!core)
        return NULL;
    core->width = words[0];
    core->entries = (int32_t)words[1];
    core->loads = (int32_t)words[2];
    core->stores = (int32_t)words[3];
    core->in_order = (int32_t)words[4];
    core->policy = (int32_t)words[5];
    core->ports = (int32_t)words[6];
    core->queues = (int32_t)words[7];
    core->announcing = core->policy == IDEAL ? (uint64_t)words[8] : 0;
    core->clusters = core->policy == IDEAL ? (int32_t)words[9] : 0;
    core->single = (uint64_t)words[10];
    core->writing = (uint64_t)words[11] & ~core->announcing;
    core->patience = (int32_t)words[12];
    core->ahead = words[13] != 0;
    core->rotating = core->policy == IDEAL ? 0 : (uint64_t)words[14];
    core->blur = core->policy == IDEAL ? (int32_t)words[15] : 0;
    core->losing = core->policy == IDEAL && !core->in_order ? (uint64_t)words[16] & ~core->writing : 0;
    core->leading = core->clusters ? (uint64_t)words[17] : 0;
    for (int32_t n = 0; n < core->clusters; n++)
        core->cluster[n] = (uint64_t)words[CONFIGURATION + 2 * core->queues + n];
    for (int32_t q = 0; q < core->queues; q++) {
        core->queue_ports[q] = (uint64_t)words[CONFIGURATION + 2 * q];
        core->queue_entries[q] = (int32_t)words[CONFIGURATION + 2 * q + 1];
    }
    return core;
}

static void free_template(struct template *t)
{
    if (!t)
        return;
    for (int32_t o = 0; t->operation && o < t->operations; o++)
        free(t->operation[o].after);
    free(t->operation);
    free(t->base);
    free(t->latency);
    free(t);
}

EXPORT void core_free(struct core *core)
{
    if (!core)
        return;
    for (int32_t i = 0; i < core->template_count; i++)
        free_template(core->templates[i]);
    for (int32_t i = 0; i < MOST_OPERATIONS; i++)
        free(core->heaps[i].keys);
    free(core->templates);
    free(core->memory);
    free(core);
}

static int32_t *copied(const int64_t **words, int32_t count)
{
    int32_t *copy = malloc(((size_t)count + 1) * sizeof *copy);
    for (int32_t i = 0; copy && i < count; i++)
        copy[i] = (int32_t)(*words)[i];
    *words += count;
    return copy;
}

/* Targets that a cycle of an operation makes, of what it waits for, a load perhaps: there is nothing else. */
static uint32_t announced(const struct template *t, const struct operation *op)
{
    uint32_t found = op->early || op->slack || op->cycles > ONE ? 0 : op->feeds;
    for (int32_t target = 0; target < t->targets; target++) {
        int later = t->base[target] > ONE;
        for (int32_t s = 0; s < t->sources; s++) {
            int32_t latency = t->latency[s * t->targets + target];
            later |= latency != NEVER && latency != ONE + (op->after[s] == NEVER ? 0 : op->after[s]);
        }
        if (later)
            found &= ~(1u << target);
    }
    return found;
}

static int read_operations(struct template *t, const int64_t *words)
{
    t->operation = calloc((size_t)t->operations + 1, sizeof *t->operation);
    for (int32_t o = 0; t->operation && o < t->operations; o++) {
        struct operation *op = &t->operation[o];
        op->ports = (uint64_t)words[0];
        op->cycles = (int32_t)words[1];
        op->feeds = (uint32_t)words[2];
        op->early = words[3] != 0;
        t->early += op->early;
        op->slack = (int32_t)words[4];
        op->result = (int32_t)words[5];
        words += 6;
        op->after = copied(&words, t->sources);
        if (!op->after)
            return -1;
        op->announced = announced(t, op);
    }
    return t->operation ? 0 : -1;
}

static int has_legal_head(const int64_t *words, int32_t count)
{
    if (count < HEAD || words[5] < 0 || words[5] > UINT8_MAX || words[6] < 0 || words[7] < 0)
        return 0;
    if (words[2] < 1 || words[6] > MOST_TARGETS || words[7] > MOST_OPERATIONS)
        return 0;
    return count == HEAD + words[6] + words[5] * words[6] + words[7] * (6 + words[5]);
}

static struct template *read_template(const int64_t *words)
{
    struct template *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->slots = (int32_t)words[0];
    t->flags = (int32_t)words[1];
    t->entries = (int32_t)words[2];
    t->loads = (int32_t)words[3];
    t->stores = (int32_t)words[4];
    t->sources = (int32_t)words[5];
    t->targets = (int32_t)words[6];
    t->operations = (int32_t)words[7];
    t->needed = (int32_t)words[8];
    words += HEAD;
    t->base = copied(&words, t->targets);
    t->latency = copied(&words, t->sources * t->targets);
    if (t->base && t->latency && !read_operations(t, words))
        return t;
    free_template(t);
    return NULL;
}

/* slots, flags, entries, loads, stores, sources, targets, operations, slots needed; base per target; latency per
 * source and target; per operation its ports, cycles, targets fed, whether it is early, its slack,
 * when its result comes, and what it waits for per source. Returns the template's number or an error. */
EXPORT int32_t core_template(struct core *core, const int64_t *words, int32_t count)
{
    if (!has_legal_head(words, count))
        return FAILED_INPUT;
    if (core->template_count == core->template_room) {
        int32_t room = core->template_room ? 2 * core->template_room : 256;
        struct template **more = realloc(core->templates, (size_t)room * sizeof *more);
        if (!more)
            return FAILED_MEMORY;
        core->templates = more;
        core->template_room = room;
    }
    struct template *t = read_template(words);
    if (!t)
        return FAILED_MEMORY;
    core->templates[core->template_count] = t;
    return core->template_count++;
}

/* Words of the body: per instruction its template, the locations of its sources, those of its targets.
 * A negative location is the access -1 - location of `memory` (address and bytes each). Stops at the
 * steady state, or after `limit` instructions. With `trace`, runs its iterations to the end. */
EXPORT int32_t core_run(struct core *core, const int32_t *words, int32_t count, const int64_t *memory,
                        int32_t accesses, int64_t limit, struct outcome *out, struct trace *trace)
{
    struct program p;
    memset(out, 0, sizeof *out);
    int status = program_build(&p, core, words, count, memory, accesses);
    if (!status)
        status = core_simulate(core, &p, limit, out, trace);
    program_free(&p);
    return status;
}
