/* Two sums, one of the other. */
#define ROUND 1
#include "loops.h"

unsigned char text[MOST];

long run(long n)
{
    unsigned a = 1, b = 0;
    for (long i = 0; i < n; i++) {
        a += text[i];
        b += a;
    }
    return (long)(a ^ b);
}
