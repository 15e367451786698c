#include "tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dir.h"
#include "map.h"
#include "proc_read.h"

/* A process seen in this look that is not a member yet. */
struct candidate {
        uint64_t pid, inode, ppid, pgrp, session, start_ticks;
        bool kernel_thread, taken;
};

struct afz_tree {
        const struct afz_env *env;
        uint64_t root;
        int loadavg_fd;
        struct afz_dir proc;
        uint64_t newest_pid;      /* of the last look; 0: look in any case */
        uint64_t look_next_ns;    /* not before this time */
        bool look_again;          /* the last look was due to a new pid */
        bool root_seen;           /* who has the root's pid later is not the root */
        struct afz_map *index;    /* pid of a living member -> index */
        struct afz_map *stranger; /* pid -> inode of its folder, seen to be none of ours */
        struct afz_map *founder;  /* sessions and groups that members founded, also dead ones */
        size_t slots, count, max;
        uint64_t dropped;
        size_t holes; /* slots below `slots` that are free */
        struct candidate *candidate;
        size_t candidates, max_candidates;
        struct afz_member member[];
};

/* Where something is started all the time (a build beside the job), looking must not become the
 * job. */
static const struct {
        uint64_t share;      /* a look that took t is followed by none for this many t */
        uint64_t longest_ns; /* but never for longer than this */
} look = {
        .share = 2000,            /* 0.05 % of a core: 300 ms after a look of 150 us */
        .longest_ns = 1000000000, /* 1 s: what a new child takes shows in the machine's RAM */
};

/* Strangers we can remember: more than a busy machine has at a time. */
#define MAX_STRANGERS 65536

/* The first free slot; t->max when there is none. */
static size_t free_slot(struct afz_tree *t)
{
        for (size_t i = 0; t->holes > 0 && i < t->slots; i++) {
                if (t->member[i].pid == 0) {
                        t->holes--;
                        return i;
                }
        }
        return t->slots < t->max ? t->slots++ : t->max;
}

/* A session holds nobody but the offspring of its founder. So does a group, unless it is the
 * root's: in `train | tee log` the shell puts a stranger there. */
static bool is_founder(const struct afz_member *m)
{
        return m->session == m->pid || (m->pgrp == m->pid && m->depth > 0);
}

static void note_founder(struct afz_tree *t, const struct afz_member *m)
{
        if (t->root == 0 || !is_founder(m) || afz_map_put(t->founder, m->pid, 0) == 0)
                return;
        /* Full of those that died long ago: the living count more. */
        afz_map_clear(t->founder);
        for (size_t i = 0; i < t->slots; i++)
                if (t->member[i].pid != 0 && is_founder(&t->member[i]))
                        (void)afz_map_put(t->founder, t->member[i].pid, 0);
}

static void join(struct afz_tree *t, const struct candidate *c, uint32_t depth, bool orphan)
{
        size_t i = free_slot(t);
        if (i == t->max) {
                t->dropped++;
                return;
        }
        t->member[i] = (struct afz_member){
                .pid = c->pid,
                .start_ticks = c->start_ticks,
                .inode = c->inode,
                .ppid = c->ppid,
                .pgrp = c->pgrp,
                .session = c->session,
                .depth = depth,
                .orphan = orphan,
                .fresh = true,
        };
        t->count++;
        (void)afz_map_put(t->index, c->pid, i);
        note_founder(t, &t->member[i]);
}

/* Takes the candidate in if, given the members so far, it belongs to the job. */
static bool adopt_one(struct afz_tree *t, const struct candidate *c)
{
        size_t parent;
        uint64_t founder;
        if (c->pid == t->root && !t->root_seen)
                join(t, c, 0, false);
        else if (afz_tree_find(t, c->ppid, &parent))
                join(t, c, t->member[parent].depth + 1, false);
        else if (t->root == 0 && !c->kernel_thread)
                join(t, c, 0, false);
        else if (afz_map_get(t->founder, c->session, &founder) ||
                 afz_map_get(t->founder, c->pgrp, &founder))
                join(t, c, 1, true);
        else
                return false;
        t->root_seen |= c->pid == t->root;
        return true;
}

static void note_candidate(struct afz_tree *t, uint64_t pid, uint64_t inode)
{
        char buf[AFZ_PROC_STAT_CAP];
        struct afz_proc_stat st;
        if (t->candidates == t->max_candidates || afz_proc_stat_read(t->env, pid, buf, &st) < 0)
                return; /* vanished, or unreadable: asked again at the next look */
        /* The kernel gives a number out again only when no session or group has it any more: what
         * a dead member founded under this number is over. */
        (void)afz_map_remove(t->founder, pid);
        t->candidate[t->candidates++] = (struct candidate){
                .pid = pid,
                .inode = inode,
                .ppid = st.ppid,
                .pgrp = st.pgrp,
                .session = st.session,
                .start_ticks = st.start_ticks,
                .kernel_thread = (st.flags & AFZ_PF_KTHREAD) != 0,
        };
}

/* Whether the member still has its pid, though the folder is another: the kernel may only have
 * forgotten the inode. What cannot be read is not taken for dead. */
static bool is_same(struct afz_tree *t, struct afz_member *m, uint64_t inode)
{
        char buf[AFZ_PROC_STAT_CAP];
        struct afz_proc_stat st;
        int r = afz_proc_stat_read(t->env, m->pid, buf, &st);
        if (r == -ESRCH || (r == 0 && st.start_ticks != m->start_ticks))
                return false;
        if (r == 0)
                m->inode = inode;
        return true;
}

/* Lists /proc and reads those that are neither members nor known strangers. */
static int collect(struct afz_tree *t)
{
        int r = afz_dir_rewind(&t->proc);
        t->candidates = 0;
        while (r >= 0 && (r = afz_dir_next(&t->proc)) > 0) {
                uint64_t pid, known;
                if (afz_dir_name_u64(&t->proc, &pid) < 0)
                        continue;
                if (afz_map_get(t->index, pid, &known)) {
                        struct afz_member *m = &t->member[known];
                        if (m->inode == t->proc.inode || is_same(t, m, t->proc.inode))
                                continue;
                        afz_tree_lost(t, known);
                }
                if (afz_map_get(t->stranger, pid, &known) && known == t->proc.inode)
                        continue;
                note_candidate(t, pid, t->proc.inode);
        }
        return r;
}

/* Full of those that died long ago, it is begun anew: the living are asked once more. */
static void note_stranger(struct afz_tree *t, const struct candidate *c)
{
        if (afz_map_put(t->stranger, c->pid, c->inode) == 0)
                return;
        afz_map_clear(t->stranger);
        (void)afz_map_put(t->stranger, c->pid, c->inode);
}

/* Takes in candidates until none follows: a chain of three may have been born since the last look,
 * and after a wrap of pids a child's number can be smaller than its parent's. */
static void adopt(struct afz_tree *t)
{
        for (bool more = true; more;) {
                more = false;
                for (size_t i = 0; i < t->candidates; i++) {
                        struct candidate *c = &t->candidate[i];
                        if (!c->taken && adopt_one(t, c))
                                c->taken = more = true;
                }
        }
        for (size_t i = 0; i < t->candidates; i++)
                if (!t->candidate[i].taken)
                        note_stranger(t, &t->candidate[i]);
}

/* The pid that the kernel gave out last: the fifth word of /proc/loadavg. */
static int read_newest_pid(struct afz_tree *t, uint64_t *ret)
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

static void sweep(struct afz_tree *t)
{
        for (size_t i = 0; i < t->slots; i++) {
                struct afz_member *m = &t->member[i];
                m->fresh = false;
                if (m->pid == 0)
                        continue;
                if (!m->gone) {
                        note_founder(t, m); /* of a session of its own, perhaps, by now */
                        continue;
                }
                m->pid = 0;
                t->holes++;
        }
        /* Keep it dense: slots at the end that are free are given back. */
        while (t->slots > 0 && t->member[t->slots - 1].pid == 0) {
                t->slots--;
                t->holes--;
        }
}

static void rest(struct afz_tree *t, uint64_t start_ns)
{
        uint64_t end_ns = afz_env_now(t->env);
        uint64_t rest_ns = end_ns > start_ns ? (end_ns - start_ns) * look.share : 0;
        t->look_next_ns = end_ns + (rest_ns < look.longest_ns ? rest_ns : look.longest_ns);
}

int afz_tree_update(struct afz_tree *t)
{
        uint64_t newest = 0, start_ns = afz_env_now(t->env);
        sweep(t);
        /* A clock that jumped back must not keep us from looking. */
        if (start_ns < t->look_next_ns && t->look_next_ns - start_ns <= look.longest_ns)
                return 0;
        int known = read_newest_pid(t, &newest);
        bool changed = known < 0 || newest != t->newest_pid;
        if (!changed && !t->look_again)
                return 0;
        /* What was started while we list may be missed: the number was read before the list, so
         * that the next look then sees a change. */
        int r = collect(t);
        if (r < 0)
                return r;
        adopt(t);
        t->newest_pid = known == 0 ? newest : 0;
        t->look_again = changed;
        rest(t, start_ns);
        return 0;
}

int afz_tree_new(const struct afz_env *env, uint64_t root, size_t max, struct afz_tree **ret)
{
        struct afz_tree *t = calloc(1, sizeof *t + max * sizeof t->member[0]);
        if (!t)
                return -ENOMEM;
        *t = (struct afz_tree){
                .env = env, .root = root, .max = max, .max_candidates = MAX_STRANGERS};
        t->proc.fd = -1;
        t->loadavg_fd = afz_env_open(env, AFZ_ROOT_PROC, "loadavg", 0);
        int r = afz_dir_open(&t->proc, env, AFZ_ROOT_PROC, ".");
        if (r >= 0)
                r = afz_map_new(max, &t->index);
        if (r >= 0)
                r = afz_map_new(MAX_STRANGERS, &t->stranger);
        if (r >= 0)
                r = afz_map_new(max, &t->founder);
        if (r >= 0) {
                t->candidate = calloc(MAX_STRANGERS, sizeof t->candidate[0]);
                r = t->candidate ? afz_tree_update(t) : -ENOMEM;
        }
        size_t index;
        if (r >= 0 && root != 0 && !afz_tree_find(t, root, &index))
                r = -ESRCH;
        if (r < 0) {
                afz_tree_free(t);
                return r;
        }
        *ret = t;
        return 0;
}

void afz_tree_free(struct afz_tree *t)
{
        if (!t)
                return;
        if (t->loadavg_fd >= 0)
                close(t->loadavg_fd);
        afz_dir_close(&t->proc);
        afz_map_free(t->index);
        afz_map_free(t->stranger);
        afz_map_free(t->founder);
        free(t->candidate);
        free(t);
}

size_t afz_tree_slots(const struct afz_tree *t)
{
        return t->slots;
}

struct afz_member *afz_tree_at(struct afz_tree *t, size_t index)
{
        return &t->member[index];
}

size_t afz_tree_count(const struct afz_tree *t)
{
        return t->count;
}

bool afz_tree_find(const struct afz_tree *t, uint64_t pid, size_t *ret_index)
{
        uint64_t i;
        if (!afz_map_get(t->index, pid, &i))
                return false;
        *ret_index = (size_t)i;
        return true;
}

void afz_tree_lost(struct afz_tree *t, size_t index)
{
        struct afz_member *m = &t->member[index];
        if (m->pid == 0 || m->gone)
                return;
        m->gone = true;
        t->count--;
        uint64_t i;
        if (afz_map_get(t->index, m->pid, &i) && i == index)
                (void)afz_map_remove(t->index, m->pid);
}

uint64_t afz_tree_dropped(const struct afz_tree *t)
{
        return t->dropped;
}
