#include "cgroup2_hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "cgroup_file.h"
#include "cgroup_walk.h"
#include "fds.h"

static int say(char *why, int err, const char *what)
{
        if (err == -EACCES || err == -EPERM || err == -EROFS)
                snprintf(why, AFZ_HOLD_WHY_CAP, "%s: no write access", what);
        else
                snprintf(why, AFZ_HOLD_WHY_CAP, "%s: %s", what, strerror(-err));
        return err;
}

/* Limits that the kernel has and that are worth it, but that nothing depends on. */
static void set_extras(struct afz_cgroup2_hold *h, const struct afz_hold_plan *plan)
{
        char text[32];
        if (plan->processes > 0)
                (void)afz_cgroup_prove(h->job.dir_fd, "pids.max", plan->processes, "max");
        if (plan->weight == 0 || plan->weight == 100)
                return;
        /* Weights are shares among brothers: the job's only brother is the keeper, so they belong
         * on the base. */
        (void)afz_cgroup_prove(h->base_fd, "cpu.weight", plan->weight, "");
        snprintf(text, sizeof text, "default %u", plan->weight);
        (void)afz_cgroup_write(h->base_fd, "io.weight", text);
}

static int set_limits(struct afz_cgroup2_hold *h, const struct afz_hold_plan *plan, char *why)
{
        int r = afz_cgroup_prove(h->job.dir_fd, "memory.max", plan->budget.ram_bytes, "max");
        if (r < 0)
                return say(why, r, "memory.max");
        r = afz_cgroup_prove(h->job.dir_fd, "memory.swap.max", plan->budget.swap_bytes, "max");
        if (r < 0 && r != -ENOENT) /* a kernel that does not count swap */
                return say(why, r, "memory.swap.max");
        r = afz_cgroup2_enable(h->job.dir_fd, AFZ_CG2_MEMORY);
        if (r < 0)
                return say(why, r, "no memory controller for the job's parts");
        r = afz_cgroup_prove(plan->whole ? h->job.dir_fd : h->main.dir_fd, "memory.oom.group", 1,
                             "");
        if (r < 0)
                return say(why, r, "memory.oom.group");
        set_extras(h, plan);
        return 0;
}

static int is_this(void *ctx, pid_t pid)
{
        return pid == *(const pid_t *)ctx;
}

static int move_in(struct afz_cgroup2_hold *h, const struct afz_hold_plan *plan, pid_t pid,
                   pid_t keeper, int keeper_fd, char *why)
{
        int r = plan->adopted ? afz_cgroup2_move_tree(h->env, h->main.dir_fd, pid)
                              : afz_cgroup_move(h->main.dir_fd, pid);
        if (r == 0 && keeper > 0)
                r = afz_cgroup_move(keeper_fd, keeper);
        if (r < 0)
                return say(why, r, "the job cannot be moved in");
        r = afz_cgroup_each_pid(h->main.dir_fd, is_this, &pid);
        return r > 0 ? 0 : say(why, r < 0 ? r : -EIO, "the job was moved and is not there");
}

/* The folders, the limits and the processes, in the order that the kernel takes them. */
static int build(struct afz_cgroup2_hold *h, const struct afz_hold_plan *plan, pid_t pid,
                 pid_t keeper, char *why)
{
        int keeper_fd = -1;
        int r = afz_cgroup_make(h->base_fd, "job", &h->job.dir_fd);
        if (r >= 0)
                r = afz_cgroup_make(h->job.dir_fd, "main", &h->main.dir_fd);
        if (r >= 0)
                r = afz_cgroup_make(h->base_fd, "keeper", &keeper_fd);
        if (r < 0)
                say(why, r, "no cgroup can be made");
        /* A cgroup with processes of its own passes no controllers on. */
        if (r >= 0 && !h->own)
                r = move_in(h, plan, pid, keeper, keeper_fd, why);
        if (r >= 0) {
                r = afz_cgroup2_enable(h->base_fd, AFZ_CG2_ALL);
                if (r < 0)
                        say(why, r, "no memory controller to be had");
        }
        if (r >= 0)
                r = set_limits(h, plan, why);
        if (r >= 0 && h->own)
                r = move_in(h, plan, pid, keeper, keeper_fd, why);
        afz_fd_close(&keeper_fd);
        return r;
}

/* The kernel's files are always POLLIN, with news they are POLLPRI too. Whoever waits for us waits
 * for POLLIN on all tiers, which an epoll of that one event gives. */
static int watch_events(struct afz_cgroup2_hold *h)
{
        struct epoll_event event = {.events = EPOLLPRI};
        char buf[512];
        ssize_t n = afz_fd_read_head(h->job.fd[AFZ_CG2_EVENTS], buf, sizeof buf); /* old news */
        if (n < 0)
                return (int)n;
        h->oom_fd = epoll_create1(EPOLL_CLOEXEC);
        if (h->oom_fd < 0)
                return -errno;
        int r = epoll_ctl(h->oom_fd, EPOLL_CTL_ADD, h->job.fd[AFZ_CG2_EVENTS], &event);
        return r < 0 && errno != EPERM ? -errno : 0; /* EPERM: a file of a fixture */
}

static int open_files(struct afz_cgroup2_hold *h, const struct afz_hold_plan *plan, pid_t pid,
                      char *why)
{
        int r = afz_cgroup2_group_open(h->job.dir_fd, false, &h->job);
        if (r >= 0)
                r = afz_cgroup2_group_open(h->main.dir_fd, true, &h->main);
        if (r < 0)
                return say(why, r, "the cgroup lacks a file");
        r = watch_events(h);
        if (r < 0)
                return say(why, r, "no notice of OOM kills");
        r = afz_reclaimer_start(h->job.dir_fd, &h->reclaimer);
        if (r < 0)
                return say(why, r, "no helper for pushing pages out");
        return plan->adopted ? afz_hold_none.open(h->env, plan, pid, 0, &h->tree, why) : 0;
}

/* The folder that holds the base, and the base in it. On v2 all paths begin with "./". */
static int open_base(struct afz_cgroup2_hold *h, const struct afz_cgroup2_base *base)
{
        const char *dir = base->path->dir[AFZ_CG_MEMORY], *slash = strrchr(dir, '/');
        char parent[AFZ_CGROUP_PATH_MAX];
        if (!slash || dir[0] != '.')
                return -EINVAL;
        if (afz_path(parent, sizeof parent, "%.*s", (int)(slash - dir), dir) < 0 ||
            afz_path(h->name, sizeof h->name, "%s", slash + 1) < 0 ||
            afz_path(h->place, sizeof h->place, "%s", dir + 1) < 0 ||
            afz_path(h->inside, sizeof h->inside, "%s/job", base->path->name) < 0)
                return -ENAMETOOLONG;
        h->parent_fd = afz_env_open(h->env, AFZ_ROOT_CGROUP, parent, O_DIRECTORY);
        if (h->parent_fd < 0)
                return h->parent_fd;
        h->base_fd = afz_cgroup_open(h->parent_fd, h->name, O_RDONLY | O_DIRECTORY);
        return h->base_fd < 0 ? h->base_fd : 0;
}

static struct afz_cgroup2_hold *blank(const struct afz_env *env, const struct afz_hold_plan *plan)
{
        struct afz_cgroup2_hold *h = calloc(1, sizeof *h);
        if (!h)
                return NULL;
        h->env = env;
        h->adopted = plan->adopted;
        h->whole = plan->whole;
        h->parent_fd = h->base_fd = h->origin_fd = h->oom_fd = -1;
        struct afz_cgroup2_group none = {.dir_fd = -1};
        for (int i = 0; i < AFZ_CG2_FILES; i++)
                none.fd[i] = -1;
        h->job = h->main = none;
        for (int i = 0; i < AFZ_HOLD_PARTS; i++)
                h->part[i] = none;
        h->reclaimer.fd = -1;
        return h;
}

int afz_cgroup2_hold_new(const struct afz_env *env, const struct afz_hold_plan *plan,
                         const struct afz_cgroup2_base *base, pid_t pid, pid_t keeper,
                         struct afz_cgroup2_hold **ret, char *why)
{
        struct afz_cgroup2_hold *h = blank(env, plan);
        if (!h)
                return -ENOMEM;
        h->own = base->made;
        h->origin_fd = base->origin_fd;
        int r = open_base(h, base);
        if (r < 0)
                say(why, r, "the cgroup that was made is not there");
        if (r >= 0)
                r = build(h, plan, pid, keeper, why);
        if (r >= 0)
                r = open_files(h, plan, pid, why);
        if (r < 0) {
                afz_cgroup2_close(h);
                return r;
        }
        h->ready = true;
        *ret = h;
        return 0;
}

int afz_cgroup2_origin(const struct afz_env *env, pid_t pid)
{
        struct afz_cgroup_path path;
        if (afz_cgroup_path_of(env, (uint64_t)pid, &path) < 0 || path.version != 2)
                return -1;
        int fd = afz_env_open(env, AFZ_ROOT_CGROUP, path.dir[AFZ_CG_MEMORY], O_DIRECTORY);
        return fd < 0 ? -1 : fd;
}

struct move_back {
        int dir_fd, err;
};

static int move_one_back(void *ctx, pid_t pid)
{
        struct move_back *m = ctx;
        int r = afz_cgroup_move(m->dir_fd, pid);
        if (r < 0 && r != -ESRCH)
                m->err = r;
        return 0;
}

/* Who may not go back (out of a user's own slice into a session only root can put him) stays where
 * he is, without our limits. */
static void put_back(struct afz_cgroup2_hold *h)
{
        struct move_back m = {.dir_fd = h->origin_fd};
        if (m.dir_fd >= 0)
                (void)afz_cgroup_each_pid(h->job.dir_fd, move_one_back, &m);
        if (m.dir_fd >= 0 && m.err == 0)
                return;
        static const char *const file[] = {"memory.high", "memory.max", "memory.swap.max",
                                           "pids.max"};
        for (int i = 0; i < 4; i++)
                (void)afz_cgroup_write(h->job.dir_fd, file[i], "max");
}

/* A keeper that was moved into a hold that then failed: back to us. */
static void put_keeper_back(struct afz_cgroup2_hold *h)
{
        int keeper_fd = afz_cgroup_open(h->base_fd, "keeper", O_RDONLY | O_DIRECTORY);
        struct move_back m = {.dir_fd = afz_cgroup2_origin(h->env, 0)};
        if (keeper_fd >= 0 && m.dir_fd >= 0)
                (void)afz_cgroup_each_pid(keeper_fd, move_one_back, &m);
        afz_fd_close(&keeper_fd);
        afz_fd_close(&m.dir_fd);
}

/* Whatever of ours is still beside the job (the scout's GPU helper, say, in the driver's hands)
 * must not keep the cgroup. */
static void end_helpers(const struct afz_cgroup2_hold *h)
{
        int fd = h->base_fd >= 0 ? afz_cgroup_open(h->base_fd, "keeper", O_RDONLY | O_DIRECTORY)
                                 : -1;
        if (fd < 0)
                return;
        (void)afz_cgroup_write(fd, "cgroup.kill", "1");
        close(fd);
}

void afz_cgroup2_close(void *hold)
{
        struct afz_cgroup2_hold *h = hold;
        if (!h)
                return;
        afz_reclaimer_stop(&h->reclaimer);
        if (h->tree)
                afz_hold_none.close(h->tree);
        if (h->job.dir_fd >= 0) {
                (void)afz_cgroup_write(h->job.dir_fd, "cgroup.freeze", "0");
                if (h->adopted || !h->ready)
                        put_back(h);
                if (!h->ready)
                        put_keeper_back(h);
        }
        end_helpers(h);
        if (h->own)
                (void)afz_cgroup_remove_tree(h->parent_fd, h->name);
        else if (h->base_fd >= 0) {
                (void)afz_cgroup_remove_tree(h->base_fd, "job");
                (void)afz_cgroup_remove_tree(h->base_fd, "keeper");
        }
        afz_cgroup2_group_close(&h->job);
        afz_cgroup2_group_close(&h->main);
        for (int i = 0; i < AFZ_HOLD_PARTS; i++)
                afz_cgroup2_group_close(&h->part[i]);
        afz_fd_close(&h->parent_fd);
        afz_fd_close(&h->base_fd);
        afz_fd_close(&h->origin_fd);
        afz_fd_close(&h->oom_fd);
        free(h);
}
