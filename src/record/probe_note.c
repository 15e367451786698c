#include "probe_note.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "env.h"
#include "run_home.h"
#include "span.h"

enum { LINE_CAP = 1024, FILE_MAX = 64 << 10 }; /* some hundred commands; a full file begins anew */

/* "0.1.0 python3 /home/me/train.py" */
static void put_line(const char *version, const char *cwd, char *const *argv, char *buf, size_t cap)
{
        const char *name = argv[0] ? strrchr(argv[0], '/') : NULL, *script = NULL;
        char text[LINE_CAP];
        for (int i = 1; argv[0] && argv[i] && !script; i++)
                if (argv[i][0] != '-')
                        script = argv[i];
        snprintf(text, sizeof text, "%s %s %s%s%s", version,
                 name      ? name + 1
                 : argv[0] ? argv[0]
                           : "",
                 script && script[0] != '/' ? cwd : "", script && script[0] != '/' ? "/" : "",
                 script ? script : "");
        (void)afz_span_copy(afz_span_str(text), buf, cap);
}

static int open_notes(bool make)
{
        struct afz_run_roots roots = afz_run_roots_live();
        char path[AFZ_RUN_PATH_CAP];
        int at = afz_run_state_open(&roots, make, path, NULL);
        if (at < 0)
                return at;
        int fd = openat(at, "../" AFZ_PROBE_NOTES,
                        (make ? O_RDWR | O_CREAT | O_APPEND : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW |
                                O_NONBLOCK | O_NOCTTY,
                        0600);
        int err = errno;
        close(at);
        return fd < 0 ? -err : fd;
}

const char *afz_probe_note_path(char *buf, size_t cap)
{
        struct afz_run_roots roots = afz_run_roots_live();
        char path[AFZ_RUN_PATH_CAP];
        const char *home = getenv("HOME");
        int at = afz_run_state_open(&roots, false, path, NULL);
        char *slash = at >= 0 ? strrchr(path, '/') : NULL;
        if (at >= 0)
                close(at);
        size_t skip = home && home[0] == '/' && home[1] ? strlen(home) : 0;
        if (!slash) {
                snprintf(buf, cap, "%s", AFZ_PROBE_NOTES);
                return buf;
        }
        slash[1] = '\0';
        bool below = skip > 0 && strncmp(path, home, skip) == 0 && path[skip] == '/';
        snprintf(buf, cap, "%s%s%s", below ? "~" : "", below ? path + skip : path, AFZ_PROBE_NOTES);
        return buf;
}

static bool has_line(int fd, const char *wanted)
{
        static _Thread_local char buf[FILE_MAX];
        ssize_t n = afz_fd_read_head(fd, buf, sizeof buf);
        struct afz_span text = {buf, n > 0 ? (size_t)n : 0}, line;
        while (text.n > 0 && afz_span_take_line(&text, &line) == 0)
                if (afz_span_eq(line, wanted))
                        return true;
        return false;
}

bool afz_probe_note_has(const char *version, const char *cwd, char *const *argv)
{
        char line[LINE_CAP];
        int fd = open_notes(false);
        if (fd < 0)
                return false;
        put_line(version, cwd, argv, line, sizeof line);
        bool has = has_line(fd, line);
        close(fd);
        return has;
}

int afz_probe_note_add(const char *version, const char *cwd, char *const *argv)
{
        char line[LINE_CAP + 1];
        int fd = open_notes(true), r = 0;
        if (fd < 0)
                return fd;
        put_line(version, cwd, argv, line, LINE_CAP);
        if (lseek(fd, 0, SEEK_END) > FILE_MAX - LINE_CAP && ftruncate(fd, 0) < 0)
                r = -errno;
        (void)lseek(fd, 0, SEEK_SET);
        if (r == 0 && !has_line(fd, line)) {
                size_t n = strlen(line);
                line[n++] = '\n';
                r = write(fd, line, n) == (ssize_t)n ? 0 : -EIO;
        }
        close(fd);
        return r;
}
