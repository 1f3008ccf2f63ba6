/* A sum of products in four parts. */
#include "loops.h"

double x[MOST], y[MOST];

long run(long n)
{
    double a = 0, b = 0, c = 0, d = 0;
    for (long i = 0; i < n; i += 4) {
        a += x[i] * y[i];
        b += x[i + 1] * y[i + 1];
        c += x[i + 2] * y[i + 2];
        d += x[i + 3] * y[i + 3];
    }
    return (long)(a + b + c + d);
}
