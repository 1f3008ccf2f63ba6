/* The library of regions on the core of fake_core.c, whose every time is known.
 *
 * fake_region ENTRIES CYCLES MORE MISTAKE: a region of so many cycles in each entry, MORE in every tenth; a line of
 * text and one of JSON. MISTAKE is what is done wrong at the end. */
#define main main_of_core
#include "fake_core.c"
#undef main
#include "inside/inside.h"
#include <locale.h>

uint8_t *clock_code;
static long switches;

static double cycles_of_code(void)
{
    return ENTRY; /* of calling the library */
}

void inside_lock(void)
{
}

void inside_unlock(void)
{
}

int inside_prepare(void)
{
    static const struct calibrate request = {400, 0, 0};
    struct calibration found;
    if (!clock_code) {
        clock_code = (uint8_t *)(CODE_BASE + 0x100000);
        calibrate(&request, &found);
    }
    return 0;
}

int inside_emulated(void)
{
    return option("EMULATED", 0) != 0;
}

long inside_switches(void)
{
    return switches;
}

const char *inside_event(unsigned number)
{
    (void)number;
    return "none";
}

const char *inside_uncounted(void)
{
    return getenv("UNCOUNTED") ? getenv("UNCOUNTED") : "";
}

int inside_foreign(void)
{
    return 0;
}

int inside_lost(void)
{
    return 0;
}

static void mistake(const char *what, cyclescope_region *region)
{
    cyclescope_region *other = cyclescope_region_new("other");
    if (strcmp(what, "begin") == 0)
        cyclescope_begin(region), cyclescope_begin(region), cyclescope_end(region);
    if (strcmp(what, "end") == 0)
        cyclescope_end(region);
    if (strcmp(what, "nest") == 0)
        cyclescope_begin(region), cyclescope_begin(other), cyclescope_end(other), cyclescope_end(region);
    if (*what)
        printf("%s\n", cyclescope_error());
}

int main(int argc, char **argv)
{
    char json[2000];
    int entries = argc > 1 ? atoi(argv[1]) : 0;
    cyclescope_region *region = cyclescope_region_new("region \"one\"");
    set_up();
    setlocale(LC_NUMERIC, "");
    for (int i = 0; i < entries; i++) {
        cyclescope_begin(region);
        pass(atof(argv[2]) + (i % 10 == 9 ? atof(argv[3]) : 0) + (i % 2 ? 1 : -1) * option("SPREAD", 0));
        switches += option("SWITCHES", 0) && i % 10 == 9;
        cyclescope_end(region);
        pass(cycles_of_code());
    }
    mistake(argc > 4 ? argv[4] : "", region);
    cyclescope_print(region, stdout);
    cyclescope_json(region, json, sizeof json);
    puts(json);
    return 0;
}
