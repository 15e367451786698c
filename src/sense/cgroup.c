/* The job's own cgroup, and those above it that bound it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup_node.h"
#include "sense.h"

#define MAX_LEVELS 16

/* A job can be moved (into a scope, say): its place is looked up again this often. */
#define PLACE_NS UINT64_C(1000000000)

struct level {
        struct afz_cgroup_node node;
        char name[AFZ_CGROUP_PATH_MAX];
};

struct state {
        const struct afz_env *env;
        uint64_t pid;
        uint64_t place_next_ns;
        uint64_t moves; /* places it had before this one */
        bool stale;     /* the files we hold are of a cgroup that was removed */
        struct afz_cgroup_path path;
        size_t levels;
        struct level level[MAX_LEVELS];
};

static void leave(struct state *st)
{
        for (size_t i = 0; i < st->levels; i++)
                afz_cgroup_node_close(&st->level[i].node);
        st->levels = 0;
}

/* Opens the cgroup and everything above it. */
static void enter(struct state *st, const struct afz_cgroup_path *path)
{
        struct afz_cgroup_path at = *path;
        leave(st);
        st->path = *path;
        do {
                struct level *level = &st->level[st->levels++];
                afz_cgroup_node_open(&level->node, st->env, &at, false);
                afz_span_copy(afz_span_str(at.name), level->name, sizeof level->name);
        } while (st->levels < MAX_LEVELS && afz_cgroup_path_up(&at));
}

static int look_up(struct state *st)
{
        struct afz_cgroup_path path;
        int r = afz_cgroup_path_of(st->env, st->pid, &path);
        if (r < 0)
                return r;
        if (st->levels > 0 && !st->stale && strcmp(path.name, st->path.name) == 0)
                return 0;
        /* Also under the same name it is another one, with counters of its own. */
        if (st->levels > 0)
                st->moves++;
        st->stale = false;
        enter(st, &path);
        return 0;
}

static void cgroup_close(void *p)
{
        struct state *st = p;
        if (st)
                leave(st);
        free(st);
}

static int cgroup_open(const struct afz_env *env, const struct afz_target *target, void **ret_state)
{
        struct state *st = calloc(1, sizeof *st);
        if (!st)
                return -ENOMEM;
        st->env = env;
        st->pid = target->pid;
        int r = look_up(st);
        if (r < 0) {
                cgroup_close(st);
                return r;
        }
        *ret_state = st;
        return 0;
}

static int cgroup_read(void *p, struct afz_batch *out)
{
        struct state *st = p;
        if (out->t_ns >= st->place_next_ns) {
                int r = look_up(st);
                if (r < 0)
                        return r;
                st->place_next_ns = out->t_ns + PLACE_NS;
        }
        for (size_t i = 0; i < st->levels; i++) {
                const struct afz_cgroup_node *node = &st->level[i].node;
                /* Of those above, only the ones that bound the job say something about it. */
                if (i > 0 && !afz_cgroup_node_bounds(node))
                        continue;
                struct afz_sample *s =
                        afz_batch_add(out, (struct afz_subject){AFZ_KIND_CGROUP, i, st->moves},
                                      st->level[i].name);
                if (!s)
                        break;
                if (afz_cgroup_node_read(node, s) < 0) { /* it went away under us: look again */
                        out->count--;
                        st->stale = true;
                        st->place_next_ns = 0;
                        continue;
                }
                afz_sample_set_u64(s, AFZ_CGROUP_LEVEL, i);
        }
        return 0;
}

const struct afz_sense afz_sense_cgroup = {
        .name = "cgroup",
        .what = "the job's cgroup and the limits above it",
        .every_ns = 1000000000, /* 1 s: memory.stat makes the kernel add up every core's share */
        .max_samples = MAX_LEVELS,
        .absent = "no cgroup with a memory controller: limits of containers cannot be seen",
        .denied = "/proc/PID/cgroup may not be read",
        .open = cgroup_open,
        .read = cgroup_read,
        .close = cgroup_close,
};
