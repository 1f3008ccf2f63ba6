/* Values cut to a range. */
#define ROUND 8
#include "loops.h"

int a[MOST], b[MOST];

long run(long n)
{
    for (long i = 0; i < n; i++) {
        int v = a[i] * 3 - 100;
        b[i] = v < 0 ? 0 : v > 255 ? 255 : v;
    }
    return b[1];
}
