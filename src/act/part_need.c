#include "part_need.h"

#include <errno.h>
#include <stdio.h>

#include "cgroup_walk.h"
#include "count_of.h"
#include "proc_read.h"
#include "tree_need.h"

/* More than a notebook starts; those beyond count as if they shared nothing. */
enum { PROCESSES = 128 };

struct process {
        uint64_t pid, ppid;
        bool inherits;
        struct afz_need_proc need;
};

struct part {
        const struct afz_env *env;
        unsigned n;
        uint64_t beyond_bytes;
        struct process process[PROCESSES];
};

static void take_figure(void *ctx, int id, uint64_t bytes)
{
        struct afz_need_proc *need = ctx;
        *(id == 0 ? &need->anon_bytes : &need->swap_bytes) = bytes;
}

static int take_in(void *ctx, pid_t pid)
{
        static const struct afz_key keys[] = {{"RssAnon", 0, 0}, {"VmSwap", 1, 0}};
        struct part *part = ctx;
        struct process p = {.pid = (uint64_t)pid};
        struct afz_proc_stat stat;
        struct afz_span text;
        char path[32], buf[8192];
        if (afz_proc_stat_read(part->env, p.pid, buf, &stat) < 0)
                return 0;
        p.ppid = stat.ppid;
        p.inherits = (stat.flags & AFZ_PF_FORKNOEXEC) != 0;
        snprintf(path, sizeof path, "%d/status", (int)pid);
        if (afz_env_read_record(part->env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text) < 0)
                return 0;
        afz_span_each_key(text, keys, AFZ_COUNT_OF(keys), take_figure, &p.need);
        if (part->n < PROCESSES)
                part->process[part->n++] = p;
        else
                part->beyond_bytes += p.need.anon_bytes + p.need.swap_bytes;
        return 0;
}

static const struct process *find(const struct part *part, uint64_t pid)
{
        for (unsigned i = 0; i < part->n; i++)
                if (part->process[i].pid == pid)
                        return &part->process[i];
        return NULL;
}

int afz_part_need(const struct afz_env *env, int dir_fd, uint64_t *ret_need_bytes)
{
        struct part part = {.env = env};
        int r = afz_cgroup_each_pid(dir_fd, take_in, &part);
        if (r < 0)
                return r;
        if (part.n == 0)
                return -ESRCH;
        uint64_t sum = part.beyond_bytes;
        for (unsigned i = 0; i < part.n; i++) {
                struct process *p = &part.process[i];
                const struct process *parent = find(&part, p->ppid);
                uint64_t held = parent ? parent->need.anon_bytes + parent->need.swap_bytes : 0;
                afz_need_born(&p->need, p->inherits && parent, held);
                sum += afz_need_own(&p->need);
        }
        *ret_need_bytes = sum;
        return 0;
}
