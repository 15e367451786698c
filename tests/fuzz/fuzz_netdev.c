/* Any bytes as /proc/net/dev. */
#include <stddef.h>
#include <stdint.h>

#include "netdev.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct afz_span text = {(const char *)data, size}, line;
        struct afz_netdev d;
        while (afz_span_take_line(&text, &line) == 0)
                if (afz_netdev_parse(line, &d) == 0 &&
                    (d.name.n == 0 || d.name.p < line.p || d.name.p + d.name.n > line.p + line.n))
                        __builtin_trap();
        return 0;
}
