/* Compiled to the .s files beside it by gcc 12: x86-64 with -march=haswell and -masm=att or intel, AArch64 also
   with -march=armv8.2-a+sve, RISC-V; -fno-asynchronous-unwind-tables. The files of LLVM 22 are of its opt and llc
   (haswell, neoverse-v2, spacemit-x60) on the triad and a sum. */
#include <stddef.h>

void triad(double *restrict a, const double *restrict b, const double *restrict c, double s, size_t n) {
    for (size_t i = 0; i < n; i++) a[i] = b[i] + s * c[i];
}

void gemm(int n, const float *restrict a, const float *restrict b, float *restrict c) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float t = 0;
            for (int k = 0; k < n; k++) t += a[i * n + k] * b[k * n + j];
            c[i * n + j] = t;
        }
}

size_t count(const unsigned char *s, int ch) {
    size_t n = 0;
    for (; *s; s++)
        if (*s == ch) n += s[1] ? 3 : s[2];
    return n;
}

int table(int x) {
    switch (x) {
    case 0: return 5;
    case 1: return 9 * x;
    case 2: return x << 3;
    case 3: return x * x;
    case 4: return 77 - x;
    case 5: return x / 3;
    default: return 1;
    }
}
