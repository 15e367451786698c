#ifndef AFZ_CONVERT_H
#define AFZ_CONVERT_H
/* A copy of a dataset as Zarr v3 in shards, made by reading it once through the loader.
 *
 *   program.c  main(); Python brings its own (python/antifreeze/feed/convert.py), for Parquet
 *   main.c     what both do: arguments, signals, words
 *   job.c      one copy from its beginning to its end
 *   source.c   what is there, and how well it packs
 *   target.c   the folder that it goes to: a new one, one to go on with, one to replace
 *   line.c     threads that take batches, pack them, and put them down in order
 *   recipe.c   what is made of what: a copy goes on only with the recipe that it was begun with
 *   array.c    shards and descriptions on disk
 *   pack.c     a chunk's bytes
 *   layout.c   sizes
 *   talk.c     what is shown while it goes on
 *
 * While a copy is being made its folder has a file AFZ_STATE_NAME, with the recipe and the number
 * of shards that are done, and no zarr.json: nobody takes it for an array. When the last shard is
 * on disk the descriptions are written, and the state is removed. So a copy that is killed at any
 * moment goes on behind its last whole shard, and what comes out is the same, byte by byte. */
#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "antifreeze/loader.h"
#include "array.h"
#include "layout.h"

#define AFZ_STATE_NAME ".antifreeze-convert"

/* What is asked for. */
struct afz_wish {
        const char *source, *labels, *target; /* labels: may be NULL */
        const char *format, *details;         /* as the loader has them; may be NULL */
        const struct afz_source *arrow; /* what Python reads; NULL: the loader does it alone */
        struct afz_image_options image;
        uint64_t threads; /* that read; 0: as it takes */
        uint64_t budget_bytes, chunk_bytes, shard_bytes;
        int level;
        bool is_forced, is_dry;
};

/* How it ends: an exit status. */
enum afz_end {
        AFZ_END_GOOD = 0,
        AFZ_END_BAD = 2,     /* what was asked for, or the data */
        AFZ_END_OWN = 125,   /* the disk, memory, the program itself */
        AFZ_END_STOPPED = 1, /* somebody asked for it */
};

/* What is known at the end, and while it goes on. */
struct afz_outcome {
        struct afz_layout layout;
        uint32_t arrays;
        struct {
                char name[64];
                struct afz_field field;
        } array[AFZ_FIELDS_MAX];
        uint64_t begun_samples; /* that were there already */
        uint64_t done_samples;
        uint64_t plain_bytes, disk_bytes; /* of all; on disk so far */
        uint64_t likely_bytes;            /* on disk in the end, by a trial; 0: not tried */
        uint64_t most_bytes;              /* and at most */
        uint64_t free_bytes;
        uint64_t least_bytes; /* of memory that the loader needs */
        bool is_whole_already;
        char why[2 * AFZ_WHY_MAX]; /* one sentence, where it did not end well */
};

/* Shows how it stands; called several times a second, and at the end. */
typedef void afz_show(const struct afz_outcome *outcome, void *about);

/* is_stopping: set by a signal handler; looked at several times a second. */
enum afz_end afz_convert(const struct afz_wish *wish, const atomic_int *is_stopping, afz_show *show,
                         void *about, struct afz_outcome *ret);

/* All that the program does. argv: name=value, as src/cli/cmd_convert.c gives them; arrow: what is
 * read in place of the source's files, or NULL. Returns an exit status. */
__attribute__((visibility("default"))) int afz_convert_main(int argc, char **argv,
                                                            const struct afz_source *arrow);

/* ---- between the files ---- */

/* Puts the sentence down and returns end. */
enum afz_end afz_end_with(struct afz_outcome *outcome, enum afz_end end, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* source.c: fills in layout and arrays. */
enum afz_end afz_source_look(const struct afz_wish *wish, struct afz_outcome *ret);
/* And likely_bytes: some batches from all over the data, packed. */
enum afz_end afz_source_try(const struct afz_wish *wish, struct afz_outcome *ret);
/* From that sample on, in the order of the data, a chunk's samples at a time. own_bytes: of the
 * budget that others take. */
enum afz_end afz_source_open(const struct afz_wish *wish, struct afz_outcome *outcome,
                             uint64_t first, uint64_t own_bytes, struct afz_loader **ret);
/* A sentence of the loader, with the words of this program. */
enum afz_end afz_source_failed(struct afz_outcome *outcome, int error, const char *why);

/* recipe.c
 * What an array is: name, dtype, shape. samples: the first dimension; 0: it is left out. */
json_t *afz_recipe_array(const struct afz_outcome *outcome, uint32_t which, uint64_t samples);
json_t *afz_recipe_new(const struct afz_wish *wish, const struct afz_outcome *outcome);
/* In which way they differ: "with another --level"; NULL: not at all. */
const char *afz_recipe_differs(const json_t *one, const json_t *other);

/* target.c */
struct afz_target {
        const char *path;
        int folder;
        bool is_made;  /* the folder was not there before */
        bool is_begun; /* what is in it is ours to write */
        json_t *recipe;
        uint64_t done; /* shards */
        struct afz_array array[AFZ_FIELDS_MAX];
        uint32_t arrays;
};
enum afz_end afz_target_check(const struct afz_wish *wish, struct afz_outcome *outcome);
/* Begins, or goes on. is_whole_already: there is nothing to do, and nothing is open. */
enum afz_end afz_target_open(const struct afz_wish *wish, struct afz_outcome *outcome,
                             struct afz_target *ret);
/* Shards of all arrays up to this number are on disk. */
int afz_target_keep(struct afz_target *target, uint64_t done);
int afz_target_finish(struct afz_target *target);
/* What has not one whole shard leaves nothing behind. */
void afz_target_close(struct afz_target *target);

/* line.c: from the source to the target.
 * Whether the budget is enough for that, before anything is written. */
enum afz_end afz_line_check(const struct afz_wish *wish, struct afz_outcome *outcome);
enum afz_end afz_line_run(const struct afz_wish *wish, const atomic_int *is_stopping,
                          afz_show *show, void *about, struct afz_target *target,
                          struct afz_outcome *outcome);

#endif
