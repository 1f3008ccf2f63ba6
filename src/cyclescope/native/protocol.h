/* The runner's protocol: little-endian frames on stdin and stdout.
 *
 * Every request is a frame; every request but STATE and QUIT is answered by one frame of the same
 * type. A kernel that faults, hangs or kills its worker is a record in the answer, never an error
 * of the protocol. src/cyclescope/backend/native.py holds the same layouts.
 */
#ifndef CYCLESCOPE_PROTOCOL_H
#define CYCLESCOPE_PROTOCOL_H

#include <stdint.h>

#define PROTOCOL_MAGIC 0x31435343u /* "CSC1" */
#define PROTOCOL_VERSION 10u

enum frame_type {
    FRAME_HELLO = 1,     /* -> struct hello, cpuid leaves */
    FRAME_SETUP = 2,     /* struct setup -> struct setup_reply */
    FRAME_CALIBRATE = 3, /* struct calibrate -> struct calibration */
    FRAME_STATE = 4,     /* u32 index, u32 0, struct state; no answer */
    FRAME_MEASURE = 5,   /* struct measure, kernels -> results, `rounds` per kernel */
    FRAME_PROBE = 6,     /* struct probe_request, kernels -> struct probe_result each */
    FRAME_DIFFER = 7,    /* struct differ, kernels -> struct differ_result each */
    FRAME_QUIT = 8,
    FRAME_ERROR = 9, /* text */
    FRAME_READ = 10, /* path -> what a file says, or names in a folder; `count` 0 if neither */
    FRAME_BLOCKS = 11, /* struct blocks, kernels -> struct block_result each */
    FRAME_BURSTS = 12, /* struct bursts, kernels -> struct burst_result and its runs each */
};

struct frame {
    uint32_t magic, type, length, count;
};

enum isa { ISA_X86_64 = 1, ISA_AARCH64 = 2, ISA_RISCV64 = 3 };

struct hello {
    uint32_t version, isa, leaves, page;
    uint64_t code_base, code_size, data_base, data_size, stack_base, stack_size;
    uint64_t xcr0;
};

/* What CPUID says; of other instruction sets what arch_leaves of their arch.c says. The last one is
 * the runner's own: `eax` has bits of enum runner_bits, `ebx` is an enum isa. */
struct cpuid_leaf {
    uint32_t leaf, subleaf, eax, ebx, ecx, edx;
};
#define RUNNER_LEAF 0x43530001u
enum runner_bits {
    RUNNER_EMULATED = 1,     /* by a program in user space: times have no meaning */
    RUNNER_COUNTS_CYCLES = 2, /* the clock without counters is one of core cycles */
};

#define COUNTERS_MAX 10
struct counter_event {
    uint32_t type, reserved;
    uint64_t config;
};

struct setup {
    int32_t cpu; /* -1: leave to the scheduler */
    uint16_t counters;
    uint16_t movable; /* not 0: to another CPU of the same kind while this one is disturbed */
    struct counter_event events[COUNTERS_MAX]; /* the first is core cycles */
};

struct setup_reply {
    int32_t cpu;            /* the CPU kernels run on, or -1 */
    int32_t pin_error;      /* errno */
    int32_t filter_error;   /* errno of the system-call filter, 0 when active */
    int32_t counter_error;  /* errno of the first event that could not be opened */
    uint32_t counters_open; /* events usable from user space, in order */
    uint32_t reserved;
};

struct calibrate {
    uint32_t samples, reserved;
    double nop; /* the calibration's `nop` as found before on such a CPU, or 0 */
};

struct calibration {
    double ticks_per_cycle; /* of the clock in use */
    double step;            /* smallest positive difference of the clock, in ticks */
    double canary;          /* core cycles of the undisturbed canary */
    double clean_share;     /* share of canaries within 2 % and one step of that */
    double spread;          /* relative spread of the reference chain over the calibration */
    double seconds_per_tick;
    double nop; /* core cycles per NOP of the canary's loop, the least ever derived; 0 if never */
};

/* Registers and memory a kernel starts with. */
struct poke {
    uint64_t address, value;
};

/* How much vector state is set: of x86-64; the others have VECTOR_NONE, VECTOR_FLOAT (v0 to v31, of
 * RISC-V the f registers) and VECTOR_SCALABLE (also z, p and FFR, or the RVV registers). */
enum { VECTOR_NONE, VECTOR_LEGACY, VECTOR_VEX128, VECTOR_VEX256, VECTOR_EVEX512 };
enum { VECTOR_FLOAT = 1, VECTOR_SCALABLE = 4 };
enum {
    STATE_X87 = 1,       /* FNINIT when the kernel ends */
    STATE_STREAMING = 2, /* SMSTART before a kernel with VECTOR_SCALABLE: SME, with ZA 0 */
};

/* The same for all instruction sets. Vector registers longer than 64 bytes, and predicates longer
 * than 64 bits, hold their pattern repeatedly. FFR is all true; RVV code finds e8, m1 and the
 * largest vl. */
struct state {
    uint64_t general[32]; /* x86-64: 16; AArch64: x0 to x30, SP; RISC-V: x0, gp and tp are ignored */
    uint64_t scalar[32];  /* the f registers of RISC-V */
    uint8_t vector[32][64];
    uint64_t mask[16];   /* k0 to k7, p0 to p15 */
    uint8_t fill[2][64]; /* pattern of the first and the second data window */
    uint64_t flags;      /* RFLAGS, NZCV */
    uint32_t control;    /* MXCSR, FPCR, fcsr */
    uint16_t vector_level, bits;
    uint32_t pokes;
    uint32_t chain; /* pointers in the large area: how many, and the steps of 64 bytes between them */
    struct poke poke[8];
};
#define CHAIN_ELEMENTS 0x3fffffu
#define CHAIN_SHIFT 22
#define CHAIN_STEP 64u

enum kernel_flags {
    KERNEL_CANARY = 1,   /* throughput: count only samples between clean canaries */
    KERNEL_UNROLLED = 2, /* no loop: the body follows itself until the region is long enough */
    KERNEL_FAST = 4,     /* of throughput, not slow: a loop of some hundred instructions, within 3 KB; of a chain: short */
    KERNEL_LONG = 8,     /* the same, of any size */
    KERNEL_WATCHED = 16, /* a chain: samples as of throughput, of one loop of a hundred instructions */
};

struct measure {
    uint32_t rounds, want, maximum, seed;
    double target; /* core cycles of the longer region */
};

struct kernel {
    uint32_t state;
    uint16_t flags, instructions; /* per unit of the body */
    uint16_t setup, body;         /* bytes that follow */
};

enum status {
    STATUS_OK = 0,
    STATUS_SIGNAL = 1,     /* `detail` is the signal number */
    STATUS_HANG = 2,       /* stopped by the timer */
    STATUS_DIED = 3,       /* the worker ended; `detail` is the signal, or one of enum ends */
    STATUS_TOO_LONG = 4,   /* the body does not fit the code area */
    STATUS_UNCLEAN = 5,    /* too few samples between clean canaries; value of what there is */
    STATUS_NOT_RUN = 6,
    STATUS_PAGES = 7, /* of a block: it touches more pages than it may */
};

enum ends {
    DIED_BY_EXIT = 1000, /* and the exit status */
    DIED_OF_NONSENSE = 2000, /* what it wrote as its result makes no sense */
};

struct result {
    double cycles;  /* core cycles per unit of the body */
    double spread;  /* half-width of the sample clusters, as cycles per unit */
    double counters[COUNTERS_MAX]; /* events per unit of the body; NaN where not counted */
    uint64_t address;              /* fault address */
    uint32_t status, detail;
    uint32_t accepted, rejected;
    uint32_t mxcsr; /* sticky exception flags raised by the kernel */
    uint32_t short_units, long_units, trips;
    int32_t instruction; /* offset of a byte of the faulting instruction in setup and body, or -1 */
    uint32_t disturbed;  /* of the rejected samples, those beside a canary that was not clean */
    double other; /* core cycles per unit of a second rate that samples between clean canaries repeat, or 0 */
};

/* Basic blocks of programs: see blocks.c. */
struct blocks {
    uint32_t want, maximum, seed, pages; /* low-cluster samples; tries; order; pages that one may touch */
    double target;                       /* core cycles of a sample */
    uint32_t reserved[2];
};

/* In kernel.flags of a BLOCKS request. */
enum block_flags {
    BLOCK_LOOP = 1,          /* the body ends with a branch to its start, ... */
    BLOCK_COUNTER_SHIFT = 8, /* ... and counts down this general register */
};

struct block_result {
    double cycles;    /* core cycles per copy of the block, or per trip */
    double spread;    /* half-width of the sample clusters, as cycles per copy */
    double linearity; /* cycles per copy of the shorter half of the copies over `cycles` */
    uint64_t address; /* fault address */
    uint32_t status, detail;
    uint32_t accepted, rejected;
    uint32_t pages, copies; /* touched; copies or trips at most */
    uint32_t calls;         /* per sample */
    int32_t instruction;    /* offset of a byte of the faulting instruction in the block, or -1 */
    uint32_t disturbed, reserved;
};

/* Copies that run once, or as a loop with its end, behind a read of the clock: see burst.c. */
struct bursts {
    uint32_t measurements, warm_up, initial_warm_up; /* of each length; runs before these; before all */
    uint32_t unroll, loop, flags, offset;            /* copies; trips, 0: no loop; bytes behind 64 */
    uint32_t one_time, late; /* bytes of a body before the copied part: run once; behind the first read */
    uint32_t reserved[3];
    double target; /* core cycles of the longer length in a measurement, of as many runs as that takes */
};
#define MEASUREMENTS_MAX 2048u

enum burst_flags {
    BURST_BASIC = 1, /* against no copies and no loop, not against half of the copies */
    BURST_DRAIN = 2, /* the front end holds nothing of the code where it begins: see arch_emit_flood */
};

/* Behind it `measurements` times two doubles: core cycles of a run of the shorter and of the longer length. */
struct burst_result {
    double counters[COUNTERS_MAX]; /* events of a longer run less those of a shorter; NaN where not counted */
    uint64_t address;              /* fault address */
    uint32_t status, detail;
    uint32_t accepted, rejected, disturbed;
    uint32_t calls;      /* runs per length in a measurement */
    int32_t instruction; /* the same in setup and body */
    uint32_t reserved;
};

struct probe_request {
    uint32_t reserved[4];
};

struct probe_result {
    uint64_t address;
    uint32_t status, detail;
    int32_t instruction; /* offset of a byte of the faulting instruction in the body, or -1 */
    uint32_t reserved;
};

/* Differential execution: see differ.c. */
struct differ {
    uint32_t bases, perturbations, seed, reserved;
};

/* In kernel.flags of a DIFFER request: what the form's values are. */
enum differ_flags {
    DIFFER_INTEGER = 0,
    DIFFER_F16 = 1,
    DIFFER_BF16 = 2,
    DIFFER_F32 = 3,
    DIFFER_F64 = 4,
    DIFFER_VALUES = 7,      /* mask of the above */
    DIFFER_MMX = 8,         /* the x87 registers hold MMX values */
    DIFFER_WHOLE = 32,      /* VL stays as the setup leaves it */
    DIFFER_INDEXED = 16,    /* a vector register is an index, ... */
    DIFFER_INDEX_SHIFT = 8, /* ... its number, ... */
    DIFFER_GROUP_SHIFT = 13, /* ... and the logarithm of how many follow each other */
};

/* Locations of the architectural state; the ones of an instruction set follow the common ones. */
enum location_number {
    AT_FIRST = 0,  /* the page around the first data pointer */
    AT_SECOND = 1, /* and the second */
    AT_STACK = 2,
    AT_EXIT = 3,  /* where execution went on: an output only */
    AT_FAULT = 4, /* whether there was a fault: an output only */
    AT_REGISTERS = 5,
    X86_GENERAL = 5,
    X86_FLAGS = 21, /* CF PF AF ZF SF OF DF */
    X86_XMM = 28,
    X86_YMM = 60, /* bits 128 to 255 */
    X86_ZMM = 92, /* bits 256 to 511 */
    X86_MASK = 124,
    X86_X87 = 132, /* the physical registers, MM0 to MM7, with their tags */
    X86_MXCSR = 140,
    X86_FCW = 141,
    X86_FSW = 142,
    X86_END = 143,
    A64_GENERAL = 5, /* x0 to x30, SP; the runner keeps x28 */
    A64_FLAGS = 37,  /* N Z C V */
    A64_VECTOR = 41,
    A64_WIDE = 73, /* of z, from bit 128 on */
    A64_PREDICATE = 105,
    A64_FFR = 121,
    A64_FPCR = 122,
    A64_FPSR = 123,
    A64_END = 124,
    RISCV_GENERAL = 5, /* x0 to x31; the runner keeps x0, gp, tp and x27 */
    RISCV_FLOAT = 37,
    RISCV_VECTOR = 69,
    RISCV_FFLAGS = 101,
    RISCV_FRM = 102,
    RISCV_VXRM = 103,
    RISCV_VXSAT = 104,
    RISCV_VL = 105,
    RISCV_VTYPE = 106,
    RISCV_END = 107,
};

#define LOCATIONS 144
struct differ_result {
    uint32_t status, detail;
    uint64_t address; /* fault address */
    uint32_t bases, trials, faults, reserved;
    uint8_t present[LOCATIONS / 8]; /* what the CPU has */
    uint8_t written[LOCATIONS / 8];
    uint8_t unstable[LOCATIONS / 8];           /* differ when nothing was changed */
    uint8_t depends[LOCATIONS][LOCATIONS / 8]; /* [input][output bit] */
};

#endif
