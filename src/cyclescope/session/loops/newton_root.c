/* A square root by iteration: divisions. */
#include "loops.h"

long run(long n)
{
    double x = 3;
    for (long i = 0; i < n; i++)
        x = 0.5 * (x + 2 / x);
    return (long)(1e6 * x);
}
