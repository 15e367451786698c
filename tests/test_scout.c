/* links: engine */
/* From windows to the facts of a report. What it looks at by itself is in test_scout_look.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "role.h"
#include "scout_facts.h"

#define S   UINT64_C(1000000000)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* ---- a window made by hand: one batch with samples of all kinds ---- */

struct scene {
        struct afz_window window;
        struct afz_batch *batch;
        struct afz_scout_facts *facts;
        struct afz_scout_report report;
};

static void scene_init(struct scene *s)
{
        memset(s, 0, sizeof *s);
        afz_window_init(&s->window, S);
        assert_int_equal(afz_batch_new(64, &s->batch), 0);
        assert_int_equal(afz_scout_facts_new(&s->facts), 0);
        s->window.sources = 1;
        s->window.source[0] = (struct afz_source){.name = "all", .now = s->batch};
}

static void scene_done(struct scene *s)
{
        afz_scout_facts_free(s->facts);
        afz_batch_free(s->batch);
}

/* A new tick at this time, with nothing seen yet. */
static void at(struct scene *s, uint64_t t_ns)
{
        afz_batch_start(s->batch, t_ns);
        s->window.t_ns = t_ns;
}

static struct afz_sample *add(struct scene *s, enum afz_kind kind, uint64_t id, const char *name)
{
        struct afz_sample *sample =
                afz_batch_add(s->batch, (struct afz_subject){kind, id, id * 10}, name);
        assert_non_null(sample);
        return sample;
}

static struct afz_sample *process(struct scene *s, uint64_t pid, const char *name, uint64_t need)
{
        struct afz_sample *p = add(s, AFZ_KIND_PROC, pid, name);
        afz_sample_set_u64(p, AFZ_PROC_NEED, need);
        return p;
}

static void take(struct scene *s)
{
        afz_scout_facts_take(s->facts, &s->window, &s->report);
}

static void test_who_holds_and_who_grows(void **state)
{
        struct scene s;
        (void)state;
        scene_init(&s);
        for (uint64_t i = 0; i <= 30; i++) {
                at(&s, (100 + i) * S);
                process(&s, 7, "big", 8 * GIB - i * MIB); /* holds most, shrinks */
                process(&s, 8, "leak\nx", GIB + i * 10 * MIB);
                process(&s, 9, "slow", GIB + i * MIB);
                add(&s, AFZ_KIND_PROC, 10, "unread"); /* no figure is no zero, and no crash */
                take(&s);
        }
        assert_int_equal(s.report.largest.pid, 7);
        assert_int_equal(s.report.largest.bytes, 8 * GIB - 30 * MIB);
        assert_string_equal(s.report.largest.name, "big");
        assert_int_equal(s.report.grower.pid, 8);
        assert_int_equal(s.report.grower.bytes, 100 * MIB); /* of the last 10 s alone */
        assert_string_equal(s.report.grower.name, "leak?x");
        assert_int_equal(s.report.t_ns, 130 * S);

        /* The same pid with another start time is another process: it has not grown yet. */
        at(&s, 131 * S);
        struct afz_sample *again = process(&s, 8, "new", 20 * GIB);
        again->subject.start = 4711;
        take(&s);
        assert_int_equal(s.report.largest.pid, 8);
        assert_int_equal(s.report.grower.pid, 0);

        at(&s, 132 * S);
        take(&s);
        assert_int_equal(s.report.largest.pid, 0);
        scene_done(&s);
}

/* Growth is over seconds, however often one looks. */
static void test_growth_at_a_brisk_pace(void **state)
{
        struct scene s;
        (void)state;
        scene_init(&s);
        for (uint64_t i = 0; i <= 80; i++) {
                at(&s, 100 * S + i * (S / 4));
                process(&s, 8, "leak", GIB + i * MIB);
                take(&s);
        }
        assert_in_range(s.report.grower.bytes, 40 * MIB, 44 * MIB);
        scene_done(&s);
}

static void test_more_processes_than_places(void **state)
{
        struct scene s;
        (void)state;
        scene_init(&s);
        for (uint64_t i = 0; i < 100; i++) {
                at(&s, (100 + i) * S);
                for (uint64_t k = 0; k < 60; k++) /* all new in every tick */
                        process(&s, 1000 + i * 60 + k, "p", MIB);
                process(&s, 8, "leak", GIB + i * MIB);
                take(&s);
        }
        assert_int_equal(s.report.grower.pid, 8);
        scene_done(&s);
}

static struct afz_sample *tree(struct scene *s, uint64_t pid, uint64_t ppid, enum afz_role role,
                               const char *command)
{
        struct afz_sample *p = process(s, pid, "p", MIB);
        afz_sample_set(p, AFZ_PROC_ROLE, role);
        afz_sample_set_u64(p, AFZ_PROC_PPID, ppid);
        p->detail = command;
        return p;
}

static void test_kernels_below_a_server(void **state)
{
        struct scene s;
        (void)state;
        scene_init(&s);
        at(&s, S);
        tree(&s, 100, 1, AFZ_ROLE_SHELL, NULL);
        tree(&s, 101, 100, AFZ_ROLE_SERVER, NULL);
        tree(&s, 102, 101, AFZ_ROLE_KERNEL, NULL);
        tree(&s, 103, 102, AFZ_ROLE_WORKER, NULL);
        tree(&s, 104, 102, AFZ_ROLE_KERNEL, NULL); /* of the kernel's own making */
        tree(&s, 105, 101, AFZ_ROLE_SHELL, NULL);
        tree(&s, 106, 105, AFZ_ROLE_KERNEL, NULL); /* through an environment's script */
        take(&s);
        assert_true(s.report.server);
        assert_int_equal(s.report.parts, 2);
        assert_int_equal(s.report.part_pid[0], 102);
        assert_int_equal(s.report.part_pid[1], 106);
        scene_done(&s);

        static const enum afz_role above[] = {AFZ_ROLE_SHELL, AFZ_ROLE_LAUNCHER, AFZ_ROLE_MAIN};
        for (size_t i = 0; i < sizeof above / sizeof above[0]; i++) {
                scene_init(&s);
                at(&s, S);
                tree(&s, 100, 1, above[i], NULL);
                tree(&s, 102, 100, AFZ_ROLE_KERNEL, NULL);
                take(&s);
                assert_false(s.report.server);
                assert_int_equal(s.report.parts, 0);
                scene_done(&s);
        }
}

/* Two that are each other's parent (a pid used again in mid-read) must not hold us. */
static void test_a_circle_of_parents(void **state)
{
        struct scene s;
        (void)state;
        scene_init(&s);
        at(&s, S);
        tree(&s, 100, 101, AFZ_ROLE_SERVER, NULL);
        tree(&s, 101, 100, AFZ_ROLE_SHELL, NULL);
        tree(&s, 102, 101, AFZ_ROLE_KERNEL, NULL);
        for (uint64_t i = 0; i < 40; i++)
                tree(&s, 200 + i, 100, AFZ_ROLE_KERNEL, NULL);
        take(&s);
        assert_int_equal(s.report.parts, AFZ_SCOUT_PARTS);
        scene_done(&s);
}

static void test_escapes_are_told_once(void **state)
{
        static const char *const commands[] = {"sbatch a", "sbatch b", "docker run x",
                                               "ssh h x",  "srun x",   "podman run x"};
        struct scene s;
        (void)state;
        scene_init(&s);
        for (uint64_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
                at(&s, (i + 1) * S);
                tree(&s, 100 + i, 1, AFZ_ROLE_OTHER, commands[i]);
                take(&s);
        }
        assert_int_equal(s.report.escapes, AFZ_SCOUT_ESCAPES);
        assert_int_equal(s.report.escape[0].pid, 100);
        assert_string_equal(s.report.escape[0].name, "sbatch");
        assert_string_equal(s.report.escape[1].name, "docker run");
        assert_string_equal(s.report.escape[3].name, "srun");
        scene_done(&s);
}

static struct afz_sample *gpu(struct scene *s, uint64_t id, int unified)
{
        struct afz_sample *g = add(s, AFZ_KIND_GPU, id, "gpu");
        if (unified >= 0)
                afz_sample_set(g, AFZ_GPU_UNIFIED, unified);
        return g;
}

static void on_gpu(struct scene *s, uint64_t id, uint64_t pid, uint64_t bytes, int in_job)
{
        struct afz_sample *p = add(s, AFZ_KIND_GPU_PROC, id << 32 | pid, "p");
        afz_sample_set_u64(p, AFZ_GPU_PROC_GPU, id);
        afz_sample_set_u64(p, AFZ_GPU_PROC_MEM, bytes);
        if (in_job >= 0)
                afz_sample_set(p, AFZ_GPU_PROC_IN_JOB, in_job);
}

static void test_gpus(void **state)
{
        struct scene s;
        (void)state;
        scene_init(&s);
        at(&s, S);
        take(&s);
        assert_false(s.report.has_gpu);
        assert_false(s.report.gpu_is_ram);

        at(&s, 2 * S); /* two cards; one process is a stranger's, of one nobody knows */
        gpu(&s, 0, 0);
        gpu(&s, 1, -1);
        on_gpu(&s, 0, 7, 3 * GIB, 1);
        on_gpu(&s, 1, 7, 2 * GIB, 1);
        on_gpu(&s, 1, 8, 9 * GIB, 0);
        on_gpu(&s, 1, 9, 9 * GIB, -1);
        take(&s);
        assert_true(s.report.has_gpu);
        assert_false(s.report.gpu_is_ram);
        assert_int_equal(s.report.gpu_bytes, 5 * GIB);

        at(&s, 3 * S); /* a laptop: a card beside the processor's own */
        gpu(&s, 0, 1);
        gpu(&s, 1, 0);
        on_gpu(&s, 0, 7, GIB, 1);
        on_gpu(&s, 1, 7, 2 * GIB, 1);
        take(&s);
        assert_false(s.report.gpu_is_ram);
        assert_int_equal(s.report.gpu_bytes, 2 * GIB);

        at(&s, 4 * S); /* one memory for all */
        gpu(&s, 0, 1);
        on_gpu(&s, 0, 7, GIB, 1);
        take(&s);
        assert_true(s.report.gpu_is_ram);
        assert_int_equal(s.report.gpu_bytes, GIB);
        scene_done(&s);
}

static void shm_tick(struct scene *s, uint64_t t_ns, uint64_t used, uint64_t mapped)
{
        at(s, t_ns);
        struct afz_sample *host = add(s, AFZ_KIND_HOST, 0, "host");
        afz_sample_set_u64(host, AFZ_HOST_SHM_TOTAL, 8 * GIB);
        afz_sample_set_u64(host, AFZ_HOST_SHM_USED, used);
        afz_sample_set_u64(add(s, AFZ_KIND_JOB, 1, "job"), AFZ_JOB_PSS_SHMEM, mapped);
        take(s);
}

static void test_shm(void **state)
{
        struct scene s;
        (void)state;
        scene_init(&s);
        at(&s, S);
        take(&s);
        assert_false(s.report.shm.known);
        shm_tick(&s, 2 * S, GIB, 0); /* was there before */
        assert_true(s.report.shm.known);
        assert_int_equal(s.report.shm.free_bytes, 7 * GIB);
        assert_int_equal(s.report.shm.job_bytes, 0);
        shm_tick(&s, 3 * S, 7 * GIB, 6 * GIB);
        assert_int_equal(s.report.shm.job_bytes, 6 * GIB);
        assert_int_equal(afz_scout_facts_pace(&s.report, 100 * S), S / 4);
        shm_tick(&s, 4 * S, 3 * GIB, 6 * GIB); /* pinned by a driver: shared, and not there */
        assert_int_equal(s.report.shm.job_bytes, 2 * GIB);
        assert_int_equal(afz_scout_facts_pace(&s.report, 100 * S), S);
        scene_done(&s);
}

/* ---- disks ---- */

static void disk_tick(struct scene *s, uint64_t t_ns, uint64_t written, uint64_t free_bytes,
                      bool writes)
{
        at(s, t_ns);
        afz_sample_set_u64(add(s, AFZ_KIND_JOB, 1, "job"), AFZ_JOB_WRITTEN, written);
        struct afz_sample *fs = add(s, AFZ_KIND_FS, 31, "/data");
        fs->detail = "ext4 /dev/sda1";
        afz_sample_set_u64(fs, AFZ_FS_TOTAL, 100 * GIB);
        afz_sample_set_u64(fs, AFZ_FS_AVAILABLE, free_bytes);
        afz_sample_set(fs, AFZ_FS_JOB_WRITES, writes);
        take(s);
}

/* What the job writes a second, what the disk loses a second: who fills it? */
static void test_filling_a_disk(void **state)
{
        static const struct {
                const char *what;
                uint64_t written, lost; /* MiB a second */
                bool open, known;
                uint64_t rate, left_s;
        } cases[] = {
                {"the job fills it", 100, 100, true, true, 100, 10},
                {"it rewrites in place", 100, 0, true, true, 0, UINT64_MAX},
                {"another fills it", 0, 100, true, true, 0, UINT64_MAX},
                {"both do", 50, 100, true, true, 50, 20},
                {"files open for a moment only", 100, 90, false, true, 90, 11},
                {"nothing of the job's is there", 100, 3, false, false, 0, 0},
                {"nothing happens", 0, 0, true, true, 0, UINT64_MAX},
        };
        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct scene s;
                scene_init(&s);
                for (uint64_t k = 0; k <= 20; k++)
                        disk_tick(&s, (50 + k) * S, GIB + k * cases[i].written * MIB,
                                  1000 * MIB + (20 - k) * cases[i].lost * MIB, cases[i].open);
                if (s.report.disk.known != cases[i].known ||
                    s.report.disk.rate_bytes_per_s != cases[i].rate * MIB ||
                    s.report.disk.left_s != cases[i].left_s)
                        fail_msg("%s: rate %llu left %llu", cases[i].what,
                                 (unsigned long long)s.report.disk.rate_bytes_per_s,
                                 (unsigned long long)s.report.disk.left_s);
                if (cases[i].known) {
                        assert_int_equal(s.report.disk.free_bytes, 1000 * MIB);
                        assert_string_equal(s.report.disk.mount, "/data");
                }
                scene_done(&s);
        }
}

/* 2 GB left at 100 MB/s: known two seconds after it began, and looked at more often from then. */
static void test_a_disk_that_fills_fast(void **state)
{
        struct scene s;
        (void)state;
        scene_init(&s);
        assert_int_equal(afz_scout_facts_pace(&s.report, 100 * S), S);
        assert_int_equal(afz_scout_facts_pace(&s.report, 1 * S), S / 4);
        disk_tick(&s, 50 * S, 0, 2000 * MIB, true);
        assert_int_equal(s.report.disk.left_s, UINT64_MAX);
        disk_tick(&s, 51 * S, 100 * MIB, 1900 * MIB, true);
        assert_int_equal(s.report.disk.left_s, 19);
        assert_int_equal(afz_scout_facts_pace(&s.report, 100 * S), S / 4);

        /* Between two readings of the disk, what the job wrote since is gone. */
        at(&s, 52 * S);
        disk_tick(&s, 52 * S, 200 * MIB, 1800 * MIB, true);
        struct afz_sample *job = &s.batch->sample[0];
        s.window.t_ns = 52 * S + S / 2;
        afz_sample_set_u64(job, AFZ_JOB_WRITTEN, 300 * MIB);
        take(&s);
        assert_int_equal(s.report.disk.free_bytes, 1700 * MIB);
        assert_int_equal(s.report.disk.left_s, 17);
        scene_done(&s);
}

static void test_disks_that_do_not_count(void **state)
{
        struct scene s;
        (void)state;
        scene_init(&s);
        for (uint64_t k = 1; k < 5; k++) {
                at(&s, k * S);
                afz_sample_set_u64(add(&s, AFZ_KIND_JOB, 1, "job"), AFZ_JOB_WRITTEN, k * GIB);
                struct afz_sample *fs =
                        add(&s, AFZ_KIND_FS, 31, "/net"); /* never asked for space */
                afz_sample_set(fs, AFZ_FS_JOB_WRITES, 1);
                fs = add(&s, AFZ_KIND_FS, 32, "/mem");
                fs->detail = "tmpfs tmpfs";
                afz_sample_set(fs, AFZ_FS_JOB_WRITES, 1);
                afz_sample_set_u64(fs, AFZ_FS_TOTAL, GIB);
                afz_sample_set_u64(fs, AFZ_FS_AVAILABLE, MIB);
                take(&s);
                assert_false(s.report.disk.known);
        }
        scene_done(&s);
}

/* A sum that is missing for a tick takes nothing back; one that stays away does. */
static void test_a_sum_that_goes_missing(void **state)
{
        struct scene s;
        (void)state;
        scene_init(&s);
        for (uint64_t k = 0; k < 5; k++)
                disk_tick(&s, (50 + k) * S, k * 100 * MIB, 2000 * MIB - k * 100 * MIB, true);
        assert_int_equal(s.report.disk.left_s, 16);
        at(&s, 55 * S);
        take(&s);
        assert_int_equal(s.report.disk.left_s, 16);
        at(&s, 65 * S);
        take(&s);
        assert_false(s.report.disk.known);

        /* Another root was taken up: what it has written is less. No rate over that. */
        disk_tick(&s, 66 * S, MIB, GIB, true);
        assert_int_equal(s.report.disk.left_s, UINT64_MAX);
        scene_done(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_who_holds_and_who_grows),
                cmocka_unit_test(test_growth_at_a_brisk_pace),
                cmocka_unit_test(test_more_processes_than_places),
                cmocka_unit_test(test_kernels_below_a_server),
                cmocka_unit_test(test_a_circle_of_parents),
                cmocka_unit_test(test_escapes_are_told_once),
                cmocka_unit_test(test_gpus),
                cmocka_unit_test(test_shm),
                cmocka_unit_test(test_filling_a_disk),
                cmocka_unit_test(test_a_disk_that_fills_fast),
                cmocka_unit_test(test_disks_that_do_not_count),
                cmocka_unit_test(test_a_sum_that_goes_missing),
        };
        return cmocka_run_group_tests_name("scout", tests, NULL, NULL);
}
