/* What a loop has to be: `run` does `n` rounds of it, n at most MOST and a multiple of 128. Before this file is
 * included it may define ROUND, the bytes of its arrays that a round takes. Arrays are not static: a compiler that
 * knows that nobody writes to them knows what is in them. */
#ifndef CYCLESCOPE_LOOPS_H
#define CYCLESCOPE_LOOPS_H

#ifndef ROUND
#define ROUND 16
#endif
#define ROOM 16384 /* bytes: a neighbour on the same core has the other half of the smallest caches, which are 32 KB */
#define MOST (ROOM / ROUND / 128 * 128)
#define KEEP __asm__ volatile("") /* the loop stays as it is: no vectors, no library function */

__attribute__((weak)) const long most = MOST; /* the harness is told */

void prepare(void); /* optional: once, before everything */
long run(long n);

#endif
