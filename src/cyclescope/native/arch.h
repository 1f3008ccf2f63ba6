/* What the runner needs of an instruction set; one implementation per folder. */
#ifndef CYCLESCOPE_ARCH_H
#define CYCLESCOPE_ARCH_H

#include "protocol.h"
#include <signal.h>
#include <stddef.h>

#define CODE_BASE 0x60000000ul
#define CODE_SIZE 0x1000000ul
#define DATA_BASE 0x70000000ul
#define DATA_SIZE 0x40000ul
#define STACK_BASE 0x70100000ul
#define STACK_SIZE 0x80000ul
/* The windows of the data area that are filled before every kernel. */
#define WINDOW_FIRST 0x3800ul
#define WINDOW_SECOND 0x14240ul
#define WINDOW_SIZE 0x1000ul
/* Two areas for chains of pointers, touched only by those: of large pages, where there are any, and of
 * small ones for elements that are a page or more apart. */
#define CHAIN_BASE 0x50000000ul
#define CHAIN_PAGES_BASE 0x54000000ul
#define CHAIN_SIZE 0x4000000ul
/* Lines that the kernels of several runners see. */
#define MET_BASE 0x4f000000ul
#define MET_SIZE 0x1000ul
/* What reads of the clock within code leave, out of the way of what code uses. */
#define MARKS_BASE 0x4f800000ul
#define MARKS_SIZE 0x1000ul
/* Areas of memory that are 0, with nothing between them: pointers of `bench` lead to the middle of each. */
#define AREAS_BASE 0x71000000ul
#define AREA_STEP 0x200000ul
#define AREA_SIZE 0x100000ul
#define BURST_AREAS 5u
/* Where the memory of basic blocks points to: places on pages of their own, each another line of its page.
 * Low, so that sums with a scaled index have 32 bits; above what a runner at fixed addresses takes. */
#define PLACES_BASE 0x3040000ul
#define PLACE_STEP 0x1100ul
#define PLACES 16u

#if defined __x86_64__
#define ARCH_ISA ISA_X86_64
#define EVENT_CONFIG1 0u
#define TRAPS_ARE_BEHIND 1 /* a breakpoint is told where the next instruction begins */
#elif defined __aarch64__
#define ARCH_ISA ISA_AARCH64
#define EVENT_CONFIG1 2u /* user space will read it */
#define TRAPS_ARE_BEHIND 0
#elif defined __riscv && __riscv_xlen == 64
#define ARCH_ISA ISA_RISCV64
#define EVENT_CONFIG1 0u
#define TRAPS_ARE_BEHIND 0
#else
#error "there is no runner for this instruction set"
#endif

void arch_init(void);
uint32_t arch_leaves(struct cpuid_leaf *out, uint32_t maximum);
uint64_t arch_xcr0(void);
int arch_counts_cycles(void); /* arch_ticks is a clock of core cycles */

/* The serialised clock: everything before it has finished, nothing after it has started. */
uint64_t arch_ticks(void);
uint64_t arch_read_counter(uint32_t index);

/* Run code that ends in what arch_emit_exit wrote. */
void arch_call(const struct state *state, const void *code);
void arch_call_plain(const void *code);
uint32_t arch_exceptions(void); /* sticky floating-point exceptions of the last arch_call */
void arch_recover(void);        /* bring registers back to what C expects, after a fault */
/* The signal handler: brings back what C code needs and a kernel may have changed, then goes on to
 * on_signal in faults.c. */
void arch_signal(int signal, siginfo_t *info, void *context);
void on_signal(int signal, siginfo_t *info, void *context);
uint64_t arch_fault_pc(const void *context);

#define JUMP_BYTES 8 /* room for what arch_emit_jump writes */
uint8_t *arch_emit_counter(uint8_t *p, uint32_t trips);
uint8_t *arch_emit_align(uint8_t *p);
uint8_t *arch_emit_idle(uint8_t *p, size_t bytes); /* NOPs, from an alignment on; a multiple of 4 */
void arch_emit_jump(uint8_t *p, const uint8_t *target); /* within 1 MiB */
uint8_t *arch_emit_loop_end(uint8_t *p, const uint8_t *start);
uint8_t *arch_emit_exit(uint8_t *p);
uint8_t *arch_emit_fence(uint8_t *p); /* what follows starts when everything before has finished */
uint8_t *arch_emit_drain(uint8_t *p); /* the same, and what was stored is in the cache */
/* A fence, then NOPs that the back end takes faster than the front end brings them, where there are such: what
 * follows is fetched and decoded only from there on. From an alignment on; a multiple of 64 bytes. */
uint8_t *arch_emit_flood(uint8_t *p);
#define FLOOD_ROOM 2048u /* bytes of one at most, with what aligns it */
void arch_emit_padding(uint8_t *p, size_t bytes); /* traps when executed */

/* Reads of the clock, or of counters of these indices, within code. All registers and flags stay as they are,
 * but on AArch64 X27 and on RISC-V s10, which arch_emit_marks_base sets. */
struct marks {
    uint64_t sum[COUNTERS_MAX]; /* counted between marks that resume and marks that pause */
    uint64_t start[COUNTERS_MAX], end[COUNTERS_MAX], kept[4];
};
#define MARKS ((volatile struct marks *)MARKS_BASE)
#define CLOCK_INDEX (-1) /* arch_ticks in place of a counter */
#define MARK_BYTES 8u    /* of a mark in code, which becomes a jump to the read and back */
#define MARK_ROOM 2048u  /* bytes of a read at most */
int arch_marks_are_free(void); /* of any such register: they may be in any code */
uint8_t *arch_emit_marks_base(uint8_t *p);
uint8_t *arch_emit_mark(uint8_t *p, int resumes, const int32_t *indices, unsigned count);

/* After code was written, before it runs. */
static inline void arch_code_written(uint8_t *start, uint8_t *end)
{
    __builtin___clear_cache((char *)start, (char *)end);
}

/* Bodies: one dependent one-cycle instruction; NOPs, which fill the front end. */
extern const uint8_t arch_reference[], arch_canary[];
extern const size_t arch_reference_bytes, arch_canary_bytes;
#define arch_canary_nops 8 /* in arch_canary */

/* --- differential execution: the whole architectural state ------------------------------------ */

/* Its code leaves by falling through or at one of these distances; pointers point to the middle of
 * a page. */
#define PAGE_BYTES 0x1000ul
#define EXIT_SPACING 64u
#define EXITS 4u /* the first is the fall-through */
#define PAGE_FIRST (DATA_BASE + 0x4000ul)
#define PAGE_SECOND (DATA_BASE + 0x1d000ul) /* no power of two away: no changed bit leads there */
#define PAGE_STACK (STACK_BASE + STACK_SIZE / 2)

/* All registers; vector registers are numbered by parts of 32 locations. */
#if defined __x86_64__
#define GENERALS 16u
#define VECTOR_FIRST X86_XMM
#define VECTOR_PARTS 3u
#define LOCATIONS_END X86_END
#define EXIT_BYTES 16u
#define EXTENDED_BYTES 2752
struct machine {
    uint64_t general[GENERALS];
    uint64_t flags, exit;
    uint64_t unused[6];
    uint8_t extended[EXTENDED_BYTES]; /* as XSAVE lays it out */
} __attribute__((aligned(64)));
#elif defined __aarch64__
#define GENERALS 32u
#define VECTOR_FIRST A64_VECTOR
#define VECTOR_PARTS 2u
#define LOCATIONS_END A64_END
#define EXIT_BYTES 16u
#define LONGEST_VECTOR 256u
struct machine {
    uint64_t general[GENERALS]; /* the last is SP */
    uint64_t flags, exit, fpcr, fpsr;
    uint64_t unused[4];
    uint8_t predicate[17 * LONGEST_VECTOR / 8]; /* one after the other, as long as they are; FFR */
    uint8_t unused_too[32];
    uint8_t vector[32 * LONGEST_VECTOR];
} __attribute__((aligned(64)));
#else
#define GENERALS 32u
#define VECTOR_FIRST RISCV_FLOAT
#define VECTOR_PARTS 2u
#define LOCATIONS_END RISCV_END
#define EXIT_BYTES 28u
#define LONGEST_VECTOR 1024u
struct machine {
    uint64_t general[GENERALS];
    uint64_t exit, fflags, frm, vxrm, vxsat, vl, vtype, unused;
    uint64_t scalar[32];
    uint8_t vector[32 * LONGEST_VECTOR]; /* one after the other, as long as they are */
} __attribute__((aligned(64)));
#endif

/* Bytes of an x87 location: an MMX value, an 80-bit one, then whether the register is in use. */
#define MMX_BYTES 8
#define X87_TAG 10

enum location_kind {
    LOCATION_NONE, /* the CPU has no such register */
    LOCATION_GENERAL,
    LOCATION_VECTOR,
    LOCATION_MASK,
    LOCATION_X87,
    LOCATION_BITS,   /* flags and control registers */
    LOCATION_OUTPUT, /* cannot be changed */
};

/* Where a location is in a struct machine. Of LOCATION_BITS, only `watched` bits belong to it, and
 * only `free` ones may be changed. */
struct location {
    uint32_t kind, offset, size;
    uint32_t watched, free;
};

extern struct machine arch_in, arch_out;
extern struct location arch_locations[LOCATIONS];

void arch_machine_prepare(void); /* once per process */
/* What the setup of a form leaves in registers that are no kernel's, before its first base. */
void arch_machine_setup(const struct state *state, const uint8_t *code, size_t bytes,
                        unsigned flags);
/* arch_in: a valid state, registers 0, for a form with these flags of enum differ_flags. */
void arch_machine_reset(unsigned flags);
void arch_machine_run(const void *code); /* from arch_in to arch_out */
void arch_emit_exits(uint8_t *code, uint8_t *end);

#endif
