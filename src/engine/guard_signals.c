#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "guard_state.h"
#include "pidfd.h"

/* The kernel signals a group one process after the other while it holds a lock: if the group was
 * meant, our own copy is at most a few scheduling moments behind the front's. */
#define GROUP_NS (5 * AFZ_NS_PER_MS)
/* The other way round the front, which has no priority, may be late by this on a busy machine. */
#define FRONT_NS (200 * AFZ_NS_PER_MS)

int afz_guard_signals_open(struct afz_guard *g)
{
        sigset_t all;
        sigfillset(&all);
        g->signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
        return g->signal_fd < 0 ? -errno : 0;
}

void afz_guard_signals_forget(struct afz_guard *g)
{
        struct signalfd_siginfo info;
        while (read(g->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
                ;
        memset(g->group_ns, 0, sizeof g->group_ns);
        afz_guard_reap(g); /* a SIGCHLD may have been among them */
}

/* Somebody wants it to end; whether it does is its own affair, but it is not started again. */
static void note_unwanted(struct afz_guard *g, int sig)
{
        if (sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT || sig == SIGKILL)
                g->unwanted_ns = afz_guard_now(g);
}

/* Passes a signal on to CMD alone: it was sent to the front, which stands for it. */
static void forward(struct afz_guard *g, int sig)
{
        if (g->root_ended || g->spawn.pid <= 0)
                return;
        /* A braked job sees it when the brake is lifted, in less than a second. */
        if (g->spawn.pidfd >= 0)
                (void)afz_pidfd_signal(g->spawn.pidfd, sig);
        else /* our own child, not reaped yet: the pid is still its */
                (void)kill(g->spawn.pid, sig);
}

static void forward_due(struct afz_guard *g)
{
        uint64_t now = afz_guard_now(g);
        for (int sig = 1; sig < AFZ_GUARD_SIGNALS; sig++) {
                if (g->forward_ns[sig] == 0)
                        continue;
                bool group = g->group_ns[sig] != 0 && g->group_ns[sig] + FRONT_NS >= now;
                if (!group && now < g->forward_ns[sig]) {
                        if (g->forward_ns[sig] < g->wake_ns)
                                g->wake_ns = g->forward_ns[sig];
                        continue;
                }
                g->forward_ns[sig] = 0;
                if (!group)
                        forward(g, sig);
        }
}

/* systemd ends a session or a service by signalling all processes of its cgroup, one by one. In a
 * cgroup of its own CMD is none of these, and must hear it from us. */
static bool missed_job(const struct afz_guard *g, const struct signalfd_siginfo *info)
{
        char path[32], buf[32];
        struct afz_span name;
        if (!g->hold.row || g->hold.row->tier == AFZ_TIER_NONE || g->order->attach ||
            info->ssi_code != SI_USER)
                return false;
        snprintf(path, sizeof path, "%u/comm", info->ssi_pid);
        return afz_env_read_head(&g->env, AFZ_ROOT_PROC, path, buf, sizeof buf, &name) == 0 &&
               afz_span_eq(afz_span_trim(name), "systemd");
}

static void take_signal(struct afz_guard *g, const struct signalfd_siginfo *info)
{
        if (info->ssi_signo >= AFZ_GUARD_SIGNALS)
                return;
        g->group_ns[info->ssi_signo] = afz_guard_now(g);
        note_unwanted(g, (int)info->ssi_signo);
        if (missed_job(g, info))
                forward(g, (int)info->ssi_signo);
}

void afz_guard_signals_turn(struct afz_guard *g)
{
        struct signalfd_siginfo info;
        bool child = false;
        while (read(g->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
                if (info.ssi_signo == SIGCHLD)
                        child = true;
                else
                        take_signal(g, &info);
        }
        if (child)
                afz_guard_reap(g);
        forward_due(g);
}

void afz_guard_front_turn(struct afz_guard *g)
{
        struct afz_front_word word;
        ssize_t n;
        while (g->front_fd >= 0 &&
               (n = recv(g->front_fd, &word, sizeof word, MSG_DONTWAIT)) != -1) {
                if (n == 0) { /* the front was killed: the job is held all the same */
                        close(g->front_fd);
                        g->front_fd = -1;
                        return;
                }
                if (n != (ssize_t)sizeof word)
                        continue;
                if (word.detach)
                        g->detach = true;
                else if (word.sig > 0 && word.sig < AFZ_GUARD_SIGNALS) {
                        note_unwanted(g, word.sig);
                        g->timed_out |= word.timed_out;
                        g->forward_ns[word.sig] = afz_guard_now(g) + GROUP_NS;
                }
        }
        forward_due(g);
}

static void root_changed(struct afz_guard *g, const siginfo_t *info)
{
        switch (info->si_code) {
        case CLD_STOPPED:
                if (g->braked) /* our own SIGSTOP, in tier none */
                        break;
                g->user_stopped = true;
                afz_ladder_gap(&g->ladder);
                afz_guard_send(
                        g, &(struct afz_word){.kind = AFZ_WORD_STOPPED, .code = info->si_status});
                break;
        case CLD_CONTINUED:
                if (g->user_stopped) {
                        afz_ladder_gap(&g->ladder);
                        if (g->front_pidfd >= 0) /* CMD alone was continued: so is its stand-in */
                                (void)afz_pidfd_signal(g->front_pidfd, SIGCONT);
                }
                g->user_stopped = false;
                break;
        default:
                g->root_ended = true;
                g->root_signaled = info->si_code != CLD_EXITED;
                g->root_status = info->si_status;
                break;
        }
}

/* Who outlives us must know it, and once it is reaped nobody can ask the kernel again. */
static void note_end(struct afz_guard *g, const siginfo_t *info)
{
        if (info->si_code == CLD_EXITED)
                g->run->page->root_end = 1 + info->si_status;
        else if (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED)
                g->run->page->root_end = -info->si_status;
}

void afz_guard_reap(struct afz_guard *g)
{
        const int changes = WEXITED | WSTOPPED | WCONTINUED | WNOHANG;
        for (;;) {
                siginfo_t info = {0};
                if (waitid(P_ALL, 0, &info, changes | WNOWAIT) < 0 || info.si_pid == 0)
                        return;
                if (info.si_pid == g->spawn.pid)
                        note_end(g, &info);
                /* It may have gone on since, to its end: then it comes again. */
                if (waitid(P_PID, (id_t)info.si_pid, &info, changes) < 0 || info.si_pid == 0)
                        continue;
                if (info.si_pid == g->spawn.pid)
                        root_changed(g, &info);
                else if (info.si_code == CLD_STOPPED || info.si_code == CLD_CONTINUED)
                        continue;
                else if (info.si_pid == afz_recorder_pid(g->recorder))
                        g->recorded.writer_gone = true;
                else
                        afz_checkpoint_reaped(&g->checkpoint, info.si_pid);
        }
}
