#include "recorder_git.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "quiet.h"
#include "span.h"

enum {
        MOST_UP = 64,         /* folders above one that are looked at */
        PACKED_MAX = 4 << 20, /* bytes of packed-refs: some hundred thousand names */
        NAME_CAP = 512,       /* of a ref, or of a folder that is named in a file */
};

/* The first line of a small file, without its end. */
static int read_line(int dir_fd, const char *name, char *buf, size_t cap, struct afz_span *ret)
{
        int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0)
                return -errno;
        ssize_t n = afz_fd_read_head(fd, buf, cap);
        close(fd);
        if (n < 0)
                return (int)n;
        struct afz_span text = {buf, (size_t)n}, line;
        if (afz_span_take_line(&text, &line) < 0)
                line = (struct afz_span){buf, (size_t)n};
        *ret = afz_span_trim(line);
        return 0;
}

static int open_folder(int at, const char *name)
{
        int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int open_named(int at, struct afz_span name)
{
        char path[NAME_CAP];
        if (name.n == 0 || name.n >= sizeof path)
                return -ENAMETOOLONG;
        memcpy(path, name.p, name.n);
        path[name.n] = '\0';
        return open_folder(at, path);
}

/* ".git" of a folder: the repository itself, or a file that says where it is (a worktree). */
static int open_git(int dir_fd)
{
        char buf[NAME_CAP];
        struct afz_span line;
        int fd = open_folder(dir_fd, ".git");
        if (fd != -ENOTDIR)
                return fd;
        int r = read_line(dir_fd, ".git", buf, sizeof buf, &line);
        if (r < 0)
                return r;
        if (afz_span_take_prefix(&line, "gitdir:") < 0)
                return -ENOENT;
        return open_named(dir_fd, afz_span_trim(line));
}

static int find_git(const char *folder)
{
        int at = open_folder(AT_FDCWD, folder), git = at < 0 ? at : -ENOENT;
        for (int i = 0; at >= 0 && i < MOST_UP; i++) {
                git = open_git(at);
                if (git >= 0)
                        break;
                int up = open_folder(at, "..");
                close(at);
                at = up;
        }
        if (at >= 0)
                close(at);
        return git;
}

static bool set_revision(struct afz_span text, char ret[AFZ_GIT_CAP])
{
        if (text.n != 40 && text.n != 64)
                return false;
        for (size_t i = 0; i < text.n; i++)
                if (!strchr("0123456789abcdef", text.p[i]) || text.p[i] == '\0')
                        return false;
        memcpy(ret, text.p, text.n);
        ret[text.n] = '\0';
        return true;
}

static bool is_same(struct afz_span a, struct afz_span b)
{
        return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* Lines "HEX NAME", and others. */
static bool find_packed(int git_fd, struct afz_span name, char ret[AFZ_GIT_CAP])
{
        bool found = false;
        int fd = openat(git_fd, "packed-refs", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        char *buf = fd < 0 ? NULL : malloc(PACKED_MAX);
        ssize_t n = buf ? afz_fd_read(fd, buf, PACKED_MAX) : -1;
        struct afz_span text = {buf, n > 0 ? (size_t)n : 0}, line, revision;
        while (!found && text.n > 0 && afz_span_take_line(&text, &line) == 0)
                found = afz_span_take_word(&line, &revision) == 0 &&
                        is_same(afz_span_trim(line), name) && set_revision(revision, ret);
        free(buf);
        if (fd >= 0)
                close(fd);
        return found;
}

static bool find_ref(int git_fd, struct afz_span name, char ret[AFZ_GIT_CAP])
{
        char path[NAME_CAP], buf[NAME_CAP];
        struct afz_span line;
        if (name.n == 0 || name.n >= sizeof path)
                return false;
        memcpy(path, name.p, name.n);
        path[name.n] = '\0';
        return (read_line(git_fd, path, buf, sizeof buf, &line) == 0 && set_revision(line, ret)) ||
               find_packed(git_fd, name, ret);
}

/* A worktree has its own HEAD, and its branches in the repository that it is of. */
static bool find_ref_of_all(int git_fd, struct afz_span name, char ret[AFZ_GIT_CAP])
{
        char buf[NAME_CAP];
        struct afz_span line;
        if (find_ref(git_fd, name, ret))
                return true;
        int common = read_line(git_fd, "commondir", buf, sizeof buf, &line) == 0
                             ? open_named(git_fd, line)
                             : -ENOENT;
        bool found = common >= 0 && find_ref(common, name, ret);
        if (common >= 0)
                close(common);
        return found;
}

void afz_git_revision(const char *folder, char ret[AFZ_GIT_CAP])
{
        char buf[NAME_CAP], found[AFZ_GIT_CAP];
        struct afz_span head;
        ret[0] = '\0';
        int git = find_git(folder);
        if (git < 0)
                return;
        bool ok = read_line(git, "HEAD", buf, sizeof buf, &head) == 0;
        if (ok && afz_span_take_prefix(&head, "ref:") == 0)
                ok = find_ref_of_all(git, afz_span_trim(head), found);
        else
                ok = ok && set_revision(head, found);
        if (ok)
                memcpy(ret, found, sizeof found);
        close(git);
}

void afz_git_revision_soon(const char *folder, int wait_ms, char ret[AFZ_GIT_CAP])
{
        char found[AFZ_GIT_CAP] = "";
        int pair[2];
        ret[0] = '\0';
        if (pipe2(pair, O_CLOEXEC) < 0)
                return;
        pid_t pid = fork();
        if (pid == 0) {
                afz_quiet_fds((int[]){pair[1]}, 1); /* it may stay for long, and holds nothing */
                afz_git_revision(folder, found);
                _exit(write(pair[1], found, sizeof found) != sizeof found);
        }
        close(pair[1]);
        struct pollfd p = {.fd = pair[0], .events = POLLIN};
        bool told = pid > 0 && poll(&p, 1, wait_ms) > 0 &&
                    read(pair[0], found, sizeof found) == (ssize_t)sizeof found;
        close(pair[0]);
        if (pid > 0 && !told)
                (void)kill(pid, SIGKILL); /* that it hears when the mount answers */
        if (pid > 0)
                (void)waitpid(pid, NULL, told ? 0 : WNOHANG);
        if (told)
                memcpy(ret, found, sizeof found);
}
