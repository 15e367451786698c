#include "mount_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs_type.h"

/* A host with a thousand containers has some 2 MiB of mounts. Untouched pages cost nothing. */
#define TEXT_CAP   ((size_t)4 << 20)
#define MOUNTS_CAP ((size_t)16384)
#define LINKS_MAX  16 /* a path with more links than this is a loop */

int afz_mount_list_read(const struct afz_env *env, struct afz_mount_list *ret)
{
        struct afz_mount_list list = {.text = malloc(TEXT_CAP)};
        struct afz_span text;
        char path[64];
        list.table.mount = malloc(MOUNTS_CAP * sizeof *list.table.mount);
        if (!list.text || !list.table.mount) {
                afz_mount_list_done(&list);
                return -ENOMEM;
        }
        list.table.cap = MOUNTS_CAP;
        list.err = afz_path(path, sizeof path, "%llu/mountinfo", (unsigned long long)env->self_pid);
        if (list.err >= 0)
                list.err = afz_env_read(env, AFZ_ROOT_PROC, path, list.text, TEXT_CAP, &text);
        if (list.err == 0)
                afz_mount_table_fill(&list.table, text);
        *ret = list;
        return 0;
}

void afz_mount_list_done(struct afz_mount_list *list)
{
        if (!list)
                return;
        free(list->text);
        free(list->table.mount);
        *list = (struct afz_mount_list){0};
}

const struct afz_mount *afz_mount_at(const struct afz_mount_list *list, const char *point)
{
        const struct afz_mount *m = afz_mount_of_path(&list->table, point);
        return m && afz_span_eq(m->point, point) ? m : NULL;
}

bool afz_mount_answers(const struct afz_mount *mount)
{
        enum afz_fs_class class = afz_fs_type_of(mount)->class;
        return class == AFZ_FS_LOCAL || class == AFZ_FS_MEMORY;
}

/* Puts the target of the link that path[0..end) is in its place. */
static int splice(char *path, size_t cap, size_t end, const char *target)
{
        char whole[8192];
        size_t keep = target[0] == '/' ? 0 : end;
        while (keep > 0 && path[keep - 1] != '/')
                keep--;
        int n = afz_path(whole, sizeof whole, "%.*s%s%s", (int)keep, path, target, path + end);
        if (n < 0 || (size_t)n >= cap)
                return -ENAMETOOLONG;
        memcpy(path, whole, (size_t)n + 1);
        return 0;
}

const struct afz_mount *afz_mount_of_linked(const struct afz_mount_list *list, const char *path,
                                            afz_link_fn *link, void *ctx)
{
        char at[4096], target[4096];
        int links = 0;
        if (path[0] != '/' || afz_path(at, sizeof at, "%s", path) < 0)
                return NULL;
        for (size_t end = 1; at[end];) {
                size_t next = end + strcspn(at + end, "/");
                char cut = at[next];
                at[next] = '\0';
                const struct afz_mount *m = afz_mount_of_path(&list->table, at);
                if (!m || !afz_mount_answers(m))
                        return m;
                ssize_t n = link(ctx, at, target, sizeof target - 1);
                at[next] = cut;
                if (n > 0) {
                        target[n] = '\0';
                        if (++links > LINKS_MAX || splice(at, sizeof at, next, target) < 0)
                                return NULL;
                        end = 1;
                } else {
                        end = cut ? next + 1 : next;
                }
        }
        return afz_mount_of_path(&list->table, at);
}

bool afz_mount_option(const struct afz_mount *mount, const char *name, struct afz_span *ret_value)
{
        /* The options are the last word of the line that the type stands in; the text that was
         * parsed has a newline behind every line. */
        const char *p = mount->type.p + mount->type.n;
        struct afz_span line = {p, strcspn(p, "\n")}, options = {0}, one;
        while (afz_span_take_word(&line, &one) == 0)
                options = one;
        while (options.n > 0) {
                if (afz_span_take_until(&options, ',', &one) < 0) {
                        one = options;
                        options.n = 0;
                }
                if (afz_span_take_prefix(&one, name) == 0) {
                        *ret_value = one;
                        return true;
                }
        }
        return false;
}
