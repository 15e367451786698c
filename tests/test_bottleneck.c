/* links: judge */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bottleneck.h"

#define S UINT64_C(1000000000)

/* A window of one second. -1 is "not known" everywhere; shares are in hundredths. */
struct scene {
        const char *what;
        bool job;
        int swap_in_mb, swap_out_mb, memory, io, cpu_wait; /* machine */
        int disk_busy, disk_used;                          /* one disk: busy; the job's? */
        int net_wait;                                      /* one mount: round trips */
        int gpu, gpu_ours;                                 /* one GPU: busy; the job on it? */
        int processes, stopped, zombies, waiting;          /* the job */
        int cores_used;                                    /* hundredths of a core */
        int running, frozen;
        enum afz_limit_kind kind;
        const char *says;
};

#define UNKNOWN_                                                                                   \
        .swap_in_mb = -1, .swap_out_mb = -1, .memory = -1, .io = -1, .cpu_wait = -1,               \
        .disk_busy = -1, .disk_used = -1, .net_wait = -1, .gpu = -1, .gpu_ours = -1,               \
        .cores_used = -1, .running = -1, .frozen = -1
#define IDLE_                                                                                      \
        .swap_in_mb = 0, .swap_out_mb = 0, .memory = 0, .io = 0, .cpu_wait = 0, .disk_busy = 0,    \
        .disk_used = -1, .net_wait = -1, .gpu = -1, .gpu_ours = -1, .cores_used = 0, .running = 1, \
        .frozen = -1

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif
static const struct scene scenes[] = {
        {"nothing known", UNKNOWN_, .kind = AFZ_LIMIT_UNKNOWN},
        {"a job, nothing known", UNKNOWN_, .job = true, .processes = 1, .kind = AFZ_LIMIT_UNKNOWN},
        {"an idle machine", IDLE_, .kind = AFZ_LIMIT_NONE},
        {"an idle job", IDLE_, .job = true, .processes = 1, .kind = AFZ_LIMIT_NONE},
        {"a job whose time is not known is not idle", IDLE_, .job = true, .processes = 1,
         .cores_used = -1, .kind = AFZ_LIMIT_UNKNOWN},
        {"both ways through swap", IDLE_, .swap_in_mb = 50, .swap_out_mb = 40,
         .kind = AFZ_LIMIT_SWAPPING, .says = "50 MB/s in, 40 MB/s out"},
        {"out only is ageing", IDLE_, .swap_out_mb = 400, .kind = AFZ_LIMIT_NONE},
        {"in only, with pressure", IDLE_, .swap_in_mb = 50, .memory = 30,
         .kind = AFZ_LIMIT_SWAPPING},
        {"pressure without swap", IDLE_, .memory = 12, .kind = AFZ_LIMIT_MEMORY, .says = "12 %"},
        {"pressure below the line", IDLE_, .memory = 9, .kind = AFZ_LIMIT_NONE},
        {"memory comes before the disk", IDLE_, .memory = 50, .io = 90, .disk_busy = 100,
         .kind = AFZ_LIMIT_MEMORY},
        {"waits for its disk", IDLE_, .job = true, .processes = 1, .waiting = 1, .io = 60,
         .disk_busy = 94, .disk_used = 1, .kind = AFZ_LIMIT_DISK, .says = "vda (94 % busy)"},
        {"another's disk is no reason", IDLE_, .job = true, .processes = 1, .io = 60,
         .disk_busy = 94, .disk_used = 0, .kind = AFZ_LIMIT_NONE},
        {"sleeps beside another's storm on its disk", IDLE_, .job = true, .processes = 1, .io = 60,
         .disk_busy = 94, .disk_used = 1, .kind = AFZ_LIMIT_NONE},
        {"sleeps beside others who fight for cores", IDLE_, .job = true, .processes = 1,
         .running = 12, .cpu_wait = 80, .kind = AFZ_LIMIT_NONE},
        {"pressure, but no busy disk", IDLE_, .io = 60, .disk_busy = 20, .kind = AFZ_LIMIT_NONE},
        {"busier than time allows", IDLE_, .io = 60, .disk_busy = 140, .kind = AFZ_LIMIT_DISK,
         .says = "100 % busy"},
        {"no PSI: the D's tell", IDLE_, .job = true, .processes = 2, .io = -1, .waiting = 1,
         .disk_busy = 80, .kind = AFZ_LIMIT_DISK},
        {"no PSI and no diskstats", IDLE_, .job = true, .processes = 2, .io = -1, .waiting = 1,
         .disk_busy = -1, .kind = AFZ_LIMIT_DISK, .says = "waiting for a disk"},
        {"a network mount", IDLE_, .job = true, .processes = 1, .net_wait = 120, .io = 60,
         .disk_busy = 90, .kind = AFZ_LIMIT_NETWORK, .says = "/mnt/data"},
        {"a GPU that is fed", IDLE_, .job = true, .processes = 1, .gpu = 97, .gpu_ours = 1,
         .cores_used = 100, .kind = AFZ_LIMIT_GPU, .says = "97 % busy"},
        {"another's GPU", IDLE_, .job = true, .processes = 1, .gpu = 97, .gpu_ours = 0,
         .cores_used = 100, .kind = AFZ_LIMIT_CPU},
        {"computes", IDLE_, .job = true, .processes = 1, .cores_used = 320, .kind = AFZ_LIMIT_CPU,
         .says = "3.2 of 4 cores"},
        {"a machine that computes", IDLE_, .cores_used = 390, .kind = AFZ_LIMIT_CPU,
         .says = "3.9 of 4 cores"},
        {"too many for the cores", IDLE_, .job = true, .processes = 1, .cores_used = 400,
         .running = 12, .cpu_wait = 80, .kind = AFZ_LIMIT_CPU_SHARE, .says = "3.0 want each core"},
        {"many, but nobody waits", IDLE_, .job = true, .processes = 1, .cores_used = 400,
         .running = 12, .kind = AFZ_LIMIT_CPU},
        {"stopped", IDLE_, .job = true, .processes = 3, .stopped = 2, .zombies = 1,
         .kind = AFZ_LIMIT_STOPPED},
        {"one of two stopped", IDLE_, .job = true, .processes = 2, .stopped = 1,
         .kind = AFZ_LIMIT_NONE},
        {"all zombies are not stopped", IDLE_, .job = true, .processes = 2, .zombies = 2,
         .kind = AFZ_LIMIT_NONE, .says = "ended"},
        {"nobody is left", IDLE_, .job = true, .processes = 0, .kind = AFZ_LIMIT_NONE,
         .says = "ended"},
        {"frozen", IDLE_, .job = true, .processes = 1, .frozen = 1, .kind = AFZ_LIMIT_STOPPED,
         .says = "frozen"},
        {"a machine's stopped processes are nobody's job", IDLE_, .processes = 1, .stopped = 1,
         .kind = AFZ_LIMIT_NONE},
};
#pragma GCC diagnostic pop

struct stage {
        struct afz_window w;
        struct afz_batch *b[2];
};

static struct afz_sample *put(struct afz_batch *b, enum afz_kind kind, uint64_t id,
                              const char *name)
{
        struct afz_sample *s = afz_batch_add(b, (struct afz_subject){kind, id, 0}, name);
        assert_non_null(s);
        return s;
}

/* A counter that reads `share` hundredths of a second after the first reading's zero. */
static void count(struct afz_sample *s, enum afz_metric m, int share, int turn, int64_t unit)
{
        if (share >= 0)
                afz_sample_set(s, m, turn * share * unit);
}

static void set(struct afz_sample *s, enum afz_metric m, int value)
{
        if (value >= 0)
                afz_sample_set(s, m, value);
}

static void play(struct stage *st, const struct scene *c, int turn)
{
        const int64_t hundredth = INT64_C(10000000);
        struct afz_batch *b = st->b[turn];
        afz_batch_start(b, S * (uint64_t)(turn + 1));
        struct afz_sample *s = put(b, AFZ_KIND_VM, 0, "vm");
        count(s, AFZ_VM_SWAP_IN, c->swap_in_mb, turn, 1000000);
        count(s, AFZ_VM_SWAP_OUT, c->swap_out_mb, turn, 1000000);
        s = put(b, AFZ_KIND_PSI, 0, "psi");
        count(s, AFZ_PSI_MEMORY_SOME, c->memory, turn, hundredth);
        count(s, AFZ_PSI_IO_SOME, c->io, turn, hundredth);
        count(s, AFZ_PSI_CPU_SOME, c->cpu_wait, turn, hundredth);
        s = put(b, AFZ_KIND_CPU, AFZ_CPU_ALL, "all");
        set(s, AFZ_CPU_CORES, c->running >= 0 ? 4 : -1);
        set(s, AFZ_CPU_RUNNING, c->running);
        if (!c->job) { /* the machine's own time counts where there is no job */
                count(s, AFZ_CPU_USER, c->cores_used, turn, hundredth);
                count(s, AFZ_CPU_SYSTEM, c->cores_used >= 0 ? 0 : -1, turn, hundredth);
                count(s, AFZ_CPU_IRQ, c->cores_used >= 0 ? 0 : -1, turn, hundredth);
        }
        s = put(b, AFZ_KIND_DISK, 1, "vda");
        count(s, AFZ_DISK_BUSY, c->disk_busy, turn, hundredth);
        set(s, AFZ_DISK_JOB_USES, c->disk_used);
        s = put(b, AFZ_KIND_FS, 1, "/mnt/data");
        count(s, AFZ_FS_NET_WAIT, c->net_wait, turn, hundredth);
        s = put(b, AFZ_KIND_GPU, 0, "a GPU");
        set(s, AFZ_GPU_UTIL, c->gpu >= 0 ? c->gpu * 100 : -1);
        s = put(b, AFZ_KIND_GPU_PROC, 7, "python");
        set(s, AFZ_GPU_PROC_GPU, 0);
        set(s, AFZ_GPU_PROC_IN_JOB, c->gpu_ours);
        s = put(b, AFZ_KIND_JOB, 0, "job");
        set(s, AFZ_JOB_PROCESSES, c->processes);
        set(s, AFZ_JOB_STOPPED, c->stopped);
        set(s, AFZ_JOB_ZOMBIES, c->zombies);
        set(s, AFZ_JOB_DISK_WAIT, c->waiting);
        count(s, AFZ_JOB_CPU, c->cores_used, turn, hundredth);
        s = put(b, AFZ_KIND_CGROUP, 0, "/job");
        set(s, AFZ_CGROUP_FROZEN, c->frozen);
}

static struct stage *stage_new(const struct scene *c)
{
        struct stage *st = calloc(1, sizeof *st);
        assert_non_null(st);
        afz_window_init(&st->w, S);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(afz_batch_new(16, &st->b[i]), 0);
                play(st, c, i);
        }
        st->w.job_pid = c->job ? 42 : 0;
        st->w.sources = 1;
        st->w.source[0] = (struct afz_source){.name = "x", .now = st->b[1], .before = st->b[0]};
        return st;
}

static void stage_free(struct stage *st)
{
        afz_batch_free(st->b[0]);
        afz_batch_free(st->b[1]);
        free(st);
}

static void test_scenes(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
                struct stage *st = stage_new(&scenes[i]);
                struct afz_limit limit = {.kind = AFZ_LIMIT_COUNT};
                afz_bottleneck_judge(&st->w, &limit);
                if (limit.kind != scenes[i].kind ||
                    (scenes[i].says && !strstr(limit.text, scenes[i].says)))
                        fail_msg("%s: %s, '%s'", scenes[i].what, afz_limit_name(limit.kind),
                                 limit.text);
                assert_true(limit.text[0] != '\0');
                stage_free(st);
        }
}

/* The first tick has no rates, whatever the counters say. */
static void test_first_tick(void **state)
{
        struct stage *st = stage_new(&scenes[5]);
        struct afz_limit limit;
        (void)state;
        st->w.source[0].before = NULL;
        afz_bottleneck_judge(&st->w, &limit);
        assert_int_equal(limit.kind, AFZ_LIMIT_UNKNOWN);
        st->w.sources = 0;
        afz_bottleneck_judge(&st->w, &limit);
        assert_int_equal(limit.kind, AFZ_LIMIT_UNKNOWN);
        stage_free(st);
}

static void test_long_names_are_cut(void **state)
{
        static char name[400];
        struct scene c = scenes[11];
        struct stage *st = stage_new(&c);
        struct afz_limit limit;
        (void)state;
        memset(name, 'x', sizeof name - 1);
        for (int b = 0; b < 2; b++)
                for (size_t i = 0; i < st->b[b]->count; i++)
                        st->b[b]->sample[i].name = name;
        afz_bottleneck_judge(&st->w, &limit);
        assert_int_equal(limit.kind, AFZ_LIMIT_DISK);
        assert_true(strlen(limit.text) < sizeof limit.text);
        assert_non_null(strstr(limit.text, "% busy")); /* the figure is not what is cut */
        stage_free(st);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_scenes),
                cmocka_unit_test(test_first_tick),
                cmocka_unit_test(test_long_names_are_cut),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
