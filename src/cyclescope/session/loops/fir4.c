/* A filter of four inputs. */
#define ROUND 8
#include "loops.h"

float a[MOST + 4], b[MOST];

long run(long n)
{
    for (long i = 0; i < n; i++)
        b[i] = 0.1f * a[i] + 0.4f * a[i + 1] + 0.4f * a[i + 2] + 0.1f * a[i + 3];
    return (long)b[1];
}
