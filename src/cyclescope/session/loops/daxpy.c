/* The same, doubles. */
#include "loops.h"

double x[MOST], y[MOST];

long run(long n)
{
    for (long i = 0; i < n; i++)
        y[i] += 0.25 * x[i];
    return (long)y[1];
}
