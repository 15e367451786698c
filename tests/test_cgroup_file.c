/* Files of cgroups, their walk and what they need: on ordinary folders. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cgroup2_need.h"
#include "cgroup_file.h"
#include "cgroup_walk.h"
#include "count_of.h"
#include "fixture.h"

static const struct afz_fixture_row machine[] = {
        {"cgroup/a/memory.max", "max\n"},
        {"cgroup/a/io.weight", "default 100\n8:0 50\n"},
        {"cgroup/a/cgroup.procs", ""},
        {"cgroup/a/link", "-> memory.max"},
        {"cgroup/a/empty", ""},
        {"cgroup/a/word", "12x\n"},
        {"cgroup/a/cut", "12"},
        {"cgroup/a/huge", "99999999999999999999\n"},
        {"cgroup/a/unlimited1", "9223372036854771712\n"},
        {0},
};

static struct afz_fixture *f;
static int dir_fd;

static int set_up(void **state)
{
        (void)state;
        f = afz_fixture_new(machine);
        dir_fd = afz_env_open(afz_fixture_env(f), AFZ_ROOT_CGROUP, "a", O_DIRECTORY);
        assert_true(dir_fd >= 0);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        close(dir_fd);
        afz_fixture_free(f);
        return 0;
}

static void numbers(void **state)
{
        static const struct {
                const char *file;
                int r;
                uint64_t value;
        } row[] = {
                {"memory.max", 0, UINT64_MAX}, {"io.weight", 0, 100}, {"empty", -EINVAL, 0},
                {"word", -EINVAL, 0},          {"cut", -EINVAL, 0},   {"huge", -ERANGE, 0},
                {"missing", -ENOENT, 0},       {"link", -ELOOP, 0},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(row); i++) {
                uint64_t value = 7;
                assert_int_equal(afz_cgroup_u64(dir_fd, row[i].file, &value), row[i].r);
                assert_int_equal(value, row[i].r == 0 ? row[i].value : 7);
        }
}

static void proves_what_it_wrote(void **state)
{
        uint64_t value;
        (void)state;
        assert_int_equal(afz_cgroup_prove(dir_fd, "memory.max", 1 << 20, "max"), 0);
        assert_int_equal(afz_cgroup_u64(dir_fd, "memory.max", &value), 0);
        assert_int_equal(value, 1 << 20);
        assert_int_equal(afz_cgroup_prove(dir_fd, "memory.max", UINT64_MAX, "max\n"), 0);
        assert_int_equal(afz_cgroup_prove(dir_fd, "memory.max", UINT64_MAX, "4096\n"), -EIO);
        /* v1 takes "-1" and says the largest number of pages. */
        assert_int_equal(
                afz_cgroup_prove(dir_fd, "unlimited1", UINT64_MAX, "9223372036854771712\n"), 0);
        assert_int_equal(afz_cgroup_prove(dir_fd, "missing", 1, "max"), -ENOENT);
        assert_int_equal(afz_cgroup_prove(dir_fd, "link", 1, "max"), -ELOOP);
}

static void moves_only_a_process(void **state)
{
        char buf[64];
        struct afz_span text;
        (void)state;
        assert_int_equal(afz_cgroup_move(dir_fd, 0), -EINVAL);
        assert_int_equal(afz_cgroup_move(dir_fd, -1), -EINVAL);
        assert_int_equal(afz_cgroup_move(dir_fd, 123), 0);
        assert_int_equal(afz_cgroup_text(dir_fd, "cgroup.procs", buf, sizeof buf, &text), 0);
        assert_true(afz_span_eq(afz_span_trim(text), "123"));
        assert_int_equal(afz_cgroup_text(dir_fd, "cgroup.procs", buf, 2, &text), -EOVERFLOW);
}

static void makes_and_removes(void **state)
{
        int fd, again;
        (void)state;
        assert_int_equal(afz_cgroup_make(dir_fd, "child", &fd), 0);
        assert_int_equal(afz_cgroup_make(dir_fd, "child", &again), -EEXIST);
        assert_int_equal(mkdirat(fd, "deep", 0755), 0);
        assert_int_equal(mkdirat(fd, "deep/deeper", 0755), 0);
        close(fd);
        assert_int_equal(afz_cgroup_remove_tree(dir_fd, "child"), 0);
        assert_int_equal(faccessat(dir_fd, "child", F_OK, 0), -1);
        assert_int_equal(afz_cgroup_remove(dir_fd, "child"), 0);
        assert_int_equal(afz_cgroup_remove_tree(dir_fd, "child"), 0);
}

struct seen {
        uint64_t sum, stop_at;
        unsigned count;
};

static int see(void *ctx, pid_t pid)
{
        struct seen *s = ctx;
        s->sum += (uint64_t)pid;
        s->count++;
        return (uint64_t)pid == s->stop_at ? 42 : 0;
}

/* More than one read's worth of lines, cut where no reader would like it, in nested folders. */
static void walks_all_processes(void **state)
{
        struct seen seen = {0};
        uint64_t sum = 0;
        char line[16];
        (void)state;
        for (int i = 1; i <= 3000; i++) {
                snprintf(line, sizeof line, "%d\n", 10000 + i);
                afz_fixture_append(f, "cgroup/a/cgroup.procs", line);
                sum += (uint64_t)(10000 + i);
        }
        afz_fixture_set(f, "cgroup/a/x.scope/cgroup.procs", "7\n0\n4294967299\nfoo\n9\n1");
        afz_fixture_set(f, "cgroup/a/x.scope/y/cgroup.procs", "11\n");
        assert_int_equal(afz_cgroup_each_pid(dir_fd, see, &seen), 0);
        assert_int_equal(seen.count, 3003);
        assert_int_equal(seen.sum, sum + 7 + 9 + 11);
        seen = (struct seen){.stop_at = 11};
        assert_int_equal(afz_cgroup_each_pid(dir_fd, see, &seen), 42);
}

static void needs(void **state)
{
        static const struct {
                const char *stat;
                uint64_t swap;
                int r;
                uint64_t need, away;
        } row[] = {
                {"", 0, -EINVAL, 0, 0},
                {"file 5\nshmem 7\n", 0, -EINVAL, 0, 0},
                {"anon 12", 0, -EINVAL, 0, 0}, /* cut in mid-number */
                /* Page cache is no need. */
                {"anon 100\nfile 9000\nshmem 10\n", 5, 0, 115, 5},
                /* Before 5.18 the kernel's memory is added up. */
                {"anon 100\nfile 9\nkernel_stack 1\npagetables 2\npercpu 4\nsock 8\nshmem 0\n"
                 "slab_reclaimable 500\nslab_unreclaimable 16\nslab 516\n",
                 0, 0, 131, 0},
                /* Since then it tells, and what can be given back is taken off. */
                {"anon 100\nkernel 600\nkernel_stack 1\npagetables 2\nsock 8\nshmem 0\n"
                 "slab_reclaimable 500\nslab_unreclaimable 16\n",
                 0, 0, 208, 0},
                {"anon 100\nkernel 600\nzswap 90\nslab_reclaimable 500\n", 300, 0, 410, 300},
                {"anon 100\nkernel 4\nslab_reclaimable 500\n", 0, 0, 100, 0},
                /* Read back from swap, and still there: once. */
                {"anon 1000\nshmem 0\nswapcached 500\ninactive_anon 600\nactive_anon 400\n", 500, 0,
                 1000, 0},
                /* On its way out, mapped by nobody: not in anon, only in swap. */
                {"anon 500\nshmem 0\nswapcached 500\ninactive_anon 600\nactive_anon 400\n", 500, 0,
                 1000, 0},
                {"anon 100\nswapcached 900\ninactive_anon 100\n", 50, 0, 100, 0},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(row); i++) {
                struct afz_cgroup2_need need = {7, 7};
                assert_int_equal(afz_cgroup2_need(afz_span_str(row[i].stat), row[i].swap, &need),
                                 row[i].r);
                assert_int_equal(need.bytes, row[i].r == 0 ? row[i].need : 7);
                assert_int_equal(need.away_bytes, row[i].r == 0 ? row[i].away : 7);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(numbers, set_up, tear_down),
                cmocka_unit_test_setup_teardown(proves_what_it_wrote, set_up, tear_down),
                cmocka_unit_test_setup_teardown(moves_only_a_process, set_up, tear_down),
                cmocka_unit_test_setup_teardown(makes_and_removes, set_up, tear_down),
                cmocka_unit_test_setup_teardown(walks_all_processes, set_up, tear_down),
                cmocka_unit_test(needs),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
