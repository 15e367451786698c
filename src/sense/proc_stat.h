#ifndef AFZ_PROC_STAT_H
#define AFZ_PROC_STAT_H
/* Parsers of /proc/PID/{stat,statm,io}: pure, strict, fuzzed.
 *
 * A process may name itself anything, ") Z 1 1 1" and newlines too; the name therefore ends at the
 * *last* parenthesis. A file that is cut short, or has garbage where a number belongs, is -EINVAL
 * as a whole: half a process is worse than none.
 */
#include <stdint.h>

#include "span.h"

struct afz_proc_stat {
        uint64_t pid;
        struct afz_span comm; /* points into the text */
        char state;
        uint64_t ppid, pgrp, session;
        uint64_t flags; /* the kernel's PF_* bits */
        uint64_t minor_faults, major_faults;
        uint64_t user_ticks, system_ticks;
        int64_t nice;
        uint64_t threads;
        uint64_t start_ticks;
        uint64_t io_wait_ticks;
};

#define AFZ_PF_KTHREAD 0x00200000U

struct afz_proc_statm {
        uint64_t size_pages, resident_pages, shared_pages;
};

struct afz_proc_io {
        uint64_t read_calls_bytes, write_calls_bytes, read_bytes, written_bytes, cancelled_bytes;
};

int afz_proc_stat_parse(struct afz_span text, struct afz_proc_stat *ret);
int afz_proc_statm_parse(struct afz_span text, struct afz_proc_statm *ret);
int afz_proc_io_parse(struct afz_span text, struct afz_proc_io *ret);

#endif
