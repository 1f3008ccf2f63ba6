/* Many samples of one time: what the undisturbed ones say. */
#include "clock.h"
#include <math.h>
#include <string.h>

#define COMPANY_PART 16 /* of many samples; of few, two */
#define TOLERANCE 0.003 /* of the low cluster */
#define SCATTER_GRAIN 4.4  /* of the differences of two times, the lesser half are .46 of a deviation on average, and
                            * most of a few times lie within 2.6 deviations of the least: 1.3 grains */
#define SCATTER_MOST 30.0  /* core cycles of a grain by scatter: by more differs what was disturbed */
#define SCATTER_LEAST 10   /* times, of which nine differences say what code scatters by */

/* Shell's sort: qsort asks for memory, which workers may not. */
static void sort_ascending(double *v, unsigned n)
{
    for (unsigned gap = n / 2; gap; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (unsigned i = gap; i < n; i++) {
            double one = v[i];
            unsigned to = i;
            for (; to >= gap && v[to - gap] > one; to -= gap)
                v[to] = v[to - gap];
            v[to] = one;
        }
}

/* Mean of the samples within 1.3 grains of the clock and 0.3 % of the smallest that has company: quantisation
 * dithers itself, so this mean is unbiased where minimum and median are not. A sample in a hundred is too
 * short by a hiccup of the clock, and alone. */
static double cluster(const double *v, unsigned n, double grain, unsigned *members, double *width)
{
    static double sorted[MAX_SAMPLES];
    unsigned company = n < 4 ? 1 : n / COMPANY_PART > 2 ? n / COMPANY_PART : 2, from = 0, to = 0;
    double sum = 0;
    memcpy(sorted, v, n * sizeof *v);
    sort_ascending(sorted, n);
    for (unsigned first = 0; first < n; first++) {
        double limit = sorted[first] + 1.3 * grain + TOLERANCE * sorted[first];
        while (to < n && sorted[to] <= limit)
            to++;
        from = first;
        if (to - from >= company)
            break;
    }
    for (unsigned i = from; i < to; i++)
        sum += sorted[i];
    *members = to - from;
    *width = (sorted[to - 1] - sorted[from]) / 2;
    return sum / *members;
}

double low_cluster(const double *v, unsigned n, unsigned *members, double *width)
{
    return cluster(v, n, shared->grain, members, width);
}

double median_of(const double *v, unsigned n)
{
    static double sorted[MAX_SAMPLES];
    memcpy(sorted, v, n * sizeof *v);
    sort_ascending(sorted, n);
    return n ? sorted[n / 2] : 0;
}

static double mean_of_lesser(double *v, unsigned n)
{
    double sum = 0;
    sort_ascending(v, n);
    for (unsigned i = 0; i < n / 2; i++)
        sum += v[i];
    return sum / (n / 2);
}

/* By what times of one code differ from the next one's: those of another frequency, or beside a neighbour, are further
 * apart than half of them. */
double scatter_of(const double *v, unsigned n)
{
    static double apart[MAX_SAMPLES];
    for (unsigned i = 1; i < n; i++)
        apart[i - 1] = fabs(v[i] - v[i - 1]);
    return fmin(SCATTER_GRAIN * mean_of_lesser(apart, n - 1), SCATTER_MOST * cal()->ticks_per_cycle);
}

/* Mean of the times around that of the low cluster: those that are as far above it as others are below are as good. */
static double around(const double *v, unsigned n, double grain, unsigned *members, double *width)
{
    double mean = cluster(v, n, grain, members, width), limit = grain + TOLERANCE * mean, sum = 0;
    unsigned near = 0;
    for (unsigned i = 0; i < n; i++)
        if (fabs(v[i] - mean) <= limit) {
            sum += v[i];
            near++;
        }
    if (near < *members)
        return mean;
    *members = near;
    *width = limit;
    return sum / near;
}

/* To load and to leave the registers of a state, and to find ports free, takes some code more or less by ten times
 * what a canary scatters by. What is the low one of longer and of shorter times is less by more of the longer ones. */
double low_cluster_of_its_own(const double *v, unsigned n, unsigned *members, double *width)
{
    return around(v, n, n < SCATTER_LEAST ? shared->grain : fmax(scatter_of(v, n), shared->grain), members, width);
}
