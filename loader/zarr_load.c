/* Reading chunks: from their own files, or from inside of shards. */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "crc32c.h"
#include "file.h"
#include "zarr.h"
#include "zarr_copy.h"

/* One load: a run of samples of one row of chunks. */
struct run {
        const struct zarr *z;
        const struct afz_load *load;
        uint8_t *to; /* where its samples go */
        struct afz_scratch *scratch;
        uint64_t at[AFZ_ZARR_DIMENSIONS]; /* the chunk's place in the grid */
        uint64_t skip;                    /* samples of the chunk before the run */
        char key[256];                    /* of the file that is open */
        int fd;                           /* -1: none is; -ENOENT: nobody wrote it */
        uint64_t file_bytes;
        bool has_index;
};

enum { ENTRY_BYTES = 16, SUM_BYTES = 4 };

uint64_t afz_shard_index_bytes(const struct afz_zarr *meta)
{
        return meta->shard_chunks == 0
                       ? 0
                       : meta->shard_chunks * ENTRY_BYTES + (meta->has_index_sum ? SUM_BYTES : 0);
}

static void run_close(struct run *run)
{
        if (run->fd >= 0)
                close(run->fd);
        run->fd = -1;
        run->has_index = false;
}

/* The file that has the chunk, kept open while the next chunk is in it, too. */
static int run_open(struct run *run)
{
        const struct afz_zarr *meta = &run->z->meta;
        uint64_t file_at[AFZ_ZARR_DIMENSIONS] = {0};
        char key[sizeof run->key];
        for (uint32_t i = 0; i < meta->dimensions; i++)
                file_at[i] = run->at[i] / (meta->file[i] / meta->chunk[i]);
        afz_zarr_key(meta, file_at, key);
        if (run->fd != -1 && strcmp(key, run->key) == 0)
                return 0;
        run_close(run);
        memcpy(run->key, key, sizeof key);
        run->fd = afz_file_open(run->z->folder, key, &run->file_bytes);
        return run->fd >= 0 || run->fd == -ENOENT ? 0 : run->fd;
}

static int read_index(struct run *run)
{
        const struct afz_zarr *meta = &run->z->meta;
        uint8_t *index = run->scratch->decode + run->z->index_at;
        uint64_t bytes = afz_shard_index_bytes(meta);
        if (run->file_bytes < bytes)
                return -ENODATA;
        int r = afz_dataset_read(run->fd, index, bytes,
                                 meta->is_index_first ? 0 : run->file_bytes - bytes, run->scratch);
        if (r == 0 && meta->has_index_sum) {
                uint32_t sum;
                memcpy(&sum, index + bytes - SUM_BYTES, sizeof sum);
                r = le32toh(sum) == afz_crc32c(index, bytes - SUM_BYTES) ? 0 : -EILSEQ;
        }
        run->has_index = r == 0;
        return r;
}

/* Where in the file the chunk is; 1: nobody wrote it. */
static int find_in_shard(struct run *run, uint64_t *ret_at, uint64_t *ret_bytes)
{
        const struct afz_zarr *meta = &run->z->meta;
        uint64_t number = 0, entry[2], end;
        int r = run->has_index ? 0 : read_index(run);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < meta->dimensions; i++) {
                uint64_t in_file = meta->file[i] / meta->chunk[i];
                number = number * in_file + run->at[i] % in_file;
        }
        memcpy(entry, run->scratch->decode + run->z->index_at + number * ENTRY_BYTES, sizeof entry);
        *ret_at = le64toh(entry[0]), *ret_bytes = le64toh(entry[1]);
        if (*ret_at == UINT64_MAX && *ret_bytes == UINT64_MAX)
                return 1;
        if (__builtin_add_overflow(*ret_at, *ret_bytes, &end) || end > run->file_bytes)
                return -ENODATA;
        return 0;
}

static int find_chunk(struct run *run, uint64_t *ret_at, uint64_t *ret_bytes)
{
        int r = run_open(run);
        if (r < 0)
                return r;
        if (run->fd == -ENOENT)
                return 1;
        *ret_at = 0, *ret_bytes = run->file_bytes;
        return run->z->meta.shard_chunks > 0 ? find_in_shard(run, ret_at, ret_bytes) : 0;
}

/* The box of the run's samples in this chunk, which may reach beyond the array's edge. */
static uint64_t box_of(const struct run *run, bool is_fill, struct afz_box *ret)
{
        const struct afz_zarr *meta = &run->z->meta;
        uint64_t step = afz_dtype_bytes(meta->dtype), to = 0;
        *ret = (struct afz_box){.dimensions = meta->dimensions, .each = step};
        for (uint32_t i = meta->dimensions; i-- > 0;) {
                ret->from_step[meta->order[i]] = is_fill ? 0 : step;
                step *= meta->chunk[meta->order[i]];
        }
        step = ret->each;
        for (uint32_t i = meta->dimensions; i-- > 1;) {
                uint64_t first = run->at[i] * meta->chunk[i], left = meta->shape[i] - first;
                ret->count[i] = left < meta->chunk[i] ? left : meta->chunk[i];
                ret->to_step[i] = step;
                to += first * step;
                step *= meta->shape[i];
        }
        ret->count[0] = run->load->count;
        ret->to_step[0] = step;
        return to;
}

static void copy_out(const struct run *run, const uint8_t *from, bool is_fill)
{
        struct afz_box box;
        uint64_t to = box_of(run, is_fill, &box);
        afz_box_copy(&box, from + run->skip * box.from_step[0], run->to + to);
}

static int load_plain(struct run *run, uint64_t at, uint64_t bytes)
{
        const struct zarr *z = run->z;
        uint64_t wanted = run->load->count * z->sample_bytes;
        if (bytes != z->meta.chunk_bytes)
                return -EMSGSIZE;
        int r = afz_dataset_read(run->fd, run->to, wanted, at + run->skip * z->sample_bytes,
                                 run->scratch);
        if (r == 0 && z->meta.is_swapped)
                afz_swap(run->to, wanted, afz_dtype_bytes(z->meta.dtype));
        return r;
}

static int load_encoded(struct run *run, uint64_t at, uint64_t bytes)
{
        const struct afz_zarr *meta = &run->z->meta;
        bool is_whole = run->z->is_flat && run->skip == 0 && run->load->count == meta->chunk[0] &&
                        meta->chain.inner_sums == 0;
        uint8_t *to = is_whole ? run->to : run->scratch->decode;
        if (bytes > run->scratch->raw_bytes ||
            bytes > afz_chain_most_bytes(&meta->chain, meta->chunk_bytes))
                return -EMSGSIZE;
        int r = afz_dataset_read(run->fd, run->scratch->raw, bytes, at, run->scratch);
        if (r == 0)
                r = afz_chain_decode(&meta->chain, run->scratch->raw, bytes, to, meta->chunk_bytes,
                                     run->scratch);
        if (r < 0)
                return r;
        if (meta->is_swapped)
                afz_swap(to, meta->chunk_bytes, afz_dtype_bytes(meta->dtype));
        if (!is_whole)
                copy_out(run, to, false);
        return 0;
}

static int load_chunk(struct run *run)
{
        uint64_t at, bytes;
        int r = find_chunk(run, &at, &bytes);
        if (r < 0)
                return r;
        if (r > 0) {
                copy_out(run, run->z->meta.fill, true);
                return 0;
        }
        return run->z->is_plain ? load_plain(run, at, bytes) : load_encoded(run, at, bytes);
}

/* The next chunk of the same row; false behind the last. */
static bool go_on(struct run *run)
{
        const struct afz_zarr *meta = &run->z->meta;
        for (uint32_t i = meta->dimensions; i-- > 1;) {
                if (++run->at[i] * meta->chunk[i] < meta->shape[i])
                        return true;
                run->at[i] = 0;
        }
        return false;
}

static int load_array(struct afz_dataset *dataset, uint32_t which, const struct afz_load *load,
                      struct afz_scratch *scratch, char why[AFZ_WHY_MAX])
{
        const struct zarr *z = ((struct zarr_set *)dataset->own)->array[which];
        struct run run = {
                .z = z, .load = load, .to = load->field[which], .scratch = scratch, .fd = -1};
        run.at[0] = load->first / z->meta.chunk[0];
        run.skip = load->first % z->meta.chunk[0];
        int r;
        do
                r = load_chunk(&run);
        while (r == 0 && go_on(&run));
        if (r < 0)
                afz_why(why, r, "%.200s: the chunk in %s%s%.100s cannot be read: %s", dataset->path,
                        z->name, z->name[0] ? "/" : "", run.key, afz_chain_error(r));
        run_close(&run);
        return r < 0 ? r == -ENOMEM ? r : afz_load_bad(load, 0, load->count) : 0;
}

int afz_zarr_load(struct afz_dataset *dataset, const struct afz_load *load,
                  struct afz_scratch *scratch, char why[AFZ_WHY_MAX])
{
        int r = 0;
        for (uint32_t i = 0; i < dataset->fields && r == 0; i++)
                r = load_array(dataset, i, load, scratch, why);
        return r;
}
