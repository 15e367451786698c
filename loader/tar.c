#include "tar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "formats.h"

enum {
        CHUNK_BYTES = 512 << 10, /* in the file: a disk reads hardly faster if asked for more */
        SLOT_BYTES = 4 << 20,    /* decoded: so that many chunks fit into a budget */
        SPAN_BYTES = 8 << 20, /* read at once at most; a chunk of more is read picture by picture */
};

static bool ends_in(const char *name, const char *ending)
{
        size_t n = strlen(name), m = strlen(ending);
        return n > m && strcmp(name + n - m, ending) == 0;
}

static bool is_tar_name(int folder, const char *name)
{
        (void)folder;
        return ends_in(name, ".tar");
}

static bool is_tar(const char *path, bool is_folder, const uint8_t *head, uint64_t head_bytes)
{
        if (is_folder)
                return afz_folder_has(path, is_tar_name);
        return (head_bytes >= 263 && memcmp(head + 257, "ustar", 5) == 0) ||
               ends_in(path, ".tar") || ends_in(path, ".tar.gz") || ends_in(path, ".tgz");
}

static int add_shard(struct afz_dataset *dataset, struct tar_set *set, char *name)
{
        struct tar_shard *shard = afz_rows_add(&set->shards, dataset);
        if (!shard || !name)
                return -ENOMEM;
        shard->name = name;
        return 0;
}

static int find_shards(struct afz_dataset *dataset, struct tar_set *set)
{
        char **names = NULL;
        int fd = afz_folder_open(AT_FDCWD, dataset->path);
        if (fd == -ENOTDIR)
                return add_shard(dataset, set, afz_texts_keep(&set->texts, dataset, dataset->path));
        if (fd < 0)
                return fd;
        set->folder = fd;
        int64_t count = afz_names_in(fd, ".", is_tar_name, &set->texts, dataset, &names);
        int r = count < 0 ? (int)count : 0;
        for (int64_t i = 0; i < count && r == 0; i++)
                r = add_shard(dataset, set, names[i]);
        free(names);
        return r;
}

static int source_of(const struct tar_set *set, const struct tar_sample *sample,
                     struct afz_scratch *scratch, struct afz_image_source *ret)
{
        const struct tar_shard *shard = afz_rows_at(&set->shards, sample->shard);
        uint64_t bytes;
        int fd = afz_file_open(set->folder, shard->name, &bytes);
        *ret = (struct afz_image_source){
                .fd = fd,
                .at = (uint64_t)sample->block * 512,
                .left = sample->bytes,
                .scratch = scratch,
        };
        return fd < 0 ? fd : 0;
}

static int make_plan(const struct afz_loader_options *options, struct tar_set *set,
                     char why[AFZ_WHY_MAX])
{
        enum { PIECE = 64 << 10 };
        struct afz_scratch scratch = {.raw = malloc(PIECE), .raw_bytes = PIECE};
        struct afz_image_source first;
        int r = scratch.raw ? source_of(set, afz_rows_at(&set->samples, 0), &scratch, &first)
                            : -ENOMEM;
        if (r < 0) {
                afz_why(why, r, "%s", afz_error_text(r));
        } else {
                r = afz_image_plan(options, &first, &set->plan, why);
                close(first.fd);
        }
        free(scratch.raw);
        return r;
}

/* The bytes from one sample's picture to the end of another's, if they lie one behind the other. */
static uint64_t span_of(const struct tar_set *set, uint64_t first, uint64_t count)
{
        const struct tar_sample *a = afz_rows_at(&set->samples, first);
        const struct tar_sample *z = afz_rows_at(&set->samples, first + count - 1);
        if (a->shard != z->shard || z->block < a->block)
                return UINT64_MAX;
        return (uint64_t)(z->block - a->block) * 512 + z->bytes;
}

static void describe(struct afz_dataset *dataset, struct tar_set *set)
{
        uint64_t count = set->samples.count, each = set->picture_bytes / count + 1;
        afz_image_describe(&set->plan, dataset);
        uint64_t in_file = CHUNK_BYTES / each, in_slot = SLOT_BYTES / dataset->field[0].bytes;
        uint64_t chunk = in_file < in_slot ? in_file : in_slot;
        dataset->samples = count;
        dataset->is_single = true;
        dataset->chunk_samples = chunk ? chunk : 1;
        for (uint64_t i = 0; i < count; i += dataset->chunk_samples) {
                uint64_t left = count - i,
                         n = left < dataset->chunk_samples ? left : dataset->chunk_samples;
                uint64_t span = span_of(set, i, n);
                if (span <= SPAN_BYTES && span > dataset->raw_bytes)
                        dataset->raw_bytes = span;
        }
        if (set->has_labels)
                dataset->field[dataset->fields++] =
                        (struct afz_field){.name = "label", .dtype = AFZ_I64, .bytes = 8};
}

static int tar_open(struct afz_dataset *dataset, const struct afz_loader_options *options,
                    char why[AFZ_WHY_MAX])
{
        char clause[AFZ_WHY_MAX] = "";
        if (ends_in(dataset->path, "gz"))
                return afz_why(why, -ENOTSUP,
                               "%.250s is compressed as a whole, so that nothing in it can be read "
                               "by itself: "
                               "gunzip it first (pictures are compressed anyway)",
                               dataset->path);
        struct tar_set *set = afz_index_take(dataset, 1, sizeof *set);
        if (!set)
                return afz_why(why, -ENOMEM, "%.250s: %s", dataset->path, afz_error_text(-ENOMEM));
        set->folder = AT_FDCWD;
        set->shards.each = sizeof(struct tar_shard);
        set->samples.each = sizeof(struct tar_sample);
        dataset->own = set;
        int r = find_shards(dataset, set);
        if (r < 0)
                return afz_why(why, r, "%.250s: %s", dataset->path, afz_error_text(r));
        for (uint32_t i = 0; i < set->shards.count && r == 0; i++)
                r = afz_tar_index(dataset, set, i, options->on_error == AFZ_ERROR_SKIP, why);
        if (r < 0)
                return r;
        if (set->samples.count == 0)
                return afz_why(why, -ENODATA,
                               "%.250s: there are no pictures (key.jpg, key.jpeg, key.png) in it",
                               dataset->path);
        r = make_plan(options, set, clause);
        if (r < 0)
                return afz_why(why, r, "%.200s: %.250s", dataset->path, clause);
        describe(dataset, set);
        return 0;
}

static void tar_close(struct afz_dataset *dataset)
{
        struct tar_set *set = dataset->own;
        if (set && set->folder >= 0)
                close(set->folder);
        dataset->own = NULL;
}

static void put_label(const struct afz_load *load, uint32_t i, int64_t label)
{
        memcpy(load->field[1] + i * sizeof label, &label, sizeof label);
}

/* A run of pictures that lie side by side is read at once, if there is room for it. */
static bool read_run(const struct tar_set *set, const struct afz_load *load,
                     struct afz_scratch *scratch)
{
        struct afz_image_source s;
        uint64_t span = span_of(set, load->first, load->count);
        if (load->count < 2 || span > scratch->raw_bytes)
                return false;
        int r = source_of(set, afz_rows_at(&set->samples, load->first), scratch, &s);
        if (r == 0)
                r = afz_dataset_read(s.fd, scratch->raw, span, s.at, scratch);
        if (s.fd >= 0)
                close(s.fd);
        return r == 0; /* else one by one: some may be there */
}

static int load_one(struct tar_set *set, const struct afz_load *load, uint32_t i, bool is_read,
                    struct afz_scratch *scratch, char why[AFZ_WHY_MAX])
{
        const struct tar_sample *sample = afz_rows_at(&set->samples, load->first + i);
        const struct tar_sample *first = afz_rows_at(&set->samples, load->first);
        struct afz_image_source s = {.fd = -1, .scratch = scratch};
        if (set->has_labels && sample->label == AFZ_LABEL_NONE)
                return afz_why(why, -ENODATA, "it has no label (.cls or .json)");
        int r = 0;
        if (is_read && sample->block >= first->block) {
                s.have = scratch->raw + (uint64_t)(sample->block - first->block) * 512;
                s.have_bytes = sample->bytes;
        } else {
                r = source_of(set, sample, scratch, &s);
        }
        if (r < 0)
                return afz_why(why, r, "%s", afz_error_text(r));
        uint64_t bytes = set->plan.options.is_float ? sizeof(float) : 1;
        bytes *= (uint64_t)set->plan.options.height * set->plan.options.width * 3;
        r = afz_image_load(&set->plan, &s, load->first + i, load->draw, load->field[0] + i * bytes,
                           why);
        if (s.fd >= 0)
                close(s.fd);
        if (r == 0 && set->has_labels)
                put_label(load, i, sample->label);
        return r;
}

static int tar_load(struct afz_dataset *dataset, const struct afz_load *load,
                    struct afz_scratch *scratch, char why[AFZ_WHY_MAX])
{
        struct tar_set *set = dataset->own;
        bool is_read = read_run(set, load, scratch), has_bad = false;
        for (uint32_t i = 0; i < load->count; i++) {
                char clause[AFZ_WHY_MAX] = "", name[64];
                int r = load_one(set, load, i, is_read, scratch, clause);
                if (r == -ENOMEM)
                        return afz_why(why, r, "%.250s: %.200s", dataset->path, clause);
                if (r == 0)
                        continue;
                afz_load_bad(load, i, 1);
                snprintf(name, sizeof name, "%llu", (unsigned long long)(load->first + i));
                if (!has_bad)
                        afz_image_why(why, dataset->path, name, clause);
                has_bad = true;
        }
        return 0;
}

const struct afz_format afz_format_tar = {
        .name = "tar",
        .about = "tar files of JPEG and PNG (webdataset), or a folder of them",
        .is_it = is_tar,
        .open = tar_open,
        .close = tar_close,
        .load = tar_load,
};
