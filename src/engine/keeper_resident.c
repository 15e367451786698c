#include "keeper_resident.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "fds.h"

/* Of a block, so many pieces are looked at, evenly over it (one for so many pages, but some), each
 * so many pages: a program touches memory in runs. A piece is one read of some microseconds. */
enum { FEW_PIECES = 2, PIECES = 16, PIECE_PAGES = 32, PAGES_A_PIECE = 512 };

/* What most was fades, a look: memory may also be given back in part, and stay so. */
#define FADE          0.9F

#define PAGE_IS_THERE (UINT64_C(1) << 63 | UINT64_C(1) << 62) /* present, or in swap */

void afz_resident_open(struct afz_resident *r, int pid)
{
        char path[32];
        snprintf(path, sizeof path, "/proc/%d/pagemap", pid);
        r->fd = open(path, O_RDONLY | O_CLOEXEC);
        r->known = true;
        for (unsigned i = 0; i < AFZ_BOOK_SITES; i++)
                r->share[i] = 1;
}

void afz_resident_close(struct afz_resident *r)
{
        afz_fd_close(&r->fd);
}

/* Pages that are there among those from `page` on; adds up what was asked. */
static bool look_at(int fd, uint64_t page, unsigned pages, uint64_t *asked, uint64_t *there)
{
        uint64_t entry[PIECE_PAGES];
        ssize_t n = pread(fd, entry, pages * sizeof *entry, (off_t)(page * sizeof *entry));
        if (n <= 0)
                return false;
        for (size_t i = 0; i < (size_t)n / sizeof *entry; i++) {
                ++*asked;
                *there += (entry[i] & PAGE_IS_THERE) != 0;
        }
        return true;
}

bool afz_resident_add(const struct afz_resident *r, const struct afz_book_live *block,
                      unsigned *reads, struct afz_resident_sums *sums)
{
        const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
        uint64_t first = block->at / page_bytes,
                 pages = (block->bytes + page_bytes - 1) / page_bytes;
        uint64_t asked = 0, there = 0;
        if (r->fd < 0 || *reads < PIECES)
                return false;
        if (first > INT64_MAX / 8 - pages)
                return true;
        uint64_t pieces = FEW_PIECES + pages / PAGES_A_PIECE;
        if (pieces > PIECES)
                pieces = PIECES;
        for (uint64_t i = 0; i < pieces; i++) {
                uint64_t from = pages * i / pieces, left = pages - from;
                unsigned n = left < PIECE_PAGES ? (unsigned)left : PIECE_PAGES;
                --*reads;
                if (!look_at(r->fd, first + from, n, &asked, &there))
                        break; /* the process is gone, or this is no address of one */
        }
        if (asked > 0) {
                sums->asked[block->site] += block->bytes;
                sums->there[block->site] +=
                        (uint64_t)((double)block->bytes * (double)there / (double)asked);
        }
        return true;
}

void afz_resident_settle(struct afz_resident *r, const struct afz_resident_sums *sums)
{
        for (unsigned i = 0; i < AFZ_BOOK_SITES; i++) {
                if (sums->asked[i] == 0)
                        continue;
                float share = (float)((double)sums->there[i] / (double)sums->asked[i]);
                r->share[i] = share;
                r->most[i] = share > r->most[i] * FADE ? share : r->most[i] * FADE;
        }
}
