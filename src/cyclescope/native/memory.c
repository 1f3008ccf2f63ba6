/* Code, data and stack at fixed addresses, each between guard pages. What a worker leaves there is gone
 * with it. */
#define _GNU_SOURCE
#include "worker.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARD 0x10000ul
#define CHAIN_MOST (CHAIN_SIZE / CHAIN_STEP)
#define STACK_CLEARED 0x400ul /* on both sides of where kernels start */

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static int map(unsigned long base, unsigned long size, int protection)
{
    void *area = mmap((void *)(base - GUARD), size + 2 * GUARD, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (area != (void *)(base - GUARD))
        return -1;
    return mprotect((void *)base, size, protection);
}

/* Without them a chain faults: some systems have not so much. */
static void map_chains(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void *area = mmap((void *)CHAIN_BASE, 2 * CHAIN_SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (area != (void *)CHAIN_BASE)
        return;
    madvise((void *)CHAIN_BASE, CHAIN_SIZE, MADV_HUGEPAGE);
    madvise((void *)CHAIN_PAGES_BASE, CHAIN_SIZE, MADV_NOHUGEPAGE);
}

/* The first worker that writes there has pages of its own. Without them their pointers fault. */
static void map_areas(void)
{
    for (unsigned i = 0; i < BURST_AREAS; i++)
        (void)map(AREAS_BASE + i * AREA_STEP, AREA_SIZE, PROT_READ | PROT_WRITE);
}

int memory_map(void)
{
    map_chains();
    map_areas();
    if (map(MARKS_BASE, MARKS_SIZE, PROT_READ | PROT_WRITE))
        return -1;
    if (map(CODE_BASE, CODE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC))
        return -1;
    if (map(DATA_BASE, DATA_SIZE, PROT_READ | PROT_WRITE))
        return -1;
    if (map(STACK_BASE, STACK_SIZE, PROT_READ | PROT_WRITE))
        return -1;
    memset((void *)DATA_BASE, 0, DATA_SIZE);
    memset((void *)STACK_BASE, 0, STACK_SIZE);
    return 0;
}

/* Zeros on other physical pages than before, which are in use until then. */
static void renew(unsigned long base, unsigned long size)
{
    const int protection = PROT_READ | PROT_WRITE;
    void *area = mmap(NULL, size, protection, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (area != MAP_FAILED)
        memset(area, 0, size);
    if (area == MAP_FAILED ||
        mremap(area, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)base) != (void *)base)
        memset((void *)base, 0, size);
}

/* For every worker: what it reads and writes may take longer on some physical pages than on others, as loads of
 * microcode do on one in twenty of a Zen 3. They are shared, or it would get copies on any pages. */
void memory_renew(void)
{
    renew(DATA_BASE, DATA_SIZE);
    renew(STACK_BASE, STACK_SIZE);
}

/* Nobody but kernels reads it: what they leave there is theirs. */
int memory_meet(int file)
{
    void *area = mmap((void *)MET_BASE, MET_SIZE, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
    close(file);
    return area == (void *)MET_BASE ? 0 : -1;
}

static void fill_window(uint8_t *window, const uint8_t pattern[64])
{
    for (unsigned long offset = 0; offset < WINDOW_SIZE; offset += 64)
        memcpy(window + offset, pattern, 64);
}

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* One circle through all elements in random order (Sattolo's), so that no prefetcher follows it; walked
 * twice, so that every cache has what it keeps of it. The first element is the first one in memory. */
static void link_chain(uint32_t chain)
{
    static uint32_t next[CHAIN_MOST];
    uint32_t count = chain & CHAIN_ELEMENTS, random = 2463534242u;
    unsigned long step = (unsigned long)(chain >> CHAIN_SHIFT) * CHAIN_STEP;
    uint8_t *base = (uint8_t *)(step < PAGE_BYTES ? CHAIN_BASE : CHAIN_PAGES_BASE);
    if (count == 0 || count > CHAIN_MOST || step < sizeof(void *) || count * step > CHAIN_SIZE)
        return;
    for (uint32_t i = 0; i < count; i++)
        next[i] = i;
    for (uint32_t i = count - 1; i > 0; i--) {
        uint32_t j = next_random(&random) % i, t = next[i];
        next[i] = next[j];
        next[j] = t;
    }
    for (uint32_t i = 0; i < count; i++)
        *(void **)(base + i * step) = base + next[i] * step;
    fault_beat();
    void *volatile *at = (void *volatile *)base;
    for (uint64_t i = 0; i < 2ul * count; i++)
        at = *at;
    fault_beat();
}

void memory_fill(const struct state *state)
{
    link_chain(state->chain);
    fill_window((uint8_t *)DATA_BASE + WINDOW_FIRST, state->fill[0]);
    fill_window((uint8_t *)DATA_BASE + WINDOW_SECOND, state->fill[1]);
    memset((void *)(STACK_BASE + STACK_SIZE / 2 - STACK_CLEARED), 0, 2 * STACK_CLEARED);
    for (uint32_t i = 0; i < state->pokes && i < 8; i++)
        memcpy((void *)state->poke[i].address, &state->poke[i].value, 8);
}
