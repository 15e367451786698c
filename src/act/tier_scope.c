/* Tier scope: a cgroup that the systemd manager makes for us and leaves to us. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bus.h"
#include "cgroup2_hold.h"
#include "cgroup_node.h"
#include "count_of.h"
#include "tier_scope.h"

static void explain(int err, bool system, char *why)
{
        const char *who = system ? "systemd manager" : "systemd user manager";
        switch (err) {
        case -ENODATA:
                snprintf(why, AFZ_HOLD_WHY_CAP, "libsystemd is not installed");
                break;
        case -ETIMEDOUT:
                snprintf(why, AFZ_HOLD_WHY_CAP, "the %s did not answer in time", who);
                break;
        case -ENOENT:
        case -ECONNREFUSED:
        case -ENOMEDIUM:
        case -EHOSTUNREACH:
                snprintf(why, AFZ_HOLD_WHY_CAP, "no %s answers", who);
                break;
        default:
                snprintf(why, AFZ_HOLD_WHY_CAP, "the %s refused a scope: %s", who, strerror(-err));
        }
}

/* The top is a container's own: a scope stays below it. */
static bool has_limit(const struct afz_env *env, const struct afz_cgroup_path *path)
{
        struct afz_cgroup_path at = *path, up = *path;
        bool bounds = false;
        while (!bounds && afz_cgroup_path_up(&up)) {
                struct afz_cgroup_node node;
                afz_cgroup_node_open(&node, env, &at, true);
                bounds = afz_cgroup_node_bounds(&node);
                afz_cgroup_node_close(&node);
                at = up;
        }
        return bounds;
}

bool afz_scope_takes_out(const struct afz_env *env, pid_t pid, char *why)
{
        static const char *const batch[] = {"slurm", "pbs", "htcondor", "sge_execd"};
        const char *reason = NULL;
        struct afz_cgroup_path path;
        if (afz_cgroup_path_of(env, (uint64_t)pid, &path) < 0 || path.version != 2 ||
            strncmp(path.name, "/user.slice/", strlen("/user.slice/")) == 0)
                return false;
        for (size_t i = 0; i < AFZ_COUNT_OF(batch) && !reason; i++)
                if (strstr(path.name, batch[i]))
                        reason = "a batch job's";
        if (!reason && has_limit(env, &path))
                reason = "one with a limit";
        if (reason)
                snprintf(why, AFZ_HOLD_WHY_CAP, "it is in %.60s, %s, which it would leave",
                         path.name, reason);
        return reason != NULL;
}

/* Where the process is now; the proof that the manager did as it was asked. */
static int find_base(const struct afz_env *env, pid_t pid, const char *unit,
                     struct afz_cgroup_path *ret)
{
        int r = afz_cgroup_path_of(env, (uint64_t)pid, ret);
        if (r < 0)
                return r;
        struct afz_span last = afz_span_base_name(afz_span_str(ret->dir[AFZ_CG_MEMORY]));
        return afz_span_eq(last, unit) ? 0 : -EIO;
}

/* Only the manager may take processes out of a user's session: it is given all of an adopted job
 * at once. More than these stay outside. */
#define PIDS_MAX 2048

struct pids {
        unsigned count;
        pid_t pid[PIDS_MAX];
};

static int add(void *ctx, pid_t pid)
{
        struct pids *p = ctx;
        if (p->count < PIDS_MAX)
                p->pid[p->count++] = pid;
        return 0;
}

static int ask(const struct afz_env *env, const struct afz_hold_plan *plan, const char *unit,
               pid_t pid, pid_t keeper, char *why)
{
        bool system = geteuid() == 0;
        struct pids pids = {.count = 1, .pid = {pid}};
        if (keeper > 0)
                add(&pids, keeper);
        if (plan->adopted)
                (void)afz_cgroup2_each_below(env, pid, add, &pids);
        const struct afz_bus_scope scope = {.name = unit,
                                            .description = plan->what,
                                            .pid = pids.pid,
                                            .pids = pids.count,
                                            .weight = plan->weight};
        int r = afz_bus_make_scope(system, &scope);
        if (r < 0)
                explain(r, system, why);
        return r;
}

static int scope_open(const struct afz_env *env, const struct afz_hold_plan *plan, pid_t pid,
                      pid_t keeper, void **ret, char *why)
{
        struct afz_cgroup_path path;
        struct afz_cgroup2_hold *hold;
        char unit[80];
        /* A manager of cgroup v1 makes scopes too, but none that can be limited by us. */
        int r = afz_cgroup_path_of(env, 0, &path);
        if (r < 0 || path.version != 2) {
                snprintf(why, AFZ_HOLD_WHY_CAP, "the memory controller is not on cgroup v2");
                return -ENODATA;
        }
        if (afz_scope_takes_out(env, pid, why))
                return -EPERM;
        r = afz_path(unit, sizeof unit, "antifreeze-%s.scope", plan->id);
        if (r < 0)
                return r;
        struct afz_cgroup2_base base = {.path = &path, .origin_fd = afz_cgroup2_origin(env, pid)};
        r = ask(env, plan, unit, pid, keeper, why);
        if (r >= 0 && (r = find_base(env, pid, unit, &path)) < 0)
                snprintf(why, AFZ_HOLD_WHY_CAP, "the manager made a scope without the job");
        if (r < 0) {
                if (base.origin_fd >= 0)
                        close(base.origin_fd);
                return r;
        }
        r = afz_cgroup2_hold_new(env, plan, &base, pid, keeper, &hold, why);
        if (r >= 0)
                *ret = hold;
        return r;
}

const struct afz_hold_tier afz_hold_scope = {
        .tier = AFZ_TIER_SCOPE,
        .open = scope_open,
        AFZ_CGROUP2_ROW,
};
