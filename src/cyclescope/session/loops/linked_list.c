/* From one element to the next. */
#include "loops.h"

struct element {
    struct element *next;
    long value;
};
struct element list[MOST];

void prepare(void)
{
    for (long i = 0; i < MOST; i++)
        list[i].next = &list[(i + 1) % MOST];
}

long run(long n)
{
    const struct element *e = list;
    long sum = 0;
    for (long i = 0; i < n; i++) {
        sum += e->value;
        e = e->next;
    }
    return sum;
}
