/* A byte is searched. */
#define ROUND 1
#include "loops.h"

char text[MOST + 1];

long run(long n)
{
    long i = 0;
    text[n] = 'x';
    while (text[i] != 'x') {
        i++;
        KEEP;
    }
    text[n] = 0;
    return i;
}
