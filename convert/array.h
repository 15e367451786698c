#ifndef AFZ_ARRAY_H
#define AFZ_ARRAY_H
/* One array of a copy, written shard by shard (Zarr v3, sharding_indexed, the index at the end).
 *
 * A shard is written under another name, brought to the disk, and then renamed: under its own name
 * there is never a part of one. The array's description, without which nobody takes the folder for
 * an array, comes last (afz_array_describe()). Chunks come in order. */
#include <jansson.h>
#include <stdint.h>

#include "layout.h"

#define AFZ_PART_NAME ".part" /* what is being written */

struct afz_array {
        char name[64];
        struct afz_field field;
        const struct afz_layout *layout;
        int level;
        int folder, fd;  /* fd: of the shard that is being written, or -1 */
        uint64_t at;     /* its end */
        uint64_t chunks; /* in it */
        uint64_t *index; /* where each of its chunks is: an offset, a size */
};

/* Makes its folder in that one, if it is not there. */
int afz_array_open(struct afz_array *ret, int parent, const char *name,
                   const struct afz_field *field, const struct afz_layout *layout, int level);
void afz_array_close(struct afz_array *array); /* what was not ended is removed */

/* Appends a packed chunk to the shard that is being written; begins one where there is none. */
int afz_array_put(struct afz_array *array, const uint8_t *packed, uint64_t bytes);
/* What lies behind the chunks of a shard. */
uint64_t afz_array_index_bytes(const struct afz_layout *layout);
/* That shard is whole, and has that number. */
int afz_array_end_shard(struct afz_array *array, uint64_t shard);
/* Whether that shard is there, and at least as long as its index. */
int afz_array_has_shard(const struct afz_array *array, uint64_t shard, uint64_t *ret_bytes);
/* Writes zarr.json, once all shards are on the disk under their names. */
int afz_array_describe(const struct afz_array *array);

/* The shape of so many samples; 0: of one, without that dimension. */
json_t *afz_shape_json(const struct afz_field *field, uint64_t samples);

/* Writes a small text, and a newline, whole or not at all. */
int afz_file_replace(int folder, const char *name, const char *text);

#endif
