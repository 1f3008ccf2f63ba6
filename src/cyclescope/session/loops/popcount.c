/* Bits counted by masks. */
#define ROUND 4
#include "loops.h"

unsigned a[MOST];

long run(long n)
{
    unsigned long sum = 0;
    for (long i = 0; i < n; i++) {
        unsigned v = a[i];
        v -= v >> 1 & 0x55555555u;
        v = (v & 0x33333333u) + (v >> 2 & 0x33333333u);
        sum += ((v + (v >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
    }
    return (long)sum;
}
