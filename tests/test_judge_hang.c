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
#include "wait_kind.h"

/* ---- hang ---- */

/* A job that works for 20 s and is then asleep; its root and up to three others. */
struct one {
        int role;
        int state;        /* letter while it is quiet */
        const char *wait; /* NULL: not known */
        uint32_t dies_s;  /* 0: it does not */
};

struct hang {
        const char *what;
        uint32_t seconds;   /* in all */
        double quiet_cores; /* used meanwhile */
        double quiet_bytes; /* read meanwhile, a second */
        struct one one[4];
        int stopped, braked; /* meanwhile */
        double gpu;          /* busy meanwhile; -1: none */
        uint32_t gap_s;      /* of the recording, at the start of the quiet */
        uint32_t steps;      /* that came before, each 200 ms */
        uint32_t wakes_s;    /* works again for the last so many seconds */
        const char *stack;   /* a mark in the quiet */
        unsigned below;      /* the root was started by this one */
        struct afz_end end;
        const char *says; /* the id; NULL: silent */
};

#define SLEEPS_ .seconds = 120, .gpu = -1, .end = {AFZ_END_SIGNAL, SIGTERM}
#define MAIN_(w)                                                                                   \
        {                                                                                          \
                AFZ_ROLE_MAIN, 'S', w, 0                                                           \
        }
#define WORKER_(w)                                                                                 \
        {                                                                                          \
                AFZ_ROLE_WORKER, 'S', w, 0                                                         \
        }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif
static const struct hang hangs[] = {
        {"two threads in two locks", SLEEPS_, .one = {MAIN_("futex_do_wait")},
         .says = "hang:deadlock"},
        {"while it runs", SLEEPS_, .one = {MAIN_("futex_wait_queue")}, .end = {AFZ_END_RUNNING, -1},
         .says = "hang:deadlock"},
        {"only 50 s so far", SLEEPS_, .seconds = 70, .one = {MAIN_("futex_do_wait")}},
        {"it woke up and ended well", SLEEPS_, .one = {MAIN_("futex_do_wait")},
         .end = {AFZ_END_EXIT, 0}},
        {"it gave up by itself", SLEEPS_, .one = {MAIN_("futex_do_wait")},
         .end = {AFZ_END_EXIT, 1}},
        {"timeout(1) ended it", SLEEPS_, .one = {MAIN_("futex_do_wait")},
         .end = {AFZ_END_EXIT, 124}, .says = "hang:deadlock"},
        {"it stirs when it is ended", SLEEPS_, .one = {MAIN_("futex_do_wait")}, .wakes_s = 4,
         .says = "hang:deadlock"},
        {"it went on working", SLEEPS_, .one = {MAIN_("futex_do_wait")}, .wakes_s = 30},
        {"a watchdog thread ticks", SLEEPS_, .one = {MAIN_("futex_do_wait")}, .quiet_cores = 0.005,
         .says = "hang:deadlock"},
        {"it computes a little", SLEEPS_, .one = {MAIN_("futex_do_wait")}, .quiet_cores = 0.1},
        {"it reads: a download, a file", SLEEPS_, .one = {MAIN_("futex_do_wait")},
         .quiet_bytes = 50e3},
        {"it sleeps by the clock", SLEEPS_, .one = {MAIN_("hrtimer_nanosleep")}},
        {"a child sleeps by the clock", SLEEPS_,
         .one = {MAIN_("do_wait"), {AFZ_ROLE_OTHER, 'S', "hrtimer_nanosleep", 0}}},
        {"at a prompt", SLEEPS_, .one = {MAIN_("n_tty_read")}},
        {"at a prompt, newer", SLEEPS_, .one = {MAIN_("wait_woken")}},
        {"waits for the network", SLEEPS_, .one = {MAIN_("sk_wait_data")}},
        {"waits for one of several things", SLEEPS_, .one = {MAIN_("do_poll.constprop.0")}},
        {"the same, but steps stopped", SLEEPS_, .one = {MAIN_("do_poll.constprop.0")}, .steps = 50,
         .says = "hang:deadlock"},
        {"nobody knows what it waits for", SLEEPS_, .one = {MAIN_(NULL)}},
        {"reads from a pipe of somebody else", SLEEPS_, .one = {MAIN_("pipe_read")}},
        {"the same below a shell", SLEEPS_,
         .one = {MAIN_("pipe_read"), {AFZ_ROLE_SHELL, 'S', "do_wait", 0}}},
        {"join() before the queue is empty", SLEEPS_,
         .one = {MAIN_("do_wait"), WORKER_("pipe_write")}, .says = "hang:deadlock"},
        {"waits for a child that waits for nothing", SLEEPS_,
         .one = {MAIN_("do_wait"), WORKER_(NULL)}},
        {"a lock below timeout(1)", SLEEPS_,
         .one = {MAIN_("futex_do_wait"), {AFZ_ROLE_OTHER, 'S', "sigsuspend", 0}}, .below = 1,
         .says = "hang:deadlock"},
        {"the same that is not its parent", SLEEPS_,
         .one = {MAIN_("futex_do_wait"), {AFZ_ROLE_OTHER, 'S', "sigsuspend", 0}}},
        {"a debugger holds it", SLEEPS_, .one = {{AFZ_ROLE_MAIN, 't', "ptrace_stop", 0}}},
        {"a debugger holds one of it", SLEEPS_,
         .one = {MAIN_("futex_do_wait"), {AFZ_ROLE_OTHER, 't', NULL, 0}}},
        {"stopped", SLEEPS_, .one = {{AFZ_ROLE_MAIN, 'T', "do_signal_stop", 0}}, .stopped = 1},
        {"frozen by us", SLEEPS_, .one = {MAIN_("futex_do_wait")}, .braked = 1},
        {"in the kernel for a disk", SLEEPS_, .one = {{AFZ_ROLE_MAIN, 'D', "io_schedule", 0}}},
        {"the machine slept", SLEEPS_, .one = {MAIN_("futex_do_wait")}, .gap_s = 40},
        {"the GPU works for it", SLEEPS_, .one = {MAIN_("futex_do_wait")}, .gpu = 0.97},
        {"the GPU idles too", SLEEPS_, .one = {MAIN_("futex_do_wait")}, .gpu = 0,
         .says = "hang:deadlock"},
        {"a notebook waits for its person", SLEEPS_,
         .one = {MAIN_("futex_do_wait"), {AFZ_ROLE_KERNEL, 'S', "ep_poll", 0}}},
        {"a server waits for requests", SLEEPS_, .one = {{AFZ_ROLE_SERVER, 'S', "futex_wait", 0}}},
        {"a thread listens", SLEEPS_, .one = {MAIN_("futex_do_wait")}, .stack = "ep_poll"},
        {"a thread sleeps by the clock", SLEEPS_, .one = {MAIN_("futex_do_wait")},
         .stack = "hrtimer_nanosleep"},
        {"stacks in locks", SLEEPS_, .one = {MAIN_("futex_do_wait")},
         .stack = "futex_do_wait\nlock_both\ntcp_store.py:12 in poll", .says = "hang:deadlock"},
        {"a worker was killed, others live", SLEEPS_, .seconds = 60,
         .one = {MAIN_("do_poll"), {AFZ_ROLE_WORKER, 'S', NULL, 20}, WORKER_("futex_do_wait")},
         .says = "hang:worker-dead"},
        {"a worker is a zombie", SLEEPS_, .seconds = 60,
         .one = {MAIN_("pipe_read"), {AFZ_ROLE_WORKER, 'Z', NULL, 0}}, .says = "hang:worker-dead"},
        {"all workers went: the work was done", SLEEPS_,
         .one = {MAIN_("do_poll"),
                 {AFZ_ROLE_WORKER, 'S', NULL, 20},
                 {AFZ_ROLE_WORKER, 'S', NULL, 20}}},
        {"a worker went long before", SLEEPS_, .seconds = 60,
         .one = {MAIN_("do_poll"), {AFZ_ROLE_WORKER, 'S', NULL, 2}, WORKER_("futex_do_wait")}},
};
#pragma GCC diagnostic pop

static void fly_process(struct afz_flight *f, const struct hang *h, unsigned i, uint32_t quiet_ms,
                        uint32_t end_ms)
{
        const struct one *o = &h->one[i];
        uint64_t pid = JOB + i;
        uint32_t dies = o->dies_s ? o->dies_s * 1000 : end_ms;
        fly_named(f, AFZ_KIND_PROC, pid, i ? "python3" : "trainer", NULL, o->wait);
        for (uint32_t t = 0; t < dies; t += 500) {
                if (h->gap_s && t >= quiet_ms && t < quiet_ms + h->gap_s * 1000)
                        continue;
                bool quiet = t >= quiet_ms;
                fly_point(f, AFZ_KIND_PROC, pid, AFZ_PROC_STATE, t, quiet ? o->state : 'R');
                fly_point(f, AFZ_KIND_PROC, pid, AFZ_PROC_ROLE, t, o->role);
                if (i == 0 && h->below)
                        fly_point(f, AFZ_KIND_PROC, pid, AFZ_PROC_PPID, t, JOB + h->below);
                fly_point(f, AFZ_KIND_PROC, pid, AFZ_PROC_USER, t,
                          (quiet ? quiet_ms : t) * INT64_C(1000000) / (i * 20 + 1));
                fly_point(f, AFZ_KIND_PROC, pid, AFZ_PROC_SYSTEM, t, 0);
        }
}

static void fly_hang(struct afz_flight *f, const struct hang *h)
{
        uint32_t quiet_ms = 20000, end_ms = h->seconds * 1000;
        double cpu = 0, bytes = 0;
        afz_flight_init(f);
        f->head.cores = 2;
        for (uint32_t t = 0; t < end_ms; t += 100) {
                bool quiet = t >= quiet_ms && t + h->wakes_s * 1000 < end_ms;
                cpu += quiet ? h->quiet_cores * 1e8 : 1e8;
                bytes += quiet ? h->quiet_bytes / 10 : 1e5;
                if (h->gap_s && t >= quiet_ms && t < quiet_ms + h->gap_s * 1000)
                        continue;
                fly_point(f, AFZ_KIND_JOB, JOB, AFZ_JOB_CPU, t, (int64_t)cpu);
                fly_point(f, AFZ_KIND_JOB, JOB, AFZ_JOB_READ_CALLS, t, (int64_t)bytes);
                fly_point(f, AFZ_KIND_JOB, JOB, AFZ_JOB_WRITE_CALLS, t, 5);
                fly_point(f, AFZ_KIND_JOB, JOB, AFZ_JOB_READ, t, 0);
                fly_point(f, AFZ_KIND_JOB, JOB, AFZ_JOB_WRITTEN, t, 0);
                fly_point(f, AFZ_KIND_JOB, JOB, AFZ_JOB_STOPPED, t, quiet ? h->stopped : 0);
                fly_point(f, AFZ_KIND_JOB, JOB, AFZ_JOB_PROCESSES, t, 1);
                fly_point(f, AFZ_KIND_HOLD, 0, AFZ_HOLD_BRAKED, t, quiet ? h->braked : 0);
                if (h->gpu >= 0)
                        fly_point(f, AFZ_KIND_GPU, 0, AFZ_GPU_UTIL, t, (int64_t)(h->gpu * 10000));
        }
        for (unsigned i = 0; i < 4 && h->one[i].state; i++)
                fly_process(f, h, i, quiet_ms, end_ms);
        if (h->steps)
                fly_steps(f, fly_every(1000, 1000 + h->steps * 200, 200), 1);
        if (h->stack)
                fly_mark(f, quiet_ms + 15000, AFZ_MARK_STACK, (INT64_C(100) << 32) | 101, h->stack);
}

static void test_hang(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof hangs / sizeof *hangs; i++) {
                const struct hang *h = &hangs[i];
                struct afz_flight f;
                fly_hang(&f, h);
                const struct afz_verdict *v = ask(afz_judge_hang, &f, h->end);
                if (!v != !h->says || (v && strcmp(v->id, h->says) != 0))
                        fail_msg("%s: %s", h->what, v ? v->summary : "silent");
                if (v && !h->stack && h->one[0].wait && strcmp(v->id, "hang:deadlock") == 0)
                        assert_true(has_word(v, h->one[0].wait));
                if (v)
                        assert_in_range(v->from_ms, 15000, 30000);
                if (v && h->stack)
                        assert_true(has_word(v, "101 stands in futex_do_wait < lock_both < tcp_"));
                afz_flight_done(&f);
        }
}

static void test_hang_needs_all_columns(void **state)
{
        (void)state;
        static const enum afz_metric needed[] = {AFZ_JOB_CPU, AFZ_JOB_READ_CALLS, AFZ_JOB_READ,
                                                 AFZ_JOB_WRITTEN, AFZ_JOB_STOPPED};
        for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
                struct afz_flight f;
                fly_hang(&f, &hangs[0]);
                struct afz_track *job = fly_track(&f, AFZ_KIND_JOB, JOB);
                for (size_t k = 0; k < job->columns; k++)
                        if (job->column[k].metric == needed[i])
                                job->column[k].count = 0;
                assert_null(ask(afz_judge_hang, &f, killed));
                afz_flight_done(&f);
        }
}

/* Who takes a stack stops it for a moment: that is no debugger. */
static void test_hang_stack_taken(void **state)
{
        (void)state;
        struct afz_flight f;
        fly_hang(&f, &hangs[0]);
        struct afz_track *main = fly_track(&f, AFZ_KIND_PROC, JOB);
        for (size_t i = 0; i < main->columns; i++)
                if (main->column[i].metric == AFZ_PROC_STATE)
                        main->column[i].point[100] = (struct afz_point){50000, 0, 't', 't', 't'};
        struct afz_track *job = fly_track(&f, AFZ_KIND_JOB, JOB);
        for (size_t i = 0; i < job->columns; i++)
                if (job->column[i].metric == AFZ_JOB_STOPPED)
                        job->column[i].point[500] = (struct afz_point){50000, 0, 1, 1, 1};
        assert_non_null(ask(afz_judge_hang, &f, killed));
        afz_flight_done(&f);
}

/* The words and the place: what a person reads. */
static void test_hang_words(void **state)
{
        (void)state;
        struct afz_flight f;
        fly_hang(&f, &hangs[0]);
        const struct afz_verdict *v = ask(afz_judge_hang, &f, killed);
        assert_non_null(v);
        assert_string_equal(
                v->summary,
                "it hung: all of it slept for 1 min 40 s, its threads waiting for a lock");
        assert_true(has_word(v, "trainer (main) (process 100) waits for a lock (futex_do_wait)"));
        assert_int_equal(v->level, AFZ_LEVEL_WARN);
        afz_flight_done(&f);
}

/* After an hour a recording is thinned: one point for ten seconds. */
static void test_hang_thinned(void **state)
{
        (void)state;
        struct afz_flight f;
        afz_flight_init(&f);
        static const enum afz_metric still[] = {AFZ_JOB_READ_CALLS, AFZ_JOB_WRITE_CALLS,
                                                AFZ_JOB_READ, AFZ_JOB_WRITTEN, AFZ_JOB_STOPPED};
        for (uint32_t t = 0; t < 7200000; t += 10000) {
                int64_t cpu = (int64_t)(t < 600000 ? t + 10000 : 600000) * 1000000;
                fly_span(&f, AFZ_KIND_JOB, JOB, AFZ_JOB_CPU, t, 10000, cpu, cpu, cpu);
                for (size_t i = 0; i < sizeof still / sizeof *still; i++)
                        fly_span(&f, AFZ_KIND_JOB, JOB, still[i], t, 10000, 0, 0, 0);
                fly_span(&f, AFZ_KIND_PROC, JOB, AFZ_PROC_STATE, t, 10000, 'R', 'S', 'R');
                fly_span(&f, AFZ_KIND_PROC, JOB, AFZ_PROC_USER, t, 10000, cpu, cpu, cpu);
        }
        fly_named(&f, AFZ_KIND_PROC, JOB, "train", NULL, "futex_wait_queue_me");
        const struct afz_verdict *v = ask(afz_judge_hang, &f, running);
        assert_non_null(v);
        assert_string_equal(v->id, "hang:deadlock");
        assert_in_range(v->from_ms, 590000, 620000);
        assert_int_equal(v->to_ms, 7200000);
        afz_flight_done(&f);
}

static void fly_spin(struct afz_flight *f, uint32_t end_ms, double cores, int64_t grows, bool steps)
{
        afz_flight_init(f);
        tell_rate(f, AFZ_KIND_JOB, JOB, AFZ_JOB_CPU, fly_every(0, end_ms, 100), cores * 1e9);
        fly_flat(f, AFZ_KIND_JOB, JOB, AFZ_JOB_READ_CALLS, fly_every(0, end_ms, 100), 7);
        fly_flat(f, AFZ_KIND_JOB, JOB, AFZ_JOB_WRITE_CALLS, fly_every(0, end_ms, 100), 7);
        fly_line(f, AFZ_KIND_JOB, JOB, AFZ_JOB_NEED, fly_every(0, end_ms, 100), FLY_MB(500),
                 (double)grows);
        if (steps)
                fly_steps(f, fly_every(1000, 21000, 200), 1);
}

static void test_spin(void **state)
{
        (void)state;
        static const struct {
                const char *what;
                uint32_t end_ms;
                double cores;
                int64_t grows;
                bool steps, says;
                struct afz_end end;
        } rows[] = {
                {"no step for four minutes", 260000, 1, 0, true, true, {AFZ_END_SIGNAL, SIGINT}},
                {"without steps nobody knows", 260000, 1, 0, false, false, {AFZ_END_SIGNAL, 2}},
                {"an evaluation of a minute", 81000, 1, 0, true, false, {AFZ_END_SIGNAL, 2}},
                {"it ended well", 260000, 1, 0, true, false, {AFZ_END_EXIT, 0}},
                {"its memory moves", 260000, 1, 1 << 20, true, false, {AFZ_END_SIGNAL, 2}},
                {"it idles, but nobody knows for what",
                 260000,
                 0,
                 0,
                 true,
                 false,
                 {AFZ_END_SIGNAL, 2}},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct afz_flight f;
                fly_spin(&f, rows[i].end_ms, rows[i].cores, rows[i].grows, rows[i].steps);
                const struct afz_verdict *v = ask(afz_judge_hang, &f, rows[i].end);
                if (!v == rows[i].says)
                        fail_msg("%s", rows[i].what);
                if (v)
                        assert_string_equal(v->id, "hang:spin");
                afz_flight_done(&f);
        }
}

static void test_waits(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                enum afz_wait wait;
        } rows[] = {
                {"futex_do_wait", AFZ_WAIT_LOCK},
                {"do_wait", AFZ_WAIT_CHILD},
                {"anon_pipe_read", AFZ_WAIT_PIPE},
                {"pipe_wait_readable", AFZ_WAIT_PIPE},
                {"ep_poll", AFZ_WAIT_ANY},
                {"do_sys_poll", AFZ_WAIT_ANY},
                {"hrtimer_nanosleep", AFZ_WAIT_OUT},
                {"common_nsleep", AFZ_WAIT_UNKNOWN},
                {"", AFZ_WAIT_UNKNOWN},
        };
        const char *words;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                assert_int_equal(afz_wait_of(rows[i].text, &words), rows[i].wait);
                assert_non_null(words);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_hang),         cmocka_unit_test(test_hang_needs_all_columns),
                cmocka_unit_test(test_hang_words),   cmocka_unit_test(test_hang_stack_taken),
                cmocka_unit_test(test_hang_thinned), cmocka_unit_test(test_spin),
                cmocka_unit_test(test_waits),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
