/* Executes RISC-V vector instructions, each after a few that set it up: machine words in hexadecimal, a line per
 * instruction. Answers with the number of the signal that it raised, 0 for none. */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { WORDS = 8, MEMORY = 1 << 20 };

static sigjmp_buf before;
static volatile sig_atomic_t raised;

static void caught(int number) {
    raised = number;
    siglongjmp(before, 1);
}

static void catch_signals(void) {
    static const int numbers[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action = {.sa_handler = caught, .sa_flags = SA_NODEFER};
        sigaction(numbers[i], &action, NULL);
    }
}

static void clear_vectors(void) {
    __asm__ volatile("vsetvli t6, x0, e8, m8, ta, ma\n"
                     "vmv.v.i v0, 0\nvmv.v.i v8, 0\nvmv.v.i v16, 0\nvmv.v.i v24, 0\n" ::: "t6");
}

static int read_words(const char *line, uint32_t *code) {
    int count = 0, used = 0;
    for (unsigned word; count < WORDS && sscanf(line, "%x%n", &word, &used) == 1; line += used)
        code[count++] = word;
    return count;
}

int main(void) {
    uint32_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char line[256];
    if (code == MAP_FAILED || memory == MAP_FAILED)
        return 1;
    catch_signals();
    while (fgets(line, sizeof line, stdin)) {
        code[read_words(line, code)] = 0x00008067; /* ret */
        __builtin___clear_cache((char *)code, (char *)(code + WORDS + 1));
        raised = 0;
        if (!sigsetjmp(before, 1)) {
            clear_vectors();
            ((long (*)(char *, long))(uintptr_t)code)(memory + MEMORY / 2, 8);
        }
        printf("%d\n", (int)raised);
        fflush(stdout);
    }
    return 0;
}
