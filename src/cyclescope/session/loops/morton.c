/* Bits of two coordinates spread and joined. */
#define ROUND 8
#include "loops.h"

unsigned short x[MOST], y[MOST];
unsigned z[MOST];

long run(long n)
{
    for (long i = 0; i < n; i++) {
        unsigned a = x[i], b = y[i];
        a = (a | a << 8) & 0x00ff00ffu;
        b = (b | b << 8) & 0x00ff00ffu;
        a = (a | a << 4) & 0x0f0f0f0fu;
        b = (b | b << 4) & 0x0f0f0f0fu;
        z[i] = a | b << 1;
    }
    return z[1];
}
