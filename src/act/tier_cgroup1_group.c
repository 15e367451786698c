#include "tier_cgroup1_group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup_file.h"
#include "cgroup_walk.h"
#include "fds.h"
#include "pidfd.h"

int afz_cgroup1_parents(const struct afz_env *env, const struct afz_cgroup_path *path,
                        int ret[AFZ_CONTROLLERS])
{
        for (int i = 0; i < AFZ_CONTROLLERS; i++) {
                int fd = path->dir[i][0]
                                 ? afz_env_open(env, AFZ_ROOT_CGROUP, path->dir[i], O_DIRECTORY)
                                 : -ENODATA;
                ret[i] = fd >= 0 ? fd : -1;
                if (i == AFZ_CG_MEMORY && fd < 0)
                        return fd;
        }
        return 0;
}

static bool is_same_folder(int a, int b)
{
        struct stat x, y;
        return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
               x.st_ino == y.st_ino;
}

/* "cpu" and "cpuacct" are usually two names of one tree; other pairs are possible. */
static int find_twin(const int parent[AFZ_CONTROLLERS], const struct afz_cgroup1 *group, int of)
{
        for (int i = 0; i < of; i++)
                if (group->dir[i] >= 0 && is_same_folder(parent[i], parent[of]))
                        return i;
        return -1;
}

static int make_folders(const int parent[AFZ_CONTROLLERS], const char *name, uint32_t wanted,
                        struct afz_cgroup1 *group)
{
        for (int i = 0; i < AFZ_CONTROLLERS; i++) {
                if (!(wanted >> i & 1) || parent[i] < 0)
                        continue;
                int twin = find_twin(parent, group, i);
                int r = twin >= 0 ? (group->dir[i] = fcntl(group->dir[twin], F_DUPFD_CLOEXEC, 0))
                                  : afz_cgroup_make(parent[i], name, &group->dir[i]);
                if (r >= 0 && twin < 0)
                        group->made |= 1U << i;
                if (r < 0 && i == AFZ_CG_MEMORY)
                        return r;
        }
        return group->dir[AFZ_CG_MEMORY] >= 0 ? 0 : -ENODATA;
}

static int open_files(struct afz_cgroup1 *group)
{
        int memory = group->dir[AFZ_CG_MEMORY], freezer = group->dir[AFZ_CG_FREEZER];
        int stat = afz_cgroup_open(memory, "memory.stat", O_RDONLY);
        int oom = afz_cgroup_open(memory, "memory.oom_control", O_RDONLY);
        int state = freezer >= 0 ? afz_cgroup_open(freezer, "freezer.state", O_RDWR) : -ENODATA;
        group->stat_fd = stat >= 0 ? stat : -1;
        group->oom_fd = oom >= 0 ? oom : -1;
        group->freezer_fd = state >= 0 ? state : -1;
        return stat < 0 ? stat : 0;
}

int afz_cgroup1_make(const int parent[AFZ_CONTROLLERS], const char *name, uint32_t wanted,
                     struct afz_cgroup1 *ret)
{
        struct afz_cgroup1 group = {.stat_fd = -1, .oom_fd = -1, .freezer_fd = -1};
        for (int i = 0; i < AFZ_CONTROLLERS; i++)
                group.dir[i] = -1;
        int r = make_folders(parent, name, wanted, &group);
        if (r == 0)
                r = open_files(&group);
        if (r < 0) {
                (void)afz_cgroup1_remove(&group, parent, name);
                return r;
        }
        *ret = group;
        return 0;
}

void afz_cgroup1_drop(struct afz_cgroup1 *group, const int parent[AFZ_CONTROLLERS],
                      const char *name, enum afz_controller controller)
{
        afz_fd_close(&group->dir[controller]);
        if (controller == AFZ_CG_FREEZER)
                afz_fd_close(&group->freezer_fd);
        if (group->made >> controller & 1)
                (void)afz_cgroup_remove(parent[controller], name);
        group->made &= ~(1U << controller);
}

void afz_cgroup1_close(struct afz_cgroup1 *group)
{
        for (int i = 0; i < AFZ_CONTROLLERS; i++)
                afz_fd_close(&group->dir[i]);
        afz_fd_close(&group->stat_fd);
        afz_fd_close(&group->oom_fd);
        afz_fd_close(&group->freezer_fd);
}

int afz_cgroup1_move(const int dir[AFZ_CONTROLLERS], pid_t pid, uint32_t *ret_in)
{
        uint32_t in = 0;
        for (int i = 0; i < AFZ_CONTROLLERS; i++) {
                int r = dir[i] >= 0 ? afz_cgroup_move(dir[i], pid) : -ENODATA;
                if (r == -ESRCH || (r < 0 && i == AFZ_CG_MEMORY))
                        return r;
                if (r >= 0)
                        in |= 1U << i;
        }
        *ret_in = in;
        return 0;
}

bool afz_cgroup1_has_below(int dir_fd, unsigned known)
{
        struct stat st;
        return fstat(dir_fd, &st) == 0 && st.st_nlink > 2 + (nlink_t)known;
}

int afz_cgroup1_count(int dir_fd)
{
        char buf[4096];
        int count = 0, fd = afz_cgroup_open(dir_fd, "cgroup.procs", O_RDONLY);
        if (fd < 0)
                return fd;
        ssize_t n;
        while ((n = read(fd, buf, sizeof buf)) != 0) {
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        count = -errno;
                        break;
                }
                for (ssize_t i = 0; i < n; i++)
                        count += buf[i] == '\n';
        }
        close(fd);
        return count;
}

bool afz_cgroup1_is_in(const struct afz_env *env, const char *name, pid_t pid)
{
        char file[40], buf[4096], path[AFZ_CGROUP_PATH_MAX];
        struct afz_span text;
        size_t n = strlen(name);
        snprintf(file, sizeof file, "%d/cgroup", (int)pid);
        if (afz_env_read_record(env, AFZ_ROOT_PROC, file, buf, sizeof buf, &text) < 0 ||
            afz_cgroup_parse(text, "memory", path, sizeof path) < 0)
                return false;
        return strncmp(path, name, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

struct signalling {
        const struct afz_env *env;
        const char *name;
        int signal;
        uint64_t sum;
};

static int signal_one(void *ctx, pid_t pid)
{
        struct signalling *s = ctx;
        int fd = afz_pidfd_open(pid);
        if (fd < 0)
                return fd == -ESRCH || fd == -EINVAL ? 0 : fd;
        /* Asked after it was opened: whoever has this pid now is the one that the descriptor
         * holds, or the descriptor's is dead and the signal reaches nobody. */
        if (afz_cgroup1_is_in(s->env, s->name, pid) && afz_pidfd_signal(fd, s->signal) == 0)
                s->sum = (s->sum ^ (uint64_t)pid) * UINT64_C(1099511628211) + 1;
        close(fd);
        return 0;
}

uint64_t afz_cgroup1_signal(const struct afz_env *env, int dir_fd, const char *name, int signal)
{
        struct signalling s = {.env = env, .name = name, .signal = signal};
        (void)afz_cgroup_each_pid(dir_fd, signal_one, &s);
        return s.sum;
}

static int found_one(void *ctx, pid_t pid)
{
        (void)ctx;
        (void)pid;
        return 1;
}

int afz_cgroup1_remove(struct afz_cgroup1 *group, const int parent[AFZ_CONTROLLERS],
                       const char *name)
{
        bool busy = group->dir[AFZ_CG_MEMORY] >= 0 &&
                    afz_cgroup_each_pid(group->dir[AFZ_CG_MEMORY], found_one, NULL) == 1;
        int r = busy ? -EBUSY : 0;
        afz_cgroup1_close(group);
        for (int i = 0; !busy && i < AFZ_CONTROLLERS; i++) {
                int e = group->made >> i & 1 ? afz_cgroup_remove_tree(parent[i], name) : 0;
                r = r < 0 ? r : e;
        }
        return r;
}
