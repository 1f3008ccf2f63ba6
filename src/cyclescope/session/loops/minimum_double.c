/* The least of doubles. */
#define ROUND 8
#include "loops.h"

double a[MOST];

long run(long n)
{
    double least = a[0];
    for (long i = 0; i < n; i++)
        least = a[i] < least ? a[i] : least;
    return (long)least;
}
