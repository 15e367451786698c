/* The folder that a copy goes to. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "convert.h"
#include "file.h"
#include "zarr_meta.h"

#define GROUP_NAME "zarr.json"

static int read_json(int folder, const char *name, json_t **ret)
{
        char *text = NULL;
        uint64_t bytes = 0;
        int r = afz_file_text(folder, name, AFZ_ZARR_META_BYTES, &text, &bytes);
        if (r < 0)
                return r;
        *ret = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
        free(text);
        return *ret ? 0 : -EBADMSG;
}

static int write_json(int folder, const char *name, json_t *value, size_t flags)
{
        char *text = value ? json_dumps(value, flags) : NULL;
        int r = text ? afz_file_replace(folder, name, text) : -ENOMEM;
        free(text);
        json_decref(value);
        return r;
}

static bool has(int folder, const char *name)
{
        return faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- what is there already ---- */

enum there { NOTHING, UNFINISHED, WHOLE, FOREIGN };

static DIR *list(int folder)
{
        int fd = dup(folder);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir && fd >= 0)
                close(fd);
        return dir;
}

/* ret_recipe: of what is ours. */
static enum there look(int folder, json_t **ret_recipe, uint64_t *ret_done)
{
        json_t *state = NULL, *group = NULL;
        enum there there = NOTHING;
        *ret_recipe = NULL, *ret_done = 0;
        if (has(folder, AFZ_STATE_NAME)) { /* whatever else is there: it is not done */
                there = UNFINISHED;
                if (read_json(folder, AFZ_STATE_NAME, &state) == 0) {
                        json_int_t done = json_integer_value(json_object_get(state, "shards"));
                        *ret_recipe = json_incref(json_object_get(state, "recipe"));
                        *ret_done = done > 0 ? (uint64_t)done : 0;
                }
        } else if (read_json(folder, GROUP_NAME, &group) == 0) {
                json_t *recipe =
                        json_object_get(json_object_get(group, "attributes"), AFZ_ZARR_RECIPE);
                there = recipe ? WHOLE : FOREIGN;
                *ret_recipe = json_incref(recipe);
        } else {
                DIR *dir = list(folder);
                there = dir ? NOTHING : FOREIGN;
                for (struct dirent *entry; dir && (entry = readdir(dir));)
                        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                            strcmp(entry->d_name, AFZ_PART_NAME) != 0)
                                there = FOREIGN;
                if (dir)
                        closedir(dir);
        }
        json_decref(state);
        json_decref(group);
        return there;
}

/* Only what a copy of ours consists of; anything else stays, and stays in the way. */
static void clear_array(int parent, const char *name)
{
        int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *dir = folder < 0 ? NULL : list(folder);
        for (struct dirent *entry; dir && (entry = readdir(dir));)
                if (strncmp(entry->d_name, "c.", 2) == 0 ||
                    strcmp(entry->d_name, GROUP_NAME) == 0 ||
                    strcmp(entry->d_name, AFZ_PART_NAME) == 0)
                        unlinkat(folder, entry->d_name, 0);
        if (dir)
                closedir(dir);
        if (folder >= 0)
                close(folder);
        unlinkat(parent, name, AT_REMOVEDIR);
}

static void clear(int folder, const json_t *recipe)
{
        const json_t *arrays = json_object_get(recipe, "arrays");
        for (size_t i = 0; i < json_array_size(arrays); i++) {
                const char *name =
                        json_string_value(json_object_get(json_array_get(arrays, i), "name"));
                if (name && *name && !strchr(name, '/') && strcmp(name, "..") != 0 &&
                    strcmp(name, ".") != 0)
                        clear_array(folder, name);
        }
}

/* ---- before anything is read ---- */

/* The folder that the target is or will be in; a slash at its end says nothing. */
static int split(const char *path, char ret_parent[PATH_MAX], char ret_name[NAME_MAX + 1])
{
        size_t end = strlen(path);
        while (end > 1 && path[end - 1] == '/')
                end--;
        size_t start = end;
        while (start > 0 && path[start - 1] != '/')
                start--;
        if (end - start > NAME_MAX || start >= PATH_MAX || end == start)
                return -ENAMETOOLONG;
        memcpy(ret_name, path + start, end - start);
        ret_name[end - start] = '\0';
        memcpy(ret_parent, start ? path : ".", start ? start : 1);
        ret_parent[start ? start : 1] = '\0';
        return strcmp(ret_name, ".") == 0 || strcmp(ret_name, "..") == 0 ? -EINVAL : 0;
}

/* Where it is or will be, whatever links lead there. NULL: no memory, or no such folder. */
static char *real_target(const char *path, const char *parent, const char *name)
{
        char *full = realpath(path, NULL), *at = full ? NULL : realpath(parent, NULL);
        if (at && asprintf(&full, "%s/%s", strcmp(at, "/") == 0 ? "" : at, name) < 0)
                full = NULL;
        free(at);
        return full;
}

static bool is_in(const char *path, const char *folder)
{
        size_t length = strlen(folder);
        return strncmp(path, folder, length) == 0 &&
               (path[length] == '/' || path[length] == '\0' || folder[length - 1] == '/');
}

/* Whether one is the other, or in it: then it would read what it writes, or remove what it reads.
 */
static bool is_mixed(const char *source, const char *target)
{
        char *from = source ? realpath(source, NULL) : NULL;
        bool is = from && target && (is_in(target, from) || is_in(from, target));
        free(from);
        return is;
}

static void measure_room(const struct statvfs *disk, struct afz_outcome *outcome)
{
        outcome->free_bytes = (uint64_t)disk->f_bavail * disk->f_frsize;
}

enum afz_end afz_target_check(const struct afz_wish *wish, struct afz_outcome *outcome)
{
        char parent[PATH_MAX], name[NAME_MAX + 1];
        struct stat st;
        if (split(wish->target, parent, name) < 0)
                return afz_end_with(outcome, AFZ_END_BAD, "%.300s is no name for a folder",
                                    wish->target);
        if (stat(parent, &st) < 0 || !S_ISDIR(st.st_mode))
                return afz_end_with(outcome, AFZ_END_BAD, "%.300s: there is no folder %.300s",
                                    wish->target, parent);
        if (stat(wish->target, &st) == 0 && !S_ISDIR(st.st_mode))
                return afz_end_with(outcome, AFZ_END_BAD,
                                    "%.300s is a file; the copy is a folder: choose another name",
                                    wish->target);
        char *target = real_target(wish->target, parent, name);
        bool is = is_mixed(wish->source, target) || is_mixed(wish->labels, target);
        free(target);
        if (is)
                return afz_end_with(outcome, AFZ_END_BAD,
                                    "%.300s is inside of what is to be copied, or has it inside: "
                                    "choose another place",
                                    wish->target);
        struct statvfs disk;
        if (statvfs(wish->target, &disk) == 0 || statvfs(parent, &disk) == 0)
                measure_room(&disk, outcome);
        return AFZ_END_GOOD;
}

/* ---- beginning, going on ---- */

static int write_state(const struct afz_target *target, json_t *recipe, uint64_t done)
{
        return write_json(target->folder, AFZ_STATE_NAME,
                          json_pack("{s:I, s:O}", "shards", (json_int_t)done, "recipe", recipe), 0);
}

/* From here on it is unfinished, and stays so until all of it is gone: a kill in between leaves
 * something that another --force takes up. */
static int begin_anew(struct afz_target *target, json_t *old)
{
        json_t *none = json_object();
        int r = write_state(target, old ? old : none, 0);
        json_decref(none);
        if (r < 0)
                return r;
        unlinkat(target->folder, GROUP_NAME, 0);
        clear(target->folder, old);
        return write_state(target, target->recipe, 0);
}

static enum afz_end refuse(const struct afz_wish *wish, struct afz_outcome *outcome,
                           enum there there, const char *differs)
{
        if (there == FOREIGN)
                return afz_end_with(outcome, AFZ_END_BAD,
                                    "%.300s is there already and is no copy that antifreeze "
                                    "convert made: choose another name",
                                    wish->target);
        if (there == WHOLE)
                return afz_end_with(outcome, AFZ_END_BAD,
                                    "%.300s is there already, made %s; --force makes it anew",
                                    wish->target, differs);
        return afz_end_with(outcome, AFZ_END_BAD,
                            "%.300s was begun %s: the command that began it goes on with it, "
                            "--force begins anew",
                            wish->target, differs);
}

static enum afz_end open_folder(const struct afz_wish *wish, struct afz_outcome *outcome,
                                struct afz_target *target)
{
        target->is_made = mkdir(wish->target, 0777) == 0;
        if (!target->is_made && errno != EEXIST)
                return afz_end_with(outcome, AFZ_END_OWN, "%.300s: %s", wish->target,
                                    strerror(errno));
        target->folder = open(wish->target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (target->folder < 0)
                return afz_end_with(outcome, AFZ_END_OWN, "%.300s: %s", wish->target,
                                    strerror(errno));
        if (flock(target->folder, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
                return afz_end_with(outcome, AFZ_END_BAD,
                                    "another antifreeze convert is writing %.300s", wish->target);
        return AFZ_END_GOOD;
}

/* Shards that are not there any more are made again, and all behind them. */
static uint64_t count_done(const struct afz_target *target, const struct afz_layout *layout,
                           uint64_t told, uint64_t *ret_bytes)
{
        uint64_t shard, most = told < layout->shards ? told : layout->shards;
        *ret_bytes = 0;
        for (shard = 0; shard < most; shard++)
                for (uint32_t i = 0; i < target->arrays; i++) {
                        uint64_t bytes;
                        if (afz_array_has_shard(&target->array[i], shard, &bytes) < 0)
                                return shard;
                        *ret_bytes += bytes;
                }
        return shard;
}

static int open_arrays(struct afz_target *target, const struct afz_wish *wish,
                       const struct afz_outcome *outcome)
{
        for (uint32_t i = 0; i < outcome->arrays; i++) {
                int r = afz_array_open(&target->array[i], target->folder, outcome->array[i].name,
                                       &outcome->array[i].field, &outcome->layout, wish->level);
                if (r < 0)
                        return r;
                target->arrays++;
        }
        return 0;
}

/* Descriptions are for what is whole. */
static void hide(const struct afz_target *target)
{
        unlinkat(target->folder, GROUP_NAME, 0);
        for (uint32_t i = 0; i < target->arrays; i++)
                unlinkat(target->array[i].folder, GROUP_NAME, 0);
}

static enum afz_end begin(const struct afz_wish *wish, struct afz_outcome *outcome,
                          struct afz_target *target, json_t *old, enum there there, uint64_t done)
{
        const char *differs = afz_recipe_differs(old, target->recipe);
        bool is_same = there != NOTHING && !differs;
        /* --force that was stopped goes on like any other. */
        bool is_anew = wish->is_forced && there != NOTHING && !(is_same && there == UNFINISHED);
        int r = 0;
        if (there == FOREIGN || (there != NOTHING && differs && !wish->is_forced))
                return refuse(wish, outcome, there, differs);
        if (there == NOTHING)
                r = write_state(target, target->recipe, 0);
        else if (is_anew)
                r = begin_anew(target, old);
        /* What could not be replaced, and what is done of a copy, stays if nothing comes of this.
         */
        target->is_begun = there == NOTHING || (is_anew && r == 0);
        if (r == 0)
                r = open_arrays(target, wish, outcome);
        if (r < 0)
                return afz_end_with(outcome, AFZ_END_OWN, "%.300s cannot be written: %s",
                                    wish->target, strerror(-r));
        if (!is_same || is_anew)
                return AFZ_END_GOOD;
        outcome->is_whole_already = there == WHOLE;
        target->done =
                count_done(target, &outcome->layout, there == WHOLE ? outcome->layout.shards : done,
                           &outcome->disk_bytes);
        if (there == WHOLE && target->done < outcome->layout.shards)
                return afz_end_with(outcome, AFZ_END_BAD,
                                    "%.300s has lost a part of it; --force makes it anew",
                                    wish->target);
        if (there != WHOLE) {
                target->is_begun = true;
                hide(target);
        }
        return AFZ_END_GOOD;
}

enum afz_end afz_target_open(const struct afz_wish *wish, struct afz_outcome *outcome,
                             struct afz_target *ret)
{
        struct afz_target target = {
                .path = wish->target, .folder = -1, .recipe = afz_recipe_new(wish, outcome)};
        json_t *old = NULL;
        uint64_t done = 0;
        if (!target.recipe)
                return afz_end_with(outcome, AFZ_END_OWN, "no memory");
        enum afz_end end = open_folder(wish, outcome, &target);
        if (end == AFZ_END_GOOD) {
                enum there there = look(target.folder, &old, &done);
                end = begin(wish, outcome, &target, old, there, done);
        }
        json_decref(old);
        if (end != AFZ_END_GOOD || outcome->is_whole_already) {
                afz_target_close(&target);
                return end;
        }
        struct statvfs disk; /* what --force has replaced is free now */
        if (fstatvfs(target.folder, &disk) == 0)
                measure_room(&disk, outcome);
        *ret = target;
        return end;
}

int afz_target_keep(struct afz_target *target, uint64_t done)
{
        int r = write_state(target, target->recipe, done);
        if (r == 0)
                target->done = done;
        return r;
}

int afz_target_finish(struct afz_target *target)
{
        for (uint32_t i = 0; i < target->arrays; i++) {
                int r = afz_array_describe(&target->array[i]);
                if (r < 0)
                        return r;
        }
        int r = write_json(target->folder, GROUP_NAME,
                           json_pack("{s:i, s:s, s:{s:O}}", "zarr_format", 3, "node_type", "group",
                                     "attributes", AFZ_ZARR_RECIPE, target->recipe),
                           JSON_INDENT(2));
        if (r == 0 &&
            (fsync(target->folder) < 0 || unlinkat(target->folder, AFZ_STATE_NAME, 0) < 0))
                r = -errno;
        return r;
}

void afz_target_close(struct afz_target *target)
{
        bool is_empty = target->is_begun && target->done == 0;
        for (uint32_t i = 0; i < target->arrays; i++)
                afz_array_close(&target->array[i]);
        target->arrays = 0;
        if (is_empty) {
                clear(target->folder, target->recipe);
                unlinkat(target->folder, AFZ_STATE_NAME, 0);
        }
        if (is_empty && target->is_made)
                rmdir(target->path);
        if (target->folder >= 0)
                close(target->folder); /* and the lock with it */
        target->folder = -1;
        json_decref(target->recipe);
        target->recipe = NULL;
}
