#ifndef AFZ_PSS_GATE_H
#define AFZ_PSS_GATE_H
/* When smaps_rollup may be read.
 *
 * It alone tells how much memory a process really has (PSS), but the kernel walks every page for it
 * and holds the process's memory map meanwhile: on a process of 210 GB that took 4.5 s, in which it
 * could not map or unmap. So it is read only when it is expected to be short, and so seldom that
 * it stays a fixed small share of time, over all processes together. In between, need is the last
 * reading plus the growth of anonymous RSS. Pure: time comes in as a number.
 */
#include <stdbool.h>
#include <stdint.h>

/* The gate of all processes: an account of time that may be spent. */
struct afz_pss_gate {
        int64_t credit_ns;
        uint64_t last_ns;
};

/* The record of one process; all zero at its birth. */
struct afz_pss_record {
        uint64_t next_ns;             /* not before this time */
        uint64_t taken_ns;            /* when it was last read; 0: never */
        uint64_t cost_ns, cost_bytes; /* what the last reading took, at which RSS: time on a core,
                                         or a busy machine would use up what may be spent */
};

void afz_pss_gate_init(struct afz_pss_gate *gate, uint64_t now_ns);

bool afz_pss_gate_open(struct afz_pss_gate *gate, const struct afz_pss_record *record,
                       uint64_t now_ns, uint64_t rss_bytes);

/* A reading took this long (also one that failed). */
void afz_pss_gate_took(struct afz_pss_gate *gate, struct afz_pss_record *record, uint64_t now_ns,
                       uint64_t cost_ns, uint64_t rss_bytes);

#endif
