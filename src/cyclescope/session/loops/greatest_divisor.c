/* Remainders of integers. */
#define ROUND 4
#include "loops.h"

unsigned a[MOST];

void prepare(void)
{
    for (long i = 0; i < MOST; i++)
        a[i] = (unsigned)(i * 2654435761u | 1);
}

long run(long n)
{
    unsigned long sum = 0;
    for (long i = 0; i < n; i++)
        sum += 1000003u % a[i];
    return (long)sum;
}
