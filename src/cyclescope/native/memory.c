/* Code, data and stack at fixed addresses, each between guard pages. What a worker leaves there is gone
 * with it. */
#define _GNU_SOURCE
#include "worker.h"
#include <string.h>
#include <sys/mman.h>

#define GUARD 0x10000ul
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

int memory_map(void)
{
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

static void fill_window(uint8_t *window, const uint8_t pattern[64])
{
    for (unsigned long offset = 0; offset < WINDOW_SIZE; offset += 64)
        memcpy(window + offset, pattern, 64);
}

void memory_fill(const struct state *state)
{
    fill_window((uint8_t *)DATA_BASE + WINDOW_FIRST, state->fill[0]);
    fill_window((uint8_t *)DATA_BASE + WINDOW_SECOND, state->fill[1]);
    memset((void *)(STACK_BASE + STACK_SIZE / 2 - STACK_CLEARED), 0, 2 * STACK_CLEARED);
    for (uint32_t i = 0; i < state->pokes && i < 8; i++)
        memcpy((void *)state->poke[i].address, &state->poke[i].value, 8);
}
