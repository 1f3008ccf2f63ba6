/* What a worker may ask the kernel for. */
#ifndef CYCLESCOPE_FILTER_H
#define CYCLESCOPE_FILTER_H

#include <linux/filter.h>

#define FILTER_MAX 64u
unsigned filter_program(struct sock_filter program[FILTER_MAX]); /* how long it is */
int filter_install(void);                                       /* errno, or 0 */

#endif
