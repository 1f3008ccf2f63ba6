/* A sum of products, one addition after the other. */
#include "loops.h"

double x[MOST], y[MOST];

long run(long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += x[i] * y[i];
    return (long)sum;
}
