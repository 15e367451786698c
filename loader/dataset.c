/* A dataset is opened by the format that knows it; and what formats have in common. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format.h"
#include "now.h"

#define PAGE_BYTES UINT64_C(4096)

enum {
        HEAD_BYTES = 512,        /* that a format is told by: a tar header is the longest */
        CHUNK_BYTES = 512 << 10, /* a disk reads no faster for being asked for more at once */
        CHUNK_FAIR = 256 << 10,  /* with several questions at once it reads about as fast so */
        CHUNK_LEAST = 64 << 10,  /* and much slower below this */
        CHUNKS_FAIR = 256,       /* in the budget: fewer side by side make a poor shuffle, */
        CHUNKS_MANY = 1024,      /* and with so many it is a good one */
        CALL_BYTES = 1 << 30,    /* a system call reads 2 GiB at most */
        NAMES_SHOWN = 400,
};

int afz_why(char why[AFZ_WHY_MAX], int error, const char *format, ...)
{
        va_list words;
        va_start(words, format);
        if (why)
                vsnprintf(why, AFZ_WHY_MAX, format, words);
        va_end(words);
        return error;
}

/* ---- memory for indexes: a list of blocks ---- */

struct block {
        struct block *next;
        uint64_t bytes;
        max_align_t data[];
};

void *afz_index_take(struct afz_dataset *dataset, uint64_t count, uint64_t bytes_each)
{
        uint64_t bytes, all;
        if (__builtin_mul_overflow(count, bytes_each, &bytes) ||
            __builtin_add_overflow(bytes, sizeof(struct block), &bytes) ||
            __builtin_add_overflow(bytes, dataset->index_bytes, &all) ||
            (dataset->budget_bytes && all > dataset->budget_bytes))
                return NULL;
        struct block *block = calloc(1, bytes);
        if (!block)
                return NULL;
        *block = (struct block){.next = dataset->index, .bytes = bytes};
        dataset->index = block;
        dataset->index_bytes = all;
        return block->data;
}

static void index_free(struct afz_dataset *dataset)
{
        for (struct block *block = dataset->index, *next; block; block = next) {
                next = block->next;
                free(block);
        }
        dataset->index = NULL;
        dataset->index_bytes = 0;
}

/* ---- opening ---- */

static bool is_named(const char *path, const struct stat *about, const struct afz_format *format)
{
        uint8_t head[HEAD_BYTES];
        ssize_t got = 0;
        if (!format->is_it)
                return false;
        if (S_ISDIR(about->st_mode))
                return format->is_it(path, true, head, 0);
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* it may be a pipe */
        if (fd >= 0) {
                got = pread(fd, head, sizeof head, 0);
                close(fd);
        }
        return format->is_it(path, false, head, got > 0 ? (uint64_t)got : 0);
}

static int unknown(const char *path, const char *name, char why[AFZ_WHY_MAX])
{
        char names[NAMES_SHOWN] = "";
        size_t n = 0;
        for (size_t i = 0; afz_formats[i] && n < sizeof names; i++) {
                const struct afz_format *format = afz_formats[i];
                n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "",
                                      format->said ? format->said : format->name);
        }
        if (name)
                return afz_why(why, -EINVAL, "no format is called \"%.40s\"; there are %s", name,
                               names);
        return afz_why(why, -EMEDIUMTYPE,
                       "%.200s is of no format that is known here (%s); raw records and tokens "
                       "have to be named: "
                       "format=\"raw\"",
                       path, names);
}

static const struct afz_format *find(const char *path, const struct stat *about, const char *name)
{
        for (size_t i = 0; afz_formats[i]; i++)
                if (name ? strcmp(afz_formats[i]->name, name) == 0
                         : is_named(path, about, afz_formats[i]))
                        return afz_formats[i];
        return NULL;
}

/* A format is ours, the data are not: what it says has to hold together before anyone counts on it.
 */
static int check(struct afz_dataset *d, char why[AFZ_WHY_MAX])
{
        uint64_t all, bytes, sample = 0;
        if (d->samples == 0)
                return afz_why(why, -ENODATA, "%.300s has no samples", d->path);
        if (d->fields == 0 || d->fields > AFZ_FIELDS_MAX || d->chunk_samples == 0)
                return afz_why(why, -EBADMSG, "%.300s: a sample of it has no fields, or too many",
                               d->path);
        for (uint32_t i = 0; i < d->fields; i++) {
                struct afz_field *f = &d->field[i];
                if (afz_shape_bytes(f->shape, f->dimensions, afz_dtype_bytes(f->dtype), &bytes) <
                            0 ||
                    bytes == 0 || __builtin_add_overflow(sample, bytes, &sample))
                        return afz_why(
                                why, -EBADMSG,
                                "%.300s: its samples are of no size, or too large to be true",
                                d->path);
                f->bytes = bytes;
        }
        if (__builtin_mul_overflow(d->samples, sample, &all) || all > INT64_MAX)
                return afz_why(why, -EOVERFLOW, "%.300s: more samples than there can be", d->path);
        d->sample_bytes = sample;
        if (d->chunk_samples > d->samples)
                d->chunk_samples = d->samples;
        return d->chunk_samples > UINT32_MAX
                       ? afz_why(why, -EOVERFLOW,
                                 "%.300s: a chunk has over 4 thousand million samples", d->path)
                       : 0;
}

int afz_dataset_open(struct afz_dataset *ret, const char *path,
                     const struct afz_loader_options *options, char why[AFZ_WHY_MAX])
{
        struct stat about;
        *ret = (struct afz_dataset){.budget_bytes = options->budget_bytes};
        if (snprintf(ret->path, sizeof ret->path, "%s", path) >= (int)sizeof ret->path)
                return afz_why(why, -ENAMETOOLONG, "a path of over %zu letters", sizeof ret->path);
        if (stat(path, &about) < 0) {
                int r = -errno;
                return afz_why(why, r, "%.300s: %s", path, strerror(-r));
        }
        ret->format = find(path, &about, options->format);
        if (!ret->format)
                return unknown(path, options->format, why);
        int r = ret->format->open(ret, options, why);
        if (r >= 0)
                r = check(ret, why);
        if (r < 0)
                afz_dataset_close(ret);
        return r < 0 ? r : 0;
}

void afz_dataset_close(struct afz_dataset *dataset)
{
        if (!dataset || !dataset->format)
                return;
        if (dataset->format->close)
                dataset->format->close(dataset);
        index_free(dataset);
        dataset->format = NULL;
}

/* ---- for formats ---- */

static int read_all(int fd, uint8_t *to, uint64_t bytes, uint64_t at, uint64_t *got)
{
        while (*got < bytes) {
                uint64_t want = bytes - *got < CALL_BYTES ? bytes - *got : CALL_BYTES;
                ssize_t n = pread(fd, to + *got, want, (off_t)(at + *got));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        return -ENODATA;
                *got += (uint64_t)n;
        }
        return 0;
}

/* To the page cache: whole pages, those at both ends with them, which others may read once more. */
static void give_back(int fd, uint64_t at, uint64_t end)
{
        uint64_t from = at & ~(PAGE_BYTES - 1), to = (end + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
        if (to > from) /* 0 bytes would be all of the file */
                (void)posix_fadvise(fd, (off_t)from, (off_t)(to - from), POSIX_FADV_DONTNEED);
}

int afz_dataset_read(int fd, void *to, uint64_t bytes, uint64_t at, struct afz_scratch *scratch)
{
        uint64_t end, got = 0, began = afz_now_ns();
        if (__builtin_add_overflow(at, bytes, &end) || end > INT64_MAX)
                return -EOVERFLOW;
        bool is_passing = scratch && scratch->is_passing;
        if (is_passing) /* or more would come than was asked for */
                (void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
        int r = read_all(fd, to, bytes, at, &got);
        if (is_passing)
                give_back(fd, at, end);
        if (scratch) {
                scratch->read_ns += afz_now_ns() - began;
                scratch->read_bytes += got;
        }
        return r;
}

uint64_t afz_dtype_bytes(enum afz_dtype dtype)
{
        static const uint8_t bytes[AFZ_DTYPE_COUNT] = {
                [AFZ_U8] = 1,  [AFZ_I8] = 1,  [AFZ_U16] = 2, [AFZ_I16] = 2,
                [AFZ_U32] = 4, [AFZ_I32] = 4, [AFZ_U64] = 8, [AFZ_I64] = 8,
                [AFZ_F16] = 2, [AFZ_F32] = 4, [AFZ_F64] = 8, [AFZ_BOOL] = 1,
        };
        return (unsigned)dtype < AFZ_DTYPE_COUNT ? bytes[dtype] : 0;
}

int afz_shape_bytes(const uint64_t *shape, uint32_t dimensions, uint64_t each, uint64_t *ret)
{
        uint64_t bytes = each;
        if (dimensions > AFZ_DIMENSIONS_MAX)
                return -EOVERFLOW;
        for (uint32_t i = 0; i < dimensions; i++)
                if (__builtin_mul_overflow(bytes, shape[i], &bytes) || bytes > INT64_MAX)
                        return -EOVERFLOW;
        *ret = bytes;
        return 0;
}

static uint64_t within(uint64_t low, uint64_t value, uint64_t high)
{
        return value < low ? low : value > high ? high : value;
}

uint64_t afz_chunk_for(uint64_t sample_bytes, uint64_t samples, uint64_t budget_bytes)
{
        uint64_t fair = within(CHUNK_LEAST, budget_bytes / CHUNKS_FAIR, CHUNK_FAIR);
        uint64_t bytes = within(fair, budget_bytes / CHUNKS_MANY, CHUNK_BYTES);
        return within(1, sample_bytes ? bytes / sample_bytes : 1, samples ? samples : 1);
}
