#include "keeper_resident.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fds.h"

/* Of a block, so many pieces are looked at, evenly over it (one for so many pages, but some), each
 * so many pages: a program touches memory in runs. A piece is one read of some microseconds. */
enum { FEW_PIECES = 2, PIECES = 16, PIECE_PAGES = 32, PAGES_A_PIECE = 512 };

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

static bool look_at_block(struct afz_resident *r, const struct afz_book_large *block,
                          uint64_t page_bytes, unsigned *reads)
{
        uint64_t first = block->at / page_bytes,
                 pages = (block->bytes + page_bytes - 1) / page_bytes;
        uint64_t asked = 0, there = 0;
        if (first > INT64_MAX / 8 - pages)
                return true;
        uint64_t pieces = FEW_PIECES + pages / PAGES_A_PIECE;
        if (pieces > PIECES)
                pieces = PIECES;
        for (uint64_t i = 0; i < pieces; i++) {
                uint64_t from = pages * i / pieces, left = pages - from;
                unsigned n = left < PIECE_PAGES ? (unsigned)left : PIECE_PAGES;
                if (!look_at(r->fd, first + from, n, &asked, &there))
                        return false; /* it is gone */
                --*reads;
        }
        if (asked > 0) {
                r->asked[block->site] += block->bytes;
                r->there[block->site] +=
                        (uint64_t)((double)block->bytes * (double)there / (double)asked);
        }
        return true;
}

void afz_resident_look(struct afz_resident *r, const struct afz_book *book, unsigned *reads)
{
        const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
        struct afz_book_large block;
        unsigned cursor = 0;
        if (r->fd < 0)
                return;
        memset(r->asked, 0, sizeof r->asked);
        memset(r->there, 0, sizeof r->there);
        while (*reads >= PIECES && afz_book_next_large(book, &cursor, &block))
                if (!look_at_block(r, &block, page_bytes, reads))
                        return;
        for (unsigned i = 0; i < AFZ_BOOK_SITES; i++)
                if (r->asked[i] > 0)
                        r->share[i] = (float)((double)r->there[i] / (double)r->asked[i]);
}
