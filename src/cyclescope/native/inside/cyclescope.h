/* Core cycles of regions of your own program: C11 and C++11, Linux on x86-64, AArch64 and RISC-V.
 *
 *     cyclescope_region *region = cyclescope_region_new("sum");
 *     for (int i = 0; i < 100; i++) {
 *         cyclescope_begin(region);
 *         sum(values);
 *         cyclescope_end(region);
 *     }
 *     cyclescope_print(region, stdout);
 *
 *     cc program.c $(cyclescope counters --cflags --libs)
 *
 * Everything before a region has finished when its time begins, and the region when it ends. What an empty
 * region takes is subtracted. The clock is compared with a chain of additions beside every entry, which
 * also shows whether a neighbour had the core: some 50 microseconds, outside of what is timed.
 *
 * Functions that return int return 0, or -1 and leave a line in cyclescope_error(). A region that was used
 * wrongly says so in place of its result. Threads have regions of their own, one open at a time.
 */
#ifndef CYCLESCOPE_H
#define CYCLESCOPE_H

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CYCLESCOPE_EVENTS 9 /* at most */

typedef struct cyclescope_region cyclescope_region;

enum cyclescope_verdict {
    CYCLESCOPE_OK,
    CYCLESCOPE_FEW,         /* too few entries to know an error */
    CYCLESCOPE_DISTURBED,   /* no half of the entries was undisturbed */
    CYCLESCOPE_EMULATED,    /* an emulator runs this program: no cycles of a core */
    CYCLESCOPE_NEVER,       /* never entered */
    CYCLESCOPE_MISUSED,     /* begun twice, ended without a beginning, ...: no number is right */
};

/* Core cycles of one entry; `sum` is of all. `median` and `least` are of undisturbed entries, as far as there are
 * some. */
struct cyclescope_result {
    const char *name;
    enum cyclescope_verdict verdict;
    uint64_t entries;     /* that ended */
    uint64_t disturbed;   /* of them, beside a neighbour, or with an interruption or another frequency */
    uint64_t interrupted; /* of those: the thread was switched away, or waited */
    uint64_t used;        /* entries that `median` and `least` are of */
    double median, least, sum;
    double error;    /* half the width of what the median can be; NaN where too few entries tell */
    double empty;    /* what an empty region takes; was subtracted */
    double cycle;    /* ticks of the clock per core cycle */
    double step;     /* of the clock, in core cycles: what one entry cannot tell apart */
    double nanoseconds; /* of a core cycle, when last calibrated */
    unsigned events; /* that were counted */
    const char *event[CYCLESCOPE_EVENTS];
    double count[CYCLESCOPE_EVENTS]; /* per entry, without those of an empty region */
    const char *uncounted; /* why events that were asked for are not counted, or "" */
};

/* Events to count in all regions: names or NAME=TYPE:CONFIG of `cyclescope counters list`, separated by commas.
 * Before the first region. Where they cannot be counted, regions are timed all the same, and say why not. */
int cyclescope_count(const char *events);

/* NULL and a line in cyclescope_error() for a name that is empty, longer than 63 bytes or not printable. */
cyclescope_region *cyclescope_region_new(const char *name);
void cyclescope_region_free(cyclescope_region *region);

int cyclescope_begin(cyclescope_region *region);
int cyclescope_end(cyclescope_region *region);

int cyclescope_result(const cyclescope_region *region, struct cyclescope_result *result);
int cyclescope_print(const cyclescope_region *region, FILE *file); /* a line */
/* Text or JSON into a buffer; the length it has or would have, as snprintf, or -1. */
int cyclescope_text(const cyclescope_region *region, char *buffer, size_t size);
int cyclescope_json(const cyclescope_region *region, char *buffer, size_t size);

/* What entering and leaving takes where it is not C that does: core cycles, and their error. */
int cyclescope_empty(cyclescope_region *region, double cycles, double error);

const char *cyclescope_error(void); /* of this thread's last call that failed */

#ifdef __cplusplus
}

namespace cyclescope {
/* A region that begins here and ends with the block. */
class entry {
public:
    explicit entry(cyclescope_region *region) : region_(region) { cyclescope_begin(region_); }
    ~entry() { cyclescope_end(region_); }
    entry(const entry &) = delete;
    entry &operator=(const entry &) = delete;

private:
    cyclescope_region *region_;
};
} // namespace cyclescope
#endif

#endif
