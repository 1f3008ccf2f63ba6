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
    for (unsigned trial = 0; trial < TRIALS; trial++) {
        copy_whole(&changed, in);
        change_tagged(&changed, tag, trial);
        if (run(code, &changed, &out))
            continue;
        add_differences(after, &base, &out);
        if (++ran % 4 == 0 && enough && meets(after, enough))
            break;
    }
    return ran;
}

/* What an instruction writes: bits that differ from what was there, whatever that was. `fresh` are registers
 * that it does not read. */
void written_by(const uint8_t *code, const struct whole *in, int what, const uint8_t *keep,
                       const uint8_t *fresh, struct whole *written)
{
    static struct whole before, after;
    clear(written);
    for (unsigned n = 0; n < 3 * KINDS; n++) {
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

/* The tag's way through one item, by the first means that shows it. Returns the mode. */
enum mode follow(const struct request *r, const struct item *item, const struct whole *in,
                        const struct whole *tag, struct whole *after, uint8_t *flags)
{
    static struct whole written, other, more, wanted;
    const struct whole *enough = NULL;
    if (item->head.kind == TESTED && !(item->head.target[0] & 7)) { /* of memory every bit counts */
        mask_of(&wanted, item->head.target);
        enough = &wanted;
    }
    clear(after);
    through(item->at, in, tag, enough, after);
    uint8_t fresh[LOCATIONS / 8] = {0};
    for (unsigned n = 0; item->head.kind == TESTED && n < sizeof fresh; n++)
        fresh[n] = item->head.target[n] & (uint8_t)~(item->head.source[n] | r->keep[n]);
    written_by(item->at, in, MEMORY | REGISTERS, r->keep, fresh, &written);
    uint8_t unused[LOCATIONS / 8];
    for (unsigned n = 0; n < 6 && item->head.kind == TESTED && !locations_of(&written, unused); n++)
        written_by(item->at, in, MEMORY | REGISTERS, r->keep, fresh, &written);
    if (item->head.kind == TESTED && !locations_of(&written, unused)) {
        written_by(item->at, in, MEMORY, r->keep, fresh, &written);
        if (!locations_of(&written, unused))
            *flags |= IDENTITY;
    }
    if (gained(after, &written, item) && !(item->head.uses & AN_ADDRESS))
        return AS_IT_IS;
    for (unsigned n = 0; n < (item->head.kind == TESTED ? 9 * KINDS : 3 * KINDS); n++) {
        copy_whole(&other, in);
        randomise(&other, n < KINDS ? MEMORY : MEMORY | REGISTERS, r->keep, n % KINDS);
        clear(&more);
        through(item->at, &other, tag, enough, &more);
        combine(after, &more, 1);
        if ((n >= KINDS - 1 || !(item->head.uses & AN_ADDRESS)) && gained(after, &written, item))
            return n < KINDS ? OTHER_MEMORY : OTHER_VALUES;
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
