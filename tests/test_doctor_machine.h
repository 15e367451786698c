#ifndef AFZ_TEST_DOCTOR_MACHINE_H
#define AFZ_TEST_DOCTOR_MACHINE_H
/* Whole machines for doctor's tests: files, and fakes for what no file tells. Each test takes the
 * laptop, in which everything is well, and changes what it is about. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "doctor.h"
#include "fixture.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

/* A machine: its files, and tables (ending with NULL) of what the effects answer. */
struct machine {
        struct afz_fixture *files;
        const char *variables[8];               /* "HOME=/home/ada" */
        const char *exist[8];                   /* absolute paths that are there */
        const char *denied[4];                  /* paths below a root that may not be written */
        const char *links[8];                   /* "/home -> /data/home" */
        int manager;                            /* what asking it gives */
        struct afz_trial trial[AFZ_TIER_COUNT]; /* what trying each gives */
        int trial_err, tried;
        int asked, system_asked;
        char linked[512]; /* every path whose link was read */
        struct afz_doctor_input in;
        struct afz_diagnosis d;
};

static inline const char *fake_variable(void *ctx, const char *name)
{
        struct machine *m = ctx;
        size_t n = strlen(name);
        for (size_t i = 0; m->variables[i]; i++)
                if (strncmp(m->variables[i], name, n) == 0 && m->variables[i][n] == '=')
                        return m->variables[i] + n + 1;
        return NULL;
}

static inline int fake_may(void *ctx, int dir_fd, const char *path, int mode)
{
        struct machine *m = ctx;
        if (dir_fd < 0) {
                for (size_t i = 0; m->exist[i]; i++)
                        if (strcmp(m->exist[i], path) == 0)
                                return 0;
                return -ENOENT;
        }
        for (size_t i = 0; m->denied[i]; i++)
                if (mode & W_OK && strcmp(m->denied[i], path) == 0)
                        return -EACCES;
        return faccessat(dir_fd, path, F_OK, 0) < 0 ? -errno : 0;
}

static inline ssize_t fake_link(void *ctx, const char *path, char *buf, size_t cap)
{
        struct machine *m = ctx;
        size_t n = strlen(path), used = strlen(m->linked);
        snprintf(m->linked + used, sizeof m->linked - used, "%s ", path);
        for (size_t i = 0; m->links[i]; i++)
                if (strncmp(m->links[i], path, n) == 0 && strncmp(m->links[i] + n, " -> ", 4) == 0)
                        return (ssize_t)snprintf(buf, cap, "%s", m->links[i] + n + 4);
        return -EINVAL;
}

static inline int fake_ask(void *ctx, bool system, struct afz_manager_answer *ret)
{
        struct machine *m = ctx;
        m->asked++;
        m->system_asked += system;
        if (m->manager == 0)
                snprintf(ret->version, sizeof ret->version, "252.22-1~deb12u1");
        return m->manager;
}

/* Not among the effects unless a test puts it there. */
static inline int fake_trial(void *ctx, const struct afz_env *env, enum afz_tier tier,
                             struct afz_trial *ret)
{
        struct machine *m = ctx;
        (void)env;
        m->tried++;
        if (m->trial_err == 0) {
                *ret = m->trial[tier];
                ret->tier = tier;
        }
        return m->trial_err;
}

#define LIMITS(files_soft, files_hard)                                                             \
        "Limit                     Soft Limit           Hard Limit           Units     \n"         \
        "Max cpu time              unlimited            unlimited            seconds   \n"         \
        "Max processes             62717                62717                processes \n"         \
        "Max open files            " files_soft "       " files_hard "       files     \n"         \
        "Max locked memory         8388608              8388608              bytes     \n"         \
        "Max address space         unlimited            unlimited            bytes     \n"

#define LAPTOP_MOUNTS                                                                              \
        "22 27 0:21 / /proc rw,relatime shared:5 - proc proc rw\n"                                 \
        "23 27 0:22 / /sys rw,relatime shared:6 - sysfs sysfs rw\n"                                \
        "24 27 0:6 / /dev rw,relatime shared:2 - devtmpfs udev rw,size=8g,mode=755\n"              \
        "25 24 0:23 / /dev/shm rw,nosuid shared:3 - tmpfs tmpfs rw\n"                              \
        "27 1 254:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"                           \
        "28 23 0:25 / /sys/fs/cgroup rw,relatime shared:7 - cgroup2 cgroup2 rw,nsdelegate\n"       \
        "29 27 0:40 / /tmp rw,nosuid shared:8 - tmpfs tmpfs rw\n"                                  \
        "30 27 0:41 / /mnt/server rw,relatime - nfs4 server:/home rw,vers=4.2\n"

/* Debian 12 on a laptop: cgroup v2, a systemd user manager, a session that ssh opened. */
static const struct afz_fixture_row laptop_files[] = {
        {"machine", "page_bytes 4096\nclock_ticks 100\nself_pid 42\n"},
        {"proc/42/mountinfo", LAPTOP_MOUNTS},
        {"proc/42/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n"},
        {"proc/42/limits", LIMITS("65536", "1048576")},
        {"proc/42/status", "Name:\tantifreeze\nCpus_allowed_list:\t0-7\n"},
        {"proc/42/comm", "antifreeze\n"},
        {"proc/42/ns/pid", "-> pid:[4026531836]"},
        {"proc/1/comm", "systemd\n"},
        {"proc/version", "Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org)\n"},
        {"proc/sys/kernel/osrelease", "6.1.0-18-amd64\n"},
        {"proc/sys/kernel/yama/ptrace_scope", "0\n"},
        {"proc/sys/vm/swappiness", "60\n"},
        {"proc/sys/vm/overcommit_memory", "0\n"},
        {"proc/meminfo", "MemTotal:       16252928 kB\nMemFree:        9000000 kB\n"},
        {"proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vme sse2\n"},
        {"proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/nvme0n1p2 quiet\n"},
        {"proc/swaps",
         "Filename\tType\tSize\tUsed\tPriority\n/dev/nvme0n1p3  partition  8388604  0  "
         "-2\n"},
        {"proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 "
                                 "avg60=0.00 avg300=0.00 total=10\n"},
        {"sys/devices/system/cpu/online", "0-7\n"},
        {"sys/class/dmi/id/sys_vendor", "LENOVO\n"},
        {"sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"},
        {"sys/bus/pci/devices/0000:00:02.0/class", "0x020000\n"},
        {"sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n"},
        {"cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc\n"},
        {"cgroup/user.slice/user-1000.slice/memory.max", "max\n"},
        {"cgroup/user.slice/user-1000.slice/user@1000.service/cgroup.controllers",
         "cpu memory pids\n"},
        {"cgroup/user.slice/user-1000.slice/session-3.scope/cgroup.controllers", "memory pids\n"},
        {"cgroup/user.slice/user-1000.slice/session-3.scope/cgroup.procs", "42\n"},
        {"cgroup/user.slice/user-1000.slice/session-3.scope/memory.max", "max\n"},
        {"dev/kmsg", ""},
        {"fs_space", "250000000000 90000000000 80000000000 1000000 900000 /\n"
                     "8321499136 8321499136 8321499136 2031616 2031615 /dev/shm\n"
                     "8321499136 8321499136 8321499136 2031616 2031615 /tmp\n"},
        {0},
};

#define OWN_CGROUP "./user.slice/user-1000.slice/session-3.scope"

static inline void machine_open(struct machine *m, const struct afz_fixture_row *files)
{
        *m = (struct machine){
                .files = afz_fixture_new(files),
                .variables = {"HOME=/home/ada", "USER=ada"},
                .exist = {"/run/user/1000/systemd/private", "/run/user/1000/bus",
                          "/var/lib/systemd/linger/ada"},
                .denied = {OWN_CGROUP},
        };
        m->in = (struct afz_doctor_input){
                .env = afz_fixture_env(m->files),
                .uid = 1000,
                .effects = {.variable = fake_variable,
                            .may = fake_may,
                            .link = fake_link,
                            .ask_manager = fake_ask,
                            .ctx = m},
        };
}

static inline void machine_close(struct machine *m)
{
        afz_fixture_free(m->files);
}

static inline const struct afz_finding *finding_of(const struct machine *m, const char *id)
{
        for (size_t i = 0; i < afz_check_count; i++)
                if (strcmp(afz_check_table[i].id, id) == 0)
                        return &m->d.finding[i];
        fail_msg("there is no check %s", id);
        return NULL;
}

/* What must hold on every machine, however strange. */
static inline void machine_look(struct machine *m)
{
        memset(&m->d, 0x5a, sizeof m->d);
        m->linked[0] = '\0';
        assert_int_equal(afz_doctor_run(&m->in, &m->d), 0);
        for (size_t i = 0; i < afz_check_count; i++) {
                const struct afz_finding *f = &m->d.finding[i];
                const char *id = afz_check_table[i].id;
                if (f->level == AFZ_FINDING_SKIP)
                        continue;
                if (!f->text[0])
                        fail_msg("%s says nothing", id);
                if ((f->level == AFZ_FINDING_WARN || f->level == AFZ_FINDING_MISSING) && !f->fix[0])
                        fail_msg("%s says no way to fix: %s", id, f->text);
                if (f->level == AFZ_FINDING_OK && f->fix[0])
                        fail_msg("%s is ok and yet to be fixed: %s", id, f->fix);
                for (const char *p = f->text; *p; p++)
                        if ((unsigned char)*p < 0x20)
                                fail_msg("%s lets a control character through", id);
                /* A sentence that fills its room was cut. */
                assert_true(strlen(f->text) < sizeof f->text - 1);
                assert_true(strlen(f->fix) < sizeof f->fix - 1);
        }
}

static inline void expect(const struct machine *m, const char *id, enum afz_finding_level level,
                          const char *words)
{
        const struct afz_finding *f = finding_of(m, id);
        if (f->level != level)
                fail_msg("%s is %s and not %s: %s", id, afz_finding_level_name(f->level),
                         afz_finding_level_name(level), f->text);
        if (!strstr(f->text, words) && !strstr(f->fix, words))
                fail_msg("%s does not say \"%s\": %s | %s", id, words, f->text, f->fix);
}

#endif
