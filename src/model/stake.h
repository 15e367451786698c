#ifndef AFZ_STAKE_H
#define AFZ_STAKE_H
/* What one run has of the machine's memory: what the ledger lists, and what is shared out anew when
 * a run comes or goes. No I/O. */
#include <stdbool.h>
#include <stdint.h>

enum { AFZ_STAKE_ID_CAP = 32 };

struct afz_stake {
        char id[AFZ_STAKE_ID_CAP];
        uint64_t need_bytes;   /* taken already */
        uint64_t budget_bytes; /* promised: it has that now, or may grow to it; 0: it joins */
        uint64_t share_bytes;  /* what it should have (judge/share.h) */
        bool fixed;    /* nothing can be asked of it: --budget, or no guard that would hear it */
        bool over_cap; /* it still has more than it was asked to come down to */
};

#endif
