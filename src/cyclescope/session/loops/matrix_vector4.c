/* Four rows of a matrix with one vector. */
#define ROUND 40
#include "loops.h"

double a[4][MOST], x[MOST];

long run(long n)
{
    double p = 0, q = 0, r = 0, s = 0;
    for (long j = 0; j < n; j++) {
        p += a[0][j] * x[j];
        q += a[1][j] * x[j];
        r += a[2][j] * x[j];
        s += a[3][j] * x[j];
    }
    return (long)(p + q + r + s);
}
