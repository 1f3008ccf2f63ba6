/* Rotations and multiplications of words. */
#define ROUND 4
#include "loops.h"

unsigned words[MOST];

long run(long n)
{
    unsigned h = 17;
    for (long i = 0; i < n; i++) {
        unsigned w = words[i] * 0xcc9e2d51u;
        w = (w << 15 | w >> 17) * 0x1b873593u;
        h ^= w;
        h = (h << 13 | h >> 19) * 5 + 0xe6546b64u;
    }
    return h;
}
