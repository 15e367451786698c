#include "array.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crc32c.h"
#include "out.h"
#include "zarr_meta.h"

enum { ENTRY_BYTES = 16, SUM_BYTES = 4 };

uint64_t afz_array_index_bytes(const struct afz_layout *layout)
{
        return layout->shard_chunks * ENTRY_BYTES + SUM_BYTES;
}

/* Its bytes on the disk, and then under that name. Closes fd. The name itself may be lost when the
 * power is cut: who goes on looks which shards are there. */
static int keep_as(int folder, int fd, const char *name)
{
        int r = fsync(fd) < 0 ? -errno : 0;
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* others need that memory more */
        if (close(fd) < 0 && r == 0)
                r = -errno;
        if (r == 0 && renameat(folder, AFZ_PART_NAME, folder, name) < 0)
                r = -errno;
        if (r < 0)
                unlinkat(folder, AFZ_PART_NAME, 0);
        return r;
}

static int open_part(int folder)
{
        int fd = openat(folder, AFZ_PART_NAME,
                        O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
        return fd < 0 ? -errno : fd;
}

int afz_file_replace(int folder, const char *name, const char *text)
{
        int fd = open_part(folder);
        if (fd < 0)
                return fd;
        int r = afz_write_all(fd, text, strlen(text));
        if (r == 0)
                r = afz_write_all(fd, "\n", 1);
        if (r == 0)
                return keep_as(folder, fd, name);
        close(fd);
        unlinkat(folder, AFZ_PART_NAME, 0);
        return r;
}

int afz_array_open(struct afz_array *ret, int parent, const char *name,
                   const struct afz_field *field, const struct afz_layout *layout, int level)
{
        struct afz_array array = {.field = *field, .layout = layout, .level = level, .fd = -1};
        snprintf(array.name, sizeof array.name, "%s", name);
        if (mkdirat(parent, name, 0777) < 0 && errno != EEXIST)
                return -errno;
        array.folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (array.folder < 0)
                return -errno;
        array.index = malloc(afz_array_index_bytes(layout));
        if (!array.index) {
                close(array.folder);
                return -ENOMEM;
        }
        *ret = array;
        return 0;
}

void afz_array_close(struct afz_array *array)
{
        if (array->fd >= 0) {
                close(array->fd);
                unlinkat(array->folder, AFZ_PART_NAME, 0);
        }
        close(array->folder);
        free(array->index);
        array->index = NULL;
}

int afz_array_put(struct afz_array *array, const uint8_t *packed, uint64_t bytes)
{
        if (array->fd < 0) {
                array->fd = open_part(array->folder);
                if (array->fd < 0)
                        return array->fd;
                array->at = array->chunks = 0;
        }
        int r = afz_write_all(array->fd, packed, bytes);
        if (r < 0)
                return r;
        /* On its way to the disk at once: so the machine's memory does not fill with what waits to
         * be written, and the end of the shard is no long wait. */
        (void)sync_file_range(array->fd, (off_t)array->at, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
        array->index[2 * array->chunks] = htole64(array->at);
        array->index[2 * array->chunks + 1] = htole64(bytes);
        array->chunks++;
        array->at += bytes;
        return 0;
}

static void name_of(const struct afz_array *array, uint64_t shard, char ret[256])
{
        const struct afz_zarr flat = {
                .dimensions = array->field.dimensions + 1, .has_prefix = true, .separator = '.'};
        afz_zarr_key(&flat, (const uint64_t[AFZ_ZARR_DIMENSIONS]){shard}, ret);
}

int afz_array_end_shard(struct afz_array *array, uint64_t shard)
{
        uint64_t all = array->layout->shard_chunks, bytes = all * ENTRY_BYTES;
        uint8_t *index = (uint8_t *)array->index;
        char name[256];
        int fd = array->fd;
        name_of(array, shard, name);
        for (uint64_t i = 2 * array->chunks; i < 2 * all; i++)
                array->index[i] = UINT64_MAX; /* behind the array's end: not there */
        uint32_t sum = htole32(afz_crc32c(index, bytes));
        memcpy(index + bytes, &sum, sizeof sum);
        int r = afz_write_all(fd, index, bytes + sizeof sum);
        if (r < 0)
                return r;
        array->fd = -1;
        return keep_as(array->folder, fd, name);
}

int afz_array_has_shard(const struct afz_array *array, uint64_t shard, uint64_t *ret_bytes)
{
        struct stat st;
        char name[256];
        name_of(array, shard, name);
        if (fstatat(array->folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < afz_array_index_bytes(array->layout))
                return -EBADMSG;
        *ret_bytes = (uint64_t)st.st_size;
        return 0;
}

/* ---- what it says of itself ---- */

json_t *afz_shape_json(const struct afz_field *field, uint64_t samples)
{
        json_t *shape = json_array();
        if (samples > 0)
                json_array_append_new(shape, json_integer((json_int_t)samples));
        for (uint32_t i = 0; i < field->dimensions; i++)
                json_array_append_new(shape, json_integer((json_int_t)field->shape[i]));
        return shape;
}

static json_t *codecs_of(const struct afz_array *array)
{
        json_t *bytes = afz_dtype_bytes(array->field.dtype) == 1
                                ? json_pack("{s:s}", "name", "bytes")
                                : json_pack("{s:s, s:{s:s}}", "name", "bytes", "configuration",
                                            "endian", "little");
        json_t *zstd = json_pack("{s:s, s:{s:i, s:b}}", "name", "zstd", "configuration", "level",
                                 array->level, "checksum", 0);
        json_t *sum = json_pack("{s:s}", "name", "crc32c"), *codecs = json_array();
        json_array_append_new(codecs, bytes);
        if (array->level > 0)
                json_array_append(codecs, zstd);
        json_array_append_new(codecs, sum);
        json_decref(zstd);
        return codecs;
}

static json_t *description(const struct afz_array *array)
{
        const struct afz_layout *l = array->layout;
        json_t *index = json_pack("[{s:s, s:{s:s}}, {s:s}]", "name", "bytes", "configuration",
                                  "endian", "little", "name", "crc32c");
        json_t *sharding = json_pack(
                "[{s:s, s:{s:o, s:o, s:o, s:s}}]", "name", "sharding_indexed", "configuration",
                "chunk_shape", afz_shape_json(&array->field, l->chunk_samples), "codecs",
                codecs_of(array), "index_codecs", index, "index_location", "end");
        json_t *fill = array->field.dtype == AFZ_BOOL  ? json_false()
                       : array->field.dtype >= AFZ_F16 ? json_real(0)
                                                       : json_integer(0);
        return json_pack("{s:i, s:s, s:o, s:s, s:{s:s, s:{s:o}}, s:{s:s, s:{s:s}}, s:o, s:o, s:{}}",
                         "zarr_format", 3, "node_type", "array", "shape",
                         afz_shape_json(&array->field, l->samples), "data_type",
                         afz_zarr_type_name(array->field.dtype), "chunk_grid", "name", "regular",
                         "configuration", "chunk_shape",
                         afz_shape_json(&array->field, l->shard_chunks * l->chunk_samples),
                         "chunk_key_encoding", "name", "default", "configuration", "separator", ".",
                         "fill_value", fill, "codecs", sharding, "attributes");
}

int afz_array_describe(const struct afz_array *array)
{
        json_t *about = description(array);
        char *text = about ? json_dumps(about, JSON_INDENT(2)) : NULL;
        int r = !text ? -ENOMEM : fsync(array->folder) < 0 ? -errno : 0;
        if (r == 0)
                r = afz_file_replace(array->folder, "zarr.json", text);
        if (r == 0 && fsync(array->folder) < 0)
                r = -errno;
        free(text);
        json_decref(about);
        return r;
}
