/* What is made of what. */
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "convert.h"
#include "zarr_meta.h"

/* Any path as text: what is not plain ASCII is written as %XX. */
static json_t *path_text(const char *path)
{
        char *text = malloc(3 * strlen(path) + 1), *at = text;
        if (!text)
                return NULL;
        for (; *path; path++)
                at += *path > ' ' && *path <= '~' && *path != '%'
                              ? sprintf(at, "%c", *path)
                              : sprintf(at, "%%%02X", (unsigned char)*path);
        *at = '\0';
        json_t *value = json_string(text);
        free(text);
        return value;
}

static int64_t written_ns(const struct stat *st)
{
        return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* When something was last put into it, taken from it, or written anew, also in folders in it. */
static int64_t newest_ns(char *path, const struct stat *st)
{
        char *const paths[] = {path, NULL};
        int64_t newest = written_ns(st);
        FTS *all = S_ISDIR(st->st_mode) ? fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
        for (FTSENT *one; all && (one = fts_read(all));)
                if ((one->fts_info == FTS_D || one->fts_info == FTS_F) &&
                    written_ns(one->fts_statp) > newest)
                        newest = written_ns(one->fts_statp);
        if (all)
                fts_close(all);
        return newest;
}

/* Where it is, how large, and when it was last written. */
static json_t *one_source(const char *path)
{
        struct stat st;
        char *real = path ? realpath(path, NULL) : NULL;
        json_t *about = NULL;
        if (!path)
                return json_null();
        if (real && stat(real, &st) == 0)
                about = json_pack("{s:o, s:I, s:I}", "path", path_text(real), "bytes",
                                  (json_int_t)(S_ISREG(st.st_mode) ? st.st_size : 0), "written_ns",
                                  (json_int_t)newest_ns(real, &st));
        free(real);
        return about;
}

static json_t *pictures(const struct afz_image_options *image)
{
        return json_pack("{s:i, s:i, s:b, s:[fff], s:[fff]}", "height", (int)image->height, "width",
                         (int)image->width, "float", image->is_float, "mean", image->mean[0],
                         image->mean[1], image->mean[2], "deviation", image->deviation[0],
                         image->deviation[1], image->deviation[2]);
}

json_t *afz_recipe_array(const struct afz_outcome *outcome, uint32_t which, uint64_t samples)
{
        const struct afz_field *field = &outcome->array[which].field;
        return json_pack("{s:s, s:s, s:o}", "name", outcome->array[which].name, "dtype",
                         afz_zarr_type_name(field->dtype), "shape", afz_shape_json(field, samples));
}

static json_t *fields_of(const struct afz_outcome *outcome)
{
        json_t *fields = json_array();
        for (uint32_t i = 0; i < outcome->arrays; i++)
                json_array_append_new(fields, afz_recipe_array(outcome, i, 0));
        return fields;
}

json_t *afz_recipe_new(const struct afz_wish *wish, const struct afz_outcome *outcome)
{
        const struct afz_layout *l = &outcome->layout;
        return json_pack("{s:i, s:o, s:o, s:s?, s:s?, s:o, s:o, s:I, s:I, s:I, s:i}", "version", 1,
                         "source", one_source(wish->source), "labels", one_source(wish->labels),
                         "format", wish->format, "details", wish->details, "pictures",
                         pictures(&wish->image), "arrays", fields_of(outcome), "samples",
                         (json_int_t)l->samples, "chunk_samples", (json_int_t)l->chunk_samples,
                         "shard_chunks", (json_int_t)l->shard_chunks, "level", wish->level);
}

const char *afz_recipe_differs(const json_t *one, const json_t *other)
{
        static const struct {
                const char *key, *words;
        } rows[] = {
                {"version", "by another version of this program"},
                {"source", "from another source, or it has changed since"},
                {"labels", "with other --labels, or they have changed since"},
                {"format", "with another --format"},
                {"details", "with other --details"},
                {"pictures", "with other --resize, --float, --mean or --deviation"},
                {"samples", "when the source had other samples"},
                {"arrays", "when the source had other samples"},
                {"chunk_samples", "with another --chunk"},
                {"shard_chunks", "with another --shard"},
                {"level", "with another --level"},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                if (!json_equal(json_object_get(one, rows[i].key),
                                json_object_get(other, rows[i].key)))
                        return rows[i].words;
        return NULL;
}
