/* What an iteration of a loop waits for, computed as `cyclescope.analyze.depend` does it in Python.
 *
 * In: instructions as lists of numbers (what they read and write, cycles between), in the order of the block.
 * Out: cycles. What is too large or odd is refused: Python, whose results are the same, does that.
 */
#ifndef CYCLESCOPE_BOUNDS_H
#define CYCLESCOPE_BOUNDS_H

#include <stddef.h>
#include <stdint.h>

#define MOST_INSTRUCTIONS 4096
#define MOST_LOCATIONS 65536
#define MOST_VALUES 4096 /* that pass from one iteration to the next */
#define MOST_BYTES ((size_t)1 << 28)
#define NONE (-1)
#define EXPORT __attribute__((visibility("default")))

enum { REFUSED = -1, NO_MEMORY = -2 };

/* arena.c: memory of one call */
struct chunk;

struct arena {
    struct chunk *chunks;
    int failed;
};

void *take(struct arena *a, size_t count, size_t size);
void release(struct arena *a);

/* reader.c: lists of numbers; what is not there or out of range makes the rest bad */
struct reader {
    const double *at, *end;
    int bad;
};

double next_value(struct reader *r);
int32_t next_number(struct reader *r, int32_t least, int32_t most);
const double *next_values(struct reader *r, int32_t count);

/* nodes.c: values, and what leads to them */

/* A value that is waited for: a node, or -1 - the number of a carried value; `source` is that of the instruction. */
struct input {
    int32_t node, source;
    double cycles;
};

/* The value of a node, so many iterations before. */
struct carried {
    int32_t node, distance;
};

/* One instruction: what it was read from, and the number of its first node. */
struct instruction {
    int32_t sources, columns, targets, killed, first;
    int is_stack, loads;
    const double *kinds;    /* of sources: see SOURCE_... */
    const double *operands; /* of sources */
    const double *column_of; /* of targets */
    const double *dead;     /* locations that hold nothing of use afterwards */
    const double *rows;     /* per column: how many pairs of (source, cycles), and these */
    const double *read, *written; /* locations of sources and targets, NONE where there is none */
};

enum { SOURCE_OTHER, SOURCE_REGISTER, SOURCE_ADDRESS, SOURCE_DATA };

/* A load of what an instruction stored: the load, its operand, the store, its column, iterations between, cycles
 * besides; then the cycles of a trip from the stored value to the next one, which is an answer. */
enum { LOAD, OPERAND, STORE, COLUMN, DISTANCE, LATE, TRIP, PASSAGE_ROW };

struct block {
    struct instruction *instructions;
    int32_t count, locations, stack_pointer, passages;
    double stack_update, equal; /* cycles; `equal`: cycles of chains that are as slow as each other */
    double *passage;     /* rows */
    const double *early; /* per instruction: cycles by which others get its results later, whether it does not wait */
};

struct nodes {
    int32_t count, carried_count, input_count;
    int32_t *first_input; /* per node, and one more */
    struct input *inputs;
    struct carried *carried;
};

int read_block(struct arena *a, struct block *b, struct reader *words);
int make_nodes(struct arena *a, const struct block *b, struct nodes *n);
int32_t carried_number(const struct nodes *n, int32_t node, int32_t distance);

/* ways.c: from value to value in one iteration */
struct edge {
    int32_t to;
    double cycles;
};

struct edges {
    int32_t count, total; /* of values, of edges */
    int32_t *first;       /* per value, and one more */
    struct edge *all;
};

int make_edges(struct arena *a, const struct nodes *n, struct edges *e);

/* cycles.c: the greatest mean of a cycle, 0 where there is none; less if it fails */
double greatest_mean(struct arena *a, const struct edges *e, double equal);

#endif
