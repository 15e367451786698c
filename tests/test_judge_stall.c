/* links: judge */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ask_judge.h"
#include "role.h"
#include "stretch.h"

/* ---- data-stall ---- */

/* A job of one process on a machine of so many cores, with a disk. Rates a second; -1: not told. */
struct stall {
        const char *what;
        double cores;     /* the machine's */
        double job_cores; /* used */
        double busiest;   /* of one process; -1: the same */
        double read, written;
        double disk_wait; /* processes in D */
        double io_wait;   /* s a second */
        double psi_io, psi_memory, swap_in;
        double disk_busy;
        int disk_used;     /* the job's own disk? */
        double gpu;        /* busy, of a GPU that the job is on */
        double mount_wait; /* of a network mount */
        double idle;       /* cores of the machine that nobody uses */
        uint32_t seconds;
        uint32_t from_s; /* when it begins: before that, it computes */
        int braked;
        const char *says; /* NULL: silent; else a word of what it says */
};

#define QUIET_                                                                                     \
        .cores = 4, .job_cores = 0.05, .busiest = -1, .read = 0, .written = 0, .disk_wait = 0,     \
        .io_wait = -1, .psi_io = -1, .psi_memory = -1, .swap_in = -1, .disk_busy = -1,             \
        .disk_used = -1, .gpu = -1, .mount_wait = -1, .idle = -1, .seconds = 60, .braked = -1

static void fly_job(struct afz_flight *f, const struct stall *s)
{
        uint32_t end = s->seconds * 1000, from = s->from_s * 1000;
        struct fly_times t = fly_every(0, end, 100), slow = fly_every(0, end, 1000);
        double cpu = 0, before = s->job_cores > 1 ? s->job_cores : 1;
        for (uint32_t at = 0; at < end && s->job_cores >= 0; at += 100) {
                fly_point(f, AFZ_KIND_JOB, JOB, AFZ_JOB_CPU, at, (int64_t)cpu);
                fly_point(f, AFZ_KIND_PROC, JOB, AFZ_PROC_SYSTEM, at, 0);
                double one = s->busiest >= 0 ? s->busiest / s->job_cores : 1;
                fly_point(f, AFZ_KIND_PROC, JOB, AFZ_PROC_USER, at, (int64_t)(cpu * one));
                cpu += (at < from ? before : s->job_cores) * 1e8;
        }
        tell_rate(f, AFZ_KIND_JOB, JOB, AFZ_JOB_READ, t, s->read);
        tell_rate(f, AFZ_KIND_JOB, JOB, AFZ_JOB_WRITTEN, t, s->written);
        for (uint32_t at = 0; at < end && s->disk_wait >= 0; at += 100)
                fly_point(f, AFZ_KIND_JOB, JOB, AFZ_JOB_DISK_WAIT, at,
                          (at / 100) % 10 < s->disk_wait * 10);
        tell_rate(f, AFZ_KIND_PROC, JOB, AFZ_PROC_IO_WAIT, t, s->io_wait * 1e9);
        tell_rate(f, AFZ_KIND_PSI, 0, AFZ_PSI_IO_SOME, t, s->psi_io * 1e9);
        tell_rate(f, AFZ_KIND_PSI, 0, AFZ_PSI_MEMORY_SOME, t, s->psi_memory * 1e9);
        tell_rate(f, AFZ_KIND_VM, 0, AFZ_VM_SWAP_IN, t, s->swap_in);
        if (s->braked >= 0)
                fly_flat(f, AFZ_KIND_HOLD, 0, AFZ_HOLD_BRAKED, t, s->braked);
        if (s->disk_busy >= 0) {
                fly_named(f, AFZ_KIND_DISK, 8, "vda", NULL, NULL);
                tell_rate(f, AFZ_KIND_DISK, 8, AFZ_DISK_BUSY, slow, s->disk_busy * 1e9);
                tell_rate(f, AFZ_KIND_DISK, 8, AFZ_DISK_READ, slow, s->read);
                tell_rate(f, AFZ_KIND_DISK, 8, AFZ_DISK_READS, slow, s->read / 8192);
                tell_rate(f, AFZ_KIND_DISK, 8, AFZ_DISK_QUEUE_TIME, slow, 4e9);
        }
        if (s->disk_used >= 0)
                fly_flat(f, AFZ_KIND_DISK, 8, AFZ_DISK_JOB_USES, slow, s->disk_used);
}

static void fly_stall(struct afz_flight *f, const struct stall *s)
{
        uint32_t end = s->seconds * 1000;
        struct fly_times slow = fly_every(0, end, 1000);
        afz_flight_init(f);
        f->head.cores = s->cores > 0 ? (uint32_t)s->cores : 0;
        fly_job(f, s);
        tell_rate(f, AFZ_KIND_CPU, AFZ_CPU_ALL, AFZ_CPU_IDLE, slow, s->idle * 1e9);
        if (s->gpu >= 0) {
                fly_flat(f, AFZ_KIND_GPU, 0, AFZ_GPU_UTIL, slow, (int64_t)(s->gpu * 10000));
                fly_flat(f, AFZ_KIND_GPU_PROC, JOB, AFZ_GPU_PROC_IN_JOB, slow, 1);
        }
        if (s->mount_wait >= 0) {
                fly_named(f, AFZ_KIND_FS, 30, "/data", NULL, NULL);
                tell_rate(f, AFZ_KIND_FS, 30, AFZ_FS_NET_WAIT, slow, s->mount_wait * 1e9);
                tell_rate(f, AFZ_KIND_FS, 30, AFZ_FS_NET_READ, slow, 5e6);
                tell_rate(f, AFZ_KIND_FS, 30, AFZ_FS_NET_WRITTEN, slow, 0);
                tell_rate(f, AFZ_KIND_FS, 30, AFZ_FS_NET_OPS, slow, 200);
        }
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif
static const struct stall stalls[] = {
        {"an idle job", QUIET_},
        {"in disk wait, reading", QUIET_, .read = 2e6, .disk_wait = 0.9, .disk_busy = 0.95,
         .says = "vda"},
        {"it tells the rate", QUIET_, .read = 2 << 20, .disk_wait = 0.9, .disk_busy = 0.95,
         .says = "2.0M/s"},
        {"disk wait seen by accounting", QUIET_, .read = 2e6, .io_wait = 0.8, .says = "a disk"},
        {"pressure and a busy disk", QUIET_, .read = 2e6, .job_cores = 0.6, .psi_io = 0.5,
         .disk_busy = 0.9, .says = "vda"},
        {"pressure, but of another disk", QUIET_, .read = 2e6, .job_cores = 0.6, .psi_io = 0.5,
         .disk_busy = 0.9, .disk_used = 0},
        {"pressure, but the disk is idle", QUIET_, .read = 2e6, .job_cores = 0.6, .psi_io = 0.5,
         .disk_busy = 0.1},
        {"a throttled disk: waits, not busy", QUIET_, .read = 100e3, .disk_wait = 0.9,
         .disk_busy = 0.05, .says = "holds the rate down"},
        {"reads all the time and computes little", QUIET_, .read = 1.3e6, .job_cores = 0.1,
         .disk_busy = 0.1, .says = "reading all the while"},
        {"the same on a machine with cores to spare", QUIET_, .read = 1.3e6, .job_cores = 0.1,
         .disk_busy = 0.1, .idle = 2, .says = "reading all the while"},
        {"the same where others have all cores", QUIET_, .read = 1.3e6, .job_cores = 0.1,
         .disk_busy = 0.1, .idle = 0.1},
        {"reads all the time and computes half of it", QUIET_, .read = 1.3e6, .job_cores = 0.55},
        {"reads next to nothing", QUIET_, .read = 9e3, .disk_wait = 0.9},
        {"the CPU is busy", QUIET_, .read = 20e6, .job_cores = 1, .disk_wait = 0.9,
         .disk_busy = 0.95},
        {"half of the machine is busy, no process is", QUIET_, .read = 20e6, .job_cores = 2.1,
         .busiest = 0.4, .disk_wait = 0.9, .disk_busy = 0.95},
        {"many readers, none of them busy", QUIET_, .read = 20e6, .job_cores = 0.9, .busiest = 0.2,
         .disk_wait = 0.9, .disk_busy = 0.95, .says = "vda"},
        {"the GPU is busy", QUIET_, .read = 20e6, .disk_wait = 0.9, .disk_busy = 0.95, .gpu = 0.8},
        {"the GPU starves", QUIET_, .read = 20e6, .disk_wait = 0.9, .disk_busy = 0.95, .gpu = 0.1,
         .says = "idle cores and GPU"},
        {"it is saving", QUIET_, .read = 1e6, .written = 50e6, .disk_wait = 0.9, .disk_busy = 1},
        {"it is swapping", QUIET_, .read = 20e6, .disk_wait = 0.9, .disk_busy = 1, .swap_in = 20e6},
        {"it waits for its own memory", QUIET_, .read = 3e6, .disk_wait = 0.9, .disk_busy = 1,
         .swap_in = 2e6},
        {"somebody else swaps a little", QUIET_, .read = 3e6, .disk_wait = 0.9, .disk_busy = 0.95,
         .swap_in = 1e6, .says = "vda"},
        {"memory is short", QUIET_, .read = 20e6, .disk_wait = 0.9, .disk_busy = 1,
         .psi_memory = 0.3},
        {"a network mount", QUIET_, .mount_wait = 0.9, .says = "/data"},
        {"a network mount that answers", QUIET_, .mount_wait = 0.1},
        {"too short", QUIET_, .read = 2e6, .disk_wait = 0.9, .seconds = 19},
        {"not for most of it", QUIET_, .read = 2e6, .disk_wait = 0.9, .seconds = 60, .from_s = 35},
        {"most of it", QUIET_, .read = 2e6, .disk_wait = 0.9, .seconds = 120, .from_s = 30,
         .says = "vda?"},
        {"frozen by us", QUIET_, .read = 2e6, .disk_wait = 0.9, .braked = 1},
        {"its time is not known", QUIET_, .read = 2e6, .disk_wait = 0.9, .job_cores = -1},
        {"its reading is not known", QUIET_, .read = -1, .disk_wait = 0.9},
        {"cores are not known", QUIET_, .read = 2e6, .disk_wait = 0.9, .cores = -1},
};

static void test_data_stall(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof stalls / sizeof *stalls; i++) {
                struct afz_flight f;
                fly_stall(&f, &stalls[i]);
                const struct afz_verdict *v = ask(afz_judge_data_stall, &f, running);
                if (!v != !stalls[i].says)
                        fail_msg("%s: %s", stalls[i].what, v ? v->summary : "silent");
                if (v && !strchr(stalls[i].says, '?') && !has_word(v, stalls[i].says))
                        fail_msg("%s: %s; %s; %s", stalls[i].what, v->summary, v->evidence[0],
                                 v->evidence[1]);
                if (v) {
                        assert_string_equal(v->id, "data-stall");
                        assert_int_equal(v->level, AFZ_LEVEL_WARN);
                }
                afz_flight_done(&f);
        }
}

/* ---- cpu-oversubscription ---- */

struct crowd {
        const char *what;
        uint32_t cores;
        unsigned processes;
        int threads;            /* running, of each; -1: not told */
        double job_cores, idle; /* of all cores; -1: not told */
        double psi;
        int machine; /* tasks that run, of the whole machine; -1 */
        uint32_t seconds;
        const char *says;
};

static const struct crowd crowds[] = {
        {"16 threads on 2 cores", 2, 1, 16, 2, 0.02, 0.9, 17, 60, "OMP_NUM_THREADS=2"},
        {"8 workers of 4 threads on 8 cores", 8, 8, 4, 8, 0.05, 0.9, 33, 60, "OMP_NUM_THREADS=1"},
        {"8 workers of one thread on 2 cores", 2, 8, 1, 2, 0.02, 0.9, 9, 60, "num_workers=1"},
        {"as many as cores", 8, 8, 1, 8, 0.02, 0.9, 9, 60, NULL},
        {"one worker too many", 2, 4, 1, 2, 0.02, 0.9, 5, 60, NULL},
        {"cores are free", 8, 1, 64, 4, 0.4, 0.9, 64, 60, NULL},
        {"no pressure: the kernel may be wrong", 2, 1, 16, 2, 0.02, 0.05, 17, 60,
         "16 wanted to run"},
        {"pressure not known", 2, 1, 16, 2, 0.02, -1, 17, 60, "16 wanted to run"},
        {"too short", 2, 1, 16, 2, 0.02, 0.9, 17, 25, NULL},
        {"threads not known, the machine's are the job's", 2, 1, -1, 2, 0.02, 0.9, 600, 60,
         "600 wanted"},
        {"threads not known, the cores are others'", 2, 1, -1, 0.4, 0.02, 0.9, 600, 60, NULL},
        {"nothing known of the cores", 2, 1, 16, 2, -1, 0.9, 17, 60, NULL},
        {"no cores known", 0, 1, 16, 2, 0.02, 0.9, 17, 60, NULL},
};
#pragma GCC diagnostic pop

static void fly_crowd(struct afz_flight *f, const struct crowd *s)
{
        struct fly_times t = fly_every(0, s->seconds * 1000, 500);
        afz_flight_init(f);
        f->head.cores = s->cores;
        tell_rate(f, AFZ_KIND_JOB, JOB, AFZ_JOB_CPU, t, s->job_cores * 1e9);
        for (unsigned i = 0; i < s->processes; i++) {
                fly_named(f, AFZ_KIND_PROC, JOB + i, "python3", NULL, NULL);
                fly_flat(f, AFZ_KIND_PROC, JOB + i, AFZ_PROC_STATE, t, 'R');
                if (s->threads >= 0)
                        fly_flat(f, AFZ_KIND_PROC, JOB + i, AFZ_PROC_THREADS_RUNNING, t,
                                 s->threads);
        }
        tell_rate(f, AFZ_KIND_PSI, 0, AFZ_PSI_CPU_SOME, t, s->psi * 1e9);
        tell_rate(f, AFZ_KIND_CPU, AFZ_CPU_ALL, AFZ_CPU_IDLE, t, s->idle * s->cores * 1e9);
        if (s->machine >= 0)
                fly_flat(f, AFZ_KIND_CPU, AFZ_CPU_ALL, AFZ_CPU_RUNNING, t, s->machine);
}

static void test_oversubscription(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof crowds / sizeof *crowds; i++) {
                struct afz_flight f;
                fly_crowd(&f, &crowds[i]);
                const struct afz_verdict *v = ask(afz_judge_cpu_oversubscription, &f, well);
                if (!v != !crowds[i].says)
                        fail_msg("%s: %s", crowds[i].what, v ? v->summary : "silent");
                if (v)
                        assert_int_equal(v->confidence > 0.8, crowds[i].psi > 0.3);
                if (v && !has_word(v, crowds[i].says))
                        fail_msg("%s: %s; %s", crowds[i].what, v->summary, v->fix);
                afz_flight_done(&f);
        }
}

/* A build: ever new processes, of which no more live at a time than there are cores. */
static void test_oversubscription_of_short_lives(void **state)
{
        (void)state;
        static const struct crowd build = {"", 2, 0, -1, 2, 0.02, 0.9, 3, 60, NULL};
        struct afz_flight f;
        fly_crowd(&f, &build);
        for (uint32_t i = 0; i < 240; i++)
                fly_flat(&f, AFZ_KIND_PROC, JOB + i, AFZ_PROC_THREADS_RUNNING,
                         fly_every(i / 2 * 500, i / 2 * 500 + 400, 100), 1);
        const struct afz_verdict *v = ask(afz_judge_cpu_oversubscription, &f, well);
        if (v)
                fail_msg("%s", v->summary);
        afz_flight_done(&f);
}

/* A container that may use 2 of 32 cores: the machine is idle, and still they are too many. */
static void test_oversubscription_by_limit(void **state)
{
        (void)state;
        static const struct crowd inside = {"", 32, 1, 32, 2, 0.9, 0, 40, 60, NULL};
        for (int held = 0; held < 2; held++) {
                struct afz_flight f;
                fly_crowd(&f, &inside);
                tell_rate(&f, AFZ_KIND_CGROUP, 0, AFZ_CGROUP_CPU_THROTTLED,
                          fly_every(0, 60000, 1000), held ? 0.7e9 : 0);
                const struct afz_verdict *v = ask(afz_judge_cpu_oversubscription, &f, well);
                assert_int_equal(v != NULL, held);
                if (v)
                        assert_true(has_word(v, "OMP_NUM_THREADS=2") && has_word(v, "cpu limit"));
                afz_flight_done(&f);
        }
}

/* ---- what they stand on ---- */

static void test_quiet(void **state)
{
        (void)state;
        struct afz_flight f;
        afz_flight_init(&f);
        /* Works for 10 s, a gap of 30 s, quiet for 20 s. */
        fly_line(&f, AFZ_KIND_JOB, JOB, AFZ_JOB_CPU, fly_every(0, 10000, 100), 0, 1e9);
        fly_flat(&f, AFZ_KIND_JOB, JOB, AFZ_JOB_CPU, fly_every(40000, 60000, 100), 9900000000);
        const struct afz_column *cpu =
                afz_track_column(afz_flight_one(&f, AFZ_KIND_JOB), AFZ_JOB_CPU);
        struct afz_quiet q = afz_column_quiet(cpu, 1e7, 1000);
        assert_int_equal(q.cut, AFZ_QUIET_GAP);
        assert_in_range(q.from_ms, 40000, 45000);
        assert_int_equal(afz_column_quiet(NULL, 1e7, 1000).cut, AFZ_QUIET_UNKNOWN);
        afz_flight_done(&f);
}

/* Whatever a damaged file made of it: no crash, no endless loop, no sentence of nonsense. */
static void test_hostile(void **state)
{
        (void)state;
        static const judge_fn judges[] = {afz_judge_data_stall, afz_judge_cpu_oversubscription,
                                          afz_judge_hang};
        struct afz_flight none, wild;
        afz_flight_init(&none);
        afz_flight_init(&wild);
        wild.head.cores = UINT32_MAX;
        for (uint32_t i = 0; i < 200; i++) {
                int64_t v = i % 3 == 0 ? INT64_MAX : i % 3 == 1 ? INT64_MIN : 0;
                uint32_t t = i < 100 ? i : UINT32_MAX - 200 + i;
                uint32_t span = i % 7 == 0 ? UINT32_MAX : 0;
                for (enum afz_metric m = AFZ_JOB_PROCESSES; m <= AFZ_JOB_FDS; m++)
                        fly_span(&wild, AFZ_KIND_JOB, JOB, m, t, span, v, v, v);
                for (enum afz_metric m = AFZ_PROC_PPID; m <= AFZ_PROC_OOM_ADJ; m++)
                        fly_span(&wild, AFZ_KIND_PROC, JOB, m, t, span, v, v, v);
                fly_span(&wild, AFZ_KIND_DISK, 1, AFZ_DISK_READ, t, span, v, v, v);
                fly_span(&wild, AFZ_KIND_PSI, 0, AFZ_PSI_IO_SOME, t, span, v, v, v);
                fly_span(&wild, AFZ_KIND_INSIDE, JOB, AFZ_INSIDE_STEP, t, span, v, v, v);
                fly_mark(&wild, t, AFZ_MARK_STACK, v, "futex");
        }
        for (size_t i = 0; i < sizeof judges / sizeof *judges; i++) {
                assert_null(ask(judges[i], &none, killed));
                struct afz_case c = {.flight = &wild, .facts = {.end = killed}};
                memset(&outcome, 0, sizeof outcome);
                judges[i](&c, &outcome);
        }
        afz_flight_done(&wild);
        afz_flight_done(&none);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_data_stall),
                cmocka_unit_test(test_oversubscription),
                cmocka_unit_test(test_oversubscription_of_short_lives),
                cmocka_unit_test(test_oversubscription_by_limit),
                cmocka_unit_test(test_quiet),
                cmocka_unit_test(test_hostile),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
