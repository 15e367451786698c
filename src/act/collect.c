/* Collecting what a run left whose guard has died. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cgroup_walk.h"
#include "hold_tier.h"
#include "thaw.h"
#include "tier_cgroup1_place.h"

/* The text may have been written by anybody: a plain path, and our own kind of name at its end. */
static bool is_ours(struct afz_span place)
{
        struct afz_span name = afz_span_base_name(place);
        return afz_span_starts(name, "antifreeze-") && name.n <= NAME_MAX &&
               !afz_span_has(place, "/../") && !afz_span_has(place, "//");
}

static int found_one(void *ctx, pid_t pid)
{
        (void)ctx;
        return pid > 0;
}

static int collect_v2(const struct afz_env *env, const char *place)
{
        const char *name = strrchr(place, '/') + 1;
        char parent[AFZ_HOLD_PLACE_CAP + 2];
        int r = afz_path(parent, sizeof parent, ".%.*s", (int)(name - 1 - place), place);
        if (r < 0)
                return r;
        int parent_fd = afz_env_open(env, AFZ_ROOT_CGROUP, parent, O_DIRECTORY);
        if (parent_fd < 0)
                return parent_fd == -ENOENT || parent_fd == -ENODATA ? 0 : parent_fd;
        int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        r = fd < 0 ? -errno : afz_cgroup_each_pid(fd, found_one, NULL);
        /* A scope's own folder is its manager's to remove: it would never see the scope end. */
        if (r == 0 && afz_span_ends(afz_span_str(name), ".scope")) {
                (void)afz_cgroup_remove_tree(fd, "job");
                (void)afz_cgroup_remove_tree(fd, "keeper");
        } else if (r == 0) {
                r = afz_cgroup_remove_tree(parent_fd, name);
        }
        if (fd >= 0)
                close(fd);
        close(parent_fd);
        if (r == 1) /* nobody is left who would lift a brake */
                (void)afz_hold_thaw(env, AFZ_TIER_CGROUP2, place);
        return r == 1 ? -EBUSY : r == -ENOENT ? 0 : r;
}

int afz_hold_collect(const struct afz_env *env, const char *place)
{
        if (place[0] == '\0') /* tier none leaves nothing */
                return 0;
        if (place[0] != '/')
                return afz_cgroup1_collect(env, place);
        return is_ours(afz_span_str(place)) ? collect_v2(env, place) : -EINVAL;
}
