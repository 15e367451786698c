#include "py_stack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fds.h"
#include "proc_memory.h"
#include "py_find.h"
#include "span.h"

enum {
        TRIES = 5, /* a list of threads that changes under our eyes is walked again this often */
        STATUS_CAP = 4096, /* /proc/PID/status is 1.5 kB */
        MAPS_CAP = 16384,  /* a line is at most a path (4 kB) and 80 bytes */
};

struct afz_py {
        pid_t pid;
        int dir_fd; /* /proc/PID: still of this process when the number is another's */
        struct afz_py_place place;
};

static int read_process(void *context, uint64_t address, void *ret, size_t bytes)
{
        const struct afz_py *py = context;
        return afz_proc_memory_read(py->pid, address, ret, bytes);
}

/* A process that is gone has an empty folder, or none. */
static int gone(int error)
{
        return error == ENOENT ? -ESRCH : -error;
}

static int open_in(const struct afz_py *py, const char *name)
{
        int fd = openat(py->dir_fd, name, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? gone(errno) : fd;
}

/* The id of a process or thread as it sees itself, in the innermost namespace that it lives in. */
static int read_ns_id(const struct afz_py *py, const char *name, uint32_t *ret)
{
        char buf[STATUS_CAP];
        struct afz_span text = {.p = buf}, line;
        int fd = open_in(py, name);
        if (fd < 0)
                return fd;
        ssize_t n = read(fd, buf, sizeof buf);
        int r = n < 0 ? gone(errno) : 0;
        close(fd);
        text.n = n < 0 ? 0 : (size_t)n;
        while (r == 0 && afz_span_take_line(&text, &line) == 0) {
                uint64_t id = 0;
                if (afz_span_take_prefix(&line, "NSpid:") < 0)
                        continue;
                while (afz_span_take_u64(&line, &id) == 0)
                        ; /* the last is the process's own view */
                *ret = (uint32_t)id;
                return id > 0 && id <= INT_MAX ? 0 : -ENODATA;
        }
        return r < 0 ? r : -ENODATA;
}

/* Asks each place where an interpreter may begin; the first that is one decides. */
static int try_lines(struct afz_py *py, struct afz_span *text, struct afz_span exe)
{
        struct afz_span line;
        uint64_t base;
        int r = -ENOENT;
        while (r == -ENOENT && afz_span_take_line(text, &line) == 0) {
                if (afz_py_find_line(line, exe, &base))
                        r = afz_py_find_in(&py->place, base);
        }
        return r;
}

static int find_in_maps(struct afz_py *py)
{
        char *buf = malloc(MAPS_CAP);
        char exe[PATH_MAX];
        size_t have = 0;
        int r = -ENOENT;
        if (!buf)
                return -ENOMEM;
        ssize_t n = readlinkat(py->dir_fd, "exe", exe, sizeof exe);
        struct afz_span exe_path = {exe, n < 0 ? 0 : (size_t)n};
        int fd = open_in(py, "maps");
        while (fd >= 0 && r == -ENOENT) {
                n = read(fd, buf + have, MAPS_CAP - have);
                if (n <= 0) {
                        r = n < 0 ? gone(errno) : r;
                        break;
                }
                struct afz_span text = {buf, have + (size_t)n};
                r = try_lines(py, &text, exe_path);
                memmove(buf, text.p, text.n);
                have = text.n < MAPS_CAP ? text.n : 0;
        }
        free(buf);
        if (fd < 0)
                return fd;
        close(fd);
        return r;
}

int afz_py_open(pid_t pid, struct afz_py **ret)
{
        char path[32];
        int r = -ENOTSUP;
        struct afz_py *py = calloc(1, sizeof *py);
        if (!py)
                return -ENOMEM;
        py->pid = pid;
        py->place.memory = (struct afz_py_memory){.read = read_process, .context = py};
        snprintf(path, sizeof path, "/proc/%d", (int)pid);
        py->dir_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (py->dir_fd < 0)
                r = gone(errno);
        /* A first thread that ends while it is looked at looks like a layout that doesn't fit. */
        for (int i = 0; py->dir_fd >= 0 && r == -ENOTSUP && i < TRIES; i++)
                r = find_in_maps(py);
        if (r < 0) {
                afz_py_close(py);
                return r;
        }
        *ret = py;
        return 0;
}

int afz_py_thread(struct afz_py *py, pid_t tid, struct afz_py_frame *ret, size_t cap)
{
        char name[48];
        uint32_t id, main_id;
        uint64_t state;
        int r = -EAGAIN;
        snprintf(name, sizeof name, "task/%d/status", (int)tid);
        int known = read_ns_id(py, name, &id);
        if (known == 0)
                known = read_ns_id(py, "status", &main_id);
        if (known < 0)
                return known;
        for (int i = 0; r == -EAGAIN && i < TRIES; i++) {
                r = afz_py_walk_find(&py->place, id, main_id, &state);
                if (r == -ENOENT)
                        return 0;
                if (r == 0)
                        return afz_py_walk_frames(&py->place, state, ret, cap);
                r = r == -EFAULT ? -EAGAIN : r;
        }
        return r;
}

void afz_py_close(struct afz_py *py)
{
        if (!py)
                return;
        afz_fd_close(&py->dir_fd);
        free(py);
}
