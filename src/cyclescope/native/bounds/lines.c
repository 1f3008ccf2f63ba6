/* Instructions as numbers, and which of them have to be followed to know where the block accesses memory. */
#include "search.h"

#define MOST_WIDTH 65536 /* bits */

static int64_t next_of(struct numbers *n)
{
    if (n->bad || n->at == n->end) {
        n->bad = 1;
        return 0;
    }
    return *n->at++;
}

static int32_t within(struct numbers *n, int32_t least, int32_t most)
{
    int64_t value = next_of(n);
    if (value < least || value > most) {
        n->bad = 1;
        return least;
    }
    return (int32_t)value;
}

static int32_t location_in(struct numbers *n, const struct lines *l, int32_t least)
{
    return within(n, least, l->locations - 1);
}

static void read_operand(struct numbers *n, const struct lines *l, struct line_operand *op)
{
    op->seen = within(n, SEEN_NOTHING, SEEN_IMMEDIATE);
    op->location = location_in(n, l, op->seen == SEEN_REGISTER ? 0 : NONE);
    op->flags = within(n, 0, 2 * OPERAND_UNREAD - 1);
    op->width = within(n, 0, MOST_WIDTH);
    op->amount = within(n, 0, MOST_WIDTH);
    op->address = NONE;
}

static void read_write(struct numbers *n, const struct lines *l, const struct line *line, struct line_write *write)
{
    write->position = within(n, NONE, line->operand_count - 1);
    write->location = location_in(n, l, 0);
    write->rule = within(n, NO_RULE, RULES - 1);
    write->pushed = within(n, -MOST_WIDTH, MOST_WIDTH);
    write->is_needed = 0;
}

static void read_access(struct numbers *n, const struct line *line, struct line_access *access)
{
    access->position = within(n, 0, line->operand_count - 1);
    access->size = within(n, 1, MOST_WIDTH);
    access->read = within(n, 0, 1);
    access->write = within(n, 0, 1);
    access->whole = within(n, 0, 1);
}

static void read_address(struct numbers *n, const struct lines *l, struct line *line, int32_t number)
{
    struct line_address *address = &line->addresses[number];
    address->position = within(n, 0, line->operand_count - 1);
    address->base = location_in(n, l, NONE);
    address->index = location_in(n, l, NONE);
    if (!n->bad)
        line->operands[address->position].address = number;
}

static int read_counts(struct arena *a, struct line *line, struct numbers *n)
{
    line->form = next_of(n);
    line->operand_count = within(n, 0, MOST_OPERANDS);
    line->read_count = within(n, 0, MOST_ENDS);
    line->write_count = within(n, 0, MOST_ENDS);
    line->access_count = within(n, 0, line->operand_count);
    line->address_count = within(n, 0, line->operand_count);
    line->operands = take(a, (size_t)line->operand_count, sizeof *line->operands);
    line->reads = take(a, (size_t)line->read_count, sizeof *line->reads);
    line->writes = take(a, (size_t)line->write_count, sizeof *line->writes);
    line->accesses = take(a, (size_t)line->access_count, sizeof *line->accesses);
    line->addresses = take(a, (size_t)line->address_count, sizeof *line->addresses);
    return a->failed ? NO_MEMORY : 0;
}

/* What all instructions of a form and its registers have. */
static int read_form(struct arena *a, const struct lines *l, struct line *line, struct numbers *n)
{
    if (read_counts(a, line, n))
        return NO_MEMORY;
    for (int32_t i = 0; i < line->operand_count; i++)
        read_operand(n, l, &line->operands[i]);
    for (int32_t i = 0; i < line->read_count; i++)
        line->reads[i] = location_in(n, l, 0);
    for (int32_t i = 0; i < line->write_count; i++)
        read_write(n, l, line, &line->writes[i]);
    for (int32_t i = 0; i < line->access_count; i++)
        read_access(n, line, &line->accesses[i]);
    for (int32_t i = 0; i < line->address_count; i++)
        read_address(n, l, line, i);
    for (int32_t i = 0; i < line->access_count && !n->bad; i++)
        n->bad |= line->operands[line->accesses[i].position].address == NONE;
    return 0;
}

/* What an instruction has of its own: immediates, and what addresses are made of besides registers. */
static void read_own(struct line *line, struct numbers *n)
{
    int64_t present = next_of(n);
    for (int32_t i = 0; i < line->operand_count; i++) {
        struct line_operand *op = &line->operands[i];
        op->has_immediate = present >> i & 1;
        op->immediate = op->has_immediate ? next_of(n) : 0;
    }
    for (int32_t i = 0; i < line->address_count; i++) {
        struct line_address *address = &line->addresses[i];
        address->constant = next_of(n);
        address->scale = next_of(n);
        address->writeback = within(n, NOT_WRITTEN_BACK, WRITTEN_AFTER);
        address->symbol = within(n, NONE, MOST_INSTRUCTIONS * MOST_OPERANDS);
        address->segment = within(n, NONE, MOST_INSTRUCTIONS * MOST_OPERANDS);
    }
}

int read_lines(struct arena *a, struct lines *l, struct numbers *forms, struct numbers *own)
{
    l->all = take(a, (size_t)l->count, sizeof *l->all);
    if (a->failed)
        return NO_MEMORY;
    for (int32_t n = 0; n < l->count && !forms->bad && !own->bad; n++) {
        if (read_form(a, l, &l->all[n], forms))
            return NO_MEMORY;
        if (!forms->bad)
            read_own(&l->all[n], own);
    }
    int rest = forms->at != forms->end || own->at != own->end;
    return forms->bad || own->bad || rest ? REFUSED : 0;
}

/* --- what has to be followed --- */

/* Sets of locations, a byte per location, and the last one for memory. */
struct sets {
    uint8_t *changed, *needed;
    int32_t memory;
};

static int stores(const struct line *line)
{
    int found = 0;
    for (int32_t n = 0; n < line->access_count; n++)
        found |= line->accesses[n].write;
    return found;
}

static int loads(const struct line *line)
{
    int found = 0;
    for (int32_t n = 0; n < line->access_count; n++)
        found |= line->accesses[n].read;
    return found;
}

/* Whether a line's addresses are made of a location of a set. */
static int is_made_of(const struct line *line, const uint8_t *set)
{
    int found = 0;
    for (int32_t n = 0; n < line->address_count; n++) {
        const struct line_address *address = &line->addresses[n];
        found |= address->base != NONE && set[address->base];
        found |= address->index != NONE && set[address->index];
    }
    return found;
}

static int add(uint8_t *set, int32_t location)
{
    int is_new = !set[location];
    set[location] = 1;
    return is_new;
}

/* What the result of a line is made of, if it is needed; whether that is new. */
static int add_sources(const struct line *line, struct sets *s)
{
    int wanted = 0, grown = 0;
    for (int32_t n = 0; n < line->write_count; n++)
        wanted |= s->needed[line->writes[n].location];
    if (wanted && loads(line))
        grown |= add(s->needed, s->memory);
    if (!wanted && !(s->needed[s->memory] && stores(line)))
        return grown;
    for (int32_t n = 0; n < line->read_count; n++)
        grown |= add(s->needed, line->reads[n]);
    return grown;
}

static void find_needed(const struct lines *l, struct sets *s)
{
    for (int32_t n = 0; n < l->count; n++)
        for (int32_t i = 0; i < l->all[n].address_count && l->all[n].access_count; i++) {
            const struct line_address *address = &l->all[n].addresses[i];
            if (address->base != NONE)
                add(s->needed, address->base);
            if (address->index != NONE)
                add(s->needed, address->index);
        }
    int grown;
    do {
        grown = 0;
        for (int32_t n = l->count - 1; n >= 0; n--)
            grown |= add_sources(&l->all[n], s);
    } while (grown);
}

static void mark(struct line *line, const struct sets *s)
{
    line->fixed = !is_made_of(line, s->changed);
    line->stores = s->needed[s->memory] && stores(line);
    for (int32_t n = 0; n < line->write_count; n++) {
        line->writes[n].is_needed = s->needed[line->writes[n].location];
        line->results |= line->writes[n].is_needed;
    }
}

static int is_changing(const struct lines *l, const struct sets *s)
{
    int found = 0;
    for (int32_t n = 0; n < l->count; n++)
        found |= l->all[n].access_count && is_made_of(&l->all[n], s->changed);
    return found;
}

/* Mark what has to be followed; `rounds` become 2 where all rounds are the same. */
int follow(struct arena *a, struct lines *l, int *rounds)
{
    size_t room = (size_t)l->locations + 1;
    struct sets s = {take(a, room, 1), take(a, room, 1), l->locations};
    if (a->failed)
        return NO_MEMORY;
    for (size_t n = 0; n < room; n++)
        s.changed[n] = s.needed[n] = 0;
    for (int32_t n = 0; n < l->count; n++) {
        struct line *line = &l->all[n];
        line->fixed = 1;
        line->stores = line->results = 0;
        for (int32_t i = 0; i < line->write_count; i++)
            add(s.changed, line->writes[i].location);
    }
    if (is_changing(l, &s)) {
        find_needed(l, &s);
        for (int32_t n = 0; n < l->count; n++)
            mark(&l->all[n], &s);
    }
    int same = 1;
    for (int32_t n = 0; n < l->count; n++)
        same &= !l->all[n].results && !l->all[n].stores && (l->all[n].fixed || !l->all[n].access_count);
    *rounds = same ? 2 : *rounds;
    return 0;
}
