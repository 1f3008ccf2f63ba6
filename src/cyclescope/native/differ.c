/* Differential execution: what an instruction really reads and writes.
 *
 * It runs from a random state, the base; then one location of the state is changed and it runs
 * again. An output that changed depends on the location. A location that the instruction does not
 * write passes through, which is no dependence; one that passes through in one state and is written
 * in another is written conditionally, and counts as an input of itself. Only three pages of data
 * and stack are mapped meanwhile, so that no access goes unseen.
 */
#define _GNU_SOURCE
#include "values.h"
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define ATTEMPTS 6u
#define CODE_AREA 0x200ul
#define LONGEST (EXIT_SPACING - EXIT_BYTES) /* bytes of code before the first exit */
#define SECONDS_PER_FORM 0.6 /* well before the timer calls it a hang */

static struct values values;
static struct machine base_in, base_out;
static uint8_t page_in[PAGES][PAGE_BYTES], page_out[PAGES][PAGE_BYTES];
static uint8_t kept[LOCATIONS / 8]; /* passed through unwritten in some trial */
static uint8_t page_written[PAGES]; /* by the base */

static void set(uint8_t *bits, unsigned n)
{
    bits[n / 8] |= (uint8_t)(1u << n % 8);
}

static int is_set(const uint8_t *bits, unsigned n)
{
    return bits[n / 8] >> n % 8 & 1;
}

/* --- locations in registers --------------------------------------------------------------------- */

static uint32_t watched_bits(const struct location *l, const struct machine *m)
{
    uint32_t word = 0;
    memcpy(&word, (const uint8_t *)m + l->offset, l->size < 4 ? l->size : 4);
    return word & l->watched;
}

static int same(unsigned n, const struct machine *a, const struct machine *b)
{
    const struct location *l = &arch_locations[n];
    if (l->kind == LOCATION_BITS)
        return watched_bits(l, a) == watched_bits(l, b);
    return !memcmp((const uint8_t *)a + l->offset, (const uint8_t *)b + l->offset, l->size);
}

static void copy(unsigned n, struct machine *to, const struct machine *from)
{
    const struct location *l = &arch_locations[n];
    uint8_t *at = (uint8_t *)to + l->offset;
    if (l->kind == LOCATION_BITS) {
        uint32_t word = 0;
        size_t size = l->size < 4 ? l->size : 4;
        memcpy(&word, at, size);
        word = (word & ~l->watched) | watched_bits(l, from);
        memcpy(at, &word, size);
    } else {
        memcpy(at, (const uint8_t *)from + l->offset, l->size);
    }
}

static void mark_different(uint8_t *bits, const struct machine *a, const struct machine *b)
{
    for (unsigned n = AT_EXIT; n < LOCATIONS_END; n++)
        if (arch_locations[n].kind != LOCATION_NONE && !same(n, a, b))
            set(bits, n);
}

/* --- one run ------------------------------------------------------------------------------------ */

static void write_pages(const uint8_t pages[PAGES][PAGE_BYTES])
{
    for (unsigned n = 0; n < PAGES; n++)
        memcpy(page_address[n], pages[n], PAGE_BYTES);
}

static int run(void)
{
    if (sigsetjmp(fault_return, 0) == 0) {
        fault_armed = 1;
        arch_machine_run(CODE);
        fault_armed = 0;
        return 0;
    }
    arch_recover();
    return fault.signal;
}

static void report_fault(struct differ_result *out)
{
    out->status = fault.signal == SIGALRM ? STATUS_HANG : STATUS_SIGNAL;
    out->detail = (uint32_t)fault.signal;
    out->address = fault.address;
}

static void report_success(struct differ_result *out)
{
    out->status = STATUS_OK;
    out->detail = 0;
    out->address = 0;
}

/* --- bases -------------------------------------------------------------------------------------- */

static void record_base(struct differ_result *out)
{
    base_in = arch_in;
    base_out = arch_out;
    memcpy(page_in, values.page, sizeof page_in);
    mark_different(out->written, &arch_in, &arch_out);
    for (unsigned n = 0; n < PAGES; n++) {
        memcpy(page_out[n], page_address[n], PAGE_BYTES);
        page_written[n] = memcmp(page_out[n], page_in[n], PAGE_BYTES) != 0;
        if (page_written[n])
            set(out->written, n);
    }
}

/* A state that the instruction runs from without a fault. Returns 0 when none was found. */
static int find_base(struct differ_result *out, unsigned base)
{
    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        values_draw(&values, base, attempt);
        write_pages(values.page);
        out->trials++;
        if (run() == 0) {
            record_base(out);
            return 1;
        }
        out->faults++;
        if (base == 0)
            report_fault(out);
        if (fault.signal == SIGALRM || fault.signal == SIGILL)
            return 0;
    }
    return 0;
}

/* The same input again: outputs that change now are not a function of the state. */
static void repeat_base(struct differ_result *out)
{
    write_pages(page_in);
    out->trials++;
    if (run()) {
        set(out->unstable, AT_FAULT);
        return;
    }
    mark_different(out->unstable, &arch_out, &base_out);
    for (unsigned n = 0; n < PAGES; n++)
        if (memcmp(page_address[n], page_out[n], PAGE_BYTES))
            set(out->unstable, n);
}

/* --- changes ------------------------------------------------------------------------------------ */

/* Bytes that pass through are no dependence: a store keeps the rest of its page. */
static int bytes_depend(const uint8_t *now, const uint8_t *in, const uint8_t *before,
                        const uint8_t *before_in)
{
    for (size_t at = 0; at < PAGE_BYTES; at += 8) {
        if (!memcmp(now + at, in + at, 8) && !memcmp(before + at, before_in + at, 8))
            continue;
        for (size_t i = at; i < at + 8; i++)
            if (now[i] != before[i] && !(now[i] == in[i] && before[i] == before_in[i]))
                return 1;
    }
    return 0;
}

static void compare_page(struct differ_result *out, unsigned n, unsigned changed)
{
    const uint8_t *now = page_address[n], *in = values.page[n];
    int written = memcmp(now, in, PAGE_BYTES) != 0;
    int depends = page_written[n];
    if (written)
        set(out->written, n);
    if (n == changed)
        depends = (written || page_written[n]) && bytes_depend(now, in, page_out[n], page_in[n]);
    else if (written)
        depends = memcmp(now, page_out[n], PAGE_BYTES) != 0;
    if (depends)
        set(out->depends[changed], n);
    if (written)
        memcpy(page_address[n], page_in[n], PAGE_BYTES);
}

static void compare_registers(struct differ_result *out, unsigned changed)
{
    int passes = changed >= AT_REGISTERS && !same(changed, &arch_in, &base_in) &&
                 same(changed, &arch_out, &arch_in) && same(changed, &base_out, &base_in);
    if (passes) {
        set(kept, changed);
        copy(changed, &arch_out, &base_out);
    }
    if (!memcmp(&arch_out, &base_out, sizeof arch_out))
        return;
    mark_different(out->depends[changed], &arch_out, &base_out);
    if (passes)
        copy(changed, &arch_out, &arch_in);
    mark_different(out->written, &arch_out, &arch_in);
}

static void compare(struct differ_result *out, unsigned changed)
{
    compare_registers(out, changed);
    for (unsigned n = 0; n < PAGES; n++)
        compare_page(out, n, changed);
}

static void change_once(struct differ_result *out, unsigned location, unsigned kind)
{
    values_change(&values, location, kind);
    if (location < PAGES)
        memcpy(page_address[location], values.page[location], PAGE_BYTES);
    out->trials++;
    if (run() == 0) {
        compare(out, location);
    } else {
        out->faults++;
        set(out->depends[location], AT_FAULT);
        write_pages(page_in);
    }
    if (location < PAGES) {
        memcpy(values.page[location], page_in[location], PAGE_BYTES);
        memcpy(page_address[location], page_in[location], PAGE_BYTES);
    } else {
        copy(location, &arch_in, &base_in);
    }
}

/* A flag has only one other value. */
static unsigned changes_of(const struct differ *request, unsigned location)
{
    const struct location *l = &arch_locations[location];
    if (location < PAGES)
        return request->perturbations;
    if (l->kind == LOCATION_NONE || l->kind == LOCATION_OUTPUT)
        return 0;
    if (l->kind == LOCATION_BITS && (l->free & (l->free - 1)) == 0)
        return 1;
    return request->perturbations;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns 0 when the time is over. */
static int explore(const struct differ *request, struct differ_result *out, double until)
{
    repeat_base(out);
    write_pages(page_in);
    for (unsigned n = 0; n < LOCATIONS_END; n++) {
        unsigned changes = changes_of(request, n);
        for (unsigned i = 0; i < changes; i++)
            change_once(out, n, out->bases * request->perturbations + i);
        if (changes && n % 16 == 0 && seconds() > until)
            return 0;
    }
    repeat_base(out);
    return 1;
}

/* --- a form ------------------------------------------------------------------------------------- */

/* Bit offsets reach from the data area into the code area. Where the kernel's pages are larger, less
 * is out of reach. */
static void protect(void)
{
    const uintptr_t bytes = (uintptr_t)getpagesize();
    mprotect((void *)(CODE_BASE + bytes), CODE_SIZE - bytes, PROT_NONE);
    mprotect((void *)DATA_BASE, DATA_SIZE, PROT_NONE);
    mprotect((void *)STACK_BASE, STACK_SIZE, PROT_NONE);
    for (unsigned n = 0; n < PAGES; n++)
        mprotect((void *)((uintptr_t)page_address[n] & ~(bytes - 1)), bytes, PROT_READ | PROT_WRITE);
}

void differ_prepare(void)
{
    arch_machine_prepare();
    protect();
}

static void build(const struct kernel *kernel)
{
    arch_emit_padding(CODE, CODE_AREA);
    memcpy(CODE, (const uint8_t *)(kernel + 1) + kernel->setup, kernel->body);
    arch_emit_exits(CODE, CODE + kernel->body);
    arch_code_written(CODE, CODE + CODE_AREA);
}

static void settle(struct differ_result *out)
{
    for (unsigned n = 0; n < LOCATIONS_END; n++)
        if (n < PAGES || arch_locations[n].kind != LOCATION_NONE)
            set(out->present, n);
    for (unsigned n = AT_REGISTERS; n < LOCATIONS_END; n++)
        if (is_set(kept, n) && is_set(out->written, n))
            set(out->depends[n], n);
    for (unsigned n = 0; n < LOCATIONS_END; n++)
        for (unsigned byte = 0; byte < LOCATIONS / 8; byte++)
            out->depends[n][byte] &= (uint8_t)~out->unstable[byte];
}

void differ_one(const struct differ *request, const struct kernel *kernel,
                const struct state *state, struct differ_result *out)
{
    double until = seconds() + SECONDS_PER_FORM;
    memset(out, 0, sizeof *out);
    memset(kept, 0, sizeof kept);
    out->status = kernel->body > LONGEST ? STATUS_TOO_LONG : STATUS_NOT_RUN;
    if (kernel->body > LONGEST)
        return;
    arch_machine_setup(state, (const uint8_t *)(kernel + 1), kernel->setup, kernel->flags);
    build(kernel);
    values_start(&values, kernel, state, request->seed);
    for (unsigned base = 0; base < request->bases && seconds() < until; base++) {
        if (find_base(out, base)) {
            report_success(out);
            if (!explore(request, out, until))
                break;
            out->bases++;
        } else if (base == 0) {
            break;
        }
    }
    arch_recover();
    settle(out);
}
