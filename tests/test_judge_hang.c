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
#include "hang_stacks.h"
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
        unsigned stirs_s;    /* so long before its end it used 0.3 s at once */
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
        {"Ctrl-C half a minute before it is killed", SLEEPS_, .one = {MAIN_("futex_do_wait")},
         .stirs_s = 30, .says = "hang:deadlock"},
        {"the same, and it goes on", SLEEPS_, .one = {MAIN_("futex_do_wait")}, .stirs_s = 30,
         .end = {AFZ_END_RUNNING, -1}},
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
        {"a picture says nothing", SLEEPS_, .one = {MAIN_("futex_do_wait")},
         .stack = AFZ_STACK_FROZEN "hrtimer_nanosleep", .says = "hang:deadlock"},
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
                bool stirs = h->stirs_s && t + h->stirs_s * 1000 == end_ms;
                cpu += quiet && !stirs ? h->quiet_cores * 1e8 : stirs ? 3e8 : 1e8;
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
                bool stands = h->stack && !strstr(h->stack, AFZ_STACK_FROZEN);
                if (v && !stands && h->one[0].wait && strcmp(v->id, "hang:deadlock") == 0)
                        assert_true(has_word(v, h->one[0].wait));
                if (v)
                        assert_in_range(v->from_ms, 15000, 30000);
                if (v && stands)
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

/* ---- hang, with the stacks of every thread at two looks ---- */

#define PY_(line, name) "\npython: /home/me/train.py:" line " in " name
#define LIB_            "\npython: /usr/lib/python3.11/threading.py:1132 in Thread.join"
#define AGAIN_          NULL /* as at the first look */

struct stacks {
        const char *what;
        struct {
                int pid, tid; /* from JOB on */
                const char *first, *second;
        } at[5];
        double confidence; /* 0, or nothing: silent */
        const char *where; /* what the summary ends with */
        const char *end;   /* NULL: a job of one process; else what its child waits for */
};

static const struct stacks stacks[] = {
        {"two locks",
         {{0, 0, "futex_do_wait, slept 12 times\n? (libc.so.6)" PY_("23", "main"), AGAIN_},
          {0, 1, "futex_do_wait, slept 2 times" PY_("16", "worker"), AGAIN_}},
         0.92,
         "waiting for a lock, at train.py:23 in main()",
         NULL},
        {"the same with a heartbeat and a progress bar",
         {{0, 0, "futex_do_wait, slept 12 times" PY_("23", "main"), AGAIN_},
          {0, 1, "hrtimer_nanosleep with a deadline, slept 5 times" PY_("4", "beat"),
           "hrtimer_nanosleep with a deadline, slept 12 times\n? (x)" PY_("4", "beat")},
          {0, 2, "futex_do_wait with a deadline, slept 3 times" PY_("8", "monitor"),
           "futex_do_wait with a deadline, slept 6 times" PY_("8", "monitor")},
          {0, 3, "futex_do_wait, slept 2 times" PY_("16", "worker") "\nand 3 more threads",
           AGAIN_}},
         0.92,
         "at train.py:23 in main()",
         NULL},
        {"join() on two threads that lock each other out",
         {{0, 0, "futex_do_wait, slept 5 times" LIB_ PY_("30", "main"), AGAIN_},
          {0, 1, "futex_do_wait, slept 2 times" PY_("16", "worker"), AGAIN_},
          {0, 2, "futex_do_wait, slept 2 times" PY_("11", "other"), AGAIN_}},
         0.92,
         "its threads waiting for a lock, at train.py:11 in other()",
         NULL},
        {"alone with a lock that it took twice",
         {{0, 0, "futex_do_wait, slept 5 times" PY_("30", "main"), AGAIN_}},
         0.92,
         "its only thread waiting for a lock, at train.py:30 in main()",
         NULL},
        {"alone at an event: a signal may set it",
         {{0, 0,
           "futex_do_wait, slept 5 times\npython: /usr/lib/python3.11/threading.py:327 in "
           "Condition.wait" PY_("30", "main"),
           AGAIN_}},
         0.70,
         "its only thread waiting for a lock, at train.py:30 in main()",
         NULL},
        {"an alarm clock that has not rung",
         {{0, 0, "futex_do_wait, slept 5 times" LIB_, AGAIN_},
          {0, 1, "futex_do_wait with a deadline, slept 1 time" PY_("8", "schedule"), AGAIN_}}},
        {"a server in a thread, with idle workers",
         {{0, 0, "futex_do_wait, slept 5 times" LIB_ PY_("10", "<module>"), AGAIN_},
          {0, 1, "do_epoll_wait of a socket, slept 5 times" PY_("9", "serve"), AGAIN_},
          {0, 2, "futex_do_wait, slept 2 times\nand 1 more thread", AGAIN_}}},
        {"a server that looks twice a second whether it shall end",
         {{0, 0, "futex_do_wait, slept 5 times", AGAIN_},
          {0, 1, "poll_schedule_timeout.constprop.0 of a socket with a deadline, slept 60 times",
           "poll_schedule_timeout.constprop.0 of a socket with a deadline, slept 111 times"}}},
        {"a pool that lost a task",
         {{0, 0, "futex_do_wait, slept 9 times" LIB_ PY_("11", "<module>"), AGAIN_},
          {0, 1, "poll_schedule_timeout.constprop.0 of its own pipes, slept 11 times", AGAIN_},
          {0, 2, "anon_pipe_read of its own pipes, slept 11 times", AGAIN_},
          {1, 1, "futex_do_wait, slept 2 times", AGAIN_}},
         0.92,
         "at train.py:11 in <module>",
         "futex_do_wait"},
        {"a worker in a lock, and a thread of its parent that has nothing to do",
         {{0, 0, "do_poll of its own pipes with a deadline, slept 9 times" LIB_ PY_("40", "main"),
           "do_poll of its own pipes with a deadline, slept 16 times" LIB_ PY_("40", "main")},
          {1, 1, "futex_do_wait, slept 2 times" PY_("30", "fetch"), AGAIN_},
          {0, 2, "futex_do_wait, slept 2 times" PY_("18", "journal"), AGAIN_}},
         0.92,
         "at train.py:30 in fetch()",
         "futex_do_wait"},
        {"a reader of its own pipe",
         {{0, 0, "anon_pipe_read of its own pipes, slept 3 times" PY_("5", "loop"), AGAIN_}},
         0.92,
         "at train.py:5 in loop()",
         NULL},
        {"a reader of somebody else's, with a thread in a lock",
         {{0, 0, "anon_pipe_read of a pipe from outside, slept 3 times" PY_("5", "loop"), AGAIN_},
          {0, 1, "futex_do_wait, slept 2 times", AGAIN_}}},
        {"it was woken in between",
         {{0, 0, "futex_do_wait, slept 12 times" PY_("23", "main"),
           "futex_do_wait, slept 13 times" PY_("23", "main")}}},
        {"it moved in between",
         {{0, 0, "futex_do_wait" PY_("23", "main"), "futex_do_wait" PY_("24", "main")}}},
        {"it tries again and again",
         {{0, 0, "futex_do_wait with a deadline, slept 12 times" PY_("23", "main"),
           "futex_do_wait with a deadline, slept 40 times" PY_("23", "main")}}},
        {"one look only", {{0, 0, "futex_do_wait" PY_("23", "main"), ""}}, 0.80, "in main()", NULL},
        {"a thread in a place that nobody knows",
         {{0, 0, "futex_do_wait, slept 1 time", AGAIN_}, {0, 1, "rm_wait, slept 1 time", AGAIN_}},
         0.50,
         "waiting for a lock",
         NULL},
        {"calls that may not be seen",
         {{0, 0, "futex_do_wait perhaps with a deadline, slept 5 times", AGAIN_},
          {0, 1, "futex_do_wait perhaps with a deadline, slept 1 time", AGAIN_}},
         0.50,
         "waiting for a lock",
         NULL},
        {"hostile words",
         {{0, 0, "futex_do_wait, slept 99999999999999999999 times\npython: :: in \npython: a",
           AGAIN_},
          {0, 1, "futex_do_wait, slept\nand 99999999999999999999 more threads", AGAIN_},
          {0, 2, "\n\n\n", AGAIN_}},
         0.50,
         "waiting for a lock",
         NULL},
};

static void fly_stacks(struct afz_flight *f, const struct stacks *row)
{
        struct hang h = {SLEEPS_, .one = {MAIN_("futex_do_wait")}};
        if (row->end) {
                h.one[1] = (struct one)WORKER_(row->end);
                h.steps = 50;
        }
        fly_hang(f, &h);
        for (unsigned look = 0; look < 2; look++)
                for (size_t i = 0; i < 5 && row->at[i].first; i++) {
                        const char *text =
                                look && row->at[i].second ? row->at[i].second : row->at[i].first;
                        int64_t pid = JOB + row->at[i].pid, tid = JOB + row->at[i].tid;
                        if (text[0])
                                fly_mark(f, 42500 + look * 35000, AFZ_MARK_STACK, pid << 32 | tid,
                                         text);
                }
}

static void test_hang_stacks(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
                struct afz_flight f;
                fly_stacks(&f, &stacks[i]);
                const struct afz_verdict *v = ask(afz_judge_hang, &f, killed);
                double is = v ? v->confidence : 0;
                if (is < stacks[i].confidence - 0.001 || is > stacks[i].confidence + 0.001)
                        fail_msg("%s: %.2f %s", stacks[i].what, is, v ? v->summary : "");
                if (v && !strstr(v->summary, stacks[i].where))
                        fail_msg("%s: %s", stacks[i].what, v->summary);
                afz_flight_done(&f);
        }
}

/* It locked itself out before the first look: all of the recording is quiet. */
static void test_hang_from_the_start(void **state)
{
        (void)state;
        struct afz_flight f;
        fly_stacks(&f, &stacks[0]);
        struct afz_track *job = fly_track(&f, AFZ_KIND_JOB, JOB);
        for (size_t i = 0; i < job->columns; i++)
                for (size_t k = 0; k < job->column[i].count; k++) {
                        struct afz_point *p = &job->column[i].point[k];
                        p->least = p->mean = p->most = job->column[i].metric != AFZ_JOB_STOPPED;
                }
        const struct afz_verdict *v = ask(afz_judge_hang, &f, killed);
        assert_non_null(v);
        assert_int_equal(v->where.line, 23);
        assert_true(has_word(v, "before, it used nothing"));
        afz_flight_done(&f);
}

static void test_hang_where(void **state)
{
        (void)state;
        struct afz_flight f;
        fly_stacks(&f, &stacks[0]);
        const struct afz_verdict *v = ask(afz_judge_hang, &f, killed);
        assert_non_null(v);
        assert_string_equal(v->where.file, "/home/me/train.py");
        assert_string_equal(v->where.function, "main");
        assert_int_equal(v->where.line, 23);
        assert_int_equal(v->level, AFZ_LEVEL_ACT);
        assert_true(has_word(
                v, "thread 100 stands in futex_do_wait < train.py:23 in main (at both looks)"));
        assert_true(has_word(v, "thread 101 stands in futex_do_wait < train.py:16 in worker"));
        assert_true(has_word(v, "begin at train.py:23"));
        afz_flight_done(&f);

        struct afz_where where = {.line = 7};
        char text[600] = "futex\npython: /";
        memset(text + strlen(text), 'a', 300); /* a long path keeps its end */
        strcat(text, "/x:y in z.py:12 in run");
        assert_true(afz_stand_where(text, &where));
        assert_string_equal(afz_where_file(&where), "x:y in z.py");
        assert_int_equal(where.line, 12);
        assert_false(afz_stand_where("futex\npython: /a/site-packages/b.py:1 in c\n"
                                     "python: <string>:2 in d\npython: /usr/lib64/python3/e.py:3 "
                                     "in f\ng (h)",
                                     &where));
        assert_int_equal(where.line, 12);
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
        assert_true(has_word(v, "trainer (main, process 100) waits for a lock (futex_do_wait)"));
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
                {"do_epoll_wait of a socket", AFZ_WAIT_OUT},
                {"do_select of its own pipes with a deadline, slept 3 times", AFZ_WAIT_PIPE},
                {"anon_pipe_read of a pipe from outside, slept 3 times", AFZ_WAIT_OUT},
                {"unix_stream_read_generic of a socket", AFZ_WAIT_PIPE},
                {"futex_do_wait with a deadline, slept 2 times", AFZ_WAIT_LOCK},
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
                cmocka_unit_test(test_hang_thinned), cmocka_unit_test(test_waits),
                cmocka_unit_test(test_hang_stacks),  cmocka_unit_test(test_hang_from_the_start),
                cmocka_unit_test(test_hang_where),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
