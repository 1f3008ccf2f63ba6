/* A hash by shift and add. */
#define ROUND 1
#include "loops.h"

unsigned char text[MOST];

long run(long n)
{
    unsigned h = 5381;
    for (long i = 0; i < n; i++)
        h = (h << 5) + h + text[i];
    return h;
}
