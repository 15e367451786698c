#ifndef AFZ_LOADER_FUZZ_H
#define AFZ_LOADER_FUZZ_H
/* Datasets out of a fuzzer's bytes: in memory that looks like a file, loaded whole and in parts
 * into memory of just the size that the format asked for, so that a byte too many is found. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format.h"

static inline void require(int is_true)
{
        if (!is_true)
                abort();
}

/* A path to the bytes, the same for the whole run. */
static inline const char *file_of(const uint8_t *data, size_t size)
{
        static char path[64];
        static int fd = -1;
        if (fd < 0) {
                fd = memfd_create("fuzz", 0);
                require(fd >= 0);
                snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        }
        require(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
        return path;
}

/* Bytes of a good file with some of them changed: three of the input each, where and what; the last
 * two cut it. */
static inline size_t changed(uint8_t *file, size_t bytes, const uint8_t *data, size_t size)
{
        size_t i = 0;
        for (; i + 3 <= size; i += 3)
                file[(size_t)(data[i] | data[i + 1] << 8) % bytes] = data[i + 2];
        return size - i == 2 ? (size_t)(data[i] | data[i + 1] << 8) % (bytes + 1) : bytes;
}

static inline void load_run(struct afz_dataset *d, uint64_t first, uint64_t count,
                            struct afz_scratch *scratch)
{
        struct afz_load load = {.first = first, .count = (uint32_t)count, .draw = 7};
        char why[AFZ_WHY_MAX] = "";
        load.bad = calloc(count, 1);
        for (uint32_t i = 0; i < d->fields; i++)
                load.field[i] = calloc(count, d->field[i].bytes);
        int r = d->format->load(d, &load, scratch, why);
        for (uint64_t i = 0; i < count && r == 0; i++)
                require(load.bad[i] == 0 || (load.bad[i] == 1 && *why));
        require(r == 0 || *why);
        for (uint32_t i = 0; i < d->fields; i++)
                free(load.field[i]);
        free(load.bad);
}

static inline void load_all(struct afz_dataset *d)
{
        const uint64_t most = 8 << 20, all = d->raw_bytes + d->decode_bytes;
        if (d->raw_bytes > most || d->decode_bytes > most || all > most ||
            d->sample_bytes > most / d->chunk_samples)
                return;
        struct afz_scratch scratch = {.raw_bytes = d->raw_bytes, .decode_bytes = d->decode_bytes};
        scratch.raw = aligned_alloc(64, (d->raw_bytes + 64) & ~UINT64_C(63));
        scratch.decode = aligned_alloc(64, (d->decode_bytes + 64) & ~UINT64_C(63));
        for (uint64_t at = 0; at < d->samples && at < 8 * d->chunk_samples;
             at += d->chunk_samples) {
                uint64_t left = d->samples - at,
                         n = left < d->chunk_samples ? left : d->chunk_samples;
                load_run(d, at, n, &scratch);
                load_run(d, at + n / 2, n - n / 2, &scratch);
        }
        if (d->format->forget)
                d->format->forget(&scratch);
        free(scratch.raw), free(scratch.decode);
}

static inline void fuzz_dataset(const char *path, const struct afz_loader_options *options)
{
        static struct afz_dataset d;
        char why[AFZ_WHY_MAX] = "";
        int r = afz_dataset_open(&d, path, options, why);
        require(r == 0 || *why);
        if (r == 0) {
                require(d.samples > 0 && d.chunk_samples > 0 && d.fields > 0);
                load_all(&d);
                afz_dataset_close(&d);
        }
}

#endif
