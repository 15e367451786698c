/* Tier cgroup2: a cgroup of our own, made as near to us as the kernel lets us. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cgroup2_hold.h"
#include "cgroup_file.h"
#include "tier_scope.h"

static int no_tree(const struct afz_env *env, int version, char *why)
{
        int fd = afz_env_open(env, AFZ_ROOT_CGROUP, "unified", O_DIRECTORY);
        if (fd >= 0)
                close(fd);
        if (version == 1)
                snprintf(why, AFZ_HOLD_WHY_CAP, "%s",
                         fd >= 0 ? "cgroup v2 has no memory controller here (hybrid)"
                                 : "the memory controller is on cgroup v1 here");
        else
                snprintf(why, AFZ_HOLD_WHY_CAP, "no cgroup v2 is mounted");
        return -ENODATA;
}

/* What a folder refused, for people. */
static void explain(int err, const char *dir, char *why)
{
        const char *shown = strncmp(dir, "./", 2) == 0 ? dir + 1 : "";
        switch (err) {
        case -EACCES:
        case -EPERM:
        case -EROFS:
                snprintf(why, AFZ_HOLD_WHY_CAP, "no write access to /sys/fs/cgroup%.80s", shown);
                break;
        case -EBUSY:
                snprintf(why, AFZ_HOLD_WHY_CAP,
                         "/sys/fs/cgroup%.80s has processes and passes no limits on", shown);
                break;
        case -ENODATA:
                snprintf(why, AFZ_HOLD_WHY_CAP, "no memory controller in /sys/fs/cgroup%.80s",
                         shown);
                break;
        default:
                snprintf(why, AFZ_HOLD_WHY_CAP, "/sys/fs/cgroup%.80s: %s", shown, strerror(-err));
        }
}

/* The path of the child `name`. */
static int below(const struct afz_cgroup_path *path, const char *name, struct afz_cgroup_path *ret)
{
        *ret = *path;
        int r = afz_path(ret->dir[AFZ_CG_MEMORY], AFZ_CGROUP_PATH_MAX, "%s/%s",
                         path->dir[AFZ_CG_MEMORY], name);
        if (r < 0)
                return r;
        r = afz_path(ret->name, AFZ_CGROUP_PATH_MAX, "%s/%s",
                     strcmp(path->name, "/") == 0 ? "" : path->name, name);
        return r < 0 ? r : 0;
}

/* Makes the base in a folder that may be somebody else's. There only what the job needs is turned
 * on; it stays on, since others may have come to rely on it. */
static int make_base(int parent_fd, const char *name)
{
        int fd, r = afz_cgroup_make(parent_fd, name, &fd);
        if (r < 0)
                return r;
        close(fd);
        r = afz_cgroup2_enable(parent_fd, AFZ_CG2_MEMORY_PIDS);
        if (r < 0)
                (void)afz_cgroup_remove(parent_fd, name);
        return r;
}

struct request {
        const struct afz_env *env;
        const struct afz_hold_plan *plan;
        pid_t pid, keeper;
};

/* One try. Leaves nothing behind on failure. */
static int try_in(const struct request *q, const struct afz_cgroup_path *path,
                  struct afz_cgroup2_hold **ret, char *why)
{
        struct afz_cgroup_path made;
        char name[64];
        int r = afz_path(name, sizeof name, "antifreeze-%s", q->plan->id);
        if (r >= 0)
                r = below(path, name, &made);
        if (r < 0)
                return r;
        int parent_fd =
                afz_env_open(q->env, AFZ_ROOT_CGROUP, path->dir[AFZ_CG_MEMORY], O_DIRECTORY);
        if (parent_fd < 0)
                return parent_fd;
        if (q->plan->place)
                (void)afz_path(q->plan->place, AFZ_HOLD_PLACE_CAP, "%s",
                               made.dir[AFZ_CG_MEMORY] + 1);
        r = make_base(parent_fd, name);
        if (r < 0) {
                explain(r, path->dir[AFZ_CG_MEMORY], why);
        } else {
                struct afz_cgroup2_base base = {.path = &made, .made = true};
                base.origin_fd = afz_cgroup2_origin(q->env, q->pid);
                r = afz_cgroup2_hold_new(q->env, q->plan, &base, q->pid, q->keeper, ret, why);
        }
        close(parent_fd);
        return r;
}

static int cgroup2_open(const struct afz_env *env, const struct afz_hold_plan *plan, pid_t pid,
                        pid_t keeper, void **ret, char *why)
{
        const struct request q = {env, plan, pid, keeper};
        struct afz_cgroup_path path;
        struct afz_cgroup2_hold *hold;
        char reason[AFZ_HOLD_WHY_CAP] = "";
        int r = afz_cgroup_path_of(env, 0, &path), err = 0;
        if (r < 0 || path.version != 2)
                return no_tree(env, r < 0 ? 0 : path.version, why);
        if (plan->adopted && afz_scope_takes_out(env, pid, why)) /* ours is near us, not it */
                return -EPERM;
        do {
                r = try_in(&q, &path, &hold, reason);
                if (r >= 0) {
                        *ret = hold;
                        return 0;
                }
                /* The nearest folder's word counts; that our own has processes goes without
                 * saying. */
                if (err == 0 || err == -EBUSY) {
                        err = r;
                        memcpy(why, reason, sizeof reason);
                }
        } while (r != -ESRCH && r != -EEXIST && afz_cgroup_path_up(&path));
        return r == -ESRCH ? r : err;
}

const struct afz_hold_tier afz_hold_cgroup2 = {
        .tier = AFZ_TIER_CGROUP2,
        .open = cgroup2_open,
        AFZ_CGROUP2_ROW,
};
