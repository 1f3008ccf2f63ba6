/* Two texts up to the first difference. */
#define ROUND 2
#include "loops.h"

char one[MOST + 1], other[MOST + 1];

long run(long n)
{
    long i = 0;
    one[n] = 1;
    while (one[i] == other[i]) {
        i++;
        KEEP;
    }
    one[n] = 0;
    return i;
}
