/* Zarr, versions 2 and 3: an array as a folder of chunks. */
#include "zarr.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "file.h"
#include "formats.h"

static const char *const descriptions[] = {"zarr.json", ".zarray", ".zgroup"};

static bool has_file(const char *path, const char *name)
{
        char full[4096 + 16];
        return snprintf(full, sizeof full, "%s/%s", path, name) < (int)sizeof full &&
               access(full, F_OK) == 0;
}

static bool is_zarr(const char *path, bool is_folder, const uint8_t *head, uint64_t head_bytes)
{
        (void)head, (void)head_bytes;
        for (size_t i = 0; is_folder && i < sizeof descriptions / sizeof *descriptions; i++)
                if (has_file(path, descriptions[i]))
                        return true;
        return false;
}

/* "images, labels": which arrays a group has, as many as there is room for. */
static int why_group(int folder, const char *path, char why[AFZ_WHY_MAX])
{
        char names[200] = "", first[100] = "", path_in[300];
        int fd = dup(folder);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir && fd >= 0)
                close(fd);
        size_t n = 0;
        for (struct dirent *entry; dir && (entry = readdir(dir));) {
                bool is_array = false;
                for (size_t i = 0;
                     i < 2 && *entry->d_name != '.' && strlen(entry->d_name) < sizeof first; i++) {
                        snprintf(path_in, sizeof path_in, "%s/%s", entry->d_name, descriptions[i]);
                        is_array |= faccessat(folder, path_in, F_OK, 0) == 0;
                }
                if (is_array && n + strlen(entry->d_name) + 3 < sizeof names) {
                        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "",
                                              entry->d_name);
                        if (!*first)
                                snprintf(first, sizeof first, "%.99s", entry->d_name);
                }
        }
        if (dir)
                closedir(dir);
        if (n == 0)
                return afz_why(why, -ENODATA, "%.250s is a Zarr group without arrays", path);
        return afz_why(why, -EISDIR,
                       "%.100s is a Zarr group of arrays (%s): name one of them, as in %.50s/%s",
                       path, names, path, first);
}

/* 0: an array; 1: a group of the arrays in ret_names. */
static int read_meta(const char *path, struct zarr *z, struct afz_zarr_names *ret_names,
                     char why[AFZ_WHY_MAX])
{
        char *text = NULL, clause[AFZ_WHY_MAX] = "";
        uint64_t bytes = 0;
        int r = -ENOENT;
        for (size_t i = 0; i < 2 && r == -ENOENT; i++)
                r = afz_file_text(z->folder, descriptions[i], AFZ_ZARR_META_BYTES, &text, &bytes);
        if (r == -ENOENT)
                return why_group(z->folder, path, why);
        if (r < 0)
                return afz_why(why, r, "%.250s: its description cannot be read: %s", path,
                               afz_error_text(r));
        r = afz_zarr_parse(text, bytes, &z->meta, clause);
        bool is_copy = r == -ENODATA && afz_zarr_group(text, bytes, ret_names) == 0;
        free(text);
        if (is_copy)
                return 1;
        if (r == -ENODATA)
                return why_group(z->folder, path, why);
        return r < 0 ? afz_why(why, r, "%.200s: %.290s", path, clause) : 0;
}

/* Whether a chunk's memory is that of its samples one behind the other. */
static bool is_flat(const struct afz_zarr *meta)
{
        for (uint32_t i = 0; i < meta->dimensions; i++)
                if (meta->order[i] != i || (i > 0 && meta->chunk[i] != meta->shape[i]))
                        return false;
        return true;
}

/* Chunks that are not compressed can be read in parts: a small part of a large one is as good a
 * chunk. */
static uint64_t part_samples(const struct zarr *z, uint64_t sample_bytes, uint64_t budget_bytes)
{
        uint64_t whole = z->meta.chunk[0];
        uint64_t want = afz_chunk_for(sample_bytes, z->meta.shape[0], budget_bytes);
        if (!z->is_plain || want >= whole)
                return whole;
        if (whole >= z->meta.shape[0])
                return want;
        for (uint64_t n = want; n > want / 4; n--)
                if (whole % n == 0)
                        return n;
        return whole;
}

static void most(uint64_t *so_far, uint64_t value)
{
        *so_far = value > *so_far ? value : *so_far;
}

/* One more field of the dataset. */
static int describe(struct afz_dataset *dataset, struct zarr *z, uint64_t budget_bytes,
                    char why[AFZ_WHY_MAX])
{
        const struct afz_zarr *meta = &z->meta;
        struct afz_field *field = &dataset->field[dataset->fields];
        uint64_t room = afz_chain_room_bytes(&meta->chain, meta->chunk_bytes);
        int r = afz_chain_check(&meta->chain, meta->chunk_bytes, dataset->path, why);
        if (r < 0)
                return r;
        if (meta->shard_chunks > UINT32_MAX)
                return afz_why(why, -EOVERFLOW,
                               "%.250s: its shards have more chunks than can be true",
                               dataset->path);
        afz_field_name(field, z->name[0] ? z->name : dataset->path);
        field->dtype = meta->dtype;
        field->dimensions = meta->dimensions - 1;
        memcpy(field->shape, meta->shape + 1, (meta->dimensions - 1) * sizeof *field->shape);
        r = afz_shape_bytes(field->shape, field->dimensions, afz_dtype_bytes(field->dtype),
                            &field->bytes);
        if (r < 0)
                return afz_why(why, r, "%.250s: its samples are too large to be true",
                               dataset->path);
        z->sample_bytes = field->bytes;
        z->is_flat = is_flat(meta);
        z->is_plain = z->is_flat && meta->chain.compressor == AFZ_CODEC_NONE &&
                      meta->chain.inner_sums == 0;
        z->index_at = z->is_plain ? 0 : (room + 63) & ~UINT64_C(63);
        bool is_single = meta->chunk[0] == 1 || z->is_plain;
        uint64_t chunk_samples = part_samples(z, z->sample_bytes, budget_bytes);
        if (dataset->fields > 0 &&
            (dataset->samples != meta->shape[0] || dataset->chunk_samples != chunk_samples))
                return afz_why(why, -EBADMSG, "%.250s: its arrays are not cut at the same samples",
                               dataset->path);
        dataset->is_single = is_single && (dataset->fields == 0 || dataset->is_single);
        dataset->fields++;
        dataset->samples = meta->shape[0];
        dataset->chunk_samples = chunk_samples;
        uint64_t bytes; /* packed they are less, but who would read all files for that */
        if (__builtin_mul_overflow(field->bytes, meta->shape[0], &bytes) ||
            __builtin_add_overflow(dataset->disk_bytes, bytes, &dataset->disk_bytes))
                dataset->disk_bytes = UINT64_MAX;
        if (!z->is_plain)
                most(&dataset->raw_bytes, afz_chain_most_bytes(&meta->chain, meta->chunk_bytes));
        most(&dataset->decode_bytes, z->index_at + afz_shard_index_bytes(meta));
        most(&dataset->heap_bytes, afz_chain_heap_bytes(&meta->chain, room));
        return 0;
}

/* In the set from the moment that its folder is open, so that close() finds it. */
static int open_array(struct afz_dataset *dataset, const char *path, struct zarr **ret,
                      char why[AFZ_WHY_MAX])
{
        struct zarr_set *set = dataset->own;
        struct zarr *z = afz_index_take(dataset, 1, sizeof *z);
        if (!z)
                return afz_why(why, -ENOMEM, "%.250s: %s", dataset->path, afz_error_text(-ENOMEM));
        z->folder = afz_folder_open(AT_FDCWD, path);
        if (z->folder < 0)
                return afz_why(why, z->folder, "%.250s: %s", path, afz_error_text(z->folder));
        set->array[set->arrays++] = z;
        *ret = z;
        return 0;
}

/* The arrays of a copy that we made take the place of the group. */
static int open_group(struct afz_dataset *dataset, const struct afz_zarr_names *names,
                      uint64_t budget_bytes, char why[AFZ_WHY_MAX])
{
        struct zarr_set *set = dataset->own;
        struct zarr *group = set->array[0], *z;
        struct afz_zarr_names inner;
        char path[sizeof dataset->path + AFZ_ZARR_NAME_MAX + 1];
        int r = 0;
        set->arrays = 0;
        for (uint32_t i = 0; i < names->count && r == 0; i++) {
                snprintf(path, sizeof path, "%s/%s", dataset->path, names->name[i]);
                r = open_array(dataset, path, &z, why);
                if (r < 0)
                        break;
                snprintf(z->name, sizeof z->name, "%s", names->name[i]);
                r = read_meta(path, z, &inner, why);
                if (r > 0)
                        r = afz_why(why, -EBADMSG, "%.250s: a group inside of a copy",
                                    dataset->path);
                if (r == 0)
                        r = describe(dataset, z, budget_bytes, why);
        }
        close(group->folder);
        return r;
}

static int zarr_open(struct afz_dataset *dataset, const struct afz_loader_options *options,
                     char why[AFZ_WHY_MAX])
{
        struct afz_zarr_names names;
        struct zarr *z;
        if (!AFZ_HAVE_JANSSON)
                return afz_why_left_out(why, dataset->path, "jansson (Zarr is described in JSON)",
                                        "libjansson-dev");
        dataset->own = afz_index_take(dataset, 1, sizeof(struct zarr_set));
        if (!dataset->own)
                return afz_why(why, -ENOMEM, "%.250s: %s", dataset->path, afz_error_text(-ENOMEM));
        int r = open_array(dataset, dataset->path, &z, why);
        if (r == 0)
                r = read_meta(dataset->path, z, &names, why);
        if (r > 0)
                return open_group(dataset, &names, options->budget_bytes, why);
        return r < 0 ? r : describe(dataset, z, options->budget_bytes, why);
}

static void zarr_close(struct afz_dataset *dataset)
{
        struct zarr_set *set = dataset->own;
        for (uint32_t i = 0; set && i < set->arrays; i++)
                close(set->array[i]->folder);
        dataset->own = NULL;
}

const struct afz_format afz_format_zarr = {
        .name = "zarr",
        .about = "Zarr v2 and v3 (blosc, zstd, lz4, gzip; shards)",
        .is_it = is_zarr,
        .open = zarr_open,
        .close = zarr_close,
        .load = afz_zarr_load,
        .forget = afz_codec_forget,
};
