/* Addresses of a block as sums of unknowns, and which load reads what which store wrote. */
#ifndef CYCLESCOPE_BOUNDS_SEARCH_H
#define CYCLESCOPE_BOUNDS_SEARCH_H

#include "bounds.h"

#define MOST_OPERANDS 32
#define MOST_ENDS 128 /* locations that an instruction reads or writes */
#define MOST_SUM 12   /* terms of a value */
#define MOST_KEY 4096 /* numbers that tell one unknown from others */

/* A number plus multiples of unknowns, these in order; never changed. */
struct value {
    int64_t constant;
    int32_t count;
    struct term {
        int32_t unknown;
        int64_t factor;
    } terms[MOST_SUM];
};

/* values.c */
struct unknown {
    const int64_t *key;
    int32_t length, next; /* the next one with the same end of its hash */
};

#define BUCKETS 256

struct knowledge {
    struct arena *a;
    int odd; /* something does not fit into numbers here */
    const struct value **registers; /* per location, NULL where nothing was written */
    struct unknown *unknowns;
    int32_t unknown_count, unknown_room;
    int32_t buckets[BUCKETS];
    int64_t key[MOST_KEY]; /* under construction */
    int32_t length;
    struct stored_value {
        const struct value *address, *value;
        struct stored_value *next;
    } *memory; /* the last first */
};

int know(struct knowledge *k, struct arena *a, int32_t locations);
const struct value *number_value(struct knowledge *k, int64_t constant);
const struct value *sum_of(struct knowledge *k, const struct value *one, const struct value *other, int64_t factor);
const struct value *multiple_of(struct knowledge *k, const struct value *one, int64_t factor);
int same_terms(const struct value *one, const struct value *other);
int shares_terms(const struct value *one, const struct value *other);
int same_value(const struct value *one, const struct value *other);

void begin_key(struct knowledge *k, int64_t kind);
void add_to_key(struct knowledge *k, int64_t number);
void add_value_to_key(struct knowledge *k, const struct value *value);
const struct value *unknown_of_key(struct knowledge *k);

const struct value *register_value(struct knowledge *k, int32_t location);
const struct value *loaded_value(struct knowledge *k, const struct value *address);
void store_value(struct knowledge *k, const struct value *address, const struct value *value);

/* lines.c: instructions as numbers */
enum { SEEN_NOTHING, SEEN_MEMORY, SEEN_REGISTER, SEEN_ZERO, SEEN_IMMEDIATE };
enum { OPERAND_MEMORY = 1, OPERAND_IMPLICIT = 2, OPERAND_ROLE = 4, OPERAND_IMMEDIATE = 8, OPERAND_AMOUNT = 16,
       OPERAND_UNREAD = 32 };

struct line_operand {
    int32_t seen, location, flags, width;
    int32_t amount;          /* by which a base is moved on where the register for it is none */
    int32_t address;         /* number among the line's addresses, or NONE */
    int has_immediate;
    int64_t immediate;
};

struct line_write {
    int32_t position, location, rule, pushed;
    int is_needed;
};

struct line_access {
    int32_t position, size, read, write, whole; /* `whole`: what is stored is a register's value */
};

enum { NOT_WRITTEN_BACK, WRITTEN_BEFORE, WRITTEN_AFTER };

struct line_address {
    int32_t position, base, index; /* locations */
    int64_t constant, scale;
    int32_t writeback, symbol, segment; /* names by number, or NONE */
};

struct line {
    int64_t form;
    int32_t operand_count, read_count, write_count, access_count, address_count;
    struct line_operand *operands;
    int32_t *reads;
    struct line_write *writes;
    struct line_access *accesses;
    struct line_address *addresses;
    int fixed, stores, results; /* addresses do not change; what it stores is followed; some result is */
};

struct lines {
    struct line *all;
    int32_t count, locations;
};

/* Numbers of Python; what is out of range makes the rest bad. */
struct numbers {
    const int64_t *at, *end;
    int bad;
};

int read_lines(struct arena *a, struct lines *l, struct numbers *forms, struct numbers *own);
int follow(struct arena *a, struct lines *l, int *rounds);

/* rules.c: what instructions make of values */
enum {
    NO_RULE, MOVED, ADDRESS, LOADED, SUM, DIFFERENCE, UP, DOWN, SHIFTED, PRODUCT, SAME_IS_ZERO, OF_ZERO, BIT_FIELD,
    RULES
};

/* What is seen of a line in a round: values by operand, NULL for what has none. */
struct sight {
    const struct line *line;
    const struct value *operands[MOST_OPERANDS];
    const struct value *addresses[MOST_OPERANDS]; /* by number */
};

const struct value *by_rule(struct knowledge *k, const struct sight *s, int32_t rule);
const struct value *written_back(struct knowledge *k, const struct sight *s, const struct value *old,
                                 const struct line_address *address);

/* search.c: the rounds */
#define MOST_ROUNDS 64
#define MOST_ADDRESS ((int64_t)1 << 49) /* the constant part of an address, away from 0 */
#define MOST_BLOCK 4096                 /* bytes of a line, a chunk, all banks */
#define MOST_IN_FLIGHT 1024             /* stores */
#define FARTHEST ((int64_t)1 << 40)     /* iterations, of which so many stores are never in flight */
#define FOUND_ROW 7 /* load, its operand, store, its operand, iterations, bytes behind the store, stores between */

struct access {
    int32_t number, operand, size, write;
    int32_t terms; /* the same number for the same unknowns */
    const struct value *address;
    int is_followed; /* whether it moves on by `step` bytes in an iteration */
    int is_in_table; /* whether it is not followed, and its base stays */
    int is_found;    /* whether it loads what was stored */
    int64_t step;
};

struct accesses {
    struct access *all;
    int32_t count;
};

/* traffic.c */
struct chunks {
    int64_t size, most, joins, word; /* bytes, stores at once, whether parts join others, bytes of a word or 0 */
    double longer, within;           /* cycles that a part of a word waits, if it was written within so many */
};

#define STORE_ROWS 7 /* numbers of stores to a line that probes ask for */

struct store_row {
    int64_t stores;
    double longer;
};

/* What stores to `many` lines in turn take, of `size` bytes: each store, and lines in addition. */
struct store_lines {
    int64_t size, many;
    double each, whole, alone;
    struct store_row rows[STORE_ROWS];
};

struct banks {
    int64_t width, period;
    double most;
};

#define WIDE_SIZES 3 /* of vectors */

struct wide_loads {
    int64_t size; /* bytes, 0 where there is none */
    double inside, across, halves;
};

struct crossing {
    int64_t line;
    double each, extra;
    struct wide_loads wide[WIDE_SIZES];
};

/* What a core does about memory; 0 where something is not known of it. */
struct memory_core {
    int64_t locations, in_flight, rounds, most_terms;
    struct chunks chunks;
    struct store_lines lines;
    struct banks banks;
    struct crossing crossing, store_crossing;
};

struct memory {
    double chunks, banks, crossing, longer; /* cycles; the last by which loads take longer for bytes in two lines */
    int64_t found;                  /* ways through memory */
};

/* What a store writes in an iteration: which chunk, which bytes, and whether other stores may leave with it. */
struct visit {
    const struct access *store;
    int64_t number, at, start, end;
    int alone, is_followed;
};

/* Stores that leave one behind the other. */
struct departed {
    int32_t first, count; /* among the visits */
    double cycles;
};

struct visits {
    struct visit *all;
    struct departed *runs; /* those that begin within the period */
    int32_t count, run_count, runs_in_all;
    int64_t period; /* iterations */
};

int cycles_of_chunks(struct arena *a, const struct accesses *moving, const struct chunks *chunks, double *cycles);
int cycles_of_lines(struct arena *a, const struct accesses *moving, const struct store_lines *lines, double *cycles);

/* parts.c */
int cycles_of_parts(struct arena *a, const struct visits *v, const struct chunks *chunks, double *cycles);

int cycles_of_banks(struct arena *a, const struct accesses *moving, const struct banks *banks, double *cycles);
double cycles_of_crossing(const struct accesses *moving, int write, const struct crossing *crossing);
double longer_across(const struct accesses *moving, const struct crossing *crossing);

static inline int64_t floor_division(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

#endif
