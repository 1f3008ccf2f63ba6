/* Bits of words in the other order. */
#define ROUND 4
#include "loops.h"

unsigned a[MOST];

long run(long n)
{
    for (long i = 0; i < n; i++) {
        unsigned v = a[i];
        v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
        v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
        v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
        a[i] = __builtin_bswap32(v);
    }
    return a[0];
}
