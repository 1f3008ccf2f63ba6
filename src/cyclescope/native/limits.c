/* What is taken from a worker before measured code runs, beside its system calls. */
#define _GNU_SOURCE
#include "worker.h"
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES_MAX 1024           /* to be closed one by one, on kernels before 5.9 */
#define MAIN_STACK (8ul << 20)   /* grows when it is touched, without a call */
#define NO_CORE_FILE 1ul         /* of a byte: no program for core files is started either */

static void limit(int resource, rlim_t most)
{
    struct rlimit now;
    if (getrlimit(resource, &now) == 0 && now.rlim_max < most)
        most = now.rlim_max;
    const struct rlimit wanted = {most, most};
    setrlimit(resource, &wanted);
}

/* The pipes to the client are the supervisor's. */
void limits_close_files(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 0u, ~0u, 0u) == 0)
        return;
#endif
    for (int file = 0; file < FILES_MAX; file++)
        close(file);
}

void limits_set(void)
{
    limit(RLIMIT_NOFILE, 0);
    limit(RLIMIT_NPROC, 0);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_CORE, NO_CORE_FILE);
    limit(RLIMIT_STACK, MAIN_STACK);
}
