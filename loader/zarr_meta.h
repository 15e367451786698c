#ifndef AFZ_ZARR_META_H
#define AFZ_ZARR_META_H
/* What `.zarray` (Zarr v2) or `zarr.json` (v3) says of an array, checked: every size is at least 1
 * where it has to be, every product fits, every name is one that we know. */
#include <stddef.h>
#include <stdint.h>

#include "codec.h"

enum {
        AFZ_ZARR_DIMENSIONS = AFZ_DIMENSIONS_MAX + 1, /* the first one counts the samples */
        AFZ_ZARR_META_BYTES = 1 << 20,                /* a description of more is none */
};

struct afz_zarr {
        uint32_t dimensions;
        uint64_t shape[AFZ_ZARR_DIMENSIONS];
        uint64_t chunk[AFZ_ZARR_DIMENSIONS]; /* what is encoded at once */
        uint64_t file[AFZ_ZARR_DIMENSIONS];  /* what is in a file: the same, or with shards several
                                                of them */
        uint32_t order[AFZ_ZARR_DIMENSIONS]; /* which dimension is the i-th in a chunk's memory */
        enum afz_dtype dtype;
        bool is_swapped; /* big-endian */
        uint8_t fill[8]; /* an element that nobody wrote, in this machine's order */
        bool has_prefix; /* chunks are c/0/0 rather than 0.0 */
        char separator;
        struct afz_chain chain;
        uint64_t chunk_bytes;  /* plain */
        uint64_t shard_chunks; /* in a file; 0: no shards */
        bool is_index_first;
        bool has_index_sum;
};

/* What the attributes of a group name that `antifreeze convert` made: its arrays, in their order.
 */
enum { AFZ_ZARR_NAME_MAX = 64 };
struct afz_zarr_names {
        uint32_t count;
        char name[AFZ_FIELDS_MAX][AFZ_ZARR_NAME_MAX];
};
#define AFZ_ZARR_RECIPE "antifreeze_convert"

/* -ENOENT: it is another kind of group. */
int afz_zarr_group(const char *text, size_t bytes, struct afz_zarr_names *ret);

/* why: what is wrong, as the rest of a sentence that begins with a path. -ENODATA: it is a group.
 */
int afz_zarr_parse(const char *text, size_t bytes, struct afz_zarr *ret, char why[AFZ_WHY_MAX]);

/* "c/0/12" for a chunk or shard of that place in the grid. */
void afz_zarr_key(const struct afz_zarr *zarr, const uint64_t at[AFZ_ZARR_DIMENSIONS],
                  char ret[256]);

/* "float32": as data_type of version 3 has it. */
const char *afz_zarr_type_name(enum afz_dtype dtype);

/* Between the files: json_t is jansson's. */
struct json_t;
int afz_zarr_codecs(const struct json_t *list, struct afz_zarr *zarr, char why[AFZ_WHY_MAX]);
int afz_zarr_sizes(const struct json_t *list, uint32_t dimensions,
                   uint64_t ret[AFZ_ZARR_DIMENSIONS]);
int afz_zarr_fill(const struct json_t *value, enum afz_dtype dtype, uint8_t ret[8]);

#endif
