/* Independent divisions. */
#define ROUND 8
#include "loops.h"

float a[MOST], b[MOST];

void prepare(void)
{
    for (long i = 0; i < MOST; i++)
        a[i] = (float)(i + 1);
}

long run(long n)
{
    for (long i = 0; i < n; i++)
        b[i] = 1 / a[i];
    return (long)b[1];
}
