#include <string.h>

#include "probe.h"

enum {
        WINDOW = 32,        /* slots of a table in which a thing may lie */
        WINDOW_SITES = 512, /* the same of sites: few are looked for, and none is to be lost while
                               there is room */
        SLOT_FREE = 0,      /* of afz_book.address */
        SLOT_IN_WORK = 1,   /* the same */
        TEXT_BYTES = 256,   /* of one name */
        /* Of a table that is three quarters full. What is left is for whole stacks of large blocks;
         * others lose what is within the program's own innermost line, and go to few sites then: a
         * run of days that samples here and there has no end of stacks, each met once. */
        CROWDED_SITES = AFZ_BOOK_SITES / 4 * 3,
        CROWDED_FRAMES = AFZ_BOOK_FRAMES / 4 * 3,
        OUTERMOST = 12, /* frames that are kept where no line is the program's own */
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
        hash = (hash ^ value) * UINT64_C(0xff51afd7ed558ccd);
        return hash ^ (hash >> 32);
}

/* What holds for the whole program. */
static struct {
        const char *sentence[4];
        unsigned count;
} said;

void afz_book_prepare(struct afz_book *book)
{
        for (unsigned i = 0; i < said.count; i++)
                afz_book_say(book, said.sentence[i]);
        memcpy(book->texts, "?\0\0", 4);
        atomic_store(&book->text, 4);
        for (enum afz_site_kind kind = AFZ_SITE_HEAP; kind < AFZ_SITE_KINDS; kind++)
                (void)afz_book_site(book, kind, NULL, 0, 0);
}

void afz_book_say(struct afz_book *book, const char *sentence)
{
        size_t have = strlen(book->why), add = strlen(sentence);
        if (strstr(book->why, sentence) || have + add + 2 > sizeof book->why)
                return;
        if (have > 0)
                book->why[have++] = ' ';
        memcpy(book->why + have, sentence, add + 1);
}

void afz_say(const char *sentence)
{
        struct afz_book *book = afz_book_seen();
        if (said.count < sizeof said.sentence / sizeof said.sentence[0])
                said.sentence[said.count++] = sentence;
        if (book)
                afz_book_say(book, sentence);
}

/* ---- sites ---- */

static void fill_site(struct afz_book *book, struct afz_book_site *site, enum afz_site_kind kind,
                      const uint64_t *frame, unsigned frames)
{
        uint32_t from = atomic_fetch_add(&book->frames, frames);
        if (frames > 0)
                memcpy(book->frame + from, frame, frames * sizeof frame[0]);
        site->frame = from;
        site->frames = frames;
        site->step = (uint32_t)atomic_load(&book->step);
        site->first_ns = afz_now_ns();
        atomic_store_explicit(&site->kind, kind, memory_order_release);
        atomic_fetch_add(&book->sites, 1);
}

/* The slot of a key. Two threads that bring the same key look at the slots in the same order, so
 * one of them claims the first empty one and the other finds it there. -1: no room. */
static int claim_site(struct afz_book *book, uint64_t key, int may_add, int *ret_added)
{
        for (unsigned i = 0; i < WINDOW_SITES; i++) {
                unsigned at = (unsigned)(key + i) % AFZ_BOOK_SITES;
                uint64_t there = atomic_load_explicit(&book->site[at].key, memory_order_acquire);
                if (there == 0 && !may_add)
                        return -1;
                if (there == 0 &&
                    atomic_compare_exchange_strong(&book->site[at].key, &there, key)) {
                        *ret_added = 1;
                        return (int)at;
                }
                if (there == key)
                        return (int)at;
        }
        return -1;
}

/* The site of this very stack, made if it may be; -1: there is none. */
static int find_site(struct afz_book *book, enum afz_site_kind kind, const uint64_t *frame,
                     unsigned frames, int may_add)
{
        uint64_t key = mix(0, kind);
        int added = 0;
        for (unsigned i = 0; i < frames; i++)
                key = mix(key, frame[i]);
        int site = claim_site(book, key | 1, may_add, &added);
        if (added)
                fill_site(book, &book->site[site], kind, frame, frames);
        return site;
}

static int is_crowded(const struct afz_book *book)
{
        return atomic_load(&book->sites) > CROWDED_SITES ||
               atomic_load(&book->frames) > CROWDED_FRAMES;
}

/* How many frames of a stack may go when there is little room. */
static unsigned inner_frames(const uint64_t *frame, unsigned frames)
{
        for (unsigned i = 0; i < frames; i++)
                if ((frame[i] & (AFZ_FRAME_PYTHON | AFZ_FRAME_LIBRARY)) == AFZ_FRAME_PYTHON)
                        return i;
        return frames > OUTERMOST ? frames - OUTERMOST : 0;
}

unsigned afz_book_site(struct afz_book *book, enum afz_site_kind kind, const uint64_t *frame,
                       unsigned frames, uint64_t size_bytes)
{
        /* A few threads may pass here together: what they may need is kept free. */
        int room = atomic_load(&book->frames) <= AFZ_BOOK_FRAMES - 256 * AFZ_STACK_MAX;
        int shorten = size_bytes < AFZ_LARGE_BYTES && is_crowded(book);
        unsigned inner = shorten ? inner_frames(frame, frames) : 0;
        int site = find_site(book, kind, frame, frames, room && inner == 0);
        if (site < 0 && inner > 0)
                site = find_site(book, kind, frame + inner, frames - inner, room);
        if (site >= 0)
                return (unsigned)site;
        atomic_fetch_add(room ? &book->dropped_sites : &book->dropped_frames, 1);
        site = find_site(book, kind, NULL, 0, 0);
        return site < 0 ? 0 : (unsigned)site;
}

/* ---- names ---- */

static uint64_t hash_text(const char *text, size_t size)
{
        uint64_t hash = size;
        for (size_t i = 0; i < size; i++)
                hash = mix(hash, (unsigned char)text[i]);
        return hash;
}

static uint32_t add_text(struct afz_book *book, const char *text, size_t size)
{
        uint32_t need = (uint32_t)(size + 4) & ~3u; /* with its NUL */
        if (atomic_load(&book->text) + need > AFZ_BOOK_TEXT - 256 * TEXT_BYTES)
                return 0;
        uint32_t from = atomic_fetch_add(&book->text, need);
        memcpy(book->texts + from, text, size);
        return from;
}

/* Two threads that bring the same new text may both write it; the second's stays unused. */
uint32_t afz_book_name(struct afz_book *book, const char *text)
{
        size_t size = strnlen(text, TEXT_BYTES - 1);
        uint64_t hash = hash_text(text, size);
        uint32_t mine = 0;
        for (unsigned i = 0; i < WINDOW; i++) {
                _Atomic uint32_t *slot = &book->name[(hash + i) % AFZ_BOOK_NAMES];
                uint32_t there = atomic_load_explicit(slot, memory_order_acquire);
                if (there == 0) {
                        mine = mine ? mine : add_text(book, text, size);
                        if (mine == 0)
                                break;
                        if (atomic_compare_exchange_strong(slot, &there, mine + 1))
                                return mine / 4;
                }
                const char *other = book->texts + (there - 1) % AFZ_BOOK_TEXT;
                if (there - 1 < AFZ_BOOK_TEXT - TEXT_BYTES && memcmp(other, text, size) == 0 &&
                    other[size] == '\0')
                        return (there - 1) / 4;
        }
        atomic_fetch_add(&book->dropped_frames, 1);
        return 0;
}

/* ---- blocks ---- */

static unsigned slot_of(uint64_t at, unsigned i)
{
        uint64_t hash = (at >> 4) * UINT64_C(0x9e3779b97f4a7c15);
        return (unsigned)((hash >> 32) + i) % AFZ_BOOK_BLOCKS;
}

static void filter_add(struct afz_book *book, uint64_t at)
{
        _Atomic uint8_t *count = &book->filter[afz_filter_at(at)];
        uint8_t n = atomic_load(count);
        while (n != UINT8_MAX && !atomic_compare_exchange_weak(count, &n, (uint8_t)(n + 1)))
                ;
}

static void filter_remove(struct afz_book *book, uint64_t at)
{
        _Atomic uint8_t *count = &book->filter[afz_filter_at(at)];
        uint8_t n = atomic_load(count);
        while (n != UINT8_MAX && n != 0 &&
               !atomic_compare_exchange_weak(count, &n, (uint8_t)(n - 1)))
                ;
}

/* The marks of high and low water. The keeper may set them anew at any time, between our change of
 * what is live and our look at the mark: so each change tells what was there before it, too, and
 * what one of us lost the next one finds. */
static void raise_mark(_Atomic uint64_t *mark, uint64_t to)
{
        uint64_t at = atomic_load_explicit(mark, memory_order_relaxed);
        while (at < to && !atomic_compare_exchange_weak(mark, &at, to))
                ;
}

static void lower_mark(_Atomic uint64_t *mark, uint64_t to)
{
        uint64_t at = atomic_load_explicit(mark, memory_order_relaxed);
        while (at > to && !atomic_compare_exchange_weak(mark, &at, to))
                ;
}

static void count_in(struct afz_book *book, struct afz_book_site *site, const struct afz_taken *t)
{
        uint64_t was = atomic_fetch_add(&site->live_bytes, t->weight_bytes);
        lower_mark(&site->low_bytes, was);
        raise_mark(&site->high_bytes, was + t->weight_bytes);
        was = atomic_fetch_add(&book->live_bytes, t->weight_bytes);
        raise_mark(&book->high_bytes, was + t->weight_bytes);
        atomic_fetch_add(&site->live_blocks, 1);
        if (t->born >> 32 == 0)
                atomic_fetch_add(&site->early_bytes, t->weight_bytes);
        if (t->large)
                atomic_fetch_add(&site->large_bytes, t->weight_bytes);
}

static void count_out(struct afz_book *book, struct afz_book_site *site, const struct afz_taken *t)
{
        uint64_t was = atomic_fetch_sub(&site->live_bytes, t->weight_bytes);
        raise_mark(&site->high_bytes, was);
        lower_mark(&site->low_bytes, was - t->weight_bytes);
        was = atomic_fetch_sub(&book->live_bytes, t->weight_bytes);
        raise_mark(&book->high_bytes, was);
        atomic_fetch_sub(&site->live_blocks, 1);
        if (t->born >> 32 == 0)
                atomic_fetch_sub(&site->early_bytes, t->weight_bytes);
        if (t->large)
                atomic_fetch_sub(&site->large_bytes, t->weight_bytes);
}

/* The site counts a block before it can be found: whoever takes it out takes off what is there. */
static int insert(struct afz_book *book, uint64_t at, const struct afz_taken *t)
{
        for (unsigned i = 0; i < WINDOW; i++) {
                unsigned slot = slot_of(at, i);
                uint64_t empty = SLOT_FREE;
                if (atomic_load_explicit(&book->address[slot], memory_order_relaxed) != empty ||
                    !atomic_compare_exchange_strong(&book->address[slot], &empty, SLOT_IN_WORK))
                        continue;
                book->block[slot] = (struct afz_book_block){
                        .site_size = (t->large ? AFZ_BLOCK_LARGE : 0) | (uint64_t)t->site << 48 |
                                     ((t->size_bytes + 15) >> 4),
                        .weight_bytes = t->weight_bytes,
                        .born = t->born};
                count_in(book, &book->site[t->site], t);
                filter_add(book, at);
                atomic_store_explicit(&book->address[slot], at, memory_order_release);
                return 1;
        }
        atomic_fetch_add(&book->dropped_blocks, 1);
        return 0;
}

void afz_book_add(struct afz_book *book, unsigned site, uint64_t at, uint64_t size_bytes,
                  uint64_t weight_bytes)
{
        uint64_t now = afz_now_ns();
        struct afz_book_site *s = &book->site[site];
        struct afz_taken t = {.site = (int)site,
                              .large = size_bytes >= AFZ_LARGE_BYTES,
                              .size_bytes = size_bytes,
                              .weight_bytes = weight_bytes,
                              .born = atomic_load(&book->step) << 32 |
                                      ((now - book->opened_ns) / 1000000000u & UINT32_MAX)};
        /* One that was freed where we did not see it. */
        if (book->filter[afz_filter_at(at)] != 0)
                (void)afz_book_take(book, at);
        if (!insert(book, at, &t))
                return;
        atomic_fetch_add(&book->samples, 1);
        atomic_fetch_add(&s->total_bytes, weight_bytes);
        atomic_fetch_add(&s->total_blocks, 1);
        atomic_store_explicit(&s->last_ns, now, memory_order_relaxed);
}

struct afz_taken afz_book_take(struct afz_book *book, uint64_t at)
{
        struct afz_taken t = {.site = -1};
        if (at <= SLOT_IN_WORK) /* free(NULL) comes here, too */
                return t;
        for (unsigned i = 0; i < WINDOW; i++) {
                unsigned slot = slot_of(at, i);
                uint64_t there = at;
                /* Claimed, so that a program that frees twice is not counted twice. */
                if (atomic_load_explicit(&book->address[slot], memory_order_relaxed) != at ||
                    !atomic_compare_exchange_strong(&book->address[slot], &there, SLOT_IN_WORK))
                        continue;
                struct afz_book_block b = book->block[slot];
                t = (struct afz_taken){.site = (int)(b.site_size >> 48) % AFZ_BOOK_SITES,
                                       .large = (b.site_size & AFZ_BLOCK_LARGE) != 0,
                                       .size_bytes = (b.site_size & ((UINT64_C(1) << 48) - 1)) << 4,
                                       .weight_bytes = b.weight_bytes,
                                       .born = b.born};
                count_out(book, &book->site[t.site], &t);
                atomic_store_explicit(&book->address[slot], SLOT_FREE, memory_order_release);
                filter_remove(book, at);
                atomic_fetch_add(&book->frees, 1);
                return t;
        }
        return t;
}

void afz_book_put_back(struct afz_book *book, uint64_t at, const struct afz_taken *taken)
{
        if (taken->site >= 0 && insert(book, at, taken))
                atomic_fetch_sub(&book->frees, 1);
}
