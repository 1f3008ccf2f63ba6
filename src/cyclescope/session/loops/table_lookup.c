/* Bytes replaced by those of a table. */
#define ROUND 1
#include "loops.h"

unsigned char a[MOST], table[256];

long run(long n)
{
    for (long i = 0; i < n; i++)
        a[i] = table[a[i]];
    return a[1];
}
