#ifndef AFZ_KEEPER_BOOK_H
#define AFZ_KEEPER_BOOK_H
/* Reading a book (wire.h) that a process of the job may have written anything into, at any time:
 * what is taken out of it is copied once and checked as a copy. Nothing here fails but by saying
 * that there is nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

/* A site as it stands now. */
struct afz_book_look {
        enum afz_site_kind kind;
        uint64_t first_ns;
        uint64_t live_bytes, live_blocks, total_bytes, early_bytes, large_bytes;
        unsigned frames;
        uint64_t frame[AFZ_STACK_MAX];
};

/* False: there is none at this place, or it is not whole. `stack`: its frames, too. No figure is
 * above AFZ_BOOK_SANE; of live_bytes, none of early_bytes and large_bytes is more. */
#define AFZ_BOOK_SANE (UINT64_C(1) << 56)
bool afz_book_look(const struct afz_book *book, unsigned place, bool stack,
                   struct afz_book_look *ret);

/* A text by its offset: printable, cut at 255 bytes; "?" where there is none. */
enum { AFZ_BOOK_TEXT_CAP = 256 };
const char *afz_book_text(const struct afz_book *book, uint32_t offset,
                          char ret[AFZ_BOOK_TEXT_CAP]);

/* One of the book's short texts (why, python): printable, and always ended. */
void afz_book_words(const char *text, size_t cap, char *ret);

/* The module that an address belonged to when the site was new. */
struct afz_book_place {
        char path[AFZ_BOOK_MODULE_PATH];
        unsigned char build_id[AFZ_BOOK_BUILD_ID];
        uint32_t build_id_bytes;
        uint64_t address; /* in the file */
};
bool afz_book_place(const struct afz_book *book, uint64_t address, uint64_t first_ns,
                    struct afz_book_place *ret);

/* A sampled block that is live; sites are in range, and [at, at + bytes) lies in memory. Starts
 * with *cursor = 0. */
struct afz_book_live {
        uint64_t at, bytes, weight_bytes;
        uint32_t site;
        uint32_t born_step, born_s; /* since the book was opened */
        bool large;                 /* counted, not estimated */
};
bool afz_book_next_live(const struct afz_book *book, unsigned *cursor, struct afz_book_live *ret);

/* The most and the least that a site's live bytes were since this was last called: not less and not
 * more than `live`, which it has now. */
void afz_book_water(struct afz_book *book, unsigned place, uint64_t live, uint64_t *ret_high,
                    uint64_t *ret_low);

/* What a process tells of itself; 0: it does not. */
struct afz_book_inside {
        uint64_t step, wait_ns;
        uint64_t live_bytes, high_bytes; /* the most since this was last called; not below live */
        bool heap_known;
        uint64_t heap_taken_bytes, heap_used_bytes; /* the second is never more */
        uint64_t refused, refused_bytes;
        uint64_t told[AFZ_TOLD_COUNT]; /* AFZ_TOLD_NOT: it is not; else below AFZ_BOOK_SANE */
};
void afz_book_inside(struct afz_book *book, struct afz_book_inside *ret);

#endif
