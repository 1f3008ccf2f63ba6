/* The end of a loop whose body has as many bytes as each argument says: distance, words. */
#include "worker.h"
#include <stdio.h>
#include <stdlib.h>

sigjmp_buf fault_return;
volatile sig_atomic_t fault_armed;

void on_signal(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info, (void)context;
}

int main(int argc, char **argv)
{
    static uint8_t room[64];
    for (int i = 1; i < argc; i++) {
        long bytes = atol(argv[i]);
        uint8_t *end = arch_emit_loop_end(room, room - bytes);
        for (uint8_t *p = room; p < end; p++)
            printf("%02x", *p);
        printf("\n");
    }
    return 0;
}
