/* A number read from digits. */
#define ROUND 1
#include "loops.h"

char digits[MOST];

void prepare(void)
{
    for (long i = 0; i < MOST; i++)
        digits[i] = (char)('0' + i % 10);
}

long run(long n)
{
    unsigned long v = 0;
    for (long i = 0; i < n; i++)
        v = v * 10 + (unsigned long)(digits[i] - '0');
    return (long)v;
}
