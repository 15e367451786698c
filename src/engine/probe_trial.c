#include "probe_trial.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "env.h"
#include "fds.h"
#include "keeper_book.h"
#include "keeper_hand.h"
#include "native_stack.h"
#include "proc_memory.h"
#include "py_stack.h"
#include "span.h"

static const struct {
        uint64_t program_ns; /* for one program; dd takes 2 ms, Python 30, a shim of pyenv 500 */
        uint64_t all_ns;     /* for all of them: then no other is begun */
        uint64_t gone_ns;    /* one that is killed and stays is held by the kernel */
        uint64_t mean_bytes; /* between two samples; each from 1 MiB on is one */
        rlim_t cpu_s;
} most = {
        .program_ns = 2 * AFZ_NS_PER_S,
        .all_ns = 5 * AFZ_NS_PER_S,
        .gone_ns = AFZ_NS_PER_S / 2,
        .mean_bytes = 1 << 20,
        .cpu_s = 3,
};

enum { LOOK_MS = 5 };

#define READY "afz-ready" /* what a Python says when it has what it wants */

/* A place for the socket, and one program that is being tried. */
struct trial {
        const char *library;
        char folder[64];
        char socket[80];
        int listen_fd;
        bool bare; /* the program goes without the probe */
        pid_t pid;
        int in_fd, err_fd; /* its standard input, held open, and what it says */
        struct afz_book *book;
        bool asked, ended;
        char said[192]; /* its first words on stderr */
        size_t said_bytes;
};

/* ---- the place ---- */

/* Where we may write, and the path is short enough for a socket's. */
static bool make_folder(struct trial *t, const char *in)
{
        int n = snprintf(t->folder, sizeof t->folder, "%s/afz-trial-XXXXXX", in);
        if (in[0] == '/' && n > 0 && (size_t)n < sizeof t->folder && mkdtemp(t->folder))
                return true;
        t->folder[0] = '\0';
        return false;
}

static int make_place(struct trial *t)
{
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        if (!make_folder(t, runtime ? runtime : "") && !make_folder(t, "/tmp"))
                return -EACCES;
        snprintf(t->socket, sizeof t->socket, "%s/probe", t->folder);
        snprintf(at.sun_path, sizeof at.sun_path, "%s", t->socket);
        t->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (t->listen_fd < 0 || bind(t->listen_fd, (const struct sockaddr *)&at, sizeof at) < 0 ||
            listen(t->listen_fd, 8) < 0)
                return -errno;
        return 0;
}

static void leave_place(struct trial *t)
{
        afz_fd_close(&t->listen_fd);
        if (t->socket[0])
                (void)unlink(t->socket);
        if (t->folder[0])
                (void)rmdir(t->folder);
}

/* ---- a program ---- */

_Noreturn static void be_program(const struct trial *t, const char *const *argv, int in, int err,
                                 pid_t parent)
{
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(125);
        (void)setpgid(0, 0);
        int null = open("/dev/null", O_WRONLY);
        (void)setrlimit(RLIMIT_CPU, &(struct rlimit){most.cpu_s, most.cpu_s});
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        if (dup2(in, 0) < 0 || dup2(null, 1) < 0 || dup2(err, 2) < 0 ||
            (t->bare ? 0 : setenv("LD_PRELOAD", t->library, 1)) < 0 ||
            setenv("ANTIFREEZE_PROBE", t->socket, 1) < 0)
                _exit(125);
        (void)setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
}

static int start(struct trial *t, const char *const *argv)
{
        int in[2], err[2];
        if (pipe2(in, O_CLOEXEC) < 0)
                return -errno;
        if (pipe2(err, O_CLOEXEC | O_NONBLOCK) < 0) {
                close(in[0]), close(in[1]);
                return -ENFILE;
        }
        pid_t parent = getpid();
        t->asked = t->ended = false;
        t->said_bytes = 0;
        t->said[0] = '\0';
        t->pid = fork();
        if (t->pid == 0)
                be_program(t, argv, in[0], err[1], parent);
        int r = t->pid < 0 ? -errno : 0;
        if (r == 0)
                (void)setpgid(t->pid, t->pid); /* whoever of us two is first */
        close(in[0]);
        close(err[1]);
        t->in_fd = in[1];
        t->err_fd = err[0];
        return r;
}

/* Only the program itself gets a book; what a shim starts on its way goes without. */
static void serve(struct trial *t)
{
        struct afz_book_wish wish;
        pid_t pid;
        int fd;
        while ((fd = afz_hand_accept(t->listen_fd, &pid, &wish)) != -EAGAIN) {
                if (fd < 0)
                        continue;
                struct afz_hand hand = {.pid = pid, .mean_bytes = most.mean_bytes};
                int memory = -1;
                if (pid == t->pid) {
                        afz_book_unmap(t->book); /* of what was there before an exec */
                        t->book = NULL;
                        t->asked |= afz_hand_over(fd, &hand, &t->book, &memory) == 0;
                }
                afz_fd_close(&memory);
                close(fd);
        }
}

static void listen_to(struct trial *t)
{
        char c;
        while (read(t->err_fd, &c, 1) == 1)
                if (t->said_bytes + 1 < sizeof t->said) {
                        t->said[t->said_bytes++] = c;
                        t->said[t->said_bytes] = '\0';
                }
}

static bool has_sample(const struct trial *t)
{
        return t->book && atomic_load(&t->book->samples) > 0;
}

static bool is_ready(const struct trial *t)
{
        return strstr(t->said, READY) != NULL;
}

/* Until it is there, has ended, or its time is over. */
static void watch(struct trial *t, bool (*is_there)(const struct trial *t))
{
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + most.program_ns;
        while (!is_there(t) && !t->ended && afz_clock_ns(CLOCK_MONOTONIC) < end_ns) {
                struct pollfd p[2] = {{.fd = t->listen_fd, .events = POLLIN},
                                      {.fd = t->err_fd, .events = POLLIN}};
                (void)poll(p, 2, LOOK_MS);
                serve(t);
                listen_to(t);
                t->ended = waitpid(t->pid, NULL, WNOHANG) != 0;
        }
        listen_to(t);
}

static void end(struct trial *t)
{
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + most.gone_ns;
        if (t->pid > 0) {
                (void)kill(-t->pid, SIGKILL);
                while (!t->ended && afz_clock_ns(CLOCK_MONOTONIC) < end_ns) {
                        t->ended = waitpid(t->pid, NULL, WNOHANG) != 0;
                        (void)poll(NULL, 0, t->ended ? 0 : 1);
                }
        }
        afz_book_unmap(t->book);
        t->book = NULL;
        t->pid = 0;
        afz_fd_close(&t->in_fd);
        afz_fd_close(&t->err_fd);
        serve(t); /* who asked last */
}

/* The first line of what the loader said, or what the probe noted in its book. */
static void take_words(const struct trial *t, char ret[192])
{
        char why[sizeof t->book->why];
        if (t->book) {
                afz_book_words(t->book->why, sizeof why, why);
                snprintf(ret, 192, "%s", why);
        }
        if (!ret[0])
                afz_span_copy((struct afz_span){t->said, strcspn(t->said, "\n")}, ret, 192);
}

static void try_small(struct trial *t, struct afz_probe_facts *ret)
{
        static const char *const dd[] = {
                "dd", "if=/dev/zero", "of=/dev/null", "bs=4194304", "count=1", "status=none", NULL};
        int r = start(t, dd);
        if (r == 0)
                watch(t, has_sample);
        ret->err = r;
        ret->started = r == 0;
        ret->asked = t->asked;
        ret->seen = has_sample(t);
        if (!ret->seen)
                take_words(t, ret->why);
        end(t);
}

/* ---- Python ---- */

static int read_stack(pid_t pid)
{
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + most.program_ns / 4;
        struct afz_py_frame frame[4];
        int r;
        do { /* it may not be up yet */
                struct afz_py *py = NULL;
                r = afz_py_open(pid, &py);
                if (r == 0)
                        r = afz_py_thread(py, pid, frame, 4);
                afz_py_close(py);
                r = r > 0 ? 0 : r == 0 ? -EAGAIN : r;
                if (r == -EAGAIN)
                        (void)poll(NULL, 0, LOOK_MS);
        } while (r == -EAGAIN && afz_clock_ns(CLOCK_MONOTONIC) < end_ns);
        return r;
}

static bool starts(struct trial *t, const char *path, bool bare)
{
        const char *const argv[] = {path, "-c",
                                    "import sys; kept = bytearray(4 << 20); "
                                    "sys.stderr.write('" READY "'); sys.stderr.flush(); "
                                    "sys.stdin.read()",
                                    NULL};
        t->bare = bare;
        if (start(t, argv) == 0)
                watch(t, is_ready);
        t->bare = false;
        return t->pid > 0 && is_ready(t);
}

/* False: it does not start without the probe, either, as a shim whose version is not there. */
static bool try_python(struct trial *t, const char *path, struct afz_tried_python *ret)
{
        *ret = (struct afz_tried_python){.stack_err = -ESRCH};
        (void)afz_span_copy(afz_span_str(path), ret->path, sizeof ret->path);
        ret->started = starts(t, path, false);
        ret->probed = ret->started && has_sample(t);
        if (ret->started)
                ret->stack_err = read_stack(t->pid);
        if (t->book)
                afz_book_words(t->book->python, sizeof ret->version, ret->version);
        if (!ret->started || !ret->version[0])
                take_words(t, ret->why);
        end(t);
        if (ret->started)
                return true;
        bool bare = starts(t, path, true);
        end(t);
        return bare;
}

/* Once each, whatever it is called. */
static bool is_new(const char *path, struct stat *seen, size_t *n, size_t cap)
{
        struct stat st;
        if (*n == cap || access(path, X_OK) < 0 || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
                return false;
        for (size_t i = 0; i < *n; i++)
                if (seen[i].st_dev == st.st_dev && seen[i].st_ino == st.st_ino)
                        return false;
        seen[(*n)++] = st;
        return true;
}

static void try_pythons(struct trial *t, const char *path, struct afz_probe_facts *ret)
{
        static const char *const names[] = {"python3", "python"};
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + most.all_ns;
        struct stat seen[AFZ_TRIED_PYTHONS];
        size_t n = 0;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                struct afz_span rest = afz_span_str(path), dir;
                bool last = false;
                while (!last && ret->pythons < AFZ_TRIED_PYTHONS &&
                       afz_clock_ns(CLOCK_MONOTONIC) < end_ns) {
                        char file[PATH_MAX];
                        last = afz_span_take_until(&rest, ':', &dir) < 0;
                        if (last)
                                dir = rest;
                        if (dir.n == 0 || dir.p[0] != '/' || dir.n > 4000)
                                continue;
                        snprintf(file, sizeof file, "%.*s/%s", (int)dir.n, dir.p, names[i]);
                        if (is_new(file, seen, &n, AFZ_TRIED_PYTHONS))
                                ret->pythons += try_python(t, file, &ret->python[ret->pythons]);
                }
        }
}

/* ---- reading from outside ---- */

/* A child of our own, which holds a word where we have it, too. */
static int read_child(void)
{
        static volatile uint64_t word = 0x616674;
        uint64_t got = 0;
        pid_t pid = fork();
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        pause();
        }
        if (pid < 0)
                return -errno;
        int r = afz_proc_memory_read(pid, (uint64_t)(uintptr_t)&word, &got, sizeof got);
        kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        return r < 0 ? r : got == word ? 0 : -EIO;
}

/* In a process of its own: it is large, and somebody else's. */
static int load_libdw(void)
{
        int status = 0;
        pid_t parent = getpid(), pid = fork();
        if (pid == 0) {
                struct afz_native *native;
                (void)signal(SIGALRM, SIG_DFL);
                (void)alarm((unsigned)most.cpu_s);
                _exit(-afz_native_open(parent, &native) & 0xff);
        }
        if (pid < 0)
                return -errno;
        if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
                return -EIO;
        return -WEXITSTATUS(status);
}

void afz_probe_trial(const char *library, const char *path, struct afz_probe_facts *ret)
{
        struct trial t = {.library = library, .listen_fd = -1, .in_fd = -1, .err_fd = -1};
        *ret = (struct afz_probe_facts){.found = library, .tried = true};
        ret->memory_err = read_child();
        ret->libdw_err = load_libdw();
        if (!library)
                return;
        snprintf(ret->library, sizeof ret->library, "%s", library);
        ret->err = make_place(&t);
        if (ret->err == 0) {
                try_small(&t, ret);
                if (path)
                        try_pythons(&t, path, ret);
        }
        leave_place(&t);
}
