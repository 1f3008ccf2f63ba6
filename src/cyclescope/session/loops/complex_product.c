/* Complex numbers, one after the other. */
#include "loops.h"

double re[MOST], im[MOST];

long run(long n)
{
    double c = 0.6, s = 0.8;
    for (long i = 0; i < n; i++) {
        double r = re[i] * c - im[i] * s;
        im[i] = re[i] * s + im[i] * c;
        re[i] = r;
    }
    return (long)re[1];
}
