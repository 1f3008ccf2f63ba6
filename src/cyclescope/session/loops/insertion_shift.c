/* Elements moved up by one, as insertion sort does. */
#define ROUND 4
#include "loops.h"

int a[MOST + 2];

long run(long n)
{
    for (long i = n; i > 0; i--) {
        a[i + 1] = a[i];
        KEEP;
    }
    return a[1];
}
