/* A row of a product of matrices. */
#define ROUND 12
#include "loops.h"

float a[MOST], b[MOST], c[MOST];

long run(long n)
{
    float s = a[3] + 1, t = a[5] + 2;
    for (long j = 0; j < n; j++)
        c[j] += s * b[j] + t * a[j];
    return (long)c[1];
}
