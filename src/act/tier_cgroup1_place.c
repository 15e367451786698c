#include "tier_cgroup1_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cgroup_file.h"
#include "cgroup_walk.h"
#include "tier_cgroup1.h"

static const char *const tree_name[AFZ_CONTROLLERS] = {
        [AFZ_CG_MEMORY] = "memory", [AFZ_CG_CPU] = "cpu",   [AFZ_CG_CPUACCT] = "cpuacct",
        [AFZ_CG_IO] = "blkio",      [AFZ_CG_PIDS] = "pids", [AFZ_CG_FREEZER] = "freezer",
};

/* "memory/a/b" -> "/a/b", "memory" -> "": the path inside the tree. */
static const char *inside(const char *dir)
{
        const char *slash = strchr(dir, '/');
        return slash ? slash : "";
}

static bool is_told(const struct afz_hold_cgroup1 *h, int of)
{
        for (int i = 0; i < of; i++)
                if (h->top.made >> i & 1 &&
                    strcmp(inside(h->path.dir[i]), inside(h->path.dir[of])) == 0)
                        return true;
        return false;
}

/* One entry: all trees in which the path is that of tree `of`. Returns 0 when it does not fit. */
static size_t put_entry(const struct afz_hold_cgroup1 *h, int of, char *buf, size_t cap)
{
        size_t n = 0;
        const char *path = inside(h->path.dir[of]);
        for (int i = of; i < AFZ_CONTROLLERS; i++) {
                if (!(h->top.made >> i & 1) || strcmp(inside(h->path.dir[i]), path) != 0)
                        continue;
                int r = afz_path(buf + n, cap - n, "%s%s", i > of ? "," : "", tree_name[i]);
                if (r < 0)
                        return 0;
                n += (size_t)r;
        }
        int r = afz_path(buf + n, cap - n, ":%s/%s;", path, h->name);
        return r < 0 ? 0 : n + (size_t)r;
}

void afz_cgroup1_place(const struct afz_hold_cgroup1 *h, char buf[AFZ_HOLD_PLACE_CAP])
{
        size_t n = 0;
        for (int i = 0; i < AFZ_CONTROLLERS; i++)
                if (h->top.made >> i & 1 && !is_told(h, i))
                        n += put_entry(h, i, buf + n, AFZ_HOLD_PLACE_CAP - n);
        buf[n] = '\0';
}

/* Of a line that anybody may have written: one of our trees, a plain path, our own kind of name. */
static bool is_ours(struct afz_span path)
{
        struct afz_span name = afz_span_base_name(path);
        return afz_span_starts(path, "/") && afz_span_starts(name, "antifreeze-") &&
               !afz_span_has(path, "/../") && !afz_span_has(path, "//");
}

static bool is_tree(struct afz_span name)
{
        for (int i = 0; i < AFZ_CONTROLLERS; i++)
                if (afz_span_eq(name, tree_name[i]))
                        return true;
        return false;
}

/* The folder of one tree; -ENOENT when it is gone already. */
struct spot {
        struct afz_span tree;
        char name[AFZ_HOLD_PLACE_CAP];
        int parent_fd, fd;
};

static int open_spot(const struct afz_env *env, struct afz_span path, struct spot *spot)
{
        char dir[2 * AFZ_HOLD_PLACE_CAP];
        struct afz_span base = afz_span_base_name(path);
        afz_span_copy(base, spot->name, sizeof spot->name);
        int r = afz_path(dir, sizeof dir, "%.*s%.*s", (int)spot->tree.n, spot->tree.p,
                         (int)(path.n - base.n - 1), path.p);
        spot->parent_fd = r < 0 ? r : afz_env_open(env, AFZ_ROOT_CGROUP, dir, O_DIRECTORY);
        if (spot->parent_fd < 0)
                return spot->parent_fd;
        spot->fd = afz_cgroup_open(spot->parent_fd, spot->name, O_RDONLY | O_DIRECTORY);
        if (spot->fd < 0)
                close(spot->parent_fd);
        return spot->fd < 0 ? spot->fd : 0;
}

/* Calls `each` for every folder that the place names and that is still there. */
static int each_of_entry(const struct afz_env *env, struct afz_span entry,
                         int (*each)(const struct spot *spot))
{
        struct afz_span trees;
        int r = 0;
        if (afz_span_take_until(&entry, ':', &trees) < 0 || !is_ours(entry))
                return -EINVAL;
        while (r == 0 && trees.n > 0) {
                struct spot spot = {.tree = trees};
                if (afz_span_take_until(&trees, ',', &spot.tree) < 0)
                        trees.n = 0;
                r = is_tree(spot.tree) ? open_spot(env, entry, &spot) : -EINVAL;
                if (r == 0) {
                        r = each(&spot);
                        close(spot.fd);
                        close(spot.parent_fd);
                } else if (r == -ENOENT || r == -ENODATA) {
                        r = 0;
                }
        }
        return r;
}

static int each_spot(const struct afz_env *env, const char *place,
                     int (*each)(const struct spot *spot))
{
        struct afz_span rest = afz_span_str(place), entry;
        int r = 0;
        while (r == 0 && rest.n > 0) {
                r = afz_span_take_until(&rest, ';', &entry);
                if (r == 0)
                        r = each_of_entry(env, entry, each);
        }
        return r;
}

static int found_one(void *ctx, pid_t pid)
{
        (void)ctx;
        (void)pid;
        return 1;
}

static int collect_spot(const struct spot *spot)
{
        if (afz_cgroup_each_pid(spot->fd, found_one, NULL) == 1)
                return -EBUSY;
        return afz_cgroup_remove_tree(spot->parent_fd, spot->name);
}

static int thaw_spot(const struct spot *spot)
{
        if (!afz_span_eq(spot->tree, "freezer"))
                return 0;
        int r = afz_cgroup_write(spot->fd, "freezer.state", "THAWED");
        return r < 0 ? r : 1;
}

int afz_cgroup1_thaw(const struct afz_env *env, const char *place)
{
        int r = each_spot(env, place, thaw_spot);
        return r < 0 ? r : r == 1 ? 0 : -ENODATA;
}

int afz_cgroup1_collect(const struct afz_env *env, const char *place)
{
        int r = each_spot(env, place, collect_spot);
        if (r == -EBUSY) /* nobody is left who would lift a brake */
                (void)afz_cgroup1_thaw(env, place);
        return r;
}
