/* What the tick does with a hold on cgroup v2: looking and acting, on descriptors that are open. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cgroup2_hold.h"
#include "cgroup2_need.h"
#include "cgroup_file.h"
#include "cgroup_walk.h"
#include "clock.h"
#include "count_of.h"
#include "part_need.h"
#include "pidfd.h"
#include "psi_parse.h"

/* memory.stat has 3 KB on 6.12 with everything turned on. */
#define STAT_CAP 8192
/* How long a limit that the reclaimer writes may take to be seen: it writes before it reclaims. */
#define LIMIT_MS 5
/* Rounds of killing on kernels without cgroup.kill (before 5.14), and the pause between two. A
 * frozen job forks no more, so that the second already finds but the dying. */
#define KILL_ROUNDS   8
#define KILL_PAUSE_MS 1

/* One number by key, out of a file of such lines. */
struct one {
        uint64_t value;
        bool found;
};

static void take_one(void *ctx, int id, uint64_t value)
{
        (void)id;
        *(struct one *)ctx = (struct one){value, true};
}

static int key_of(int fd, const char *key, uint64_t *ret)
{
        const struct afz_key keys[] = {{key, 0}};
        char buf[512];
        struct one one = {0};
        ssize_t n = fd >= 0 ? afz_fd_read_record(fd, buf, sizeof buf) : -ENODATA;
        if (n < 0)
                return (int)n;
        afz_span_each_key((struct afz_span){buf, (size_t)n}, keys, 1, take_one, &one);
        if (!one.found)
                return -ENODATA;
        *ret = one.value;
        return 0;
}

static int need_of(const struct afz_cgroup2_group *group, struct afz_cgroup2_need *ret)
{
        char buf[STAT_CAP];
        uint64_t swap = 0;
        ssize_t n = afz_fd_read_record(group->fd[AFZ_CG2_STAT], buf, sizeof buf);
        if (n < 0)
                return (int)n;
        if (group->fd[AFZ_CG2_SWAP] >= 0)
                (void)afz_cgroup_reread(group->fd[AFZ_CG2_SWAP], &swap);
        return afz_cgroup2_need((struct afz_span){buf, (size_t)n}, swap, ret);
}

/* Of the leaves, one by one: newer kernels (seen on 6.18) bring a cgroup's memory.stat up to date
 * when it is read only if enough has changed in it since, and stop counting changes for its parents
 * once a child has its fill. The leaf is then late by 64 pages a core at most, the parent by whole
 * seconds. */
static int look_need(const struct afz_cgroup2_hold *h, struct afz_pulse *ret)
{
        struct afz_cgroup2_need need, part;
        if (h->tree)
                return afz_hold_none.look(h->tree, ret);
        int r = need_of(&h->main, &need);
        if (r < 0)
                return r;
        for (int i = 0; i < AFZ_HOLD_PARTS; i++)
                if (h->part[i].dir_fd >= 0 && need_of(&h->part[i], &part) == 0) {
                        need.bytes += part.bytes;
                        need.away_bytes += part.away_bytes;
                }
        /* A run inside this one makes its cgroup beside the leaves. */
        if (need_of(&h->job, &part) == 0 && part.bytes > need.bytes)
                need = part;
        afz_pulse_set(ret, AFZ_PULSE_NEED, need.bytes);
        if (h->job.fd[AFZ_CG2_SWAP] >= 0)
                afz_pulse_set(ret, AFZ_PULSE_SWAP, need.away_bytes);
        return 0;
}

static void look_stall(const struct afz_cgroup2_hold *h, struct afz_pulse *ret)
{
        char buf[256];
        struct afz_psi psi;
        int fd = h->job.fd[AFZ_CG2_PRESSURE];
        ssize_t n = fd >= 0 ? afz_fd_read_record(fd, buf, sizeof buf) : -ENODATA;
        if (n > 0 && afz_psi_parse((struct afz_span){buf, (size_t)n}, &psi) == 0 && psi.has_full)
                afz_pulse_set(ret, AFZ_PULSE_JOB_STALL, psi.full.total_ns);
}

/* pids.current counts those too that are dead and not reaped, like CMD until we do it; whether
 * anybody lives is told by cgroup.events alone. */
static int count_living(const struct afz_cgroup2_hold *h, uint64_t *ret)
{
        uint64_t populated, pids;
        int r = key_of(h->job.fd[AFZ_CG2_POPULATED], "populated", &populated);
        if (r < 0)
                return r;
        bool counted = h->job.fd[AFZ_CG2_PIDS] >= 0 &&
                       afz_cgroup_reread(h->job.fd[AFZ_CG2_PIDS], &pids) == 0 && pids > 0;
        *ret = populated && counted ? pids : populated;
        return 0;
}

int afz_cgroup2_look(void *hold, struct afz_pulse *ret)
{
        const struct afz_cgroup2_hold *h = hold;
        uint64_t value;
        int r = look_need(h, ret);
        if (r < 0)
                return r;
        look_stall(h, ret);
        /* oom_kill also counts what the machine's own OOM killer took; oom is at a limit of ours.
         */
        uint64_t at_limit;
        if (key_of(h->job.fd[AFZ_CG2_EVENTS], "oom_kill", &value) == 0)
                afz_pulse_set(
                        ret, AFZ_PULSE_OOM_KILLS,
                        value > 0 && key_of(h->job.fd[AFZ_CG2_EVENTS], "oom", &at_limit) == 0 &&
                                        at_limit == 0
                                ? 0
                                : value);
        if (count_living(h, &value) == 0)
                afz_pulse_set(ret, AFZ_PULSE_PROCESSES, value);
        return 0;
}

int afz_cgroup2_oom_fd(const void *hold)
{
        return ((const struct afz_cgroup2_hold *)hold)->oom_fd;
}

/* Lowering the limit below what is in use (page cache, when the engine does it) waits until that is
 * pushed out: the reclaimer waits, we only make sure that the kernel has taken it. */
static int lower(struct afz_cgroup2_hold *h, uint64_t bytes)
{
        uint64_t got = 0;
        int r = afz_reclaimer_max(&h->reclaimer, bytes);
        for (int i = 0; r == 0 && i < LIMIT_MS; i++) {
                poll(NULL, 0, 1);
                r = afz_cgroup_reread(h->job.fd[AFZ_CG2_MAX], &got);
                if (r == 0 && got <= bytes)
                        return 0;
        }
        return r < 0 ? r : -EAGAIN;
}

int afz_cgroup2_limit(void *hold, const struct afz_budget *budget)
{
        struct afz_cgroup2_hold *h = hold;
        uint64_t used;
        if (budget->ram_bytes == 0)
                return -EINVAL;
        int r = afz_cgroup_reread(h->job.fd[AFZ_CG2_CURRENT], &used);
        if (r < 0)
                return r;
        r = used > budget->ram_bytes
                    ? lower(h, budget->ram_bytes)
                    : afz_cgroup_set(h->job.fd[AFZ_CG2_MAX], budget->ram_bytes, "max");
        if (r == 0 && h->job.fd[AFZ_CG2_SWAP_MAX] >= 0)
                r = afz_cgroup_set(h->job.fd[AFZ_CG2_SWAP_MAX], budget->swap_bytes, "max");
        return r;
}

int afz_cgroup2_brake(void *hold)
{
        const struct afz_cgroup2_hold *h = hold;
        return afz_cgroup_rewrite(h->job.fd[AFZ_CG2_FREEZE], "1");
}

int afz_cgroup2_release(void *hold)
{
        const struct afz_cgroup2_hold *h = hold;
        return afz_cgroup_rewrite(h->job.fd[AFZ_CG2_FREEZE], "0");
}

int afz_cgroup2_squeeze(void *hold, uint64_t bytes)
{
        struct afz_cgroup2_hold *h = hold;
        return afz_reclaimer_squeeze(&h->reclaimer, bytes);
}

int afz_cgroup2_slow(void *hold, uint64_t bytes)
{
        struct afz_cgroup2_hold *h = hold;
        return afz_reclaimer_high(&h->reclaimer, bytes);
}

struct killing {
        const struct afz_cgroup2_hold *hold;
        unsigned count;
};

/* Asked after the descriptor was opened, so the answer is about the process that it stands for. */
static bool is_inside(const struct afz_cgroup2_hold *h, pid_t pid)
{
        char file[32], buf[8192], path[AFZ_CGROUP_PATH_MAX + 64];
        struct afz_span text;
        size_t n = strlen(h->inside);
        snprintf(file, sizeof file, "%d/cgroup", (int)pid);
        return afz_env_read(h->env, AFZ_ROOT_PROC, file, buf, sizeof buf, &text) == 0 &&
               afz_cgroup_parse(text, "", path, sizeof path) == 0 &&
               strncmp(path, h->inside, n) == 0 && path[n] == '/';
}

static int kill_one(void *ctx, pid_t pid)
{
        struct killing *k = ctx;
        int fd = afz_pidfd_open(pid);
        if (fd < 0)
                return 0;
        if (is_inside(k->hold, pid) && afz_pidfd_signal(fd, SIGKILL) == 0)
                k->count++;
        close(fd);
        return 0;
}

static int kill_group(const struct afz_cgroup2_hold *h, const struct afz_cgroup2_group *group)
{
        if (group->fd[AFZ_CG2_KILL] >= 0)
                return afz_cgroup_rewrite(group->fd[AFZ_CG2_KILL], "1");
        struct killing k = {.hold = h};
        int r = afz_cgroup_rewrite(group->fd[AFZ_CG2_FREEZE], "1");
        for (int i = 0; r == 0 && i < KILL_ROUNDS; i++) {
                k.count = 0;
                r = afz_cgroup_each_pid(group->dir_fd, kill_one, &k);
                if (k.count == 0)
                        break;
                poll(NULL, 0, KILL_PAUSE_MS);
        }
        int thaw = afz_cgroup_rewrite(group->fd[AFZ_CG2_FREEZE], "0");
        return r < 0 ? r : thaw;
}

int afz_cgroup2_kill(void *hold)
{
        const struct afz_cgroup2_hold *h = hold;
        return kill_group(h, &h->job);
}

/* A part whose last process has ended is free again. */
static int free_part(struct afz_cgroup2_hold *h)
{
        for (int i = 0; i < AFZ_HOLD_PARTS; i++) {
                struct afz_cgroup2_group *part = &h->part[i];
                uint64_t populated = 1;
                char name[16];
                if (part->dir_fd < 0)
                        return i;
                if (key_of(part->fd[AFZ_CG2_POPULATED], "populated", &populated) < 0 || populated)
                        continue;
                snprintf(name, sizeof name, "part-%d", i);
                if (afz_cgroup_remove_tree(h->job.dir_fd, name) == 0) {
                        afz_cgroup2_group_close(part);
                        return i;
                }
        }
        return -ENOSPC;
}

int afz_cgroup2_split(void *hold, pid_t pid)
{
        struct afz_cgroup2_hold *h = hold;
        struct afz_cgroup2_group group;
        char name[16];
        int dir_fd, n = free_part(h);
        if (n < 0)
                return n;
        if (!is_inside(h, pid)) /* never take in what is not ours */
                return -ESRCH;
        snprintf(name, sizeof name, "part-%d", n);
        int r = afz_cgroup_make(h->job.dir_fd, name, &dir_fd);
        if (r < 0)
                return r;
        r = h->whole ? 0 : afz_cgroup_prove(dir_fd, "memory.oom.group", 1, "");
        if (r == 0)
                r = afz_cgroup2_group_open(dir_fd, true, &group);
        if (r < 0) {
                close(dir_fd);
                (void)afz_cgroup_remove(h->job.dir_fd, name);
                return r;
        }
        h->part[n] = group;
        r = afz_cgroup2_move_tree(h->env, dir_fd, pid);
        return r < 0 ? r : n;
}

static struct afz_cgroup2_group *part_at(struct afz_cgroup2_hold *h, unsigned part)
{
        return part < AFZ_HOLD_PARTS && h->part[part].dir_fd >= 0 ? &h->part[part] : NULL;
}

int afz_cgroup2_look_part(void *hold, unsigned part, uint64_t *ret_need_bytes)
{
        const struct afz_cgroup2_hold *h = hold;
        const struct afz_cgroup2_group *group = part_at(hold, part);
        struct afz_cgroup2_need need;
        uint64_t held;
        int r = group ? need_of(group, &need) : -ENODEV;
        if (r == 0)
                r = afz_part_need(h->env, group->dir_fd, &held);
        if (r == 0)
                *ret_need_bytes = held > need.bytes ? held : need.bytes;
        return r;
}

int afz_cgroup2_kill_part(void *hold, unsigned part)
{
        const struct afz_cgroup2_group *group = part_at(hold, part);
        return group ? kill_group(hold, group) : -ENODEV;
}

struct other {
        pid_t not, found;
};

static int take_other(void *ctx, pid_t pid)
{
        struct other *o = ctx;
        if (pid == o->not )
                return 0;
        o->found = pid;
        return 1;
}

pid_t afz_cgroup2_other(void *hold, pid_t not )
{
        const struct afz_cgroup2_hold *h = hold;
        struct other o = {.not = not };
        (void)afz_cgroup_each_pid(h->job.dir_fd, take_other, &o);
        return o.found;
}

void afz_cgroup2_place(const void *hold, char buf[AFZ_HOLD_PLACE_CAP])
{
        const struct afz_cgroup2_hold *h = hold;
        snprintf(buf, AFZ_HOLD_PLACE_CAP, "%s", h->place);
}
