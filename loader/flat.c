#include "flat.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "direct.h"
#include "file.h"

struct own {
        struct afz_flat flat;
        struct afz_direct file;
        uint64_t record; /* bytes of a sample in the file */
        bool is_plain;   /* in memory as in the file */
};

static int size_of(const struct afz_dataset *d, const struct afz_flat *flat, uint64_t *ret_record,
                   uint64_t *ret_end)
{
        uint64_t record = 0, bytes, end;
        for (uint32_t i = 0; i < d->fields; i++)
                if (afz_shape_bytes(d->field[i].shape, d->field[i].dimensions,
                                    afz_dtype_bytes(d->field[i].dtype), &bytes) < 0 ||
                    __builtin_add_overflow(record, bytes, &record))
                        return -EOVERFLOW;
        if (d->samples == 0 || record == 0 || flat->stride == 0)
                return -ENODATA;
        if (__builtin_mul_overflow(d->samples - 1, flat->stride, &end) ||
            __builtin_add_overflow(end, record, &end) ||
            __builtin_add_overflow(end, flat->data_at, &end) || end > INT64_MAX)
                return -EOVERFLOW;
        *ret_record = record;
        *ret_end = end;
        return 0;
}

int afz_flat_open(struct afz_dataset *dataset, const struct afz_loader_options *options,
                  const struct afz_flat *flat, char why[AFZ_WHY_MAX])
{
        uint64_t record, end;
        int r = size_of(dataset, flat, &record, &end);
        if (r == -ENODATA)
                return afz_why(why, r, "%.300s has no samples, or they are of no size",
                               dataset->path);
        if (r < 0)
                return afz_why(why, r, "%.300s: its header tells of more bytes than there can be",
                               dataset->path);
        struct own *own = afz_index_take(dataset, 1, sizeof *own);
        if (!own)
                return afz_why(why, -ENOMEM, "%.300s: no memory for its index within the budget",
                               dataset->path);
        r = afz_direct_open(&own->file, dataset->path, options->ranks > 1);
        if (r < 0)
                return afz_why(why, r, "%.300s: %s", dataset->path, afz_error_text(r));
        own->flat = *flat;
        own->record = record;
        own->is_plain = dataset->fields == 1 && flat->stride == record;
        dataset->own = own; /* from here on afz_flat_close() has something to do */
        if (own->file.bytes < end && options->on_error != AFZ_ERROR_SKIP)
                return afz_why(why, -ENODATA,
                               "%.300s is cut off: its samples need %llu bytes, the file has %llu; "
                               "on_error=\"skip\" "
                               "takes those that are there",
                               dataset->path, (unsigned long long)end,
                               (unsigned long long)own->file.bytes);
        dataset->chunk_samples =
                afz_chunk_for(flat->stride, dataset->samples, options->budget_bytes);
        uint64_t run = (dataset->chunk_samples - 1) * flat->stride + record;
        dataset->raw_bytes = run + AFZ_DIRECT_SLACK;
        dataset->decode_bytes = own->is_plain ? 0 : run;
        dataset->is_single = true;
        return 0;
}

void afz_flat_close(struct afz_dataset *dataset)
{
        struct own *own = dataset->own;
        if (own)
                afz_direct_close(&own->file);
}

static void swap(uint8_t *at, uint64_t numbers, uint64_t each)
{
        for (uint64_t i = 0; i < numbers; i++, at += each)
                for (uint64_t low = 0, high = each - 1; low < high; low++, high--) {
                        uint8_t keep = at[low];
                        at[low] = at[high];
                        at[high] = keep;
                }
}

/* From records to fields. */
static void take_apart(const struct afz_dataset *d, const struct own *own,
                       const struct afz_load *load, uint32_t count, const uint8_t *records)
{
        for (uint32_t i = 0; i < count; i++) {
                const uint8_t *from = records + i * own->flat.stride;
                for (uint32_t f = 0; f < d->fields; f++) {
                        memcpy(load->field[f] + i * d->field[f].bytes, from, d->field[f].bytes);
                        from += d->field[f].bytes;
                }
        }
}

static int load_some(struct afz_dataset *dataset, const struct afz_load *load, uint32_t count,
                     struct afz_scratch *scratch)
{
        const struct own *own = dataset->own;
        if (count == 0)
                return 0;
        uint64_t at = own->flat.data_at + load->first * own->flat.stride;
        uint64_t bytes = (count - 1) * own->flat.stride + own->record;
        uint8_t *to = own->is_plain ? load->field[0] : scratch->decode;
        if (!own->is_plain && bytes > scratch->decode_bytes)
                return -EINVAL;
        int r = afz_direct_read(&own->file, to, bytes, at, scratch);
        if (r < 0)
                return r;
        if (!own->is_plain)
                take_apart(dataset, own, load, count, to);
        for (uint32_t f = 0; own->flat.is_swapped && f < dataset->fields; f++) {
                uint64_t each = afz_dtype_bytes(dataset->field[f].dtype);
                swap(load->field[f], count * (dataset->field[f].bytes / each), each);
        }
        return 0;
}

/* How many of a load's samples a file that was cut off still has. */
static uint32_t left_of(const struct own *own, const struct afz_load *load)
{
        struct stat about;
        uint64_t at = own->flat.data_at + load->first * own->flat.stride;
        if (fstat(own->file.fd, &about) < 0 || (uint64_t)about.st_size < at + own->record)
                return 0;
        uint64_t left = ((uint64_t)about.st_size - at - own->record) / own->flat.stride + 1;
        return left < load->count ? (uint32_t)left : load->count;
}

int afz_flat_load(struct afz_dataset *dataset, const struct afz_load *load,
                  struct afz_scratch *scratch, char why[AFZ_WHY_MAX])
{
        const struct own *own = dataset->own;
        int r = load_some(dataset, load, load->count, scratch);
        if (r == -ENODATA) {
                uint32_t left = left_of(own, load);
                r = load_some(dataset, load, left, scratch);
                if (r == 0) {
                        afz_load_bad(load, left, load->count - left);
                        return afz_why(why, 0,
                                       "%.300s ends before sample %llu: it was cut off, or it "
                                       "shrank while it was read",
                                       dataset->path, (unsigned long long)(load->first + left));
                }
        }
        return r < 0 ? afz_why(why, r, "%.300s: samples %llu to %llu: %s", dataset->path,
                               (unsigned long long)load->first,
                               (unsigned long long)(load->first + load->count - 1),
                               afz_error_text(r))
                     : 0;
}

int64_t afz_flat_head(const char *path, uint8_t *ret, uint64_t cap, uint64_t *ret_file_bytes,
                      char why[AFZ_WHY_MAX])
{
        int fd = afz_file_open(AT_FDCWD, path, ret_file_bytes);
        if (fd < 0)
                return afz_why(why, fd, "%.300s: %s", path, afz_error_text(fd));
        uint64_t bytes = *ret_file_bytes < cap ? *ret_file_bytes : cap;
        int r = afz_dataset_read(fd, ret, bytes, 0, NULL);
        close(fd);
        return r < 0 ? afz_why(why, r, "%.300s: %s", path, afz_error_text(r)) : (int64_t)bytes;
}

int afz_dtype_parse(const char *text, uint64_t len, enum afz_dtype *ret, bool *ret_is_swapped)
{
        static const struct {
                const char *code, *word;
                enum afz_dtype dtype;
        } known[] = {
                {"u1", "uint8", AFZ_U8},    {"i1", "int8", AFZ_I8},     {"u2", "uint16", AFZ_U16},
                {"i2", "int16", AFZ_I16},   {"u4", "uint32", AFZ_U32},  {"i4", "int32", AFZ_I32},
                {"u8", "uint64", AFZ_U64},  {"i8", "int64", AFZ_I64},   {"f2", "float16", AFZ_F16},
                {"f4", "float32", AFZ_F32}, {"f8", "float64", AFZ_F64}, {"b1", "bool", AFZ_BOOL},
        };
        char way = len > 0 && strchr("<>|=", *text) ? *text : '=';
        if (len > 0 && strchr("<>|=", *text)) {
                text++;
                len--;
        }
        for (uint64_t i = 0; i < sizeof known / sizeof *known; i++) {
                bool is_code = len == 2 && memcmp(text, known[i].code, 2) == 0;
                if (!is_code &&
                    !(len == strlen(known[i].word) && memcmp(text, known[i].word, len) == 0))
                        continue;
                *ret = known[i].dtype;
                *ret_is_swapped = way == '>' && afz_dtype_bytes(known[i].dtype) > 1;
                return 0;
        }
        return -EINVAL;
}
