#ifndef AFZ_MOUNTSTATS_H
#define AFZ_MOUNTSTATS_H
/* Parser of /proc/PID/mountstats, where NFS keeps its account of each mount. Pure, strict, fuzzed.
 *
 *      device server:/data mounted on /mnt/data with fstype nfs4 statvers=1.1
 *              ...
 *              bytes:  0 0 0 0 READ WRITTEN 0 0
 *              ...
 *              per-op statistics
 *                      READ: OPS TRANSMISSIONS TIMEOUTS SENT RECEIVED QUEUE_MS RTT_MS EXECUTE_MS
 *
 * Other file systems have only the first line. Reading it asks no server: these are counters.
 */
#include <stdbool.h>
#include <stdint.h>

#include "span.h"

struct afz_mountstats {
        bool has_bytes, has_ops;
        uint64_t read_bytes, written_bytes; /* from and to the server */
        uint64_t ops, wait_ms;              /* requests done, sum of their round trips */
        uint64_t resent;                    /* transmissions beyond the first of a request */
        /* The reads among them. */
        uint64_t read_ops, read_wait_ms;
};

/* The account of the mount at `point`, which is escaped as in mountinfo (the two files escape
 * alike). Where several are stacked on one point, the last: the one that is seen. -ENODATA when
 * there is none or it has no counters; a section that is broken or overflows is left out. */
int afz_mountstats_find(struct afz_span text, struct afz_span point, struct afz_mountstats *ret);

#endif
