/* Where the lowest bit is. */
#define ROUND 8
#include "loops.h"

unsigned long a[MOST];

void prepare(void)
{
    for (long i = 0; i < MOST; i++)
        a[i] = (unsigned long)i << 7 | 64;
}

long run(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++) {
        sum += __builtin_ctzl(a[i]);
        KEEP;
    }
    return sum;
}
