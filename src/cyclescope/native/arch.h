/* What the runner needs of an instruction set; one implementation per folder. */
#ifndef CYCLESCOPE_ARCH_H
#define CYCLESCOPE_ARCH_H

#include "protocol.h"
#include <signal.h>
#include <stddef.h>

#define CODE_BASE 0x10000000ul
#define CODE_SIZE 0x1000000ul
#define DATA_BASE 0x20000000ul
#define DATA_SIZE 0x40000ul
#define STACK_BASE 0x20100000ul
#define STACK_SIZE 0x80000ul
/* The windows of the data area that are filled before every kernel. */
#define WINDOW_FIRST 0x3800ul
#define WINDOW_SECOND 0x14240ul
#define WINDOW_SIZE 0x1000ul

void arch_init(void);
uint32_t arch_leaves(struct cpuid_leaf *out, uint32_t maximum);
uint64_t arch_xcr0(void);

/* The serialised clock: everything before it has finished, nothing after it has started. */
uint64_t arch_ticks(void);
uint64_t arch_read_counter(uint32_t index);

/* Run code that ends in what arch_emit_exit wrote. */
void arch_call(const struct state *state, const void *code);
void arch_call_plain(const void *code);
uint32_t arch_exceptions(void); /* sticky floating-point exceptions of the last arch_call */
void arch_recover(void);        /* bring registers back to what C expects, after a fault */
void arch_restore_thread(void); /* first thing in a signal handler */
uint64_t arch_fault_pc(const void *context);

uint8_t *arch_emit_counter(uint8_t *p, uint32_t trips);
uint8_t *arch_emit_align(uint8_t *p);
uint8_t *arch_emit_loop_end(uint8_t *p, const uint8_t *start);
uint8_t *arch_emit_exit(uint8_t *p);
void arch_emit_padding(uint8_t *p, size_t bytes); /* traps when executed */

/* Bodies: one dependent one-cycle instruction; independent ones that fill the core. */
extern const uint8_t arch_reference[], arch_canary[];
extern const size_t arch_reference_bytes, arch_canary_bytes;
extern const unsigned arch_canary_cycles_inverse; /* instructions of the canary per cycle */

#endif
