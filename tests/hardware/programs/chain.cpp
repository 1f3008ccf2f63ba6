#include "chain.h"
#include <cyclescope.h>
#include <string>

static void tell(cyclescope_region *region)
{
    std::string json(cyclescope_json(region, nullptr, 0) + 1, '\0');
    cyclescope_json(region, &json[0], json.size());
    std::puts(json.c_str());
}

int main()
{
    cyclescope_region *busy = cyclescope_region_new("chain"), *empty = cyclescope_region_new("empty");
    for (int i = 0; i < 500; i++) {
        {
            cyclescope::entry entry(busy);
            chain(3);
        }
        cyclescope::entry entry(empty);
    }
    tell(busy);
    tell(empty);
}
