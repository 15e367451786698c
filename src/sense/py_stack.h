/*
 * Python stacks of another process, read from outside: no signal, no ptrace stop, no help from the
 * process. Memory is read while the program runs on, so a stack that changes meanwhile can come out
 * short or a little stale; it never comes out as a crash or an endless loop here, and a thread that
 * stands still (the case that matters: a hang) comes out exactly.
 *
 * CPython 3.9 to 3.14, 64 bit. py_layout.h has what is where in each version; py_walk.h walks,
 * through a read callback that can be given any other memory.
 */
#ifndef AFZ_PY_STACK_H
#define AFZ_PY_STACK_H

#include <stddef.h>
#include <sys/types.h>

/* One Python function that a thread stands in. Text is UTF-8, printable, cut to fit; "?" where it
 * can't be read. */
struct afz_py_frame {
        char file[256];
        char function[96]; /* with its class from 3.11 on ("Loader.next"), the bare name before */
        int line;          /* 0: unknown */
};

struct afz_py;

/*
 * Looks for an interpreter in process `pid` (as seen from here; it may live in a container) and for
 * what is where in it. The handle is the caller's until afz_py_close(); it stays valid when the
 * process ends (calls then say -ESRCH), but means nothing after the process has exec'd another
 * program. -ENOENT: no Python in it, or a 32-bit one. -ENOTSUP: a version or build that can't be
 * read (free-threaded, a debug build before 3.13). -EACCES, -EPERM: its memory may not be read
 * (another user's, or yama's ptrace_scope). -ESRCH: gone. -EAGAIN: the interpreter isn't up yet, or
 * is on its way down.
 */
int afz_py_open(pid_t pid, struct afz_py **ret);

/*
 * The Python frames of thread `tid` (a kernel thread id, as in /proc/PID/task), innermost first, at
 * most `cap`. The number of frames; 0: the thread runs no Python code now. -errno as above. Never
 * stops the target. Before 3.11 an interpreter doesn't note the kernel's thread id: there the
 * thread is found by glibc's own note of it.
 */
int afz_py_thread(struct afz_py *py, pid_t tid, struct afz_py_frame *ret, size_t cap);

/* NULL is fine. */
void afz_py_close(struct afz_py *py);

#endif
