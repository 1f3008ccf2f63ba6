/* The greatest of integers. */
#define ROUND 4
#include "loops.h"

int a[MOST];

long run(long n)
{
    int most = a[0];
    for (long i = 0; i < n; i++)
        most = a[i] > most ? a[i] : most;
    return most;
}
