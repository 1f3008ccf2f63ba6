/* Signals and hangs of kernels. */
#define _GNU_SOURCE
#include "worker.h"
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

sigjmp_buf fault_return;
volatile sig_atomic_t fault_armed;
struct fault fault;
static volatile uint32_t last_seen = UINT32_MAX;
static volatile sig_atomic_t ticks_on_item;
static volatile uint32_t beats;

#define TICK_MS 100
#define HANG_TICKS 10

static void on_fault(int signal, const siginfo_t *info, const void *context)
{
    if (!fault_armed)
        _exit(EXIT_FAULT);
    fault_armed = 0;
    fault.signal = signal;
    fault.address = (uint64_t)info->si_addr;
    /* What is told behind an instruction is of its last byte. */
    fault.pc = arch_fault_pc(context) - (signal == SIGSYS || (signal == SIGTRAP && TRAPS_ARE_BEHIND));
    siglongjmp(fault_return, 1);
}

void fault_beat(void)
{
    beats++;
}

/* A periodic timer costs no system call per kernel: an item seen on too many ticks, without a sign of life
 * in between, hangs. */
static void on_tick(int signal, const siginfo_t *info, const void *context)
{
    uint32_t item = shared->active + beats;
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
    /* Nothing is blocked meanwhile: a jump out of a handler then needs no system call. */
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
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
