/* Checks records as the supervisor does: `r`, `p`, `b` or `d` and a record, many times; prints what is left. */
#include "supervisor.h"
#include "worker.h"
#include <stdio.h>
#include <string.h>

static int next(void *record, size_t bytes)
{
    return fread(record, bytes, 1, stdin) == 1;
}

int main(void)
{
    static struct differ_result d;
    const struct differ request = {6, 4, 1, 0};
    struct result r;
    struct probe_result p;
    struct block_result b;
    for (int kind; (kind = getchar()) != EOF;) {
        if (kind == 'r' && next(&r, sizeof r)) {
            records_check_result(&r);
            fwrite(&r, sizeof r, 1, stdout);
        } else if (kind == 'p' && next(&p, sizeof p)) {
            records_check_probe(&p);
            fwrite(&p, sizeof p, 1, stdout);
        } else if (kind == 'b' && next(&b, sizeof b)) {
            records_check_block(&b);
            fwrite(&b, sizeof b, 1, stdout);
        } else if (kind == 'd' && next(&d, sizeof d)) {
            records_check_differ(&d, &request);
            fwrite(&d, sizeof d, 1, stdout);
        }
        fflush(stdout);
    }
    return 0;
}
