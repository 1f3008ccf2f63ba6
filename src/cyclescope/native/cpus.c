/* The CPUs that this program may run on. */
#define _GNU_SOURCE
#include "arch.h"
#include "supervisor.h"
#include <errno.h>
#include <sched.h>

int cpu_pin(int cpu)
{
    cpu_set_t set;
    if (cpu < 0)
        return 0;
    if (cpu >= CPU_SETSIZE)
        return EINVAL;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) ? errno : 0;
}

/* What the kind of a CPU is: cores of one machine may be of several. Asked once, for a hypervisor answers slowly. */
static uint64_t kind_of(int cpu)
{
    static uint64_t kinds[CPU_SETSIZE];
    static uint8_t known[CPU_SETSIZE];
    struct cpuid_leaf leaves[160];
    uint64_t kind = 0;
    if (known[cpu])
        return kinds[cpu];
    if (cpu_pin(cpu))
        return UINT64_MAX;
    uint32_t count = arch_leaves(leaves, sizeof leaves / sizeof *leaves);
    for (uint32_t i = 0; i < count; i++) {
        const struct cpuid_leaf *l = &leaves[i];
        if (ARCH_ISA != ISA_X86_64 || l->leaf == 1 || l->leaf == 0x1a) /* model; type of a hybrid's core */
            kind = kind * 0x100000001b3u ^ ((uint64_t)l->leaf << 32 | l->eax);
    }
    known[cpu] = 1;
    return kinds[cpu] = kind;
}

int cpu_next(int cpu)
{
    cpu_set_t usable;
    sched_getaffinity(0, sizeof usable, &usable);
    uint64_t kind = kind_of(cpu);
    int found = cpu;
    for (int i = 1; i < CPU_SETSIZE && found == cpu; i++) {
        int other = (cpu + i) % CPU_SETSIZE;
        if (CPU_ISSET(other, &usable) && kind_of(other) == kind)
            found = other;
    }
    sched_setaffinity(0, sizeof usable, &usable);
    return found;
}
