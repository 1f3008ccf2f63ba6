#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SAMPLES 5000
#define TRIPS 4000 /* of a sample, which takes some ten microseconds: clocks step in tens of nanoseconds */

#define TEN(x) x x x x x x x x x x
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

/* What neighbours slow most, and what they do not slow, each in seconds. */
static double fills_the_core(void)
{
    double start = now();
    for (int i = 0; i < TRIPS; i++)
        __asm__ volatile(TEN(TEN("nop\n")));
    return now() - start;
}

static double waits_for_itself(void)
{
    double start = now();
    unsigned long x = (unsigned long)start;
    for (int i = 0; i < TRIPS; i++)
        for (int j = 0; j < 4; j++) {
            x *= 6364136223846793005ul;
            __asm__ volatile("" : "+r"(x));
        }
    return now() - start;
}

int main(void)
{
    double start = now();
    for (int i = 0; i < SAMPLES; i++) {
        double filled = fills_the_core(), waited = waits_for_itself();
        printf("%.9f %.9f\n", filled, waited);
    }
    printf("%.9f\n", now() - start);
}
