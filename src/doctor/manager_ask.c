#include "manager.h"

#include <errno.h>

#include "clock.h"
#include "config.h"

#if AFZ_HAVE_LIBSYSTEMD

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

/* A healthy manager answers in a few milliseconds, a swapping one in some hundred. Longer than this
 * nobody wants to wait for doctor. */
#define ANSWER_MS 2000
/* A killed child is gone at once unless the kernel holds it; then init takes it over. */
#define REAP_MS 200

struct reply {
        int err;
        struct afz_manager_answer answer;
};

/* libsystemd is loaded only here: it brings half a dozen libraries along, and the rest of
 * Antifreeze is to stay small. */
struct calls {
        int (*open_user)(sd_bus **);
        int (*open_system)(sd_bus **);
        int (*get_string)(sd_bus *, const char *, const char *, const char *, const char *,
                          sd_bus_error *, char **);
};

static int load(struct calls *ret)
{
        static const char *const name[] = {"sd_bus_open_user", "sd_bus_open_system",
                                           "sd_bus_get_property_string"};
        void *symbol[3], *lib = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
        if (!lib)
                return -ENODATA;
        for (int i = 0; i < 3; i++)
                if (!(symbol[i] = dlsym(lib, name[i])))
                        return -ENODATA;
        /* ISO C has no conversion from an object's address to a function's; POSIX promises it. */
        *(void **)&ret->open_user = symbol[0];
        *(void **)&ret->open_system = symbol[1];
        *(void **)&ret->get_string = symbol[2];
        return 0;
}

static struct reply ask(bool system)
{
        struct reply reply = {0};
        struct calls calls;
        sd_bus *bus = NULL;
        char *version = NULL, dir[64];
        reply.err = load(&calls);
        if (reply.err < 0)
                return reply;
        snprintf(dir, sizeof dir, "/run/user/%u", (unsigned)geteuid());
        setenv("XDG_RUNTIME_DIR", dir, 0);
        reply.err = system ? calls.open_system(&bus) : calls.open_user(&bus);
        if (reply.err >= 0)
                reply.err = calls.get_string(
                        bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                        "org.freedesktop.systemd1.Manager", "Version", NULL, &version);
        /* -ENODATA is ours: "cannot ask". */
        if (reply.err == -ENODATA)
                reply.err = -EIO;
        if (reply.err >= 0)
                snprintf(reply.answer.version, sizeof reply.answer.version, "%s", version);
        return reply;
}

static _Noreturn void child(int fd, bool system)
{
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_IGN);
        struct reply reply = ask(system);
        ssize_t n = write(fd, &reply, sizeof reply);
        _exit(n != sizeof reply);
}

static int64_t now_ms(void)
{
        return (int64_t)(afz_clock_ns(CLOCK_MONOTONIC) / AFZ_NS_PER_MS);
}

/* The reply is smaller than PIPE_BUF: it comes whole or not at all. */
static int await(int fd, struct reply *ret)
{
        int64_t end = now_ms() + ANSWER_MS;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int r;
        do {
                int64_t left = end - now_ms();
                r = poll(&p, 1, left > 0 ? (int)left : 0);
        } while (r < 0 && errno == EINTR);
        if (r < 0)
                return -errno;
        if (r == 0)
                return -ETIMEDOUT;
        return read(fd, ret, sizeof *ret) == sizeof *ret ? 0 : -EIO;
}

static void reap(pid_t pid)
{
        kill(pid, SIGKILL);
        for (int i = 0; i < REAP_MS && waitpid(pid, NULL, WNOHANG) == 0; i++)
                poll(NULL, 0, 1);
}

int afz_manager_ask(void *unused, bool system, struct afz_manager_answer *ret)
{
        (void)unused;
        int fds[2];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        pid_t pid = fork();
        if (pid < 0) {
                int err = -errno;
                close(fds[0]);
                close(fds[1]);
                return err;
        }
        if (pid == 0) {
                close(fds[0]);
                child(fds[1], system);
        }
        close(fds[1]);
        struct reply reply;
        int r = await(fds[0], &reply);
        close(fds[0]);
        reap(pid);
        if (r < 0)
                return r;
        if (reply.err < 0)
                return reply.err;
        *ret = reply.answer;
        return 0;
}

#else

int afz_manager_ask(void *unused, bool system, struct afz_manager_answer *ret)
{
        (void)unused;
        (void)system;
        (void)ret;
        return -ENODATA;
}

#endif
