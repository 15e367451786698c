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

#define OURS   100
#define THEIRS 777

static const struct afz_end failed = {AFZ_END_EXIT, 1};

/* ---- VRAM ---- */

/* GPU 0 with 80 GB for 60 s: what the job and somebody else hold, in GB, at five moments 15 s
 * apart, with a straight line between them. -1: not on it. */
struct vram {
        const char *what;
        double ours[5], theirs;
        int unified, no_processes; /* the driver does not tell who is on it */
        double gtt_end;            /* GB of system RAM at the end; -1: not told */
        struct afz_end end;
        const char *oom, *held, *pre, *spill; /* a word of what each says; NULL: silent */
        enum afz_level pre_level;
};

static double at_time(const struct vram *s, uint32_t t)
{
        unsigned i = t / 15000;
        double part = (double)(t % 15000) / 15000;
        if (i >= 4)
                return s->ours[4];
        return s->ours[i] + (s->ours[i + 1] - s->ours[i]) * part;
}

static void fly_vram(struct afz_flight *f, const struct vram *s)
{
        afz_flight_init(f);
        fly_named(f, AFZ_KIND_GPU, 0, "NVIDIA H100", NULL, NULL);
        if (!s->no_processes)
                fly_named(f, AFZ_KIND_GPU_PROC, OURS, "python3", NULL, NULL);
        fly_line(f, AFZ_KIND_JOB, OURS, AFZ_JOB_CPU, fly_every(0, 60000, 500), 0, 1e9);
        for (uint32_t t = 0; t < 60000; t += 500) {
                double ours = at_time(s, t), theirs = s->theirs > 0 ? s->theirs : 0;
                fly_point(f, AFZ_KIND_GPU, 0, AFZ_GPU_MEM_TOTAL, t, FLY_GB(80));
                fly_point(f, AFZ_KIND_GPU, 0, AFZ_GPU_UNIFIED, t, s->unified);
                fly_point(f, AFZ_KIND_GPU, 0, AFZ_GPU_MEM_USED, t,
                          FLY_GB((ours > 0 ? ours : 0) + theirs));
                if (s->gtt_end >= 0)
                        fly_point(f, AFZ_KIND_GPU, 0, AFZ_GPU_GTT_USED, t,
                                  FLY_GB(0.1 + s->gtt_end * t / 60000));
                if (s->no_processes)
                        continue;
                if (ours >= 0) {
                        fly_point(f, AFZ_KIND_GPU_PROC, OURS, AFZ_GPU_PROC_IN_JOB, t, 1);
                        fly_point(f, AFZ_KIND_GPU_PROC, OURS, AFZ_GPU_PROC_MEM, t, FLY_GB(ours));
                }
                if (theirs > 0) {
                        fly_named(f, AFZ_KIND_GPU_PROC, THEIRS, "ipykernel", NULL, NULL);
                        fly_point(f, AFZ_KIND_GPU_PROC, THEIRS, AFZ_GPU_PROC_IN_JOB, t, 0);
                        fly_point(f, AFZ_KIND_GPU_PROC, THEIRS, AFZ_GPU_PROC_MEM, t,
                                  FLY_GB(theirs));
                }
        }
}

#define ALONE_ .theirs = -1, .gtt_end = -1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif
static const struct vram vrams[] = {
        {"it fits", ALONE_, .ours = {1, 30, 40, 40, 40}, .end = {AFZ_END_EXIT, 0}},
        {"full, and an error", ALONE_, .ours = {1, 30, 50, 70, 79}, .end = {AFZ_END_EXIT, 1},
         .oom = "79G of 80G"},
        {"full, and it aborted", ALONE_, .ours = {1, 30, 50, 70, 79},
         .end = {AFZ_END_SIGNAL, SIGABRT}, .oom = "full when it ended"},
        {"full, and all is well", ALONE_, .ours = {1, 30, 50, 70, 79}, .end = {AFZ_END_EXIT, 0}},
        {"full, and somebody ended it", ALONE_, .ours = {1, 30, 50, 70, 79},
         .end = {AFZ_END_SIGNAL, SIGTERM}},
        {"an error with room, while it grew", ALONE_, .ours = {1, 10, 20, 40, 60},
         .end = {AFZ_END_EXIT, 1}},
        {"an error with room", ALONE_, .ours = {1, 30, 40, 40, 40}, .end = {AFZ_END_EXIT, 1}},
        {"nearly full all the time, an error of another kind", ALONE_,
         .ours = {76.5, 76.5, 76.6, 76.5, 76.5}, .end = {AFZ_END_EXIT, 1},
         .pre = "TF_FORCE_GPU_ALLOW_GROWTH", .pre_level = AFZ_LEVEL_WARN},
        {"full, nobody tells who is on it", ALONE_, .ours = {1, 30, 50, 70, 79}, .no_processes = 1,
         .end = {AFZ_END_EXIT, 1}, .oom = "full when it ended"},
        {"its memory is the machine's", ALONE_, .ours = {1, 30, 50, 70, 79}, .unified = 1,
         .end = {AFZ_END_EXIT, 1}},
        {"somebody else has most of it", ALONE_, .ours = {1, 5, 10, 15, 15}, .theirs = 64,
         .end = {AFZ_END_EXIT, 1}, .oom = "full when it ended", .held = "process 777"},
        {"somebody else has most of it, and there is room", ALONE_, .ours = {1, 5, 5, 5, 5},
         .theirs = 50, .end = {AFZ_END_EXIT, 0}},
        {"somebody else has a little", ALONE_, .ours = {1, 30, 60, 70, 70}, .theirs = 5,
         .end = {AFZ_END_EXIT, 0}},
        {"JAX takes three quarters", ALONE_, .ours = {60.2, 60.2, 60.2, 60.2, 60.2},
         .end = {AFZ_END_EXIT, 0}, .pre = "XLA_PYTHON_CLIENT_PREALLOCATE",
         .pre_level = AFZ_LEVEL_OK},
        {"another share is a program's own", ALONE_, .ours = {50, 50, 50, 50, 50},
         .end = {AFZ_END_EXIT, 0}},
        {"three quarters, but it moves", ALONE_, .ours = {60, 59, 61, 59, 60},
         .end = {AFZ_END_EXIT, 0}},
        {"it spills over", ALONE_, .ours = {10, 60, 79, 79, 79}, .gtt_end = 20,
         .end = {AFZ_END_EXIT, 0}, .spill = "of the machine's RAM"},
        {"RAM is used, but there is room", ALONE_, .ours = {10, 40, 40, 40, 40}, .gtt_end = 20,
         .end = {AFZ_END_EXIT, 0}},
        {"staging buffers alone", ALONE_, .ours = {10, 60, 79, 79, 79}, .gtt_end = 0.3,
         .end = {AFZ_END_EXIT, 0}},
};
#pragma GCC diagnostic pop

static void check(const char *what, const char *id, const struct afz_verdict *v, const char *says)
{
        if (!v != !says)
                fail_msg("%s: %s %s", what, id, v ? v->summary : "is silent");
        if (!v)
                return;
        assert_string_equal(v->id, id);
        if (!has_word(v, says))
                fail_msg("%s: %s: %s; %s", what, id, v->summary, v->fix);
}

static void test_vram(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof vrams / sizeof *vrams; i++) {
                const struct vram *s = &vrams[i];
                struct afz_flight f;
                fly_vram(&f, s);
                check(s->what, "gpu-oom", ask(afz_judge_gpu_oom, &f, s->end), s->oom);
                check(s->what, "gpu-held-by-other", ask(afz_judge_gpu_held_by_other, &f, s->end),
                      s->held);
                check(s->what, "gpu-spill", ask(afz_judge_gpu_spill, &f, s->end), s->spill);
                const struct afz_verdict *v = ask(afz_judge_gpu_preallocated, &f, s->end);
                check(s->what, "gpu-preallocated", v, s->pre);
                if (v)
                        assert_int_equal(v->level, s->pre_level);
                afz_flight_done(&f);
        }
}

/* Who it was, where the driver's list has a number alone: a process of the job is known by it. */
static void test_who_is_on_it(void **state)
{
        static const struct {
                const char *on_gpu, *in_job, *ours, *theirs;
        } rows[] = {
                {"python3", NULL, "python3 (process ", "another program: python3 (process 777), "},
                {"?", "trainer", "trainer (process ", "another program: process 777, "},
                {"?", NULL, "process ", "another program: process 777, "},
        };
        struct vram jax = {.ours = {60.2, 60.2, 60.2, 60.2, 60.2}, .theirs = -1, .gtt_end = -1};
        struct vram other = {.ours = {1, 5, 10, 15, 15}, .theirs = 64, .gtt_end = -1};
        (void)state;
        for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct afz_flight f;
                fly_vram(&f, &jax);
                fly_named(&f, AFZ_KIND_GPU_PROC, OURS, rows[i].on_gpu, NULL, NULL);
                if (rows[i].in_job)
                        fly_named(&f, AFZ_KIND_PROC, OURS & UINT32_MAX, rows[i].in_job, NULL, NULL);
                const struct afz_verdict *v = ask(afz_judge_gpu_preallocated, &f, jax.end);
                assert_non_null(v);
                assert_int_equal(strncmp(v->evidence[0], rows[i].ours, strlen(rows[i].ours)), 0);
                afz_flight_done(&f);
                fly_vram(&f, &other);
                fly_named(&f, AFZ_KIND_GPU_PROC, THEIRS, rows[i].on_gpu, NULL, NULL);
                check("who", "gpu-held-by-other",
                      ask(afz_judge_gpu_held_by_other, &f, (struct afz_end){AFZ_END_EXIT, 1}),
                      rows[i].theirs);
                afz_flight_done(&f);
        }
}

/* Full, then a large part given back at once, and it went on. */
static void test_oom_survived(void **state)
{
        (void)state;
        static const struct {
                double full, after;
                uint32_t lives_s;
                bool says;
        } rows[] = {
                {79, 40, 30, true}, {79, 70, 30, false}, {70, 20, 30, false}, {79, 40, 3, false}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct afz_flight f;
                afz_flight_init(&f);
                for (uint32_t t = 0; t < 30000 + rows[i].lives_s * 1000; t += 500) {
                        double used = t < 25000 ? 30 : t < 30000 ? rows[i].full : rows[i].after;
                        fly_point(&f, AFZ_KIND_GPU, 0, AFZ_GPU_MEM_TOTAL, t, FLY_GB(80));
                        fly_point(&f, AFZ_KIND_GPU, 0, AFZ_GPU_MEM_USED, t, FLY_GB(used));
                        fly_point(&f, AFZ_KIND_GPU_PROC, OURS, AFZ_GPU_PROC_IN_JOB, t, 1);
                }
                const struct afz_verdict *v = ask(afz_judge_gpu_oom, &f, running);
                assert_int_equal(v != NULL, rows[i].says);
                if (v)
                        assert_int_equal(v->level, AFZ_LEVEL_WARN);
                afz_flight_done(&f);
        }
}

/* ---- driver-fault ---- */

static void test_driver(void **state)
{
        (void)state;
        static const struct {
                const char *what;
                enum afz_event_kind event;
                uint32_t code;
                const char *text;
                bool gpu_goes_on;
                const char *says;
        } rows[] = {
                {"fell off its bus", AFZ_EVENT_XID, 79, "NVRM: Xid (PCI:0000:01:00): 79, pid=1",
                 true, "fell off its bus"},
                {"a number without words", AFZ_EVENT_XID, 12345, "Xid 12345", true,
                 "driver reported an error"},
                {"our own mistake", AFZ_EVENT_XID, 31,
                 "NVRM: Xid (PCI:0000:01:00): 31, pid=100, name=python3", true,
                 "CUDA_LAUNCH_BLOCKING"},
                {"somebody else's mistake", AFZ_EVENT_XID, 31,
                 "NVRM: Xid (PCI:0000:01:00): 31, pid=777, name=other", true, NULL},
                {"who made it is not told", AFZ_EVENT_XID, 13, "pid='<unknown>'", true,
                 "CUDA_LAUNCH_BLOCKING"},
                {"a program was ended", AFZ_EVENT_XID, 45, "pid=100", true, NULL},
                {"lost", AFZ_EVENT_GPU_LOST, 0, "GPU 0 is lost", true, "fell off its bus"},
                {"stuck for good", AFZ_EVENT_GPU_STUCK, 2, "has not answered for 2 s", false,
                 "stopped answering"},
                {"stuck, and it came back", AFZ_EVENT_GPU_STUCK, 2, "has not answered", true, NULL},
                {"another event", AFZ_EVENT_SEGFAULT, 100, "segfault", true, NULL},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct afz_flight f;
                afz_flight_init(&f);
                fly_flat(&f, AFZ_KIND_PROC, OURS, AFZ_PROC_STATE, fly_every(0, 90000, 1000), 'S');
                fly_flat(&f, AFZ_KIND_GPU, 0, AFZ_GPU_TEMP,
                         fly_every(0, rows[i].gpu_goes_on ? 90000 : 30000, 500), 50000);
                fly_event(&f, 30000, rows[i].event, rows[i].code, rows[i].text);
                check(rows[i].what, "driver-fault", ask(afz_judge_driver_fault, &f, failed),
                      rows[i].says);
                afz_flight_done(&f);
        }
}

static void test_driver_memory(void **state)
{
        (void)state;
        for (int grows = 0; grows < 2; grows++) {
                struct afz_flight f;
                afz_flight_init(&f);
                fly_flat(&f, AFZ_KIND_GPU, 0, AFZ_GPU_ECC_UNCORRECTED, fly_every(0, 30000, 5000),
                         3);
                fly_point(&f, AFZ_KIND_GPU, 0, AFZ_GPU_ECC_UNCORRECTED, 30000, 3 + grows);
                check("memory errors", "driver-fault", ask(afz_judge_driver_fault, &f, failed),
                      grows ? "could not be mended" : NULL);
                afz_flight_done(&f);
        }
}

/* The worst is told: a bad GPU before the programs that died of it. */
static void test_driver_worst(void **state)
{
        (void)state;
        struct afz_flight f;
        afz_flight_init(&f);
        fly_event(&f, 1000, AFZ_EVENT_XID, 13, "Xid 13");
        fly_event(&f, 2000, AFZ_EVENT_XID, 95, "Xid 95");
        fly_event(&f, 3000, AFZ_EVENT_XID, 119, "Xid 119");
        const struct afz_verdict *v = ask(afz_judge_driver_fault, &f, failed);
        assert_non_null(v);
        assert_true(has_word(v, "Xid 95") && has_word(v, "3 such reports"));
        assert_int_equal(v->to_ms, 2000);
        afz_flight_done(&f);
}

/* ---- heat and power ---- */

struct heat {
        const char *what;
        int gpu_temp, gpu_line, reasons; /* degrees, bits; -1: not told */
        int cpu_temp, cpu_hot, cpu_critical;
        double throttles;   /* a second; -1: not told */
        double clock_share; /* of the GPU; -1 */
        double util;
        int battery;       /* discharging */
        double core_clock; /* share */
        double idle;       /* share of all cores */
        uint32_t seconds;
        bool rebooted;
        const char *overheat, *power;
};

#define COOL_                                                                                      \
        .gpu_temp = -1, .gpu_line = -1, .reasons = -1, .cpu_temp = -1, .cpu_hot = -1,              \
        .cpu_critical = -1, .throttles = -1, .clock_share = -1, .util = -1, .battery = -1,         \
        .core_clock = -1, .idle = 0.1, .seconds = 120

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif
static const struct heat heats[] = {
        {"nothing known", COOL_},
        {"warm", COOL_, .gpu_temp = 80, .gpu_line = 93, .reasons = 0, .clock_share = 1, .util = 1,
         .cpu_temp = 85, .cpu_hot = 100, .throttles = 0},
        {"the driver says heat", COOL_, .gpu_temp = 90, .gpu_line = 93, .reasons = 0x20,
         .clock_share = 0.6, .util = 1, .overheat = "90 degrees"},
        {"at its line", COOL_, .gpu_temp = 94, .gpu_line = 93, .overheat = "its line is 93"},
        {"a line that is none", COOL_, .gpu_temp = 40, .gpu_line = 0},
        {"for a moment", COOL_, .reasons = 0x40, .seconds = 20},
        {"hot cores, slowed", COOL_, .cpu_temp = 101, .cpu_hot = 100, .throttles = 20,
         .overheat = "20 times a second"},
        {"hot cores, nobody slowed them", COOL_, .cpu_temp = 101, .cpu_hot = 100, .throttles = 0},
        {"hot cores, not known whether", COOL_, .cpu_temp = 101, .cpu_hot = 100},
        {"slowed, but the thermometer is another's", COOL_, .cpu_temp = 60, .cpu_hot = 100,
         .throttles = 20},
        {"down in the heat", COOL_, .cpu_temp = 104, .cpu_hot = 100, .cpu_critical = 105,
         .rebooted = true, .overheat = "went down at 104"},
        {"down, but cool", COOL_, .cpu_temp = 70, .cpu_hot = 100, .cpu_critical = 105,
         .rebooted = true},
        {"at the power limit, slow", COOL_, .reasons = 0x04, .clock_share = 0.55, .util = 0.9,
         .power = "55 % of its highest"},
        {"at the power limit, as designed", COOL_, .reasons = 0x04, .clock_share = 0.85,
         .util = 0.9},
        {"at the power limit, idle", COOL_, .reasons = 0x04, .clock_share = 0.3, .util = 0.05},
        {"at the power limit, clock not known", COOL_, .reasons = 0x04, .util = 0.9},
        {"the power brake", COOL_, .reasons = 0x80, .clock_share = 0.3, .util = 0.9, .seconds = 30,
         .power = "power supply"},
        {"clocks are set by hand", COOL_, .reasons = 0x02, .clock_share = 0.4, .util = 0.9},
        {"on the battery, slow", COOL_, .battery = 1, .core_clock = 0.4, .power = "battery"},
        {"on the battery, fast", COOL_, .battery = 1, .core_clock = 0.95},
        {"on the battery, idle", COOL_, .battery = 1, .core_clock = 0.4, .idle = 0.9},
        {"charging, slow", COOL_, .battery = 0, .core_clock = 0.4},
};
#pragma GCC diagnostic pop

static void tell(struct afz_flight *f, enum afz_kind kind, enum afz_metric m, struct fly_times t,
                 double value)
{
        if (value >= 0)
                fly_flat(f, kind, kind == AFZ_KIND_CPU ? AFZ_CPU_ALL : 0, m, t, (int64_t)value);
}

static void fly_heat(struct afz_flight *f, const struct heat *s)
{
        struct fly_times t = fly_every(0, s->seconds * 1000, 1000);
        afz_flight_init(f);
        f->head.cores = 4;
        fly_line(f, AFZ_KIND_JOB, OURS, AFZ_JOB_CPU, t, 0, 3e9);
        fly_line(f, AFZ_KIND_CPU, AFZ_CPU_ALL, AFZ_CPU_IDLE, t, 0, s->idle * 4e9);
        if (s->throttles >= 0)
                fly_line(f, AFZ_KIND_CPU, AFZ_CPU_ALL, AFZ_CPU_THROTTLES, t, 0, s->throttles);
        tell(f, AFZ_KIND_GPU, AFZ_GPU_TEMP, t, s->gpu_temp * 1000.0);
        tell(f, AFZ_KIND_GPU, AFZ_GPU_TEMP_SLOWDOWN, t, s->gpu_line * 1000.0);
        tell(f, AFZ_KIND_GPU, AFZ_GPU_THROTTLE, t, s->reasons);
        tell(f, AFZ_KIND_GPU, AFZ_GPU_CLOCK, t, s->clock_share * 2e9);
        if (s->clock_share >= 0)
                tell(f, AFZ_KIND_GPU, AFZ_GPU_CLOCK_MAX, t, 2e9);
        tell(f, AFZ_KIND_GPU, AFZ_GPU_UTIL, t, s->util * 10000);
        tell(f, AFZ_KIND_THERMAL, AFZ_THERMAL_TEMP, t, s->cpu_temp * 1000.0);
        tell(f, AFZ_KIND_THERMAL, AFZ_THERMAL_HOT, t, s->cpu_hot * 1000.0);
        tell(f, AFZ_KIND_THERMAL, AFZ_THERMAL_CRITICAL, t, s->cpu_critical * 1000.0);
        tell(f, AFZ_KIND_POWER, AFZ_POWER_DISCHARGING, t, s->battery);
        tell(f, AFZ_KIND_CPU, AFZ_CPU_FREQUENCY, t, s->core_clock * 4e9);
        if (s->core_clock >= 0)
                tell(f, AFZ_KIND_CPU, AFZ_CPU_FREQUENCY_MAX, t, 4e9);
}

static void test_heat(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof heats / sizeof *heats; i++) {
                const struct heat *s = &heats[i];
                struct afz_flight f;
                fly_heat(&f, s);
                struct afz_case c = {.flight = &f, .rebooted = s->rebooted, .facts = {.end = well}};
                check(s->what, "overheat", ask_case(afz_judge_overheat, &c), s->overheat);
                check(s->what, "power-limit", ask_case(afz_judge_power_limit, &c), s->power);
                afz_flight_done(&f);
        }
}

/* A GPU that others heat is not the job's. */
static void test_heat_of_others(void **state)
{
        (void)state;
        struct afz_flight f;
        fly_heat(&f, &heats[2]);
        assert_non_null(ask(afz_judge_overheat, &f, well));
        fly_flat(&f, AFZ_KIND_GPU_PROC, THEIRS, AFZ_GPU_PROC_IN_JOB, fly_every(0, 9000, 1000), 0);
        assert_null(ask(afz_judge_overheat, &f, well));
        afz_flight_done(&f);
}

/* Bits of a thinned point are the least and the most of them: not a mean that means nothing. */
static void test_heat_thinned(void **state)
{
        (void)state;
        struct afz_flight f;
        afz_flight_init(&f);
        for (uint32_t t = 0; t < 600000; t += 10000) /* 0x04 and 0x40 by turns, the mean is 0x22 */
                fly_span(&f, AFZ_KIND_GPU, 0, AFZ_GPU_THROTTLE, t, 10000, 0x04, 0x40, 0x22);
        assert_null(ask(afz_judge_overheat, &f, well));
        afz_flight_done(&f);
        afz_flight_init(&f);
        for (uint32_t t = 0; t < 600000; t += 10000)
                fly_span(&f, AFZ_KIND_GPU, 0, AFZ_GPU_THROTTLE, t, 10000, 0x20, 0x24, 0x22);
        assert_non_null(ask(afz_judge_overheat, &f, well));
        afz_flight_done(&f);
}

/* All that the judges ask first says yes, so that they come to the rest. */
static void fly_wild(struct afz_flight *f, enum afz_metric m, uint32_t t, uint32_t span, int64_t v)
{
        v = m == AFZ_GPU_UNIFIED ? 0 : m == AFZ_GPU_MEM_TOTAL ? 1 : v;
        fly_span(f, AFZ_KIND_GPU, 0, m, t, span, v, v, v);
}

/* Whatever a damaged file made of it. */
static void test_hostile(void **state)
{
        (void)state;
        static const judge_fn judges[] = {afz_judge_driver_fault,      afz_judge_gpu_oom,
                                          afz_judge_gpu_held_by_other, afz_judge_gpu_preallocated,
                                          afz_judge_gpu_spill,         afz_judge_overheat,
                                          afz_judge_power_limit};
        struct afz_flight none, wild;
        afz_flight_init(&none);
        afz_flight_init(&wild);
        for (uint32_t i = 0; i < 200; i++) {
                int64_t v = i % 3 == 0 ? INT64_MAX : i % 3 == 1 ? INT64_MIN : 1;
                uint32_t t = i < 100 ? i * 1000 : UINT32_MAX - 200 + i;
                uint32_t span = i % 7 == 0 ? UINT32_MAX : 0;
                for (enum afz_metric m = AFZ_GPU_MEM_TOTAL; m <= AFZ_GPU_PARENT; m++)
                        fly_wild(&wild, m, t, span, v);
                for (enum afz_metric m = AFZ_GPU_PROC_PID; m <= AFZ_GPU_PROC_IN_JOB; m++)
                        for (uint64_t pid = OURS; pid < OURS + 3; pid++)
                                fly_span(&wild, AFZ_KIND_GPU_PROC, pid, m, t, span,
                                         pid == OURS && m == AFZ_GPU_PROC_IN_JOB ? 1 : v, v, v);
                for (enum afz_metric m = AFZ_THERMAL_TEMP; m <= AFZ_THERMAL_CRITICAL; m++)
                        fly_span(&wild, AFZ_KIND_THERMAL, 0, m, t, span, v, v, v);
                fly_span(&wild, AFZ_KIND_POWER, 0, AFZ_POWER_DISCHARGING, t, span, v, v, v);
                fly_mark(&wild, t, AFZ_MARK_EVENT, v, "NVRM: Xid, pid=99999999999999999999999");
                fly_mark(&wild, t, AFZ_MARK_EVENT, (INT64_C(1) << 32) | i, "pid=");
        }
        for (size_t i = 0; i < sizeof judges / sizeof *judges; i++) {
                assert_null(ask(judges[i], &none, failed));
                struct afz_case c = {.flight = &wild, .facts = {.end = failed}, .rebooted = true};
                memset(&outcome, 0, sizeof outcome);
                judges[i](&c, &outcome);
        }
        afz_flight_done(&wild);
        afz_flight_done(&none);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_vram),          cmocka_unit_test(test_who_is_on_it),
                cmocka_unit_test(test_oom_survived),  cmocka_unit_test(test_driver),
                cmocka_unit_test(test_driver_memory), cmocka_unit_test(test_driver_worst),
                cmocka_unit_test(test_heat),          cmocka_unit_test(test_heat_of_others),
                cmocka_unit_test(test_heat_thinned),  cmocka_unit_test(test_hostile),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
