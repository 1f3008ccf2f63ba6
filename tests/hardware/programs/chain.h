/* A thousand multiplications, each of which waits for the one before, the first for `x`. */
#if defined __x86_64__
#define MULTIPLICATION "imul %0, %0"
#else
#define MULTIPLICATION "mul %0, %0, %0"
#endif
static inline long chain(long x)
{
    __asm__ volatile(".rept 1000\n\t" MULTIPLICATION "\n\t.endr" : "+r"(x));
    return x;
}
