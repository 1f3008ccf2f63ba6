/* Random values for differential execution; see bases.c and changes.c. */
#ifndef CYCLESCOPE_VALUES_H
#define CYCLESCOPE_VALUES_H

#include "worker.h"

enum { PAGES = 3 };
extern uint8_t *const page_address[PAGES];

/* The input: registers are in arch_in. */
struct values {
    const struct kernel *kernel;
    const struct state *state;
    uint64_t random;
    uint8_t page[PAGES][PAGE_BYTES];
};

/* What general registers hold, by where the state points them. */
enum role { PLAIN, FIRST, SECOND, STACK, CODE_POINTER };

/* How many of the numbers are special ones, one in so many. */
#define OFTEN 2u
#define RARE 16u

uint64_t values_next(struct values *v);
uint32_t values_below(struct values *v, uint32_t limit);
uint64_t values_small(struct values *v);
void values_fill(struct values *v, uint8_t *to, size_t size, unsigned kind, uint32_t rare);
void values_fill_small(struct values *v, uint8_t *to, size_t size);
void values_fill_with(uint8_t *to, size_t size, uint64_t value);
void values_fill_x87(struct values *v, uint8_t *slot);
uint64_t values_mask(struct values *v);
unsigned values_kind(const struct values *v);
enum role values_role(uint64_t value);
uint64_t values_pointer(struct values *v, enum role role);
uint64_t values_code_pointer(struct values *v);
int values_hold_code(const struct values *v, unsigned page);
unsigned values_part(unsigned location);
void values_fill_index(struct values *v, uint8_t *to, size_t size);
int values_is_index(const struct values *v, unsigned location);
uint8_t *values_register(unsigned location);
void values_flip(const struct location *l, uint8_t *at, uint32_t which);

/* bases.c */
void values_start(struct values *v, const struct kernel *kernel, const struct state *state,
                  uint32_t seed);
void values_draw(struct values *v, unsigned base, unsigned attempt);

/* changes.c */
void values_change(struct values *v, unsigned location, unsigned kind);

#endif
