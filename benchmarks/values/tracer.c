/* Runs kernels one instruction at a time, and follows values through them.
 *
 * A tag is a set of bits of the machine's state. An instruction runs from the state that the kernel has there
 * and again with other values in the tagged bits: what comes out differently is tagged then. Nothing here
 * knows what an instruction does. Requests and answers are those of tracer.py.
 */
#define _GNU_SOURCE
#include "trace.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#define ITEMS 192u
#define SLOT 0x100ul /* bytes of code of one instruction with its exit */
#define SECONDS 20 /* of its own time: others may take the CPU */
#define COPIES 16u /* of the body in one run */

static struct item items[ITEMS];
static struct event events[4 * ITEMS];
static uint32_t event_count;

static int read_all(void *to, size_t size)
{
    return fread(to, 1, size, stdin) == size ? 0 : -1;
}

/* --- a job -------------------------------------------------------------------------------------- */

static uint8_t *emit(uint8_t *p, const struct code *code)
{
    memcpy(p, code->bytes, code->length);
    return p + code->length;
}

static void place(uint8_t **at, uint8_t **next_slot, const struct code *code)
{
    *at = *next_slot;
    arch_emit_exits(SCRATCH, emit(*at, code));
    *next_slot += SLOT;
}

static uint8_t *body_at;

static void build(uint32_t count)
{
    uint8_t *slot = CODE + SLOT;
    for (uint32_t n = 0; n < count; n++) {
        place(&items[n].at, &slot, &items[n].code);
        for (unsigned i = 0; i < items[n].head.alternates; i++)
            place(&items[n].alternate_at[i], &slot, &items[n].alternate[i]);
    }
    uint8_t *p = body_at = slot;
    for (uint32_t n = 0; n < COPIES * count; n++)
        p = emit(p, &items[n % count].code);
    arch_emit_exits(SCRATCH, p);
    arch_code_written(CODE, p + SLOT);
}

/* Two rounds of a chain: the tag is put on the source once, and comes back by itself. */
static int chain(const struct request *r, struct whole *state, struct answer *answer)
{
    static struct whole tag, after, out, mask, stored, wrote;
    static const uint8_t none[LOCATIONS / 8];
    int started = 0;
    clear(&stored);
    for (unsigned n = 0; n < 3 * r->items; n++) {
        const struct item *item = &items[n % r->items];
        int tested = item->head.kind == TESTED;
        if (!started && tested) {
            mask_of(&tag, item->head.source);
            started = 1;
        }
        if (started && event_count < sizeof events / sizeof *events) {
            struct event *event = &events[event_count++];
            memset(event, 0, sizeof *event);
            event->item = (uint8_t)(n % r->items), event->round = (uint8_t)(n / r->items);
            if (tested) {
                mask_of(&mask, item->head.source);
                combine(&tag, &mask, 0);
            }
            int any = locations_of(&tag, event->before);
            if (any && item->head.uses & LOADS && reads_memory(item, state, &tag))
                look_at_memory(item, state, &tag, &stored, event);
            event->mode = (uint8_t)follow(r, item, state, &tag, &after, &event->flags);
            if (tested) {
                mask_of(&mask, item->head.target);
                combine(&after, &mask, 0);
            }
            copy_whole(&tag, &after);
            any = locations_of(&tag, event->after);
            widen(&tag, !tested);
            if (!any)
                return 0;
        }
        if (run(item->at, state, &out)) {
            answer->item = n % r->items;
            return fault.signal;
        }
        if (item->head.uses & STORES) { /* the last store that writes tagged bytes covers a load, or does not */
            written_by(item->at, state, MEMORY | REGISTERS, r->keep, none, NULL, &wrote);
            exchanged_by(r, item, state, &wrote);
            written_by(item->at, state, MEMORY, r->keep, none, NULL, &mask);
            combine(&wrote, &mask, 1);
            clear(&mask);
            memcpy(mask.memory, wrote.memory, MEMORY_BYTES);
            int any = 0;
            for (size_t i = 0; i < MEMORY_BYTES; i++)
                any |= mask.memory[i];
            if (any)
                copy_whole(&stored, &mask);
        }
        copy_whole(state, &out);
    }
    return 0;
}

/* Every instance that is tested: other data have to make a difference. */
static int stream(const struct request *r, struct whole *state, struct answer *answer)
{
    static struct whole tag, after, out, mask;
    for (unsigned n = 0; n < r->items; n++) {
        const struct item *item = &items[n];
        if (item->head.kind == TESTED && event_count < sizeof events / sizeof *events) {
            struct event *event = &events[event_count++];
            memset(event, 0, sizeof *event);
            event->item = (uint8_t)n;
            mask_of(&tag, item->head.source);
            locations_of(&tag, event->before);
            event->mode = (uint8_t)follow(r, item, state, &tag, &after, &event->flags);
            mask_of(&mask, item->head.target);
            combine(&after, &mask, 0);
            locations_of(&after, event->after);
        }
        if (run(item->at, state, &out)) {
            answer->item = n;
            return fault.signal;
        }
        copy_whole(state, &out);
    }
    return 0;
}

/* --- what the last iteration finds --------------------------------------------------------------- */

static uint8_t report[2 << 16];
static uint32_t report_size;

/* The state at the first instance that is tested. */
static int at_tested(const struct request *r, const struct whole *start, struct whole *there)
{
    static struct whole out;
    copy_whole(there, start);
    for (unsigned n = 0; n < r->items && items[n].head.kind != TESTED; n++) {
        if (run(items[n].at, there, &out))
            return fault.signal;
        copy_whole(there, &out);
    }
    return 0;
}

static void add_report(const struct request *r, struct whole *w)
{
    for (unsigned n = AREAS; n < LOCATIONS_END; n++) {
        size_t size;
        const uint8_t *at = bytes_of(w, n, &size);
        if (is_set(r->report, n) && report_size + size <= sizeof report) {
            memcpy(report + report_size, at, size);
            report_size += (uint32_t)size;
        }
    }
}

static void compare(const struct whole *a, const struct whole *b, uint8_t *changed)
{
    static struct whole differences;
    clear(&differences);
    add_differences(&differences, a, b);
    locations_of(&differences, changed);
}

static int iterate(const struct request *r, struct whole *state)
{
    static struct whole out;
    for (uint32_t n = 0; n < r->iterations; n += COPIES) {
        if (run(body_at, state, &out))
            return fault.signal;
        copy_whole(state, &out);
    }
    return 0;
}

static void work(const struct request *r, const uint8_t *setup, struct answer *answer)
{
    static struct whole state, first, last, out;
    static const struct { unsigned bytes, fraction; } elements[] = {{0, 0}, {2, 10}, {2, 7}, {4, 23}, {8, 52}};
    element_bytes = elements[r->element % 5].bytes, fraction_bits = elements[r->element % 5].fraction;
    restart_values();
    with_memory = 1;
    start_state(&state, &r->state);
    with_memory = (int)r->has_memory;
    if (r->setup) {
        memcpy(CODE, setup, r->setup);
        arch_emit_exits(SCRATCH, CODE + r->setup);
        arch_code_written(CODE, CODE + SLOT);
        if (run(CODE, &state, &out)) {
            answer->status = SETUP_FAULT, answer->detail = (uint32_t)fault.signal;
            return;
        }
        copy_whole(&state, &out);
    }
    build(r->items);
    int bad = at_tested(r, &state, &first);
    bad = bad ? bad : iterate(r, &state);
    bad = bad ? bad : at_tested(r, &state, &last);
    if (!bad) {
        compare(&first, &last, answer->changed);
        add_report(r, &first);
        add_report(r, &last);
        bad = r->kind == CHAIN ? chain(r, &state, answer) : stream(r, &state, answer);
    }
    if (bad)
        answer->status = FAULT, answer->detail = (uint32_t)bad;
}

static int read_code(struct code *code, unsigned length)
{
    code->length = (uint8_t)length;
    return length > sizeof code->bytes || read_all(code->bytes, length);
}

static int read_items(uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        struct item *item = &items[n];
        if (read_all(&item->head, sizeof item->head) || item->head.alternates > ALTERNATES ||
            read_code(&item->code, item->head.length))
            return -1;
        for (unsigned i = 0; i < item->head.alternates; i++)
            if (read_code(&item->alternate[i], item->head.length))
                return -1;
    }
    return 0;
}

static void say_hello(void)
{
    uint32_t hello[4] = {LOCATIONS, LOCATIONS_END, sizeof(struct event), sizeof(struct request)};
    for (unsigned n = 0; n < LOCATIONS_END; n++) {
        const struct location *l = &arch_locations[n];
        size_t end = l->offset + l->size;
        used = l->kind != LOCATION_NONE && end > used ? end : used;
    }
    used = (used + 63) & ~63ul;
    fwrite(hello, sizeof hello, 1, stdout);
    fwrite(arch_locations, sizeof arch_locations, 1, stdout);
    fflush(stdout);
}

static int map(uintptr_t base, size_t size, int protection)
{
    void *at = mmap((void *)base, size, protection, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return at != (void *)base;
}

int main(void)
{
    static uint8_t setup[1 << 12];
    static struct request request;
    const int all = PROT_READ | PROT_WRITE | PROT_EXEC;
    arch_init();
    if (map(CODE_BASE, CODE_SIZE, all) || map(DATA_BASE, DATA_SIZE, all & ~PROT_EXEC) ||
        map(STACK_BASE, STACK_SIZE, all & ~PROT_EXEC))
        return 3;
    install();
    arch_machine_prepare();
    say_hello();
    while (read_all(&request, sizeof request) == 0) {
        struct answer answer = {0};
        const struct itimerval timer = {{0, 0}, {SECONDS, 0}};
        if (request.items > ITEMS || request.setup > sizeof setup || read_all(setup, request.setup) ||
            read_items(request.items))
            return 4;
        event_count = 0, report_size = 0;
        setitimer(ITIMER_VIRTUAL, &timer, NULL);
        work(&request, setup, &answer);
        answer.events = event_count, answer.reported = report_size;
        fwrite(&answer, sizeof answer, 1, stdout);
        fwrite(events, sizeof *events, event_count, stdout);
        fwrite(report, 1, report_size, stdout);
        fflush(stdout);
    }
    return 0;
}
