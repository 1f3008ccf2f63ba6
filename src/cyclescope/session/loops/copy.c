/* Words from one array to another. */
#include "loops.h"

long x[MOST], y[MOST];

long run(long n)
{
    for (long i = 0; i < n; i++) {
        y[i] = x[i];
        KEEP;
    }
    return y[1];
}
