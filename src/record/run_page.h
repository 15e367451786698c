#ifndef AFZ_RUN_PAGE_H
#define AFZ_RUN_PAGE_H
/* A run's page: one small file in the user's runtime folder (a tmpfs), mapped by the guard, that
 * says what the run is and how it stands. It is
 *
 *   the ledger     other runs add up what was promised to this one and not yet taken;
 *   the live view  `why` and `set` on a run that still goes on;
 *   the last word  a guard that is killed leaves it behind, and who comes next (the front, the next
 *                  run) finds it, sees that nobody holds its lock, and records the end as lost.
 *
 * Writing to it is a store into memory that is never written back to a disk, so the tick may.
 * The folder is 0700 and the file 0600; a page with another size, magic or owner is not believed.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hold.h"
#include "verdict.h"

#define AFZ_RUN_ID_CAP    32
#define AFZ_RUN_PATH_CAP  1024
#define AFZ_RUN_PLACE_CAP 512
#define AFZ_RUN_CMD_CAP   256
#define AFZ_BOOT_ID_CAP   40

struct afz_run_page {
        uint64_t magic;
        char id[AFZ_RUN_ID_CAP];
        char boot_id[AFZ_BOOT_ID_CAP];
        char dir[AFZ_RUN_PATH_CAP];    /* the run's folder; "": none */
        char place[AFZ_RUN_PLACE_CAP]; /* the job's cgroup, for the collector; "": none */
        char cmd[AFZ_RUN_CMD_CAP];     /* for people; cut */
        char inside[AFZ_RUN_ID_CAP];   /* the run that this one is a part of; "": none */
        int64_t started_s;             /* wall clock, for people */
        uint64_t started_ns;           /* CLOCK_BOOTTIME */
        int32_t front_pid, guard_pid, root_pid;
        uint32_t tier, policy;
        bool budget_given;
        _Atomic uint64_t budget_bytes, swap_bytes, need_bytes, peak_bytes, gpu_peak_bytes;
        _Atomic uint64_t cap_bytes; /* the most it may be promised since others share the machine;
                                       set by who comes and goes, its guard obeys; 0: none */
        _Atomic uint64_t tick_ns;   /* CLOCK_BOOTTIME of the last look */
        _Atomic uint64_t cpu_ns;    /* what guard and helpers have used */
        _Atomic uint32_t did[AFZ_ACTION_COUNT]; /* how often */
        struct afz_facts facts;                 /* written by the guard at the end */
        _Atomic int32_t root_end;  /* of CMD, before it is reaped: 1 + its status, or - its signal;
                                      0: it lives, or nobody saw it */
        _Atomic uint32_t braked;   /* the job stands still by our doing just now */
        _Atomic uint32_t orphaned; /* set by the collector: the guard is gone, the job lives on */
};

#define AFZ_GPU_UNKNOWN UINT64_MAX /* of gpu_peak_bytes; so is 0 */

/* Says that this is a page of this very layout. */
extern const uint64_t afz_run_page_magic;

/* Makes a page that came from a file safe to use: every text ends, numbers that index something
 * are in range. -EBADMSG: it is no page of ours (magic, a malformed ID, a relative folder). */
int afz_run_page_check(struct afz_run_page *page);

/* Reads and checks the page in an open file. -EBADMSG also for another size, and for a file that
 * is not plain or not our own. */
int afz_run_page_read(int fd, struct afz_run_page *ret);

/* What it was promised: what it has, or may grow to. */
uint64_t afz_run_page_budget(const struct afz_run_page *page);

/* What of that it has not taken. */
uint64_t afz_run_page_promised(const struct afz_run_page *page);

/* Whether somebody holds the lock of an open file. */
bool afz_run_is_held(int fd);

#endif
