#include "cgroup_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "count_of.h"

static const struct {
        int id;
        const char *name;
} controllers[] = {
        {AFZ_CG_MEMORY, "memory"},
        {AFZ_CG_PIDS, "pids"},
        {AFZ_CG_CPU, "cpu"},
        {AFZ_CG_IO, "io"},
};
#define CONTROLLERS (AFZ_COUNT_OF(controllers))

int afz_cgroup_controllers(const struct afz_env *env, const char *folder)
{
        char path[AFZ_CGROUP_PATH_MAX + 32], buf[1024];
        struct afz_span text, word;
        int bits = 0, r = afz_path(path, sizeof path, "%s/cgroup.controllers", folder);
        if (r >= 0)
                r = afz_env_read(env, AFZ_ROOT_CGROUP, path, buf, sizeof buf, &text);
        if (r < 0)
                return r;
        while (afz_span_take_word(&text, &word) == 0)
                for (size_t i = 0; i < CONTROLLERS; i++)
                        if (afz_span_eq(word, controllers[i].name))
                                bits |= 1 << controllers[i].id;
        return bits;
}

const char *afz_cgroup_controllers_text(int bits, char *buf, size_t cap)
{
        size_t n = 0;
        for (size_t i = 0; i < CONTROLLERS && n < cap; i++)
                if (bits >= 0 && bits & 1 << controllers[i].id)
                        n += (size_t)snprintf(buf + n, cap - n, "%s%s", n ? ", " : "",
                                              controllers[i].name);
        return n ? buf : "none";
}

static bool has_folder(const struct afz_env *env, const char *path)
{
        int fd = afz_env_open(env, AFZ_ROOT_CGROUP, path, O_DIRECTORY | O_PATH);
        if (fd >= 0)
                close(fd);
        return fd >= 0;
}

/* There are v1 trees of other controllers, or no cgroup file system at all. */
static enum afz_cgroup_kind without_memory(const struct afz_env *env)
{
        bool v1 = has_folder(env, "cpu") || has_folder(env, "freezer") || has_folder(env, "pids");
        if (has_folder(env, "unified"))
                return AFZ_CGROUP_HYBRID;
        return v1 ? AFZ_CGROUP_V1 : AFZ_CGROUP_NONE;
}

void afz_cgroup_layout_read(const struct afz_env *env, struct afz_cgroup_layout *ret)
{
        struct afz_cgroup_layout layout = {.kind = AFZ_CGROUP_UNKNOWN};
        if (env->root_fd[AFZ_ROOT_CGROUP] < 0) {
                layout.err = -ENODATA;
                *ret = layout;
                return;
        }
        int r = afz_cgroup_path_of(env, 0, &layout.own);
        if (r == -ENODATA) {
                layout.kind = without_memory(env);
        } else if (r < 0) {
                layout.err = r;
        } else if (layout.own.version == 1) {
                layout.kind = has_folder(env, "unified") ? AFZ_CGROUP_HYBRID : AFZ_CGROUP_V1;
        } else {
                int bits = afz_cgroup_controllers(env, ".");
                layout.err = bits < 0 ? bits : 0;
                layout.kind = bits < 0                    ? AFZ_CGROUP_UNKNOWN
                              : bits & 1 << AFZ_CG_MEMORY ? AFZ_CGROUP_V2
                                                          : AFZ_CGROUP_V2_NO_MEMORY;
        }
        *ret = layout;
}

int afz_cgroup_memory_limit(const struct afz_env *env, const struct afz_cgroup_layout *layout,
                            uint64_t *ret_bytes)
{
        struct afz_cgroup_path at = layout->own;
        uint64_t lowest = UINT64_MAX;
        if (layout->kind == AFZ_CGROUP_UNKNOWN || layout->kind == AFZ_CGROUP_V2_NO_MEMORY ||
            !at.dir[AFZ_CG_MEMORY][0])
                return -ENODATA;
        bool more;
        do {
                char path[AFZ_CGROUP_PATH_MAX + 32];
                uint64_t v;
                int r = afz_path(path, sizeof path, "%s/%s", at.dir[AFZ_CG_MEMORY],
                                 at.version == 2 ? "memory.max" : "memory.limit_in_bytes");
                if (r >= 0)
                        r = afz_env_read_u64(env, AFZ_ROOT_CGROUP, path, &v);
                /* A v2 cgroup whose parent keeps the controller to itself has no such file, nor
                 * has the root of all. */
                if (r < 0 && r != -ENOENT)
                        return r;
                if (r >= 0 && v < lowest && (at.version == 2 || v < AFZ_CGROUP_V1_NO_LIMIT))
                        lowest = v;
                more = afz_cgroup_path_up(&at);
        } while (more);
        *ret_bytes = lowest;
        return 0;
}
