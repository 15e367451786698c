#ifndef AFZ_KMSG_PARSE_H
#define AFZ_KMSG_PARSE_H
/* Parser of the records of /dev/kmsg. Pure, strict, fuzzed.
 *
 *      3,1234,5678901,-;Out of memory: Killed process 42 (python3) total-vm:...
 *       SUBSYSTEM=...
 *
 * Anybody who may write to /dev/kmsg can put lines there, and the kernel marks them: their facility
 * is never 0. Only the kernel's own lines are believed. Nor can a process forge one by its name,
 * which has at most 15 bytes: every pattern is anchored at the start of the line or is longer than
 * that.
 */
#include <stdint.h>

#include "sample.h"
#include "span.h"

struct afz_kmsg {
        uint64_t facility, level, sequence, usec;
        struct afz_span text; /* without the properties; points into the record */
};

struct afz_kmsg_event {
        enum afz_event_kind kind;
        int64_t code; /* see enum afz_event_kind */
};

int afz_kmsg_parse(struct afz_span record, struct afz_kmsg *ret);

/* What the line tells; -ENODATA for the many that tell nothing, and for all that are not the
 * kernel's. One kill for memory gives one event: of the two lines about it the "oom-kill:" summary
 * is passed over, since the kernel rations it and the "Killed process" line always comes. */
int afz_kmsg_recognise(const struct afz_kmsg *line, struct afz_kmsg_event *ret);

#endif
