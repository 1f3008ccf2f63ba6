/* The smaller of two heads, chosen without a branch. */
#include "loops.h"

int a[MOST + 1], b[MOST + 1], c[2 * MOST];

void prepare(void)
{
    for (long i = 0; i < MOST; i++) {
        a[i] = (int)(2 * i);
        b[i] = (int)(2 * i + 1);
    }
}

long run(long n)
{
    long i = 0, j = 0;
    for (long k = 0; k < n; k++) {
        int x = a[i], y = b[j], first = x <= y;
        c[k] = first ? x : y;
        i += first;
        j += !first;
    }
    return c[5];
}
