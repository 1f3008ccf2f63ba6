/* Loops and branches of many kinds for `benchmarks/compiled.py`: nothing but C, no library. */
#include <stddef.h>
#include <stdint.h>

/* --- dense arrays -------------------------------------------------------------------------------------- */

void copy(double *restrict a, const double *restrict b, size_t n) {
    for (size_t i = 0; i < n; i++) a[i] = b[i];
}

void triad(double *restrict a, const double *restrict b, const double *restrict c, double s, size_t n) {
    for (size_t i = 0; i < n; i++) a[i] = b[i] + s * c[i];
}

void schoenauer(float *restrict a, const float *restrict b, const float *restrict c, const float *restrict d, int n) {
    for (int i = 0; i < n; i++) a[i] = b[i] + c[i] * d[i];
}

double dot(const double *a, const double *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

float norm(const float *a, size_t n) {
    float sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * a[i];
    return __builtin_sqrtf(sum);
}

void gauss_seidel(double *a, int n, int m) {
    for (int j = 1; j < m - 1; j++)
        for (int i = 1; i < n - 1; i++)
            a[j * n + i] = 0.25 * (a[j * n + i - 1] + a[j * n + i + 1] + a[(j - 1) * n + i] + a[(j + 1) * n + i]);
}

void jacobi(double *restrict b, const double *restrict a, int n, int m) {
    for (int j = 1; j < m - 1; j++)
        for (int i = 1; i < n - 1; i++)
            b[j * n + i] = 0.25 * (a[j * n + i - 1] + a[j * n + i + 1] + a[(j - 1) * n + i] + a[(j + 1) * n + i]);
}

void multiply(float *restrict c, const float *restrict a, const float *restrict b, int n) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
}

void transpose(double *restrict b, const double *restrict a, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) b[j * n + i] = a[i * n + j];
}

void sparse(double *restrict y, const double *restrict a, const int *restrict column, const int *restrict row,
            const double *restrict x, int n) {
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int k = row[i]; k < row[i + 1]; k++) sum += a[k] * x[column[k]];
        y[i] = sum;
    }
}

void butterfly(float *re, float *im, const float *wr, const float *wi, int half) {
    for (int i = 0; i < half; i++) {
        float r = re[i + half] * wr[i] - im[i + half] * wi[i], s = re[i + half] * wi[i] + im[i + half] * wr[i];
        re[i + half] = re[i] - r;
        im[i + half] = im[i] - s;
        re[i] += r;
        im[i] += s;
    }
}

void bodies(const double *restrict x, const double *restrict y, const double *restrict m, double *restrict fx,
            double *restrict fy, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double dx = x[j] - x[i], dy = y[j] - y[i], d = dx * dx + dy * dy + 1e-9;
            double f = m[j] / (d * __builtin_sqrt(d));
            fx[i] += f * dx;
            fy[i] += f * dy;
        }
}

int mandelbrot(double cr, double ci, int most) {
    double r = 0, i = 0;
    int n = 0;
    while (n < most && r * r + i * i < 4) {
        double t = r * r - i * i + cr;
        i = 2 * r * i + ci;
        r = t;
        n++;
    }
    return n;
}

void horner(double *restrict y, const double *restrict x, const double *restrict c, int degree, int n) {
    for (int i = 0; i < n; i++) {
        double sum = c[degree];
        for (int k = degree - 1; k >= 0; k--) sum = sum * x[i] + c[k];
        y[i] = sum;
    }
}

void reciprocals(float *a, const float *b, int n) {
    for (int i = 0; i < n; i++) a[i] = 1 / __builtin_sqrtf(b[i]);
}

double largest(const double *a, int n) {
    double most = a[0];
    for (int i = 1; i < n; i++) most = a[i] > most ? a[i] : most;
    return most;
}

/* --- conversions and narrow types ---------------------------------------------------------------------- */

void to_float(float *restrict a, const int16_t *restrict b, float scale, int n) {
    for (int i = 0; i < n; i++) a[i] = b[i] * scale;
}

void to_integer(int32_t *restrict a, const double *restrict b, int n) {
    for (int i = 0; i < n; i++) a[i] = (int32_t)b[i];
}

void widen(uint32_t *restrict a, const uint8_t *restrict b, int n) {
    for (int i = 0; i < n; i++) a[i] += b[i];
}

int32_t products(const int16_t *a, const int16_t *b, int n) {
    int32_t sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

int64_t differences(const uint8_t *a, const uint8_t *b, int n) {
    int64_t sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];
    return sum;
}

void blur(uint8_t *restrict a, const uint8_t *restrict b, int n) {
    for (int i = 1; i < n - 1; i++) a[i] = (b[i - 1] + 2 * b[i] + b[i + 1] + 2) >> 2;
}

void brighten(uint8_t *a, int by, int n) {
    for (int i = 0; i < n; i++) {
        int v = a[i] + by;
        a[i] = v > 255 ? 255 : v < 0 ? 0 : v;
    }
}

void swap_bytes(uint32_t *a, int n) {
    for (int i = 0; i < n; i++) a[i] = __builtin_bswap32(a[i]);
}

int ones(const uint64_t *a, int n) {
    int count = 0;
    for (int i = 0; i < n; i++) count += __builtin_popcountll(a[i]);
    return count;
}

int leading(const uint64_t *a, int n) {
    int count = 0;
    for (int i = 0; i < n; i++) count += a[i] ? __builtin_clzll(a[i]) - __builtin_ctzll(a[i]) : 64;
    return count;
}

/* --- hashes, ciphers, checksums ------------------------------------------------------------------------ */

uint32_t fnv(const uint8_t *s, size_t n) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < n; i++) hash = (hash ^ s[i]) * 16777619u;
    return hash;
}

uint64_t mix(uint64_t x, int rounds) {
    for (int i = 0; i < rounds; i++) {
        x ^= x >> 33;
        x *= 0xff51afd7ed558ccdull;
        x = x << 31 | x >> 33;
    }
    return x;
}

uint32_t crc(const uint32_t *table, const uint8_t *s, size_t n) {
    uint32_t sum = ~0u;
    while (n--) sum = table[(sum ^ *s++) & 255] ^ sum >> 8;
    return ~sum;
}

uint32_t crc_bits(uint32_t sum, uint8_t byte) {
    sum ^= byte;
    for (int k = 0; k < 8; k++) sum = sum >> 1 ^ (0xedb88320u & -(sum & 1));
    return sum;
}

uint32_t adler(const uint8_t *s, size_t n) {
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < n; i++) {
        a = (a + s[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

#define ROTATE(x, k) ((x) << (k) | (x) >> (32 - (k)))
#define QUARTER(a, b, c, d) \
    (a += b, d = ROTATE(d ^ a, 16), c += d, b = ROTATE(b ^ c, 12), a += b, d = ROTATE(d ^ a, 8), c += d, \
     b = ROTATE(b ^ c, 7))

void chacha(uint32_t *x, int rounds) {
    for (int i = 0; i < rounds; i += 2) {
        QUARTER(x[0], x[4], x[8], x[12]);
        QUARTER(x[1], x[5], x[9], x[13]);
        QUARTER(x[2], x[6], x[10], x[14]);
        QUARTER(x[3], x[7], x[11], x[15]);
    }
}

uint64_t add_carry(uint64_t *a, const uint64_t *b, int n) {
    uint64_t carry = 0;
    for (int i = 0; i < n; i++) {
        uint64_t sum = a[i] + carry;
        carry = sum < carry;
        sum += b[i];
        carry += sum < b[i];
        a[i] = sum;
    }
    return carry;
}

uint64_t scale_add(uint64_t *a, const uint64_t *b, uint64_t c, int n) {
    uint64_t carry = 0;
    for (int i = 0; i < n; i++) {
        unsigned __int128 p = (unsigned __int128)b[i] * c + a[i] + carry;
        a[i] = (uint64_t)p;
        carry = (uint64_t)(p >> 64);
    }
    return carry;
}

uint64_t power(uint64_t base, uint64_t exponent, uint64_t modulus) {
    uint64_t result = 1;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1) result = result * base % modulus;
        base = base * base % modulus;
    }
    return result;
}

/* --- strings, searching, sorting ----------------------------------------------------------------------- */

size_t length(const char *s) {
    size_t n = 0;
    while (s[n]) n++;
    return n;
}

const char *find(const char *s, int c) {
    for (; *s; s++)
        if (*s == c) return s;
    return 0;
}

int compare(const unsigned char *a, const unsigned char *b) {
    while (*a && *a == *b) a++, b++;
    return *a - *b;
}

int number(const char *s) {
    int sign = 1, n = 0;
    if (*s == '-') sign = -1, s++;
    while (*s >= '0' && *s <= '9') n = 10 * n + *s++ - '0';
    return sign * n;
}

int digits(char *out, unsigned n) {
    int k = 0;
    do {
        out[k++] = '0' + n % 10;
    } while (n /= 10);
    return k;
}

int is_utf8(const unsigned char *s, size_t n) {
    for (size_t i = 0; i < n;) {
        int more = s[i] < 0x80 ? 0 : s[i] >> 5 == 6 ? 1 : s[i] >> 4 == 14 ? 2 : s[i] >> 3 == 30 ? 3 : -1;
        if (more < 0 || i + more >= n) return 0;
        for (int k = 1; k <= more; k++)
            if (s[i + k] >> 6 != 2) return 0;
        i += more + 1;
    }
    return 1;
}

void encode(char *restrict out, const uint8_t *restrict in, const char *restrict letters, size_t n) {
    for (size_t i = 0; i + 2 < n; i += 3) {
        uint32_t v = in[i] << 16 | in[i + 1] << 8 | in[i + 2];
        for (int k = 18; k >= 0; k -= 6) *out++ = letters[v >> k & 63];
    }
}

void histogram(uint32_t *restrict bins, const uint8_t *restrict s, size_t n) {
    for (size_t i = 0; i < n; i++) bins[s[i]]++;
}

void prefix(int *a, int n) {
    for (int i = 1; i < n; i++) a[i] += a[i - 1];
}

int search(const int *a, int n, int wanted) {
    int low = 0, high = n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (a[middle] < wanted) low = middle + 1;
        else high = middle;
    }
    return low;
}

void insertion(int *a, int n) {
    for (int i = 1; i < n; i++) {
        int value = a[i], j = i;
        for (; j > 0 && a[j - 1] > value; j--) a[j] = a[j - 1];
        a[j] = value;
    }
}

int partition(int *a, int n) {
    int pivot = a[n - 1], k = 0;
    for (int i = 0; i < n - 1; i++)
        if (a[i] < pivot) {
            int t = a[i];
            a[i] = a[k];
            a[k++] = t;
        }
    a[n - 1] = a[k];
    a[k] = pivot;
    return k;
}

void merge(int *restrict out, const int *restrict a, const int *restrict b, int n, int m) {
    while (n && m) *out++ = *a <= *b ? (n--, *a++) : (m--, *b++);
    while (n--) *out++ = *a++;
    while (m--) *out++ = *b++;
}

/* --- pointers, tables, branches ------------------------------------------------------------------------ */

struct node {
    struct node *next, *left, *right;
    int key;
    double weight;
};

double walk(const struct node *one) {
    double sum = 0;
    for (; one; one = one->next) sum += one->weight;
    return sum;
}

struct node *insert(struct node *root, struct node *new) {
    struct node **place = &root;
    while (*place) place = (*place)->key > new->key ? &(*place)->left : &(*place)->right;
    *place = new;
    return root;
}

struct node *reverse(struct node *list) {
    struct node *before = 0;
    while (list) {
        struct node *next = list->next;
        list->next = before;
        before = list;
        list = next;
    }
    return before;
}

int common(int *row, const char *a, const char *b, int n, int m) {
    for (int i = 0; i < n; i++) {
        int diagonal = 0;
        for (int j = 1; j <= m; j++) {
            int old = row[j];
            row[j] = a[i] == b[j - 1] ? diagonal + 1 : row[j] > row[j - 1] ? row[j] : row[j - 1];
            diagonal = old;
        }
    }
    return row[m];
}

int life(const uint8_t *a, uint8_t *b, int n) {
    int alive = 0;
    for (int y = 1; y < n - 1; y++)
        for (int x = 1; x < n - 1; x++) {
            int around = 0;
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++) around += a[(y + dy) * n + x + dx];
            b[y * n + x] = around == 3 || (around == 4 && a[y * n + x]);
            alive += b[y * n + x];
        }
    return alive;
}

long run(const uint8_t *code, long *stack) {
    long *top = stack;
    for (;;) switch (*code++) {
        case 0: return top[-1];
        case 1: *top++ = (int8_t)*code++; break;
        case 2: top--, top[-1] += top[0]; break;
        case 3: top--, top[-1] -= top[0]; break;
        case 4: top--, top[-1] *= top[0]; break;
        case 5: top--, top[-1] /= top[0] | 1; break;
        case 6: top[0] = top[-1], top++; break;
        case 7: if (*--top) code += *code; else code++; break;
        case 8: top[-1] = top[-1] << (*code++ & 63); break;
        case 9: top[-1] = -top[-1]; break;
        }
}

unsigned divisor(unsigned a, unsigned b) {
    while (b) {
        unsigned rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int primes(uint8_t *sieve, int n) {
    int count = 0;
    for (int i = 2; i < n; i++)
        if (!sieve[i]) {
            count++;
            for (int k = 2 * i; k < n; k += i) sieve[k] = 1;
        }
    return count;
}

void count_up(long *shared, int n) {
    for (int i = 0; i < n; i++) __atomic_fetch_add(shared, 1, __ATOMIC_SEQ_CST);
}

void hand_over(long *place, long old, long new) {
    while (!__atomic_compare_exchange_n(place, &old, new, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) old &= ~1L;
}
