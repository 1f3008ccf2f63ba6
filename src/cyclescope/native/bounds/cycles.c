/* The cycle of a graph with the greatest mean. */
#include "bounds.h"

#define UNSEEN (-1)

struct search {
    const struct edges *e;
    double equal;
    int32_t *part; /* per value: the strongly connected component, or UNSEEN */
    int32_t *members; /* of one component, sorted */
    int32_t count;
    int32_t *following, *path, *place; /* one way on per value; the way itself, the place of a value on it */
    double *length;
    /* of the search for components */
    int32_t *number, *low, *stack, *work, *next;
    int32_t seen, stacked, parts;
};

static int prepare(struct arena *a, struct search *s, const struct edges *e)
{
    size_t count = (size_t)e->count;
    int32_t **lists[] = {&s->part, &s->members, &s->following, &s->path, &s->place,
                         &s->number, &s->low, &s->stack, &s->work, &s->next};
    *s = (struct search){.e = e};
    for (size_t n = 0; n < sizeof lists / sizeof *lists; n++)
        *lists[n] = take(a, count, sizeof **lists[n]);
    s->length = take(a, count, sizeof *s->length);
    if (a->failed)
        return NO_MEMORY;
    for (int32_t v = 0; v < e->count; v++) {
        s->part[v] = s->number[v] = s->place[v] = UNSEEN;
        s->next[v] = e->first[v];
    }
    return 0;
}

/* --- strongly connected components, by Tarjan's search --- */

static void enter(struct search *s, int32_t value, int32_t *depth)
{
    s->number[value] = s->low[value] = s->seen++;
    s->stack[s->stacked++] = value;
    s->work[(*depth)++] = value;
}

static void leave(struct search *s, int32_t value)
{
    if (s->low[value] != s->number[value])
        return;
    int32_t member;
    do {
        member = s->stack[--s->stacked];
        s->part[member] = s->parts;
    } while (member != value);
    s->parts++;
}

static void lower(int32_t *low, int32_t other)
{
    if (other < *low)
        *low = other;
}

static void visit(struct search *s, int32_t root)
{
    int32_t depth = 0;
    enter(s, root, &depth);
    while (depth) {
        int32_t value = s->work[depth - 1];
        if (s->next[value] == s->e->first[value + 1]) {
            depth--;
            if (depth)
                lower(&s->low[s->work[depth - 1]], s->low[value]);
            leave(s, value);
            continue;
        }
        int32_t to = s->e->all[s->next[value]++].to;
        if (s->number[to] == UNSEEN)
            enter(s, to, &depth);
        else if (s->part[to] == UNSEEN)
            lower(&s->low[value], s->number[to]);
    }
}

/* --- the slowest cycle of one component --- */

static const struct edge *edge_between(const struct edges *e, int32_t from, int32_t to)
{
    for (int32_t n = e->first[from]; n < e->first[from + 1]; n++)
        if (e->all[n].to == to)
            return &e->all[n];
    return NULL;
}

/* The first of the longest edges to members of the same component. */
static int32_t longest_edge(const struct search *s, int32_t value)
{
    const struct edge *best = NULL;
    for (int32_t n = s->e->first[value]; n < s->e->first[value + 1]; n++) {
        const struct edge *one = &s->e->all[n];
        if (s->part[one->to] == s->part[value] && (!best || one->cycles > best->cycles))
            best = one;
    }
    return best ? best->to : NONE;
}

/* The cycle that one way on per value leads to: its values are in `path` from the place that is returned on. */
static int32_t end_of(struct search *s, int32_t value, int32_t *count)
{
    int32_t steps = 0;
    for (int32_t n = 0; n < s->count; n++)
        s->place[s->members[n]] = UNSEEN;
    while (value != NONE && s->place[value] == UNSEEN) {
        s->place[value] = steps;
        s->path[steps++] = value;
        value = s->following[value];
    }
    *count = steps;
    return value == NONE ? NONE : s->place[value];
}

static void turn_round(int32_t *values, int32_t count)
{
    for (int32_t n = 0; n < count / 2; n++) {
        int32_t value = values[n];
        values[n] = values[count - 1 - n];
        values[count - 1 - n] = value;
    }
}

/* The mean of a cycle, less than 0 where it is none. */
static double mean_of(const struct edges *e, const int32_t *cycle, int32_t count)
{
    double sum = 0;
    for (int32_t n = 0; n < count; n++) {
        const struct edge *edge = edge_between(e, cycle[n], cycle[(n + 1) % count]);
        if (!edge)
            return REFUSED;
        sum += edge->cycles;
    }
    return count ? sum / count : REFUSED;
}

/* Lengthen the ways by all edges once; the last value that grew, NONE where none did. */
static int32_t lengthen(struct search *s, double mean)
{
    int32_t changed = NONE;
    for (int32_t n = 0; n < s->count; n++) {
        int32_t from = s->members[n];
        for (int32_t k = s->e->first[from]; k < s->e->first[from + 1]; k++) {
            const struct edge *edge = &s->e->all[k];
            double reached = s->length[from] + edge->cycles - mean;
            if (s->part[edge->to] != s->part[from] || !(reached > s->length[edge->to] + s->equal))
                continue;
            s->length[edge->to] = reached;
            s->following[edge->to] = from; /* backwards */
            changed = edge->to;
        }
    }
    return changed;
}

/* A value from which the ways back lead into a cycle with a greater mean (Bellman and Ford), NONE if there is none. */
static int32_t back_into_slower(struct search *s, double mean)
{
    int32_t changed = NONE;
    for (int32_t n = 0; n < s->count; n++) {
        s->length[s->members[n]] = 0;
        s->following[s->members[n]] = NONE;
    }
    for (int32_t n = 0; n <= s->count; n++) {
        changed = lengthen(s, mean);
        if (changed == NONE)
            return NONE;
    }
    for (int32_t n = 0; n < s->count && changed != NONE; n++)
        changed = s->following[changed];
    return changed;
}

/* From any cycle to a slower one, until none is. */
static double slowest_mean(struct search *s)
{
    for (int32_t n = 0; n < s->count; n++)
        s->following[s->members[n]] = longest_edge(s, s->members[n]);
    int32_t count, begin = end_of(s, s->members[0], &count);
    double slowest = REFUSED;
    while (begin != NONE) {
        double mean = mean_of(s->e, &s->path[begin], count - begin);
        if (mean <= slowest) /* by rounding, or by an `equal` that is none: else the search would not end */
            return slowest;
        slowest = mean;
        int32_t back = back_into_slower(s, mean);
        if (back == NONE)
            return mean;
        begin = end_of(s, back, &count);
        if (begin != NONE)
            turn_round(&s->path[begin], count - begin);
    }
    return REFUSED;
}

static void gather(struct search *s, int32_t part)
{
    s->count = 0;
    for (int32_t v = 0; v < s->e->count; v++)
        if (s->part[v] == part)
            s->members[s->count++] = v;
}

double greatest_mean(struct arena *a, const struct edges *e, double equal)
{
    struct search s;
    double most = 0;
    if (prepare(a, &s, e))
        return NO_MEMORY;
    s.equal = equal;
    for (int32_t v = 0; v < e->count; v++) {
        if (s.number[v] == UNSEEN)
            visit(&s, v);
        const struct edge *own = edge_between(e, v, v);
        if (own && own->cycles > most)
            most = own->cycles;
    }
    for (int32_t part = 0; part < s.parts; part++) {
        gather(&s, part);
        double mean = s.count > 1 ? slowest_mean(&s) : 0;
        if (mean < 0)
            return mean;
        if (mean > most)
            most = mean;
    }
    return most;
}
