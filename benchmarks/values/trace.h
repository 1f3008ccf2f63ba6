/* Following values through kernels: what the parts of the tracer have in common. */
#ifndef TRACE_H
#define TRACE_H

#include "worker.h"

#define SCRATCH (CODE + 0x80000) /* for exits that nothing takes */

/* --- state.c ------------------------------------------------------------------------------------ */

enum { FIRST_BYTES = 3072, SECOND_BYTES = 1024, STACK_BYTES = 1024,
       MEMORY_BYTES = FIRST_BYTES + SECOND_BYTES + STACK_BYTES, AREAS = 3 };

/* Registers and memory, or a set of bits of them. */
struct whole {
    struct machine registers;
    uint8_t memory[MEMORY_BYTES];
} __attribute__((aligned(64)));

extern size_t used;     /* bytes of a struct machine that are locations */
extern int with_memory; /* whether the job has any */

void copy_whole(struct whole *to, const struct whole *from);
uint8_t *bytes_of(struct whole *w, unsigned location, size_t *size);
int is_set(const uint8_t *bits, unsigned n);
void set(uint8_t *bits, unsigned n);
void mask_of(struct whole *mask, const uint8_t *locations);
int locations_of(const struct whole *mask, uint8_t *locations);
void combine(struct whole *to, const struct whole *from, int with);
void clear(struct whole *w);
void install(void);
int run(const uint8_t *code, const struct whole *in, struct whole *out); /* 0, or the signal */
void start_state(struct whole *w, const struct state *s);

/* --- others.c ----------------------------------------------------------------------------------- */

#define TRIALS 24u
enum { MEMORY = 1, REGISTERS = 2 };
enum { RANDOM, NUMBERS, SMALL, BOXED, EXTREME, MATCHING, KINDS, NOTHING }; /* of other values */
extern unsigned follows_address;
extern unsigned matches_lines; /* whether memory that holds one byte may do so in some lines only */
extern unsigned element_bytes, fraction_bits; /* of the form's floating-point values; 0 for integers */

void restart_values(void);
void collect_tagged(const struct whole *tag);
void change_tagged(struct whole *w, unsigned trial);
void randomise(struct whole *w, int what, const uint8_t *keep, unsigned kind);
void randomise_edges(struct whole *w, const uint8_t *keep, const uint8_t *code, size_t length);
void randomise_all(struct whole *w, const uint8_t *locations);

/* --- requests and answers, as in tracer.py ------------------------------------------------------- */

#define ALTERNATES 8u

enum item_kind { HELPER, TESTED };
enum job_kind { CHAIN, STREAM };

struct request {
    uint32_t kind, items, iterations, element; /* enum differ_flags */
    uint32_t setup, has_memory;
    uint8_t keep[LOCATIONS / 8], report[LOCATIONS / 8];
    uint8_t padding[4];
    struct state state;
};

enum uses { AN_ADDRESS = 1, STORES = 2, LOADS = 4 }; /* what is followed is an address; what it does */
struct item_head {
    uint8_t kind, length, alternates, uses; /* bits of enum uses */
    uint8_t source[LOCATIONS / 8], target[LOCATIONS / 8];
};

struct code {
    uint8_t length, bytes[31];
};

struct item {
    struct item_head head;
    struct code code, alternate[ALTERNATES];
    uint8_t *at, *alternate_at[ALTERNATES];
};

enum mode { NONE, AS_IT_IS, OTHER_MEMORY, OTHER_VALUES, OTHER_FIELD };
enum event_flags { IDENTITY = 1, UNCOVERED = 2 };

/* One instruction of one round: where the tag was before and after. */
struct event {
    uint8_t item, round, mode, flags;
    uint8_t before[LOCATIONS / 8], after[LOCATIONS / 8];
    uint16_t covered, read; /* bytes of memory tagged before, and further ones that are read */
};

enum outcome { DONE, FAULT, SETUP_FAULT };
struct answer {
    uint32_t status, detail, item, events;
    uint8_t changed[LOCATIONS / 8]; /* since the first iteration */
    uint8_t padding[2];
    uint32_t reported; /* bytes that follow the events: first the report of the first iteration, then the last */
};

/* --- tags.c ------------------------------------------------------------------------------------- */

void add_differences(struct whole *to, const struct whole *a, const struct whole *b);
void written_by(const uint8_t *code, const struct whole *in, int what, const uint8_t *keep,
                const uint8_t *fresh, const struct whole *enough, struct whole *written);
void exchanged_by(const struct request *r, const struct item *item, const struct whole *in,
                  struct whole *written);
void widen(struct whole *tag, int helper);
int reads_memory(const struct item *item, const struct whole *in, const struct whole *tag);
void look_at_memory(const struct item *item, const struct whole *in, const struct whole *tag,
                    const struct whole *stored, struct event *event);
enum mode follow(const struct request *r, const struct item *item, const struct whole *in,
                 const struct whole *tag, struct whole *after, uint8_t *flags);

#endif
