/* Values at places that another array says. */
#define ROUND 12
#include "loops.h"

int place[MOST];
double a[MOST];

void prepare(void)
{
    for (long i = 0; i < MOST; i++)
        place[i] = (int)(i * 37 % MOST);
}

long run(long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += a[place[i]];
    return (long)sum;
}
