/* A counter in memory, always the same. */
#define ROUND 1
#include "loops.h"

unsigned char a[MOST];
volatile unsigned count[4];

long run(long n)
{
    for (long i = 0; i < n; i++)
        count[a[i] & 3]++;
    return count[0];
}
