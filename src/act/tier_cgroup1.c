#include "tier_cgroup1.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cgroup_file.h"
#include "cgroup_walk.h"
#include "count_of.h"
#include "part_need.h"

/* With more tasks than this the list of processes is long to make, and it is no more a question of
 * which are left: then it is counted once in RECOUNT looks. */
enum { FEW_TASKS = 64, RECOUNT = 8 };
/* A frozen group is the same at the second look. One that cannot be frozen may fork a few times
 * more. */
enum { KILL_ROUNDS = 16 };

static int open_it(const struct afz_env *env, const struct afz_hold_plan *plan, pid_t pid,
                   pid_t keeper, void **ret, char *why)
{
        (void)keeper; /* an empty cgroup of ours stays until we remove it */
        struct afz_hold_cgroup1 *h;
        int r = afz_cgroup1_open(env, plan, pid, &h, why);
        if (r == 0)
                *ret = h;
        return r;
}

enum { KEY_RSS, KEY_SHMEM, KEY_SWAP, KEYS };

struct figures {
        uint64_t value[KEYS];
        unsigned has;
};

static void take_figure(void *ctx, int id, uint64_t value)
{
        struct figures *f = ctx;
        f->value[id] = value;
        f->has |= 1U << id;
}

/* The total_ rows hold the cgroups below too. rss is anonymous memory; swap is told only where it
 * is accounted. */
static const struct afz_key with_below[] = {
        {"total_rss", KEY_RSS, 0}, {"total_shmem", KEY_SHMEM, 0}, {"total_swap", KEY_SWAP, 0}};
static const struct afz_key without[] = {
        {"rss", KEY_RSS, 0}, {"shmem", KEY_SHMEM, 0}, {"swap", KEY_SWAP, 0}};

static int need_by(struct afz_span stat, const struct afz_key keys[KEYS], uint64_t *ret_need_bytes,
                   uint64_t *ret_swap_bytes)
{
        const unsigned musts = 1U << KEY_RSS | 1U << KEY_SHMEM;
        struct figures f = {0};
        afz_span_each_key(stat, keys, KEYS, take_figure, &f);
        if ((f.has & musts) != musts)
                return -ENODATA;
        *ret_need_bytes = f.value[KEY_RSS] + f.value[KEY_SHMEM] + f.value[KEY_SWAP];
        *ret_swap_bytes = f.value[KEY_SWAP];
        return 0;
}

int afz_cgroup1_need(struct afz_span stat, uint64_t *ret_need_bytes, uint64_t *ret_swap_bytes)
{
        return need_by(stat, with_below, ret_need_bytes, ret_swap_bytes);
}

static int read_need(const struct afz_cgroup1 *group, const struct afz_key *keys,
                     uint64_t *ret_need, uint64_t *ret_swap)
{
        char buf[8192];
        ssize_t n = afz_fd_read_record(group->stat_fd, buf, sizeof buf);
        return n < 0 ? (int)n
                     : need_by((struct afz_span){buf, (size_t)n}, keys, ret_need, ret_swap);
}

/* What is in the parts is asked of the parts. Newer kernels (6.18 as measured) bring a cgroup's
 * total_ rows up to date only when enough has changed in it, and what changes below can go unheard
 * for two seconds, in which a kernel grows by a GB. */
static int read_all(const struct afz_hold_cgroup1 *h, uint64_t *ret_need, uint64_t *ret_swap)
{
        uint64_t need, swap, more, more_swap;
        int r = read_need(&h->top, h->parts > 0 ? without : with_below, &need, &swap);
        for (unsigned i = 0; r == 0 && i < h->parts; i++)
                if (read_need(&h->part[i], with_below, &more, &more_swap) == 0) {
                        need += more;
                        swap += more_swap;
                }
        if (r == 0) {
                *ret_need = need;
                *ret_swap = swap;
        }
        return r;
}

static void take_number(void *ctx, int id, uint64_t value)
{
        (void)id;
        *(uint64_t *)ctx = value;
}

/* At our limit. v1 counts a kill where the victim was, not above it, and whoever's limit it was.
 * Kernels before 4.13 do not count. */
static bool read_oom_kills(const struct afz_hold_cgroup1 *h, uint64_t *ret)
{
        static const struct afz_key key = {"oom_kill", 0, 0};
        uint64_t sum = 0;
        bool told = false;
        for (unsigned i = 0; i <= h->parts; i++) {
                char buf[128];
                uint64_t kills = 0;
                int fd = i < h->parts ? h->part[i].oom_fd : h->top.oom_fd;
                ssize_t n = fd >= 0 ? afz_fd_read_record(fd, buf, sizeof buf) : -1;
                if (n <= 0 || afz_span_each_key((struct afz_span){buf, (size_t)n}, &key, 1,
                                                take_number, &kills) == 0)
                        continue;
                sum += kills;
                told = true;
        }
        *ret = sum > 0 && afz_cgroup1_met_limit(h) ? sum : 0;
        return told;
}

static int count_one(void *ctx, pid_t pid)
{
        (void)pid;
        ++*(uint64_t *)ctx;
        return 0;
}

static int count_processes(const struct afz_hold_cgroup1 *h, uint64_t *ret)
{
        int top = h->top.dir[AFZ_CG_MEMORY];
        uint64_t sum = 0;
        if (afz_cgroup1_has_below(top, h->parts)) {
                int r = afz_cgroup_each_pid(top, count_one, &sum);
                if (r < 0)
                        return r;
        } else {
                for (unsigned i = 0; i <= h->parts; i++) {
                        int dir = i < h->parts ? h->part[i].dir[AFZ_CG_MEMORY] : top;
                        int n = afz_cgroup1_count(dir);
                        if (n < 0)
                                return n;
                        sum += (uint64_t)n;
                }
        }
        *ret = sum;
        return 0;
}

/* pids.current counts threads, and zombies until somebody waits for them. */
static int look_at_processes(struct afz_hold_cgroup1 *h)
{
        uint64_t tasks;
        bool many =
                h->pids_fd >= 0 && afz_cgroup_reread(h->pids_fd, &tasks) == 0 && tasks > FEW_TASKS;
        if (many && !h->ending && h->uncounted++ < RECOUNT && h->processes > 0)
                return 0;
        h->uncounted = 0;
        return count_processes(h, &h->processes);
}

static int look(void *state, struct afz_pulse *ret)
{
        struct afz_hold_cgroup1 *h = state;
        uint64_t need, swap, kills, ignored;
        if (h->event_fd >= 0) /* so that it is readable again at the next kill */
                (void)!read(h->event_fd, &ignored, sizeof ignored);
        int r = read_all(h, &need, &swap);
        if (r == -ENODEV)
                return r;
        if (h->tree) {
                (void)afz_hold_none.look(h->tree, ret);
        } else if (r == 0) {
                afz_pulse_set(ret, AFZ_PULSE_NEED, need);
                afz_pulse_set(ret, AFZ_PULSE_SWAP, swap);
        }
        if (read_oom_kills(h, &kills))
                afz_pulse_set(ret, AFZ_PULSE_OOM_KILLS, kills);
        r = look_at_processes(h);
        if (r == 0)
                afz_pulse_set(ret, AFZ_PULSE_PROCESSES, h->processes);
        return r == -ENODEV ? r : 0;
}

static int oom_fd(const void *state)
{
        return ((const struct afz_hold_cgroup1 *)state)->event_fd;
}

/* To lower the limit below what is in RAM the kernel would swap it out while we wait. Cache it
 * drops at once. */
static int limit(void *state, const struct afz_budget *budget)
{
        struct afz_hold_cgroup1 *h = state;
        uint64_t need, swap;
        if (read_all(h, &need, &swap) == 0 && need - swap > budget->ram_bytes)
                return -EBUSY;
        return afz_cgroup1_limit(h, budget);
}

static int signal_all(struct afz_hold_cgroup1 *h, int signal)
{
        (void)afz_cgroup1_signal(h->env, h->top.dir[AFZ_CG_MEMORY], h->full, signal);
        return 0;
}

static int brake(void *state)
{
        struct afz_hold_cgroup1 *h = state;
        h->braked = true;
        return h->top.freezer_fd >= 0 ? afz_cgroup_rewrite(h->top.freezer_fd, "FROZEN")
                                      : signal_all(h, SIGSTOP);
}

static int release(void *state)
{
        struct afz_hold_cgroup1 *h = state;
        h->braked = false;
        return h->top.freezer_fd >= 0 ? afz_cgroup_rewrite(h->top.freezer_fd, "THAWED")
                                      : signal_all(h, SIGCONT);
}

/* v1 reclaims only in the writer's own time (memory.force_empty), and throttles nothing. */
static int cannot(void *state, uint64_t bytes)
{
        (void)state;
        (void)bytes;
        return -EOPNOTSUPP;
}

/* Frozen first, so that nobody forks away from us; then the signal; then thawed at once, because a
 * frozen process does not die. Where there is no freezer, nobody may fork meanwhile. */
static int kill_group(struct afz_hold_cgroup1 *h, const struct afz_cgroup1 *group, const char *full)
{
        bool frozen =
                group->freezer_fd >= 0 && afz_cgroup_rewrite(group->freezer_fd, "FROZEN") == 0;
        bool barren =
                !frozen && h->pids_max_fd >= 0 && afz_cgroup_rewrite(h->pids_max_fd, "0") == 0;
        uint64_t before = 0, now;
        for (int i = 0; i < KILL_ROUNDS; i++, before = now) {
                now = afz_cgroup1_signal(h->env, group->dir[AFZ_CG_MEMORY], full, SIGKILL);
                if (now == before)
                        break;
        }
        int r = frozen ? afz_cgroup_rewrite(group->freezer_fd, "THAWED") : 0;
        if (barren)
                (void)afz_cgroup_set(h->pids_max_fd, h->processes_max, "max");
        return r;
}

static int kill_all(void *state)
{
        struct afz_hold_cgroup1 *h = state;
        h->braked = false;
        h->ending = true;
        return kill_group(h, &h->top, h->full);
}

static int part_full(const struct afz_hold_cgroup1 *h, unsigned part, char *buf, size_t cap)
{
        char name[16];
        afz_cgroup1_part_name(part, name);
        return afz_path(buf, cap, "%s/%s", h->full, name);
}

/* A place for one more; that of a sub-job which has ended where all are taken. */
static int free_part(struct afz_hold_cgroup1 *h)
{
        char name[16];
        if (h->parts < AFZ_HOLD_PARTS) {
                afz_cgroup1_part_name(h->parts, name);
                int r = afz_cgroup1_make(h->top.dir, name,
                                         1U << AFZ_CG_MEMORY | 1U << AFZ_CG_FREEZER,
                                         &h->part[h->parts]);
                return r < 0 ? r : (int)h->parts++;
        }
        for (unsigned i = 0; i < h->parts; i++)
                if (afz_cgroup1_count(h->part[i].dir[AFZ_CG_MEMORY]) == 0)
                        return (int)i;
        return -ENOSPC;
}

static int split(void *state, pid_t pid)
{
        struct afz_hold_cgroup1 *h = state;
        char full[sizeof h->full + 16];
        if (!afz_cgroup1_is_in(h->env, h->full, pid))
                return -ESRCH;
        int part = free_part(h);
        if (part < 0)
                return part;
        int r = part_full(h, (unsigned)part, full, sizeof full);
        if (r >= 0)
                r = afz_cgroup1_take_in(h, &h->part[part], full, pid);
        return r < 0 ? r : part;
}

static int look_part(void *state, unsigned part, uint64_t *ret_need_bytes)
{
        struct afz_hold_cgroup1 *h = state;
        uint64_t need, swap, held;
        if (part >= h->parts)
                return -EINVAL;
        int r = read_need(&h->part[part], with_below, &need, &swap);
        if (r == 0)
                r = afz_part_need(h->env, h->part[part].dir[AFZ_CG_MEMORY], &held);
        if (r == 0)
                *ret_need_bytes = held > need ? held : need;
        return r;
}

static int kill_part(void *state, unsigned part)
{
        struct afz_hold_cgroup1 *h = state;
        char full[sizeof h->full + 16];
        if (part >= h->parts)
                return -EINVAL;
        int r = part_full(h, part, full, sizeof full);
        return r < 0 ? r : kill_group(h, &h->part[part], full);
}

static int other_than(void *ctx, pid_t pid)
{
        return pid == *(pid_t *)ctx ? 0 : (int)pid;
}

static pid_t other(void *state, pid_t not )
{
        struct afz_hold_cgroup1 *h = state;
        int r = afz_cgroup_each_pid(h->top.dir[AFZ_CG_MEMORY], other_than, &not );
        return r > 0 ? (pid_t)r : 0;
}

static void place(const void *state, char buf[AFZ_HOLD_PLACE_CAP])
{
        afz_cgroup1_place(state, buf);
}

static void close_it(void *state)
{
        struct afz_hold_cgroup1 *h = state;
        if (h && h->braked)
                (void)release(h);
        afz_cgroup1_free(h);
}

const struct afz_hold_tier afz_hold_cgroup1 = {
        .tier = AFZ_TIER_CGROUP1,
        .open = open_it,
        .look = look,
        .oom_fd = oom_fd,
        .limit = limit,
        .brake = brake,
        .release = release,
        .squeeze = cannot,
        .slow = cannot,
        .kill = kill_all,
        .split = split,
        .look_part = look_part,
        .kill_part = kill_part,
        .other = other,
        .place = place,
        .close = close_it,
};
