/* Counters in memory, all different. */
#define ROUND 1
#include "loops.h"

unsigned char a[MOST];
unsigned count[256];

void prepare(void)
{
    for (long i = 0; i < MOST; i++)
        a[i] = (unsigned char)(i * 7);
}

long run(long n)
{
    for (long i = 0; i < n; i++)
        count[a[i]]++;
    return count[3];
}
