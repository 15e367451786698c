/* Folders of JPEG and PNG: a folder a class, as most people keep them, or one with pictures alone.
 * Classes and pictures are numbered in the order of their names. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "formats.h"
#include "image.h"
#include "rows.h"

struct kind {
        char *name; /* "." for pictures that are in the folder itself */
        uint64_t first;
};

struct folder {
        int fd;
        struct afz_rows classes, names; /* struct kind; char * */
        struct afz_texts texts;
        struct afz_image_plan plan;
        bool has_labels;
};

static bool is_picture(int folder, const char *name)
{
        (void)folder;
        return afz_image_is_name(name);
}

static bool is_class(int folder, const char *name)
{
        struct stat st;
        return fstatat(folder, name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static bool is_folder_of(const char *path, bool is_folder, const uint8_t *head, uint64_t head_bytes)
{
        (void)head, (void)head_bytes;
        return is_folder && (afz_folder_has(path, is_picture) || afz_folder_has(path, is_class));
}

static int add_pictures(struct afz_dataset *dataset, struct folder *f, char *class_name)
{
        char **names = NULL;
        int64_t count = afz_names_in(f->fd, class_name, is_picture, &f->texts, dataset, &names);
        if (count < 0)
                return (int)count;
        struct kind *kind = afz_rows_add(&f->classes, dataset);
        int r = kind ? 0 : -ENOMEM;
        if (kind)
                *kind = (struct kind){.name = class_name, .first = f->names.count};
        for (int64_t i = 0; i < count && r == 0; i++) {
                char **row = afz_rows_add(&f->names, dataset);
                r = row ? 0 : -ENOMEM;
                if (row)
                        *row = names[i];
        }
        free(names);
        return r;
}

static int find_pictures(struct afz_dataset *dataset, struct folder *f)
{
        static char here[] = ".";
        char **names = NULL;
        int64_t count = afz_names_in(f->fd, ".", is_class, &f->texts, dataset, &names);
        int r = count < 0 ? (int)count : 0;
        for (int64_t i = 0; i < count && r == 0; i++)
                r = add_pictures(dataset, f, names[i]);
        free(names);
        f->has_labels = f->names.count > 0;
        if (r < 0 || f->has_labels)
                return r;
        f->classes.count = 0;
        return add_pictures(dataset, f, here);
}

static int64_t class_of(const struct folder *f, uint64_t sample)
{
        uint64_t low = 0, high = f->classes.count; /* the last class that begins at it or before */
        while (high - low > 1) {
                uint64_t middle = low + (high - low) / 2;
                const struct kind *kind = afz_rows_at(&f->classes, middle);
                if (kind->first <= sample)
                        low = middle;
                else
                        high = middle;
        }
        return (int64_t)low;
}

static void path_of(const struct folder *f, uint64_t sample, char ret[600])
{
        const struct kind *kind = afz_rows_at(&f->classes, (uint64_t)class_of(f, sample));
        snprintf(ret, 600, "%s/%s", kind->name, *(char **)afz_rows_at(&f->names, sample));
}

static int source_of(const struct folder *f, uint64_t sample, struct afz_scratch *scratch,
                     struct afz_image_source *ret)
{
        char path[600];
        path_of(f, sample, path);
        *ret = (struct afz_image_source){.scratch = scratch};
        ret->fd = afz_file_open(f->fd, path, &ret->left);
        return ret->fd < 0 ? ret->fd : 0;
}

static int make_plan(const struct afz_loader_options *options, struct folder *f,
                     char why[AFZ_WHY_MAX])
{
        enum { PIECE = 64 << 10 };
        struct afz_scratch scratch = {.raw = malloc(PIECE), .raw_bytes = PIECE};
        struct afz_image_source first;
        int r = scratch.raw ? source_of(f, 0, &scratch, &first) : -ENOMEM;
        if (r < 0) {
                afz_why(why, r, "%s", afz_error_text(r));
        } else {
                r = afz_image_plan(options, &first, &f->plan, why);
                close(first.fd);
        }
        free(scratch.raw);
        return r;
}

static int folder_open(struct afz_dataset *dataset, const struct afz_loader_options *options,
                       char why[AFZ_WHY_MAX])
{
        char clause[AFZ_WHY_MAX] = "";
        struct folder *f = afz_index_take(dataset, 1, sizeof *f);
        if (!f)
                return afz_why(why, -ENOMEM, "%.250s: %s", dataset->path, afz_error_text(-ENOMEM));
        f->fd = afz_folder_open(AT_FDCWD, dataset->path);
        if (f->fd < 0)
                return afz_why(why, f->fd, "%.250s: %s", dataset->path, afz_error_text(f->fd));
        f->classes.each = sizeof(struct kind);
        f->names.each = sizeof(char *);
        dataset->own = f;
        int r = find_pictures(dataset, f);
        if (r < 0)
                return afz_why(why, r, "%.250s: %s", dataset->path, afz_error_text(r));
        if (f->names.count == 0)
                return afz_why(why, -ENODATA,
                               "%.250s: there are no pictures (.jpg, .jpeg, .png) in it, and none "
                               "in the folders in it",
                               dataset->path);
        r = make_plan(options, f, clause);
        if (r < 0)
                return afz_why(why, r, "%.200s: %.250s", dataset->path, clause);
        afz_image_describe(&f->plan, dataset);
        dataset->samples = f->names.count;
        dataset->chunk_samples = 1;
        dataset->is_single = true;
        if (f->has_labels)
                dataset->field[dataset->fields++] =
                        (struct afz_field){.name = "label", .dtype = AFZ_I64, .bytes = 8};
        return 0;
}

static void folder_close(struct afz_dataset *dataset)
{
        struct folder *f = dataset->own;
        if (f)
                close(f->fd);
        dataset->own = NULL;
}

static int load_one(const struct afz_dataset *dataset, const struct afz_load *load, uint32_t i,
                    struct afz_scratch *scratch, char why[AFZ_WHY_MAX])
{
        struct folder *f = dataset->own;
        struct afz_image_source s;
        int r = source_of(f, load->first + i, scratch, &s);
        if (r < 0)
                return afz_why(why, r, "%s", afz_error_text(r));
        r = afz_image_load(&f->plan, &s, load->first + i, load->draw,
                           load->field[0] + i * dataset->field[0].bytes, why);
        close(s.fd);
        if (r == 0 && f->has_labels) {
                int64_t label = class_of(f, load->first + i);
                memcpy(load->field[1] + i * sizeof label, &label, sizeof label);
        }
        return r;
}

static int folder_load(struct afz_dataset *dataset, const struct afz_load *load,
                       struct afz_scratch *scratch, char why[AFZ_WHY_MAX])
{
        bool has_bad = false;
        for (uint32_t i = 0; i < load->count; i++) {
                char clause[AFZ_WHY_MAX] = "", path[600];
                int r = load_one(dataset, load, i, scratch, clause);
                if (r == -ENOMEM)
                        return afz_why(why, r, "%.250s: %.200s", dataset->path, clause);
                if (r == 0)
                        continue;
                afz_load_bad(load, i, 1);
                path_of(dataset->own, load->first + i, path);
                if (!has_bad)
                        afz_image_why(why, dataset->path, path, clause);
                has_bad = true;
        }
        return 0;
}

const struct afz_format afz_format_folder = {
        .name = "folder",
        .about = "a folder of JPEG and PNG, with a folder for each class",
        .is_it = is_folder_of,
        .open = folder_open,
        .close = folder_close,
        .load = folder_load,
};
