/* The interface: the slowest loop-carried dependency of a block. */
#include "bounds.h"

struct answer {
    double cycles;  /* per iteration */
    int64_t carried; /* values that pass from one iteration to the next */
    double waits;    /* cycles that all loads wait for their addresses, if what is from outside is there */
};

/* Trips of stored values to the same values an iteration later. */
static void find_trips(const struct block *b, const struct nodes *n, const struct edges *e)
{
    for (int32_t p = 0; p < b->passages; p++) {
        double *row = &b->passage[p * PASSAGE_ROW];
        int32_t node = b->instructions[(int32_t)row[STORE]].first + (int32_t)row[COLUMN];
        int32_t value = carried_number(n, node, 1);
        row[TRIP] = NONE;
        for (int32_t k = e->first[value]; value < n->carried_count && k < e->first[value + 1]; k++)
            if (e->all[k].to == value)
                row[TRIP] = e->all[k].cycles;
    }
}

/* Whether a node is made of what is loaded in the same iteration; whether an address is, is added. */
static int comes_of_load(const struct nodes *n, const struct instruction *one, int32_t node, const uint8_t *made,
                         int *is_late)
{
    int found = 0;
    for (int32_t i = n->first_input[node]; i < n->first_input[node + 1]; i++) {
        const struct input *input = &n->inputs[i];
        if (input->node < 0 || !made[input->node])
            continue;
        found = 1;
        *is_late |= one->kinds[input->source] == SOURCE_ADDRESS;
    }
    return found;
}

/* Per instruction: whether it loads by an address that is made of what the same iteration loads before. */
static int find_late(struct arena *a, const struct block *b, const struct nodes *n, int8_t *late)
{
    uint8_t *made = take(a, (size_t)n->count, sizeof *made);
    if (a->failed)
        return NO_MEMORY;
    for (int32_t number = 0; number < b->count; number++) {
        const struct instruction *one = &b->instructions[number];
        int is_late = 0;
        for (int32_t node = one->first; node < one->first + one->columns; node++)
            made[node] = (uint8_t)(comes_of_load(n, one, node, made, &is_late) | one->loads);
        late[number] = is_late && one->loads;
    }
    return 0;
}

/* When a node is there; if it is later, when the last part of an address is. */
static double ready_at(const struct nodes *n, const struct instruction *one, int32_t node, const double **row,
                       const double *ready, double *wait)
{
    double found = 0;
    for (int32_t pairs = (int32_t)*(*row)++; pairs; pairs--, *row += 2)
        found = (*row)[1] > found ? (*row)[1] : found;
    for (int32_t i = n->first_input[node]; i < n->first_input[node + 1]; i++) {
        const struct input *input = &n->inputs[i];
        if (input->node < 0)
            continue;
        double then = ready[input->node];
        if (one->kinds[input->source] == SOURCE_ADDRESS && then > *wait)
            *wait = then;
        if (then + input->cycles > found)
            found = then + input->cycles;
    }
    return found;
}

static int find_waits(struct arena *a, const struct block *b, const struct nodes *n, double *waits)
{
    double *ready = take(a, (size_t)n->count, sizeof *ready);
    if (a->failed)
        return NO_MEMORY;
    for (int32_t node = 0; node < n->count; node++)
        ready[node] = 0;
    for (int32_t number = 0; number < b->count; number++) {
        const struct instruction *one = &b->instructions[number];
        const double *row = one->rows;
        double wait = 0;
        for (int32_t node = one->first; node < one->first + one->columns; node++)
            ready[node] = ready_at(n, one, node, &row, ready, &wait);
        if (one->loads)
            *waits += wait;
    }
    return 0;
}

static int answer(struct arena *a, struct block *b, struct reader *words, int64_t early, struct answer *out,
                  int8_t *late, int64_t late_count)
{
    struct nodes n;
    struct edges e;
    int status = read_block(a, b, words);
    if (!status && ((early && early != 2 * (int64_t)b->count) || late_count != b->count))
        return REFUSED;
    if (!status)
        status = make_nodes(a, b, &n);
    if (!status)
        status = find_late(a, b, &n, late);
    if (!status)
        status = find_waits(a, b, &n, &out->waits);
    if (status || !n.carried_count)
        return status;
    out->carried = n.carried_count;
    status = make_edges(a, &n, &e);
    if (status)
        return status;
    find_trips(b, &n, &e);
    out->cycles = greatest_mean(a, &e, b->equal);
    return out->cycles < 0 ? REFUSED : 0;
}

/* `words` are what `depend/compiled/chains.py` makes of a block: instructions, locations, the stack pointer's location,
 * its update, what is equal, then every instruction. `early` has nothing where no results of the core are. */
EXPORT int bounds_chain(const double *words, int64_t count, double *passage, int64_t passages, const double *early,
                        int64_t early_count, struct answer *out, int8_t *late, int64_t late_count)
{
    struct arena a = {0};
    struct block b = {.passage = passage, .early = early_count ? early : NULL};
    struct reader reader = {words, words + count, 0};
    if (count < 0 || passages < 0 || passages > MOST_INSTRUCTIONS * 8)
        return REFUSED;
    b.passages = (int32_t)passages;
    *out = (struct answer){0};
    int status = answer(&a, &b, &reader, early_count, out, late, late_count);
    release(&a);
    return status;
}
