/* The block, gone through a few times: which load reads what which store wrote. */
#include "search.h"

enum { RESULT = 3, STORED, NAME }; /* kinds of keys, behind those of values.c */

/* A store in a round. */
struct store {
    const struct access *access;
    int32_t round;
};

struct search {
    struct arena *a;
    const struct lines *lines;
    struct knowledge known;
    struct accesses last, before; /* of the last two rounds */
    struct store *stores;         /* of all rounds */
    int64_t *found;               /* ways through memory */
    int32_t store_count, found_count, in_flight, most_terms, rounds, most_rounds, per_round;
    int passes; /* whether loads may get what is stored */
};

/* --- values --- */

static const struct value *name_value(struct knowledge *k, int32_t name)
{
    begin_key(k, NAME);
    add_to_key(k, name);
    return unknown_of_key(k);
}

static const struct value *address_value(struct knowledge *k, const struct line_address *address)
{
    const struct value *value = number_value(k, address->constant);
    if (address->base != NONE)
        value = sum_of(k, value, register_value(k, address->base), 1);
    if (address->index != NONE)
        value = sum_of(k, value, register_value(k, address->index), address->scale);
    if (address->symbol != NONE)
        value = sum_of(k, value, name_value(k, address->symbol), 1);
    if (address->segment != NONE)
        value = sum_of(k, value, name_value(k, address->segment), 1);
    return value;
}

static const struct value *operand_value(struct knowledge *k, const struct sight *s, const struct line_operand *op)
{
    switch (op->seen) {
    case SEEN_MEMORY:
        return op->address == NONE ? NULL : loaded_value(k, s->addresses[op->address]);
    case SEEN_REGISTER:
        return register_value(k, op->location);
    case SEEN_ZERO:
        return number_value(k, 0);
    case SEEN_IMMEDIATE:
        return op->has_immediate ? number_value(k, op->immediate) : NULL;
    default:
        return NULL;
    }
}

/* The unknown that a line makes: the same whenever all that it depends on is the same. */
static const struct value *unknown_of(struct knowledge *k, const struct sight *s, int32_t kind, int32_t number)
{
    const struct line *line = s->line;
    const struct value *read[MOST_ENDS];
    for (int32_t n = 0; n < line->read_count; n++)
        read[n] = register_value(k, line->reads[n]);
    begin_key(k, kind);
    add_to_key(k, number);
    add_to_key(k, line->form);
    for (int32_t n = 0; n < line->operand_count; n++) {
        add_to_key(k, line->operands[n].has_immediate);
        add_to_key(k, line->operands[n].immediate);
        add_value_to_key(k, line->operands[n].flags & OPERAND_UNREAD ? NULL : s->operands[n]);
    }
    for (int32_t n = 0; n < line->read_count; n++)
        add_value_to_key(k, read[n]);
    return unknown_of_key(k);
}

static const struct line_address *moved_by(const struct line *line, int32_t location)
{
    for (int32_t n = 0; n < line->address_count; n++)
        if (line->addresses[n].writeback && line->addresses[n].base == location)
            return &line->addresses[n];
    return NULL;
}

/* What a register holds afterwards; a pointer is moved on by the stack or an address. */
static const struct value *result_value(struct search *s, const struct sight *seen, int32_t number)
{
    struct knowledge *k = &s->known;
    const struct line_write *write = &seen->line->writes[number];
    const struct line_address *moved = moved_by(seen->line, write->location);
    const struct value *value = NULL;
    if (write->pushed)
        value = sum_of(k, register_value(k, write->location), number_value(k, write->pushed), 1);
    else if (moved)
        value = written_back(k, seen, register_value(k, write->location), moved);
    if (!value && write->rule != NO_RULE)
        value = by_rule(k, seen, write->rule);
    return value && value->count <= s->most_terms ? value : unknown_of(k, seen, RESULT, number);
}

static const struct value *stored_of(struct search *s, const struct sight *seen, const struct line_access *access)
{
    const struct value *only = NULL;
    int32_t values = 0;
    for (int32_t n = 0; n < seen->line->operand_count; n++)
        if (!(seen->line->operands[n].flags & (OPERAND_IMPLICIT | OPERAND_MEMORY | OPERAND_ROLE)) &&
            seen->operands[n]) {
            only = seen->operands[n];
            values++;
        }
    return access->whole && values == 1 ? only : unknown_of(&s->known, seen, STORED, access->position);
}

/* --- accesses --- */

static int overlap(int64_t one, int32_t size, const struct access *other)
{
    int64_t start = other->address->constant;
    return one < start + other->size && start < one + size;
}

static void add_found(struct search *s, const struct access *load, const struct access *store, int64_t distance,
                      int64_t offset, int64_t between)
{
    int64_t *row = &s->found[FOUND_ROW * s->found_count++];
    const int64_t numbers[FOUND_ROW] = {load->number, load->operand, store->number, store->operand,
                                        distance, offset, between};
    for (int32_t n = 0; n < FOUND_ROW; n++)
        row[n] = numbers[n];
}

/* The youngest store that a load reads, if it may be in flight. */
static void load(struct search *s, int32_t round, struct access *access)
{
    int64_t at = access->address->constant;
    for (int32_t n = s->store_count - 1; n >= 0 && s->store_count - n <= s->in_flight; n--) {
        const struct store *store = &s->stores[n];
        if (!same_terms(store->access->address, access->address) || !overlap(at, access->size, store->access))
            continue;
        add_found(s, access, store->access, round - store->round, at - store->access->address->constant,
                  s->store_count - n - 1);
        access->is_found = 1;
        return;
    }
}

static struct access *add_access(struct search *s, const struct sight *seen, int32_t number,
                                 const struct line_access *one, int write)
{
    const struct value *address = seen->addresses[seen->line->operands[one->position].address];
    struct access *access = &s->last.all[s->last.count++];
    *access = (struct access){
        .number = number, .operand = one->position, .size = one->size, .write = write, .address = address};
    s->known.odd |= address->constant > MOST_ADDRESS || address->constant < -MOST_ADDRESS;
    return access;
}

static void add_loads(struct search *s, const struct sight *seen, int32_t number, int32_t round, int is_last)
{
    for (int32_t n = 0; n < seen->line->access_count; n++)
        if (seen->line->accesses[n].read) {
            struct access *access = add_access(s, seen, number, &seen->line->accesses[n], 0);
            if (s->passes && is_last && !s->known.odd)
                load(s, round, access);
        }
}

static void add_stores(struct search *s, const struct sight *seen, int32_t number, int32_t round,
                       const struct value *const *stored)
{
    for (int32_t n = 0; n < seen->line->access_count; n++)
        if (seen->line->accesses[n].write) {
            const struct access *access = add_access(s, seen, number, &seen->line->accesses[n], 1);
            s->stores[s->store_count++] = (struct store){access, round};
            if (stored[n])
                store_value(&s->known, access->address, stored[n]);
        }
}

/* Write the registers of a line, and find what it stores, by access. */
static void write_results(struct search *s, struct sight *seen, const struct value **stored)
{
    struct knowledge *k = &s->known;
    const struct line *line = seen->line;
    const struct value *written[MOST_ENDS];
    for (int32_t n = 0; n < line->operand_count; n++)
        seen->operands[n] = operand_value(k, seen, &line->operands[n]);
    for (int32_t n = 0; n < line->write_count; n++)
        written[n] = line->writes[n].is_needed ? result_value(s, seen, n) : NULL;
    for (int32_t n = 0; n < line->access_count; n++)
        if (line->stores && line->accesses[n].write)
            stored[n] = stored_of(s, seen, &line->accesses[n]);
    for (int32_t n = 0; n < line->write_count; n++)
        if (written[n])
            k->registers[line->writes[n].location] = written[n];
}

static void step(struct search *s, int32_t number, int32_t round, int is_last)
{
    const struct line *line = &s->lines->all[number];
    const struct value *stored[MOST_OPERANDS] = {NULL};
    struct sight seen = {.line = line};
    for (int32_t n = 0; n < line->address_count; n++)
        seen.addresses[n] = address_value(&s->known, &line->addresses[n]);
    add_loads(s, &seen, number, round, is_last);
    if (line->results || line->stores)
        write_results(s, &seen, stored);
    add_stores(s, &seen, number, round, stored);
}

static int go_through(struct search *s)
{
    for (int32_t round = 0; round < s->rounds; round++) {
        s->before = s->last;
        s->last = (struct accesses){take(s->a, (size_t)s->per_round, sizeof *s->last.all), 0};
        if (s->a->failed)
            return NO_MEMORY;
        for (int32_t n = 0; n < s->lines->count; n++) {
            const struct line *line = &s->lines->all[n];
            if (line->access_count || line->results)
                step(s, n, round, round == s->rounds - 1);
            if (s->a->failed || s->known.odd)
                return s->a->failed ? NO_MEMORY : REFUSED;
        }
    }
    return 0;
}

/* How the accesses of the last round moved on since the one before. */
static void find_steps(struct search *s)
{
    for (int32_t n = 0; n < s->last.count; n++) {
        struct access *access = &s->last.all[n];
        const struct access *old = &s->before.all[n];
        access->is_followed = same_terms(access->address, old->address);
        access->is_in_table = !access->is_followed && shares_terms(access->address, old->address);
        access->step = access->is_followed ? access->address->constant - old->address->constant : 0;
        for (access->terms = 0; !same_terms(s->last.all[access->terms].address, access->address);)
            access->terms++;
    }
}

/* The nearest store that a load reaches after more iterations than are gone through. */
static void look_further(struct search *s, const struct access *load)
{
    const struct access *source = NULL;
    int64_t best = INT64_MAX, at = load->address->constant;
    for (int32_t n = 0; n < s->last.count; n++) {
        const struct access *store = &s->last.all[n];
        if (!store->write || !store->is_followed || store->step != load->step ||
            !same_terms(store->address, load->address))
            continue;
        int64_t about = floor_division(store->address->constant - at, load->step);
        for (int64_t distance = about; distance <= about + 1; distance++)
            if (distance >= s->most_rounds && distance < best &&
                overlap(at + distance * load->step, load->size, store)) {
                best = distance;
                source = store;
            }
    }
    if (!source || best > FARTHEST)
        return;
    int64_t between = best * s->store_count / s->most_rounds;
    if (between <= s->in_flight)
        add_found(s, load, source, best, at + best * load->step - source->address->constant, between);
}

static void find_further(struct search *s)
{
    if (s->store_count > s->in_flight)
        return;
    for (int32_t n = 0; n < s->last.count; n++) {
        const struct access *one = &s->last.all[n];
        if (!one->write && one->step && !one->is_found)
            look_further(s, one);
    }
}

/* --- everything together --- */

static void count_accesses(struct search *s, int *loads, int *stores)
{
    *loads = *stores = s->per_round = 0;
    for (int32_t n = 0; n < s->lines->count; n++)
        for (int32_t i = 0; i < s->lines->all[n].access_count; i++) {
            const struct line_access *one = &s->lines->all[n].accesses[i];
            *loads |= one->read;
            *stores |= one->write;
            s->per_round += one->read + one->write;
        }
}

static int64_t count_loads(const struct lines *l)
{
    int64_t found = 0;
    for (int32_t n = 0; n < l->count; n++)
        for (int32_t i = 0; i < l->all[n].access_count; i++)
            found += l->all[n].accesses[i].read;
    return found;
}

static int find_cycles(struct search *s, const struct memory_core *core, int loads, int stores, struct memory *out)
{
    int status = 0;
    if (stores && core->chunks.size)
        status = cycles_of_chunks(s->a, &s->last, &core->chunks, &out->chunks);
    if (!status && stores && core->lines.size) {
        double cycles;
        status = cycles_of_lines(s->a, &s->last, &core->lines, &cycles);
        out->chunks = !status && cycles > out->chunks ? cycles : out->chunks;
    }
    if (!status && loads && core->banks.width)
        status = cycles_of_banks(s->a, &s->last, &core->banks, &out->banks);
    double crossing[2] = {0, 0};
    if (loads && core->crossing.line) {
        crossing[0] = cycles_of_crossing(&s->last, 0, &core->crossing);
        out->longer = longer_across(&s->last, &core->crossing);
    }
    if (stores && core->store_crossing.line)
        crossing[1] = cycles_of_crossing(&s->last, 1, &core->store_crossing);
    out->crossing = crossing[1] > crossing[0] ? crossing[1] : crossing[0];
    return status;
}

static int search(struct search *s, struct lines *l, const struct memory_core *core, struct memory *out)
{
    int loads, stores;
    count_accesses(s, &loads, &stores);
    s->passes = loads && stores;
    int asked = s->passes || (stores && (core->chunks.size || core->lines.size || core->store_crossing.line)) ||
                (loads && (core->banks.width || core->crossing.line));
    if (!asked)
        return 0;
    s->stores = take(s->a, (size_t)s->per_round * (size_t)s->rounds, sizeof *s->stores);
    int status = know(&s->known, s->a, l->locations);
    if (!status)
        status = follow(s->a, l, &s->rounds);
    if (!status)
        status = go_through(s);
    if (status)
        return status;
    find_steps(s);
    if (s->passes)
        find_further(s);
    out->found = s->found_count;
    return find_cycles(s, core, loads, stores, out);
}

static int is_core(const struct memory_core *c)
{
    return c->in_flight >= 0 && c->in_flight <= MOST_IN_FLIGHT && c->rounds > 1 && c->rounds <= MOST_ROUNDS &&
           c->most_terms >= 0 && c->most_terms <= MOST_SUM && c->locations > 0 && c->locations < MOST_LOCATIONS &&
           c->chunks.size >= 0 && c->chunks.size <= MOST_BLOCK && c->chunks.most > 0 &&
           c->chunks.word >= 0 && c->chunks.word <= MOST_BLOCK && c->chunks.within >= 0 &&
           c->chunks.within <= MOST_BLOCK && c->lines.size >= 0 && c->lines.size <= MOST_BLOCK &&
           c->lines.many >= 0 && c->lines.many <= MOST_BLOCK && c->banks.width >= 0 &&
           c->banks.period >= c->banks.width && c->banks.period <= MOST_BLOCK && c->crossing.line >= 0 &&
           c->crossing.line <= MOST_BLOCK && c->store_crossing.line >= 0 && c->store_crossing.line <= MOST_BLOCK;
}

/* `forms` are instructions by their form and registers, `own` what each has of its own, as `depend/compiled/ways.py`
 * makes them. `found` has room for a row per load. */
EXPORT int bounds_memory(const int64_t *forms, int64_t form_count, const int64_t *own, int64_t own_count,
                         int64_t instructions, const struct memory_core *core, int64_t *found, int64_t rows,
                         struct memory *out)
{
    struct arena a = {0};
    struct numbers first = {forms, forms + form_count, 0}, second = {own, own + own_count, 0};
    struct lines lines = {0};
    struct search s = {.a = &a, .lines = &lines, .found = found};
    *out = (struct memory){0};
    if (instructions < 1 || instructions > MOST_INSTRUCTIONS || form_count < 0 || own_count < 0 || !is_core(core))
        return REFUSED;
    lines.count = (int32_t)instructions;
    lines.locations = (int32_t)core->locations;
    s.in_flight = (int32_t)core->in_flight;
    s.rounds = s.most_rounds = (int32_t)core->rounds;
    s.most_terms = (int32_t)core->most_terms;
    int status = read_lines(&a, &lines, &first, &second);
    if (!status)
        status = count_loads(&lines) > rows ? REFUSED : search(&s, &lines, core, out);
    release(&a);
    return status;
}
