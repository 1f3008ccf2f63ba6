/* Differential execution is not there for this instruction set: see ARCH_DIFFERS. */
#include "../worker.h"

void differ_one(const struct differ *request, const struct kernel *kernel,
                const struct state *state, struct differ_result *out)
{
    (void)request, (void)kernel, (void)state;
    out->status = STATUS_NOT_RUN;
}
