#ifndef AFZ_ARROW_PARTS_H
#define AFZ_ARROW_PARTS_H
/* Which part of a source a sample is in. Arithmetic alone.
 *
 * A loader's chunks are all of one size; a source's parts are nearly: the last row group of each
 * Parquet file is shorter, which would move all that follow across the chunks' borders, and each
 * part would be read for two chunks. Where samples' numbers are nobody's business (they come
 * shuffled, and nothing else goes by them) the parts of the common size are therefore counted
 * first, then the others. */
#include <stdbool.h>
#include <stdint.h>

struct afz_arrow_part {
        uint64_t first; /* sample */
        uint64_t number, rows;
};

/* The size that more than half of the parts have; 0: there is none. */
uint64_t afz_arrow_common(const uint64_t *rows, uint64_t parts);

/* Fills in `ret`, of `parts`. common: the size that is counted first; 0: all as they are. -EBADMSG:
 * a part without rows; -EOVERFLOW: more samples than there can be. */
int afz_arrow_parts_make(const uint64_t *rows, uint64_t parts, uint64_t common,
                         struct afz_arrow_part *ret, uint64_t *ret_samples);

/* The part that has the sample, which there is. */
const struct afz_arrow_part *afz_arrow_part_of(const struct afz_arrow_part *part, uint64_t parts,
                                               uint64_t sample);

#endif
