/* A polynomial of a high degree. */
#define ROUND 8
#include "loops.h"

double c[MOST];

long run(long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum = sum * 0.99 + c[i];
    return (long)sum;
}
