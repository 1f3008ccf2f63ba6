/* Bytes added up. */
#define ROUND 1
#include "loops.h"

unsigned char a[MOST];

long run(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += a[i];
    return sum;
}
