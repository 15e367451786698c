/* links: sense, fixture */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cgroup_node.h"
#include "cgroup_path.h"
#include "count_of.h"
#include "fixture.h"
#include "reading.h"

#define S UINT64_C(1000000000)

/* ---- /proc/PID/cgroup ---- */

static void test_parse(void **state)
{
        static const struct {
                const char *text, *controller;
                int error;
                const char *path;
        } cases[] = {
                {"0::/user.slice/a b\n", "", 0, "/user.slice/a b"},
                {"4:memory:/x\n0::/y\n", "memory", 0, "/x"},
                {"4:memory:/x\n0::/y\n", "", 0, "/y"},
                {"3:cpu,cpuacct:/z\n", "cpuacct", 0, "/z"},
                {"3:cpu,cpuacct:/z\n", "cpu", 0, "/z"},
                {"3:cpu,cpuacct:/z\n", "", -ENODATA, NULL},
                {"3:cpuset:/z\n", "cpu", -ENODATA, NULL},
                {"1:name=systemd:/s\n0::/t\n", "", 0, "/t"},
                {"0::/a:b\n", "", 0, "/a:b"},
                {"0::\n", "", -ENODATA, NULL},
                {"0::relative\n", "", -ENODATA, NULL},
                {"", "", -ENODATA, NULL},
                {"0::/cut", "", -ENODATA, NULL},
                {"garbage\n", "", -EINVAL, NULL},
                {"0:/x\n", "", -EINVAL, NULL},
                {"0::/0123456789012345678901234567890\n", "", -ENAMETOOLONG, NULL},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                char path[32] = "untouched";
                int r = afz_cgroup_parse(afz_span_str(cases[i].text), cases[i].controller, path,
                                         sizeof path);
                if (r != cases[i].error)
                        fail_msg("'%s': %d", cases[i].text, r);
                assert_string_equal(path, r < 0 ? "untouched" : cases[i].path);
        }
}

struct path_case {
        const char *what;
        const struct afz_fixture_row *rows;
        int error, version;
        const char *memory, *cpu;
};

#define V2                                                                                         \
        {                                                                                          \
                "cgroup/cgroup.controllers", "cpu memory\n"                                        \
        }

static const struct afz_fixture_row v2[] = {
        V2, {"proc/42/cgroup", "0::/a/b\n"}, {"cgroup/a/b/", NULL}, {0}};
/* A container with a mount of its own and a path seen from outside. */
static const struct afz_fixture_row v2_outside[] = {
        V2, {"proc/42/cgroup", "0::/docker/abc\n"}, {0}};
/* Outside of our cgroup namespace: no folder of ours is its. */
static const struct afz_fixture_row v2_above[] = {
        V2, {"proc/42/cgroup", "0::/../other\n"}, {"cgroup/other/", NULL}, {0}};
static const struct afz_fixture_row v2_parent[] = {V2, {"proc/42/cgroup", "0::/..\n"}, {0}};
static const struct afz_fixture_row v2_deleted[] = {
        V2, {"proc/42/cgroup", "0::/a/b (deleted)\n"}, {"cgroup/a/", NULL}, {0}};
static const struct afz_fixture_row hybrid[] = {
        {"proc/42/cgroup", "5:cpu:/\n4:memory:/job\n0::/u\n"},
        {"cgroup/unified/cgroup.controllers", "\n"},
        {"cgroup/unified/u/", NULL},
        {"cgroup/memory/job/", NULL},
        {"cgroup/cpu/", NULL},
        {0}};
static const struct afz_fixture_row v1_no_memory[] = {
        {"proc/42/cgroup", "5:cpu:/\n"}, {"cgroup/cpu/", NULL}, {0}};
static const struct afz_fixture_row no_root[] = {{"proc/42/cgroup", "0::/a\n"}, {0}};
static const struct afz_fixture_row no_cgroups[] = {V2, {"proc/42/stat", ""}, {0}};
static const struct afz_fixture_row no_process[] = {V2, {"proc/43/stat", ""}, {0}};
static const struct afz_fixture_row garbage[] = {V2, {"proc/42/cgroup", "what?\n"}, {0}};

static void test_path_of(void **state)
{
        static const struct path_case cases[] = {
                {"v2", v2, 0, 2, "./a/b", "./a/b"},
                {"v2 from outside", v2_outside, 0, 2, ".", "."},
                {"v2 above us", v2_above, -ENODATA, 0, NULL, NULL},
                {"v2 our parent", v2_parent, -ENODATA, 0, NULL, NULL},
                {"v2 removed", v2_deleted, -ENODATA, 0, NULL, NULL},
                {"hybrid", hybrid, 0, 1, "memory/job", "cpu"},
                {"v1 without memory", v1_no_memory, -ENODATA, 0, NULL, NULL},
                {"no cgroup root", no_root, -ENODATA, 0, NULL, NULL},
                {"a kernel without cgroups", no_cgroups, -ENODATA, 0, NULL, NULL},
                {"no such process", no_process, -ESRCH, 0, NULL, NULL},
                {"garbage", garbage, -EINVAL, 0, NULL, NULL},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                struct afz_fixture *f = afz_fixture_new(cases[i].rows);
                static struct afz_cgroup_path path;
                path.version = 99;
                int r = afz_cgroup_path_of(afz_fixture_env(f), 42, &path);
                if (r != cases[i].error)
                        fail_msg("%s: %d", cases[i].what, r);
                assert_int_equal(path.version, r < 0 ? 99 : cases[i].version);
                if (r == 0) {
                        assert_string_equal(path.dir[AFZ_CG_MEMORY], cases[i].memory);
                        assert_string_equal(path.dir[AFZ_CG_CPU], cases[i].cpu);
                }
                afz_fixture_free(f);
        }
}

static void test_path_up(void **state)
{
        static struct afz_cgroup_path p = {.version = 1, .name = "/a/b"};
        (void)state;
        strcpy(p.dir[AFZ_CG_MEMORY], "memory/a/b");
        strcpy(p.dir[AFZ_CG_CPU], "cpu/a"); /* a tree that is less deep */
        assert_true(afz_cgroup_path_up(&p));
        assert_string_equal(p.name, "/a");
        assert_string_equal(p.dir[AFZ_CG_MEMORY], "memory/a");
        assert_string_equal(p.dir[AFZ_CG_CPU], "cpu");
        assert_string_equal(p.dir[AFZ_CG_IO], "");
        assert_true(afz_cgroup_path_up(&p));
        assert_string_equal(p.name, "/");
        assert_string_equal(p.dir[AFZ_CG_MEMORY], "memory");
        assert_string_equal(p.dir[AFZ_CG_CPU], "");
        assert_false(afz_cgroup_path_up(&p));
}

static void test_path_too_long(void **state)
{
        static char text[2000], name[1500];
        static struct afz_cgroup_path path;
        struct afz_fixture *f = afz_fixture_new(v2);
        (void)state;
        memset(name, 'x', sizeof name - 1);
        snprintf(text, sizeof text, "0::/%s\n", name);
        afz_fixture_set(f, "proc/42/cgroup", text);
        assert_int_equal(afz_cgroup_path_of(afz_fixture_env(f), 42, &path), -ENAMETOOLONG);
        afz_fixture_free(f);
}

/* ---- figures ---- */

static const struct afz_fixture_row rich_v2[] = {
        V2,
        {"proc/42/cgroup", "0::/top/mid/job\n"},
        {"cgroup/top/mid/job/memory.max", "max\n"},
        {"cgroup/top/mid/job/memory.high", "max\n"},
        {"cgroup/top/mid/job/memory.current", "9000\n"},
        {"cgroup/top/mid/job/memory.peak", "9500\n"},
        {"cgroup/top/mid/job/memory.swap.current", "700\n"},
        {"cgroup/top/mid/job/memory.swap.max", "max\n"},
        {"cgroup/top/mid/job/memory.stat",
         "anon 1000\nfile 2000\nkernel 500\nshmem 300\nfile_dirty 7\ninactive_file 90\n"
         "slab_reclaimable 100\nslab_unreclaimable 50\nworkingset_refault_anon 5\n"
         "workingset_refault_file 6\npgmajfault 8\n"},
        {"cgroup/top/mid/job/memory.events",
         "low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\noom_group_kill 9\n"},
        {"cgroup/top/mid/job/memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=11\n"
                                               "full avg10=0.00 avg60=0.00 avg300=0.00 total=10\n"},
        {"cgroup/top/mid/job/io.stat", "8:0 rbytes=10 wbytes=20 rios=1 wios=1 dbytes=0 dios=0\n"
                                       "8:16 rbytes=1 wbytes=x\n7:0 \n"},
        {"cgroup/top/mid/job/cpu.stat", "usage_usec 5\nuser_usec 4\nthrottled_usec 2\n"},
        {"cgroup/top/mid/job/pids.current", "12\n"},
        {"cgroup/top/mid/job/pids.max", "max\n"},
        {"cgroup/top/mid/job/cgroup.events", "populated 1\nfrozen 0\n"},
        {"cgroup/top/mid/memory.max", "max\n"},
        {"cgroup/top/memory.max", "50000\n"},
        {"cgroup/top/memory.current", "20000\n"},
        {0}};

static void test_figures_v2(void **state)
{
        static const struct {
                enum afz_metric metric;
                int64_t value;
        } want[] = {
                {AFZ_CGROUP_VERSION, 2},
                {AFZ_CGROUP_LEVEL, 0},
                {AFZ_CGROUP_CURRENT, 9000},
                {AFZ_CGROUP_PEAK, 9500},
                {AFZ_CGROUP_MAX, AFZ_ABSENT},
                {AFZ_CGROUP_HIGH, AFZ_ABSENT},
                {AFZ_CGROUP_SWAP, 700},
                {AFZ_CGROUP_SWAP_MAX, AFZ_ABSENT},
                {AFZ_CGROUP_NEED, 1000 + 300 + 700 + 400},
                {AFZ_CGROUP_ANON, 1000},
                {AFZ_CGROUP_FILE, 2000},
                {AFZ_CGROUP_SHMEM, 300},
                {AFZ_CGROUP_KERNEL, 500},
                {AFZ_CGROUP_SLAB_RECLAIMABLE, 100},
                {AFZ_CGROUP_SLAB_UNRECLAIMABLE, 50},
                {AFZ_CGROUP_INACTIVE_FILE, 90},
                {AFZ_CGROUP_DIRTY, 7},
                {AFZ_CGROUP_MAJOR_FAULTS, 8},
                {AFZ_CGROUP_REFAULT_ANON, 5},
                {AFZ_CGROUP_REFAULT_FILE, 6},
                {AFZ_CGROUP_EVENT_HIGH, 1},
                {AFZ_CGROUP_EVENT_MAX, 2},
                {AFZ_CGROUP_EVENT_OOM, 3},
                {AFZ_CGROUP_OOM_KILLS, 4},
                {AFZ_CGROUP_PRESSURE_SOME, 11000},
                {AFZ_CGROUP_PRESSURE_FULL, 10000},
                {AFZ_CGROUP_IO_READ, 11},
                {AFZ_CGROUP_IO_WRITTEN, 20},
                {AFZ_CGROUP_CPU, 5000},
                {AFZ_CGROUP_CPU_THROTTLED, 2000},
                {AFZ_CGROUP_PIDS, 12},
                {AFZ_CGROUP_PIDS_MAX, AFZ_ABSENT},
                {AFZ_CGROUP_FROZEN, 0},
        };
        struct afz_fixture *f = afz_fixture_new(rich_v2);
        struct afz_reading r;
        size_t fds = afz_fixture_open_fds();
        (void)state;
        assert_int_equal(afz_reading_open(&r, &afz_sense_cgroup, afz_fixture_env(f), 42), 0);
        assert_int_equal(afz_reading_take(&r), 0);
        const struct afz_sample *s = afz_reading_of(&r, AFZ_KIND_CGROUP, 0);
        assert_string_equal(s->name, "/top/mid/job");
        for (size_t i = 0; i < AFZ_COUNT_OF(want); i++)
                if (afz_value(s, want[i].metric) != want[i].value)
                        fail_msg("%s is %lld", afz_metric_info(want[i].metric)->name,
                                 (long long)afz_value(s, want[i].metric));
        assert_int_equal(AFZ_COUNT_OF(want), afz_kind_table[AFZ_KIND_CGROUP].metrics);
        /* Of those above, only the one that bounds it is told. */
        assert_int_equal(r.batch->count, 2);
        s = afz_reading_of(&r, AFZ_KIND_CGROUP, 2);
        assert_string_equal(s->name, "/top");
        assert_int_equal(afz_value(s, AFZ_CGROUP_MAX), 50000);
        assert_int_equal(afz_value(s, AFZ_CGROUP_LEVEL), 2);
        assert_int_equal(afz_value(s, AFZ_CGROUP_NEED), AFZ_ABSENT);
        afz_reading_done(&r);
        assert_int_equal(afz_fixture_open_fds(), fds);
        afz_fixture_free(f);
}

static const struct afz_fixture_row rich_v1[] = {
        {"proc/42/cgroup", "7:freezer:/\n6:pids:/p\n5:cpu,cpuacct:/c\n4:memory:/m\n3:blkio:/\n"},
        {"cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712\n"},
        {"cgroup/memory/m/memory.usage_in_bytes", "900\n"},
        {"cgroup/memory/m/memory.max_usage_in_bytes", "950\n"},
        {"cgroup/memory/m/memory.failcnt", "3\n"},
        {"cgroup/memory/m/memory.kmem.usage_in_bytes", "60\n"},
        {"cgroup/memory/m/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"},
        {"cgroup/memory/m/memory.stat",
         "cache 1\nrss 2\ntotal_cache 200\ntotal_rss 300\ntotal_shmem 20\ntotal_swap 5\n"
         "total_inactive_file 7\n"},
        {"cgroup/blkio/blkio.throttle.io_service_bytes_recursive",
         "8:0 Read 10\n8:0 Write 20\n8:0 Sync 30\n8:0 Total 30\n8:16 Read 1\nTotal 31\n"},
        {"cgroup/cpuacct/c/cpuacct.usage", "77\n"},
        {"cgroup/cpu/c/cpu.stat", "nr_periods 0\nthrottled_time 5\n"},
        {"cgroup/pids/p/pids.current", "4\n"},
        {"cgroup/pids/p/pids.max", "100\n"},
        {"cgroup/freezer/freezer.state", "THAWED\n"},
        {0}};

static void test_figures_v1(void **state)
{
        struct afz_fixture *f = afz_fixture_new(rich_v1);
        struct afz_reading r;
        (void)state;
        assert_int_equal(afz_reading_open(&r, &afz_sense_cgroup, afz_fixture_env(f), 42), 0);
        assert_int_equal(afz_reading_take(&r), 0);
        const struct afz_sample *s = afz_reading_of(&r, AFZ_KIND_CGROUP, 0);
        assert_int_equal(afz_value(s, AFZ_CGROUP_VERSION), 1);
        assert_int_equal(afz_value(s, AFZ_CGROUP_MAX), AFZ_ABSENT);
        assert_int_equal(afz_value(s, AFZ_CGROUP_CURRENT), 900);
        assert_int_equal(afz_value(s, AFZ_CGROUP_PEAK), 950);
        assert_int_equal(afz_value(s, AFZ_CGROUP_EVENT_MAX), 3);
        assert_int_equal(afz_value(s, AFZ_CGROUP_OOM_KILLS), 2);
        assert_int_equal(afz_value(s, AFZ_CGROUP_ANON), 300);
        assert_int_equal(afz_value(s, AFZ_CGROUP_NEED), 325);
        assert_int_equal(afz_value(s, AFZ_CGROUP_KERNEL), 60);
        assert_int_equal(afz_value(s, AFZ_CGROUP_IO_READ), 11);
        assert_int_equal(afz_value(s, AFZ_CGROUP_IO_WRITTEN), 20);
        assert_int_equal(afz_value(s, AFZ_CGROUP_CPU), 77);
        assert_int_equal(afz_value(s, AFZ_CGROUP_CPU_THROTTLED), 5);
        assert_int_equal(afz_value(s, AFZ_CGROUP_PIDS_MAX), 100);
        assert_int_equal(afz_value(s, AFZ_CGROUP_FROZEN), 0);
        assert_int_equal(afz_value(s, AFZ_CGROUP_PRESSURE_SOME), AFZ_ABSENT);
        assert_int_equal(r.batch->count, 1);
        static const struct {
                const char *text;
                int64_t frozen;
        } states[] = {{"FROZEN\n", 1},
                      {"FREEZING\n", 1},
                      {"THAWED\n", 0},
                      {"", AFZ_ABSENT},
                      {"what\n", AFZ_ABSENT}};
        for (size_t i = 0; i < AFZ_COUNT_OF(states); i++) {
                afz_fixture_set(f, "cgroup/freezer/freezer.state", states[i].text);
                assert_int_equal(afz_reading_take(&r), 0);
                s = afz_reading_of(&r, AFZ_KIND_CGROUP, 0);
                assert_int_equal(afz_value(s, AFZ_CGROUP_FROZEN), states[i].frozen);
        }
        afz_reading_done(&r);
        afz_fixture_free(f);
}

static void test_need_by_kernel(void **state)
{
        static const struct {
                const char *stat;
                int64_t need; /* with 700 of swap */
        } cases[] = {
                {"anon 1\nshmem 2\n", 703},
                {"anon 1\nshmem 2\nslab_reclaimable 50\nslab_unreclaimable 40\n", 743}, /* < 5.18 */
                {"anon 1\nshmem 2\nkernel 90\nslab_reclaimable 50\nslab_unreclaimable 40\n", 743},
                {"anon 1\nshmem 2\nkernel 10\nslab_reclaimable 50\nslab_unreclaimable 4\n", 707},
                {"anon 1\n", AFZ_ABSENT},
                {"shmem 1\n", AFZ_ABSENT},
                {"anon 1\nshmem 2", AFZ_ABSENT},
                {"", AFZ_ABSENT},
        };
        struct afz_fixture *f = afz_fixture_new(rich_v2);
        struct afz_reading r;
        (void)state;
        assert_int_equal(afz_reading_open(&r, &afz_sense_cgroup, afz_fixture_env(f), 42), 0);
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                afz_fixture_set(f, "cgroup/top/mid/job/memory.stat", cases[i].stat);
                assert_int_equal(afz_reading_take(&r), 0);
                assert_int_equal(afz_value(afz_reading_of(&r, AFZ_KIND_CGROUP, 0), AFZ_CGROUP_NEED),
                                 cases[i].need);
        }
        /* A cgroup that never did any I/O has an empty file: that is a zero, and known. */
        afz_fixture_set(f, "cgroup/top/mid/job/io.stat", "");
        assert_int_equal(afz_reading_take(&r), 0);
        assert_int_equal(afz_value(afz_reading_of(&r, AFZ_KIND_CGROUP, 0), AFZ_CGROUP_IO_READ), 0);
        afz_reading_done(&r);
        afz_fixture_free(f);
}

/* ---- a job that moves ---- */

static void test_job_moves(void **state)
{
        struct afz_fixture *f = afz_fixture_new(rich_v2);
        struct afz_reading r;
        (void)state;
        afz_fixture_set(f, "cgroup/scope/memory.current", "1\n");
        assert_int_equal(afz_reading_open(&r, &afz_sense_cgroup, afz_fixture_env(f), 42), 0);
        assert_int_equal(afz_reading_take(&r), 0);
        struct afz_subject old = afz_reading_of(&r, AFZ_KIND_CGROUP, 0)->subject;
        afz_fixture_set(f, "proc/42/cgroup", "0::/scope\n");
        afz_fixture_advance(f, S - 1);
        assert_int_equal(afz_reading_take(&r), 0);
        assert_string_equal(afz_reading_of(&r, AFZ_KIND_CGROUP, 0)->name, "/top/mid/job");
        afz_fixture_advance(f, 1);
        assert_int_equal(afz_reading_take(&r), 0);
        const struct afz_sample *s = afz_reading_of(&r, AFZ_KIND_CGROUP, 0);
        assert_string_equal(s->name, "/scope");
        assert_int_equal(afz_value(s, AFZ_CGROUP_CURRENT), 1);
        /* Its counters are others: between the two there is no rate. */
        assert_false(afz_subject_same(&s->subject, &old));
        afz_fixture_remove(f, "proc/42");
        afz_fixture_advance(f, S);
        assert_int_equal(afz_reading_take(&r), -ESRCH);
        afz_reading_done(&r);
        afz_fixture_free(f);
}

/* ---- a cgroup that is removed ----
 *
 * No file of a fixture says -ENODEV, so this one needs the kernel, and a place where it may make a
 * cgroup: AFZ_TEST_CGROUP=/sys/fs/cgroup/memory (as root), or a delegated v2 folder. */

static void move_to(const char *dir, pid_t pid)
{
        char path[512], text[32];
        int n = snprintf(text, sizeof text, "%d", (int)pid);
        assert_true(afz_path(path, sizeof path, "%s/cgroup.procs", dir) > 0);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, (size_t)n), n);
        close(fd);
}

static uint64_t still(void *ctx)
{
        (void)ctx;
        return S;
}

static void test_live_removed_and_made_anew(void **state)
{
        const char *top = getenv("AFZ_TEST_CGROUP");
        struct afz_env env;
        struct afz_reading r;
        char dir[400];
        (void)state;
        if (!top) {
                print_message("AFZ_TEST_CGROUP names no cgroup that may be divided\n");
                skip();
        }
        assert_int_equal(afz_env_open_live(&env), 0);
        env.now_ns = still;
        assert_true(afz_path(dir, sizeof dir, "%s/antifreeze-test-%d", top, (int)getpid()) > 0);
        assert_int_equal(mkdir(dir, 0755), 0);
        pid_t pid = fork();
        if (pid == 0) {
                pause();
                _exit(0);
        }
        move_to(dir, pid);
        assert_int_equal(afz_reading_open(&r, &afz_sense_cgroup, &env, (uint64_t)pid), 0);
        assert_int_equal(afz_reading_take(&r), 0);
        const struct afz_sample *s = afz_reading_of(&r, AFZ_KIND_CGROUP, 0);
        struct afz_subject first = s->subject;
        assert_true(strstr(s->name, "antifreeze-test") != NULL);

        move_to(top, pid);
        assert_int_equal(rmdir(dir), 0);
        assert_int_equal(afz_reading_take(&r), 0);
        assert_null(afz_reading_of(&r, AFZ_KIND_CGROUP, 0)); /* gone: absent, not zero */

        /* Under the same name again: another cgroup, which must be seen. */
        assert_int_equal(mkdir(dir, 0755), 0);
        move_to(dir, pid);
        assert_int_equal(afz_reading_take(&r), 0);
        s = afz_reading_of(&r, AFZ_KIND_CGROUP, 0);
        assert_non_null(s);
        assert_false(afz_subject_same(&s->subject, &first));

        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        afz_reading_done(&r);
        afz_env_done(&env);
        rmdir(dir);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_path_of),
                cmocka_unit_test(test_path_up),
                cmocka_unit_test(test_path_too_long),
                cmocka_unit_test(test_figures_v2),
                cmocka_unit_test(test_figures_v1),
                cmocka_unit_test(test_need_by_kernel),
                cmocka_unit_test(test_job_moves),
                cmocka_unit_test(test_live_removed_and_made_anew),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
