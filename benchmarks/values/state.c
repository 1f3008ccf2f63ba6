/* Registers and memory of the tracer, and running code from and to them. */
#define _GNU_SOURCE
#include "trace.h"
#include <string.h>
#include <unistd.h>

sigjmp_buf fault_return;
volatile sig_atomic_t fault_armed;
struct fault fault;
size_t used;
int with_memory;

#define MEMORY_FIRST (DATA_BASE + 0x4000ul - 512)
#define MEMORY_SECOND (DATA_BASE + 0x14a40ul - 256)
#define MEMORY_STACK (STACK_BASE + STACK_SIZE / 2 - 512)
static const struct area {
    uintptr_t address;
    size_t at, bytes;
} areas[] = {{MEMORY_FIRST, 0, FIRST_BYTES},
             {MEMORY_SECOND, FIRST_BYTES, SECOND_BYTES},
             {MEMORY_STACK, FIRST_BYTES + SECOND_BYTES, STACK_BYTES}};

void copy_whole(struct whole *to, const struct whole *from)
{
    memcpy(&to->registers, &from->registers, used);
    if (with_memory)
        memcpy(to->memory, from->memory, MEMORY_BYTES);
}

uint8_t *bytes_of(struct whole *w, unsigned location, size_t *size)
{
    if (location < AREAS) {
        *size = with_memory ? areas[location].bytes : 0;
        return w->memory + areas[location].at;
    }
    const struct location *l = &arch_locations[location];
    *size = l->kind == LOCATION_NONE ? 0 : l->kind == LOCATION_BITS ? (l->size < 4 ? l->size : 4) : l->size;
    return (uint8_t *)&w->registers + l->offset;
}

/* Whether only some bits of a location belong to it, and which. */
static int own_bits(unsigned location, uint32_t *bits)
{
    if (location < AREAS || arch_locations[location].kind != LOCATION_BITS)
        return 0;
    *bits = arch_locations[location].watched;
    return 1;
}

int is_set(const uint8_t *bits, unsigned n)
{
    return bits[n / 8] >> n % 8 & 1;
}

void set(uint8_t *bits, unsigned n)
{
    bits[n / 8] |= (uint8_t)(1u << n % 8);
}

/* All bits of some locations. */
void mask_of(struct whole *mask, const uint8_t *locations)
{
    clear(mask);
    for (unsigned n = 0; n < LOCATIONS_END; n++) {
        size_t size;
        uint32_t bits;
        uint8_t *to = bytes_of(mask, n, &size);
        if (!is_set(locations, n))
            continue;
        if (!own_bits(n, &bits))
            memset(to, UINT8_MAX, size);
        for (size_t i = 0; own_bits(n, &bits) && i < size; i++)
            to[i] |= (uint8_t)(bits >> 8 * i);
    }
}

static int any_bit(const uint8_t *at, size_t size)
{
    uint64_t all = 0, word;
    for (; size >= sizeof word; at += sizeof word, size -= sizeof word) {
        memcpy(&word, at, sizeof word);
        all |= word;
    }
    for (size_t i = 0; i < size; i++)
        all |= at[i];
    return all != 0;
}

static int any_own_bit(unsigned location, const uint8_t *at, size_t size)
{
    uint32_t bits, word = 0;
    if (!own_bits(location, &bits))
        return any_bit(at, size);
    memcpy(&word, at, size);
    return (word & bits) != 0;
}

/* Locations that have a bit of a mask. Returns whether there is one. */
int locations_of(const struct whole *mask, uint8_t *locations)
{
    int any = 0;
    memset(locations, 0, LOCATIONS / 8);
    for (unsigned n = 0; n < LOCATIONS_END; n++) {
        size_t size;
        const uint8_t *at = bytes_of((struct whole *)mask, n, &size);
        if (any_own_bit(n, at, size)) {
            set(locations, n);
            any = 1;
        }
    }
    return any;
}

static void combine_words(void *to, const void *from, size_t bytes, int with)
{
    uint64_t *a = to;
    const uint64_t *b = from;
    for (size_t n = 0; n < bytes / 8; n++)
        a[n] = with ? a[n] | b[n] : a[n] & b[n];
}

void combine(struct whole *to, const struct whole *from, int with)
{
    combine_words(&to->registers, &from->registers, used, with);
    if (with_memory)
        combine_words(to->memory, from->memory, MEMORY_BYTES, with);
}

void clear(struct whole *w)
{
    memset(&w->registers, 0, used);
    memset(w->memory, 0, MEMORY_BYTES);
}

/* --- running ------------------------------------------------------------------------------------ */

void on_signal(int signal, siginfo_t *info, void *context)
{
    if (!fault_armed)
        _exit(signal == SIGVTALRM ? 98 : 99);
    fault_armed = 0;
    fault.signal = signal;
    fault.address = (uint64_t)info->si_addr;
    fault.pc = arch_fault_pc(context);
    siglongjmp(fault_return, 1);
}

void install(void)
{
    static uint8_t stack[1 << 18] __attribute__((aligned(64)));
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    const int signals[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP, SIGVTALRM};
    sigaltstack(&alternate, NULL);
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_sigaction = arch_signal;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigaction(signals[i], &action, NULL);
    }
}

#if defined __x86_64__
enum { AT_FSW = 2, AT_X87 = 32 };
/* arch_out has the x87 registers by number, arch_in as a stack. */
static void as_stack(struct machine *m)
{
    uint8_t slots[128], *area = m->extended;
    unsigned top = area[AT_FSW + 1] >> 3 & 7;
    memcpy(slots, area + AT_X87, sizeof slots);
    for (unsigned n = 0; n < 8; n++)
        memcpy(area + AT_X87 + 16 * n, slots + 16 * ((n + top) & 7), 16);
}
#else
static void as_stack(struct machine *m)
{
    (void)m;
}
#endif

/* Returns 0, or the signal. */
int run(const uint8_t *code, const struct whole *in, struct whole *out)
{
    memcpy(&arch_in, &in->registers, used);
    as_stack(&arch_in);
    for (unsigned n = 0; with_memory && n < AREAS; n++)
        memcpy((void *)areas[n].address, in->memory + areas[n].at, areas[n].bytes);
    if (sigsetjmp(fault_return, 0)) { /* handlers block no signal, so that no mask has to be kept */
        arch_recover();
        return fault.signal;
    }
    fault_armed = 1;
    arch_machine_run(code);
    fault_armed = 0;
    arch_recover();
    memcpy(&out->registers, &arch_out, used);
    for (unsigned n = 0; with_memory && n < AREAS; n++)
        memcpy(out->memory + areas[n].at, (void *)areas[n].address, areas[n].bytes);
    return 0;
}

/* --- start -------------------------------------------------------------------------------------- */

static void fill(struct whole *w, unsigned location, const void *pattern, size_t length)
{
    size_t size;
    uint8_t *at = bytes_of(w, location, &size);
    for (size_t i = 0; i < size; i++)
        at[i] = ((const uint8_t *)pattern)[i % length];
}

#if defined __x86_64__
static void fill_registers(struct whole *w, const struct state *s)
{
    enum { AT_MXCSR = 24 };
    for (unsigned n = 0; n < 32; n++) {
        fill(w, X86_XMM + n, s->vector[n], 16);
        fill(w, X86_YMM + n, s->vector[n] + 16, 16);
        fill(w, X86_ZMM + n, s->vector[n] + 32, 32);
    }
    for (unsigned n = 0; n < 8; n++)
        fill(w, X86_MASK + n, &s->mask[n], 8);
    w->registers.flags = s->flags | 0x202;
    memcpy(w->registers.extended + AT_MXCSR, &s->control, 4);
    memset(w->registers.extended + AT_X87, 0, 128); /* as FNINIT leaves it: empty */
    w->registers.extended[4] = 0;
}
#elif defined __aarch64__
static void fill_registers(struct whole *w, const struct state *s)
{
    for (unsigned n = 0; n < 32; n++) {
        uint8_t turned[64];
        memcpy(turned, s->vector[n] + 16, 48);
        memcpy(turned + 48, s->vector[n], 16);
        fill(w, A64_VECTOR + n, s->vector[n], 16);
        fill(w, A64_WIDE + n, turned, 64);
    }
    for (unsigned n = 0; n < 16; n++)
        fill(w, A64_PREDICATE + n, &s->mask[n], 8);
    const uint64_t ones = UINT64_MAX;
    fill(w, A64_FFR, &ones, 8);
    w->registers.flags = s->flags;
    w->registers.fpcr = s->control;
}
#else
static void fill_registers(struct whole *w, const struct state *s)
{
    for (unsigned n = 0; n < 32; n++) {
        fill(w, RISCV_VECTOR + n, s->vector[n], 64);
        w->registers.scalar[n] = s->scalar[n];
    }
    w->registers.fflags = s->control & 31;
    w->registers.frm = s->control >> 5 & 7;
}
#endif

void start_state(struct whole *w, const struct state *s)
{
    memset(w, 0, sizeof *w);
    arch_machine_reset(0);
    w->registers = arch_in;
    memcpy(w->registers.general, s->general, 8 * GENERALS);
    fill_registers(w, s);
    for (unsigned n = 0; n < AREAS; n++)
        for (size_t i = 0; n < 2 && i < areas[n].bytes; i++)
            w->memory[areas[n].at + i] = s->fill[n][(areas[n].address + i) % 64];
    for (uint32_t i = 0; i < s->pokes && i < 8; i++)
        for (unsigned n = 0; n < AREAS; n++)
            if (s->poke[i].address >= areas[n].address &&
                s->poke[i].address + 8 <= areas[n].address + areas[n].bytes)
                memcpy(w->memory + areas[n].at + (s->poke[i].address - areas[n].address),
                       &s->poke[i].value, 8);
}
