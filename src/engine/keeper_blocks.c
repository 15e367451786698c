#include "keeper_blocks.h"

#include <string.h>

static double between(uint64_t from, uint64_t to)
{
        return to > from ? (double)(to - from) : 0;
}

/* Reservations are large, and a false one hides all else: they are asked for before the many. */
#define HUGE_BYTES (UINT64_C(64) << 20)

/* From where the last look had to leave off: in a few looks all have had their turn. */
static void ask_rest(const struct afz_book *book, struct afz_resident *resident, unsigned *reads,
                     struct afz_resident_sums *sums)
{
        struct afz_book_live block;
        unsigned from = resident->next, cursor = from;
        bool again = false;
        for (;;) {
                if (!afz_book_next_live(book, &cursor, &block)) {
                        if (again)
                                return;
                        again = true;
                        cursor = 0;
                        continue;
                }
                if (again && cursor > from)
                        return;
                if (!block.large || block.bytes >= HUGE_BYTES)
                        continue;
                if (!afz_resident_add(resident, &block, reads, sums)) {
                        resident->next = cursor - 1;
                        return;
                }
        }
}

void afz_blocks_look(struct afz_block_sums *sums, const struct afz_book *book,
                     const struct afz_block_clock *clock, struct afz_resident *resident,
                     unsigned *reads)
{
        struct afz_book_live block;
        bool ask = resident != NULL;
        memset(sums, 0, sizeof *sums);
        for (unsigned cursor = 0; afz_book_next_live(book, &cursor, &block);) {
                double weight = (double)block.weight_bytes;
                sums->bytes[block.site] += weight;
                sums->bytes_s[block.site] += weight * between(block.born_s, clock->age_s);
                sums->early_bytes[block.site] += block.born_s < clock->early_s ? weight : 0;
                sums->bytes_steps[block.site] += weight * between(block.born_step, clock->step);
                ask = ask && (!block.large || block.bytes < HUGE_BYTES ||
                              afz_resident_add(resident, &block, reads, &sums->resident));
        }
        if (!resident)
                return;
        if (ask)
                ask_rest(book, resident, reads, &sums->resident);
        afz_resident_settle(resident, &sums->resident);
}
