#include "chain.h"
#include <cyclescope.h>

int main(void)
{
    char json[2000];
    cyclescope_region *regions[] = {cyclescope_region_new("chain"), cyclescope_region_new("empty")};
    for (int i = 0; i < 500; i++)
        for (int which = 0; which < 2; which++) {
            if (cyclescope_begin(regions[which]))
                return 2;
            if (which == 0)
                chain(3);
            if (cyclescope_end(regions[which]))
                return 3;
        }
    for (int which = 0; which < 2; which++) {
        if (cyclescope_json(regions[which], json, sizeof json) >= (int)sizeof json)
            return 4;
        puts(json);
    }
    return 0;
}
