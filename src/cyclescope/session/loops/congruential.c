/* Random numbers by multiplication. */
#include "loops.h"

long run(long n)
{
    unsigned long s = 1;
    for (long i = 0; i < n; i++) {
        s = s * 6364136223846793005ul + 1442695040888963407ul;
        KEEP;
    }
    return (long)s;
}
