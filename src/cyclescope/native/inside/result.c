/* What the entries of a region say: numbers with their error, as text and as JSON. */
#define _GNU_SOURCE
#include "inside.h"
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <stdlib.h>

#define NORMAL_MEDIAN 1.2533 /* standard error of a median, times the mean's: sqrt(pi / 2) */
#define NORMAL_DEVIATION 1.4826 /* standard deviation by the median deviation, of a normal distribution */
#define ERRORS 2.0 /* standard errors: one number in twenty lies further away */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double inside_median(double *v, unsigned n)
{
    qsort(v, n, sizeof *v, compare);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* The undisturbed entries; all others where those are too few to say anything. */
static const struct kept *kept_of(const cyclescope_region *region)
{
    return region->clean.count >= FEWEST_ENTRIES || !region->other.count ? &region->clean : &region->other;
}

static enum cyclescope_verdict verdict(const cyclescope_region *region)
{
    if (region->problem[0])
        return CYCLESCOPE_MISUSED;
    if (region->entries == 0)
        return CYCLESCOPE_NEVER;
    if (inside_emulated())
        return CYCLESCOPE_EMULATED;
    if (2 * region->clean.seen < region->entries)
        return CYCLESCOPE_DISTURBED;
    return region->clean.count < FEWEST_ENTRIES ? CYCLESCOPE_FEW : CYCLESCOPE_OK;
}

/* Of the median: what it varies by, what the clock cannot tell apart, what an empty region and a cycle are
 * not known to better. */
static void summarise(const cyclescope_region *region, struct cyclescope_result *out)
{
    const struct kept *kept = kept_of(region);
    unsigned n = kept->count;
    double v[KEPT_MOST];
    memcpy(v, kept->cycles, n * sizeof *v);
    double middle = inside_median(v, n);
    for (unsigned i = 0; i < n; i++)
        v[i] = fabs(v[i] - middle);
    double deviation = NORMAL_DEVIATION * inside_median(v, n);
    memcpy(v, kept->doubts, n * sizeof *v);
    double cycle = inside_median(v, n);
    double known = region->step + region->empty_error + cycle * middle;
    out->median = middle - region->empty;
    out->least = kept->least - region->empty;
    out->used = kept->seen;
    out->sum = region->sum - (double)region->entries * region->empty;
    out->error = n < FEWEST_ENTRIES ? NAN : known + ERRORS * NORMAL_MEDIAN * deviation / sqrt(n);
}

static void counted(const cyclescope_region *region, struct cyclescope_result *out)
{
    out->events = counters_count();
    for (unsigned i = 0; i < out->events && i < CYCLESCOPE_EVENTS; i++) {
        out->event[i] = inside_event(i);
        out->count[i] = region->counts[i] / (double)region->entries - region->empty_counts[i];
    }
    out->uncounted = inside_uncounted();
}

EXPORT int cyclescope_result(const cyclescope_region *region, struct cyclescope_result *out)
{
    if (!region || !out)
        return inside_fail("there is no region to have a result");
    memset(out, 0, sizeof *out);
    out->name = region->name;
    out->uncounted = "";
    out->verdict = verdict(region);
    out->entries = region->entries;
    out->disturbed = region->disturbed;
    out->interrupted = region->interrupted;
    out->median = out->least = out->sum = out->error = NAN;
    if (out->verdict == CYCLESCOPE_MISUSED)
        return inside_fail(region->problem);
    if (out->verdict == CYCLESCOPE_NEVER)
        return 0;
    summarise(region, out);
    counted(region, out);
    out->empty = region->empty;
    out->cycle = region->cycle;
    out->step = region->step;
    out->nanoseconds = 1e9 * shared->calibration.seconds_per_tick * region->cycle;
    return 0;
}

/* --- text ---------------------------------------------------------------------------------------- */

struct text {
    char *at;
    size_t size, length;
};

/* Numbers as programs read them, whatever decimal point the program around us has chosen. */
static locale_t plain_numbers(void)
{
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    return plain ? uselocale(plain) : (locale_t)0;
}

static void usual_numbers(locale_t usual)
{
    if (usual)
        freelocale(uselocale(usual));
}

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list values;
    size_t room = text->length < text->size ? text->size - text->length : 0;
    va_start(values, format);
    int more = vsnprintf(room ? text->at + text->length : NULL, room, format, values);
    va_end(values);
    text->length += more > 0 ? (size_t)more : 0;
}

static void add_why(struct text *text, const struct cyclescope_result *r)
{
    if (r->verdict == CYCLESCOPE_EMULATED)
        add(text, "; emulated: no cycles of a core");
    if (r->disturbed)
        add(text, "; %llu of %llu entries disturbed%s", (unsigned long long)r->disturbed,
            (unsigned long long)r->entries,
            r->used + r->disturbed == r->entries ? ", left out" : ": it may be wrong by more");
    if (r->disturbed && shared->calibration.nop == 0)
        add(text, " (no quiet moment was found to compare with)");
    if (r->interrupted)
        add(text, " (%llu switched away)", (unsigned long long)r->interrupted);
}

static void add_counts(struct text *text, const struct cyclescope_result *r)
{
    for (unsigned i = 0; i < r->events; i++)
        add(text, "; %s %.1f", r->event[i], r->count[i]);
    if (r->uncounted[0])
        add(text, "; events not counted: %s", r->uncounted);
}

static void add_cycles(struct text *text, const struct cyclescope_result *r)
{
    add(text, "%s: %.1f ", r->name, r->median);
    if (isnan(r->error))
        add(text, "core cycles (error not known: %d undisturbed entries tell it", FEWEST_ENTRIES);
    else
        add(text, "+- %.1f core cycles (median of %llu", r->error, (unsigned long long)r->used);
    add(text, "; least %.1f, sum of all %llu: %.1f)", r->least, (unsigned long long)r->entries, r->sum);
}

EXPORT int cyclescope_text(const cyclescope_region *region, char *buffer, size_t size)
{
    struct cyclescope_result r;
    struct text text = {buffer, size, 0};
    if (!region)
        return inside_fail("there is no region to have a result");
    locale_t usual = plain_numbers();
    if (cyclescope_result(region, &r))
        add(&text, "error: %s", region->problem);
    else if (r.verdict == CYCLESCOPE_NEVER)
        add(&text, "%s: never entered", r.name);
    else {
        add_cycles(&text, &r);
        add_why(&text, &r);
        add_counts(&text, &r);
    }
    usual_numbers(usual);
    return (int)text.length;
}

EXPORT int cyclescope_print(const cyclescope_region *region, FILE *file)
{
    char line[1024];
    if (cyclescope_text(region, line, sizeof line) < 0)
        return -1;
    return fprintf(file, "%s\n", line) < 0 ? inside_fail("the result cannot be written") : 0;
}

/* --- JSON ---------------------------------------------------------------------------------------- */

static const char *const verdicts[] = {"ok", "few", "disturbed", "emulated", "never", "misused"};

static void add_quoted(struct text *text, const char *words)
{
    add(text, "\"");
    for (; *words; words++)
        if ((unsigned char)*words < ' ')
            add(text, "\\u%04x", *words);
        else
            add(text, *words == '"' || *words == '\\' ? "\\%c" : "%c", *words);
    add(text, "\"");
}

static void add_number(struct text *text, const char *name, double value)
{
    if (isnan(value))
        add(text, ", \"%s\": null", name);
    else
        add(text, ", \"%s\": %.10g", name, value);
}

static void add_numbers(struct text *text, const struct cyclescope_result *r)
{
    add_number(text, "median", r->median);
    add_number(text, "error", r->error);
    add_number(text, "least", r->least);
    add_number(text, "sum", r->sum);
    add_number(text, "empty", r->empty);
    add_number(text, "step", r->step);
    add_number(text, "ticks_per_cycle", r->cycle);
    add_number(text, "nanoseconds_per_cycle", r->nanoseconds);
    add(text, ", \"counters\": {");
    for (unsigned i = 0; i < r->events; i++) {
        add(text, i ? ", " : "");
        add_quoted(text, r->event[i]);
        add(text, ": %.10g", r->count[i]);
    }
    add(text, "}, \"uncounted\": ");
    add_quoted(text, r->uncounted);
}

EXPORT int cyclescope_json(const cyclescope_region *region, char *buffer, size_t size)
{
    struct cyclescope_result r;
    struct text text = {buffer, size, 0};
    if (!region)
        return inside_fail("there is no region to have a result");
    locale_t usual = plain_numbers();
    int misused = cyclescope_result(region, &r);
    add(&text, "{\"schema_version\": 1, \"region\": ");
    add_quoted(&text, region->name);
    add(&text, ", \"unit\": \"core cycles\", \"verdict\": \"%s\", \"problem\": ", verdicts[r.verdict]);
    add_quoted(&text, misused ? region->problem : "");
    add(&text, ", \"entries\": %llu, \"disturbed\": %llu, \"interrupted\": %llu, \"used\": %llu",
        (unsigned long long)r.entries, (unsigned long long)r.disturbed, (unsigned long long)r.interrupted,
        (unsigned long long)r.used);
    add_numbers(&text, &r);
    add(&text, "}");
    usual_numbers(usual);
    return (int)text.length;
}
