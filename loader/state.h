#ifndef AFZ_STATE_H
#define AFZ_STATE_H
/* A place in the data, as bytes that can be kept: little-endian on every machine, with a checksum.
 */
#include <stdint.h>

#include "antifreeze/loader.h"

enum { AFZ_SIZES_MAX = 4 };

struct afz_place {
        uint64_t seed, samples, start; /* of the data, to see that they are the same */
        uint64_t chunk_samples;
        uint32_t shuffle; /* enum afz_shuffle */
        uint64_t epoch;
        uint64_t first, group; /* chunk that the current group begins with, and how many it has */
        uint64_t offset; /* samples of the group's stream that are done, at most as many as an epoch
                            has */
        uint64_t batches; /* done in this epoch */
        uint64_t draws,
                chosen; /* samples of an epoch and which, as chosen.h has them; 0: each once */
        /* Groups that follow, where less was asked for: the size of those that begin before so
         * many chunks from the epoch's start on, in order; then of all others. 0: none, and as the
         * budget has it. */
        uint64_t before[AFZ_SIZES_MAX], before_size[AFZ_SIZES_MAX], size;
};

void afz_place_pack(const struct afz_place *place, uint8_t ret[AFZ_LOADER_STATE_BYTES]);
/* -EBADMSG: not a state, or damaged; -EPROTONOSUPPORT: of a version to come. */
int afz_place_unpack(const uint8_t state[AFZ_LOADER_STATE_BYTES], struct afz_place *ret);

#endif
