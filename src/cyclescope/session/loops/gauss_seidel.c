/* Every value is made of the one before. */
#define ROUND 8
#include "loops.h"

double a[MOST + 2];

long run(long n)
{
    for (long i = 1; i <= n; i++)
        a[i] = 0.5 * (a[i - 1] + a[i + 1]);
    return (long)a[1];
}
