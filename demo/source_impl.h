/* What a kind of source fills in: for source*.c only. A kind's own struct begins with struct
 * afz_source. */
#ifndef AFZ_SOURCE_IMPL_H
#define AFZ_SOURCE_IMPL_H

#include "source.h"

struct afz_source_ops {
        int (*read)(struct afz_source *source, uint64_t sample, float *pixels, uint8_t *label);
        void (*free)(struct afz_source *source);
};

struct afz_source {
        const struct afz_source_ops *ops;
        uint64_t seed;
        uint64_t samples;
};

#endif
