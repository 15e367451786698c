#include "layout.h"

#include <errno.h>

static uint64_t within(uint64_t low, uint64_t value, uint64_t high)
{
        return value < low ? low : value > high ? high : value;
}

static uint64_t pieces(uint64_t whole, uint64_t piece)
{
        return whole / piece + (whole % piece > 0);
}

int afz_layout_make(uint64_t samples, uint64_t sample_bytes, uint64_t chunk_bytes,
                    uint64_t shard_bytes, struct afz_layout *ret)
{
        struct afz_layout l = {.samples = samples, .sample_bytes = sample_bytes};
        uint64_t all;
        if (samples == 0 || sample_bytes == 0 ||
            __builtin_mul_overflow(samples, sample_bytes, &all) || all > INT64_MAX)
                return -EOVERFLOW;
        l.chunk_samples = within(1, chunk_bytes / sample_bytes, samples);
        l.chunk_samples = within(1, l.chunk_samples, UINT32_MAX); /* it is the loader's batch */
        l.chunks = pieces(samples, l.chunk_samples);
        l.shard_chunks = within(1, shard_bytes / (l.chunk_samples * sample_bytes), l.chunks);
        l.shards = pieces(l.chunks, l.shard_chunks);
        *ret = l;
        return 0;
}

uint64_t afz_layout_chunks_of(const struct afz_layout *l, uint64_t shard)
{
        uint64_t left = shard < l->shards ? l->chunks - shard * l->shard_chunks : 0;
        return left < l->shard_chunks ? left : l->shard_chunks;
}

uint64_t afz_layout_samples_before(const struct afz_layout *l, uint64_t shard)
{
        return shard < l->shards ? shard * l->shard_chunks * l->chunk_samples : l->samples;
}
