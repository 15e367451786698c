#include "roster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "dir.h"
#include "map.h"
#include "pidfd.h"
#include "proc_read.h"

static const struct {
        uint64_t share;      /* a look that took t is followed by none for this many t */
        uint64_t longest_ns; /* but never for longer than this */
        size_t strangers;    /* remembered, so as not to be asked again */
        rlim_t spare_fds;    /* left for everything else in the guard */
        rlim_t most_fds;     /* asked for */
        unsigned deepest;    /* generations told apart */
} limit = {
        .share = 50,            /* 2 % of a core, beside a build that starts things all the time */
        .longest_ns = 50000000, /* 50 ms: 100 MB of a child that nobody knows, at 2 GB/s */
        .strangers = 8192,      /* 256 KB: more than a workstation has */
        .spare_fds = 256,       /* the control socket's clients, cgroup files, pipes */
        .most_fds = 16384,      /* two for each member, twice over */
        .deepest = 255,         /* deeper ones are stopped with these */
};

struct candidate {
        uint64_t pid, inode, ppid, pgrp, session, start_ticks, faults;
        bool inherits, zombie, taken;
};

struct afz_roster {
        const struct afz_env *env;
        uint64_t root, guard;
        int loadavg_fd;
        struct afz_dir proc;
        uint64_t newest_pid, look_next_ns;
        bool look_again, root_seen, begun;
        struct afz_map *index;    /* pid of a member -> its place */
        struct afz_map *stranger; /* pid -> inode of its folder, seen to be none of ours */
        struct afz_map *founder;  /* sessions and groups that members founded, also dead ones */
        struct {
                uint64_t pid, start_ticks; /* start 0: not looked at yet */
        } spare[AFZ_ROSTER_SPARES];
        unsigned spares;
        size_t slots, count, holes, fds_kept, fds_max;
        size_t candidates;
        struct candidate candidate[AFZ_ROSTER_MAX];
        uint16_t order[AFZ_ROSTER_MAX];
        struct afz_roster_row row[AFZ_ROSTER_MAX];
};

int afz_roster_stat(struct afz_roster *t, struct afz_roster_row *row, struct afz_proc_stat *ret)
{
        char buf[AFZ_PROC_STAT_CAP];
        struct afz_proc_stat st;
        int r = afz_proc_stat_check(t->env, row->pid, row->start_ticks, buf, &st);
        if (r < 0)
                return r;
        st.comm = (struct afz_span){0}; /* it points into our buffer */
        row->ppid = st.ppid;
        row->pgrp = st.pgrp;
        row->session = st.session;
        row->zombie = st.state == 'Z' || st.state == 'X';
        if (row->need.inherits && !(st.flags & AFZ_PF_FORKNOEXEC))
                afz_need_exec(&row->need);
        *ret = st;
        return 0;
}

/* A session holds nobody but the offspring of its founder. So does a group, unless it is the
 * root's: in `train | tee log` the shell puts a stranger there. */
static void note_founder(struct afz_roster *t, const struct afz_roster_row *row)
{
        if (row->session != row->pid && (row->pgrp != row->pid || row->depth == 0))
                return;
        if (afz_map_put(t->founder, row->pid, 0) < 0) {
                afz_map_clear(t->founder); /* full of those that died long ago */
                (void)afz_map_put(t->founder, row->pid, 0);
        }
}

static struct afz_roster_row *free_row(struct afz_roster *t)
{
        for (size_t i = 0; t->holes > 0 && i < t->slots; i++) {
                if (t->row[i].pid == 0) {
                        t->holes--;
                        return &t->row[i];
                }
        }
        return t->slots < AFZ_ROSTER_MAX ? &t->row[t->slots++] : NULL;
}

static void open_files(struct afz_roster *t, struct afz_roster_row *row)
{
        char path[40];
        row->pidfd = row->statm_fd = -1;
        if (t->fds_kept + 2 > t->fds_max)
                return;
        snprintf(path, sizeof path, "%llu/statm", (unsigned long long)row->pid);
        int statm = afz_env_open(t->env, AFZ_ROOT_PROC, path, 0);
        int pidfd = t->env->fixture_fd < 0 ? afz_proc_open(t->env, row->pid, row->start_ticks)
                                           : -ENOSYS;
        row->statm_fd = statm >= 0 ? statm : -1;
        row->pidfd = pidfd >= 0 ? pidfd : -1;
        t->fds_kept += (size_t)(row->statm_fd >= 0) + (size_t)(row->pidfd >= 0);
}

static void close_files(struct afz_roster *t, struct afz_roster_row *row)
{
        t->fds_kept -= (size_t)(row->statm_fd >= 0) + (size_t)(row->pidfd >= 0);
        if (row->statm_fd >= 0)
                close(row->statm_fd);
        if (row->pidfd >= 0)
                close(row->pidfd);
}

static struct afz_roster_row *join(struct afz_roster *t, const struct candidate *c,
                                   const struct afz_roster_row *parent)
{
        struct afz_roster_row *row = free_row(t);
        if (!row)
                return NULL;
        unsigned depth = c->pid == t->root ? 0 : parent ? parent->depth + 1U : 1U;
        *row = (struct afz_roster_row){
                .pid = c->pid,
                .start_ticks = c->start_ticks,
                .inode = c->inode,
                .ppid = c->ppid,
                .pgrp = c->pgrp,
                .session = c->session,
                .depth = (uint16_t)(depth < limit.deepest ? depth : limit.deepest),
                .part = parent ? parent->part : 0,
                .zombie = c->zombie,
                .faults = c->faults,
                .need.inherits = c->inherits,
        };
        open_files(t, row);
        t->count++;
        (void)afz_map_put(t->index, c->pid, (uint64_t)(row - t->row));
        note_founder(t, row);
        return row;
}

static bool is_spared(struct afz_roster *t, uint64_t pid, uint64_t start_ticks)
{
        for (unsigned i = 0; i < t->spares; i++) {
                if (t->spare[i].pid != pid)
                        continue;
                if (t->spare[i].start_ticks == 0)
                        t->spare[i].start_ticks = start_ticks;
                return t->spare[i].start_ticks == start_ticks;
        }
        return false;
}

void afz_roster_spare(struct afz_roster *t, pid_t pid)
{
        unsigned at = t->spares;
        /* The number may have been another helper's before. */
        for (unsigned i = 0; i < t->spares; i++)
                if (t->spare[i].pid == (uint64_t)pid)
                        at = i;
        if (at == AFZ_ROSTER_SPARES) {
                memmove(&t->spare[0], &t->spare[1], sizeof t->spare - sizeof t->spare[0]);
                at--; /* the oldest is the likeliest to be gone */
        }
        t->spare[at].pid = (uint64_t)pid;
        t->spare[at].start_ticks = 0;
        if (at == t->spares)
                t->spares++;
}

/* Whether it belongs to the job, given the members so far. */
static bool is_ours(struct afz_roster *t, const struct candidate *c,
                    struct afz_roster_row **ret_parent)
{
        uint64_t v;
        *ret_parent = NULL;
        if (c->pid == t->root)
                return !t->root_seen; /* who has the root's number later is not the root */
        if (c->pid == t->guard)
                return false;
        *ret_parent = afz_roster_find(t, c->ppid);
        if (*ret_parent)
                return true;
        if (t->guard != 0 && c->ppid == t->guard) {
                if (!t->begun)
                        afz_roster_spare(t, (pid_t)c->pid);
                return !is_spared(t, c->pid, c->start_ticks);
        }
        return afz_map_get(t->founder, c->session, &v) || afz_map_get(t->founder, c->pgrp, &v);
}

static void note_candidate(struct afz_roster *t, uint64_t pid, uint64_t inode)
{
        char buf[AFZ_PROC_STAT_CAP];
        struct afz_proc_stat st;
        if (t->candidates == AFZ_ROSTER_MAX || afz_proc_stat_read(t->env, pid, buf, &st) < 0)
                return; /* asked again at the next look */
        /* A number is given out again only when no session or group has it any more: what a dead
         * member founded under it is over. */
        (void)afz_map_remove(t->founder, pid);
        t->candidate[t->candidates++] = (struct candidate){
                .pid = pid,
                .inode = inode,
                .ppid = st.ppid,
                .pgrp = st.pgrp,
                .session = st.session,
                .start_ticks = st.start_ticks,
                .faults = st.minor_faults,
                .inherits = (st.flags & AFZ_PF_FORKNOEXEC) != 0,
                .zombie = st.state == 'Z' || st.state == 'X',
        };
}

/* Whether a member still has its pid, though the folder is another: the kernel may only have
 * forgotten the inode. What cannot be read is not taken for dead. */
static bool is_same(struct afz_roster *t, struct afz_roster_row *row, uint64_t inode)
{
        struct afz_proc_stat st;
        int r = afz_roster_stat(t, row, &st);
        if (r == 0)
                row->inode = inode;
        return r != -ESRCH;
}

static int collect(struct afz_roster *t)
{
        int r = afz_dir_rewind(&t->proc);
        t->candidates = 0;
        while (r >= 0 && (r = afz_dir_next(&t->proc)) > 0) {
                uint64_t pid, inode;
                if (afz_dir_name_u64(&t->proc, &pid) < 0)
                        continue;
                struct afz_roster_row *row = afz_roster_find(t, pid);
                if (row) {
                        if (row->inode == t->proc.inode || is_same(t, row, t->proc.inode))
                                continue;
                        afz_roster_lost(t, row);
                }
                if (afz_map_get(t->stranger, pid, &inode) && inode == t->proc.inode)
                        continue;
                note_candidate(t, pid, t->proc.inode);
        }
        return r;
}

static void note_stranger(struct afz_roster *t, const struct candidate *c)
{
        if (afz_map_put(t->stranger, c->pid, c->inode) == 0)
                return;
        afz_map_clear(t->stranger);
        (void)afz_map_put(t->stranger, c->pid, c->inode);
}

/* Takes in candidates until none follows: a chain of three may have been born since the last look,
 * and after a wrap of pids a child's number can be smaller than its parent's. */
static int adopt(struct afz_roster *t, void (*joined)(void *, struct afz_roster_row *), void *ctx)
{
        int n = 0;
        for (bool more = true; more;) {
                more = false;
                for (size_t i = 0; i < t->candidates; i++) {
                        struct candidate *c = &t->candidate[i];
                        struct afz_roster_row *parent, *row;
                        if (c->taken || !is_ours(t, c, &parent))
                                continue;
                        c->taken = more = true;
                        t->root_seen |= c->pid == t->root;
                        row = join(t, c, parent);
                        n += row != NULL;
                        if (row && joined)
                                joined(ctx, row);
                }
        }
        for (size_t i = 0; i < t->candidates; i++)
                if (!t->candidate[i].taken)
                        note_stranger(t, &t->candidate[i]);
        return n;
}

/* The pid that the kernel gave out last: the fifth word of /proc/loadavg. */
static int read_newest_pid(struct afz_roster *t, uint64_t *ret)
{
        char buf[128];
        ssize_t n = t->loadavg_fd >= 0 ? afz_fd_read_record(t->loadavg_fd, buf, sizeof buf) : -1;
        if (n < 0)
                return -ENODATA;
        struct afz_span text = {buf, (size_t)n}, word;
        for (int i = 0; i < 4; i++)
                if (afz_span_take_word(&text, &word) < 0)
                        return -EINVAL;
        return afz_span_u64(text, ret);
}

static void rest(struct afz_roster *t, uint64_t start_ns)
{
        uint64_t end_ns = afz_env_now(t->env);
        uint64_t rest_ns = end_ns > start_ns ? (end_ns - start_ns) * limit.share : 0;
        t->look_next_ns = end_ns + (rest_ns < limit.longest_ns ? rest_ns : limit.longest_ns);
}

int afz_roster_update(struct afz_roster *t, bool hurry,
                      void (*joined)(void *, struct afz_roster_row *), void *ctx)
{
        uint64_t newest = 0, start_ns = afz_env_now(t->env);
        /* A clock that jumped back must not keep us from looking. */
        if (!hurry && start_ns < t->look_next_ns && t->look_next_ns - start_ns <= limit.longest_ns)
                return 0;
        int known = read_newest_pid(t, &newest);
        bool changed = known < 0 || newest != t->newest_pid;
        if (!hurry && !changed && !t->look_again)
                return 0;
        int r = collect(t);
        if (r < 0)
                return r;
        r = adopt(t, joined, ctx);
        /* A number is given out a little before its folder is there: look once more. What was
         * started while we listed shows as a change next time, for the number was read before. */
        t->newest_pid = known == 0 ? newest : 0;
        t->look_again = changed;
        t->begun = true;
        rest(t, start_ns);
        return r;
}

/* Descriptors for the members; the soft limit is ours to raise. */
static size_t descriptors(void)
{
        struct rlimit lim;
        if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
                return 0;
        rlim_t want = lim.rlim_max < limit.most_fds ? lim.rlim_max : limit.most_fds;
        if (lim.rlim_cur < want) {
                rlim_t before = lim.rlim_cur;
                lim.rlim_cur = want;
                if (setrlimit(RLIMIT_NOFILE, &lim) < 0)
                        lim.rlim_cur = before;
        }
        return lim.rlim_cur > limit.spare_fds ? (size_t)(lim.rlim_cur - limit.spare_fds) : 0;
}

int afz_roster_new(const struct afz_env *env, pid_t root, pid_t guard, struct afz_roster **ret)
{
        struct afz_roster *t = calloc(1, sizeof *t);
        if (!t)
                return -ENOMEM;
        t->env = env;
        t->root = (uint64_t)root;
        t->guard = (uint64_t)guard;
        t->proc.fd = -1;
        t->fds_max = descriptors();
        t->loadavg_fd = afz_env_open(env, AFZ_ROOT_PROC, "loadavg", 0);
        int r = afz_dir_open(&t->proc, env, AFZ_ROOT_PROC, ".");
        if (r >= 0)
                r = afz_map_new(AFZ_ROSTER_MAX, &t->index);
        if (r >= 0)
                r = afz_map_new(limit.strangers, &t->stranger);
        if (r >= 0)
                r = afz_map_new(AFZ_ROSTER_MAX, &t->founder);
        char buf[AFZ_PROC_STAT_CAP];
        struct afz_proc_stat st;
        if (r >= 0)
                r = afz_proc_stat_read(env, t->root, buf, &st);
        if (r < 0) {
                afz_roster_free(t);
                return r;
        }
        *ret = t;
        return 0;
}

void afz_roster_free(struct afz_roster *t)
{
        if (!t)
                return;
        for (size_t i = 0; i < t->slots; i++)
                if (t->row[i].pid != 0)
                        close_files(t, &t->row[i]);
        if (t->loadavg_fd >= 0)
                close(t->loadavg_fd);
        afz_dir_close(&t->proc);
        afz_map_free(t->index);
        afz_map_free(t->stranger);
        afz_map_free(t->founder);
        free(t);
}

size_t afz_roster_slots(const struct afz_roster *t)
{
        return t->slots;
}

struct afz_roster_row *afz_roster_at(struct afz_roster *t, size_t index)
{
        return &t->row[index];
}

struct afz_roster_row *afz_roster_find(const struct afz_roster *t, uint64_t pid)
{
        uint64_t i;
        return afz_map_get(t->index, pid, &i) ? (struct afz_roster_row *)&t->row[i] : NULL;
}

size_t afz_roster_top_down(struct afz_roster *t, const uint16_t **ret)
{
        size_t n = 0;
        unsigned deepest = 0;
        for (size_t i = 0; i < t->slots; i++)
                if (t->row[i].pid != 0 && t->row[i].depth > deepest)
                        deepest = t->row[i].depth;
        for (unsigned d = 0; d <= deepest; d++)
                for (size_t i = 0; i < t->slots; i++)
                        if (t->row[i].pid != 0 && t->row[i].depth == d)
                                t->order[n++] = (uint16_t)i;
        *ret = t->order;
        return n;
}

void afz_roster_lost(struct afz_roster *t, struct afz_roster_row *row)
{
        if (row->pid == 0)
                return;
        close_files(t, row);
        (void)afz_map_remove(t->index, row->pid);
        row->pid = 0;
        t->count--;
        t->holes++;
        while (t->slots > 0 && t->row[t->slots - 1].pid == 0) {
                t->slots--;
                t->holes--;
        }
}

int afz_roster_signal(struct afz_roster *t, struct afz_roster_row *row, int signal)
{
        if (row->pidfd >= 0)
                return afz_pidfd_signal(row->pidfd, signal);
        int fd = t->env->fixture_fd < 0 ? afz_proc_open(t->env, row->pid, row->start_ticks)
                                        : -ENOSYS;
        if (fd < 0)
                return fd;
        int r = afz_pidfd_signal(fd, signal);
        close(fd);
        return r;
}
