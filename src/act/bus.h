#ifndef AFZ_BUS_H
#define AFZ_BUS_H
/* D-Bus, as seen from a program that links libc alone: libsystemd is loaded in a forked child,
 * which does one thing, writes one answer, and is killed when it takes too long. Nothing of it
 * stays in our own memory, and a bus that hangs costs a bounded wait.
 *
 * The few functions and types of sd-bus are declared in bus_calls.h, so that no -dev package is
 * needed to build; a machine without libsystemd.so.0 answers -ENODATA. Where nobody listens it is
 * -ENOENT, -ECONNREFUSED or -EHOSTUNREACH, and -ETIMEDOUT where nobody answers in time (two
 * seconds, five for a scope).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Version of the system's or the user's manager. */
int afz_bus_manager_version(bool system, char *ret, size_t cap);

/* Makes the transient scope NAME ("x.scope") with these processes in it, delegated, collected when
 * it is empty, also after a failure. Waits until the manager's job is done: the processes are then
 * in a cgroup of that name. -EACCES, or what the manager said. */
struct afz_bus_scope {
        const char *name, *description;
        const pid_t *pid;
        unsigned pids;
        uint32_t weight; /* of CPU and I/O; 0: the manager's default */
};
int afz_bus_make_scope(bool system, const struct afz_bus_scope *scope);

/* A desktop notification on the user's bus (org.freedesktop.Notifications). Starts the child, which
 * ends by itself within seconds, and does not wait: the caller reaps (pid returned). -ENODATA: no
 * bus that could be asked. */
pid_t afz_bus_notify(const char *summary, const char *body, bool urgent);

#endif
