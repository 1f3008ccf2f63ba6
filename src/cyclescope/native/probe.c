/* Run one instruction once and say what came of it. */
#define _GNU_SOURCE
#include "worker.h"

#define PROBE_AREA 0x1000ul

static uint8_t *build(const struct kernel *kernel, uint8_t **end)
{
    const uint8_t *bytes = (const uint8_t *)(kernel + 1);
    uint8_t *p = CODE;
    arch_emit_padding(CODE, PROBE_AREA);
    for (unsigned i = 0; i < kernel->setup; i++)
        *p++ = bytes[i];
    uint8_t *start = p;
    for (unsigned i = 0; i < kernel->body; i++)
        *p++ = bytes[kernel->setup + i];
    *end = p;
    p = arch_emit_exit(p);
    arch_code_written(CODE, p > CODE + PROBE_AREA ? p : CODE + PROBE_AREA);
    return start;
}

void probe_one(const struct kernel *kernel, const struct state *state, struct probe_result *out)
{
    uint8_t *end;
    uint8_t *start = build(kernel, &end);
    memory_fill(state);
    out->instruction = -1;
    if (sigsetjmp(fault_return, 0) == 0) {
        fault_armed = 1;
        arch_call(state, CODE);
        fault_armed = 0;
        out->status = STATUS_OK;
        return;
    }
    arch_recover();
    out->status = fault.signal == SIGALRM ? STATUS_HANG : STATUS_SIGNAL;
    out->detail = (uint32_t)fault.signal;
    out->address = fault.address;
    if (fault.pc >= (uint64_t)start && fault.pc <= (uint64_t)end)
        out->instruction = (int32_t)(fault.pc - (uint64_t)start);
}
