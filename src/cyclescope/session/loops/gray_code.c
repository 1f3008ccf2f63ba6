/* Numbers to Gray code and back by one step. */
#define ROUND 4
#include "loops.h"

unsigned a[MOST];

long run(long n)
{
    for (long i = 0; i < n; i++) {
        unsigned g = a[i] ^ a[i] >> 1;
        a[i] = g ^ g >> 16;
    }
    return a[0];
}
