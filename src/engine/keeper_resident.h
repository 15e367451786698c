#ifndef AFZ_KEEPER_RESIDENT_H
#define AFZ_KEEPER_RESIDENT_H
/* How much of a process's large blocks is really there: programs reserve far more than they touch.
 * Asked of the kernel (/proc/PID/pagemap), for a sample of pages, up to a bound a look.
 */
#include "keeper_book.h"

/* Which part of a site's large blocks is there, or was when it could last be asked: 0 to 1. */
struct afz_resident {
        bool known;    /* it was opened: before that, all of it is taken to be there */
        int fd;        /* of its pagemap; -1: it cannot be asked */
        unsigned next; /* the block that a look with too few reads has left to the next one */
        float share[AFZ_BOOK_SITES]; /* 1 until it is known */
        float most[AFZ_BOOK_SITES];  /* lately: a look may come while a block is being filled */
};

void afz_resident_open(struct afz_resident *resident, int pid);
void afz_resident_close(struct afz_resident *resident);

/* Of a book's blocks, added up by site: one is enough for many books, one after the other. */
struct afz_resident_sums {
        uint64_t asked[AFZ_BOOK_SITES], there[AFZ_BOOK_SITES]; /* bytes */
};

/* Adds a large block. *reads (calls of the kernel) is what may still be spent: false when that is
 * too little for one. Brings the shares up to date when all are in. */
bool afz_resident_add(const struct afz_resident *resident, const struct afz_book_live *block,
                      unsigned *reads, struct afz_resident_sums *sums);
void afz_resident_settle(struct afz_resident *resident, const struct afz_resident_sums *sums);

#endif
