#ifndef AFZ_KEEPER_BLOCKS_H
#define AFZ_KEEPER_BLOCKS_H
/* One pass over the live blocks of a book: how old they are, by site, and how much of the large
 * ones is really there.
 */
#include "keeper_resident.h"

/* One is enough for many books, one after the other. */
struct afz_block_sums {
        struct afz_resident_sums resident;
        /* Sums of weights, and of weight times age; a double holds them all. */
        double bytes[AFZ_BOOK_SITES], bytes_s[AFZ_BOOK_SITES], bytes_steps[AFZ_BOOK_SITES];
        double early_bytes[AFZ_BOOK_SITES]; /* of `bytes`: born before clock.early_s */
};

/* When it is. A block that says it is younger than that is new. */
struct afz_block_clock {
        uint64_t age_s;   /* of the book */
        uint64_t step;    /* of the process; 0: it has none */
        uint64_t early_s; /* as age_s: when the job's first step was made */
};

/* `resident`: NULL where the process is gone, and nobody can be asked; else it is brought up to
 * date. *reads: as there. */
void afz_blocks_look(struct afz_block_sums *sums, const struct afz_book *book,
                     const struct afz_block_clock *clock, struct afz_resident *resident,
                     unsigned *reads);

#endif
