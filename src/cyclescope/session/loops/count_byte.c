/* How often a byte is in a text. */
#define ROUND 1
#include "loops.h"

char text[MOST];

long run(long n)
{
    long found = 0;
    for (long i = 0; i < n; i++)
        found += text[i] == 'e';
    return found;
}
