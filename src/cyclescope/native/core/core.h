/* A cycle-level out-of-order core.
 *
 * In: a machine (widths, buffers, queues, ports), templates (what one instruction form needs) and a
 * loop body (templates with locations). Out: cycles per iteration in the steady state, micro-ops per
 * port, and on demand a trace. Times within a cycle and slots are in parts of 1/ONE.
 */
#ifndef CYCLESCOPE_CORE_H
#define CYCLESCOPE_CORE_H

#include <stddef.h>
#include <stdint.h>

#define ONE 1024
#define PORTS 64
#define QUEUES 64
#define CLUSTERS 8 /* of ports */
#define MOST_OPERATIONS 256 /* of one template */
#define MOST_TARGETS 32
#define NEVER INT32_MIN       /* a pair without a latency, a source that is not waited for */
#define UNKNOWN INT64_MAX     /* a time that is not known yet */
#define EXPORT __attribute__((visibility("default")))

/* How operations are bound to ports. */
enum { IDEAL, STATIC, ROUND_ROBIN, GROUPED, EVENLY };
enum { MICROCODED = 1 };                    /* flags of a template */
enum { BROUGHT = -1 };                       /* as the result of an operation: another unit makes it */
enum { FAILED_INPUT = -1, FAILED_MEMORY = -2, FAILED_STUCK = -3 };

struct operation {
    uint64_t ports;
    int32_t cycles; /* the port is busy, in parts */
    int32_t early;  /* the others and all targets wait for it, by way of its sources: a load */
    int32_t slack;  /* cycles that it waits when the instruction runs alone: latencies include them */
    int32_t result; /* cycles after its start in which its port writes what it made; 0: nothing, or not known when */
    uint32_t feeds; /* targets that wait for it, as a set */
    int32_t *after; /* per source: parts between its arrival and readiness, or NEVER */
    uint32_t announced; /* targets that are there a cycle after it, wherever the sources are */
};

struct template {
    int32_t slots, flags, entries, loads, stores;
    int32_t sources, targets, operations, early;
    int32_t needed; /* slots that the cycle has to have left, 0 where an instruction may be divided between cycles */
    int32_t *base;    /* per target: parts from the dispatch on, whatever the sources */
    int32_t *latency; /* [source * targets + target] in parts, or NEVER */
    struct operation *operation;
};

/* Where a source comes from: `target` of instruction `producer`, `distance` iterations ago. */
struct link {
    int32_t source, producer, target, distance;
};

struct instruction {
    const struct template *form;
    uint32_t live; /* targets that something reads, and the first: the set that is followed */
    int32_t lives; /* how many these are */
    int32_t first_link, links, first_operation;
};

struct program {
    struct instruction *body;
    struct link *links;
    int32_t *classes; /* per operation of the body: index into `masks` */
    uint64_t *masks;  /* distinct port sets, in ranks */
    uint64_t *ports;  /* per operation: its port set, in ranks */
    uint8_t port_of[PORTS]; /* port of a rank: the least loaded port has rank 0 */
    int32_t count, operations, link_count, class_count;
    int32_t most_sources, most_targets, most_operations, most_links;
    int fractional; /* whether some port is busy for less than a cycle */
    uint64_t writing, losing, leading; /* the core's, in ranks */
    int32_t alone[PORTS]; /* where others are chosen at the start: the class of operations that got such a port */
    uint8_t *parted; /* per class: whether its ports are of several clusters, and not all of these */
    int32_t *within; /* per class: the first of its classes within clusters, NEVER where it has none */
    int32_t *cluster; /* per class: the cluster that has all of its ports, -1 where none has */
};

struct heap {
    uint64_t *keys;
    int32_t count, room;
};

struct core {
    int64_t width;
    int32_t entries, loads, stores, in_order, policy, ports, queues;
    uint64_t queue_ports[QUEUES];
    int32_t queue_entries[QUEUES];
    uint64_t announcing; /* ports whose operations of a cycle announce their results as they ask for a port */
    uint64_t single; /* ports of which each gets one operation in a cycle of dispatch at most */
    int32_t ahead; /* whether single ports are chosen so that those that follow in a cycle find one, too */
    uint64_t rotating; /* ports that take operations in turn, however many each of them got */
    uint64_t writing; /* ports of which each writes one result in a cycle at most; got at dispatch always */
    int32_t patience; /* cycles in which younger operations start before one whose result finds no room */
    int32_t clusters;
    uint64_t cluster[CLUSTERS]; /* an operation that may use all of these ports gets one of the clusters */
    uint64_t losing; /* ports that are got in vain by what would write a second result in a cycle */
    int32_t blur; /* instructions by which an older operation may be taken for a younger one */
    uint64_t leading; /* the cluster whose ports come first where operations may use parts of several; 0: they wait */
    struct template **templates;
    int32_t template_count, template_room;
    struct heap heaps[MOST_OPERATIONS];
    void *memory; /* of runs, kept between them */
    size_t room;
};

/* What a run found. */
struct outcome {
    double cycles;     /* per iteration */
    double operations[PORTS]; /* per iteration */
    int64_t simulated_cycles, simulated_instructions;
    int64_t exact; /* whether the state came back: the cycles are no average */
};

/* What kept an instruction from being dispatched. */
enum { REORDER_BUFFER = 1, LOAD_BUFFER, STORE_BUFFER, QUEUE };

/* One row per dynamic instruction (dispatched, completed, retired, since when a buffer had no room for it or
 * -1, which buffer) and operation (issued, port, ready, the source that it waited for last or -1). */
#define INSTRUCTION_ROW 5
#define OPERATION_ROW 4
struct trace {
    int64_t iterations;
    int64_t *instructions, *operations;
};

/* program.c */
int program_build(struct program *p, const struct core *core, const int32_t *words, int32_t count,
                  const int64_t *memory, int32_t accesses);
void program_free(struct program *p);

/* heap.c */
int heap_push(struct heap *h, uint64_t key);
uint64_t heap_pop(struct heap *h);

/* run.c */
int core_simulate(struct core *core, const struct program *p, int64_t limit, struct outcome *out,
                  struct trace *trace);

#endif
