/* A chain of multiplications and a subtraction. */
#include "loops.h"

long run(long n)
{
    double x = 0.3;
    for (long i = 0; i < n; i++)
        x = 3.7 * x * (1 - x);
    return (long)(1e6 * x);
}
