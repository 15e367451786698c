#include "keeper_book.h"

#include <string.h>

#include "span.h"

/* As much as a program can address, and no more: sums of a few thousand stay below 2^63. */
static uint64_t sane(uint64_t value)
{
        return value < AFZ_BOOK_SANE ? value : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

#define LOAD(member) atomic_load_explicit(&(member), memory_order_relaxed)

/* What is not atomic in the book may change while we look: read once, and then only the copy. */
#define ONCE(member) (*(const volatile __typeof__(member) *)&(member))

bool afz_book_look(const struct afz_book *book, unsigned place, bool stack,
                   struct afz_book_look *ret)
{
        const struct afz_book_site *s = &book->site[place % AFZ_BOOK_SITES];
        uint32_t kind = atomic_load_explicit(&s->kind, memory_order_acquire);
        if (kind == AFZ_SITE_FREE || kind >= AFZ_SITE_KINDS)
                return false;
        uint32_t frame = ONCE(s->frame), frames = ONCE(s->frames);
        if (frames > AFZ_STACK_MAX || frame > AFZ_BOOK_FRAMES || frames > AFZ_BOOK_FRAMES - frame)
                return false;
        uint64_t live = sane(LOAD(s->live_bytes));
        ret->kind = (enum afz_site_kind)kind;
        ret->first_ns = ONCE(s->first_ns);
        ret->live_bytes = live;
        ret->live_blocks = sane(LOAD(s->live_blocks));
        ret->total_bytes = sane(LOAD(s->total_bytes));
        ret->early_bytes = least(sane(LOAD(s->early_bytes)), live);
        ret->large_bytes = least(sane(LOAD(s->large_bytes)), live);
        ret->frames = frames;
        for (uint32_t i = 0; stack && i < frames; i++)
                ret->frame[i] = ONCE(book->frame[frame + i]);
        return true;
}

void afz_book_words(const char *text, size_t cap, char *ret)
{
        size_t n = 0;
        for (; n + 1 < cap && (ret[n] = ONCE(text[n])) != '\0'; n++)
                ;
        (void)afz_span_copy((struct afz_span){ret, n}, ret, cap);
}

const char *afz_book_text(const struct afz_book *book, uint32_t offset, char ret[AFZ_BOOK_TEXT_CAP])
{
        size_t room = offset < AFZ_BOOK_TEXT ? AFZ_BOOK_TEXT - offset : 0;
        if (room > 0)
                afz_book_words(book->texts + offset,
                               room < AFZ_BOOK_TEXT_CAP ? room : AFZ_BOOK_TEXT_CAP, ret);
        if (room == 0 || ret[0] == '\0')
                strcpy(ret, "?");
        return ret;
}

bool afz_book_place(const struct afz_book *book, uint64_t address, uint64_t first_ns,
                    struct afz_book_place *ret)
{
        uint32_t used = LOAD(book->modules);
        uint64_t newest_ns = 0;
        bool found = false;
        if (used > AFZ_BOOK_MODULES)
                used = AFZ_BOOK_MODULES;
        for (uint32_t i = 0; i < used; i++) {
                const struct afz_book_module *m = &book->module[i];
                uint64_t base = atomic_load_explicit(&m->base, memory_order_acquire);
                uint64_t since_ns = ONCE(m->since_ns);
                if (base == 0 || address < base || address >= ONCE(m->end) || since_ns > first_ns ||
                    (found && since_ns < newest_ns))
                        continue;
                found = true;
                newest_ns = since_ns;
                ret->address = address - ONCE(m->shift);
                ret->build_id_bytes = ONCE(m->build_id_bytes);
                if (ret->build_id_bytes > AFZ_BOOK_BUILD_ID)
                        ret->build_id_bytes = AFZ_BOOK_BUILD_ID;
                for (size_t b = 0; b < sizeof ret->build_id; b++)
                        ret->build_id[b] = ONCE(m->build_id[b]);
                afz_book_words(m->path, sizeof ret->path, ret->path);
        }
        return found;
}

bool afz_book_next_live(const struct afz_book *book, unsigned *cursor, struct afz_book_live *ret)
{
        while (*cursor < AFZ_BOOK_BLOCKS) {
                unsigned i = (*cursor)++;
                uint64_t at = LOAD(book->address[i]);
                if (at <= 1)
                        continue;
                uint64_t word = ONCE(book->block[i].site_size), born = ONCE(book->block[i].born);
                uint64_t bytes = AFZ_BLOCK_BYTES(word);
                uint32_t site = AFZ_BLOCK_SITE(word);
                if (site >= AFZ_BOOK_SITES || bytes == 0 || bytes >= AFZ_BOOK_SANE ||
                    at > UINT64_MAX - bytes)
                        continue;
                *ret = (struct afz_book_live){
                        .at = at,
                        .bytes = bytes,
                        .weight_bytes = sane(ONCE(book->block[i].weight_bytes)),
                        .site = site,
                        .born_step = (uint32_t)(born >> 32),
                        .born_s = (uint32_t)born,
                        .large = word & AFZ_BLOCK_LARGE,
                };
                return true;
        }
        return false;
}

/* The mark as it was, set to what is live now. Between the two, the probe may move what is live and
 * not the mark: then it is less sharp by that one block. */
static uint64_t take_mark(_Atomic uint64_t *mark, uint64_t live)
{
        return sane(atomic_exchange_explicit(mark, live, memory_order_relaxed));
}

void afz_book_water(struct afz_book *book, unsigned place, uint64_t live, uint64_t *ret_high,
                    uint64_t *ret_low)
{
        struct afz_book_site *s = &book->site[place % AFZ_BOOK_SITES];
        uint64_t high = take_mark(&s->high_bytes, live), low = take_mark(&s->low_bytes, live);
        *ret_high = high > live ? high : live;
        *ret_low = least(low, live);
}

/* In the book it is one more, so that nothing told is 0. What makes no sense was not told. */
static uint64_t told(uint64_t value)
{
        return value > 0 && value <= AFZ_BOOK_SANE ? value - 1 : AFZ_TOLD_NOT;
}

void afz_book_inside(struct afz_book *book, struct afz_book_inside *ret)
{
        uint64_t live = sane(LOAD(book->live_bytes)), high = take_mark(&book->high_bytes, live);
        uint64_t taken = sane(LOAD(book->heap_taken_bytes));
        *ret = (struct afz_book_inside){
                .step = sane(LOAD(book->step)),
                .wait_ns = sane(LOAD(book->wait_ns)),
                .live_bytes = live,
                .high_bytes = high > live ? high : live,
                .heap_known = LOAD(book->heap_ns) > 0 && taken > 0,
                .heap_taken_bytes = taken,
                .heap_used_bytes = least(sane(LOAD(book->heap_used_bytes)), taken),
                .refused = sane(LOAD(book->refused)),
                .refused_bytes = sane(LOAD(book->refused_bytes)),
        };
        for (unsigned i = 0; i < AFZ_TOLD_COUNT; i++)
                ret->told[i] = told(LOAD(book->told[i]));
}
