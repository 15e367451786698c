/* Tier cgroup1 on a tree of plain files: what is written, in which order, what is read back, and
 * that nothing is left. The kernel's part is played by our own mkdirat(), unlinkat() and pwrite():
 * a new cgroup has its files, a removed one takes them along, a moved process is elsewhere. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "tier_cgroup1.h"
#include "tier_cgroup1_place.h"

#define MIB (UINT64_C(1) << 20)
#define STAT                                                                                       \
        "cache 9\nrss 9\nshmem 9\nswap 9\ntotal_cache 1000000\ntotal_rss 4096\n"                   \
        "total_shmem 8192\ntotal_swap 100\n"

/* What the kernel would do, for one test at a time. */
static struct {
        struct afz_fixture *files;
        const char *deaf;    /* a file that takes every write and keeps its value */
        const char *missing; /* a file that new cgroups do not have */
        char log[1024];      /* "file=text " of each write */
        char job[128];       /* the cgroup of the job, as /proc/PID/cgroup has it */
} kernel;

static const char *const new_files[][2] = {
        {"memory.limit_in_bytes", "9223372036854771712\n"},
        {"memory.memsw.limit_in_bytes", "9223372036854771712\n"},
        {"memory.use_hierarchy", "1\n"},
        {"memory.stat", STAT},
        {"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"},
        {"memory.max_usage_in_bytes", "67108864\n"},
        {"memory.memsw.max_usage_in_bytes", "67108864\n"},
        {"memory.swappiness", "60\n"},
        {"memory.move_charge_at_immigrate", "0\n"},
        {"cgroup.event_control", ""},
        {"cgroup.procs", ""},
        {"freezer.state", "THAWED\n"},
        {"pids.max", "max\n"},
        {"pids.current", "7\n"},
        {"cpu.shares", "1024\n"},
        {"blkio.bfq.weight", "100\n"},
};

int mkdirat(int fd, const char *path, mode_t mode)
{
        int r = (int)syscall(SYS_mkdirat, fd, path, mode);
        if (r < 0 || !kernel.files)
                return r;
        for (size_t i = 0; i < sizeof new_files / sizeof new_files[0]; i++) {
                char file[512];
                if (kernel.missing && strcmp(kernel.missing, new_files[i][0]) == 0)
                        continue;
                snprintf(file, sizeof file, "%s/%s", path, new_files[i][0]);
                int out = openat(fd, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
                size_t n = strlen(new_files[i][1]);
                assert_true(out >= 0 && write(out, new_files[i][1], n) == (ssize_t)n);
                close(out);
        }
        return 0;
}

int unlinkat(int fd, const char *path, int flags)
{
        if (kernel.files && flags & AT_REMOVEDIR)
                for (size_t i = 0; i < sizeof new_files / sizeof new_files[0]; i++) {
                        char file[512];
                        snprintf(file, sizeof file, "%s/%s", path, new_files[i][0]);
                        (void)syscall(SYS_unlinkat, fd, file, 0);
                }
        return (int)syscall(SYS_unlinkat, fd, path, flags);
}

static void set_job(const char *name)
{
        char path[64], text[512];
        snprintf(kernel.job, sizeof kernel.job, "%s", name);
        snprintf(path, sizeof path, "proc/%d/cgroup", (int)getpid());
        snprintf(text, sizeof text,
                 "5:freezer:/\n4:memory:%s\n3:cpu,cpuacct:/\n2:pids:/job\n0::/\n", name);
        afz_fixture_set(kernel.files, path, text);
}

ssize_t pwrite(int fd, const void *text, size_t n, off_t at)
{
        char link[64], path[PATH_MAX] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t got = kernel.files ? readlink(link, path, sizeof path - 1) : 0;
        const char *file = got > 0 ? strrchr(path, '/') + 1 : "";
        size_t used = strlen(kernel.log);
        if (kernel.files)
                snprintf(kernel.log + used, sizeof kernel.log - used, "%s=%.*s ", file,
                         (int)strcspn(text, "\n"), (const char *)text);
        if (kernel.deaf && strcmp(kernel.deaf, file) == 0)
                return (ssize_t)n;
        if (strcmp(file, "cgroup.procs") == 0 && strstr(path, "/cgroup/memory/"))
                set_job("/job/antifreeze-t1");
        return syscall(SYS_pwrite64, fd, text, n, at);
}

static const struct afz_fixture_row machine[] = {
        {"cgroup/memory/job/cgroup.procs", ""},  {"cgroup/freezer/cgroup.procs", ""},
        {"cgroup/cpu,cpuacct/cgroup.procs", ""}, {"cgroup/cpu", "-> cpu,cpuacct"},
        {"cgroup/cpuacct", "-> cpu,cpuacct"},    {"cgroup/pids/job/cgroup.procs", ""},
        {"proc/1/cgroup", "4:memory:/\n"},       {0},
};

static void start(const struct afz_fixture_row *rows)
{
        memset(&kernel, 0, sizeof kernel);
        kernel.files = afz_fixture_new(rows);
        afz_fixture_env(kernel.files)->self_pid = (uint64_t)getpid();
        set_job("/job");
}

static void stop(void)
{
        struct afz_fixture *files = kernel.files;
        kernel.files = NULL;
        afz_fixture_free(files);
}

static bool is_there(const char *path)
{
        char full[PATH_MAX];
        snprintf(full, sizeof full, "%s/%s", afz_fixture_dir(kernel.files), path);
        return access(full, F_OK) == 0;
}

static void nothing_is_left(void)
{
        static const char *const at[] = {"memory/job", "freezer", "cpu,cpuacct", "pids/job"};
        for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
                char path[128];
                snprintf(path, sizeof path, "cgroup/%s/antifreeze-t1", at[i]);
                if (is_there(path))
                        fail_msg("%s is left", path);
        }
}

static void holds(const char *path, const char *text)
{
        char full[PATH_MAX], buf[256] = "";
        snprintf(full, sizeof full, "%s/cgroup/%s", afz_fixture_dir(kernel.files), path);
        int fd = open(full, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, buf, sizeof buf - 1) < 0)
                fail_msg("%s: %s", path, strerror(errno));
        close(fd);
        buf[strcspn(buf, "\n")] = '\0';
        if (strcmp(buf, text) != 0)
                fail_msg("%s holds %s and not %s", path, buf, text);
}

static void job_ends(void)
{
        afz_fixture_set(kernel.files, "cgroup/memory/job/antifreeze-t1/cgroup.procs", "");
}

static struct afz_hold_plan plan_of(uint64_t ram_mib, uint64_t swap_mib)
{
        return (struct afz_hold_plan){
                .id = "t1",
                .what = "a test",
                .budget = {.ram_bytes = ram_mib * MIB, .swap_bytes = swap_mib * MIB},
                .processes = 50,
                .weight = 20};
}

static int open_it(const struct afz_hold_plan *plan, void **ret, char *why)
{
        why[0] = '\0';
        return afz_hold_cgroup1.open(afz_fixture_env(kernel.files), plan, getpid(), 0, ret, why);
}

/* v1 counts kills in our cgroup whoever's limit they were at. */
static void only_kills_at_our_limit_count(void **state)
{
        (void)state;
        static const struct {
                const char *peak, *swap_peak; /* of 64 and 80 MiB */
                uint64_t kills;
        } cases[] = {
                {"40000000\n", "40000000\n", 0}, {"67108864\n", "67108864\n", 2},
                {"65000000\n", "65000000\n", 2}, {"40000000\n", "83886080\n", 2},
                {"40000000\n", "", 2},           {"", "40000000\n", 2},
        };
        const char *dir = "cgroup/memory/job/antifreeze-t1";
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char why[AFZ_HOLD_WHY_CAP], path[128];
                struct afz_hold_plan plan = plan_of(64, 16);
                struct afz_pulse pulse = {0};
                void *hold;
                uint64_t v;
                start(machine);
                assert_int_equal(open_it(&plan, &hold, why), 0);
                snprintf(path, sizeof path, "%s/memory.max_usage_in_bytes", dir);
                afz_fixture_set(kernel.files, path, cases[i].peak);
                snprintf(path, sizeof path, "%s/memory.memsw.max_usage_in_bytes", dir);
                afz_fixture_set(kernel.files, path, cases[i].swap_peak);
                assert_int_equal(afz_hold_cgroup1.look(hold, &pulse), 0);
                if (!afz_pulse_get(&pulse, AFZ_PULSE_OOM_KILLS, &v) || v != cases[i].kills)
                        fail_msg("case %zu: %llu kills", i, (unsigned long long)v);
                job_ends();
                afz_hold_cgroup1.close(hold);
                stop();
        }
}

static void all_is_set_and_removed(void **state)
{
        (void)state;
        char why[AFZ_HOLD_WHY_CAP], place[AFZ_HOLD_PLACE_CAP];
        void *hold;
        size_t fds = afz_fixture_open_fds();
        struct afz_hold_plan plan = plan_of(64, 16);
        start(machine);
        assert_int_equal(open_it(&plan, &hold, why), 0);
        holds("memory/job/antifreeze-t1/memory.limit_in_bytes", "67108864");
        holds("memory/job/antifreeze-t1/memory.memsw.limit_in_bytes", "83886080");
        holds("pids/job/antifreeze-t1/pids.max", "50");
        holds("cpu,cpuacct/antifreeze-t1/cpu.shares", "204");
        afz_hold_cgroup1.place(hold, place);
        assert_string_equal(place, "memory,pids:/job/antifreeze-t1;cpu,freezer:/antifreeze-t1;");

        struct afz_pulse pulse = {0};
        uint64_t v;
        assert_int_equal(afz_hold_cgroup1.look(hold, &pulse), 0);
        assert_true(afz_pulse_get(&pulse, AFZ_PULSE_NEED, &v) && v == 4096 + 8192 + 100);
        assert_true(afz_pulse_get(&pulse, AFZ_PULSE_SWAP, &v) && v == 100);
        assert_true(afz_pulse_get(&pulse, AFZ_PULSE_OOM_KILLS, &v) && v == 2);
        assert_false(afz_pulse_get(&pulse, AFZ_PULSE_JOB_STALL, &v)); /* v1 tells none */

        assert_int_equal(afz_hold_cgroup1.brake(hold), 0);
        holds("freezer/antifreeze-t1/freezer.state", "FROZEN");
        job_ends();
        afz_hold_cgroup1.close(hold); /* lifts the brake first */
        assert_non_null(strstr(kernel.log, "freezer.state=FROZEN freezer.state=THAWED "));
        nothing_is_left();
        stop();
        assert_int_equal(afz_fixture_open_fds(), fds);
}

/* memsw may never be less than the limit: the kernel refuses the write that would make it so. */
static void limits_in_the_right_order(void **state)
{
        (void)state;
        static const struct {
                uint64_t ram, swap;
                const char *log;
        } row[] = {
                {128, 0, "memory.memsw.limit_in_bytes=134217728 memory.limit_in_bytes=134217728 "},
                {32, 0, "memory.limit_in_bytes=33554432 memory.memsw.limit_in_bytes=33554432 "},
                {16, 16, "memory.memsw.limit_in_bytes=33554432 memory.limit_in_bytes=16777216 "},
                {24, 0, "memory.limit_in_bytes=25165824 memory.memsw.limit_in_bytes=25165824 "},
        };
        char why[AFZ_HOLD_WHY_CAP];
        void *hold;
        struct afz_hold_plan plan = plan_of(64, 0);
        start(machine);
        assert_int_equal(open_it(&plan, &hold, why), 0);
        for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
                struct afz_budget budget = {row[i].ram * MIB, row[i].swap * MIB, true};
                kernel.log[0] = '\0';
                assert_int_equal(afz_hold_cgroup1.limit(hold, &budget), 0);
                assert_string_equal(kernel.log, row[i].log);
        }
        kernel.log[0] = '\0';
        assert_int_equal(afz_hold_cgroup1.limit(hold, &(struct afz_budget){8192, 0, true}), -EBUSY);
        assert_string_equal(kernel.log, "");
        afz_hold_cgroup1.close(hold);
        stop();
}

/* A job that still lives in it keeps it, with its limits. */
static void a_living_job_keeps_it(void **state)
{
        (void)state;
        char why[AFZ_HOLD_WHY_CAP];
        void *hold;
        struct afz_hold_plan plan = plan_of(64, 0);
        start(machine);
        assert_int_equal(open_it(&plan, &hold, why), 0);
        afz_fixture_set(kernel.files, "cgroup/memory/job/antifreeze-t1/cgroup.procs", "1\n");
        struct afz_pulse pulse = {0};
        uint64_t v;
        assert_int_equal(afz_hold_cgroup1.look(hold, &pulse), 0);
        assert_true(afz_pulse_get(&pulse, AFZ_PULSE_PROCESSES, &v) && v == 1);
        assert_int_equal(afz_hold_cgroup1.other(hold, getpid()), 1);
        assert_int_equal(afz_hold_cgroup1.other(hold, 1), 0);
        afz_hold_cgroup1.close(hold);
        holds("memory/job/antifreeze-t1/memory.limit_in_bytes", "67108864");
        stop();
}

static void what_is_not_so_is_no_hold(void **state)
{
        (void)state;
        static const struct {
                const char *deaf, *missing;
                int err;
        } row[] = {
                {"memory.limit_in_bytes", NULL, -EIO},
                {"memory.memsw.limit_in_bytes", NULL, -EIO},
                {"pids.max", NULL, -EIO},
                {"cgroup.procs", NULL, -EIO}, /* the process is not where we moved it */
                {NULL, "memory.limit_in_bytes", -ENOENT},
                {NULL, "memory.stat", -ENOENT},
                {NULL, "cgroup.procs", -ENOENT},
        };
        size_t fds = afz_fixture_open_fds();
        for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
                char why[AFZ_HOLD_WHY_CAP];
                void *hold = NULL;
                struct afz_hold_plan plan = plan_of(64, 0);
                start(machine);
                kernel.deaf = row[i].deaf;
                kernel.missing = row[i].missing;
                assert_int_equal(open_it(&plan, &hold, why), row[i].err);
                assert_null(hold);
                assert_true(why[0]);
                nothing_is_left();
                stop();
        }
        assert_int_equal(afz_fixture_open_fds(), fds);
}

/* Without accounting of swap, without a freezer, without pids: less, but a hold. */
static void only_memory_is_a_must(void **state)
{
        (void)state;
        static const char *const missing[] = {
                "memory.memsw.limit_in_bytes", "freezer.state",     "pids.max", "cpu.shares",
                "cgroup.event_control",        "memory.oom_control"};
        for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
                char why[AFZ_HOLD_WHY_CAP];
                void *hold;
                struct afz_hold_plan plan = plan_of(64, 0);
                start(machine);
                kernel.missing = missing[i];
                assert_int_equal(open_it(&plan, &hold, why), 0);
                if (i == 0)
                        assert_non_null(strstr(kernel.log, "memory.swappiness=0 "));
                struct afz_pulse pulse = {0};
                uint64_t v;
                assert_int_equal(afz_hold_cgroup1.look(hold, &pulse), 0);
                assert_int_equal(afz_pulse_get(&pulse, AFZ_PULSE_OOM_KILLS, &v), i != 5);
                job_ends();
                afz_hold_cgroup1.close(hold);
                nothing_is_left();
                stop();
        }
}

static void elsewhere_it_is_not_offered(void **state)
{
        (void)state;
        static const struct afz_fixture_row v2[] = {
                {"cgroup/cgroup.controllers", "memory pids\n"},
                {"cgroup/job/memory.stat", "anon 1\n"},
                {"proc/1/cgroup", "0::/\n"},
                {0},
        };
        char why[AFZ_HOLD_WHY_CAP];
        void *hold;
        struct afz_hold_plan plan = plan_of(64, 0);
        start(v2);
        afz_fixture_set(kernel.files, "proc/1/cgroup", "0::/job\n");
        int r = afz_hold_cgroup1.open(afz_fixture_env(kernel.files), &plan, 1, 0, &hold, why);
        assert_int_equal(r, -ENODATA);
        assert_non_null(strstr(why, "cgroup v1"));
        /* Nobody to hold. */
        r = afz_hold_cgroup1.open(afz_fixture_env(kernel.files), &plan, 999999, 0, &hold, why);
        assert_int_equal(r, -ESRCH);
        stop();

        /* A name that would lead elsewhere. */
        start(machine);
        plan.id = "../../x";
        assert_int_equal(open_it(&plan, &hold, why), -EINVAL);
        plan.id = "";
        assert_int_equal(open_it(&plan, &hold, why), -EINVAL);
        /* Somebody else's. */
        plan.id = "t1";
        afz_fixture_set(kernel.files, "cgroup/memory/job/antifreeze-t1/cgroup.procs", "1\n");
        assert_int_equal(open_it(&plan, &hold, why), -EEXIST);
        assert_true(is_there("cgroup/memory/job/antifreeze-t1/cgroup.procs"));
        stop();
}

static void need_of_a_text(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                int err;
                uint64_t need, swap;
        } row[] = {
                {STAT, 0, 12388, 100},
                {"total_rss 10\ntotal_shmem 5\n", 0, 15, 0}, /* swap is not accounted */
                {"total_rss 10\ntotal_swap 5\n", -ENODATA, 0, 0},
                {"rss 10\nshmem 5\n", -ENODATA, 0, 0}, /* without what is below */
                {"", -ENODATA, 0, 0},
                {"total_rss 10\ntotal_shmem 5", -ENODATA, 0, 0}, /* cut off */
                {"total_rss -1\ntotal_shmem 5\n", -ENODATA, 0, 0},
                {"total_rss 99999999999999999999\ntotal_shmem 5\n", -ENODATA, 0, 0},
                {"total_rssx 10\ntotal_shmem 5\n", -ENODATA, 0, 0},
        };
        for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
                uint64_t need = 7, swap = 7;
                int r = afz_cgroup1_need(afz_span_str(row[i].text), &need, &swap);
                assert_int_equal(r, row[i].err);
                assert_int_equal(need, r < 0 ? 7 : row[i].need);
                assert_int_equal(swap, r < 0 ? 7 : row[i].swap);
        }
}

static void places_of_strangers_are_left_alone(void **state)
{
        (void)state;
        static const char *const bad[] = {
                "memory:/job;",
                "memory:/job/../antifreeze-t1;",
                "memory:antifreeze-t1;",
                "memory:/job//antifreeze-t1;",
                "memory:/job/antifreeze-t1", /* cut off */
                "evil:/antifreeze-t1;",
                "../memory:/job/antifreeze-t1;",
                ":/antifreeze-t1;x",
                "memory",
                ";",
        };
        start(machine);
        struct afz_env *env = afz_fixture_env(kernel.files);
        afz_fixture_set(kernel.files, "cgroup/memory/job/antifreeze-t1/cgroup.procs", "");
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                assert_int_equal(afz_cgroup1_collect(env, bad[i]), -EINVAL);
                assert_int_equal(afz_cgroup1_thaw(env, bad[i]), -EINVAL);
        }
        assert_true(is_there("cgroup/memory/job/antifreeze-t1"));

        /* One that lives is left, but not frozen. */
        const char *place = "memory:/job/antifreeze-t1;freezer:/antifreeze-t1;";
        afz_fixture_set(kernel.files, "cgroup/memory/job/antifreeze-t1/cgroup.procs", "1\n");
        afz_fixture_set(kernel.files, "cgroup/freezer/antifreeze-t1/freezer.state", "FROZEN\n");
        afz_fixture_set(kernel.files, "cgroup/freezer/antifreeze-t1/cgroup.procs", "1\n");
        assert_int_equal(afz_cgroup1_collect(env, place), -EBUSY);
        holds("freezer/antifreeze-t1/freezer.state", "THAWED");
        /* With a sub-job's folder in it. */
        afz_fixture_set(kernel.files, "cgroup/memory/job/antifreeze-t1/cgroup.procs", "");
        afz_fixture_set(kernel.files, "cgroup/memory/job/antifreeze-t1/part-0/cgroup.procs", "");
        afz_fixture_set(kernel.files, "cgroup/freezer/antifreeze-t1/cgroup.procs", "");
        assert_int_equal(afz_cgroup1_collect(env, place), 0);
        nothing_is_left();
        assert_int_equal(afz_cgroup1_collect(env, place), 0); /* harmless twice */
        stop();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_is_set_and_removed),
                cmocka_unit_test(only_kills_at_our_limit_count),
                cmocka_unit_test(limits_in_the_right_order),
                cmocka_unit_test(a_living_job_keeps_it),
                cmocka_unit_test(what_is_not_so_is_no_hold),
                cmocka_unit_test(only_memory_is_a_must),
                cmocka_unit_test(elsewhere_it_is_not_offered),
                cmocka_unit_test(need_of_a_text),
                cmocka_unit_test(places_of_strangers_are_left_alone),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
