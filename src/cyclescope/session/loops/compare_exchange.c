/* Neighbours put in order without a branch. */
#define ROUND 4
#include "loops.h"

int a[MOST + 1];

long run(long n)
{
    int most = a[0];
    for (long i = 0; i < n; i++) {
        int v = a[i + 1], less = v < most ? v : most;
        most = v < most ? most : v;
        a[i] = less;
    }
    a[n] = most;
    return most;
}
