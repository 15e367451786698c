#ifndef AFZ_LAYOUT_H
#define AFZ_LAYOUT_H
/* How samples are cut into chunks and shards. Arithmetic alone.
 *
 * All arrays of a copy are cut at the same samples: the loader reads a run of samples at a time,
 * and so it finds in each array one chunk that has just these, and decodes nothing that it does not
 * want. Only the first dimension is cut. */
#include <stdint.h>

#include "antifreeze/loader.h"

/* A chunk is decoded at once, a shard is a file.
 *
 * Chunks of 1 MiB: a disk gives its best with questions of that size, a window of some hundred of
 * them is shuffled well, and the loader still has room for two such windows in a small budget.
 * Shards of 64 MiB: a thousandth of the files that chunks would make, an index that fits into one
 * page, and not more than a second of work that a kill can undo. */
#define AFZ_CHUNK_BYTES (UINT64_C(1) << 20)
#define AFZ_SHARD_BYTES (UINT64_C(64) << 20)

struct afz_layout {
        uint64_t samples, sample_bytes;
        uint64_t chunk_samples, chunks;
        uint64_t shard_chunks, shards; /* the last chunk and the last shard may be short */
};

/* Nearest to these sizes from below; a sample is never cut. -EOVERFLOW: too large to be true. */
int afz_layout_make(uint64_t samples, uint64_t sample_bytes, uint64_t chunk_bytes,
                    uint64_t shard_bytes, struct afz_layout *ret);

/* The chunks of that shard; 0 for what lies behind the last. */
uint64_t afz_layout_chunks_of(const struct afz_layout *layout, uint64_t shard);

/* How many samples lie in shards before this one. */
uint64_t afz_layout_samples_before(const struct afz_layout *layout, uint64_t shard);

#endif
