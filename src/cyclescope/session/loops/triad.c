/* A = b + s c. */
#define ROUND 24
#include "loops.h"

double a[MOST], b[MOST], c[MOST];

long run(long n)
{
    for (long i = 0; i < n; i++)
        a[i] = b[i] + 3.0 * c[i];
    return (long)a[1];
}
