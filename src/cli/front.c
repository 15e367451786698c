#include "front.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bus.h"
#include "clock.h"
#include "commands.h"
#include "front_end.h"
#include "hold_tier.h"
#include "quantity.h"
#include "thaw.h"

struct front {
        const struct afz_guard_order *order;
        const struct afz_front_style *style;
        struct afz_run run;
        pid_t guard;
        int fd, signal_fd;
        uint64_t line_ns, end_ns; /* when the next line, and the end of its time, are due; 0: not */
        bool asked_to_end;        /* SIGTERM was sent at the end of its time */
        bool ended;               /* the guard has said how */
        struct afz_word verdict;  /* what it makes of that; its event is "" until then */
        int code, sig;
};

static void speak(const struct front *f, const struct afz_word *word)
{
        afz_front_speak(f->style, f->run.page->id, word, f->order->dry_run);
}

static void notify(const struct front *f, const char *text)
{
        if (f->order->policy != AFZ_POLICY_WATCH)
                (void)afz_bus_notify("Antifreeze", text, true);
}

static void tell_verdict(struct front *f)
{
        char text[512];
        struct afz_front_end end = {.style = f->style, .run = &f->run, .verdict = &f->verdict};
        afz_front_explain(&end, text, sizeof text);
        if (f->verdict.urgent)
                notify(f, text);
}

/* --run-dir names the folder: a script that runs every night finds its last run there. */
static void tell_replaced(const struct front *f)
{
        if (f->run.replaces[0] && !f->style->quiet)
                afz_front_say(f->style, f->run.page->id, "replaced",
                              "the record of run %s in %s is replaced by this one's",
                              f->run.replaces, f->run.page->dir);
}

/* The same signal for ourselves, as the shell expects of a job; we go on when it says so. */
static void stop_as(int sig)
{
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, sig);
        signal(sig, SIG_DFL);
        raise(sig);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
        sigprocmask(SIG_BLOCK, &one, NULL);
}

static void hear(struct front *f, const struct afz_word *word)
{
        switch (word->kind) {
        case AFZ_WORD_STARTED:
                speak(f, word);
                if (f->order->dry_run)
                        break;
                tell_replaced(f);
                (void)afz_run_write(&f->run, &(struct afz_outcome){.end.code = -1});
                break;
        case AFZ_WORD_STOPPED:
                stop_as(word->code);
                break;
        case AFZ_WORD_FAILED:
        case AFZ_WORD_ENDED:
                f->ended = true;
                f->code = word->code;
                f->sig = word->sig;
                if (f->verdict.event[0])
                        tell_verdict(f); /* the recording is whole now */
                speak(f, word);
                break;
        default:
                if (strcmp(word->event, "verdict") == 0) {
                        f->verdict = *word; /* looked into first, with its last word */
                        break;
                }
                speak(f, word);
                if (word->urgent)
                        notify(f, word->text);
                break;
        }
}

/* False when the guard has closed its end. If it did so before it had read all of ours (a signal
 * that came with the end), the kernel says ECONNRESET once, ahead of its last words: read on. */
static bool hear_all(struct front *f)
{
        struct afz_word word;
        ssize_t n;
        while ((n = recv(f->fd, &word, sizeof word, MSG_DONTWAIT)) == (ssize_t)sizeof word ||
               (n < 0 && errno == ECONNRESET))
                if (n > 0)
                        hear(f, &word);
        return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* The guard knows whether the whole group got it, from the terminal or from somebody, or we alone.
 */
static void pass_on(const struct front *f, const struct signalfd_siginfo *info)
{
        struct afz_front_word word = {.sig = (int)info->ssi_signo};
        /* The kernel sends these to the terminal's whole group; a hang-up to its leader alone. */
        bool from_terminal = info->ssi_code == SI_KERNEL && info->ssi_signo != SIGHUP;
        if (info->ssi_signo == SIGCHLD || (from_terminal && !f->order->attach))
                return;
        if (f->order->attach) {
                bool leave = info->ssi_signo == SIGINT || info->ssi_signo == SIGTERM ||
                             info->ssi_signo == SIGHUP || info->ssi_signo == SIGQUIT;
                if (!leave)
                        return;
                word = (struct afz_front_word){.detach = true};
        }
        (void)send(f->fd, &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void take_signals(const struct front *f)
{
        struct signalfd_siginfo info;
        while (read(f->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
                pass_on(f, &info);
}

static void reap_helpers(const struct front *f)
{
        siginfo_t info;
        while (info.si_pid = 0, waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                                        info.si_pid != 0 && info.si_pid != f->guard &&
                                        info.si_pid != f->run.page->root_pid)
                (void)waitpid(info.si_pid, NULL, WNOHANG);
}

static uint64_t now_ns(void)
{
        return afz_clock_ns(CLOCK_MONOTONIC);
}

/* What the style asks for by the clock; returns how many ms to wait at most, or -1. */
static int timed(struct front *f)
{
        const struct afz_run_page *page = f->run.page;
        uint64_t now = now_ns(), next = UINT64_MAX;
        if (f->end_ns != 0 && now >= f->end_ns) {
                struct afz_front_word word = {.sig = SIGTERM, .timed_out = true};
                if (f->asked_to_end)
                        word.sig = SIGKILL;
                else
                        afz_front_say(f->style, page->id, "time",
                                      "its time is over (--time): it is ended");
                (void)send(f->fd, &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL);
                f->end_ns = f->asked_to_end ? 0 : now + f->order->grace_ns;
                f->asked_to_end = true;
        }
        if (f->line_ns != 0 && now >= f->line_ns) {
                char need[AFZ_SIZE_TEXT_CAP], budget[AFZ_SIZE_TEXT_CAP];
                afz_front_say(f->style, page->id, "need", "needs %s of %s",
                              afz_format_size(need, sizeof need, page->need_bytes),
                              afz_format_size(budget, sizeof budget, page->budget_bytes));
                f->line_ns = now + f->style->every_ns;
        }
        if (f->end_ns != 0)
                next = f->end_ns;
        if (f->line_ns != 0 && f->line_ns < next)
                next = f->line_ns;
        return next == UINT64_MAX ? -1 : (int)((next - now) / AFZ_NS_PER_MS) + 1;
}

static void listen_to_guard(struct front *f)
{
        uint64_t now = now_ns();
        f->line_ns = f->style->every_ns != 0 ? now + f->style->every_ns : 0;
        f->end_ns = f->style->end_after_ns != 0 ? now + f->style->end_after_ns : 0;
        for (;;) { /* also after its last word: it is cleaning up */
                struct pollfd fds[] = {{.fd = f->fd, .events = POLLIN},
                                       {.fd = f->signal_fd, .events = POLLIN}};
                if (poll(fds, 2, timed(f)) < 0 && errno != EINTR)
                        return;
                take_signals(f);
                reap_helpers(f);
                if (!hear_all(f))
                        return;
                if (f->ended)
                        f->line_ns = f->end_ns = 0;
        }
}

/* A fork that never became CMD still has the guard's name, also as a zombie. */
static bool never_ran(const struct afz_env *env, pid_t root)
{
        char path[32], buf[32];
        struct afz_span name;
        snprintf(path, sizeof path, "%d/comm", (int)root);
        return env && afz_env_read_head(env, AFZ_ROOT_PROC, path, buf, sizeof buf, &name) == 0 &&
               afz_span_eq(afz_span_trim(name), AFZ_GUARD_NAME);
}

/* Nobody knows any more whether the group got it, too; what the terminal sends, it got. */
static void pass_on_alone(const struct front *f, pid_t root)
{
        struct signalfd_siginfo info;
        while (read(f->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
                if (info.ssi_signo != SIGCHLD && info.ssi_code == SI_USER)
                        (void)kill(root, (int)info.ssi_signo); /* our child, and not reaped */
}

/* The guard had reaped CMD, but did not come to say so any more. */
static void recall_end(struct front *f)
{
        int end = f->run.page->root_end;
        if (end > 0)
                f->code = end - 1;
        else
                f->sig = -end;
}

/* CMD is our child now: we are its next subreaper. */
static void wait_for_job(struct front *f, const struct afz_env *env, pid_t root)
{
        siginfo_t info;
        for (;;) {
                info.si_pid = 0;
                if (waitid(P_PID, (id_t)root, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) < 0) {
                        recall_end(f);
                        return;
                }
                if (info.si_pid == 0) {
                        struct pollfd fd = {.fd = f->signal_fd, .events = POLLIN};
                        (void)poll(&fd, 1, -1);
                        pass_on_alone(f, root);
                        reap_helpers(f);
                        continue;
                }
                if (info.si_code != CLD_STOPPED)
                        break;
                (void)waitid(P_PID, (id_t)root, &info, WSTOPPED | WNOHANG);
                /* A brake that the guard has left is no wish of the user's: it is being lifted, and
                 * nobody would wake us. */
                if (info.si_status != SIGSTOP || !atomic_load(&f->run.page->braked))
                        stop_as(info.si_status);
        }
        if (never_ran(env, root))
                afz_front_say(f->style, f->run.page->id, "failed", "it was not started any more");
        else if (info.si_code == CLD_EXITED)
                f->code = info.si_status;
        else
                f->sig = info.si_status;
        (void)waitid(P_PID, (id_t)root, &info, WEXITED | WNOHANG);
}

/* The guard was killed. The kernel still holds the job to its limits; nobody looks any more. */
static void outlive_guard(struct front *f)
{
        struct afz_run_page *page = f->run.page;
        pid_t root = page->root_pid;
        enum afz_tier tier = (enum afz_tier)page->tier;
        struct afz_env env;
        f->code = AFZ_EXIT_OWN;
        if (f->verdict.event[0])
                speak(f, &f->verdict);    /* it came as far as that */
        (void)waitpid(f->guard, NULL, 0); /* only then are its children ours */
        if (root <= 0) {
                afz_front_say(f->style, page->id, "lost",
                              "the guard died before the command was started");
                afz_front_explain_lost(&f->run); /* the next run looks for a cgroup of its */
                return;
        }
        bool sees = afz_env_open_live(&env) >= 0;
        if (sees)
                (void)afz_hold_thaw(&env, tier, page->place);
        afz_front_say(f->style, page->id, "lost", "the guard was killed; the job %s",
                      page->root_end != 0     ? "had ended"
                      : tier == AFZ_TIER_NONE ? "goes on unguarded"
                                              : "goes on in its limits, but nobody looks after it");
        if (!f->order->attach) {
                wait_for_job(f, sees ? &env : NULL, root);
                afz_front_explain_lost(&f->run);
                if (sees && afz_hold_collect(&env, page->place) == 0)
                        afz_run_done(&f->run);
                /* else something outlives CMD, and the next run collects it */
        }
        if (sees)
                afz_env_done(&env);
}

/* When its time was over it was ended as was asked for. */
static bool ended_by_time(const struct front *f)
{
        return f->asked_to_end && (f->sig == SIGTERM || f->sig == SIGKILL ||
                                   (f->sig == 0 && f->code == 128 + SIGTERM));
}

/* As CMD ended, without a second core file. */
static int end_as(const struct front *f)
{
        if (ended_by_time(f))
                return 0;
        if (f->sig == 0)
                return f->code;
        sigset_t one;
        (void)fflush(NULL);
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        sigemptyset(&one);
        sigaddset(&one, f->sig);
        signal(f->sig, SIG_DFL);
        raise(f->sig);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
        return 128 + f->sig; /* a signal that does not end a process */
}

/* What the caller has closed would else be taken by files of our own, and CMD's output would go
 * there. Closed at exec: CMD finds it as it was. */
static void keep_places(void)
{
        int fd;
        do
                fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        while (fd >= 0 && fd <= STDERR_FILENO);
        if (fd >= 0)
                close(fd);
}

static void inherit(struct afz_guard_order *order)
{
        struct sigaction chld;
        sigset_t all;
        sigaction(SIGCHLD, NULL, &chld);
        order->ignore_sigchld = chld.sa_handler == SIG_IGN;
        signal(SIGCHLD, SIG_DFL);
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &order->mask);
        getrlimit(RLIMIT_NOFILE, &order->files);
}

static int start_guard(struct front *f)
{
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        f->guard = fork();
        if (f->guard < 0)
                return -errno;
        if (f->guard == 0) {
                close(pair[0]);
                _exit(afz_guard_main(f->order, &f->run, pair[1]));
        }
        close(pair[1]);
        f->fd = pair[0];
        sigset_t all;
        sigfillset(&all);
        f->signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
        return f->signal_fd < 0 ? -errno : 0;
}

int afz_front_run(struct afz_guard_order *order, const struct afz_front_wish *wish,
                  const struct afz_front_style *style)
{
        struct front f = {.order = order, .style = style, .fd = -1, .signal_fd = -1};
        keep_places();
        inherit(order); /* first: a signal must not leave half a run behind */
        int status = afz_front_promise(order, wish, style, &f.run);
        if (status != 0)
                return status;
        int r = start_guard(&f);
        if (r < 0) {
                afz_run_done(&f.run);
                afz_front_say(style, NULL, "failed", "cannot start the guard: %s", strerror(-r));
                return AFZ_EXIT_OWN;
        }
        listen_to_guard(&f);
        if (!f.ended)
                outlive_guard(&f);
        return end_as(&f);
}
