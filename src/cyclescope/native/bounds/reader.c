/* Lists of numbers that come from Python. */
#include "bounds.h"

const double *next_values(struct reader *r, int32_t count)
{
    const double *found = r->at;
    if (r->bad || count < 0 || count > r->end - r->at) {
        r->bad = 1;
        return NULL;
    }
    r->at += count;
    return found;
}

double next_value(struct reader *r)
{
    const double *found = next_values(r, 1);
    return found ? *found : 0;
}

int32_t next_number(struct reader *r, int32_t least, int32_t most)
{
    double value = next_value(r);
    if (!(value >= least && value <= most)) {
        r->bad = 1;
        return least;
    }
    return (int32_t)value;
}
