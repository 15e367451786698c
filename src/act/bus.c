#include "bus.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bus_calls.h"
#include "clock.h"

/* A healthy manager answers in a few milliseconds, a swapping one in some hundred. */
#define ANSWER_MS 2000
/* To make a scope takes it ten times as long, and on a machine that is short already it is worth
 * waiting for: without it the job is held less well for hours. */
#define SCOPE_MS 5000
/* The child's own patience is a little less than its parent's, so that it can say what failed. */
#define CALL_USEC ((SCOPE_MS - 200) * UINT64_C(1000))
/* A killed child is gone at once unless the kernel holds it; then init takes it over. */
#define REAP_MS 200
/* A notification service may have to be started first. */
#define NOTIFY_S  10

#define SYSTEMD   "org.freedesktop.systemd1"
#define SYSTEMD_P "/org/freedesktop/systemd1"
#define MANAGER   "org.freedesktop.systemd1.Manager"

struct answer {
        int err;
        char text[128];
};

/* What a child does; the arguments are its parent's memory, as it was at the fork. */
typedef int work_fn(const struct afz_bus_calls *sd, bool system, const void *arg,
                    struct answer *ret);

/* The manager is always on the bus of the runtime folder; DBUS_SESSION_BUS_ADDRESS may name a bus
 * of a desktop that has no manager on it, or be missing (cron, su). */
static void find_user_bus(bool manager)
{
        const char *given = getenv("XDG_RUNTIME_DIR");
        char usual[64], path[256], address[300];
        snprintf(usual, sizeof usual, "/run/user/%u", (unsigned)geteuid());
        const char *const dir[] = {given ? given : usual, usual};
        if (!manager && getenv("DBUS_SESSION_BUS_ADDRESS"))
                return;
        for (int i = 0; i < 2; i++) {
                int n = snprintf(path, sizeof path, "%s/bus", dir[i]);
                if (n < 0 || (size_t)n >= sizeof path || access(path, F_OK) < 0)
                        continue;
                snprintf(address, sizeof address, "unix:path=%s", path);
                setenv("DBUS_SESSION_BUS_ADDRESS", address, 1);
                return;
        }
}

static int connect_to(const struct afz_bus_calls *sd, bool system, afz_sd_bus **ret)
{
        if (system)
                return sd->open_system(ret);
        find_user_bus(true);
        return sd->open_user(ret);
}

static int ask_version(const struct afz_bus_calls *sd, bool system, const void *arg,
                       struct answer *ret)
{
        afz_sd_bus *bus = NULL;
        char *version = NULL;
        (void)arg;
        int r = connect_to(sd, system, &bus);
        if (r >= 0)
                r = sd->get_property_string(bus, SYSTEMD, SYSTEMD_P, MANAGER, "Version", NULL,
                                            &version);
        if (r >= 0)
                snprintf(ret->text, sizeof ret->text, "%s", version);
        return r;
}

struct job_end {
        const struct afz_bus_calls *sd;
        const char *job; /* NULL until the call has returned */
        char result[32];
};

/* JobRemoved(u id, o job, s unit, s result) */
static int on_job_removed(afz_sd_message *m, void *ctx, struct afz_sd_error *error)
{
        struct job_end *end = ctx;
        const char *job, *unit, *result;
        uint32_t id;
        (void)error;
        if (end->sd->message_read(m, "uoss", &id, &job, &unit, &result) < 0)
                return 0;
        if (end->job && strcmp(job, end->job) == 0)
                snprintf(end->result, sizeof end->result, "%s", result);
        return 0;
}

static int wait_for_job(const struct afz_bus_calls *sd, afz_sd_bus *bus, const struct job_end *end)
{
        uint64_t until = afz_clock_ns(CLOCK_MONOTONIC) / AFZ_NS_PER_US + CALL_USEC;
        while (!end->result[0]) {
                int r = sd->process(bus, NULL);
                if (r < 0)
                        return r;
                uint64_t now = afz_clock_ns(CLOCK_MONOTONIC) / AFZ_NS_PER_US;
                if (r > 0)
                        continue;
                if (now >= until)
                        return -ETIMEDOUT;
                r = sd->wait(bus, until - now);
                if (r < 0 && r != -EINTR)
                        return r;
        }
        return strcmp(end->result, "done") == 0 ? 0 : -EIO;
}

/* StartTransientUnit(s name, s mode, a(sv) properties, a(sa(sv)) aux) -> o job */
static int fill_scope(const struct afz_bus_calls *sd, afz_sd_message *m,
                      const struct afz_bus_scope *scope)
{
        int r = sd->message_append(m, "ss", scope->name, "fail");
        r = r < 0 ? r : sd->open_container(m, 'a', "(sv)");
        r = r < 0 ? r : sd->message_append(m, "(sv)", "Description", "s", scope->description);
        r = r < 0 ? r : sd->message_append(m, "(sv)", "Delegate", "b", 1);
        r = r < 0 ? r : sd->message_append(m, "(sv)", "CollectMode", "s", "inactive-or-failed");
        if (scope->weight > 0) {
                uint64_t weight = scope->weight;
                r = r < 0 ? r : sd->message_append(m, "(sv)", "CPUWeight", "t", weight);
                r = r < 0 ? r : sd->message_append(m, "(sv)", "IOWeight", "t", weight);
        }
        r = r < 0 ? r : sd->open_container(m, 'r', "sv");
        r = r < 0 ? r : sd->message_append(m, "s", "PIDs");
        r = r < 0 ? r : sd->open_container(m, 'v', "au");
        r = r < 0 ? r : sd->open_container(m, 'a', "u");
        for (unsigned i = 0; i < scope->pids; i++)
                r = r < 0 ? r : sd->message_append(m, "u", (uint32_t)scope->pid[i]);
        for (int i = 0; i < 4; i++)
                r = r < 0 ? r : sd->close_container(m);
        return r < 0 ? r : sd->message_append(m, "a(sa(sv))", 0);
}

static int make_scope(const struct afz_bus_calls *sd, bool system, const void *arg,
                      struct answer *ret)
{
        afz_sd_bus *bus = NULL;
        afz_sd_message *m = NULL, *reply = NULL;
        struct job_end end = {.sd = sd};
        (void)ret;
        int r = connect_to(sd, system, &bus);
        /* Heard before it is asked for, so that it cannot be missed. */
        r = r < 0 ? r
                  : sd->match_signal(bus, NULL, SYSTEMD, SYSTEMD_P, MANAGER, "JobRemoved",
                                     on_job_removed, &end);
        r = r < 0 ? r
                  : sd->message_new_method_call(bus, &m, SYSTEMD, SYSTEMD_P, MANAGER,
                                                "StartTransientUnit");
        r = r < 0 ? r : fill_scope(sd, m, arg);
        r = r < 0 ? r : sd->call(bus, m, CALL_USEC, NULL, &reply);
        r = r < 0 ? r : sd->message_read(reply, "o", &end.job);
        /* Signals that came during the call wait in the queue: none is lost. */
        return r < 0 ? r : wait_for_job(sd, bus, &end);
}

struct message {
        const char *summary, *body;
        bool urgent;
};

/* The body may be read as markup: nothing in it shall be. */
static void escape(const char *s, char *buf, size_t cap)
{
        size_t n = 0;
        for (; *s && n + 6 < cap; s++) {
                const char *as = *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : *s == '&' ? "&amp;" : "";
                if (*as)
                        n += (size_t)snprintf(buf + n, cap - n, "%s", as);
                else
                        buf[n++] = *s;
        }
        buf[n] = '\0';
}

/* Notify(s app, u replaces, s icon, s summary, s body, as actions, a{sv} hints, i expire) */
static int notify(const struct afz_bus_calls *sd, bool system, const void *arg, struct answer *ret)
{
        static const char to[] = "org.freedesktop.Notifications";
        const struct message *text = arg;
        afz_sd_bus *bus = NULL;
        afz_sd_message *m = NULL;
        char body[1024];
        (void)system;
        (void)ret;
        escape(text->body, body, sizeof body);
        find_user_bus(false);
        int r = sd->open_user(&bus);
        r = r < 0 ? r
                  : sd->message_new_method_call(bus, &m, to, "/org/freedesktop/Notifications", to,
                                                "Notify");
        r = r < 0 ? r
                  : sd->message_append(m, "susssasa{sv}i", "Antifreeze", (uint32_t)0,
                                       "dialog-warning", text->summary, body, 0, 1, "urgency", "y",
                                       text->urgent ? 2 : 1, (int32_t)-1);
        return r < 0 ? r : sd->call(bus, m, NOTIFY_S * UINT64_C(1000000), NULL, NULL);
}

static _Noreturn void child(int fd, work_fn *work, bool system, const void *arg)
{
        struct afz_bus_calls calls;
        struct answer answer = {0};
        sigset_t none;
        sigemptyset(&none);
        for (int s = 1; s < NSIG; s++)
                signal(s, SIG_DFL);
        signal(SIGPIPE, SIG_IGN);
        sigprocmask(SIG_SETMASK, &none, NULL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        answer.err = afz_bus_load(&calls);
        if (answer.err >= 0) {
                answer.err = work(&calls, system, arg, &answer);
                if (answer.err == -ENODATA) /* which is ours: "cannot ask" */
                        answer.err = -EIO;
        }
        if (fd >= 0 && write(fd, &answer, sizeof answer) != sizeof answer)
                _exit(1);
        _exit(answer.err < 0);
}

/* The answer is smaller than PIPE_BUF: it comes whole or not at all. */
static int await(int fd, uint64_t patience_ms, struct answer *ret)
{
        uint64_t end = afz_clock_ns(CLOCK_MONOTONIC) + patience_ms * AFZ_NS_PER_MS;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int r;
        do {
                uint64_t now = afz_clock_ns(CLOCK_MONOTONIC);
                r = poll(&p, 1, now < end ? (int)((end - now) / AFZ_NS_PER_MS) : 0);
        } while (r < 0 && errno == EINTR);
        if (r < 0)
                return -errno;
        if (r == 0)
                return -ETIMEDOUT;
        return read(fd, ret, sizeof *ret) == sizeof *ret ? 0 : -EIO;
}

static void reap(pid_t pid)
{
        kill(pid, SIGKILL); /* our own child, not reaped yet */
        for (int i = 0; i < REAP_MS && waitpid(pid, NULL, WNOHANG) == 0; i++)
                poll(NULL, 0, 1);
}

static int in_child(work_fn *work, uint64_t patience_ms, bool system, const void *arg,
                    struct answer *ret)
{
        struct answer answer;
        int fds[2];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        pid_t pid = fork();
        if (pid == 0) {
                close(fds[0]);
                child(fds[1], work, system, arg);
        }
        int r = pid < 0 ? -errno : 0;
        close(fds[1]);
        if (r == 0) {
                r = await(fds[0], patience_ms, &answer);
                reap(pid);
        }
        close(fds[0]);
        if (r < 0)
                return r;
        *ret = answer;
        return answer.err < 0 ? answer.err : 0;
}

int afz_bus_manager_version(bool system, char *ret, size_t cap)
{
        struct answer answer;
        int r = in_child(ask_version, ANSWER_MS, system, NULL, &answer);
        if (r == 0)
                snprintf(ret, cap, "%s", answer.text);
        return r;
}

int afz_bus_make_scope(bool system, const struct afz_bus_scope *scope)
{
        struct answer answer;
        return in_child(make_scope, SCOPE_MS, system, scope, &answer);
}

static bool has_user_bus(void)
{
        char path[64];
        snprintf(path, sizeof path, "/run/user/%u/bus", (unsigned)geteuid());
        return getenv("DBUS_SESSION_BUS_ADDRESS") || access(path, F_OK) == 0;
}

pid_t afz_bus_notify(const char *summary, const char *body, bool urgent)
{
        const struct message text = {summary, body, urgent};
        if (!has_user_bus())
                return -ENODATA;
        pid_t pid = fork();
        if (pid == 0) {
                alarm(NOTIFY_S + 1);
                child(-1, notify, false, &text);
        }
        return pid < 0 ? -errno : pid;
}
