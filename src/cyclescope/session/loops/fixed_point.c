/* Products of numbers with 16 fractional bits. */
#define ROUND 8
#include "loops.h"

int a[MOST], b[MOST];

long run(long n)
{
    for (long i = 0; i < n; i++)
        b[i] = (int)((long)a[i] * 46341 >> 16) + b[i];
    return b[1];
}
