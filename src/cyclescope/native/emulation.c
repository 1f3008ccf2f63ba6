/* Whether another program plays this CPU.
 *
 * An emulator in user space (qemu-user, Rosetta, FEX, box64) hides itself where programs look:
 * /proc/self/exe, /proc/self/maps, uname. The same link by the thread's number leads to the program
 * that the kernel runs, which is the emulator and not what is in our memory.
 */
#define _GNU_SOURCE
#include "worker.h"
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

int emulated(void)
{
    char path[64];
    ElfW(Ehdr) head;
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    snprintf(path, sizeof path, "/proc/self/task/%d/exe", (int)getpid());
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || !segments)
        return 0; /* nobody can say */
    ssize_t got = read(file, &head, sizeof head);
    close(file);
    const uint8_t *ours = (const uint8_t *)segments - sizeof head; /* they follow it */
    return got != sizeof head || memcmp(ours, &head, sizeof head) != 0;
}
