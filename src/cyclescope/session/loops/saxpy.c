/* Y = a x + y, floats. */
#define ROUND 8
#include "loops.h"

float x[MOST], y[MOST];

long run(long n)
{
    for (long i = 0; i < n; i++)
        y[i] += 0.5f * x[i];
    return (long)y[1];
}
