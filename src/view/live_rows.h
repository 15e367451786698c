#ifndef AFZ_LIVE_ROWS_H
#define AFZ_LIVE_ROWS_H
/* The processes in the order in which they are listed. Private to the live view. */
#include "live_parts.h"

struct afz_live_row {
        const struct afz_sample *proc;
        double key;      /* what it is sorted by; -1: not known */
        int parent;      /* places in the same array, or -1 */
        int child, next; /* first child, next sibling */
        int depth;
        uint32_t more; /* bit d: at depth d a sibling follows further down */
};

/* Orders the window's processes; the first `wanted` rows can then be asked for. Returns how many
 * there are. Takes time linear in the processes, and allocates nothing. */
int afz_live_order(const struct afz_frame *frame, int wanted);

/* The row at a place of that order. */
const struct afz_live_row *afz_live_row(const struct afz_frame *frame, int place);

/* The order that is really used: without a job there is no tree to speak of. */
enum afz_live_sort afz_live_sort_of(const struct afz_frame *frame);

/* Share of one core. */
bool afz_live_cpu_of(const struct afz_frame *frame, const struct afz_sample *proc, double *ret);

#endif
