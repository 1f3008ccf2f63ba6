/* Letters made small without a branch. */
#define ROUND 1
#include "loops.h"

unsigned char text[MOST];

long run(long n)
{
    for (long i = 0; i < n; i++) {
        unsigned c = text[i];
        text[i] = (unsigned char)(c | (c - 'A' < 26u) << 5);
    }
    return text[0];
}
