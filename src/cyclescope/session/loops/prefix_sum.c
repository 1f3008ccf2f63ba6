/* Running sums in memory. */
#define ROUND 4
#include "loops.h"

int a[MOST + 1];

long run(long n)
{
    for (long i = 1; i <= n; i++)
        a[i] += a[i - 1];
    return a[1];
}
