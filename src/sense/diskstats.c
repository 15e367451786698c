#include "diskstats.h"

#include <errno.h>
#include <string.h>

enum { COUNTERS = 11 };

int afz_diskstats_parse(struct afz_span line, struct afz_diskstats *ret)
{
        struct afz_diskstats d = {0};
        uint64_t merged;
        uint64_t *const counter[COUNTERS] = {
                &d.reads,           &merged,     &d.read_sectors, &d.read_ms, &d.writes,   &merged,
                &d.written_sectors, &d.write_ms, &d.in_flight,    &d.busy_ms, &d.queue_ms,
        };
        if (afz_span_take_u64(&line, &d.major) < 0 || afz_span_take_u64(&line, &d.minor) < 0 ||
            afz_span_take_word(&line, &d.name) < 0)
                return -EINVAL;
        /* What the kernel's dev_t holds. */
        if (d.major >= 1U << 12 || d.minor >= 1U << 20)
                return -EINVAL;
        for (size_t i = 0; i < COUNTERS; i++)
                if (afz_span_take_u64(&line, counter[i]) < 0)
                        return -EINVAL;
        for (uint64_t later; afz_span_take_u64(&line, &later) == 0;)
                continue;
        if (afz_span_trim(line).n > 0)
                return -EINVAL;
        *ret = d;
        return 0;
}

bool afz_diskstats_is_partition(struct afz_span disk, struct afz_span name)
{
        if (disk.n == 0 || name.n <= disk.n || memcmp(name.p, disk.p, disk.n) != 0)
                return false;
        struct afz_span rest = {name.p + disk.n, name.n - disk.n};
        if (afz_is_digit(disk.p[disk.n - 1]) && afz_span_take_prefix(&rest, "p") < 0)
                return false;
        for (size_t i = 0; i < rest.n; i++)
                if (!afz_is_digit(rest.p[i]))
                        return false;
        return rest.n > 0;
}
