/* Z = z z + c, which goes on for long. */
#include "loops.h"

long run(long n)
{
    double r = 0, i = 0, cr = -0.1, ci = 0.2;
    for (long k = 0; k < n && r * r + i * i < 4; k++) {
        double t = r * r - i * i + cr;
        i = 2 * r * i + ci;
        r = t;
    }
    return (long)(1e6 * (r + i));
}
