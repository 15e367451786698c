#include "guard.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock.h"
#include "guard_state.h"
#include "pidfd.h"
#include "sharing.h"

#define MS AFZ_NS_PER_MS

static const struct {
        uint64_t settle_ns; /* what CMD leaves behind may end by itself, as resource trackers do */
        uint64_t gone_ns;   /* killed processes are gone in some ms, unless the kernel holds them */
        uint64_t look_ns;   /* between looks while we wait for an end */
        uint64_t dying_ns;  /* files that were closed so shortly before an end were closed by it */
        uint64_t sweep_ns;  /* all processes are asked what they hold: 50 us each */
        uint64_t recorder_ns; /* the recording is closed in 1 ms, unless its disk is behind */
} wait_for = {
        .settle_ns = 200 * MS,
        .gone_ns = 5000 * MS,
        .look_ns = 5 * MS,
        .dying_ns = 1000 * MS,
        .sweep_ns = 5000 * MS,
        .recorder_ns = 300 * MS,
};

static int set_from_outside(void *ctx, int which, uint64_t bytes, char *ret_text, size_t cap)
{
        struct afz_guard *g = ctx;
        struct afz_budget next = g->budget;
        uint64_t need = 0;
        (void)afz_pulse_get(&g->pulse, AFZ_PULSE_NEED, &need);
        if (which == AFZ_CONTROL_SET_BUDGET) {
                if (bytes < need + need / 10) {
                        snprintf(ret_text, cap,
                                 "the job needs %.2f GB now: a budget below that and a tenth more "
                                 "would end it",
                                 (double)need / (1 << 30));
                        return -ERANGE;
                }
                next.ram_bytes = bytes;
                next.given = true;
        } else {
                next.swap_bytes = bytes;
        }
        afz_guard_set_budget(g, &next);
        if (g->budget.ram_bytes != next.ram_bytes || g->budget.swap_bytes != next.swap_bytes) {
                snprintf(ret_text, cap, "the kernel did not take the limit");
                return -EIO;
        }
        snprintf(ret_text, cap, "budget %llu swap %llu", (unsigned long long)next.ram_bytes,
                 (unsigned long long)next.swap_bytes);
        return 0;
}

static int tell_status(void *ctx, char *ret_text, size_t cap)
{
        const struct afz_guard *g = ctx;
        const struct afz_run_page *page = g->run->page;
        uint64_t need = 0, gpu = atomic_load(&page->gpu_peak_bytes);
        char gpu_peak[48] = "";
        (void)afz_pulse_get(&g->pulse, AFZ_PULSE_NEED, &need);
        if (gpu > 0)
                snprintf(gpu_peak, sizeof gpu_peak, "\"gpu_peak_bytes\":%llu,",
                         (unsigned long long)gpu);
        snprintf(ret_text, cap,
                 "{\"run\":\"%s\",\"tier\":\"%s\",\"need_bytes\":%llu,\"peak_bytes\":%llu,%s"
                 "\"budget_bytes\":%llu,\"swap_bytes\":%llu,\"braked\":%s}",
                 page->id, afz_tier_name(g->hold.row->tier), (unsigned long long)need,
                 (unsigned long long)atomic_load(&page->peak_bytes), gpu_peak,
                 (unsigned long long)g->budget.ram_bytes, (unsigned long long)g->budget.swap_bytes,
                 g->braked ? "true" : "false");
        return 0;
}

/* Whether a process is below the job's root, or was given to us when its parent died. */
static bool in_job(void *ctx, pid_t pid)
{
        const struct afz_guard *g = ctx;
        uint64_t at = (uint64_t)pid;
        for (int depth = 0; depth < 64 && at > 1; depth++) {
                struct afz_proc_stat stat;
                char buf[AFZ_PROC_STAT_CAP];
                if (at == (uint64_t)g->spawn.pid)
                        return true;
                if (afz_proc_stat_read(&g->env, at, buf, &stat) < 0)
                        return true; /* cannot be told */
                if (stat.ppid == g->env.self_pid)
                        return at != (uint64_t)afz_scout_pid(g->scout) &&
                               at != (uint64_t)afz_keeper_pid(g->keeper) &&
                               at != (uint64_t)afz_recorder_pid(g->recorder);
                at = stat.ppid;
        }
        return at > 1; /* so deep that it cannot be told */
}

static int open_all(struct afz_guard *g)
{
        const struct afz_guard_order *order = g->order;
        (void)prctl(PR_SET_NAME, AFZ_GUARD_NAME);
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        struct rlimit files = order->files;
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
        afz_guard_record_open(g); /* first, all: they shall carry nothing of what follows */
        int r = afz_scout_start_with(g->recorder, &g->scout);
        if (r < 0)
                return r;
        afz_guard_probe_open(g);
        r = afz_env_open_live(&g->env);
        if (r < 0)
                return r;
        r = afz_host_pulse_open(&g->env, &g->host);
        if (r < 0)
                return r;
        r = afz_guard_signals_open(g);
        if (r < 0)
                return r;
        /* Without a socket the job cannot be asked to save, and `set` cannot reach us; it is held
         * all the same. */
        struct afz_control_calls calls = {.set = set_from_outside,
                                          .status = tell_status,
                                          .is_job = in_job,
                                          .event = afz_guard_agent_event,
                                          .hello = afz_guard_agent_hello,
                                          .saved = afz_guard_agent_saved,
                                          .ctx = g};
        if (afz_control_new(g->run->socket, g->run->page->id, &calls, &g->control) < 0)
                g->control = NULL;
        snprintf(g->socket_variable, sizeof g->socket_variable, "ANTIFREEZE_SOCKET=%s",
                 g->control ? g->run->socket : "");
        snprintf(g->run_variable, sizeof g->run_variable, "ANTIFREEZE_RUN=%s", g->run->page->id);
        afz_guard_agent_open();
        struct afz_checkpoint_setup setup = {
                .control = g->control,
                .signal = order->checkpoint_signal,
                .command = order->checkpoint_cmd,
                .wait_ns = order->checkpoint_wait_ns,
        };
        (void)afz_checkpoint_init(&g->checkpoint, &setup);
        return 0;
}

static void wait_a_while(struct afz_guard *g)
{
        struct pollfd fds[4 + AFZ_CONTROL_POLLS];
        uint64_t now = afz_guard_now(g);
        uint64_t ns = g->wake_ns > now ? g->wake_ns - now : 0;
        size_t n = 0;
        fds[n++] = (struct pollfd){.fd = g->signal_fd, .events = POLLIN};
        fds[n++] = (struct pollfd){.fd = g->front_fd, .events = POLLIN};
        fds[n++] = (struct pollfd){.fd = g->order->attach && !g->root_ended ? g->spawn.pidfd : -1,
                                   .events = POLLIN};
        if (g->hold.row)
                fds[n++] = (struct pollfd){.fd = g->hold.row->oom_fd(g->hold.state),
                                           .events = POLLIN | POLLPRI};
        if (g->control)
                n += afz_control_poll(g->control, fds + n, sizeof fds / sizeof *fds - n);
        struct timespec ts = {.tv_sec = (time_t)(ns / AFZ_NS_PER_S),
                              .tv_nsec = (long)(ns % AFZ_NS_PER_S)};
        if (ppoll(fds, n, &ts, NULL) < 0)
                return;
        if (g->order->attach && fds[2].revents)
                g->root_ended = true;
        afz_guard_signals_turn(g);
        afz_guard_front_turn(g);
        if (g->control)
                afz_control_turn(g->control, afz_guard_now(g));
}

void afz_guard_wait(struct afz_guard *g, uint64_t until_ns)
{
        g->wake_ns = until_ns;
        wait_a_while(g);
}

/* Whether anything of the job lives; when we cannot tell, nothing does. */
static bool any_left(struct afz_guard *g)
{
        uint64_t n;
        struct afz_pulse pulse = {.t_ns = afz_guard_now(g)};
        if (g->hold.row->look(g->hold.state, &pulse) < 0)
                return false;
        if (afz_pulse_get(&pulse, AFZ_PULSE_PROCESSES, &n) && n > 0)
                return true;
        /* Tier none looks for newborns only now and then: here it has to be certain. */
        return g->hold.row->other(g->hold.state, g->spawn.pid) > 0;
}

static bool wait_until_gone(struct afz_guard *g, uint64_t ns, bool kill)
{
        uint64_t end = afz_guard_now(g) + ns;
        while (any_left(g)) {
                if (afz_guard_now(g) >= end)
                        return false;
                if (kill)
                        (void)g->hold.row->kill(g->hold.state);
                else
                        afz_guard_tick(g); /* what CMD left behind is held as CMD was */
                uint64_t next = afz_guard_now(g) + wait_for.look_ns;
                g->wake_ns = !kill && g->wake_ns < next ? g->wake_ns : next;
                wait_a_while(g);
        }
        return true;
}

/* What a job that we ended left in /dev/shm would go on costing memory. */
static void sweep_shm(struct afz_guard *g)
{
        const struct afz_scout_report *report = &g->report;
        uint64_t now = afz_guard_now(g), end = now + wait_for.sweep_ns;
        struct afz_shm_end how = {
                .asked_ns = g->asked_ns ? g->asked_ns : UINT64_MAX,
                .closed_ns = g->asked_ns ? g->asked_ns : now - wait_for.dying_ns,
        };
        if (!afz_scout_read(g->scout, &g->report) || report->shm.job_bytes == 0 ||
            afz_scout_sweep(g->scout, &how) < 0)
                return;
        while (!(afz_scout_read(g->scout, &g->report) && report->swept.done)) {
                if (afz_guard_now(g) >= end)
                        return;
                g->wake_ns = afz_guard_now(g) + wait_for.look_ns;
                wait_a_while(g);
        }
        if (report->swept.files > 0)
                afz_guard_say_swept(g);
}

/* A command that ended between two looks: what the kernel says of its largest process. */
static void note_short_peak(struct afz_guard *g)
{
        struct rusage all;
        struct afz_run_page *page = g->run->page;
        if (g->order->attach || atomic_load(&page->peak_bytes) > 0 ||
            getrusage(RUSAGE_CHILDREN, &all) < 0)
                return;
        atomic_store(&page->peak_bytes, (uint64_t)all.ru_maxrss * 1024);
}

/* From exec to CMD's end, or to the end of everything when it was we who ended it. Returns whether
 * something of the job is left. */
static bool hold_job(struct afz_guard *g)
{
        while (!g->root_ended && !g->detach) {
                afz_guard_tick(g);
                wait_a_while(g);
        }
        if (g->detach)
                return true;
        note_short_peak(g);
        afz_guard_look(g); /* the last: what the kernel killed stands in the counters now */
        afz_guard_release(g);
        g->recorded.next_ns = 0;
        afz_guard_record(g);
        bool ours = g->stop_asked || g->agent.gave_up || afz_guard_kernel_killed(g);
        bool gone = wait_until_gone(g, ours ? wait_for.gone_ns : wait_for.settle_ns, ours);
        if (gone)
                g->gone_ns = afz_guard_now(g);
        if (ours && gone)
                sweep_shm(g);
        return !gone;
}

/* The scout sits in the hold's cgroup, if it has one, and keeps it from being removed. */
static void end_attempt(struct afz_guard *g)
{
        afz_scout_stop(g->scout);
        g->scout = NULL;
        afz_spawn_done(&g->spawn); /* one that never ran is still in it, too */
        afz_hold_close(&g->hold);
}

/* Ends this attempt and makes ready for the next one. */
static bool try_again(struct afz_guard *g, bool left)
{
        if (!afz_guard_again(g, left))
                return false;
        end_attempt(g);
        if (afz_scout_start_with(g->recorder, &g->scout) < 0)
                return false;
        afz_guard_afresh(g);
        return true;
}

/* The last words; then, without the front (`run` ends when CMD ends), what is left is seen off. */
static void finish(struct afz_guard *g, bool left)
{
        struct afz_outcome outcome;
        bool ends = g->order->policy != AFZ_POLICY_WATCH && !g->detach;
        if (g->order->restarts > 0)
                afz_guard_let_go_of_stdio(); /* no attempt needs it any more */
        afz_keeper_dismiss(g->keeper);       /* so that nobody has to wait for them later */
        afz_scout_dismiss(g->scout);
        afz_guard_outcome(g, &outcome);
        if (left && !g->detach && g->hold.row)
                afz_guard_say_survivor(g, ends);
        afz_scout_await(g->scout); /* their last looks are to be in it */
        afz_keeper_await(g->keeper);
        afz_guard_probe_close(g);
        afz_recorder_stop(g->recorder, 0); /* it closes its file while we write ours */
        g->recorded.told = true;           /* its end is no trouble */
        (void)afz_run_write(g->run, &outcome);
        afz_recorder_stop(g->recorder, wait_for.recorder_ns);
        afz_guard_say_ended(g, &outcome);
        if (!left || g->detach)
                return;
        if (g->front_fd >= 0)
                close(g->front_fd);
        g->front_fd = -1;
        if (ends && !wait_until_gone(g, g->order->grace_ns, false))
                (void)wait_until_gone(g, wait_for.gone_ns, true);
}

static void close_all(struct afz_guard *g)
{
        end_attempt(g);
        afz_keeper_free(g->keeper);
        g->keeper = NULL;
        afz_recorder_free(g->recorder);
        g->recorder = NULL;
        afz_checkpoint_done(&g->checkpoint);
        afz_control_free(g->control);
        afz_host_pulse_close(&g->host);
        afz_run_done(g->run);
        if (g->front_fd >= 0) /* who waits for us need not wait for what others get */
                close(g->front_fd);
        g->front_fd = -1;
        (void)munlockall(); /* what follows allocates, and few may lock much */
        if (!g->order->dry_run)
                afz_sharing_again(&g->env);
        afz_env_done(&g->env);
}

int afz_guard_main(const struct afz_guard_order *order, struct afz_run *run, int fd)
{
        struct afz_guard g = {
                .order = order,
                .run = run,
                .front_fd = fd,
                .front_pidfd = afz_pidfd_open(getppid()),
                .signal_fd = -1,
                .budget = order->budget,
                .lines = afz_lines_of(&order->budget, order->ram_total_bytes),
        };
        run->page->front_pid = getppid();
        run->page->guard_pid = getpid();
        int r = open_all(&g);
        afz_restart_whole(order->restarts, &g.plan);
        if (r >= 0 && order->batch > 0)
                r = afz_restart_first(order->batch, order->restarts, &g.plan);
        if (r < 0) {
                afz_guard_fail(&g, 125, "cannot start the guard: %s", strerror(-r));
                return 1;
        }
        do {
                r = afz_guard_start(&g);
                if (r >= 0 && order->dry_run)
                        afz_guard_send(&g,
                                       &(struct afz_word){.kind = AFZ_WORD_ENDED, .event = "end"});
                if (r < 0 || order->dry_run)
                        break;
                bool left = hold_job(&g);
                if (try_again(&g, left))
                        continue;
                finish(&g, left);
                break;
        } while (true);
        close_all(&g);
        return 0;
}
