#ifndef AFZ_LOADER_FILES_H
#define AFZ_LOADER_FILES_H
/* Datasets of a test: files in a temporary folder, opened by the format that knows them, and all of
 * their samples in memory. What cannot be written ends the test. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "format.h"

struct files {
        char dir[64];
};

static inline struct files files_new(void)
{
        struct files f = {"/tmp/afz-loader-XXXXXX"};
        assert_non_null(mkdtemp(f.dir));
        return f;
}

static inline int files_remove_one(const char *path, const struct stat *st, int type,
                                   struct FTW *ftw)
{
        (void)st, (void)type, (void)ftw;
        return remove(path);
}

static inline void files_free(struct files *f)
{
        assert_int_equal(nftw(f->dir, files_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static inline const char *files_path(const struct files *f, const char *name)
{
        static char path[4096];
        assert_true(snprintf(path, sizeof path, "%s/%s", f->dir, name) < (int)sizeof path);
        return path;
}

/* Folders in between are made. */
static inline void files_put(const struct files *f, const char *name, const void *bytes,
                             size_t count)
{
        char path[4096];
        snprintf(path, sizeof path, "%s", files_path(f, name));
        for (char *slash = strchr(path + strlen(f->dir) + 1, '/'); slash;
             slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
                *slash = '/';
        }
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, bytes, count), (ssize_t)count);
        close(fd);
}

static inline void files_text(const struct files *f, const char *name, const char *text)
{
        files_put(f, name, text, strlen(text));
}

static inline void files_cut(const struct files *f, const char *name, off_t bytes)
{
        assert_int_equal(truncate(files_path(f, name), bytes), 0);
}

/* A dataset and all of its samples. */
struct loaded {
        struct afz_dataset dataset;
        struct afz_scratch scratch;
        uint8_t *field[AFZ_FIELDS_MAX];
        uint8_t *bad;
        uint64_t bads;
        int error;
        char why[AFZ_WHY_MAX];
};

static inline void loaded_free(struct loaded *l)
{
        for (int i = 0; i < AFZ_FIELDS_MAX; i++)
                free(l->field[i]);
        if (l->dataset.format && l->dataset.format->forget)
                l->dataset.format->forget(&l->scratch);
        free(l->bad), free(l->scratch.raw), free(l->scratch.decode);
        afz_dataset_close(&l->dataset);
        free(l);
}

static inline struct loaded *loaded_open(const struct files *f, const char *name,
                                         const struct afz_loader_options *given)
{
        struct loaded *l = calloc(1, sizeof *l);
        assert_non_null(l);
        struct afz_loader_options o = {0};
        if (given)
                o = *given;
        o.budget_bytes = o.budget_bytes ? o.budget_bytes : UINT64_C(64) << 20;
        l->error = afz_dataset_open(&l->dataset, files_path(f, name), &o, l->why);
        return l;
}

/* In runs of `part` samples, or whole chunks; memory is just as large as it has to be. */
static inline void loaded_fill(struct loaded *l, uint64_t part, uint64_t draw)
{
        struct afz_dataset *d = &l->dataset;
        assert_int_equal(l->error, 0);
        if (!l->bad) {
                l->scratch.raw_bytes = d->raw_bytes, l->scratch.decode_bytes = d->decode_bytes;
                l->scratch.raw = aligned_alloc(4096, (d->raw_bytes + 4096) & ~UINT64_C(4095));
                l->scratch.decode = aligned_alloc(4096, (d->decode_bytes + 4096) & ~UINT64_C(4095));
                l->bad = malloc(d->samples);
                for (uint32_t i = 0; i < d->fields; i++)
                        l->field[i] = malloc(d->samples * d->field[i].bytes);
        }
        memset(l->bad, 0, d->samples);
        l->bads = 0;
        for (uint64_t at = 0, n; at < d->samples; at += n) {
                char why[AFZ_WHY_MAX] = "";
                n = d->chunk_samples - at % d->chunk_samples;
                n = part && part < n ? part : n;
                n = n < d->samples - at ? n : d->samples - at;
                struct afz_load load = {
                        .first = at, .count = (uint32_t)n, .draw = draw, .bad = l->bad + at};
                for (uint32_t i = 0; i < d->fields; i++)
                        load.field[i] = l->field[i] + at * d->field[i].bytes;
                assert_int_equal(d->format->load(d, &load, &l->scratch, why), 0);
                for (uint64_t i = at; i < at + n; i++)
                        l->bads += l->bad[i];
                if (*why && !*l->why)
                        memcpy(l->why, why, sizeof why);
        }
}

static inline struct loaded *loaded_all(const struct files *f, const char *name,
                                        const struct afz_loader_options *o)
{
        struct loaded *l = loaded_open(f, name, o);
        if (l->error < 0)
                fail_msg("%s: %s", name, l->why);
        loaded_fill(l, 0, 1);
        return l;
}

/* Opening must fail with that error, and say so. */
static inline void refused(const struct files *f, const char *name,
                           const struct afz_loader_options *o, int error, const char *says)
{
        struct loaded *l = loaded_open(f, name, o);
        if (l->error != error || !strstr(l->why, says))
                fail_msg("%s: %d \"%s\" instead of %d \"%s\"", name, l->error, l->why, error, says);
        loaded_free(l);
}

#endif
