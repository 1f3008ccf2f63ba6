/* The end of a text is searched. */
#define ROUND 1
#include "loops.h"

char text[MOST + 1];

void prepare(void)
{
    for (long i = 0; i < MOST; i++)
        text[i] = 'a';
}

long run(long n)
{
    long i = 0;
    char was = text[n];
    text[n] = 0;
    for (; text[i]; i++)
        KEEP;
    text[n] = was;
    return i;
}
