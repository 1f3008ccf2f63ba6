/* What the loads and stores of an iteration keep busy. Unknown parts of addresses are taken to be aligned; pointers
 * that move on visit places in turn. */
#include "search.h"

#define MOST_VISITS 65536

static int64_t divisor(int64_t a, int64_t b)
{
    for (a = a < 0 ? -a : a; a;) {
        int64_t rest = b % a;
        b = a;
        a = rest;
    }
    return b;
}

/* Iterations after which an access is at the same place in an aligned block of so many bytes. */
static int64_t period_of(int64_t step, int64_t size)
{
    return size / divisor(step, size);
}

/* The first and the last aligned block of so many bytes that an access has bytes in. */
static void blocks_of(const struct access *access, int64_t step, int64_t number, int64_t size, int64_t *first,
                      int64_t *last)
{
    int64_t at = access->address->constant + number * step;
    *first = floor_division(at, size);
    *last = floor_division(at + access->size - 1, size);
}

/* --- lines --- */

static double share_across(const struct access *access, int64_t line)
{
    int64_t rounds = period_of(access->step, line), across = 0;
    for (int64_t number = 0; number < rounds; number++) {
        int64_t first, last;
        blocks_of(access, access->step, number, line, &first, &last);
        across += last > first;
    }
    return (double)across / (double)rounds;
}

/* What is known of loads of such a size by themselves, or NULL. */
static const struct wide_loads *wide_as(const struct access *access, const struct crossing *crossing)
{
    for (int32_t n = 0; n < WIDE_SIZES; n++)
        if (crossing->wide[n].size && crossing->wide[n].size == access->size)
            return &crossing->wide[n];
    return NULL;
}

/* By how much longer one takes by itself across lines. */
static double wide_longer(const struct access *access, const struct wide_loads *wide)
{
    int64_t half = access->size / 2, step = access->is_followed ? access->step : 0;
    int halves = access->is_followed && !(access->address->constant % half) && !(step % half);
    return (halves ? wide->halves : wide->across) - wide->inside;
}

/* What a load takes by itself, of which a share is across lines; 0 for one that is not known to take longer. */
static double wide_cycles(const struct access *access, const struct crossing *crossing, double share)
{
    const struct wide_loads *wide = wide_as(access, crossing);
    return wide ? wide->inside + share * wide_longer(access, wide) : 0;
}

double longer_across(const struct accesses *moving, const struct crossing *crossing)
{
    double longer = 0;
    for (int32_t n = 0; n < moving->count; n++) {
        const struct access *one = &moving->all[n];
        if (one->write || !one->is_followed)
            continue;
        const struct wide_loads *wide = wide_as(one, crossing);
        longer += share_across(one, crossing->line) * (wide ? wide_longer(one, wide) : crossing->extra);
    }
    return longer;
}

double cycles_of_crossing(const struct accesses *moving, int write, const struct crossing *crossing)
{
    double share = 0, wide = 0;
    int64_t count = 0;
    for (int32_t n = 0; n < moving->count; n++) {
        const struct access *one = &moving->all[n];
        if (one->write != write)
            continue;
        count++;
        double across = one->is_followed ? share_across(one, crossing->line) : 0;
        share += across;
        wide += wide_cycles(one, crossing, across);
    }
    double all = (double)count * crossing->each + share * crossing->extra;
    return share ? all > wide ? all : wide : 0;
}

/* --- banks --- */

static void add_to_banks(const struct access *load, const struct banks *banks, double *used, int64_t count)
{
    int64_t step = load->is_followed ? load->step : banks->width; /* in all, in turn */
    int64_t rounds = period_of(step, banks->period);
    for (int64_t number = 0; number < rounds; number++) {
        int64_t first, last;
        blocks_of(load, step, number, banks->width, &first, &last);
        if (last > first + count - 1)
            last = first + count - 1;
        for (int64_t place = first; place <= last; place++)
            used[place - floor_division(place, count) * count] += 1.0 / (double)rounds;
    }
}

int cycles_of_banks(struct arena *a, const struct accesses *moving, const struct banks *banks, double *cycles)
{
    int64_t count = banks->period / banks->width;
    double *used = take(a, (size_t)count, sizeof *used), most = 0;
    if (a->failed)
        return NO_MEMORY;
    for (int64_t n = 0; n < count; n++)
        used[n] = 0;
    for (int32_t n = 0; n < moving->count; n++)
        if (!moving->all[n].write)
            add_to_banks(&moving->all[n], banks, used, count);
    for (int64_t n = 0; n < count; n++)
        most = used[n] > most ? used[n] : most;
    *cycles = most / banks->most;
    return 0;
}

/* --- chunks of stores --- */

static int is_same_chunk(const struct visit *one, const struct visit *other)
{
    if (one->is_followed != other->is_followed || one->alone != other->alone || one->at != other->at ||
        one->store->terms != other->store->terms)
        return 0;
    if (!one->is_followed)
        return one->number == other->number;
    return !one->alone || (one->number == other->number && one->store->number == other->store->number &&
                           one->store->operand == other->store->operand);
}

static void visit_chunks(struct visits *v, const struct access *store, int64_t number, const struct chunks *chunks)
{
    int64_t first, last, start = store->address->constant + number * store->step, end = start + store->size;
    if (!store->is_followed) {
        v->all[v->count++] = (struct visit){store, number, 0, 0, 0, 0, 0};
        return;
    }
    blocks_of(store, store->step, number, chunks->size, &first, &last);
    for (int64_t at = first; at <= last; at++) {
        int64_t from = at * chunks->size, to = from + chunks->size;
        int alone = last > first && !chunks->joins;
        v->all[v->count++] = (struct visit){
            store, number, at, start > from ? start : from, end < to ? end : to, alone, 1};
    }
}

static int64_t run_end(const struct visits *v, int64_t first)
{
    int64_t next = first + 1;
    while (next < v->count && is_same_chunk(&v->all[first], &v->all[next]))
        next++;
    return next;
}

/* What follows each other leaves together: what begins in the period counts. */
static void find_runs(struct visits *v, const struct chunks *chunks)
{
    for (int32_t first = 0, next; first < v->count; first = next) {
        int64_t number = v->all[first].number;
        next = (int32_t)run_end(v, first);
        v->runs_in_all++;
        if (number < 0 || number >= v->period)
            continue;
        int64_t cycles = (next - first + chunks->most - 1) / chunks->most;
        v->runs[v->run_count++] = (struct departed){first, next - first, (double)cycles};
    }
}

/* What begins in a period may go on in the next; so many periods come before it. */
static int make_visits(struct arena *a, const struct accesses *moving, const struct chunks *chunks, int64_t before,
                       struct visits *v)
{
    int64_t places = 0, rounds;
    *v = (struct visits){0};
    for (int32_t n = 0; n < moving->count; n++)
        if (moving->all[n].write) {
            int64_t period = period_of(moving->all[n].step, chunks->size);
            v->period = period > v->period ? period : v->period;
            places += moving->all[n].size / chunks->size + 2;
        }
    rounds = (before + 2) * v->period;
    if (rounds * places > MOST_VISITS)
        return REFUSED;
    v->all = take(a, (size_t)(rounds * places), sizeof *v->all);
    v->runs = take(a, (size_t)(rounds * places), sizeof *v->runs);
    if (a->failed)
        return NO_MEMORY;
    for (int64_t number = -before * v->period; number < 2 * v->period; number++)
        for (int32_t n = 0; n < moving->count; n++)
            if (moving->all[n].write)
                visit_chunks(v, &moving->all[n], number, chunks);
    find_runs(v, chunks);
    return 0;
}

/* Whether stores write nothing but whole words of so many bytes, or are not followed. */
static int are_whole(const struct accesses *moving, int64_t word)
{
    for (int32_t n = 0; n < moving->count; n++) {
        const struct access *one = &moving->all[n];
        if (one->write && one->is_followed && (one->address->constant | one->size | one->step) % word)
            return 0;
    }
    return 1;
}

int cycles_of_chunks(struct arena *a, const struct accesses *moving, const struct chunks *chunks, double *cycles)
{
    struct visits v;
    int status = make_visits(a, moving, chunks, 1, &v);
    if (status)
        return status;
    if (v.runs_in_all == 1) {
        double rounds = (double)(3 * v.period);
        *cycles = chunks->most < chunks->size ? v.count / rounds / (double)chunks->most : 0;
        return 0;
    }
    if (chunks->word && !are_whole(moving, chunks->word))
        status = cycles_of_parts(a, &v, chunks, cycles);
    else
        for (int32_t n = 0; n < v.run_count; n++)
            *cycles += v.runs[n].cycles;
    *cycles /= (double)v.period;
    return status;
}

/* --- lines of stores --- */

/* Whether none of the lines stored to latest is that of a visit; it is the latest then. */
static int make_latest(const struct visits *v, int64_t *latest, int64_t *count, int64_t most, int64_t visit)
{
    int64_t place = 0;
    while (place < *count && !is_same_chunk(&v->all[latest[place]], &v->all[visit]))
        place++;
    int is_new = place == *count;
    if (is_new && *count < most)
        (*count)++;
    else if (is_new)
        place = 0;
    for (; place + 1 < *count; place++)
        latest[place] = latest[place + 1];
    latest[*count - 1] = visit;
    return is_new;
}

static int is_all_written(const struct visits *v, int64_t first, int64_t next, int64_t size)
{
    for (int64_t at = v->all[first].at * size, end = at + size; at < end; at++) {
        int64_t n = first;
        while (n < next && (at < v->all[n].start || at >= v->all[n].end))
            n++;
        if (n == next)
            return 0;
    }
    return 1;
}

/* What a line takes in addition for its stores and those to the line before it. */
static double line_longer(const struct store_lines *lines, int64_t stores)
{
    for (int32_t n = 0; n < STORE_ROWS; n++)
        if (2 * lines->rows[n].stores >= stores)
            return lines->rows[n].longer;
    return lines->rows[STORE_ROWS - 1].longer;
}

int cycles_of_lines(struct arena *a, const struct accesses *moving, const struct store_lines *lines, double *cycles)
{
    struct chunks chunks = {.size = lines->size, .most = 1, .joins = 1};
    struct visits v;
    int status = make_visits(a, moving, &chunks, 2, &v);
    int64_t *latest = take(a, (size_t)lines->many, sizeof *latest), count = 0, before = 0;
    double taken = 0, longer = 0;
    if (status || a->failed)
        return status ? status : NO_MEMORY;
    for (int64_t first = 0, next; first < v.count; first = next) {
        next = run_end(&v, first);
        int is_new = make_latest(&v, latest, &count, lines->many - 1, first);
        if (v.all[first].number >= 0 && v.all[first].number < v.period) {
            taken += (double)(next - first) * lines->each;
            if (is_new && before) {
                double alone = lines->alone - (double)(next - first) * lines->each;
                double more = is_all_written(&v, first, next, lines->size) ? lines->whole
                                                                           : line_longer(lines, before + next - first);
                if (v.all[first].store->is_in_table && more > alone)
                    more = alone > 0 ? alone : 0;
                longer += more;
            }
        }
        before = is_new ? next - first : 0;
    }
    *cycles = longer ? (taken + longer) / (double)v.period : 0;
    return 0;
}
