#ifndef AFZ_ZARR_H
#define AFZ_ZARR_H
/* Open Zarr arrays: zarr.c opens, zarr_load.c reads chunks. */
#include "zarr_meta.h"

struct zarr {
        struct afz_zarr meta;
        char name[64]; /* in the group, or "" */
        int folder;
        uint64_t sample_bytes;
        bool is_flat;      /* a chunk's memory is that of its samples */
        bool is_plain;     /* and its file's, too: it can be read in parts, without scratch */
        uint64_t index_at; /* where in the decode scratch a shard's index goes */
};

/* A dataset: one array, or those of a copy that `antifreeze convert` made, each a field. */
struct zarr_set {
        uint32_t arrays;
        struct zarr *array[AFZ_FIELDS_MAX];
};

uint64_t afz_shard_index_bytes(const struct afz_zarr *meta); /* 0 without shards */
int afz_zarr_load(struct afz_dataset *dataset, const struct afz_load *load,
                  struct afz_scratch *scratch, char why[AFZ_WHY_MAX]);

#endif
