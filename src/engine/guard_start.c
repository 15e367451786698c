#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "count_of.h"
#include "guard_state.h"
#include "pidfd.h"
#include "role.h"
#include "roster.h"

static const struct {
        int oom_score_adj; /* should the kernel have to choose all the same, it takes the job */
        int nice;          /* tier none has no weights; 5 leaves a busy desktop 3 of 4 parts */
        uint32_t weight;   /* of CPU and I/O, where others have 100 */
        /* A fork storm ends here. Threads count: loader workers times BLAS threads, each of which
         * people set to the number of cores. */
        uint64_t tasks_per_core, tasks_least;
        /* Where no cgroup holds the storm's memory, it ends at what the budget has room for: a
         * forked interpreter copies about so much at once, and its stacks and page tables are in
         * nobody's need. */
        uint64_t fork_bytes, forks_least;
} hold_setting = {
        .oom_score_adj = 800,
        .nice = 5,
        .weight = 50,
        .tasks_per_core = 256,
        .tasks_least = 2048,
        .fork_bytes = UINT64_C(1) << 20,
        .forks_least = 128,
};

static uint64_t most_tasks(void)
{
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        uint64_t tasks = hold_setting.tasks_per_core * (uint64_t)(cores > 0 ? cores : 1);
        return tasks > hold_setting.tasks_least ? tasks : hold_setting.tasks_least;
}

/* Tier none sees no more than AFZ_ROSTER_MAX; a storm must show before that. */
#define MOST_SEEN (AFZ_ROSTER_MAX * 3 / 4)

static uint64_t most_processes(const struct afz_guard *g)
{
        uint64_t most = most_tasks();
        uint64_t room = hold_setting.forks_least + g->budget.ram_bytes / hold_setting.fork_bytes;
        if (g->hold.row->tier != AFZ_TIER_NONE)
                return most;
        room = room < MOST_SEEN ? room : MOST_SEEN;
        return room < most ? room : most;
}

/* All tasks of the machine: the fourth word of /proc/loadavg is "running/all". */
static int count_tasks(const struct afz_env *env, uint64_t *ret)
{
        char buf[128];
        struct afz_span text, word;
        int r = afz_env_read_record(env, AFZ_ROOT_PROC, "loadavg", buf, sizeof buf, &text);
        for (int i = 0; r == 0 && i < 3; i++)
                r = afz_span_take_word(&text, &word);
        if (r == 0)
                r = afz_span_take_until(&text, '/', &word);
        return r < 0 ? r : afz_span_take_u64(&text, ret);
}

/* A storm outruns who only looks. The kernel counts all tasks of the user, but refuses only those
 * whose own limit says so; twice what the ladder allows leaves it the first word. Root is not bound
 * by it. The job may raise it again. */
static void bound_forks(const struct afz_guard *g)
{
        struct rlimit limit;
        uint64_t now;
        if (g->hold.row->tier != AFZ_TIER_NONE || g->order->policy == AFZ_POLICY_WATCH ||
            g->order->attach || count_tasks(&g->env, &now) < 0 ||
            prlimit(g->spawn.pid, RLIMIT_NPROC, NULL, &limit) < 0)
                return;
        now += 2 * most_processes(g);
        if (limit.rlim_cur <= now)
                return;
        limit.rlim_cur = now;
        (void)prlimit(g->spawn.pid, RLIMIT_NPROC, &limit, NULL);
}

/* CMD's arguments where {batch} is filled in; the kernel itself takes far more, people do not. */
#define MAX_ARGS 1024

/* A server's own jobs may be stopped alone, so the kernel must not kill all for one. */
static bool is_server(char *const *argv)
{
        char line[512];
        size_t n = 0;
        for (int i = 0; argv && argv[i] && n < sizeof line; i++) {
                int w = snprintf(line + n, sizeof line - n, "%s", argv[i]);
                n += (size_t)w + 1;
        }
        if (n > sizeof line)
                n = sizeof line;
        struct afz_role_clues clues = {.cmdline = {line, n}, .is_root = 1};
        return argv && afz_role_guess(&clues).role == AFZ_ROLE_SERVER;
}

static int spawn(struct afz_guard *g)
{
        const struct afz_guard_order *order = g->order;
        const struct afz_spawn_limit limit = {RLIMIT_NOFILE, order->files};
        const char *variables[6 + AFZ_GUARD_AGENT_VARIABLES] = {g->socket_variable,
                                                                g->run_variable};
        const char *filled[MAX_ARGS];
        char text[8192];
        char *const *argv = order->argv;
        if (g->plan.batch > 0) {
                int r = afz_restart_expand((const char *const *)order->argv, &g->plan, filled,
                                           AFZ_COUNT_OF(filled), text, sizeof text);
                if (r < 0)
                        return r;
                argv = (char *const *)filled;
        }
        unsigned n = 2 + afz_guard_agent_environment(g, variables + 2);
        if (g->keeper) {
                variables[n++] = g->probe_socket;
                variables[n++] = g->probe_preload;
                variables[n++] = g->probe_sanitizer;
        }
        struct afz_spawn_plan plan = {
                .argv = argv,
                .mask = &order->mask,
                .ignore_sigchld = order->ignore_sigchld,
                .oom_score_adj = order->policy == AFZ_POLICY_WATCH ? 0 : hold_setting.oom_score_adj,
                .nice = order->policy == AFZ_POLICY_WATCH ? 0 : hold_setting.nice,
                .environ_add = variables,
                .limit = &limit,
                .limits = 1,
                .looker = afz_scout_pid(g->scout),
        };
        afz_guard_signals_forget(g);
        return afz_spawn_start(&plan, &g->spawn);
}

/* Whether we are a part of what hangs below the process. */
static bool is_above_us(const struct afz_guard *g, pid_t pid)
{
        uint64_t at = g->env.self_pid;
        struct afz_proc_stat stat;
        char buf[AFZ_PROC_STAT_CAP];
        while (at > 1 && at != (uint64_t)pid && afz_proc_stat_read(&g->env, at, buf, &stat) == 0)
                at = stat.ppid;
        return at == (uint64_t)pid;
}

/* -EPERM: it is somebody else's, and could only be watched; -EDEADLK: it would be our own end. */
static int adopt(struct afz_guard *g)
{
        pid_t pid = g->order->attach;
        int fd = afz_pidfd_open(pid);
        if (fd < 0 && fd != -ENOSYS)
                return fd;
        int r = fd >= 0 ? afz_pidfd_signal(fd, 0) : kill(pid, 0) < 0 ? -errno : 0;
        if (r == 0 && is_above_us(g, pid))
                r = -EDEADLK;
        if (r < 0) {
                if (fd >= 0)
                        close(fd);
                return r;
        }
        fd = fd >= 0 ? fd : -1;
        g->spawn = (struct afz_spawn){
                .pid = g->order->attach, .pidfd = fd, .go_fd = -1, .fail_fd = -1};
        return 0;
}

static void fail_adopt(struct afz_guard *g, int err)
{
        int pid = (int)g->order->attach;
        if (err == -EPERM)
                afz_guard_fail(g, 125,
                               "attach: process %d belongs to another user: only that one, or "
                               "root, can hold it",
                               pid);
        else if (err == -EDEADLK)
                afz_guard_fail(g, 125,
                               "attach: process %d is what started this command, which would hold "
                               "itself: do it from another terminal",
                               pid);
        else
                afz_guard_fail(g, 125, "attach: process %d: %s", pid, strerror(-err));
}

static int contain(struct afz_guard *g, char *why, size_t why_cap)
{
        const struct afz_guard_order *order = g->order;
        bool watch = order->policy == AFZ_POLICY_WATCH;
        struct afz_hold_plan plan = {
                .id = g->id,
                .what = g->run->page->cmd,
                .budget = g->budget,
                .processes = most_tasks(),
                .weight = hold_setting.weight,
                .adopted = order->attach != 0,
                .whole = !g->server,
                .place = g->run->page->place,
        };
        int r = afz_hold_open(&g->env, &plan, g->spawn.pid, afz_scout_pid(g->scout),
                              watch ? AFZ_TIER_NONE : order->best_tier, &g->hold, why, why_cap);
        if (r < 0)
                return r;
        struct afz_run_page *page = g->run->page;
        page->tier = g->hold.row->tier;
        page->root_pid = g->spawn.pid;
        page->root_end = 0;
        g->hold.row->place(g->hold.state, page->place);
        page->place[sizeof page->place - 1] = '\0';
        return 0;
}

static void climb_from_below(struct afz_guard *g)
{
        struct afz_ladder_setup setup = {
                .policy = g->order->policy,
                .lines = g->lines,
                .tier = g->hold.row->tier,
                .grace_ns = g->order->grace_ns,
                .can_checkpoint = afz_checkpoint_can(&g->checkpoint),
                .can_shrink = g->control && afz_control_can_shrink(g->control),
                .can_brake = true,
                .can_picture = g->recorder && g->order->policy != AFZ_POLICY_WATCH,
                .parts_alone = g->server,
                .processes_max = most_processes(g),
        };
        afz_ladder_init(&g->ladder, &setup);
}

/* Our own descriptors of the caller's terminal or pipes: only CMD is to hold them, so that who
 * reads a pipe sees its end when CMD ends. */
void afz_guard_let_go_of_stdio(void)
{
        int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int i = 0; fd >= 0 && i < 3; i++)
                (void)dup2(fd, i);
        if (fd > 2)
                close(fd);
}

/* The first of that name in a folder of PATH: the one that exec has tried. False: there is none. */
static bool find_in_path(const char *name, char *buf, size_t cap)
{
        const char *path = getenv("PATH");
        struct stat st;
        for (path = path ? path : "/bin:/usr/bin"; path; path = strchr(path, ':')) {
                path += *path == ':';
                int n = (int)strcspn(path, ":");
                int len = snprintf(buf, cap, "%.*s%s%s", n, path, n > 0 ? "/" : "./", name);
                if (len > 0 && (size_t)len < cap && stat(buf, &st) == 0)
                        return true;
        }
        return false;
}

/* What else is to be said of a program that is there and cannot be run. */
static const char *exec_advice(const char *file, int err)
{
        struct stat st;
        if (stat(file, &st) < 0)
                return "";
        if (err == -ENOENT)
                return ": the interpreter that its first line names is not there";
        if (err == -EACCES && S_ISDIR(st.st_mode))
                return ": it is a folder";
        if (err == -EACCES && !(st.st_mode & 0111))
                return "; chmod +x makes it a program, or put its interpreter in front (python "
                       "...)";
        return "";
}

static int fail_exec(struct afz_guard *g, int err)
{
        const char *name = g->order->argv[0];
        char found[AFZ_RUN_PATH_CAP];
        bool searched = !strchr(name, '/');
        if (searched && find_in_path(name, found, sizeof found))
                name = found;
        if (searched && name != found && err == -ENOENT)
                afz_guard_fail(g, 127,
                               "%s: command not found; it is in no folder of PATH (is the virtual "
                               "environment active?)",
                               name);
        else
                afz_guard_fail(g, err == -ENOENT ? 127 : 126, "%s: %s%s", name, strerror(-err),
                               exec_advice(name, err));
        return err;
}

int afz_guard_start(struct afz_guard *g)
{
        char why[AFZ_HOLD_WHY_CAP * AFZ_TIER_COUNT];
        const struct afz_guard_order *order = g->order;
        if (g->plan.attempt == 0)
                snprintf(g->id, sizeof g->id, "%s", g->run->page->id);
        else
                snprintf(g->id, sizeof g->id, "%s-%u", g->run->page->id, g->plan.attempt + 1);
        g->server = is_server(order->argv);
        int r = order->attach ? adopt(g) : spawn(g);
        if (r < 0) {
                if (order->attach)
                        fail_adopt(g, r);
                else
                        afz_guard_fail(g, 125, "cannot fork: %s", strerror(-r));
                return r;
        }
        if (order->restarts == 0)
                afz_guard_let_go_of_stdio();
        r = contain(g, why, sizeof why);
        if (r < 0) {
                afz_guard_fail(g, 125, "cannot watch process %d: %s", (int)g->spawn.pid,
                               strerror(-r));
                afz_spawn_done(&g->spawn);
                return r;
        }
        bound_forks(g);
        climb_from_below(g);
        if (order->dry_run) {
                afz_guard_say_started(g, why);
                return 0;
        }
        if (!order->attach && (r = afz_spawn_go(&g->spawn)) < 0)
                return fail_exec(g, r);
        afz_guard_record_attempt(g);
        afz_guard_lock_memory(g); /* a millisecond or two, which CMD need not wait for */
        if (g->plan.attempt == 0)
                afz_guard_say_started(g, why);
        afz_checkpoint_job(&g->checkpoint, g->spawn.pid);
        (void)afz_scout_watch(g->scout, g->spawn.pid);
        return 0;
}

/* We are a few MiB. More than this is a sanitizer's shadow, terabytes that root could lock. */
#define MOST_LOCKED_BYTES (UINT64_C(256) << 20)

static uint64_t own_address_space(const struct afz_guard *g)
{
        char buf[128];
        struct afz_span text;
        struct afz_proc_statm statm;
        if (afz_env_read_record(&g->env, AFZ_ROOT_PROC, "self/statm", buf, sizeof buf, &text) < 0 ||
            afz_proc_statm_parse(text, &statm) < 0)
                return UINT64_MAX;
        return statm.size_pages * (uint64_t)g->env.page_bytes;
}

/* All of it if it may be locked (an ordinary user: 8 MiB); if not, we go on without. */
void afz_guard_lock_memory(struct afz_guard *g)
{
        if (own_address_space(g) <= MOST_LOCKED_BYTES && mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
                (void)mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
        struct sched_param first = {.sched_priority = 1};
        if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first) == 0)
                return;
        for (int nice = -20; nice < 0; nice++)
                if (setpriority(PRIO_PROCESS, 0, nice) == 0)
                        return;
}
