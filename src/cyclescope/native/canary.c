/* Canaries: loops of NOPs, which fill the front end, and of nothing, which take branches; whatever else uses the
 * core slows them first. */
#include "clock.h"
#include <math.h>

#define CANARY_COPIES 40    /* of arch_canary: the same in all runners, since its time is a base */
#define CANARY_TOLERANCE 0.02 /* what disturbs takes at least twice as much from a full front end */
#define TRIP_SAMPLES 24
#define LOOP_TOLERANCE 0.03 /* the least that a neighbour was seen to slow taken branches by was 4 % */
#define WIDTH_ABOVE 0.03      /* the end of the canary's loop takes a few slots of its 320 from the width, */
#define WIDTH_BELOW 0.02      /* and noise some; widths up to 16 are further apart than both */
#define WIDTH_MOST 16
#define CLEAR 0.01 /* of the time of trips that the core makes as fast as it can */
#define CLUSTER_PART 4 /* of the canaries agree at least, where they say what is undisturbed */
#define BASE_OTHER 0.9        /* no neighbour slows the clock's chain by so much (4 % were seen): another width */
#define BASE_BETTER 0.99      /* a base that is no whole width is replaced by one so much less */
#define END_SLOTS 2.0         /* at most, of the end of a loop: a decrement and a branch */
#define END_LONGER 32  /* times the trips of a canary, whose 25 no coarse clock times to a slot of 320 */
#define END_SAMPLES 32 /* of such a loop, whose middle one is right to a seventh of a slot */
#define END_CHAINS 4   /* pairs of the clock's chains beside each */
#define CANARY_NOPS ((double)(CANARY_COPIES * arch_canary_nops))

uint8_t *canary_code, *canary_longer;
static uint8_t *empty_code, *trips_code, *trips_longer, *end_code;

/* Of a loop of nothing, which takes about as long as a canary: a cycle each. */
static uint32_t empty_trips(void)
{
    return shared->canary_trips * CANARY_COPIES;
}

void canary_build(void)
{
    canary_code = CLOCK_CODE;
    canary_longer = CLOCK_CODE + 0x30000;
    empty_code = CLOCK_CODE + 0x40000;
    trips_code = CLOCK_CODE + 0x44000;
    trips_longer = CLOCK_CODE + 0x48000;
    end_code = CLOCK_CODE + 0x4c000;
    uint32_t trips = shared->canary_trips;
    build_loop(empty_code, arch_canary, arch_canary_bytes, 0, 1);
    build_loop(trips_code, arch_canary, arch_canary_bytes, 0, empty_trips());
    build_loop(trips_longer, arch_canary, arch_canary_bytes, 0, CANARY_LONGER * empty_trips());
    build_loop(canary_code, arch_canary, arch_canary_bytes, CANARY_COPIES, trips);
    build_loop(canary_longer, arch_canary, arch_canary_bytes, CANARY_COPIES, CANARY_LONGER * trips);
    build_loop(end_code, arch_canary, arch_canary_bytes, CANARY_COPIES, END_LONGER * trips);
}

/* Core cycles per trip of the canary's loop; 0 where its times lie too far apart to say. `entry` is
 * what entering and leaving takes. */
static double canary_trip(const double *canary, const double *longer, unsigned n, double *entry)
{
    unsigned one, other;
    double width, ticks = cal()->ticks_per_cycle;
    double a = low_cluster(canary, n, &one, &width), b = low_cluster(longer, n, &other, &width);
    *entry = (a - (b - a) / (CANARY_LONGER - 1)) / ticks;
    if (one < n / CLUSTER_PART || other < n / CLUSTER_PART)
        return 0;
    return (b - a) / ticks / shared->canary_trips / (CANARY_LONGER - 1);
}

/* The whole number of NOPs per cycle that explains a trip, or 0. */
static unsigned whole_width(double trip)
{
    double found = CANARY_NOPS / trip, whole = floor(found + 0.5);
    int near = whole - found < WIDTH_ABOVE * whole && found - whole < WIDTH_BELOW * whole;
    return near && whole <= WIDTH_MOST ? (unsigned)whole : 0;
}

static int is_whole(double nop)
{
    return nop > 0 && fabs(1 / nop - floor(1 / nop + 0.5)) < 1e-9;
}

/* The base never gets slower: nothing makes a core faster than it is. What is no whole width may be a chain
 * that was disturbed, and replaces one only where it is much less: half of a core looks like a whole width, too. */
void canary_note_base(double nop)
{
    int better = nop > 0 && (cal()->nop == 0 || nop < BASE_BETTER * cal()->nop);
    if (better && (is_whole(nop) || !is_whole(cal()->nop) || nop < BASE_OTHER * cal()->nop))
        cal()->nop = nop;
}

/* Core cycles of a trip by loops so long that a slot shows: one too many made all code that fills the front end .25 %
 * faster than it is, for as long as no calibration happened to find another. */
static double long_trip(void)
{
    static double v[END_SAMPLES];
    for (unsigned i = 0; i < END_SAMPLES; i++) {
        double chains = 0, low, high, trips = time_again(end_code) - time_again(canary_code);
        for (unsigned j = 0; j < END_CHAINS; j++)
            chains += clock_beside(&low, &high) / (high - low);
        v[i] = trips * chains / END_CHAINS / shared->canary_trips / (END_LONGER - 1);
    }
    return median_of(v, END_SAMPLES);
}

/* A whole number of slots, and no less than one; of several calibrations, the least disturbed says how many. */
static void find_loop_end(void)
{
    double slot = cal()->nop;
    if (shared->loop_end > 0 && shared->loop_end <= slot)
        return;
    double slots = floor((long_trip() - CANARY_NOPS * slot) / slot + 0.5);
    slots = slots < 1 ? 1 : slots > END_SLOTS ? END_SLOTS : slots;
    if (shared->loop_end == 0 || slots * slot < shared->loop_end)
        shared->loop_end = slots * slot;
}

/* What enters and leaves a canary, by the pairs of canaries whose trips took what the core takes at least: those
 * that were not disturbed agree. Others are among them by chance, and do not. 0 where too few agree. */
static double clear_entry(const double *canary, const double *longer, unsigned n)
{
    static double found[MAX_SAMPLES];
    unsigned clear = 0;
    double ticks = cal()->ticks_per_cycle, best = 0;
    double wanted = shared->canary_trips * (CANARY_NOPS * cal()->nop + shared->loop_end);
    double limit = CLEAR * wanted + shared->grain / ticks;
    for (unsigned i = 0; i < n; i++) {
        double trips = (longer[i] - canary[i]) / ticks / (CANARY_LONGER - 1);
        if (fabs(trips - wanted) <= limit)
            found[clear++] = canary[i] / ticks - trips;
    }
    for (unsigned i = 0; i < clear; i++) {
        double sum = 0;
        unsigned near = 0;
        for (unsigned j = 0; j < clear; j++)
            if (fabs(found[j] - found[i]) <= limit) {
                sum += found[j];
                near++;
            }
        if (near >= CLEAR_LEAST && sum > 0 && (best == 0 || sum / near < best))
            best = sum / near;
    }
    return best;
}

/* What enters and leaves a canary is known from samples that were not disturbed; until there are some, from
 * a loop of nothing. */
void canary_note(const double *canary, const double *longer, unsigned n)
{
    double entry, spread, trip = canary_trip(canary, longer, n, &entry);
    unsigned members, width = trip > 0 ? whole_width(trip) : 0;
    canary_note_base(width ? 1.0 / width : trip / CANARY_NOPS);
    int undisturbed = width && cal()->nop * width > BASE_BETTER;
    if (undisturbed)
        find_loop_end();
    if (shared->moment > 0)
        entry = clear_entry(canary, longer, n);
    if (entry > 0 && (undisturbed || shared->moment > 0))
        shared->entry = entry;
    double alone = shared->entry ? shared->entry : least_plain(empty_code) / cal()->ticks_per_cycle;
    cal()->canary = alone + shared->canary_trips * (CANARY_NOPS * cal()->nop + shared->loop_end);
    if (cal()->nop == 0) /* not even a disturbed one is known */
        cal()->canary = low_cluster(canary, n, &members, &spread) / cal()->ticks_per_cycle;
}

double canary_limit(void)
{
    double best = cal()->canary * cal()->ticks_per_cycle;
    return best * (1 + CANARY_TOLERANCE) + shared->grain;
}

/* Core cycles that the trips of a canary take more the second time, on an undisturbed core. */
double canary_trips(void)
{
    return (CANARY_LONGER - 1) * shared->canary_trips * (CANARY_NOPS * cal()->nop + shared->loop_end);
}

int canary_undisturbed(double trips)
{
    return fabs(trips - canary_trips()) <= CANARY_TOLERANCE * canary_trips();
}

/* Run a canary: as long as on an undisturbed core. One that is shorter shows that the clock's chain was
 * disturbed, for nothing makes a core faster than it is. Measured code pushes the canary out of what keeps it decoded
 * and predicted: the first run brings it back, which takes a Zen 4 up to 120 cycles, as much as a neighbour would. */
int core_undisturbed(void)
{
    double best = cal()->canary * cal()->ticks_per_cycle, found = time_again(canary_code);
    return found <= canary_limit() && found >= best * (1 - CANARY_TOLERANCE) - shared->grain;
}

/* Core cycles of a trip through a loop of nothing, at least: they never get more. */
static double least_trip;

/* On a core that has a neighbour from the start on, it is the whole number of cycles below. */
void loops_calibrate(void)
{
    static double one[TRIP_SAMPLES], other[TRIP_SAMPLES];
    unsigned members;
    double width;
    for (unsigned i = 0; i < TRIP_SAMPLES; i++) {
        one[i] = time_plain(trips_code);
        other[i] = time_plain(trips_longer);
    }
    double longer = low_cluster(other, TRIP_SAMPLES, &members, &width);
    double more = longer - low_cluster(one, TRIP_SAMPLES, &members, &width);
    double trip = more / cal()->ticks_per_cycle / empty_trips() / (CANARY_LONGER - 1);
    double whole = floor(trip + LOOP_TOLERANCE);
    trip = whole >= 1 ? whole : trip;
    if (trip > 0 && (least_trip == 0 || trip < least_trip))
        least_trip = trip;
}

/* A neighbour takes more of branches that are taken every cycle than of NOPs: on a Zen 3 up to each second one. */
int loops_undisturbed(void)
{
    double wanted = (CANARY_LONGER - 1) * empty_trips() * least_trip * cal()->ticks_per_cycle;
    double found = time_plain(trips_longer) - time_plain(trips_code);
    return found <= wanted * (1 + LOOP_TOLERANCE) + cal()->step;
}

/* Whether the trips of canaries take as long as on an undisturbed core. */
int core_undisturbed_beside(double ticks_per_cycle)
{
    double wanted = canary_trips();
    double found = (time_again(canary_longer) - time_again(canary_code)) / ticks_per_cycle;
    return cal()->nop > 0 && fabs(found - wanted) <= CANARY_TOLERANCE * wanted + cal()->step / ticks_per_cycle;
}
