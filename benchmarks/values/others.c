/* Other values: in tagged bits, and everywhere else. */
#define _GNU_SOURCE
#include "trace.h"
#include <string.h>

static uint64_t random_state;

/* Every kernel meets the same values, whichever was followed before it. */
void restart_values(void)
{
    random_state = 88172645463325252ull;
}

static uint64_t next(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 2685821657736338717ull;
}

unsigned element_bytes, fraction_bits; /* of the form's floating-point values; 0 for integers */

/* Numbers from 1/16 to 16, as many as there is room for. */
static uint64_t numbers(unsigned bytes, unsigned fraction)
{
    if (!bytes)
        return next();
    uint64_t word = 0;
    unsigned bits = 8 * bytes;
    for (unsigned at = 0; at < 64; at += bits) {
        uint64_t bias = (1ull << (bits - fraction - 2)) - 1, r = next();
        uint64_t value = (r >> 63) << (bits - 1) | (bias - 4 + (r >> 40) % 8) << fraction |
                         (r & ((1ull << fraction) - 1));
        word |= bits == 64 ? value : (value & ((1ull << bits) - 1)) << at;
    }
    return word;
}

/* Small numbers in elements of 64, 32, 16 and 8 bits. */
static const uint64_t lanes[] = {3, 0x300000003ull, 0x3000300030003ull, 0x0303030303030303ull};

static int points(uint64_t value)
{
    return (value >= DATA_BASE && value < DATA_BASE + DATA_SIZE) ||
           (value >= STACK_BASE && value < STACK_BASE + STACK_SIZE);
}

/* Whether a register has to keep its value: where nothing is loaded or stored, pointers lead nowhere. */
static int stays(uint64_t value)
{
    return with_memory && points(value);
}

/* 64, 32 or 16 bits that a register has, narrow ones with ones above. */
static uint64_t element_of_registers(void)
{
    uint64_t word;
    memcpy(&word, (const uint8_t *)&arch_in + 4 * (next() % (used / 4 - 1)), sizeof word);
    unsigned above = (unsigned)(next() % 3) * 16;
    return above ? word | UINT64_MAX << above : word;
}

unsigned follows_address; /* of x86-64: locked instructions whose data are not aligned take very long */

static uint64_t candidate(uint64_t old, unsigned trial)
{
    uint32_t low = (uint32_t)old;
    if (follows_address && !points(old))
        return old + 64 * (1 + next() % 3) * (lanes[trial % 4] / 3);
    if (points(old))
        return old + 64 * (1 + trial % 6);
    if (points(low) && low == old >> 32)
        return old + 64 * (1 + trial % 6) * 0x100000001ull;
    switch (trial) {
    case 0:
        return next();
    case 1:
        return ~old;
    case 2:
        return next() & (next() & 1 ? 127 : 3);
    case 3:
        return old ^ 1ull << (next() & 63);
    case 4:
        return 0;
    case 5:
        return arch_in.general[next() % GENERALS];
    case 6:
        return numbers(element_bytes, fraction_bits);
    case 7:
        return numbers(8, 52);
    case 8:
        return numbers(4, 23);
    case 9: /* a narrow number in a register of RISC-V has ones above */
        return numbers(4, 23) | UINT64_MAX << 32;
    case 10:
        return numbers(2, 10) | UINT64_MAX << 16;
    case 11:
        return numbers(2, 10);
    case 12: /* offsets, in elements of one of the widths */
    case 19:
    case 20:
    case 21:
        return 64 * (1 + next() % 3) * (lanes[trial % 4] / 3);
    case 13:
        return old ^ 0x0101010101010101ull << (next() & 7);
    case 14:
    case 15:
    case 16:
        return next() & lanes[next() & 3];
    case 17:
        return UINT64_MAX;
    case 18:
        return 1ull << 63;
    case 22: /* equal to an element of some register */
        return element_of_registers();
    default:
        return old + 1;
    }
}

/* Tagged bits, word by word: most of a tag's words have none. */
static struct tagged {
    uint32_t at, bytes; /* in a struct whole */
    uint64_t bits;
} tagged[sizeof(struct whole) / 8 + LOCATIONS];
static unsigned tagged_count;

void collect_tagged(const struct whole *tag)
{
    tagged_count = 0;
    for (unsigned n = 0; n < LOCATIONS_END; n++) {
        size_t size;
        const uint8_t *at = bytes_of((struct whole *)tag, n, &size);
        for (size_t i = 0; i < size; i += 8) {
            struct tagged *word = &tagged[tagged_count];
            word->at = (uint32_t)(at + i - (const uint8_t *)tag);
            word->bytes = (uint32_t)(size - i < 8 ? size - i : 8);
            word->bits = 0;
            memcpy(&word->bits, at + i, word->bytes);
            tagged_count += word->bits != 0;
        }
    }
}

/* Other values in the bits that were collected. */
void change_tagged(struct whole *w, unsigned trial)
{
    for (const struct tagged *word = tagged; word < tagged + tagged_count; word++) {
        uint8_t *at = (uint8_t *)w + word->at;
        uint64_t old = 0;
        memcpy(&old, at, word->bytes);
        old = (old & ~word->bits) | (candidate(old, trial) & word->bits);
        memcpy(at, &old, word->bytes);
    }
}

static unsigned small_lanes;
static const uint64_t ranges[] = {3, 3, 31, 127};
static uint64_t extreme, matching;

static uint64_t other_value(unsigned kind)
{
    switch (kind) {
    case NUMBERS:
        return numbers(element_bytes, fraction_bits);
    case SMALL: /* in elements of one of the widths; half of them are indices of all that a group has */
        return next() & lanes[small_lanes & 3] / 3 * ranges[small_lanes >> 2 & 3];
    case NOTHING:
        return 0;
    case EXTREME: /* all zeros, all ones, and one beside them: carries are seen */
        return extreme;
    case BOXED:
        return numbers(4, 23) | UINT64_MAX << 32;
    case MATCHING: /* what memory holds everywhere, or not */
        return next() & 3 ? matching : next();
    default:
        return next();
    }
}

static void randomise_bytes(uint8_t *at, size_t size, unsigned kind)
{
    for (size_t i = 0; i < size; i += 8) {
        uint64_t old = 0, value = other_value(kind);
        memcpy(&old, at + i, size - i < 8 ? size - i : 8);
        if (stays(old) || (stays((uint32_t)old) && (uint32_t)old == old >> 32))
            continue;
        memcpy(at + i, &value, size - i < 8 ? size - i : 8);
    }
}

static int is_flag(unsigned location)
{
#if defined __aarch64__
    return location >= A64_FLAGS && location < A64_FLAGS + 4;
#elif defined __x86_64__
    return location >= X86_FLAGS && location < X86_FLAGS + 6; /* not DF */
#else
    (void)location;
    return 0;
#endif
}

unsigned matches_lines;

/* One byte everywhere, or in some lines only: then an address makes a difference in what is read. */
static void match_memory(uint8_t *at, size_t size)
{
    const int everywhere = !matches_lines || next() & 1;
    memset(at, (int)(matching & UINT8_MAX), size);
    for (size_t line = 0; !everywhere && line < size; line += 64)
        if (next() & 1)
            randomise_bytes(at + line, 64, RANDOM);
}

/* Other values in memory, and in registers but for pointers and those to keep. */
void randomise(struct whole *w, int what, const uint8_t *keep, unsigned kind)
{
    small_lanes = (unsigned)next();
    const uint64_t equal = kind == SMALL ? next() & 3 : next(); /* comparisons have both outcomes */
    matching = (next() & UINT8_MAX) * 0x0101010101010101ull;
    for (unsigned n = 0; n < LOCATIONS_END; n++) {
        size_t size;
        uint8_t *at = bytes_of(w, n, &size);
        uint32_t of = arch_locations[n].kind;
        int plain = of == LOCATION_GENERAL || of == LOCATION_VECTOR || of == LOCATION_MASK;
        if (what & REGISTERS && is_flag(n)) {
            uint32_t word = 0;
            memcpy(&word, at, size);
            word ^= (uint32_t)next() & arch_locations[n].free;
            memcpy(at, &word, size);
        }
        extreme = (next() & 1 ? UINT64_MAX : 0) ^ (next() & 1) * (lanes[next() & 3] / 3);
        int wanted = n < AREAS ? what & MEMORY : what & REGISTERS && plain && !is_set(keep, n);
        int alike = kind != RANDOM && kind != EXTREME && kind != MATCHING;
        if (wanted && kind == MATCHING && n < AREAS)
            match_memory(at, size);
        else if (wanted && alike && of == LOCATION_GENERAL && n >= AREAS)
            memcpy(at, stays(*(uint64_t *)at) ? at : (uint8_t *)&equal, size);
        else if (wanted)
            randomise_bytes(at, size, of == LOCATION_MASK && n >= AREAS ? (kind == BOXED ? NOTHING : RANDOM) : kind);
    }
}

/* A constant in the code, or any: from its last bytes, as far as they are one. */
static uint64_t constant_of(const uint8_t *code, size_t length)
{
    const unsigned bytes = 1u << next() % 4;
    uint64_t value = 0;
    if (bytes == 8 || bytes >= length)
        return next() & 1 ? next() : 0;
    memcpy(&value, code + length - bytes, bytes);
    const uint64_t sign = 1ull << (8 * bytes - 1);
    return (value ^ sign) - sign;
}

/* What is one beside a carry or a change of sign when it is added to a number, or subtracted. */
static uint64_t beside(uint64_t number)
{
    const uint64_t sign = 1ull << ((8u << next() % 4) - 1);
    const uint64_t value = next() & 1 ? number : ~number;
    return (next() & 1 ? value : value ^ sign) + next() % 2;
}

/* Registers and lines of memory with numbers at the edges of carries, of a constant in the code or of any. */
void randomise_edges(struct whole *w, const uint8_t *keep, const uint8_t *code, size_t length)
{
    const uint64_t number = constant_of(code, length);
    for (unsigned n = 0; n < LOCATIONS_END; n++) {
        size_t size;
        uint8_t *at = bytes_of(w, n, &size);
        const int general = n >= AREAS && arch_locations[n].kind == LOCATION_GENERAL && !is_set(keep, n);
        uint64_t value = beside(number);
        for (size_t i = 0; (general || n < AREAS) && i + 8 <= size; i += 8) {
            uint64_t old;
            value = i % 64 ? value : beside(number);
            memcpy(&old, at + i, sizeof old);
            memcpy(at + i, points(old) ? &old : &value, sizeof old);
        }
    }
}

/* Any value in some registers, pointers or not. */
void randomise_all(struct whole *w, const uint8_t *locations)
{
    for (unsigned n = AREAS; n < LOCATIONS_END; n++) {
        size_t size;
        uint8_t *at = bytes_of(w, n, &size);
        uint32_t of = arch_locations[n].kind;
        int plain = of == LOCATION_GENERAL || of == LOCATION_VECTOR || of == LOCATION_MASK;
        for (size_t i = 0; plain && is_set(locations, n) && i < size; i++)
            at[i] = (uint8_t)(next() >> 8);
    }
}
