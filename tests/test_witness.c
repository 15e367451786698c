/* links: engine */
/* The witness: when it looks, and what it tells of a job that stands still. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "config.h"
#include "fixture.h"
#include "flight.h"
#include "stand_still.h"
#include "witness.h"

/* ---- when ---- */

#define S AFZ_NS_PER_S

/* Ticks of 200 ms; returns when a look is due, in seconds, or -1. */
static int due_within(struct afz_witness_due *due, int from_s, int to_s, double cores,
                      double *cpu_s, uint64_t step, bool held)
{
        for (uint64_t t = (uint64_t)from_s * S; t < (uint64_t)to_s * S; t += S / 5) {
                *cpu_s += cores / 5;
                if (afz_witness_due(due, 1000 * S + t, (uint64_t)(*cpu_s * 1e9), step, held))
                        return (int)(t / S);
        }
        return -1;
}

static void test_due(void **state)
{
        struct afz_witness_due due = {0};
        double cpu = 0;
        (void)state;
        assert_int_equal(due_within(&due, 0, 100, 1, &cpu, 0, false), -1);
        int first = due_within(&due, 100, 160, 0, &cpu, 0, false);
        assert_in_range(first, 118, 124);
        afz_witness_took(&due, 1000);
        int second = due_within(&due, first, 260, 0.005, &cpu, 0, false); /* a heartbeat */
        assert_in_range(second, 153, 159);
        afz_witness_took(&due, 1000);
        assert_int_equal(due_within(&due, second, 1000, 0, &cpu, 0, false),
                         -1); /* twice is enough */
        assert_int_equal(due_within(&due, 1000, 1010, 1, &cpu, 0, false), -1);
        assert_in_range(due_within(&due, 1010, 1060, 0, &cpu, 0, false), 1028,
                        1034); /* it went on */
}

static void test_not_due(void **state)
{
        static const struct {
                const char *what;
                double cores;
                bool held;
        } rows[] = {
                {"somebody holds it", 0, true},
                {"it works a little", 0.1, false},
        };
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct afz_witness_due due = {0};
                double cpu = 10;
                if (due_within(&due, 0, 300, rows[i].cores, &cpu, 0, rows[i].held) >= 0)
                        fail_msg("%s", rows[i].what);
        }
}

/* Who works and makes no step, though it had made some. */
static void test_turning(void **state)
{
        struct afz_witness_due due = {0};
        double cpu = 0;
        int at = 40;
        (void)state;
        assert_int_equal(due_within(&due, 0, at, 1, &cpu, 7, false), -1);
        for (int look = 0; look < 3; look++) {
                at = due_within(&due, at + (look > 0), 400, 1, &cpu, 8, false);
                assert_in_range(at, 100 + 20 * look, 106 + 20 * look);
                afz_witness_took(&due, 1000);
        }
        assert_int_equal(due_within(&due, at + 1, 600, 1, &cpu, 8, false), -1); /* enough */
        assert_in_range(due_within(&due, 600, 700, 1, &cpu, 9, false), 660, 666);
        due = (struct afz_witness_due){0};
        assert_int_equal(due_within(&due, 0, 300, 1, &cpu, 4, false), -1);     /* it prepares */
        assert_int_equal(due_within(&due, 300, 600, 0.2, &cpu, 9, false), -1); /* it reads */
        assert_int_equal(due_within(&due, 600, 900, 1, &cpu, 9, true), -1);    /* it is held */
}

/* Who pauses all day is not recorded without end. */
static void test_spends_little(void **state)
{
        struct afz_witness_due due = {0};
        double cpu = 1;
        size_t spent = 0;
        (void)state;
        for (int t = 0; t < 86400; t += 60) {
                (void)due_within(&due, t, t + 10, 1, &cpu, 0, false);
                if (due_within(&due, t + 10, t + 60, 0, &cpu, 0, false) < 0)
                        continue;
                afz_witness_took(&due, 64 << 10);
                spent += 64 << 10;
        }
        assert_in_range(spent, 512 << 10, 3 << 20);
}

/* Who works long without a step, as in an evaluation, leaves enough for a hang that comes then. */
static void test_leaves_some(void **state)
{
        struct afz_witness_due due = {0};
        double cpu = 1;
        int t = 0, looks = 0;
        (void)state;
        for (uint64_t step = 10; t < 8 * 3600; step++) {
                for (int end = t + 110; t < end; t++)
                        if (due_within(&due, t, t + 1, 1, &cpu, step, false) >= 0) {
                                afz_witness_took(&due, 40 << 10);
                                looks++;
                        }
        }
        assert_in_range(looks, 3, 20);
        assert_in_range(due_within(&due, t, t + 60, 0, &cpu, 9999, false), t + 18, t + 28);
}

/* ---- what ---- */

enum { THREADS = 5 }; /* beside the main thread */

static pid_t start_job(void)
{
        pid_t self = getpid(), pid = fork();
        assert_true(pid >= 0);
        if (pid > 0)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pthread_t thread;
        for (int i = 0; i < THREADS; i++)
                pthread_create(&thread, NULL, stand, NULL);
        while (getppid() == self)
                stand_still();
        _exit(0);
}

static void end_job(pid_t pid)
{
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

struct told {
        pid_t pid;
        bool frozen;
        unsigned texts, mains, threads;
        bool frames;
};

static void take(void *ctx, int64_t code, const char *text)
{
        struct told *told = ctx;
        const char *more = strstr(text, "\nand ");
        assert_int_equal(code >> 32, told->pid);
        assert_true(strlen(text) < AFZ_WITNESS_TEXT_CAP);
        struct afz_mark mark = {.kind = AFZ_MARK_STACK, .text = (char *)text};
        assert_int_equal(afz_mark_is_picture(&mark), told->frozen);
        text += told->frozen ? strlen(AFZ_STACK_FROZEN) : 0;
        if (strncmp(text, "futex", 5) != 0)
                return; /* of the sanitizer, or not asleep yet */
        told->texts++;
        told->mains += (code & UINT32_MAX) == told->pid;
        told->threads += 1 + (more ? (unsigned)atoi(more + 5) : 0);
        told->frames |= strstr(text, "\nstand_still (") != NULL;
        assert_non_null(strstr(text, ", slept "));
}

static struct told ask(const struct afz_env *env, pid_t pid, bool frozen)
{
        struct told told = {.pid = pid, .frozen = frozen};
        struct afz_witness *w;
        pid_t pids[] = {pid, getpid() + 1000000}; /* and one that is not there */
        assert_int_equal(afz_witness_start(env, pids, 2, frozen, &w), 0);
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + 20 * S;
        while (!afz_witness_ended(w, afz_clock_ns(CLOCK_MONOTONIC))) {
                assert_true(afz_clock_ns(CLOCK_MONOTONIC) < end_ns);
                nanosleep(&(struct timespec){0, 2000000}, NULL);
        }
        afz_witness_tell(w, take, &told);
        afz_witness_free(w);
        return told;
}

static void test_it_tells(void **state)
{
        const struct afz_env *env = *state;
        size_t fds = afz_fixture_open_fds();
        pid_t pid = start_job();
        struct told told;
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + 20 * S;
        do { /* until all of it sleeps */
                told = ask(env, pid, false);
                assert_true(afz_clock_ns(CLOCK_MONOTONIC) < end_ns);
        } while (told.threads < 1 + THREADS);
        assert_int_equal(told.threads, 1 + THREADS);
        assert_int_equal(told.mains, 1);
        /* The others are one; under a sanitizer one of them may begin otherwise. */
        assert_in_range(told.texts, 2, THREADS - 1);
        assert_int_equal(told.frames, AFZ_HAVE_LIBDW);
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0); /* it stands there as before */

        kill(pid, SIGSTOP); /* who is held stands still for that reason */
        siginfo_t info;
        assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
        assert_int_equal(ask(env, pid, false).texts, 0);
        told = ask(env, pid, true); /* unless it is held for that */
        assert_int_equal(told.threads, 1 + THREADS);
        assert_int_equal(told.mains, 1);
        assert_int_equal(told.frames, AFZ_HAVE_LIBDW);
        end_job(pid);
        assert_int_equal(ask(env, pid, false).texts, 0);
        assert_int_equal(ask(env, pid, true).texts, 0);
        assert_int_equal(afz_fixture_open_fds(), fds);
}

/* One that was at work when it was frozen: where it stood, and not that it waits for a freezer. */
static void note_main(void *ctx, int64_t code, const char *text)
{
        char *first = ctx;
        if (code >> 32 == (code & UINT32_MAX))
                snprintf(first, 64, "%.*s", (int)strcspn(text, "\n"), text);
}

static void test_it_ran(void **state)
{
        const struct afz_env *env = *state;
        struct afz_witness *w;
        char first[64] = "", byte;
        int up[2];
        assert_int_equal(pipe(up), 0);
        pid_t pid = fork();
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void)!write(up[1], "", 1);
                for (volatile unsigned n = 0;; n++)
                        ;
        }
        assert_int_equal(read(up[0], &byte, 1), 1);
        nanosleep(&(struct timespec){0, 20000000}, NULL);
        kill(pid, SIGSTOP); /* as the guard does it: nobody waits until it bites */
        assert_int_equal(afz_witness_start(env, &pid, 1, true, &w), 0);
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + 20 * S;
        while (!afz_witness_ended(w, afz_clock_ns(CLOCK_MONOTONIC))) {
                assert_true(afz_clock_ns(CLOCK_MONOTONIC) < end_ns);
                nanosleep(&(struct timespec){0, 2000000}, NULL);
        }
        size_t told = afz_witness_tell(w, note_main, first);
        afz_witness_free(w);
        end_job(pid);
        close(up[0]);
        close(up[1]);
        assert_true(told >= 1); /* a sanitizer has a thread of its own */
        assert_int_equal(strncmp(first, AFZ_STACK_FROZEN "it ran", 14), 0);
}

/* It does not stay behind: not when it is called back, and not when the scout is killed. */
static void test_it_goes(void **state)
{
        const struct afz_env *env = *state;
        struct afz_witness *w;
        pid_t job = start_job();
        assert_int_equal(afz_witness_start(env, &job, 1, false, &w), 0);
        afz_witness_free(w);
        afz_witness_free(NULL);

        prctl(PR_SET_CHILD_SUBREAPER, 1);
        pid_t scout = fork();
        if (scout == 0) {
                (void)afz_witness_start(env, &job, 1, false, &w);
                raise(SIGKILL);
        }
        end_job(job);
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + 20 * S;
        pid_t pid;
        while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0) {
                assert_true(afz_clock_ns(CLOCK_MONOTONIC) < end_ns); /* one has stayed */
                nanosleep(&(struct timespec){0, 2000000}, NULL);
        }
        assert_int_equal(errno, ECHILD);
        prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/* One that does not even hear that it is killed is not waited for: nobody would be told what it had
 * found. (If it is faster than we are, it has ended by itself.) */
static void test_it_is_given_up(void **state)
{
        const struct afz_env *env = *state;
        struct afz_witness *w;
        pid_t job = start_job();
        assert_int_equal(afz_witness_start(env, &job, 1, false, &w), 0);
        assert_true(afz_witness_ended(w, afz_clock_ns(CLOCK_MONOTONIC) + 60 * S));
        afz_witness_free(w);
        end_job(job);
        while (waitpid(-1, NULL, 0) > 0)
                ;
}

int main(void)
{
        struct afz_env env;
        if (afz_env_open_live(&env) < 0)
                return 77;
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_due),
                cmocka_unit_test(test_not_due),
                cmocka_unit_test(test_leaves_some),
                cmocka_unit_test(test_turning),
                cmocka_unit_test(test_spends_little),
                cmocka_unit_test_prestate(test_it_tells, &env),
                cmocka_unit_test_prestate(test_it_ran, &env),
                cmocka_unit_test_prestate(test_it_goes, &env),
                cmocka_unit_test_prestate(test_it_is_given_up, &env),
        };
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        afz_env_done(&env);
        return r;
}
