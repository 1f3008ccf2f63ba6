/* Two pictures mixed by weights. */
#define ROUND 3
#include "loops.h"

unsigned char a[MOST], b[MOST], w[MOST];

long run(long n)
{
    for (long i = 0; i < n; i++)
        a[i] = (unsigned char)((a[i] * w[i] + b[i] * (255 - w[i])) >> 8);
    return a[1];
}
