#include "cgroup_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const v1_name[AFZ_CONTROLLERS] = {
        [AFZ_CG_MEMORY] = "memory", [AFZ_CG_CPU] = "cpu",   [AFZ_CG_CPUACCT] = "cpuacct",
        [AFZ_CG_IO] = "blkio",      [AFZ_CG_PIDS] = "pids", [AFZ_CG_FREEZER] = "freezer",
};

/* Whether a comma-separated list has this word; an empty list has the empty word. */
static bool list_has(struct afz_span list, const char *word)
{
        struct afz_span item;
        while (afz_span_take_until(&list, ',', &item) == 0)
                if (afz_span_eq(item, word))
                        return true;
        return afz_span_eq(list, word);
}

int afz_cgroup_parse(struct afz_span text, const char *controller, char *ret, size_t cap)
{
        struct afz_span line, id, list;
        while (afz_span_take_line(&text, &line) == 0) {
                if (afz_span_take_until(&line, ':', &id) < 0 ||
                    afz_span_take_until(&line, ':', &list) < 0)
                        return -EINVAL;
                if (!list_has(list, controller) || !afz_span_starts(line, "/"))
                        continue;
                if (line.n >= cap)
                        return -ENAMETOOLONG;
                memcpy(ret, line.p, line.n);
                ret[line.n] = '\0';
                return 0;
        }
        return -ENODATA;
}

/* Cgroups that no folder stands for: removed with a process still in it, or outside of our cgroup
 * namespace. Whatever folder we took instead would be somebody else's. */
static bool is_out_of_sight(const char *path)
{
        struct afz_span s = afz_span_str(path);
        return afz_span_ends(s, " (deleted)") || afz_span_eq(s, "/..") ||
               afz_span_starts(s, "/../");
}

/* A folder of the cgroup root that exists: base/path, or base alone where path is seen from outside
 * of a container (the mount then shows our own cgroup as its top). */
static int set_dir(const struct afz_env *env, const char *base, const char *path, char *ret)
{
        const char *const try[] = {path, ""};
        if (is_out_of_sight(path))
                return -ENODATA;
        for (int i = 0; i < 2; i++) {
                char dir[AFZ_CGROUP_PATH_MAX + 16];
                /* "." keeps an empty path relative; a trailing slash is cut off. */
                int n = afz_path(dir, sizeof dir, "%s%s", base, try[i]);
                while (n > 1 && dir[n - 1] == '/')
                        dir[--n] = '\0';
                if (n < 0 || n >= AFZ_CGROUP_PATH_MAX)
                        return -ENAMETOOLONG;
                int fd = afz_env_open(env, AFZ_ROOT_CGROUP, dir, O_DIRECTORY | O_PATH);
                if (fd < 0)
                        continue;
                close(fd);
                memcpy(ret, dir, (size_t)n + 1);
                return 0;
        }
        return -ENODATA;
}

static int find_v2(const struct afz_env *env, struct afz_span text, struct afz_cgroup_path *ret)
{
        char buf[256];
        struct afz_span controllers;
        int r = afz_env_read(env, AFZ_ROOT_CGROUP, "cgroup.controllers", buf, sizeof buf,
                             &controllers);
        if (r < 0)
                return -ENODATA;
        r = afz_cgroup_parse(text, "", ret->name, sizeof ret->name);
        if (r < 0)
                return r;
        r = set_dir(env, ".", ret->name, ret->dir[0]);
        for (int i = 1; r >= 0 && i < AFZ_CONTROLLERS; i++)
                memcpy(ret->dir[i], ret->dir[0], sizeof ret->dir[i]);
        ret->version = 2;
        return r;
}

static int find_v1(const struct afz_env *env, struct afz_span text, struct afz_cgroup_path *ret)
{
        int r = afz_cgroup_parse(text, "memory", ret->name, sizeof ret->name);
        if (r < 0)
                return r;
        ret->version = 1;
        for (int i = 0; i < AFZ_CONTROLLERS; i++) {
                char path[AFZ_CGROUP_PATH_MAX];
                if (afz_cgroup_parse(text, v1_name[i], path, sizeof path) < 0 ||
                    set_dir(env, v1_name[i], path, ret->dir[i]) < 0)
                        ret->dir[i][0] = '\0';
        }
        return ret->dir[AFZ_CG_MEMORY][0] ? 0 : -ENODATA;
}

static bool is_alive(const struct afz_env *env, uint64_t pid)
{
        char file[40];
        snprintf(file, sizeof file, "%llu", (unsigned long long)pid);
        int fd = afz_env_open(env, AFZ_ROOT_PROC, file, O_DIRECTORY | O_PATH);
        if (fd >= 0)
                close(fd);
        return fd >= 0;
}

int afz_cgroup_path_of(const struct afz_env *env, uint64_t pid, struct afz_cgroup_path *ret)
{
        struct afz_cgroup_path path = {0};
        char file[40], buf[8192];
        struct afz_span text;
        snprintf(file, sizeof file, "%llu/cgroup", (unsigned long long)(pid ? pid : env->self_pid));
        int r = afz_env_read(env, AFZ_ROOT_PROC, file, buf, sizeof buf, &text);
        if (r == -ENOENT) /* of a process that lives: a kernel without cgroups */
                return pid != 0 && !is_alive(env, pid) ? -ESRCH : -ENODATA;
        if (r < 0)
                return r;
        r = find_v2(env, text, &path);
        if (r == -ENODATA)
                r = find_v1(env, text, &path);
        if (r == 0)
                *ret = path;
        return r;
}

/* "./a/b" -> "./a" -> "."; "memory/a" -> "memory". The controller's own folder is the top. */
static bool cut_last(char *dir)
{
        char *slash = strrchr(dir, '/');
        if (!slash)
                return false;
        *slash = '\0';
        return true;
}

bool afz_cgroup_path_up(struct afz_cgroup_path *path)
{
        char *name_slash = strrchr(path->name, '/');
        if (!cut_last(path->dir[AFZ_CG_MEMORY]))
                return false;
        for (int i = 0; i < AFZ_CONTROLLERS; i++)
                if (i != AFZ_CG_MEMORY && !cut_last(path->dir[i]))
                        path->dir[i][0] = '\0'; /* this tree is less deep: nothing above it */
        if (name_slash)
                name_slash[name_slash == path->name ? 1 : 0] = '\0';
        return true;
}
