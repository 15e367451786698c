#include "find_probe.h"

#include "config.h"
#include "find_part.h"

int afz_find_probe(char *ret, size_t cap)
{
        static const struct afz_part probe = {
                .name = "libantifreeze-probe.so",
                .beside = {"/probe/", "/../lib/antifreeze/", "/../lib64/antifreeze/",
                           "/../lib/*/antifreeze/"},
                .installed = AFZ_PROBE_DIR,
        };
        return afz_find_part(&probe, ret, cap);
}
