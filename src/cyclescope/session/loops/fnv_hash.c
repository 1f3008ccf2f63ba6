/* A hash byte by byte: exclusive or, multiply. */
#define ROUND 1
#include "loops.h"

unsigned char text[MOST];

long run(long n)
{
    unsigned long h = 0xcbf29ce484222325ul;
    for (long i = 0; i < n; i++)
        h = (h ^ text[i]) * 0x100000001b3ul;
    return (long)h;
}
