#ifndef AFZ_DISKSTATS_H
#define AFZ_DISKSTATS_H
/* Parser of the lines of /proc/diskstats: pure, strict, fuzzed.
 *
 * "254 0 vda 84700 12898 4235162 30733 199159 59059 12806664 49445 0 26188 86757 ...": device
 * number, name, eleven counters, and since 4.18 and 5.5 more of them (discards, flushes), which are
 * checked to be numbers and not kept. A line with fewer counters, or with anything else in it, is
 * -EINVAL as a whole.
 */
#include <stdbool.h>
#include <stdint.h>

#include "span.h"

#define AFZ_SECTOR_BYTES 512U /* of this file, whatever the disk's own sectors are */

struct afz_diskstats {
        uint64_t major, minor;
        struct afz_span name; /* points into the text */
        uint64_t reads, read_sectors, read_ms;
        uint64_t writes, written_sectors, write_ms;
        uint64_t in_flight, busy_ms, queue_ms;
};

int afz_diskstats_parse(struct afz_span line, struct afz_diskstats *ret);

/* Whether `name` is a partition of the disk `disk`, by the kernel's rule of naming: "sda1" of
 * "sda", and where the disk's name ends in a digit, "nvme0n1p1" of "nvme0n1". ("dm-10" is none of
 * "dm-1".) In diskstats the partitions follow their disk, so no /sys is needed to tell them apart.
 */
bool afz_diskstats_is_partition(struct afz_span disk, struct afz_span name);

#endif
