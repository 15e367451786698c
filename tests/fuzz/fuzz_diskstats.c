/* Any bytes as /proc/diskstats. */
#include <stddef.h>
#include <stdint.h>

#include "diskstats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct afz_span text = {(const char *)data, size}, line, disk = {0};
        struct afz_diskstats d;
        while (afz_span_take_line(&text, &line) == 0) {
                if (afz_diskstats_parse(line, &d) < 0)
                        continue;
                if (d.name.n == 0 || d.name.p < line.p || d.name.p + d.name.n > line.p + line.n)
                        __builtin_trap();
                if (!afz_diskstats_is_partition(disk, d.name))
                        disk = d.name;
        }
        return 0;
}
