#ifndef AFZ_MEMORY_LEDGER_H
#define AFZ_MEMORY_LEDGER_H
/* Where a job's memory went: its need at one moment by kind, summed over the tree with shared pages
 * once, and its largest processes. Pure; for `why --verbose` and the report.
 *
 * The rows `in_need` add up to `whole_bytes`: what is not explained has a row of its own. They are
 * read by several senses at slightly different moments, so the parts may also come to more than the
 * need: then nothing is left unexplained, `over_bytes` says by how much, and shares are of the sum.
 * The other rows (files in memory, VRAM) are beside the need and have no share.
 */
#include "flight.h"

enum afz_ledger_kind {
        AFZ_LEDGER_PRIVATE,     /* anonymous, of one process alone */
        AFZ_LEDGER_SHARED,      /* anonymous, of several: inherited by fork */
        AFZ_LEDGER_SHM,         /* shared memory, tmpfs */
        AFZ_LEDGER_PINNED,      /* of the above: pinned by drivers, told apart */
        AFZ_LEDGER_KERNEL,      /* page tables, stacks, buffers */
        AFZ_LEDGER_SWAP,        /* in swap alone */
        AFZ_LEDGER_UNEXPLAINED, /* need less all of that */
        AFZ_LEDGER_FILES,       /* file pages: can be dropped, so no need */
        AFZ_LEDGER_VRAM,        /* on GPUs */
        AFZ_LEDGER_KINDS
};

struct afz_ledger_row {
        enum afz_ledger_kind kind;
        const char *name; /* "its own data" */
        const char *what; /* one clause in plain words */
        uint64_t bytes;
        bool in_need;
        double share; /* of the whole, 0 to 1; 0 where it is not in need */
};

enum { AFZ_LEDGER_PROCESSES = 5 };

struct afz_ledger_process {
        uint64_t pid;
        const char *name, *role; /* the flight's own, and "main", "loader worker", ...: or "" */
        uint64_t bytes;
        double share; /* of the whole */
};

struct afz_ledger {
        uint32_t t_ms;
        uint64_t need_bytes;  /* at that moment */
        uint64_t whole_bytes; /* what shares are of: need, or the sum where that is more */
        uint64_t over_bytes;  /* the parts came to so much more than the need; 0: they did not */
        bool bound;           /* shared pages may be counted twice in need */
        unsigned rows;        /* only those of which something is known and that are not 0 */
        struct afz_ledger_row row[AFZ_LEDGER_KINDS];
        unsigned processes; /* largest first */
        struct afz_ledger_process process[AFZ_LEDGER_PROCESSES];
        unsigned more_processes; /* beyond these */
        uint64_t more_bytes;
};

/* At a moment; false: its need is not known there. The texts live as long as the flight. */
bool afz_ledger_at(const struct afz_flight *flight, uint32_t t_ms, struct afz_ledger *ret);

/* When it needed most; and the last moment that it lived. */
bool afz_ledger_peak(const struct afz_flight *flight, struct afz_ledger *ret);
bool afz_ledger_now(const struct afz_flight *flight, struct afz_ledger *ret);

#endif
