#ifndef AFZ_LOADER_FIXTURE_H
#define AFZ_LOADER_FIXTURE_H
/* Files of numbers that say themselves which sample they are, and loaders over them. Included
 * behind cmocka.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "antifreeze/loader.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

static char fixture_dir[64];
static char fixture_path[96]; /* of the rows */

static inline int fixture_make(void **state)
{
        (void)state;
        snprintf(fixture_dir, sizeof fixture_dir, "/tmp/afz-loader-XXXXXX");
        assert_non_null(mkdtemp(fixture_dir));
        snprintf(fixture_path, sizeof fixture_path, "%s/rows.npy", fixture_dir);
        return 0;
}

static inline int fixture_remove(void **state)
{
        char command[96];
        (void)state;
        snprintf(command, sizeof command, "rm -r %s", fixture_dir);
        return system(command);
}

static inline void write_file(const char *path, const void *data, size_t bytes)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, data, bytes), (ssize_t)bytes);
        close(fd);
}

/* A .npy of `samples` rows of `width` 8-byte numbers: row i is i, i + 1, ... */
static inline void write_rows(const char *path, uint64_t samples, uint64_t width)
{
        char head[128];
        memset(head, ' ', sizeof head);
        memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
        int n = snprintf(head + 10, sizeof head - 10,
                         "{'descr': '<i8', 'fortran_order': False, 'shape': (%llu, %llu), }",
                         (unsigned long long)samples, (unsigned long long)width);
        head[10 + n] = ' ';
        head[127] = '\n';
        int64_t *row = malloc(width * sizeof *row);
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        assert_non_null(row);
        assert_int_equal(fwrite(head, 1, sizeof head, file), sizeof head);
        for (uint64_t i = 0; i < samples; i++) {
                for (uint64_t k = 0; k < width; k++)
                        row[k] = (int64_t)(i + k);
                assert_int_equal(fwrite(row, sizeof *row, width, file), width);
        }
        assert_int_equal(fclose(file), 0);
        free(row);
}

static inline struct afz_loader_options rows_options(void)
{
        static const char *paths[1];
        paths[0] = fixture_path;
        return (struct afz_loader_options){
                .paths = paths, .path_count = 1, .budget_bytes = 4 * MIB, .batch = 32, .seed = 7};
}

static inline struct afz_loader *open_ok(const struct afz_loader_options *options)
{
        struct afz_loader *loader = NULL;
        char why[AFZ_WHY_MAX];
        int r = afz_loader_open(options, &loader, why);
        if (r < 0)
                fail_msg("%d: %s", r, why);
        return loader;
}

/* The next batch's samples, told by their first number; checks the rest of each row. -1: the epoch
 * is over. */
static inline int64_t take_batch(struct afz_loader *loader, uint64_t width, int64_t *ids)
{
        struct afz_batch batch;
        char why[AFZ_WHY_MAX];
        int r = afz_loader_next(loader, &batch, why);
        if (r < 0)
                fail_msg("%d: %s", r, why);
        if (r == 0)
                return -1;
        const int64_t *data = batch.data[0];
        for (uint32_t i = 0; i < batch.count; i++) {
                ids[i] = data[i * width];
                for (uint64_t k = 1; k < width; k++)
                        if (data[i * width + k] != ids[i] + (int64_t)k)
                                fail_msg("row %lld is mixed", (long long)ids[i]);
        }
        uint32_t count = batch.count;
        afz_loader_release(loader, batch.lease);
        return count;
}

/* The rest of the epoch: how many samples. */
static inline uint64_t take_epoch(struct afz_loader *loader, uint64_t width, int64_t *ids)
{
        uint64_t count = 0;
        for (int64_t n; (n = take_batch(loader, width, ids + count)) >= 0;)
                count += (uint64_t)n;
        return count;
}

static inline void assert_all_once(const int64_t *ids, uint64_t count, uint64_t samples)
{
        uint8_t *seen = calloc(1, samples);
        assert_int_equal(count, samples);
        for (uint64_t i = 0; i < count; i++) {
                assert_in_range(ids[i], 0, samples - 1);
                assert_int_equal(seen[ids[i]], 0);
                seen[ids[i]] = 1;
        }
        free(seen);
}

#endif
