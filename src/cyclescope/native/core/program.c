/* A loop body with its dependencies: who computes what each instruction reads. */
#include "core.h"
#include <stdlib.h>
#include <string.h>

struct reader {
    const int32_t *sources, *targets; /* locations of an instruction */
};

static void *array(int32_t count, size_t size)
{
    return calloc((size_t)count + 1, size);
}

void program_free(struct program *p)
{
    free(p->body);
    free(p->links);
    free(p->classes);
    free(p->masks);
    free(p->ports);
    free(p->within);
    free(p->cluster);
    free(p->parted);
}

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int add_link(struct program *p, struct instruction *i, struct link link, int32_t *room)
{
    if (p->link_count == *room) {
        struct link *more = realloc(p->links, 2 * (size_t)*room * sizeof *more);
        if (!more)
            return FAILED_MEMORY;
        p->links = more;
        *room *= 2;
    }
    p->links[p->link_count++] = link;
    p->body[link.producer].lives += !(p->body[link.producer].live >> link.target & 1);
    p->body[link.producer].live |= 1u << link.target;
    i->links++;
    return 0;
}

/* Splits the words into instructions. */
static int read_body(struct program *p, const struct core *core, const int32_t *words, int32_t count,
                     struct reader *readers, int32_t accesses)
{
    for (int32_t at = 0; at < count;) {
        int32_t number = words[at++];
        if (number < 0 || number >= core->template_count)
            return FAILED_INPUT;
        const struct template *t = core->templates[number];
        if (t->sources + t->targets > count - at)
            return FAILED_INPUT;
        for (int32_t i = 0; i < t->sources + t->targets; i++)
            if (words[at + i] < -accesses)
                return FAILED_INPUT;
        readers[p->count] = (struct reader){words + at, words + at + t->sources};
        p->body[p->count++] = (struct instruction){t, t->targets > 0, t->targets > 0, 0, 0, p->operations};
        p->operations += t->operations;
        p->most_sources = larger(p->most_sources, t->sources);
        p->most_targets = larger(p->most_targets, t->targets);
        p->most_operations = larger(p->most_operations, t->operations);
        at += t->sources + t->targets;
    }
    return p->count ? 0 : FAILED_INPUT;
}

/* The instruction and target that wrote each location last. */
struct writer {
    int32_t instruction, target;
};

static void note_writes(const struct program *p, const struct reader *readers, int32_t i,
                        struct writer *last)
{
    for (int32_t t = 0; t < p->body[i].form->targets; t++)
        if (readers[i].targets[t] >= 0)
            last[readers[i].targets[t]] = (struct writer){i, t};
}

static int overlap(const int64_t *a, const int64_t *b)
{
    return a[0] < b[0] + b[1] && b[0] < a[0] + a[1];
}

static int covers(const int64_t *outer, const int64_t *inner)
{
    return outer[0] <= inner[0] && inner[0] + inner[1] <= outer[0] + outer[1];
}

/* Stores that the load of source `s` reads: backwards through the loop to one that covers it. */
static int link_memory(struct program *p, const struct reader *readers, int32_t i, int32_t s,
                       const int64_t *memory, int32_t *room)
{
    const int64_t *load = memory + 2 * (-1 - readers[i].sources[s]);
    for (int32_t back = 1; back <= p->count; back++) {
        int32_t j = i - back, distance = j < 0;
        j += distance ? p->count : 0;
        for (int32_t t = 0; t < p->body[j].form->targets; t++) {
            int32_t where = readers[j].targets[t];
            const int64_t *store = memory + 2 * (-1 - (where < 0 ? where : -1));
            if (where >= 0 || !overlap(store, load))
                continue;
            int status = add_link(p, &p->body[i], (struct link){s, j, t, distance}, room);
            if (status || covers(store, load))
                return status;
        }
    }
    return 0;
}

static int link_instruction(struct program *p, const struct reader *readers, int32_t i,
                            const struct writer *last, const int64_t *memory, int32_t *room)
{
    struct instruction *ins = &p->body[i];
    ins->first_link = p->link_count;
    for (int32_t s = 0; s < ins->form->sources; s++) {
        int32_t where = readers[i].sources[s];
        int status = 0;
        if (where < 0)
            status = link_memory(p, readers, i, s, memory, room);
        else if (last[where].instruction >= 0) {
            struct link link = {s, last[where].instruction, last[where].target, 0};
            link.distance = link.producer >= i;
            status = add_link(p, ins, link, room);
        }
        if (status)
            return status;
    }
    p->most_links = larger(p->most_links, ins->links);
    return 0;
}

/* Links of a loop: what an instruction reads before it is written comes from the iteration before. */
static int link_all(struct program *p, const struct reader *readers, int32_t locations,
                    const int64_t *memory)
{
    struct writer *last = array(locations, sizeof *last);
    int32_t room = 4 * p->count + 16;
    p->links = malloc((size_t)room * sizeof *p->links);
    int status = last && p->links ? 0 : FAILED_MEMORY;
    for (int32_t i = 0; !status && i < locations; i++)
        last[i].instruction = -1;
    for (int32_t i = 0; !status && i < p->count; i++)
        note_writes(p, readers, i, last);
    for (int32_t i = 0; !status && i < p->count; i++) {
        status = link_instruction(p, readers, i, last, memory, &room);
        note_writes(p, readers, i, last);
    }
    free(last);
    return status;
}

/* Ports by load, were every operation split evenly over its ports: of several free ports the first
 * choice is the one that others need least. */
static void rank_ports(const struct program *p, const struct core *core, uint8_t *order)
{
    double load[PORTS] = {0};
    for (int32_t i = 0; i < p->count; i++)
        for (int32_t o = 0; o < p->body[i].form->operations; o++) {
            const struct operation *op = &p->body[i].form->operation[o];
            double share = (double)op->cycles / __builtin_popcountll(op->ports);
            for (uint64_t left = op->ports; left; left &= left - 1)
                load[__builtin_ctzll(left)] += share;
        }
    for (int32_t n = 0; n < core->ports; n++) {
        int32_t at = n;
        for (; at && load[order[at - 1]] > load[n] + 1e-9; at--)
            order[at] = order[at - 1];
        order[at] = (uint8_t)n;
    }
}

static uint64_t ranked(uint64_t ports, const struct program *p, int32_t count)
{
    uint64_t set = 0;
    for (int32_t rank = 0; rank < count; rank++)
        set |= (ports >> p->port_of[rank] & 1) << rank;
    return set;
}

static int32_t class_of(struct program *p, uint64_t ports)
{
    for (int32_t c = 0; c < p->class_count; c++)
        if (p->masks[c] == ports)
            return c;
    p->masks[p->class_count] = ports;
    return p->class_count++;
}

static int classify(struct program *p, const struct core *core)
{
    uint64_t all = core->ports == PORTS ? UINT64_MAX : (1ull << core->ports) - 1;
    for (int32_t i = 0; i < p->count; i++)
        for (int32_t o = 0; o < p->body[i].form->operations; o++) {
            const struct operation *op = &p->body[i].form->operation[o];
            int32_t at = p->body[i].first_operation + o;
            if (!op->ports || op->ports & ~all || op->cycles < 1)
                return FAILED_INPUT;
            p->fractional |= op->cycles < ONE;
            p->ports[at] = ranked(op->ports, p, core->ports);
            p->classes[at] = class_of(p, p->ports[at]);
            if (p->class_count > MOST_OPERATIONS)
                return FAILED_INPUT;
        }
    return 0;
}

/* Classes of operations that may use the ports of all clusters, within each of them. */
static int divide(struct program *p, const struct core *core)
{
    uint64_t all = 0;
    for (int32_t n = 0; n < core->clusters; n++)
        all |= ranked(core->cluster[n], p, core->ports);
    for (int32_t c = 0, whole = p->class_count; c < whole; c++) {
        p->within[c] = NEVER;
        if (!core->clusters || (p->masks[c] & all) != all)
            continue;
        if (p->class_count + core->clusters > MOST_OPERATIONS)
            return FAILED_INPUT;
        p->within[c] = p->class_count;
        for (int32_t n = 0; n < core->clusters; n++)
            p->masks[p->class_count++] = p->masks[c] & ~(all & ~ranked(core->cluster[n], p, core->ports));
    }
    return 0;
}

/* The cluster that has all ports of a class among those of clusters. */
static void place(struct program *p, const struct core *core)
{
    uint64_t all = 0;
    for (int32_t n = 0; n < core->clusters; n++)
        all |= ranked(core->cluster[n], p, core->ports);
    for (int32_t c = 0; c < p->class_count; c++) {
        p->cluster[c] = -1;
        for (int32_t n = 0; n < core->clusters; n++)
            if (!(p->masks[c] & all & ~ranked(core->cluster[n], p, core->ports)) && p->masks[c] & all)
                p->cluster[c] = n;
        p->parted[c] = p->leading && p->cluster[c] < 0 && p->masks[c] && !(p->masks[c] & ~all) && p->masks[c] != all;
    }
}

/* Classes of single ports, for operations that get them at dispatch: those that write one result in a cycle, and
 * those of clusters where operations may use parts of several. */
static int single_out(struct program *p, const struct core *core)
{
    p->writing = ranked(core->writing, p, core->ports);
    p->losing = ranked(core->losing, p, core->ports);
    p->leading = ranked(core->leading, p, core->ports);
    uint64_t some = core->policy == IDEAL ? p->writing : 0;
    for (int32_t n = 0; core->leading && n < core->clusters; n++)
        some |= ranked(core->cluster[n], p, core->ports);
    for (uint64_t left = some; left; left &= left - 1) {
        p->alone[__builtin_ctzll(left)] = class_of(p, left & -left);
        if (p->class_count > MOST_OPERATIONS)
            return FAILED_INPUT;
    }
    return 0;
}

static int32_t locations_of(const int32_t *words, int32_t count)
{
    int32_t most = 0;
    for (int32_t i = 0; i < count; i++)
        most = larger(most, words[i] + 1);
    return most;
}

int program_build(struct program *p, const struct core *core, const int32_t *words, int32_t count,
                  const int64_t *memory, int32_t accesses)
{
    memset(p, 0, sizeof *p);
    struct reader *readers = array(count, sizeof *readers);
    p->body = array(count, sizeof *p->body);
    int status = readers && p->body ? 0 : FAILED_MEMORY;
    if (!status)
        status = read_body(p, core, words, count, readers, accesses);
    if (!status)
        status = link_all(p, readers, locations_of(words, count), memory);
    free(readers);
    if (status)
        return status;
    p->classes = array(p->operations, sizeof *p->classes);
    p->masks = array(p->operations * (1 + core->clusters) + PORTS, sizeof *p->masks);
    p->ports = array(p->operations, sizeof *p->ports);
    p->within = array(p->operations, sizeof *p->within);
    p->cluster = array(p->operations * (1 + core->clusters) + PORTS, sizeof *p->cluster);
    p->parted = array(p->operations * (1 + core->clusters) + PORTS, sizeof *p->parted);
    if (!p->classes || !p->masks || !p->ports || !p->within || !p->cluster || !p->parted)
        return FAILED_MEMORY;
    if (core->policy == IDEAL)
        rank_ports(p, core, p->port_of);
    else
        for (int32_t n = 0; n < core->ports; n++)
            p->port_of[n] = (uint8_t)n;
    status = classify(p, core);
    if (!status)
        status = divide(p, core);
    if (!status)
        status = single_out(p, core);
    if (!status)
        place(p, core);
    return status;
}
