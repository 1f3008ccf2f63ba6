/* Bits of a number as text. */
#define ROUND 1
#include "loops.h"

char text[MOST];

long run(long n)
{
    unsigned long v = 0x123456789abcdefu;
    for (long i = 0; i < n; i++) {
        text[i] = (char)('0' + (v & 1));
        v = v >> 1 | v << 63;
    }
    return text[2];
}
