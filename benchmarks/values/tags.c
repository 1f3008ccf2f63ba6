/* Tags: which bits come out differently. */
#define _GNU_SOURCE
#include "trace.h"
#include <string.h>

void add_differences(struct whole *to, const struct whole *a, const struct whole *b)
{
    const size_t registers = used / 8, memory = with_memory ? MEMORY_BYTES / 8 : 0;
    uint64_t *t = (uint64_t *)&to->registers;
    const uint64_t *x = (const uint64_t *)&a->registers, *y = (const uint64_t *)&b->registers;
    for (size_t n = 0; n < registers; n++)
        t[n] |= x[n] ^ y[n];
    t = (uint64_t *)to->memory, x = (const uint64_t *)a->memory, y = (const uint64_t *)b->memory;
    for (size_t n = 0; n < memory; n++)
        t[n] |= x[n] ^ y[n];
}

static int meets(const struct whole *a, const struct whole *b)
{
    static struct whole both;
    uint8_t unused[LOCATIONS / 8];
    copy_whole(&both, a);
    combine(&both, b, 0);
    return locations_of(&both, unused);
}

/* What is tagged after an instruction, or of registers when some of it are `enough`: a tag is on whole ones.
 * Returns the trials that ran without a fault. */
static unsigned through(const uint8_t *code, const struct whole *in, const struct whole *tag,
                        const struct whole *enough, struct whole *after)
{
    static struct whole base, changed, out;
    unsigned ran = 0;
    if (run(code, in, &base))
        return 0;
    collect_tagged(tag);
    for (unsigned trial = 0; trial < TRIALS; trial++) {
        copy_whole(&changed, in);
        change_tagged(&changed, trial);
        if (run(code, &changed, &out))
            continue;
        add_differences(after, &base, &out);
        if (++ran % 4 == 0 && enough && meets(after, enough))
            break;
    }
    return ran;
}

/* What an instruction writes: bits that differ from what was there, whatever that was; some of `enough` are.
 * `fresh` are registers that it does not read. */
void written_by(const uint8_t *code, const struct whole *in, int what, const uint8_t *keep,
                const uint8_t *fresh, const struct whole *enough, struct whole *written)
{
    static struct whole before, after;
    clear(written);
    for (unsigned n = 0; n < 3 * KINDS && !(enough && meets(written, enough)); n++) {
        copy_whole(&before, in);
        randomise(&before, what, keep, n % KINDS);
        randomise_all(&before, fresh);
        if (run(code, &before, &after) == 0)
            add_differences(written, &before, &after);
    }
}

/* A core waits for whole registers: a tag in part of one is a tag on it. NZCV is one register;
 * of x86-64 a helper's flags are, which are those of a comparison. */
void widen(struct whole *tag, int helper)
{
    uint8_t found[LOCATIONS / 8];
    static struct whole all;
    locations_of(tag, found);
#if defined __aarch64__
    for (unsigned n = 0; n < 4; n++)
        if (is_set(found, A64_FLAGS + n))
            for (unsigned i = 0; i < 4; i++)
                set(found, A64_FLAGS + i);
#endif
#if defined __x86_64__
    for (unsigned n = 0; n < 6; n++)
        if (helper && is_set(found, X86_FLAGS + n))
            for (unsigned i = 0; i < 6; i++)
                set(found, X86_FLAGS + i);
#endif
    (void)helper;
#if !defined __riscv
    for (unsigned n = 0; n < 32 * VECTOR_PARTS; n++)
        if (is_set(found, VECTOR_FIRST + n))
            for (unsigned i = n % 32; i < 32 * VECTOR_PARTS; i += 32)
                set(found, VECTOR_FIRST + i);
#endif
    for (unsigned n = 0; n < AREAS; n++)
        found[n / 8] &= (uint8_t)~(1u << n % 8);
    mask_of(&all, found);
    combine(tag, &all, 1);
}

/* --- one instruction ------------------------------------------------------------------------------ */

/* Leave out areas that the form reads its other operands from. */
static void without_others(const struct item *item, struct whole *outside)
{
    const uint8_t own = item->head.kind == TESTED ? item->head.source[0] & ((1u << AREAS) - 1) : 0;
    for (unsigned n = 0; own && n < AREAS; n++) {
        size_t size;
        uint8_t *at = bytes_of(outside, n, &size);
        if (!(own >> n & 1))
            memset(at, 0, size);
    }
}

/* Bytes of memory that a load reads beside those that are tagged: a store that covers it all would have
 * tagged or written them. `stored` are bytes that the last store wrote. */
void look_at_memory(const struct item *item, const struct whole *in, const struct whole *tag,
                           const struct whole *stored, struct event *event)
{
    static struct whole outside, found;
    uint8_t where[LOCATIONS / 8];
    clear(&outside);
    int any = 0;
    for (size_t i = 0; with_memory && i < MEMORY_BYTES; i++) {
        outside.memory[i] = stored->memory[i] ? 0 : UINT8_MAX;
        any |= tag->memory[i] && stored->memory[i];
        event->covered += stored->memory[i] != 0;
    }
    if (!any)
        return;
    without_others(item, &outside);
    clear(&found);
    through(item->at, in, &outside, NULL, &found);
    memset(found.memory, 0, MEMORY_BYTES);
    if (locations_of(&found, where)) {
        event->flags |= UNCOVERED;
        event->read = 1;
    }
}

/* Only memory that the tag's bits are in: whether the instruction reads any of it. */
int reads_memory(const struct item *item, const struct whole *in, const struct whole *tag)
{
    static struct whole part, found;
    uint8_t where[LOCATIONS / 8];
    clear(&part);
    memcpy(part.memory, tag->memory, MEMORY_BYTES);
    clear(&found);
    through(item->at, in, &part, NULL, &found);
    memset(found.memory, 0, MEMORY_BYTES);
    return locations_of(&found, where);
}

static int gained(const struct whole *after, const struct whole *written, const struct item *item)
{
    static struct whole wanted;
    if (item->head.kind == TESTED) {
        mask_of(&wanted, item->head.target);
        return meets(after, &wanted);
    }
    return meets(after, written);
}

/* Compare-and-swap, and the greater of two, store something new for few values. */
enum { EXCHANGES = 96 };
enum { EDGES = 640 }; /* tries: few of them meet a carry in the width of the form */
static int exchanges(const struct item *item)
{
    return item->head.uses & LOADS && item->head.uses & STORES;
}

/* Those of x86-64 always store, and Linux slows down locked ones that are not aligned. */
static int needs_exchanges(const struct item *item)
{
#if defined __x86_64__
    if (item->head.uses & AN_ADDRESS)
        return 0;
#endif
    return exchanges(item) && item->head.target[0] & 7;
}

/* What reads and writes memory, with other values with which it does: what it writes there. */
void exchanged_by(const struct request *r, const struct item *item, const struct whole *in,
                  struct whole *written)
{
    static struct whole before, after;
    for (unsigned n = 0; n < EXCHANGES && exchanges(item); n++) {
        copy_whole(&before, in);
        randomise(&before, MEMORY | REGISTERS, r->keep, MATCHING);
        if (run(item->at, &before, &after) == 0)
            add_differences(written, &before, &after);
    }
}

/* The tag's way through such an instruction to memory. */
static void through_exchange(const struct request *r, const struct item *item, const struct whole *in,
                             const struct whole *tag, struct whole *after)
{
    static struct whole before, out, more;
    for (unsigned n = 0; n < EXCHANGES; n++) {
        copy_whole(&before, in);
        randomise(&before, MEMORY | REGISTERS, r->keep, MATCHING);
        if (run(item->at, &before, &out) || memcmp(before.memory, out.memory, MEMORY_BYTES) == 0)
            continue;
        clear(&more);
        through(item->at, &before, tag, NULL, &more);
        combine(after, &more, 1);
    }
}

static int changes_something(const uint8_t *code, const struct whole *in, const uint8_t *keep,
                             const uint8_t *fresh)
{
    enum { TIMES = 7 };
    static struct whole written, anything;
    uint8_t all[LOCATIONS / 8];
    memset(all, UINT8_MAX, sizeof all);
    mask_of(&anything, all);
    for (unsigned n = 0; n <= TIMES; n++) {
        written_by(code, in, n < TIMES ? MEMORY | REGISTERS : MEMORY, keep, fresh, &anything, &written);
        if (meets(&written, &anything))
            return 1;
    }
    return 0;
}

/* Registers of which some have to be tagged behind an item: its target, of a helper one that was not. */
static void mark_enough(const struct item *item, const struct whole *tag, struct whole *wanted)
{
    uint8_t places[LOCATIONS / 8];
    if (item->head.kind == HELPER) {
        locations_of(tag, places);
        for (unsigned n = 0; n < sizeof places; n++)
            places[n] = (uint8_t)~places[n];
        places[0] &= (uint8_t)~7u;
    }
    mask_of(wanted, item->head.kind == HELPER ? places : item->head.target);
}

/* The tag's way through one item, by the first means that shows it. Returns the mode. */
enum mode follow(const struct request *r, const struct item *item, const struct whole *in,
                        const struct whole *tag, struct whole *after, uint8_t *flags)
{
    static struct whole written, other, more, wanted;
    const struct whole *enough = NULL;
    if (item->head.kind == TESTED ? !(item->head.target[0] & 7) : !(item->head.uses & STORES)) {
        mark_enough(item, tag, &wanted); /* of memory every bit counts */
        enough = &wanted;
    }
    matches_lines = item->head.kind == TESTED && item->head.uses & AN_ADDRESS && !(item->head.target[0] & 7);
#if defined __x86_64__
    follows_address = item->head.uses & AN_ADDRESS;
#endif
    clear(after);
    through(item->at, in, tag, enough, after);
    uint8_t fresh[LOCATIONS / 8] = {0};
    for (unsigned n = 0; item->head.kind == TESTED && n < sizeof fresh; n++)
        fresh[n] = item->head.target[n] & (uint8_t)~(item->head.source[n] | r->keep[n]);
    if (item->head.kind != TESTED)
        written_by(item->at, in, MEMORY | REGISTERS, r->keep, fresh, after, &written);
    else if (!changes_something(item->at, in, r->keep, fresh))
        *flags |= IDENTITY;
    if (gained(after, &written, item) && !(item->head.uses & AN_ADDRESS))
        return AS_IT_IS;
    if (needs_exchanges(item)) {
        through_exchange(r, item, in, tag, after);
        if (gained(after, &written, item))
            return OTHER_VALUES;
    }
    const unsigned tries = item->head.kind != TESTED ? 3 : exchanges(item) ? 60 : 40; /* it stores seldom */
    const unsigned other_memory = item->head.uses & AN_ADDRESS && exchanges(item) ? 4 * KINDS : KINDS;
    for (unsigned n = 0; n < tries * KINDS; n++) { /* what is in place may be what would be stored */
        copy_whole(&other, in);
        randomise(&other, n < other_memory ? MEMORY : MEMORY | REGISTERS, r->keep, n % KINDS);
        clear(&more);
        through(item->at, &other, tag, enough, &more);
        combine(after, &more, 1);
        if ((n >= other_memory - 1 || !(item->head.uses & AN_ADDRESS)) && gained(after, &written, item))
            return n < other_memory ? OTHER_MEMORY : OTHER_VALUES;
    }
    for (unsigned n = 0; n < EXCHANGES && item->head.kind == TESTED && item->head.uses & LOADS; n++) {
        copy_whole(&other, in); /* what it compares with is there */
        randomise(&other, MEMORY | REGISTERS, r->keep, MATCHING);
        clear(&more);
        through(item->at, &other, tag, enough, &more);
        combine(after, &more, 1);
        if (gained(after, &written, item))
            return OTHER_VALUES;
    }
    for (unsigned n = 0; n < EDGES && item->head.kind == TESTED; n++) {
        copy_whole(&other, in);
        randomise_edges(&other, r->keep, item->code.bytes, item->code.length);
        clear(&more);
        through(item->at, &other, tag, enough, &more);
        combine(after, &more, 1);
        if (gained(after, &written, item))
            return OTHER_VALUES;
    }
    for (unsigned n = 0; n < 2u * item->head.alternates; n++) {
        copy_whole(&other, in);
        if (n & 1)
            randomise(&other, MEMORY | REGISTERS, r->keep, RANDOM);
        clear(&more);
        through(item->alternate_at[n / 2], &other, tag, enough, &more);
        combine(after, &more, 1);
        if (gained(after, &written, item))
            return OTHER_FIELD;
    }
    return NONE;
}
