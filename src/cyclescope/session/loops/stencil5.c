/* Five points of a plane. */
#define ROUND 8
#include "loops.h"

#define ROW 64
float a[MOST + 2 * ROW], b[MOST + 2 * ROW];

long run(long n)
{
    for (long i = ROW; i < n + ROW; i++)
        b[i] = 0.2f * (a[i] + a[i - 1] + a[i + 1] + a[i - ROW] + a[i + ROW]);
    return (long)b[ROW];
}
