/* Whether we can see which lines hold memory, and where a program stands: the probe, and what reads
 * stacks from outside, tried on programs of our own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "checks.h"

AFZ_CHECK(probe)
{
        const struct afz_probe_facts *p = ctx->probe;
        if (!p)
                return AFZ_FINDING_SKIP;
        if (!p->found) {
                afz_fix(ret, "install Antifreeze whole (meson install): the library belongs into "
                             "lib/antifreeze beside bin");
                return afz_find(ret, AFZ_FINDING_MISSING,
                                "its library was not found: which lines of a program hold its "
                                "memory is not seen");
        }
        if (strpbrk(p->library, " :")) {
                afz_fix(ret, "install Antifreeze under a path without spaces and colons");
                return afz_find(ret, AFZ_FINDING_WARN,
                                "the path of its library (%s) has a space or a colon in it, which "
                                "the loader does not take",
                                p->library);
        }
        if (!p->tried)
                return afz_find(ret, AFZ_FINDING_OK, "its library is there; not tried");
        if (p->seen)
                return afz_find(ret, AFZ_FINDING_OK,
                                "tried: loaded into a small program, and saw what it allocates");
        if (!p->started)
                return afz_find(ret, AFZ_FINDING_UNKNOWN, "it could not be tried: %s",
                                strerror(-p->err));
        afz_fix(ret, "try LD_PRELOAD=%.200s true; jobs run without it all the same", p->library);
        return afz_find(ret, AFZ_FINDING_WARN,
                        "tried, and %s%s%s: which lines hold memory is not "
                        "seen",
                        p->asked ? "it saw nothing in a small program"
                                 : "a small program ran without it",
                        p->why[0] ? ": " : "", p->why);
}

/* "CPython 3.11 (/usr/bin/python3)", as long as there is room. */
static void add_python(char *buf, size_t cap, const struct afz_tried_python *p)
{
        size_t n = strlen(buf);
        const char *name = p->version[0] ? p->version : "a Python";
        int len = snprintf(buf + n, cap - n, "%s%s (%s)", n ? ", " : "", name, p->path);
        if (len < 0 || (size_t)len >= cap - n)
                buf[n] = '\0';
}

static bool is_readable(const struct afz_tried_python *p)
{
        return p->probed && p->version[0] && p->stack_err == 0;
}

static const char *trouble_of(const struct afz_tried_python *p)
{
        if (!p->started)
                return "with the probe in it, it does not start (run with --no-probe)";
        if (p->stack_err == -EPERM || p->stack_err == -EACCES)
                return "its memory may not be read";
        if (p->stack_err == -ENOTSUP)
                return "a version or build whose insides are not known";
        if (!p->probed)
                return "the probe does not get into it";
        if (!p->version[0])
                return p->why[0] ? p->why : "the probe does not read its stacks";
        return "its stack could not be read";
}

AFZ_CHECK(python)
{
        const struct afz_probe_facts *p = ctx->probe;
        char good[200] = "";
        const struct afz_tried_python *bad = NULL;
        if (!p || !p->tried || !p->found)
                return AFZ_FINDING_SKIP;
        if (p->pythons == 0)
                return afz_find(ret, AFZ_FINDING_OK, "there is no Python in PATH");
        for (size_t i = 0; i < p->pythons; i++)
                if (is_readable(&p->python[i]))
                        add_python(good, sizeof good, &p->python[i]);
                else if (!bad)
                        bad = &p->python[i];
        if (!bad)
                return afz_find(ret, AFZ_FINDING_OK, "their lines can be told: %s", good);
        if (bad->stack_err == -EPERM || bad->stack_err == -EACCES)
                afz_fix(ret, "see reading memory and stacks (Yama) here");
        else
                afz_fix(ret, "run the job with CPython 3.9 to 3.14, not a debug or free-threaded "
                             "build; with others, lines of C are told");
        return afz_find(ret, AFZ_FINDING_WARN, "%.100s: %.90s%s%s", bad->path, trouble_of(bad),
                        good[0] ? "; of others, lines can be told: " : "", good);
}

AFZ_CHECK(native_lines)
{
        const struct afz_probe_facts *p = ctx->probe;
        if (!p || !p->tried)
                return AFZ_FINDING_SKIP;
        if (p->libdw_err == 0)
                return afz_find(ret, AFZ_FINDING_OK,
                                "libdw is there: functions and lines of native code are named");
        afz_fix(ret, "install libdw (Debian, Ubuntu: libdw1; Fedora: elfutils-libs; Arch: "
                     "elfutils), and build with its header");
        return afz_find(ret, AFZ_FINDING_MISSING,
                        "libdw %s: native code is told as library and address, without lines",
                        p->libdw_err == -ENOTSUP ? "is not here, or not in this build"
                                                 : "could not be used");
}

/* "2": a filter is in force. */
static bool is_filtered(const struct afz_doctor_ctx *ctx)
{
        char buf[8192];
        struct afz_span text, line;
        if (afz_doctor_read_self(ctx->env, "status", buf, sizeof buf, &text) < 0)
                return false;
        while (afz_span_take_line(&text, &line) == 0)
                if (afz_span_take_prefix(&line, "Seccomp:") == 0)
                        return afz_span_eq(afz_span_trim(line), "2");
        return false;
}

AFZ_CHECK(memory_reading)
{
        const struct afz_probe_facts *p = ctx->probe;
        if (!p || !p->tried)
                return AFZ_FINDING_SKIP;
        if (p->memory_err == 0)
                return afz_find(ret, AFZ_FINDING_OK,
                                "tried: the memory of a process of ours can be read, and so can "
                                "stacks");
        bool filter = is_filtered(ctx);
        if (ctx->box.container)
                afz_fix(ret, "docker run --cap-add=SYS_PTRACE (podman: the same; Kubernetes: "
                             "securityContext.capabilities.add SYS_PTRACE)");
        else if (filter)
                afz_fix(ret, "run outside the sandbox whose system call filter forbids "
                             "process_vm_readv");
        else
                afz_fix(ret, "see stacks (Yama) here; a security module (SELinux: deny_ptrace) may "
                             "forbid it, too");
        return afz_find(ret, AFZ_FINDING_WARN,
                        "tried, and the memory of a process may not be read (%s%s): where a job "
                        "stands is not told, but which lines hold memory is",
                        strerror(-p->memory_err), filter ? "; a seccomp filter is in force" : "");
}
