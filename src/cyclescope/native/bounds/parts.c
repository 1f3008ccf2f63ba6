/* Stores to parts of words: each has to read the rest of its word, and waits for what was just written to it. */
#include "search.h"

#define MOST_TURNS 4096
#define MOST_KEPT 65536 /* words */

/* A word of memory in a turn: the next turn finds it `moves` words further back. */
struct word {
    int32_t terms;
    int64_t number, moves;
};

struct part {
    struct word word;
    int is_part; /* whether a store leaves something of the word */
};

struct run {
    struct part *parts;
    int32_t count;
    double cycles;
};

/* When words were written last; `count` of them, of `room`. */
struct history {
    struct word *words;
    double *at;
    int32_t count, room;
};

struct state {
    struct history since; /* `at`: cycles since */
    double now;
};

static int is_same(const struct word *one, const struct word *other)
{
    return one->terms == other->terms && one->number == other->number && one->moves == other->moves;
}

static int is_written(const struct visits *v, const struct departed *run, int32_t terms, int64_t byte)
{
    for (int32_t n = run->first; n < run->first + run->count; n++) {
        const struct visit *one = &v->all[n];
        if (one->is_followed && one->store->terms == terms && one->start <= byte && byte < one->end)
            return 1;
    }
    return 0;
}

static void add_part(struct run *run, struct word word, int is_part)
{
    for (int32_t n = 0; n < run->count; n++)
        if (is_same(&run->parts[n].word, &word))
            return;
    run->parts[run->count++] = (struct part){word, is_part};
}

static void add_parts(const struct visits *v, const struct departed *departed, const struct visit *visit,
                      int64_t size, struct run *run)
{
    int64_t moves = floor_division(visit->store->step * v->period, size);
    if (!visit->is_followed || visit->start >= visit->end)
        return;
    for (int64_t number = floor_division(visit->start, size); number * size < visit->end; number++) {
        int is_part = 0;
        for (int64_t byte = number * size; byte < (number + 1) * size; byte++)
            is_part |= !is_written(v, departed, visit->store->terms, byte);
        add_part(run, (struct word){visit->store->terms, number, moves}, is_part);
    }
}

static int32_t most_words(const struct visits *v, const struct departed *departed, int64_t size)
{
    int64_t found = 0;
    for (int32_t n = departed->first; n < departed->first + departed->count; n++)
        found += v->all[n].store->size / size + 2;
    return (int32_t)found;
}

static int make_runs(struct arena *a, const struct visits *v, int64_t size, struct run *runs, int32_t *words)
{
    for (int32_t n = 0; n < v->run_count; n++) {
        const struct departed *departed = &v->runs[n];
        int32_t most = most_words(v, departed, size);
        runs[n] = (struct run){take(a, (size_t)most, sizeof *runs[n].parts), 0, departed->cycles};
        if (a->failed)
            return NO_MEMORY;
        for (int32_t k = departed->first; k < departed->first + departed->count; k++)
            add_parts(v, departed, &v->all[k], size, &runs[n]);
        *words += runs[n].count;
    }
    return 0;
}

static int32_t place_in(const struct history *h, const struct word *word)
{
    int32_t n = 0;
    while (n < h->count && !is_same(&h->words[n], word))
        n++;
    return n;
}

/* When a run has left, whose words are written then; less than 0 where they are too many. */
static double leave(struct history *h, const struct run *run, double now, const struct chunks *chunks)
{
    int waits = 0;
    for (int32_t n = 0; n < run->count; n++) {
        int32_t place = place_in(h, &run->parts[n].word);
        waits |= run->parts[n].is_part && place < h->count && now - h->at[place] < chunks->within;
    }
    now += waits ? chunks->longer : 0.0;
    for (int32_t n = 0; n < run->count; n++) {
        int32_t place = place_in(h, &run->parts[n].word);
        if (place == h->room)
            return REFUSED;
        h->words[place] = run->parts[n].word;
        h->at[place] = now;
        h->count += place == h->count;
    }
    return now + run->cycles;
}

/* What the next turn finds of what was written. */
static void move_on(struct history *h, double now, double within)
{
    int32_t kept = 0;
    for (int32_t n = 0; n < h->count; n++)
        if (now - h->at[n] < within) {
            h->words[kept] = h->words[n];
            h->words[kept].number -= h->words[kept].moves;
            h->at[kept++] = h->at[n];
        }
    h->count = kept;
}

static int is_state(const struct state *state, const struct history *h, double now)
{
    if (state->since.count != h->count)
        return 0;
    for (int32_t n = 0; n < h->count; n++) {
        int32_t place = place_in(&state->since, &h->words[n]);
        if (place == h->count || state->since.at[place] != now - h->at[n])
            return 0;
    }
    return 1;
}

static int keep(struct arena *a, struct state *state, const struct history *h, double now)
{
    struct history *since = &state->since;
    *since = (struct history){take(a, (size_t)h->count, sizeof *since->words),
                              take(a, (size_t)h->count, sizeof *since->at), h->count, h->count};
    if (a->failed)
        return NO_MEMORY;
    for (int32_t n = 0; n < h->count; n++) {
        since->words[n] = h->words[n];
        since->at[n] = now - h->at[n];
    }
    state->now = now;
    return 0;
}

/* One turn after the other, until a turn begins as another one did. */
static int take_turns(struct arena *a, const struct run *runs, int32_t count, struct history *h,
                      const struct chunks *chunks, double *cycles)
{
    struct state *states = take(a, MOST_TURNS, sizeof *states);
    double now = 0;
    if (a->failed)
        return NO_MEMORY;
    for (int32_t turn = 0; turn < MOST_TURNS; turn++) {
        move_on(h, now, chunks->within);
        for (int32_t first = 0; first < turn; first++)
            if (is_state(&states[first], h, now)) {
                *cycles = (now - states[first].now) / (turn - first);
                return 0;
            }
        if (keep(a, &states[turn], h, now))
            return NO_MEMORY;
        for (int32_t n = 0; n < count && now >= 0; n++)
            now = leave(h, &runs[n], now, chunks);
        if (now < 0)
            return REFUSED;
    }
    return REFUSED;
}

/* Cycles of a period in which stores leave, where parts of words wait. */
int cycles_of_parts(struct arena *a, const struct visits *v, const struct chunks *chunks, double *cycles)
{
    struct run *runs = take(a, (size_t)v->run_count, sizeof *runs);
    int32_t words = 0, parts = 0;
    if (a->failed || make_runs(a, v, chunks->word, runs, &words))
        return NO_MEMORY;
    *cycles = 0;
    for (int32_t n = 0; n < v->run_count; n++) {
        *cycles += runs[n].cycles;
        for (int32_t k = 0; k < runs[n].count; k++)
            parts |= runs[n].parts[k].is_part;
    }
    if (!parts)
        return 0;
    /* of every turn that still counts: one is a cycle at least */
    int64_t room = words * ((int64_t)chunks->within + 2);
    if (room > MOST_KEPT)
        return REFUSED;
    struct history h = {take(a, (size_t)room, sizeof *h.words), take(a, (size_t)room, sizeof *h.at), 0,
                        (int32_t)room};
    return a->failed ? NO_MEMORY : take_turns(a, runs, v->run_count, &h, chunks, cycles);
}
