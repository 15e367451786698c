#include "keeper_blocks.h"

#include <string.h>

static double between(uint64_t from, uint64_t to)
{
        return to > from ? (double)(to - from) : 0;
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
                sums->bytes_steps[block.site] += weight * between(block.born_step, clock->step);
                ask = ask &&
                      (!block.large || afz_resident_add(resident, &block, reads, &sums->resident));
        }
        if (resident)
                afz_resident_settle(resident, &sums->resident);
}
