/* The state of a running core. Times are in cycles, those that end in `_at` in parts of cycles. */
#ifndef CYCLESCOPE_CORE_RUN_H
#define CYCLESCOPE_CORE_RUN_H

#include "core.h"

#define WHEEL 1024 /* cycles ahead that a wake-up is found at once */
#define NONE (-1)
#define SLOT_BITS 24 /* of the ring: it has room for all that a buffer of unlimited size holds */

enum { HOPING = 1, ASKING, LATER }; /* for a port, in the next cycle, in this one or in later ones */

/* An instruction in flight. */
struct instance {
    int32_t index;      /* in the body */
    int32_t left;       /* operations not issued and targets not known */
    int64_t dispatched; /* cycle */
    int64_t complete_at;
};

/* An operation in flight; `place` in the arrays is ring slot * most_operations + number. */
struct pending {
    int64_t ready; /* cycle in which it could issue */
    int64_t issued; /* cycle, or NONE */
    int64_t age; /* of which the least is the oldest */
    int32_t waits;  /* links that it still waits for */
    int32_t class;  /* of ports, within its cluster where it has one */
    int32_t early;  /* HOPING, ASKING or LATER: its sources were announced and are not there, else 0 */
    int32_t port, queue; /* rank; NONE where not bound */
    int32_t last;        /* the source that it waited for last, NONE where it is ready at dispatch */
    int32_t refused;     /* cycles in which its port could not have written its result */
    int32_t next;        /* in the same bucket of the wheel */
    int32_t next_later;  /* in the same bucket of those that hope later */
};

struct value {
    int64_t at;   /* when it is there, or UNKNOWN */
    int64_t late; /* cycles that its operations waited for ports */
    int32_t waits;
    int32_t announced; /* its operation has asked for a port and got none yet */
    int32_t readers; /* first of a list of reader numbers: ring slot * most_links + link */
};

/* When a source is there, and the cycles that the load behind it waited for a port. */
struct arrival {
    int64_t at, late;
};

#define RESULTS 64 /* cycles ahead that a port knows when it writes: one that comes later finds room */
#define SPREAD 1024 /* instructions after which operations go to the same clusters again */
#define PATTERN 64 /* cycles after which what looks like chance comes again, so that loops get periodic */

struct run {
    struct core *core;
    const struct program *p;
    struct trace *trace;
    int64_t now, head, tail; /* cycle; oldest in flight and next to dispatch, counted from 0 */
    int64_t mask;            /* ring slots - 1 */
    int64_t remaining;       /* slots of the instruction under dispatch, NONE before it begins */
    int64_t room;            /* slots that this cycle has left behind that instruction */
    int64_t refused_at;      /* since when it finds no room, NONE where it has not been refused */
    int32_t refused_by;      /* the buffer */
    int64_t busy_at[PORTS];
    uint64_t results[PORTS]; /* cycles from `written_from` on in which each port writes a result, as a set */
    int64_t written_from[PORTS];
    int64_t short_at[PORTS]; /* one more than the cycle in which each port started what writes in the next one */
    int64_t issued[PORTS];
    int64_t oldest_waiting; /* in order: the first instruction with operations not issued */
    int32_t position, ready; /* of the next instruction in the body; operations in heaps */
    int32_t entries, loads, stores, queued[QUEUES], waiting[PORTS];
    int32_t queue_of[PORTS];
    uint8_t turn[MOST_OPERATIONS]; /* round robin: the last port by class */
    int32_t before[PORTS];         /* grouped: operations that waited when the cycle began */
    int32_t within[CLUSTERS];          /* operations that wait in a cluster */
    int64_t share[CLUSTERS], shares;   /* of operations, by what waited when a cycle of dispatch began; all of them */
    int64_t counted_at;
    int32_t used[PORTS];           /* the same: operations that were bound in this cycle */
    int64_t grouped_at;
    uint64_t idle; /* in turn: ports for which no operation waited when the cycle began */
    int64_t rotated_at;
    struct last {
        int64_t at, by; /* one more than the cycle, and the instruction */
    } last[PORTS]; /* single: who each got its last operation of */
    int64_t ordered[CLUSTERS]; /* operations that each part got so far */
    int64_t dispatched;        /* slots */
    int32_t dealt[MOST_OPERATIONS];    /* per class: operations that were dealt ports in a cycle of dispatch */
    int64_t dealt_in[MOST_OPERATIONS]; /* which one that is */
    uint64_t taken[CLUSTERS]; /* cycles from `taken_from` on in which each part has no room for a result, as a set */
    int64_t taken_from[CLUSTERS];
    int32_t bound, got[PORTS], got_last[PORTS]; /* even: operations bound, those of each port, and its last one */
    int32_t failed, active;
    int32_t asking, vain, hopes; /* entries of the lists below */
    int32_t *asked;   /* operations that were ready in this cycle for the first time */
    uint64_t *in_vain; /* operations that got a port in this cycle and lost it */
    int32_t *hoping;  /* operations whose sources were announced and are not there */
    struct instance *instances;
    struct pending *operations;
    struct value *values;
    struct arrival *arrivals; /* per source of an instance */
    int32_t *next_reader;
    int32_t wheel[WHEEL], hoping_later[WHEEL];
};

/* Keys order operations by age, which may be blurred, and find them again by their slots. */
static inline uint64_t key_of(int64_t slot, int32_t operation, int64_t age)
{
    return (uint64_t)age << (SLOT_BITS + 8) | (uint64_t)slot << 8 | (uint32_t)operation;
}

static inline int64_t slot_of(uint64_t key)
{
    return (int64_t)(key >> 8 & ((1 << SLOT_BITS) - 1));
}

static inline int64_t in_cycles(int64_t parts)
{
    return (parts + ONE - 1) / ONE;
}

static inline struct instance *instance_of(struct run *r, int64_t sequence)
{
    return &r->instances[sequence & r->mask];
}

static inline struct pending *operations_of(struct run *r, int64_t slot)
{
    return &r->operations[slot * r->p->most_operations];
}

static inline struct value *values_of(struct run *r, int64_t slot)
{
    return &r->values[slot * r->p->most_targets];
}

static inline struct arrival *arrivals_of(const struct run *r, int64_t slot)
{
    return &r->arrivals[slot * r->p->most_sources];
}

static inline uint32_t live_of(const struct run *r, int64_t slot)
{
    return r->p->body[r->instances[slot].index].live;
}

static inline int64_t sequence_of(const struct run *r, int64_t slot)
{
    return r->head + ((slot - r->head) & r->mask);
}

/* When computing with a source could begin at the earliest, for an instruction that `first` begins. */
static inline int64_t start_of(const struct arrival *arrival, int64_t first)
{
    return (arrival->at > first ? arrival->at : first) + arrival->late * ONE;
}

/* values.c: who waits for whom */
void connect(struct run *r, int64_t sequence);
void feed(struct run *r, int64_t slot, uint32_t targets, int64_t late);
void load(struct run *r, int64_t slot, const struct operation *early, int64_t late);
void wake(struct run *r);

/* issue.c: operations to ports */
int has_room(const struct run *r, int32_t queue);
int bind_all(struct run *r, int64_t sequence);
void start(struct run *r, uint64_t key, int32_t rank);
void issue(struct run *r);
int64_t next_port(const struct run *r);
int32_t in_turn(struct run *r, uint64_t ports, int32_t class);
int is_brought(const struct run *r, int32_t number);

/* parts.c: ports in parts */
void count_shares(struct run *r);
int32_t class_of(struct run *r, int32_t at);
void take_back(struct run *r, int32_t at);
int64_t age_of(struct run *r, int32_t class);
uint64_t taken_of(const struct run *r, int32_t part);
int finds_room(struct run *r, int32_t at, int32_t rank, int32_t after);

/* ahead.c: single ports for what follows in a cycle */
uint64_t leaving(const struct run *r, uint64_t ports, int32_t number);

/* rotation.c: ports that take operations in turn */
int32_t next_in_turn(struct run *r, uint64_t ports);

/* writeback.c: ports that write one result in a cycle */
void issue_writing(struct run *r, int32_t port, int32_t queue);
uint64_t results_of(const struct run *r, int32_t port);
int takes_result(struct run *r, int32_t port, int32_t after);

/* announce.c: results that are announced before they are there */
void hope(struct run *r, int64_t slot, int32_t o);
void announce(struct run *r);
void ask_early(struct run *r);
void ask(struct run *r, int64_t slot, int32_t o);
void lose(struct run *r, uint64_t key, int32_t rank);
int is_vain(struct run *r, uint64_t key, int32_t rank);
void ask_again(struct run *r);

/* A number that has nothing to do with the one that it is made of. */
static inline uint64_t any_number(int64_t of)
{
    uint64_t hash = (uint64_t)of * 0x9E3779B97F4A7C15ull;
    return (hash ^ hash >> 31) * 0xBF58476D1CE4E5B9ull;
}

/* state.c */
uint64_t fingerprint(struct run *r);

#endif
