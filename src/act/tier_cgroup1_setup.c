/* Making the cgroup, its limits, and moving the job in. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cgroup_file.h"
#include "cgroup_walk.h"
#include "fds.h"
#include "pidfd.h"
#include "tier_cgroup1.h"
#include "tree.h"

/* Members of an adopted job; more than the pids limit of a login session would be a fork storm. */
enum { TREE_MAX = 32768 };
/* A job that forks meanwhile is found at the second look; one that still grows at the last forks
 * faster than it can be moved, but what a moved process forks is inside. */
enum { TAKE_IN_ROUNDS = 8 };

/* cpu.shares is 1024 for everybody else and 2 to 262144. */
enum { SHARES_USUAL = 1024, SHARES_MIN = 2, SHARES_MAX = 262144 };

static int say(char *why, int err, const char *what)
{
        snprintf(why, AFZ_HOLD_WHY_CAP, "%s: %s", what, strerror(-err));
        return err;
}

void afz_cgroup1_part_name(unsigned part, char buf[16])
{
        snprintf(buf, 16, "part-%u", part);
}

static uint64_t add(uint64_t a, uint64_t b)
{
        return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* By the peak: failcnt would say it plainly, but recent kernels leave it at 0. What is refused is
 * not in the peak: a huge page, or what each core takes in stock. */
#define NEAR_BYTES (UINT64_C(4) << 20)

static bool came_near(int limit_fd, int peak_fd)
{
        uint64_t limit, peak;
        return afz_cgroup_reread(limit_fd, &limit) < 0 || afz_cgroup_reread(peak_fd, &peak) < 0 ||
               peak >= limit || limit - peak <= NEAR_BYTES;
}

bool afz_cgroup1_met_limit(const struct afz_hold_cgroup1 *hold)
{
        return hold->met_limit || came_near(hold->limit_fd, hold->peak_fd) ||
               (hold->swap_limit_fd >= 0 && came_near(hold->swap_limit_fd, hold->swap_peak_fd));
}

/* memsw may never be below the limit itself, not even between two writes. */
int afz_cgroup1_limit(struct afz_hold_cgroup1 *hold, const struct afz_budget *budget)
{
        uint64_t both = add(budget->ram_bytes, budget->swap_bytes), now = UINT64_MAX;
        hold->met_limit = afz_cgroup1_met_limit(hold);
        if (hold->swap_limit_fd < 0)
                return afz_cgroup_set(hold->limit_fd, budget->ram_bytes, "-1");
        int r = afz_cgroup_reread(hold->swap_limit_fd, &now);
        bool raised = both >= now;
        if (r == 0 && raised)
                r = afz_cgroup_set(hold->swap_limit_fd, both, "-1");
        if (r == 0)
                r = afz_cgroup_set(hold->limit_fd, budget->ram_bytes, "-1");
        if (r == 0 && !raised)
                r = afz_cgroup_set(hold->swap_limit_fd, both, "-1");
        return r;
}

static int set_memory(struct afz_hold_cgroup1 *hold, const struct afz_hold_plan *plan)
{
        int dir = hold->top.dir[AFZ_CG_MEMORY];
        /* Kernels from 5.11 on know nothing else and may refuse the word. */
        uint64_t whole = 0;
        (void)afz_cgroup_write(dir, "memory.use_hierarchy", "1");
        if (afz_cgroup_u64(dir, "memory.use_hierarchy", &whole) == 0 && whole != 1)
                return -EIO;
        int fd = afz_cgroup_open(dir, "memory.limit_in_bytes", O_RDWR);
        if (fd < 0)
                return fd;
        hold->limit_fd = fd;
        fd = afz_cgroup_open(dir, "memory.memsw.limit_in_bytes", O_RDWR);
        hold->swap_limit_fd = fd >= 0 ? fd : -1;
        int peak = afz_cgroup_open(dir, "memory.max_usage_in_bytes", O_RDONLY);
        int swap_peak = afz_cgroup_open(dir, "memory.memsw.max_usage_in_bytes", O_RDONLY);
        hold->peak_fd = peak >= 0 ? peak : -1;
        hold->swap_peak_fd = swap_peak >= 0 ? swap_peak : -1;
        /* Without accounting of swap the next best is to use none. */
        if (fd < 0 && plan->budget.swap_bytes == 0)
                (void)afz_cgroup_write(dir, "memory.swappiness", "0");
        return afz_cgroup1_limit(hold, &plan->budget);
}

/* What only makes the desktop more fluid: a tree that refuses is none to fail for. */
static void set_shares(struct afz_hold_cgroup1 *hold, const struct afz_hold_plan *plan)
{
        static const struct {
                const char *file;
                uint32_t usual, least, most; /* `usual` is what weight 100 means there */
                enum afz_controller in;
        } rows[] = {
                {"cpu.shares", SHARES_USUAL, SHARES_MIN, SHARES_MAX, AFZ_CG_CPU},
                {"blkio.bfq.weight", 100, 1, 1000, AFZ_CG_IO},
                {"blkio.weight", 500, 10, 1000, AFZ_CG_IO},
        };
        for (size_t i = 0; plan->weight && i < sizeof rows / sizeof rows[0]; i++) {
                uint64_t v = (uint64_t)plan->weight * rows[i].usual / 100;
                v = v < rows[i].least ? rows[i].least : v > rows[i].most ? rows[i].most : v;
                if (hold->top.dir[rows[i].in] >= 0)
                        (void)afz_cgroup_prove(hold->top.dir[rows[i].in], rows[i].file, v, "");
        }
}

static int set_pids(struct afz_hold_cgroup1 *hold, const struct afz_hold_plan *plan)
{
        int dir = hold->top.dir[AFZ_CG_PIDS];
        hold->processes_max = plan->processes ? plan->processes : UINT64_MAX;
        if (dir < 0)
                return 0;
        int now = afz_cgroup_open(dir, "pids.current", O_RDONLY);
        int max = afz_cgroup_open(dir, "pids.max", O_RDWR);
        hold->pids_fd = now >= 0 ? now : -1;
        hold->pids_max_fd = max >= 0 ? max : -1;
        return max >= 0 ? afz_cgroup_set(max, hold->processes_max, "max") : 0;
}

/* The kernel adds to the event's count when it is about to kill at our limit. */
static void listen_for_oom(struct afz_hold_cgroup1 *hold)
{
        char text[32];
        int fd = hold->top.oom_fd >= 0 ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
        if (fd < 0)
                return;
        snprintf(text, sizeof text, "%d %d", fd, hold->top.oom_fd);
        if (afz_cgroup_write(hold->top.dir[AFZ_CG_MEMORY], "cgroup.event_control", text) < 0)
                close(fd);
        else
                hold->event_fd = fd;
}

/* By a descriptor, so that a pid that passes to a stranger in this very moment is noticed and the
 * stranger put back. */
static int take_one(struct afz_hold_cgroup1 *hold, const struct afz_cgroup1 *group, pid_t pid)
{
        uint32_t in;
        int fd = afz_pidfd_open(pid);
        if (fd < 0)
                return fd;
        int r = afz_cgroup1_move(group->dir, pid, &in);
        if (r == 0 && afz_pidfd_signal(fd, 0) == -ESRCH) {
                (void)afz_cgroup1_move(hold->parent, pid, &in);
                r = -ESRCH;
        }
        close(fd);
        return r;
}

/* One look at the tree. Returns how many were moved. */
static int take_in_once(struct afz_hold_cgroup1 *hold, const struct afz_cgroup1 *group,
                        const char *full, pid_t root)
{
        struct afz_tree *tree;
        int moved = 0, r = afz_tree_new(hold->env, (uint64_t)root, TREE_MAX, &tree);
        if (r < 0)
                return r;
        r = afz_tree_update(tree);
        for (size_t i = 0; r >= 0 && i < afz_tree_slots(tree); i++) {
                const struct afz_member *m = afz_tree_at(tree, i);
                pid_t pid = (pid_t)m->pid;
                if (!m->pid || m->gone || afz_cgroup1_is_in(hold->env, full, pid))
                        continue;
                int e = take_one(hold, group, pid);
                if (e < 0 && pid == root)
                        r = e;
                moved += e == 0;
        }
        afz_tree_free(tree);
        return r < 0 ? r : moved;
}

int afz_cgroup1_take_in(struct afz_hold_cgroup1 *hold, const struct afz_cgroup1 *group,
                        const char *full, pid_t root)
{
        int r = 1;
        for (int i = 0; r > 0 && i < TAKE_IN_ROUNDS; i++)
                r = take_in_once(hold, group, full, root);
        return r < 0 ? r : 0;
}

/* v1 could move what a process has charged elsewhere along with it; 6.13 and later cannot. Then its
 * need is reckoned from its processes. */
static int adopt(struct afz_hold_cgroup1 *hold, const struct afz_hold_plan *plan, pid_t pid,
                 char *why)
{
        static const char *const file = "memory.move_charge_at_immigrate";
        int dir = hold->top.dir[AFZ_CG_MEMORY];
        uint64_t kinds = 0;
        (void)afz_cgroup_write(dir, file, "3"); /* anonymous and swap 1, files and shmem 2 */
        bool charged = afz_cgroup_u64(dir, file, &kinds) == 0 && kinds == 3;
        int r = afz_cgroup1_take_in(hold, &hold->top, hold->full, pid);
        if (r == -ENOMEM && charged) { /* it has more than the budget: then without */
                charged = false;
                (void)afz_cgroup_write(dir, file, "0");
                r = afz_cgroup1_take_in(hold, &hold->top, hold->full, pid);
        }
        if (r == 0 && !charged)
                r = afz_hold_none.open(hold->env, plan, pid, 0, &hold->tree, why);
        return r;
}

/* The trees that refuse the process hold nothing: they are given up, memory is not. */
static int move_in(struct afz_hold_cgroup1 *hold, const struct afz_hold_plan *plan, pid_t pid,
                   char *why)
{
        uint32_t in = 0;
        int r = plan->adopted ? adopt(hold, plan, pid, why)
                              : afz_cgroup1_move(hold->top.dir, pid, &in);
        for (int i = 0; r == 0 && !plan->adopted && i < AFZ_CONTROLLERS; i++)
                if (hold->top.dir[i] >= 0 && !(in >> i & 1))
                        afz_cgroup1_drop(&hold->top, hold->parent, hold->name,
                                         (enum afz_controller)i);
        if (r == 0 && !afz_cgroup1_is_in(hold->env, hold->full, pid))
                r = -EIO;
        return r;
}

/* As if all of it had been made already. */
static void announce(struct afz_hold_cgroup1 *hold, const struct afz_hold_plan *plan,
                     uint32_t wanted)
{
        if (!plan->place)
                return;
        for (int i = 0; i < AFZ_CONTROLLERS; i++)
                if (hold->parent[i] >= 0)
                        hold->top.made |= wanted & 1U << i;
        afz_cgroup1_place(hold, plan->place);
        hold->top.made = 0;
}

static int set_up(struct afz_hold_cgroup1 *hold, const struct afz_hold_plan *plan, pid_t pid,
                  char *why)
{
        static const uint32_t wanted = 1U << AFZ_CG_MEMORY | 1U << AFZ_CG_FREEZER |
                                       1U << AFZ_CG_PIDS | 1U << AFZ_CG_CPU | 1U << AFZ_CG_IO;
        int r = afz_cgroup1_parents(hold->env, &hold->path, hold->parent);
        if (r == 0)
                announce(hold, plan, wanted);
        if (r == 0)
                r = afz_cgroup1_make(hold->parent, hold->name, wanted, &hold->top);
        if (r < 0)
                return say(why, r, "our own memory cgroup may not be divided");
        r = set_memory(hold, plan);
        if (r == 0)
                r = set_pids(hold, plan);
        if (r < 0)
                return say(why, r, "the limits could not be set");
        set_shares(hold, plan);
        listen_for_oom(hold);
        r = move_in(hold, plan, pid, why);
        return r < 0 ? say(why, r, "the job could not be moved into its cgroup") : 0;
}

static struct afz_hold_cgroup1 *new_hold(const struct afz_env *env)
{
        struct afz_hold_cgroup1 *h = calloc(1, sizeof *h);
        if (!h)
                return NULL;
        h->env = env;
        h->limit_fd = h->swap_limit_fd = h->pids_fd = h->pids_max_fd = h->event_fd = -1;
        h->peak_fd = h->swap_peak_fd = -1;
        h->top = (struct afz_cgroup1){.stat_fd = -1, .oom_fd = -1, .freezer_fd = -1};
        for (int i = 0; i < AFZ_CONTROLLERS; i++)
                h->parent[i] = h->top.dir[i] = -1;
        return h;
}

static int name_it(struct afz_hold_cgroup1 *h, const char *id)
{
        if (!id[0] || strchr(id, '/'))
                return -EINVAL;
        int r = afz_path(h->name, sizeof h->name, "antifreeze-%s", id);
        if (r >= 0)
                r = afz_path(h->full, sizeof h->full, "%s/%s",
                             strcmp(h->path.name, "/") == 0 ? "" : h->path.name, h->name);
        return r < 0 ? r : 0;
}

int afz_cgroup1_open(const struct afz_env *env, const struct afz_hold_plan *plan, pid_t pid,
                     struct afz_hold_cgroup1 **ret, char *why)
{
        struct afz_hold_cgroup1 *h = new_hold(env);
        if (!h)
                return -ENOMEM;
        h->adopted = plan->adopted;
        int r = afz_cgroup_path_of(env, (uint64_t)pid, &h->path);
        if (r == 0 && h->path.version != 1)
                r = -ENODATA;
        if (r < 0 && r != -ESRCH)
                snprintf(why, AFZ_HOLD_WHY_CAP, "no memory controller of cgroup v1 here");
        if (r == 0)
                r = name_it(h, plan->id);
        if (r == 0)
                r = set_up(h, plan, pid, why);
        if (r < 0) {
                h->adopted = true; /* who was moved already goes back */
                afz_cgroup1_free(h);
                return r;
        }
        *ret = h;
        return 0;
}

static int put_back(void *ctx, pid_t pid)
{
        struct afz_hold_cgroup1 *hold = ctx;
        uint32_t in;
        (void)afz_cgroup1_move(hold->parent, pid, &in);
        return 0;
}

void afz_cgroup1_free(struct afz_hold_cgroup1 *h)
{
        if (!h)
                return;
        if (h->adopted && h->top.dir[AFZ_CG_MEMORY] >= 0)
                (void)afz_cgroup_each_pid(h->top.dir[AFZ_CG_MEMORY], put_back, h);
        if (h->tree)
                afz_hold_none.close(h->tree);
        for (unsigned i = 0; i < h->parts; i++)
                afz_cgroup1_close(&h->part[i]);
        (void)afz_cgroup1_remove(&h->top, h->parent, h->name);
        afz_fd_close(&h->limit_fd);
        afz_fd_close(&h->swap_limit_fd);
        afz_fd_close(&h->peak_fd);
        afz_fd_close(&h->swap_peak_fd);
        afz_fd_close(&h->pids_fd);
        afz_fd_close(&h->pids_max_fd);
        afz_fd_close(&h->event_fd);
        for (int i = 0; i < AFZ_CONTROLLERS; i++)
                afz_fd_close(&h->parent[i]);
        free(h);
}
