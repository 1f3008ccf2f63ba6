/* What a loop has to be: `run` does `n` rounds of it, n at most MOST and a multiple of 128. Arrays are not static:
 * a compiler that knows that nobody writes to them knows what is in them. */
#ifndef CYCLESCOPE_LOOPS_H
#define CYCLESCOPE_LOOPS_H

#define MOST 1536
#define KEEP __asm__ volatile("") /* the loop stays as it is: no vectors, no library function */

void prepare(void); /* optional: once, before everything */
long run(long n);

#endif
