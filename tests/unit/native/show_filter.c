/* Prints the filter of system calls, an instruction per line. */
#include "filter.h"
#include <stdio.h>

int main(void)
{
    struct sock_filter program[FILTER_MAX];
    unsigned count = filter_program(program);
    for (unsigned i = 0; i < count; i++)
        printf("%u %u %u %u\n", program[i].code, program[i].jt, program[i].jf, program[i].k);
    return 0;
}
