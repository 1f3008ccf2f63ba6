/* Runs a kernel, and code with every register, where branches may only lead to landing pads. */
#define _GNU_SOURCE
#include "arch.h"
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROT_BTI 0x10
#define BTI_IN_HWCAP2 (1ul << 17)

extern const uint8_t leave_kernel[], leave_machine[];

void on_signal(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info, (void)context;
    _exit(3);
}

static int protect(const uint8_t *code, int guarded)
{
    uintptr_t page = (uintptr_t)getpagesize(), at = (uintptr_t)code & ~(page - 1);
    return mprotect((void *)at, page, PROT_READ | PROT_EXEC | guarded);
}

int main(void)
{
    static struct state state;
    uint8_t *code = (uint8_t *)CODE_BASE;
    if (!(getauxval(AT_HWCAP2) & BTI_IN_HWCAP2))
        return 77;
    if (mmap(code, 0x1000, PROT_READ | PROT_WRITE | PROT_EXEC,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != code)
        return 2;
    arch_init();
    arch_machine_prepare();
    arch_machine_reset(0);
    if (protect(leave_kernel, PROT_BTI) || protect(leave_machine, PROT_BTI))
        return 2;
    arch_code_written(code, arch_emit_exit(code));
    arch_call(&state, code);
    for (unsigned n = 0; n < EXITS; n++) {
        arch_emit_exits(code, code);
        memcpy(code, code + EXIT_SPACING * n, EXIT_BYTES);
        arch_code_written(code, code + 0x100);
        arch_machine_run(code);
        if (arch_out.exit != n)
            return 4;
    }
    protect(leave_kernel, 0); /* the C library shares the pages */
    protect(leave_machine, 0);
    puts("landed");
    return 0;
}
