/* Says what py_stack.h sees:
 *
 *     py_stack_dump PID [TID...]     the frames of these threads (all): "thread TID", then a line a
 * frame, FILE TAB FUNCTION TAB LINE; or "thread TID error TEXT" py_stack_dump --time PID TID   how
 * long one look takes, in microseconds py_stack_dump --layout MINOR   what py_layout.h has
 * for 3.MINOR: "field offset", or from 3.13 on "published.field position"
 *
 * Ends with 1 and the error's name when the process can't be read at all.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "py_layout.h"
#include "py_stack.h"

#define MOST_FRAMES 4096

static struct afz_py_frame frames[MOST_FRAMES];

/* strerrorname_np() is younger than the oldest glibc we build with. */
static const char *error_name(int r)
{
        static const struct {
                int error;
                const char *name;
        } names[] = {
                {ENOENT, "ENOENT"}, {ENOTSUP, "ENOTSUP"}, {EACCES, "EACCES"},
                {EPERM, "EPERM"},   {ESRCH, "ESRCH"},     {EAGAIN, "EAGAIN"},
        };
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                if (names[i].error == -r)
                        return names[i].name;
        }
        return "another error";
}

static void dump_thread(struct afz_py *py, pid_t tid)
{
        int n = afz_py_thread(py, tid, frames, MOST_FRAMES);
        if (n < 0) {
                printf("thread %d error %s\n", (int)tid, error_name(n));
                return;
        }
        printf("thread %d\n", (int)tid);
        for (int i = 0; i < n; i++)
                printf("%s\t%s\t%d\n", frames[i].file, frames[i].function, frames[i].line);
}

static void dump_all(struct afz_py *py, pid_t pid)
{
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
        DIR *dir = opendir(path);
        for (struct dirent *e; dir && (e = readdir(dir));) {
                if (e->d_name[0] != '.')
                        dump_thread(py, atoi(e->d_name));
        }
        if (dir)
                closedir(dir);
}

static void time_thread(struct afz_py *py, pid_t tid)
{
        enum { ROUNDS = 100 };
        struct timespec a, b;
        int n = 0;
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int i = 0; i < ROUNDS; i++)
                n = afz_py_thread(py, tid, frames, MOST_FRAMES);
        clock_gettime(CLOCK_MONOTONIC, &b);
        double us = (double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3;
        printf("%d frames, %.0f us\n", n, us / ROUNDS);
}

static int dump_layout(unsigned minor)
{
        struct afz_py_layout l;
        bool table = afz_py_layout_table(minor, &l) == 0;
        if (!table && afz_py_field_position(minor, AFZ_PY_THREAD_NEXT) == AFZ_PY_ABSENT)
                return 1;
        for (enum afz_py_field f = 0; f < AFZ_PY_FIELD_COUNT; f++) {
                uint32_t at = table ? l.at[f] : afz_py_field_position(minor, f);
                if (at != AFZ_PY_ABSENT)
                        printf("%s%s %u\n", table ? "" : "published.", afz_py_field_name(f), at);
        }
        printf("shift.kind %d\nshift.compact %d\nshift.ascii %d\n", AFZ_PY_SHIFT_KIND,
               AFZ_PY_SHIFT_COMPACT, AFZ_PY_SHIFT_ASCII);
        return 0;
}

int main(int argc, char **argv)
{
        struct afz_py *py;
        bool timed = argc == 4 && strcmp(argv[1], "--time") == 0;
        if (argc == 3 && strcmp(argv[1], "--layout") == 0)
                return dump_layout((unsigned)atoi(argv[2]));
        if (argc < 2)
                return 2;
        pid_t pid = atoi(argv[timed ? 2 : 1]);
        int r = afz_py_open(pid, &py);
        if (r < 0) {
                printf("%s\n", error_name(r));
                return 1;
        }
        if (timed)
                time_thread(py, atoi(argv[3]));
        else if (argc == 2)
                dump_all(py, pid);
        for (int i = 2; !timed && i < argc; i++)
                dump_thread(py, atoi(argv[i]));
        afz_py_close(py);
        return 0;
}
