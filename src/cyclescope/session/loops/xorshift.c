/* Random numbers, each of the last. */
#include "loops.h"

long run(long n)
{
    unsigned long s = 88172645463325252ul;
    for (long i = 0; i < n; i++) {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
    }
    return (long)s;
}
