/* Two numbers that follow each other. */
#include "loops.h"

long run(long n)
{
    unsigned long a = 0, b = 1;
    for (long i = 0; i < n; i++) {
        unsigned long c = a + b;
        a = b;
        b = c ^ (unsigned long)i;
    }
    return (long)a;
}
