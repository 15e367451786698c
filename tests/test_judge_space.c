/* File systems that the job fills: on disks, in memory. */
#include <signal.h>

#include "judge_fixture.h"

static struct afz_case ended(enum afz_end_how how, int code)
{
        return (struct afz_case){.flight = &flight, .facts.end = {how, code}};
}

static bool says(judge_function judge, enum afz_end_how how, int code)
{
        struct afz_case c = ended(how, code);
        return ask(judge, &c).verdicts > 0;
}

/* ---- log-growth ---- */

struct filling {
        double total_gb, free_gb, mb_per_s;
        uint32_t seconds;
        const char *type;
        double written_mb_per_s; /* by the job */
};

static void fly_filling(struct filling f)
{
        struct fly_times all = fly_every(0, f.seconds * 1000, 1000);
        bool memory = strncmp(f.type, "tmpfs", 5) == 0;
        fly_named(&flight, AFZ_KIND_FS, 30, memory ? "/scratch" : "/home", f.type, NULL);
        fly_flat(&flight, AFZ_KIND_FS, 30, AFZ_FS_TOTAL, all, FLY_GB(f.total_gb));
        fly_line(&flight, AFZ_KIND_FS, 30, AFZ_FS_AVAILABLE, all, FLY_GB(f.free_gb),
                 -f.mb_per_s * (1 << 20));
        fly_flat(&flight, AFZ_KIND_FS, 30, AFZ_FS_JOB_WRITES, all, 1);
        fly_line(&flight, AFZ_KIND_JOB, 0, memory ? AFZ_JOB_WRITE_CALLS : AFZ_JOB_WRITTEN, all, 0,
                 f.written_mb_per_s * (1 << 20));
        fly_named(&flight, AFZ_KIND_PROC, 4711, "python3", NULL, NULL);
        fly_line(&flight, AFZ_KIND_PROC, 4711, memory ? AFZ_PROC_WRITE_CALLS : AFZ_PROC_WRITTEN,
                 all, 0, f.written_mb_per_s * (1 << 20));
}

static void test_a_disk_that_fills(void **state)
{
        (void)state;
        fly_filling((struct filling){100, 20, 10, 120, "ext4 /dev/sda1", 10});
        struct afz_case c = ended(AFZ_END_RUNNING, -1);
        struct afz_outcome o = ask(afz_judge_log_growth, &c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_WARN);
        assert_words(o.verdict[0].summary, "what it writes fills /home, by 10M/s: 19G is left");
        assert_words(o.verdict[0].summary, "enough for 32 min");
        assert_true(has_evidence(&o.verdict[0], "python3 (pid 4711) wrote most"));
        assert_false(says(afz_judge_disk_full, AFZ_END_RUNNING, -1));
        /* It wrote its results and is done. */
        assert_false(says(afz_judge_log_growth, AFZ_END_EXIT, 0));
}

static void test_a_disk_that_is_full_soon(void **state)
{
        (void)state;
        fly_filling((struct filling){10, 4, 30, 90, "ext4 /dev/sda1", 30});
        struct afz_case c = ended(AFZ_END_EXIT, 1);
        struct afz_outcome o = ask(afz_judge_log_growth, &c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_ACT);
        assert_true(says(afz_judge_log_growth, AFZ_END_EXIT, 0));
}

static void test_memory_that_is_written_full(void **state)
{
        (void)state;
        fly_filling((struct filling){8, 6, 20, 120, "tmpfs tmpfs", 20});
        struct afz_case c = ended(AFZ_END_RUNNING, -1);
        struct afz_outcome o = ask(afz_judge_log_growth, &c);
        assert_int_equal(o.verdicts, 1);
        assert_words(o.verdict[0].summary, "/scratch, which lies in memory, by ");
        assert_words(o.verdict[0].fix, "to a disk instead");
        assert_false(says(afz_judge_disk_full, AFZ_END_RUNNING, -1));
}

static void test_disks_that_do_not_fill(void **state)
{
        (void)state;
        static const struct {
                struct filling f;
                const char *why;
        } row[] = {
                {{100, 20, 10, 120, "ext4", 1}, "somebody else fills it"},
                {{100, 20, 0.01, 120, "ext4", 1}, "a log that nobody minds"},
                {{4000, 3000, 10, 120, "ext4", 10}, "it lasts for days"},
                {{100, 20, 10, 10, "ext4", 10}, "too short to tell"},
                {{100, 20, 0, 120, "ext4", 10}, "what it writes is freed again"},
        };
        for (size_t i = 0; i < AFZ_COUNT_OF(row); i++) {
                fly_filling(row[i].f);
                if (says(afz_judge_log_growth, AFZ_END_RUNNING, -1))
                        fail_msg("said though: %s", row[i].why);
                afz_flight_done(&flight);
        }
}

static int64_t rotated(uint32_t t_ms, const void *ctx)
{
        (void)ctx;
        return FLY_GB(20) - (int64_t)(fly_saw(t_ms, 20000) * (double)FLY_GB(2));
}

static void test_checkpoints_that_are_rotated(void **state)
{
        (void)state;
        struct fly_times all = fly_every(0, 300000, 1000);
        fly_named(&flight, AFZ_KIND_FS, 30, "/home", "ext4", NULL);
        fly_flat(&flight, AFZ_KIND_FS, 30, AFZ_FS_TOTAL, all, FLY_GB(100));
        fly_column(&flight, AFZ_KIND_FS, 30, AFZ_FS_AVAILABLE, all, rotated, NULL);
        fly_flat(&flight, AFZ_KIND_FS, 30, AFZ_FS_JOB_WRITES, all, 1);
        fly_line(&flight, AFZ_KIND_JOB, 0, AFZ_JOB_WRITTEN, all, 0, 100e6);
        assert_false(says(afz_judge_log_growth, AFZ_END_RUNNING, -1));
}

/* ---- disk-full ---- */

static void fly_disk(int64_t total, int64_t first, int64_t last, int64_t inodes)
{
        struct fly_times all = fly_every(0, 60000, 1000);
        fly_named(&flight, AFZ_KIND_FS, 30, "/data", "ext4", NULL);
        fly_flat(&flight, AFZ_KIND_FS, 30, AFZ_FS_TOTAL, all, total);
        fly_flat(&flight, AFZ_KIND_FS, 30, AFZ_FS_AVAILABLE, all, first);
        fly_point(&flight, AFZ_KIND_FS, 30, AFZ_FS_AVAILABLE, 60000, last);
        fly_flat(&flight, AFZ_KIND_FS, 30, AFZ_FS_JOB_WRITES, all, 1);
        fly_flat(&flight, AFZ_KIND_FS, 30, AFZ_FS_FILES_FREE, all, inodes);
}

static void test_a_full_disk(void **state)
{
        (void)state;
        fly_disk(FLY_GB(100), FLY_GB(1), 0, 1000);
        struct afz_case c = ended(AFZ_END_EXIT, 1);
        struct afz_outcome o = ask(afz_judge_disk_full, &c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_ACT);
        assert_words(o.verdict[0].summary, "/data, where it writes, is full: 0B of 100G left");
        assert_int_equal(o.verdict[0].from_ms, 60000);
        c.facts.end.code = 0;
        assert_int_equal(ask(afz_judge_disk_full, &c).verdict[0].level, AFZ_LEVEL_WARN);
}

static void test_a_disk_that_is_nearly_full(void **state)
{
        (void)state;
        fly_disk(FLY_GB(100), FLY_GB(1), FLY_MB(100), 1000);
        struct afz_case c = ended(AFZ_END_EXIT, 1);
        struct afz_outcome o = ask(afz_judge_disk_full, &c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_WARN);
        assert_words(o.verdict[0].summary, "is nearly full: 100M of 100G left");
}

/* Sizes are read once a second; a fast writer fills the rest between two looks. */
static void test_a_disk_that_ran_full_between_two_looks(void **state)
{
        (void)state;
        for (int i = 0; i < 2; i++) {
                struct fly_times all = fly_every(0, 8000, 1000);
                fly_named(&flight, AFZ_KIND_FS, 30, "/scratch", "tmpfs tmpfs", NULL);
                fly_flat(&flight, AFZ_KIND_FS, 30, AFZ_FS_TOTAL, all, FLY_MB(40));
                fly_flat(&flight, AFZ_KIND_FS, 30, AFZ_FS_JOB_WRITES, all, 1);
                fly_line(&flight, AFZ_KIND_FS, 30, AFZ_FS_AVAILABLE, all, (double)FLY_MB(36),
                         -(double)FLY_MB(4));
                fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, i ? 8200 : 9200, FLY_MB(9));
                struct afz_case c = ended(AFZ_END_EXIT, 1);
                struct afz_outcome o = ask(afz_judge_disk_full, &c);
                assert_int_equal(o.verdicts, i ? 0 : 1); /* it failed before that */
                if (i)
                        break;
                assert_int_equal(o.verdict[0].level, AFZ_LEVEL_ACT);
                assert_words(o.verdict[0].summary, "/scratch, where it writes, ran full: 8.0M of");
                assert_words(o.verdict[0].fix, "to a disk instead");
                assert_false(says(afz_judge_disk_full, AFZ_END_EXIT, 0));
                assert_false(says(afz_judge_disk_full, AFZ_END_RUNNING, -1));
                afz_flight_done(&flight);
        }
}

/* Checkpoints of 8 MB, each closed: the last look was before the one that found no room. */
static void test_a_disk_without_room_for_the_next_piece(void **state)
{
        (void)state;
        static const struct {
                double left_mb, since_mb; /* at the last look; written since */
                bool full;
        } row[] = {{17, 8, true}, {9, 0, true}, {17, 0, false}, {60, 50, false}};
        for (size_t i = 0; i < AFZ_COUNT_OF(row); i++) {
                fly_named(&flight, AFZ_KIND_FS, 30, "/data", "ext4 /dev/sdb", NULL);
                fly_flat(&flight, AFZ_KIND_FS, 30, AFZ_FS_TOTAL, fly_every(0, 35000, 10000),
                         FLY_MB(128));
                for (uint32_t k = 0; k < 4; k++) {
                        fly_point(&flight, AFZ_KIND_FS, 30, AFZ_FS_AVAILABLE, k * 10000,
                                  FLY_MB(row[i].left_mb + 8 * (3 - k)));
                        fly_point(&flight, AFZ_KIND_FS, 30, AFZ_FS_JOB_WRITES, k * 10000, 1);
                        fly_point(&flight, AFZ_KIND_JOB, 0, AFZ_JOB_WRITTEN, k * 10000,
                                  FLY_MB(8 * k));
                }
                fly_point(&flight, AFZ_KIND_JOB, 0, AFZ_JOB_WRITTEN, 38000,
                          FLY_MB(24 + row[i].since_mb));
                if (says(afz_judge_disk_full, AFZ_END_EXIT, 1) != row[i].full)
                        fail_msg("row %zu", i);
                assert_false(says(afz_judge_disk_full, AFZ_END_EXIT, 0));
                afz_flight_done(&flight);
        }
}

static void test_no_more_inodes(void **state)
{
        (void)state;
        fly_disk(FLY_GB(100), FLY_GB(50), FLY_GB(50), 0);
        struct afz_case c = ended(AFZ_END_EXIT, 1);
        assert_words(ask(afz_judge_disk_full, &c).verdict[0].summary, "inodes");
}

static void test_disks_that_are_not_full(void **state)
{
        (void)state;
        fly_disk(FLY_GB(100), FLY_GB(2), FLY_GB(1), 1000);
        assert_false(says(afz_judge_disk_full, AFZ_END_EXIT, 1));
        afz_flight_done(&flight);
        /* Full before, and the run did not mind. */
        fly_disk(FLY_GB(100), FLY_MB(100), FLY_MB(100), 1000);
        assert_false(says(afz_judge_disk_full, AFZ_END_EXIT, 0));
        assert_true(says(afz_judge_disk_full, AFZ_END_EXIT, 1));
        afz_flight_done(&flight);
        /* Read from only: a squashfs is always full. */
        fly_flat(&flight, AFZ_KIND_FS, 9, AFZ_FS_TOTAL, fly_every(0, 60000, 1000), FLY_MB(50));
        fly_flat(&flight, AFZ_KIND_FS, 9, AFZ_FS_AVAILABLE, fly_every(0, 60000, 1000), 0);
        fly_flat(&flight, AFZ_KIND_FS, 9, AFZ_FS_JOB_WRITES, fly_every(0, 60000, 1000), 0);
        assert_false(says(afz_judge_disk_full, AFZ_END_EXIT, 1));
}

/* ---- shm-full ---- */

static void fly_shm(int64_t total, int64_t first, int64_t most)
{
        fly_flat(&flight, AFZ_KIND_HOST, 0, AFZ_HOST_SHM_TOTAL, fly_every(0, 10000, 1000), total);
        fly_point(&flight, AFZ_KIND_HOST, 0, AFZ_HOST_SHM_USED, 0, first);
        fly_point(&flight, AFZ_KIND_HOST, 0, AFZ_HOST_SHM_USED, 5000, most);
        fly_point(&flight, AFZ_KIND_HOST, 0, AFZ_HOST_SHM_USED, 9000, first); /* swept again */
}

static void test_a_full_shm(void **state)
{
        (void)state;
        fly_shm(FLY_MB(64), 0, FLY_MB(60));
        struct afz_case c = ended(AFZ_END_SIGNAL, SIGBUS);
        struct afz_outcome o = ask(afz_judge_shm_full, &c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_ACT);
        assert_words(o.verdict[0].summary, "ran full: 60M of 64M");
        assert_words(o.verdict[0].summary, "SIGBUS");
        assert_words(o.verdict[0].fix, "--shm-size");
        assert_false(says(afz_judge_shm_full, AFZ_END_EXIT, 1)); /* 94 % and another end */
        afz_flight_done(&flight);
        fly_shm(FLY_GB(8), 0, FLY_GB(7.9));
        c = ended(AFZ_END_EXIT, 1);
        o = ask(afz_judge_shm_full, &c);
        assert_int_equal(o.verdicts, 1);
        assert_true(o.verdict[0].confidence < 0.9);
}

/* Batches of 10 MB: it failed when 58 of 64 MB were taken, which is no 95 %. */
static void test_a_shm_without_room_for_the_next_batch(void **state)
{
        (void)state;
        for (int last = 58; last >= 48; last -= 10) {
                fly_flat(&flight, AFZ_KIND_HOST, 0, AFZ_HOST_SHM_TOTAL, fly_every(0, 6000, 1000),
                         FLY_MB(64));
                for (uint32_t k = 0; k < 5; k++)
                        fly_point(&flight, AFZ_KIND_HOST, 0, AFZ_HOST_SHM_USED, k * 1000,
                                  FLY_MB(last - 10 * (4 - (int)k)));
                fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, 5000, FLY_MB(90));
                assert_int_equal(says(afz_judge_shm_full, AFZ_END_EXIT, 1), last == 58);
                assert_false(says(afz_judge_shm_full, AFZ_END_EXIT, 0));
                afz_flight_done(&flight);
        }
}

static void test_a_shm_that_others_filled(void **state)
{
        (void)state;
        fly_shm(FLY_MB(64), FLY_MB(62), FLY_MB(63));
        assert_false(says(afz_judge_shm_full, AFZ_END_EXIT, 1));
        assert_false(says(afz_judge_shm_full, AFZ_END_SIGNAL, SIGBUS));
        fly_named(&flight, AFZ_KIND_FS, 3, "/dev/shm", "tmpfs shm", NULL);
        assert_true(says(afz_judge_shm_full, AFZ_END_SIGNAL, SIGBUS));
        assert_false(says(afz_judge_shm_full, AFZ_END_EXIT, 1));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_a_disk_that_fills),
                TEST(test_a_disk_that_is_full_soon),
                TEST(test_memory_that_is_written_full),
                TEST(test_disks_that_do_not_fill),
                TEST(test_checkpoints_that_are_rotated),
                TEST(test_a_full_disk),
                TEST(test_a_disk_that_is_nearly_full),
                TEST(test_a_disk_that_ran_full_between_two_looks),
                TEST(test_a_disk_without_room_for_the_next_piece),
                TEST(test_no_more_inodes),
                TEST(test_disks_that_are_not_full),
                TEST(test_a_full_shm),
                TEST(test_a_shm_without_room_for_the_next_batch),
                TEST(test_a_shm_that_others_filled),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
