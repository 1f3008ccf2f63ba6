/* The dependency graph: who wrote what is read, in this iteration or an earlier one. */
#include "bounds.h"

#define MOST_ENDS 256 /* sources, targets or flags of an instruction */
#define DEAD (-2)     /* written, and nothing of use */
#define UNWRITTEN (-1)

static void check_numbers(struct reader *r, const double *values, int32_t count, int32_t least, int32_t end)
{
    for (int32_t n = 0; values && n < count; n++)
        r->bad |= !(values[n] >= least && values[n] < end);
}

/* The columns of an instruction, each with so many pairs of source and cycles. */
static void read_rows(struct reader *r, struct instruction *one)
{
    one->rows = r->at;
    for (int32_t c = 0; c < one->columns && !r->bad; c++) {
        int32_t pairs = next_number(r, 0, MOST_ENDS);
        for (int32_t p = 0; p < pairs; p++) {
            next_number(r, 0, one->sources - 1);
            next_value(r);
        }
    }
}

static void read_instruction(struct reader *r, struct instruction *one, int32_t locations)
{
    one->sources = next_number(r, 0, MOST_ENDS);
    one->columns = next_number(r, 0, MOST_ENDS);
    one->targets = next_number(r, 0, MOST_ENDS);
    one->killed = next_number(r, 0, MOST_ENDS);
    one->is_stack = next_number(r, 0, 1);
    one->loads = next_number(r, 0, 1);
    one->kinds = next_values(r, one->sources);
    one->operands = next_values(r, one->sources);
    one->column_of = next_values(r, one->targets);
    one->dead = next_values(r, one->killed);
    read_rows(r, one);
    one->read = next_values(r, one->sources);
    one->written = next_values(r, one->targets);
    check_numbers(r, one->column_of, one->targets, 0, one->columns);
    check_numbers(r, one->dead, one->killed, 0, locations);
    check_numbers(r, one->read, one->sources, NONE, locations);
    check_numbers(r, one->written, one->targets, NONE, locations);
}

static int is_passage(const struct block *b, const double *row)
{
    return row[LOAD] >= 0 && row[LOAD] < b->count && row[STORE] >= 0 && row[STORE] < b->count &&
           row[COLUMN] >= 0 && row[COLUMN] < b->instructions[(int32_t)row[STORE]].columns &&
           row[DISTANCE] >= 0 && row[DISTANCE] <= MOST_VALUES;
}

int read_block(struct arena *a, struct block *b, struct reader *words)
{
    b->count = next_number(words, 1, MOST_INSTRUCTIONS);
    b->locations = next_number(words, 1, MOST_LOCATIONS);
    b->stack_pointer = next_number(words, 0, b->locations - 1);
    b->stack_update = next_value(words);
    b->equal = next_value(words);
    b->instructions = take(a, (size_t)b->count, sizeof *b->instructions);
    if (a->failed)
        return NO_MEMORY;
    int32_t nodes = 0;
    for (int32_t n = 0; n < b->count && !words->bad; n++) {
        read_instruction(words, &b->instructions[n], b->locations);
        b->instructions[n].first = nodes;
        nodes += b->instructions[n].columns;
    }
    if (words->bad || words->at != words->end)
        return REFUSED;
    for (int32_t p = 0; p < b->passages; p++)
        if (!is_passage(b, &b->passage[p * PASSAGE_ROW]))
            return REFUSED;
    return 0;
}

/* What is known while the block is gone through. */
struct progress {
    const struct block *b;
    struct nodes *n;
    int32_t *last, *final; /* per location: the node that was written last, so far and at the end */
    int32_t *owner;        /* per node */
    struct input read[MOST_ENDS]; /* per source of an instruction: what it reads, NONE as `source` if nothing */
};

int32_t carried_number(const struct nodes *n, int32_t node, int32_t distance)
{
    int32_t number = 0;
    while (number < n->carried_count &&
           (n->carried[number].node != node || n->carried[number].distance != distance))
        number++;
    return number;
}

/* The input for a value of an earlier iteration. */
static int32_t earlier(struct nodes *n, int32_t node, int32_t distance)
{
    int32_t number = carried_number(n, node, distance);
    if (number == n->carried_count)
        n->carried[n->carried_count++] = (struct carried){node, distance};
    return -1 - number;
}

static void write(const struct instruction *one, int32_t *locations)
{
    for (int32_t k = 0; k < one->killed; k++)
        locations[(int32_t)one->dead[k]] = DEAD;
    for (int32_t t = 0; t < one->targets; t++)
        if (one->written[t] >= 0)
            locations[(int32_t)one->written[t]] = one->first + (int32_t)one->column_of[t];
}

/* What a load gets of a store of the block. */
static struct input from_memory(struct progress *p, int32_t number, double operand)
{
    for (int32_t n = p->b->passages - 1; n >= 0; n--) {
        const double *row = &p->b->passage[n * PASSAGE_ROW];
        if (row[LOAD] != number || row[OPERAND] != operand)
            continue;
        int32_t node = p->b->instructions[(int32_t)row[STORE]].first + (int32_t)row[COLUMN];
        int32_t distance = (int32_t)row[DISTANCE];
        return (struct input){distance ? earlier(p->n, node, distance) : node, 0, row[LATE]};
    }
    return (struct input){0, NONE, 0};
}

/* How much later than others a reader of a value gets it. */
static double lateness(const struct progress *p, int32_t number, int32_t source, int32_t writer)
{
    const struct block *b = p->b;
    const struct instruction *reader = &b->instructions[number];
    int32_t wrote = p->owner[writer];
    double late = 0;
    if (b->early && !b->early[2 * number + 1])
        late = b->early[2 * wrote];
    if (reader->read[source] == b->stack_pointer && reader->kinds[source] == SOURCE_REGISTER &&
        !reader->is_stack && b->instructions[wrote].is_stack)
        late += b->stack_update;
    return late;
}

static struct input from_register(struct progress *p, int32_t number, int32_t source)
{
    int32_t place = (int32_t)p->b->instructions[number].read[source];
    int is_earlier = p->last[place] == UNWRITTEN;
    int32_t writer = is_earlier ? p->final[place] : p->last[place];
    if (writer < 0)
        return (struct input){0, NONE, 0};
    double late = lateness(p, number, source, writer);
    return (struct input){is_earlier ? earlier(p->n, writer, 1) : writer, 0, late};
}

static void read_sources(struct progress *p, int32_t number)
{
    const struct instruction *one = &p->b->instructions[number];
    for (int32_t k = 0; k < one->sources; k++)
        if (one->read[k] >= 0)
            p->read[k] = from_register(p, number, k);
        else if (one->kinds[k] == SOURCE_DATA)
            p->read[k] = from_memory(p, number, one->operands[k]);
        else
            p->read[k] = (struct input){0, NONE, 0};
}

static void add_inputs(struct progress *p, const struct instruction *one)
{
    struct nodes *n = p->n;
    const double *at = one->rows;
    for (int32_t c = 0; c < one->columns; c++) {
        n->first_input[one->first + c] = n->input_count;
        for (int32_t pairs = (int32_t)*at++; pairs; pairs--, at += 2) {
            int32_t source = (int32_t)at[0];
            const struct input *read = &p->read[source];
            if (read->source != NONE)
                n->inputs[n->input_count++] = (struct input){read->node, source, at[1] + read->cycles};
        }
    }
}

/* How many there may be of everything. */
static void room(const struct block *b, size_t *inputs, size_t *sources)
{
    *inputs = *sources = 0;
    for (int32_t n = 0; n < b->count; n++) {
        *sources += (size_t)b->instructions[n].sources;
        *inputs += (size_t)(b->instructions[n].read - b->instructions[n].rows);
    }
}

int make_nodes(struct arena *a, const struct block *b, struct nodes *n)
{
    const struct instruction *end = &b->instructions[b->count - 1];
    struct progress p = {.b = b, .n = n};
    size_t inputs, sources;
    room(b, &inputs, &sources);
    *n = (struct nodes){.count = end->first + end->columns};
    n->first_input = take(a, (size_t)n->count + 1, sizeof *n->first_input);
    n->inputs = take(a, inputs, sizeof *n->inputs);
    n->carried = take(a, sources, sizeof *n->carried);
    p.owner = take(a, (size_t)n->count, sizeof *p.owner);
    p.last = take(a, 2 * (size_t)b->locations, sizeof *p.last);
    if (a->failed)
        return NO_MEMORY;
    p.final = p.last + b->locations;
    for (int32_t place = 0; place < 2 * b->locations; place++)
        p.last[place] = UNWRITTEN;
    for (int32_t number = 0; number < b->count; number++) {
        write(&b->instructions[number], p.final);
        for (int32_t c = 0; c < b->instructions[number].columns; c++)
            p.owner[b->instructions[number].first + c] = number;
    }
    for (int32_t number = 0; number < b->count; number++) {
        read_sources(&p, number);
        add_inputs(&p, &b->instructions[number]);
        write(&b->instructions[number], p.last);
    }
    n->first_input[n->count] = n->input_count;
    return n->carried_count > MOST_VALUES ? REFUSED : 0;
}
