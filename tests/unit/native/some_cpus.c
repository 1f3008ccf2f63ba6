/* CPUs of which some have a neighbour: what each looks like is in SHARES and BASES, a number for each. */
#include "supervisor.h"
#include "worker.h"
#include <stdlib.h>

int __wrap_cpu_pin(int cpu);
int __wrap_cpu_next(int cpu);
void __wrap_calibrate(const struct calibrate *request, struct calibration *out);

static int pinned;

static double given(const char *name, int number, int *count)
{
    char *at = getenv(name), *end = at;
    double found = 0, value = strtod(at, &end);
    for (*count = 0; end != at; value = strtod(at, &end)) {
        if ((*count)++ == number)
            found = value;
        at = end;
    }
    return found;
}

int __wrap_cpu_pin(int cpu)
{
    pinned = cpu;
    return 0;
}

int __wrap_cpu_next(int cpu)
{
    int count;
    given("SHARES", 0, &count);
    return (cpu + 1) % count;
}

/* The canary says which CPU it was. */
void __wrap_calibrate(const struct calibrate *request, struct calibration *out)
{
    int count;
    struct calibration *found = &shared->calibration;
    double base = given("BASES", pinned, &count);
    found->step = 2;
    found->ticks_per_cycle = 1;
    found->seconds_per_tick = 1e-9;
    found->canary = 100 + pinned;
    found->clean_share = given("SHARES", pinned, &count);
    found->nop = found->nop > 0 && found->nop < base ? found->nop : base;
    found->nop = request->nop > 0 && request->nop < found->nop ? request->nop : found->nop;
    *out = *found;
}
