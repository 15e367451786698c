/* links: sense, fixture */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "count_of.h"
#include "fixture.h"
#include "reading.h"

#define S   UINT64_C(1000000000)
#define KIB INT64_C(1024)

#define MEMINFO                                                                                    \
        "MemTotal:       16000 kB\nMemFree:         1000 kB\nMemAvailable:    8000 kB\n"           \
        "Buffers:          10 kB\nCached:          20 kB\nSwapCached:         3 kB\n"              \
        "Active:            0 kB\nActive(anon):    0 kB\nMlocked:           4 kB\n"                \
        "SwapTotal:       500 kB\nSwapFree:        300 kB\nZswap:            40 kB\n"              \
        "Zswapped:         90 kB\nDirty:            1 kB\nWriteback:         2 kB\n"               \
        "AnonPages:       700 kB\nMapped:           8 kB\nShmem:            55 kB\n"               \
        "KReclaimable:      1 kB\nSlab:             2 kB\nSReclaimable:     11 kB\n"               \
        "SUnreclaim:       12 kB\nKernelStack:     13 kB\nPageTables:       14 kB\n"               \
        "CommitLimit:     999 kB\nCommitted_AS:   888 kB\nAnonHugePages:  2048 kB\n"               \
        "HugePages_Total:       4\nHugePages_Free:        3\nHugepagesize:    2048 kB\n"           \
        "Hugetlb:        8192 kB\nDirectMap4k:      1 kB\n"

static const struct afz_fixture_row machine[] = {
        {"machine", "page_bytes 4096\nself_pid 42\n"},
        {"proc/meminfo", MEMINFO},
        {"proc/vmstat", "nr_free_pages 5\nworkingset_refault_anon 21\nworkingset_refault_file 22\n"
                        "pswpin 3\npswpout 4\nallocstall_dma 1\nallocstall_dma32 2\n"
                        "allocstall_normal 30\nallocstall_movable 400\npgmajfault 9\n"
                        "pgscan_direct 10\npgscan_direct_throttle 99\noom_kill 2\n"},
        {"proc/sys/vm/overcommit_memory", "1\n"},
        {"proc/spl/kstat/zfs/arcstats",
         "13 1 0x01 98 26656 7 8\nname                            type data\n"
         "hits                            4    1\nsize                            4    5000\n"
         "c_min                           4    1000\nc_max                           4    9\n"},
        {"sys/block/zram0/mm_stat", "   40960     1024     8192        0    8192  0 0 0 0\n"},
        {"sys/block/zram1/mm_stat", "4096 512 1000 0 0 0 0 0 0\n"},
        {"sys/block/sda/stat", "1\n"},
        {"fs_space", "64000 60000 60000 9 9 /dev/shm\n"},
        {0},
};

static const struct afz_sample *read_host(struct afz_fixture *f, struct afz_reading *r)
{
        assert_int_equal(afz_reading_open(r, &afz_sense_host, afz_fixture_env(f), 0), 0);
        assert_int_equal(afz_reading_take(r), 0);
        return afz_reading_of(r, AFZ_KIND_HOST, 0);
}

static void test_figures(void **state)
{
        static const struct {
                enum afz_metric metric;
                int64_t value;
        } want[] = {
                {AFZ_HOST_MEM_TOTAL, 16000 * KIB},
                {AFZ_HOST_MEM_FREE, 1000 * KIB},
                {AFZ_HOST_MEM_AVAILABLE, 8000 * KIB},
                {AFZ_HOST_BUFFERS, 10 * KIB},
                {AFZ_HOST_CACHED, 20 * KIB},
                {AFZ_HOST_SWAP_CACHED, 3 * KIB},
                {AFZ_HOST_MLOCKED, 4 * KIB},
                {AFZ_HOST_SWAP_TOTAL, 500 * KIB},
                {AFZ_HOST_SWAP_FREE, 300 * KIB},
                {AFZ_HOST_ZSWAP, 40 * KIB},
                {AFZ_HOST_ZSWAPPED, 90 * KIB},
                {AFZ_HOST_DIRTY, 1 * KIB},
                {AFZ_HOST_WRITEBACK, 2 * KIB},
                {AFZ_HOST_ANON, 700 * KIB},
                {AFZ_HOST_MAPPED, 8 * KIB},
                {AFZ_HOST_SHMEM, 55 * KIB},
                {AFZ_HOST_SLAB_RECLAIMABLE, 11 * KIB},
                {AFZ_HOST_SLAB_UNRECLAIMABLE, 12 * KIB},
                {AFZ_HOST_KERNEL_STACK, 13 * KIB},
                {AFZ_HOST_PAGE_TABLES, 14 * KIB},
                {AFZ_HOST_COMMIT_LIMIT, 999 * KIB},
                {AFZ_HOST_COMMITTED, 888 * KIB},
                {AFZ_HOST_ANON_HUGE, 2048 * KIB},
                {AFZ_HOST_HUGE_TOTAL, 4},
                {AFZ_HOST_HUGE_FREE, 3},
                {AFZ_HOST_HUGE_SIZE, 2048 * KIB},
                {AFZ_HOST_HUGETLB, 8192 * KIB},
                {AFZ_HOST_OVERCOMMIT, 1},
                {AFZ_HOST_ZRAM_STORED, 40960 + 4096},
                {AFZ_HOST_ZRAM_USED, 8192 + 1000},
                {AFZ_HOST_ARC, 5000},
                {AFZ_HOST_ARC_MIN, 1000},
                {AFZ_HOST_LIMIT, AFZ_ABSENT},
                {AFZ_HOST_LIMIT_USED, AFZ_ABSENT},
                {AFZ_HOST_SHM_TOTAL, 64000},
                {AFZ_HOST_SHM_USED, 4000},
        };
        struct afz_fixture *f = afz_fixture_new(machine);
        struct afz_reading r;
        size_t fds = afz_fixture_open_fds();
        const struct afz_sample *s = read_host(f, &r);
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(want); i++)
                if (afz_value(s, want[i].metric) != want[i].value)
                        fail_msg("%s is %lld", afz_metric_info(want[i].metric)->name,
                                 (long long)afz_value(s, want[i].metric));
        assert_int_equal(AFZ_COUNT_OF(want), afz_kind_table[AFZ_KIND_HOST].metrics);
        afz_reading_done(&r);
        assert_int_equal(afz_fixture_open_fds(), fds);
        afz_fixture_free(f);
}

/* A machine that has none of it says nothing of it; in no case 0. */
static void test_poor_machine(void **state)
{
        static const struct afz_fixture_row poor[] = {
                {"proc/meminfo", "MemTotal: 16 kB\nMemFree: x kB\nMemAvailable: 4"}, {0}};
        struct afz_fixture *f = afz_fixture_new(poor);
        struct afz_reading r;
        const struct afz_sample *s = read_host(f, &r);
        (void)state;
        assert_int_equal(afz_value(s, AFZ_HOST_MEM_TOTAL), 16 * KIB);
        assert_int_equal(s->present, UINT64_C(1) << afz_metric_index(AFZ_HOST_MEM_TOTAL));
        afz_reading_done(&r);
        afz_fixture_free(f);
}

static void test_hostile_files(void **state)
{
        struct afz_fixture *f = afz_fixture_new(machine);
        struct afz_reading r;
        (void)state;
        afz_fixture_set(f, "sys/block/zram0/mm_stat", "12 13\n");
        afz_fixture_break(f, "sys/block/zram1/mm_stat");
        afz_fixture_set(f, "proc/spl/kstat/zfs/arcstats", "size 4 -1\nc_min 4\nsize\nsize 4 77x\n");
        afz_fixture_set(f, "proc/sys/vm/overcommit_memory", "2");
        afz_fixture_set(f, "fs_space", "10 60 1 9 9 /dev/shm\n"); /* more free than there is */
        const struct afz_sample *s = read_host(f, &r);
        assert_int_equal(afz_value(s, AFZ_HOST_ZRAM_STORED), AFZ_ABSENT);
        assert_int_equal(afz_value(s, AFZ_HOST_ARC), AFZ_ABSENT);
        assert_int_equal(afz_value(s, AFZ_HOST_ARC_MIN), AFZ_ABSENT);
        assert_int_equal(afz_value(s, AFZ_HOST_OVERCOMMIT), AFZ_ABSENT);
        assert_int_equal(afz_value(s, AFZ_HOST_SHM_USED), AFZ_ABSENT);
        assert_int_equal(afz_value(s, AFZ_HOST_MEM_TOTAL), 16000 * KIB);
        afz_reading_done(&r);
        afz_fixture_free(f);
}

static void test_paces(void **state)
{
        struct afz_fixture *f = afz_fixture_new(machine);
        struct afz_reading r;
        const struct afz_sample *s = read_host(f, &r);
        (void)state;
        afz_fixture_set(f, "proc/meminfo", "MemTotal: 16000 kB\nMemFree: 2 kB\n");
        afz_fixture_set(f, "sys/block/zram0/mm_stat", "1 1 1\n");
        afz_fixture_remove(f, "fs_space");
        afz_fixture_advance(f, S - 1);
        assert_int_equal(afz_reading_take(&r), 0);
        s = afz_reading_of(&r, AFZ_KIND_HOST, 0);
        assert_int_equal(afz_value(s, AFZ_HOST_MEM_FREE), 2 * KIB);
        assert_int_equal(afz_value(s, AFZ_HOST_MEM_AVAILABLE), AFZ_ABSENT);
        assert_int_equal(afz_value(s, AFZ_HOST_ZRAM_USED), 9192); /* a second old at most */
        afz_fixture_advance(f, 1);
        assert_int_equal(afz_reading_take(&r), 0);
        s = afz_reading_of(&r, AFZ_KIND_HOST, 0);
        assert_int_equal(afz_value(s, AFZ_HOST_ZRAM_USED), 1001);
        assert_int_equal(afz_value(s, AFZ_HOST_SHM_TOTAL), AFZ_ABSENT); /* gone, and not kept */
        afz_reading_done(&r);
        afz_fixture_free(f);
}

static void test_missing(void **state)
{
        static const struct afz_fixture_row none[] = {{"proc/vmstat", "pswpin 1\n"}, {0}};
        static const struct afz_fixture_row denied[] = {
                {"proc/vmstat", ""}, {"not-read", "EACCES proc/meminfo\n"}, {0}};
        static const struct afz_fixture_row broken[] = {{"proc/meminfo/", NULL}, {0}};
        struct afz_reading r;
        struct afz_fixture *f = afz_fixture_new(none);
        (void)state;
        assert_int_equal(afz_reading_open(&r, &afz_sense_host, afz_fixture_env(f), 0), -ENODATA);
        afz_reading_done(&r);
        afz_fixture_free(f);
        f = afz_fixture_new(denied);
        assert_int_equal(afz_reading_open(&r, &afz_sense_host, afz_fixture_env(f), 0), -EACCES);
        afz_reading_done(&r);
        afz_fixture_free(f);
        f = afz_fixture_new(broken);
        assert_int_equal(afz_reading_open(&r, &afz_sense_host, afz_fixture_env(f), 0), 0);
        assert_int_equal(afz_reading_take(&r), -EISDIR);
        afz_reading_done(&r);
        afz_fixture_free(f);
}

/* ---- the limit above us ---- */

struct limit_case {
        const char *what;
        const struct afz_fixture_row *rows;
        int64_t limit, used;
};

#define V2                                                                                         \
        {                                                                                          \
                "cgroup/cgroup.controllers", "cpu memory pids\n"                                   \
        }

static const struct afz_fixture_row nested[] = {
        V2,
        {"proc/42/cgroup", "0::/a/b/c\n"},
        {"cgroup/a/memory.max", "4096000\n"}, /* the grandparent's is the smallest */
        {"cgroup/a/memory.current", "3000000\n"},
        {"cgroup/a/memory.stat", "anon 1\ninactive_file 1000000\n"},
        {"cgroup/a/b/memory.max", "max\n"},
        {"cgroup/a/b/memory.current", "2000000\n"},
        {"cgroup/a/b/c/memory.max", "8192000\n"},
        {"cgroup/a/b/c/memory.current", "1000000\n"},
        {0}};
static const struct afz_fixture_row unlimited[] = {V2,
                                                   {"proc/42/cgroup", "0::/a\n"},
                                                   {"cgroup/a/memory.max", "max\n"},
                                                   {"cgroup/a/memory.current", "1\n"},
                                                   {0}};
static const struct afz_fixture_row beyond_ram[] = {V2,
                                                    {"proc/42/cgroup", "0::/a\n"},
                                                    {"cgroup/a/memory.max", "99999999999\n"},
                                                    {"cgroup/a/memory.current", "1\n"},
                                                    {0}};
/* The tighter limit cannot tell its use: that of the looser one must not stand for it. */
static const struct afz_fixture_row no_use[] = {V2,
                                                {"proc/42/cgroup", "0::/a/b\n"},
                                                {"cgroup/a/memory.max", "1000\n"},
                                                {"cgroup/a/b/memory.max", "2000\n"},
                                                {"cgroup/a/b/memory.current", "1500\n"},
                                                {0}};
static const struct afz_fixture_row only_cache[] = {
        V2,
        {"proc/42/cgroup", "0::/\n"}, /* a container: its own cgroup is the mount's top */
        {"cgroup/memory.max", "1000\n"},
        {"cgroup/memory.current", "400\n"},
        {"cgroup/memory.stat", "inactive_file 500\n"},
        {0}};
static const struct afz_fixture_row v1[] = {
        {"proc/42/cgroup", "4:memory:/docker/abc\n1:cpu:/\n0::/\n"},
        {"cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n"},
        {"cgroup/memory/docker/abc/memory.usage_in_bytes", "7\n"},
        {"cgroup/memory/docker/memory.limit_in_bytes", "5000\n"},
        {"cgroup/memory/docker/memory.usage_in_bytes", "3000\n"},
        {"cgroup/memory/docker/memory.stat", "inactive_file 1\ntotal_inactive_file 1000\n"},
        {"cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
        {0}};

static void test_limits_above(void **state)
{
        static const struct limit_case cases[] = {
                {"nested", nested, 4096000, 2000000},
                {"unlimited", unlimited, AFZ_ABSENT, AFZ_ABSENT},
                {"beyond RAM", beyond_ram, AFZ_ABSENT, AFZ_ABSENT},
                {"use not told", no_use, 1000, AFZ_ABSENT},
                {"nothing but cache", only_cache, 1000, 0},
                {"v1", v1, 5000, 2000},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                struct afz_fixture *f;
                struct afz_fixture_row rows[32] = {{"machine", "self_pid 42\n"},
                                                   {"proc/meminfo", MEMINFO}};
                for (size_t k = 0; cases[i].rows[k].path; k++)
                        rows[k + 2] = cases[i].rows[k];
                f = afz_fixture_new(rows);
                struct afz_reading r;
                const struct afz_sample *s = read_host(f, &r);
                if (afz_value(s, AFZ_HOST_LIMIT) != cases[i].limit ||
                    afz_value(s, AFZ_HOST_LIMIT_USED) != cases[i].used)
                        fail_msg("%s: %lld, %lld", cases[i].what,
                                 (long long)afz_value(s, AFZ_HOST_LIMIT),
                                 (long long)afz_value(s, AFZ_HOST_LIMIT_USED));
                afz_reading_done(&r);
                afz_fixture_free(f);
        }
}

/* ---- this very machine ---- */

static int64_t live_key(const struct afz_env *env, const char *file, const char *key)
{
        static char buf[65536];
        struct afz_span text, line, name;
        uint64_t v;
        assert_int_equal(afz_env_read(env, AFZ_ROOT_PROC, file, buf, sizeof buf, &text), 0);
        while (afz_span_take_line(&text, &line) == 0)
                if (afz_span_take_word(&line, &name) == 0 && afz_span_eq(name, key) &&
                    afz_span_take_u64(&line, &v) == 0)
                        return (int64_t)v;
        return -1;
}

static void test_live(void **state)
{
        struct afz_env env;
        struct afz_reading r;
        (void)state;
        assert_int_equal(afz_env_open_live(&env), 0);
        assert_int_equal(afz_reading_open(&r, &afz_sense_host, &env, 0), 0);
        for (int i = 0; i < 20; i++) {
                int64_t total = live_key(&env, "meminfo", "MemTotal:");
                assert_int_equal(afz_reading_take(&r), 0);
                const struct afz_sample *s = afz_reading_of(&r, AFZ_KIND_HOST, 0);
                assert_int_equal(afz_value(s, AFZ_HOST_MEM_TOTAL), total * KIB);
                int64_t available = afz_value(s, AFZ_HOST_MEM_AVAILABLE);
                assert_true(available > 0 && available < total * KIB);
        }
        afz_reading_done(&r);
        afz_env_done(&env);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_figures),       cmocka_unit_test(test_poor_machine),
                cmocka_unit_test(test_hostile_files), cmocka_unit_test(test_paces),
                cmocka_unit_test(test_missing),       cmocka_unit_test(test_limits_above),
                cmocka_unit_test(test_live),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
