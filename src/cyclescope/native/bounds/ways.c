/* The longest ways through one iteration, from every carried value to every other. */
#include "bounds.h"

/* Everything about the values: those that are carried, then those that only wait to get as old. */
struct ways {
    const struct nodes *n;
    struct carried *values;
    int32_t count, end_count, room;
    int32_t *older;      /* per value: the one that it becomes in the next iteration, or NONE */
    int32_t *end_of;     /* per node: its value of the iteration before, or NONE */
    int32_t *first_reader, *last_reader; /* per node, then per carried value */
    double *longest;     /* per node, of one start */
    int32_t *reached;    /* per node: one more than the start that it was reached from */
};

static int32_t value_number(const struct ways *w, int32_t node, int32_t distance)
{
    int32_t number = 0;
    while (number < w->count && (w->values[number].node != node || w->values[number].distance != distance))
        number++;
    return number;
}

static int add_delays(struct ways *w)
{
    for (int32_t number = 0; number < w->count; number++) {
        struct carried value = w->values[number];
        if (value.distance < 2)
            continue;
        int32_t newer = value_number(w, value.node, value.distance - 1);
        if (newer == w->room)
            return REFUSED;
        if (newer == w->count) {
            w->older[w->count] = NONE;
            w->values[w->count++] = (struct carried){value.node, value.distance - 1};
        }
        w->older[newer] = number;
    }
    return 0;
}

static void find_ends(struct ways *w)
{
    for (int32_t node = 0; node < w->n->count; node++)
        w->end_of[node] = NONE;
    for (int32_t number = 0; number < w->count; number++)
        if (w->values[number].distance == 1) {
            w->end_of[w->values[number].node] = number;
            w->end_count++;
        }
}

/* Where readers of an input's value are noted. */
static int32_t place_of(const struct nodes *n, int32_t node)
{
    return node >= 0 ? node : n->count - 1 - node;
}

static void find_readers(struct ways *w)
{
    const struct nodes *n = w->n;
    for (int32_t place = 0; place < n->count + n->carried_count; place++)
        w->first_reader[place] = w->last_reader[place] = NONE;
    for (int32_t node = 0; node < n->count; node++)
        for (int32_t i = n->first_input[node]; i < n->first_input[node + 1]; i++) {
            int32_t place = place_of(n, n->inputs[i].node);
            if (w->first_reader[place] == NONE)
                w->first_reader[place] = node;
            w->last_reader[place] = node;
        }
}

/* The longest way to a node from a carried value, if one leads there. */
static void reach(struct ways *w, int32_t start, int32_t node)
{
    for (int32_t i = w->n->first_input[node]; i < w->n->first_input[node + 1]; i++) {
        const struct input *one = &w->n->inputs[i];
        double from = 0;
        if (one->node >= 0 && w->reached[one->node] == start + 1)
            from = w->longest[one->node];
        else if (one->node != -1 - start)
            continue;
        if (w->reached[node] != start + 1 || from + one->cycles > w->longest[node])
            w->longest[node] = from + one->cycles;
        w->reached[node] = start + 1;
    }
}

static void add_ways(struct ways *w, int32_t start, struct edges *e)
{
    int32_t place = w->n->count + start, node = w->first_reader[place], last = w->last_reader[place];
    for (; node != NONE && node <= last; node++) {
        reach(w, start, node);
        if (w->reached[node] != start + 1)
            continue;
        if (w->last_reader[node] > last)
            last = w->last_reader[node];
        if (w->end_of[node] != NONE)
            e->all[e->total++] = (struct edge){w->end_of[node], w->longest[node]};
    }
}

/* How many values there are at most, with those that only wait. */
static int32_t most_values(const struct nodes *n)
{
    int32_t found = n->carried_count;
    for (int32_t number = 0; number < n->carried_count && found <= MOST_VALUES; number++)
        found += n->carried[number].distance - 1;
    return found;
}

static int prepare(struct arena *a, struct ways *w, const struct nodes *n)
{
    size_t places = (size_t)n->count + (size_t)n->carried_count;
    *w = (struct ways){.n = n, .count = n->carried_count};
    w->room = most_values(n);
    if (w->room > MOST_VALUES)
        return REFUSED;
    w->values = take(a, (size_t)w->room, sizeof *w->values);
    w->older = take(a, (size_t)w->room, sizeof *w->older);
    w->end_of = take(a, (size_t)n->count, sizeof *w->end_of);
    w->first_reader = take(a, places, sizeof *w->first_reader);
    w->last_reader = take(a, places, sizeof *w->last_reader);
    w->longest = take(a, (size_t)n->count, sizeof *w->longest);
    w->reached = take(a, (size_t)n->count, sizeof *w->reached);
    if (a->failed)
        return NO_MEMORY;
    for (int32_t number = 0; number < w->count; number++) {
        w->values[number] = n->carried[number];
        w->older[number] = NONE;
    }
    for (int32_t node = 0; node < n->count; node++)
        w->reached[node] = 0;
    return add_delays(w);
}

int make_edges(struct arena *a, const struct nodes *n, struct edges *e)
{
    struct ways w;
    int status = prepare(a, &w, n);
    if (status)
        return status;
    find_ends(&w);
    find_readers(&w);
    size_t most = (size_t)n->carried_count * (size_t)w.end_count + (size_t)w.count;
    *e = (struct edges){0};
    e->all = take(a, most, sizeof *e->all);
    e->first = take(a, (size_t)w.count + 1, sizeof *e->first);
    if (a->failed)
        return NO_MEMORY;
    for (int32_t number = 0; number < w.count; number++) {
        e->first[number] = e->total;
        if (number < n->carried_count)
            add_ways(&w, number, e);
        if (w.older[number] != NONE)
            e->all[e->total++] = (struct edge){w.older[number], 0};
    }
    e->first[w.count] = e->total;
    e->count = w.count;
    return 0;
}
