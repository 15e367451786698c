/* Groups and their members: opening, enabling, moving. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "cgroup2_hold.h"
#include "cgroup_file.h"
#include "dir.h"

struct file {
        const char *name;
        int flags;
        bool leaf;   /* a leaf has it open too */
        bool needed; /* nothing goes without */
};

static const struct file files[AFZ_CG2_FILES] = {
        [AFZ_CG2_STAT] = {"memory.stat", O_RDONLY, true, true},
        [AFZ_CG2_SWAP] = {"memory.swap.current", O_RDONLY, true, false},
        [AFZ_CG2_EVENTS] = {"memory.events", O_RDONLY, false, true},
        [AFZ_CG2_PRESSURE] = {"memory.pressure", O_RDONLY, false, false},
        [AFZ_CG2_PIDS] = {"pids.current", O_RDONLY, false, false},
        [AFZ_CG2_POPULATED] = {"cgroup.events", O_RDONLY, true, true},
        [AFZ_CG2_CURRENT] = {"memory.current", O_RDONLY, false, true},
        [AFZ_CG2_FREEZE] = {"cgroup.freeze", O_RDWR, true, true},
        [AFZ_CG2_KILL] = {"cgroup.kill", O_WRONLY, true, false},
        /* From 6.16 on it then leaves the pushing out to the next who wants memory. */
        [AFZ_CG2_MAX] = {"memory.max", O_RDWR | O_NONBLOCK, false, true},
        [AFZ_CG2_SWAP_MAX] = {"memory.swap.max", O_RDWR, false, false},
};

int afz_cgroup2_group_open(int dir_fd, bool leaf, struct afz_cgroup2_group *ret)
{
        struct afz_cgroup2_group group = {.dir_fd = dir_fd};
        int r = 0;
        for (int i = 0; i < AFZ_CG2_FILES; i++) {
                group.fd[i] = -1;
                if (r < 0 || (leaf && !files[i].leaf))
                        continue;
                int fd = afz_cgroup_open(dir_fd, files[i].name, files[i].flags);
                group.fd[i] = fd < 0 ? -1 : fd;
                if (fd < 0 && files[i].needed)
                        r = fd;
        }
        if (r < 0) {
                group.dir_fd = -1; /* stays the caller's */
                afz_cgroup2_group_close(&group);
                return r;
        }
        *ret = group;
        return 0;
}

void afz_cgroup2_group_close(struct afz_cgroup2_group *group)
{
        for (int i = 0; i < AFZ_CG2_FILES; i++) {
                if (group->fd[i] >= 0)
                        close(group->fd[i]);
                group->fd[i] = -1;
        }
        if (group->dir_fd >= 0)
                close(group->dir_fd);
        group->dir_fd = -1;
}

static bool has_word(struct afz_span text, const char *word)
{
        struct afz_span w;
        while (afz_span_take_word(&text, &w) == 0)
                if (afz_span_eq(w, word))
                        return true;
        return false;
}

static bool list_has(int dir_fd, const char *file, const char *word)
{
        char buf[256];
        struct afz_span text;
        return afz_cgroup_text(dir_fd, file, buf, sizeof buf, &text) == 0 && has_word(text, word);
}

static int enable_one(int dir_fd, const char *controller)
{
        char text[16];
        if (list_has(dir_fd, "cgroup.subtree_control", controller))
                return 0;
        if (!list_has(dir_fd, "cgroup.controllers", controller))
                return -ENODATA;
        snprintf(text, sizeof text, "+%s", controller);
        return afz_cgroup_write(dir_fd, "cgroup.subtree_control", text);
}

int afz_cgroup2_enable(int dir_fd, enum afz_cgroup2_reach reach)
{
        static const char *const name[AFZ_CG2_ALL] = {"memory", "pids", "cpu", "io"};
        int r = enable_one(dir_fd, name[0]);
        for (int i = 1; r == 0 && i < (int)reach; i++)
                (void)enable_one(dir_fd, name[i]);
        return r;
}

/* A walk over a tree of processes. */
struct descent {
        const struct afz_env *env;
        int (*each)(void *ctx, pid_t pid);
        void *ctx;
};

/* A tree deeper than this is a fork storm; what is below is found in the next pass, when those
 * between have died and it hangs higher, or stays outside. */
#define DEPTH_MAX 32

static int below(const struct descent *d, pid_t pid, int depth);

/* The numbers of one thread's children. */
static int each_listed(const struct descent *d, const char *path, int depth)
{
        char buf[16384];
        struct afz_span text;
        uint64_t child;
        if (afz_env_read(d->env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text) < 0)
                return 0; /* the thread is gone, or the kernel does not tell */
        while (afz_span_take_u64(&text, &child) == 0) {
                if (child == 0 || child > INT_MAX)
                        continue;
                int r = d->each(d->ctx, (pid_t)child);
                if (r == 0)
                        r = below(d, (pid_t)child, depth + 1);
                if (r < 0 && r != -ESRCH)
                        return r;
        }
        return 0;
}

static int below(const struct descent *d, pid_t pid, int depth)
{
        struct afz_dir dir;
        char path[64];
        if (depth > DEPTH_MAX)
                return 0;
        snprintf(path, sizeof path, "%d/task", (int)pid);
        int r = afz_dir_open(&dir, d->env, AFZ_ROOT_PROC, path);
        if (r < 0)
                return 0;
        while (r >= 0 && afz_dir_next(&dir) > 0) {
                uint64_t tid;
                if (afz_dir_name_u64(&dir, &tid) < 0)
                        continue;
                snprintf(path, sizeof path, "%d/task/%llu/children", (int)pid,
                         (unsigned long long)tid);
                r = each_listed(d, path, depth);
        }
        afz_dir_close(&dir);
        return r;
}

int afz_cgroup2_each_below(const struct afz_env *env, pid_t pid, int (*each)(void *ctx, pid_t pid),
                           void *ctx)
{
        const struct descent d = {env, each, ctx};
        return below(&d, pid, 0);
}

/* One that was forked while the manager took the others over is not ours to fetch: it stays outside
 * of the limits, and in the job's need. */
static int move_child(void *ctx, pid_t pid)
{
        int r = afz_cgroup_move(*(const int *)ctx, pid);
        return r == -EACCES || r == -EPERM ? 0 : r;
}

int afz_cgroup2_move_tree(const struct afz_env *env, int dir_fd, pid_t pid)
{
        int r = afz_cgroup_move(dir_fd, pid);
        /* The kernel's list of children may miss one while another dies: so once more. */
        for (int pass = 0; r == 0 && pass < 2; pass++)
                r = afz_cgroup2_each_below(env, pid, move_child, &dir_fd);
        return r;
}
