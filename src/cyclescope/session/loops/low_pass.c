/* A filter: each output of the last one. */
#define ROUND 4
#include "loops.h"

int a[MOST];

long run(long n)
{
    int y = 0;
    for (long i = 0; i < n; i++) {
        y += (a[i] - y) >> 3;
        a[i] = y;
    }
    return y;
}
