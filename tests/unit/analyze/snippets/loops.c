/* Loops that are hard to find. clang 14 compiled it to the *clang14*.s beside it, for x86-64 -O1 and -O2 and for
   AArch64 and RISC-V (rv64gc) -O2, and wrote into them where it sees loops. */
long interpret(const unsigned char *code, long *stack) {
    long top = 0, *s = stack;
    for (;;) {
        switch (*code++) {
        case 0: return top;
        case 1: *s++ = top; break;
        case 2: top += *--s; break;
        case 3: top *= *--s; break;
        case 4: top = -top; break;
        case 5: for (long i = top; i; i--) s[i] += top; break;
        default: code += top; continue;
        }
    }
}

int nested(int n, int *restrict a, const int *b) {
    int t = 0;
    for (int i = 0; i < n; i++) {
        if (a[i] < 0) continue;
        for (int j = i; j < n; j++) {
            if (b[j] == t) goto next;
            for (int k = 0; b[k]; k++) t ^= b[k] * a[j];
        }
    next:
        while (t > n) t /= 3;
    }
    return t;
}

void sink(int);

void calls(int kind, const int *list) {
    do {
        switch (kind & 7) {
        case 0: sink(3); break;
        case 1: while (*list++ > kind) kind++; break;
        case 2: sink(kind + 1); sink(7); break;
        case 3: kind = *list; break;
        case 4: sink(-kind); break;
        }
    } while (*list++);
    sink(kind);
}
