/* The system calls that a worker may make: a short list, each with the arguments that it may have.
 *
 * Where a call comes from does not count, since measured code can jump to every instruction in its
 * process. Each entry is harmless in the hands of measured code; docs/method/legality.md says why.
 */
#define _GNU_SOURCE
#include "filter.h"
#include "arch.h"
#include "worker.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined __x86_64__
#define OWN_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define OWN_ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#ifndef EM_RISCV
#define EM_RISCV 243
#endif
#define OWN_ARCHITECTURE (EM_RISCV | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE)
#define SYS_FLUSH_ICACHE 259
#endif

#define NO_ARGUMENT UINT32_MAX
#define VALUES_MAX 3
struct allowed {
    uint32_t number, argument; /* which has one of `count` values */
    uint32_t count, values[VALUES_MAX];
};

static const struct allowed calls[] = {
    {SYS_rt_sigreturn, NO_ARGUMENT, 0, {0}}, /* from the timer's handler */
    {SYS_exit_group, 0, 3, {0, EXIT_COUNTERS_LOST, EXIT_FAULT}},
    {SYS_clock_gettime, 0, 1, {CLOCK_MONOTONIC}}, /* where the vDSO cannot say */
#ifdef SYS_FLUSH_ICACHE
    {SYS_FLUSH_ICACHE, 2, 1, {0}}, /* after code was written */
#endif
};
#define CALLS (sizeof calls / sizeof *calls)

#define LOW_WORD 0 /* of arguments, on little-endian machines */
#define HIGH_WORD 4
#define ARGUMENT(n, word) (offsetof(struct seccomp_data, args) + 8 * (n) + (word))

static struct sock_filter *add(struct sock_filter *p, uint16_t code, size_t k)
{
    const struct sock_filter made = {code, 0, 0, (uint32_t)k};
    *p = made;
    return p + 1;
}

static struct sock_filter *load(struct sock_filter *p, size_t offset)
{
    return add(p, BPF_LD | BPF_W | BPF_ABS, offset);
}

static struct sock_filter *answer(struct sock_filter *p, uint32_t action)
{
    return add(p, BPF_RET | BPF_K, action);
}

/* Skip the next instruction if the loaded word is a value. */
static struct sock_filter *skip_if(struct sock_filter *p, uint32_t value)
{
    p = add(p, BPF_JMP | BPF_JEQ | BPF_K, value);
    p[-1].jt = 1;
    return p;
}

static struct sock_filter *check_argument(struct sock_filter *p, const struct allowed *call)
{
    p = skip_if(load(p, ARGUMENT(call->argument, HIGH_WORD)), 0);
    p = load(answer(p, SECCOMP_RET_TRAP), ARGUMENT(call->argument, LOW_WORD));
    for (uint32_t i = 0; i < call->count; i++) {
        p = add(p, BPF_JMP | BPF_JEQ | BPF_K, call->values[i]);
        p[-1].jt = (uint8_t)(call->count - i); /* past the other values and the next answer */
    }
    return answer(p, SECCOMP_RET_TRAP);
}

static struct sock_filter *allow(struct sock_filter *p, const struct allowed *call)
{
    p = add(load(p, offsetof(struct seccomp_data, nr)), BPF_JMP | BPF_JEQ | BPF_K, call->number);
    struct sock_filter *unless = p - 1;
    if (call->argument != NO_ARGUMENT)
        p = check_argument(p, call);
    p = answer(p, SECCOMP_RET_ALLOW);
    unless->jf = (uint8_t)(p - unless - 1);
    return p;
}

/* The architecture comes first: the numbers of 32-bit calls mean other calls. Those of x32 are in no
 * entry. */
unsigned filter_program(struct sock_filter program[FILTER_MAX])
{
    struct sock_filter *p = load(program, offsetof(struct seccomp_data, arch));
    p = answer(skip_if(p, OWN_ARCHITECTURE), SECCOMP_RET_TRAP);
    for (unsigned i = 0; i < CALLS; i++)
        p = allow(p, &calls[i]);
    return (unsigned)(answer(p, SECCOMP_RET_TRAP) - program);
}

/* Older kernels slow down loads behind stores in a process with a filter, to keep secrets from each
 * other that there are none of here: it would be measured. */
int filter_install(void)
{
    struct sock_filter program[FILTER_MAX];
    struct sock_fprog filter = {(unsigned short)filter_program(program), program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return errno;
#ifdef SECCOMP_FILTER_FLAG_SPEC_ALLOW
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter) == 0)
        return 0;
#endif
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) ? errno : 0;
}
