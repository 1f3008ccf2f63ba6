/* Signals, hangs and system calls of kernels. */
#define _GNU_SOURCE
#include "worker.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

sigjmp_buf fault_return;
volatile sig_atomic_t fault_armed;
struct fault fault;
static volatile uint32_t last_seen = UINT32_MAX;
static volatile sig_atomic_t ticks_on_item;

#define TICK_MS 100
#define HANG_TICKS 10

static void on_fault(int signal, const siginfo_t *info, const void *context)
{
    if (!fault_armed)
        _exit(99);
    fault_armed = 0;
    fault.signal = signal;
    fault.address = (uint64_t)info->si_addr;
    fault.pc = arch_fault_pc(context);
    siglongjmp(fault_return, 1);
}

/* A periodic timer costs no system call per kernel: an item seen on too many ticks hangs. */
static void on_tick(int signal, const siginfo_t *info, const void *context)
{
    uint32_t item = shared->active;
    if (item != last_seen) {
        last_seen = item;
        ticks_on_item = 0;
        return;
    }
    if (++ticks_on_item < HANG_TICKS || !fault_armed)
        return;
    ticks_on_item = 0;
    on_fault(signal, info, context);
}

void on_signal(int signal, siginfo_t *info, void *context)
{
    if (signal == SIGALRM)
        on_tick(signal, info, context);
    else
        on_fault(signal, info, context);
}

static void handle(int signal)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = arch_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigfillset(&action.sa_mask);
    sigaction(signal, &action, NULL);
}

void faults_install(void)
{
    static uint8_t stack[1 << 18] __attribute__((aligned(64))); /* wide vectors are saved here */
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    const int signals[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP, SIGSYS};
    const struct itimerval timer = {{0, TICK_MS * 1000}, {0, TICK_MS * 1000}};
    sigaltstack(&alternate, NULL);
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
        handle(signals[i]);
    handle(SIGALRM);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* System calls from the code area trap; the runner's own go through. */
int faults_filter_calls(void)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, CODE_BASE, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, CODE_BASE + CODE_SIZE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof program / sizeof *program, program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return errno;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) ? errno : 0;
}
