/* Tier none on real processes: this program runs itself as the job (see the actors below). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "fixture.h"
#include "proc_stat.h"
#include "spawn_held.h"
#include "tier_none.h"

#define MIB (UINT64_C(1) << 20)

/* ---- the job ---- */

enum { SAY = 1, HEAR = 0 };

static void say(void)
{
        if (write(SAY, "r", 1) != 1)
                _exit(3);
}

/* Waits for one word; ends with the test. */
static void hear(void)
{
        char c;
        if (read(HEAR, &c, 1) != 1)
                _exit(0);
}

static volatile char *fill(volatile char *p, uint64_t bytes, char with)
{
        for (uint64_t i = 0; i < bytes; i += 4096)
                p[i] = with;
        return p;
}

static char *take(uint64_t bytes, int flags)
{
        char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
                _exit(3);
        madvise(p, bytes, MADV_NOHUGEPAGE);
        fill(p, bytes, 1);
        return p;
}

static void idle(void)
{
        for (;;)
                pause();
}

/* A parent of 128 MiB and 8 forks; at a word each of them writes to all of it. */
static void actor_forks(void)
{
        char *p = take(128 * MIB, MAP_PRIVATE);
        int go[2], done[2];
        char c;
        if (pipe(go) < 0 || pipe(done) < 0)
                _exit(3);
        for (int i = 0; i < 8; i++) {
                if (fork() != 0)
                        continue;
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                take(1 * MIB, MAP_PRIVATE);
                (void)!write(done[1], "d", 1);
                (void)!read(go[0], &c, 1);
                fill(p, 128 * MIB, 2);
                (void)!write(done[1], "d", 1);
                idle();
        }
        for (int i = 0; i < 8; i++)
                (void)!read(done[0], &c, 1);
        say();
        hear();
        (void)!write(go[1], "gggggggg", 8);
        for (int i = 0; i < 8; i++)
                (void)!read(done[0], &c, 1);
        say();
        idle();
}

/* 64 MiB that four processes share. */
static void actor_shm(void)
{
        int done[2];
        char c, *p = take(64 * MIB, MAP_SHARED);
        if (pipe(done) < 0)
                _exit(3);
        for (int i = 0; i < 3; i++) {
                if (fork() != 0)
                        continue;
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                fill(p, 64 * MIB, 2);
                (void)!write(done[1], "d", 1);
                idle();
        }
        for (int i = 0; i < 3; i++)
                (void)!read(done[0], &c, 1);
        say();
        idle();
}

/* A child that is abandoned before anybody looked, in a session of its own. */
static void actor_orphan(void)
{
        hear();
        pid_t middle = fork();
        if (middle == 0) {
                if (fork() == 0) {
                        setsid();
                        take(32 * MIB, MAP_PRIVATE);
                        say();
                        idle();
                }
                _exit(0);
        }
        waitpid(middle, NULL, 0);
        idle();
}

/* Two children, of whom one has stopped itself, and a third that is born at a word. */
static void actor_stopped(void)
{
        pid_t child[2];
        int status;
        for (int i = 0; i < 2; i++) {
                child[i] = fork();
                if (child[i] == 0) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL);
                        if (i == 1)
                                raise(SIGSTOP);
                        idle();
                }
        }
        waitpid(child[1], &status, WUNTRACED);
        (void)!write(SAY, &child[1], sizeof child[1]);
        idle();
}

/* Everybody forks, and half of them end soon: never more than STORM at a time and MANY in all, so
 * that a test that fails harms nobody. */
enum { STORM = 100, MANY = 20000 };

static void actor_storm(void)
{
        struct {
                _Atomic int alive, born;
        } *all = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        bool root = true;
        if (all == MAP_FAILED)
                _exit(3);
        all->alive = 1;
        uint64_t until = afz_clock_ns(CLOCK_MONOTONIC) + 30 * AFZ_NS_PER_S;
        say();
        for (unsigned n = 0;; n++) {
                while (waitpid(-1, NULL, WNOHANG) > 0)
                        ;
                if (all->born < MANY && all->alive++ < STORM) {
                        int me = all->born++;
                        pid_t pid = fork();
                        if (pid < 0)
                                all->alive--;
                        if (pid == 0) {
                                root = false;
                                n = me % 2 ? 0 : 1000000;
                        }
                } else {
                        all->alive--;
                        usleep(200);
                }
                if (afz_clock_ns(CLOCK_MONOTONIC) > until)
                        _exit(0);
                if (!root && n == 20) {
                        all->alive--;
                        _exit(0);
                }
        }
}

/* Two children with a child of their own each: a server with two kernels. */
static void actor_parts(void)
{
        for (int i = 0; i < 2; i++) {
                pid_t pid = fork();
                if (pid == 0) {
                        if (fork() == 0)
                                take(16 * MIB, MAP_PRIVATE);
                        else
                                take((uint64_t)(i + 1) * 8 * MIB, MAP_PRIVATE);
                        say();
                        idle();
                }
                (void)!write(SAY, "", 0);
        }
        idle();
}

static void actor_grow(void)
{
        hear();
        take(64 * MIB, MAP_PRIVATE);
        say();
        hear();
        execl("/proc/self/exe", "again", "actor", "grow", (char *)NULL);
}

static const struct {
        const char *name;
        void (*act)(void);
} actors[] = {
        {"forks", actor_forks},     {"shm", actor_shm},     {"orphan", actor_orphan},
        {"stopped", actor_stopped}, {"storm", actor_storm}, {"parts", actor_parts},
        {"grow", actor_grow},
};

/* ---- the guard ---- */

struct job {
        struct afz_env env;
        struct afz_spawn spawn;
        struct afz_hold hold;
        int tell, told;
};

static void start(struct job *j, const char *actor)
{
        int in[2], out[2], keep_in = fcntl(0, F_DUPFD_CLOEXEC, 3),
                           keep_out = fcntl(1, F_DUPFD_CLOEXEC, 3);
        char why[AFZ_HOLD_WHY_CAP];
        char *const argv[] = {(char[]){"/proc/self/exe"}, (char[]){"actor"},
                              (char *)(uintptr_t)actor, NULL};
        assert_int_equal(afz_env_open_live(&j->env), 0);
        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        dup2(in[0], 0);
        dup2(out[1], 1);
        int r = afz_spawn_start(&(struct afz_spawn_plan){.argv = argv}, &j->spawn);
        dup2(keep_in, 0);
        dup2(keep_out, 1);
        close(keep_in), close(keep_out), close(in[0]), close(out[1]);
        assert_int_equal(r, 0);
        j->tell = in[1];
        j->told = out[0];
        j->hold.row = &afz_hold_none;
        struct afz_hold_plan plan = {.id = "t"};
        assert_int_equal(j->hold.row->open(&j->env, &plan, j->spawn.pid, 0, &j->hold.state, why),
                         0);
        assert_int_equal(afz_spawn_go(&j->spawn), 0);
}

/* Everything that is left is ended, and nobody stays behind. */
static void finish(struct job *j)
{
        uint64_t until = afz_clock_ns(CLOCK_MONOTONIC) + 10 * AFZ_NS_PER_S;
        pid_t aide = afz_none_aide(&j->hold), pid;
        for (;;) {
                assert_int_equal(j->hold.row->kill(j->hold.state), 0);
                siginfo_t info = {0};
                /* The aide is the hold's own to reap. */
                while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                       (pid = info.si_pid) != 0 && pid != aide)
                        waitpid(pid, NULL, 0);
                if (j->hold.row->other(j->hold.state, 0) == 0)
                        break;
                assert_true(afz_clock_ns(CLOCK_MONOTONIC) < until);
        }
        afz_hold_close(&j->hold);
        afz_spawn_done(&j->spawn);
        close(j->tell);
        close(j->told);
        afz_env_done(&j->env);
        /* What a test that failed before this one has left must not hold us up. */
        while (waitpid(-1, NULL, WNOHANG) >= 0 && afz_clock_ns(CLOCK_MONOTONIC) < until)
                poll(NULL, 0, 1);
}

static void wait_for(struct job *j, size_t bytes, void *ret)
{
        char buf[64];
        for (size_t n = 0; n < bytes;) {
                struct pollfd p = {.fd = j->told, .events = POLLIN};
                assert_int_equal(poll(&p, 1, 20000), 1);
                ssize_t got = read(j->told, buf + n, bytes - n);
                assert_true(got > 0);
                n += (size_t)got;
        }
        if (ret)
                memcpy(ret, buf, bytes);
}

static void go_on(struct job *j)
{
        assert_int_equal(write(j->tell, "g", 1), 1);
}

static uint64_t figure(struct job *j, enum afz_pulse_figure which)
{
        struct afz_pulse pulse = {0};
        uint64_t v = 0;
        assert_int_equal(j->hold.row->look(j->hold.state, &pulse), 0);
        assert_true(afz_pulse_get(&pulse, which, &v));
        return v;
}

/* Looks as a guard does, until the figure is in the range. */
static uint64_t look_until(struct job *j, enum afz_pulse_figure which, uint64_t low, uint64_t high)
{
        uint64_t until = afz_clock_ns(CLOCK_MONOTONIC) + 10 * AFZ_NS_PER_S, v;
        while ((v = figure(j, which)) < low || v > high) {
                if (afz_clock_ns(CLOCK_MONOTONIC) > until)
                        fail_msg("figure %d is %llu, not in %llu..%llu", which,
                                 (unsigned long long)v, (unsigned long long)low,
                                 (unsigned long long)high);
                poll(NULL, 0, 2);
        }
        return v;
}

static char state_of(struct job *j, uint64_t pid)
{
        char path[32], buf[1024];
        struct afz_span text;
        struct afz_proc_stat st;
        snprintf(path, sizeof path, "%llu/stat", (unsigned long long)pid);
        if (afz_env_read(&j->env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text) < 0)
                return 0;
        assert_int_equal(afz_proc_stat_parse(text, &st), 0);
        return st.state;
}

/* Members that do not stand still. */
static unsigned running(struct job *j, uint64_t but)
{
        struct afz_roster *roster = ((struct afz_none *)j->hold.state)->roster;
        unsigned n = 0;
        for (size_t i = 0; i < afz_roster_slots(roster); i++) {
                const struct afz_roster_row *row = afz_roster_at(roster, i);
                char state = row->pid != 0 && row->pid != but ? state_of(j, row->pid) : 0;
                n += state != 0 && state != 'T' && state != 'Z' && state != 'X';
        }
        return n;
}

/* A signal is sent at once and acted on a moment later. */
static void wait_running(struct job *j, uint64_t but, unsigned n)
{
        uint64_t until = afz_clock_ns(CLOCK_MONOTONIC) + 10 * AFZ_NS_PER_S;
        while (running(j, but) != n) {
                assert_true(afz_clock_ns(CLOCK_MONOTONIC) < until);
                (void)figure(j, AFZ_PULSE_PROCESSES); /* newborns are stopped as they are seen */
        }
}

static void test_forks_share(void **state)
{
        struct job j;
        uint64_t low = UINT64_MAX, high = 0;
        (void)state;
        start(&j, "forks");
        wait_for(&j, 1, NULL);
        look_until(&j, AFZ_PULSE_PROCESSES, 9, 9);
        /* Over the time in which PSS is read, it is never the sum and never a part. */
        for (int i = 0; i < 700; i++) {
                uint64_t need = figure(&j, AFZ_PULSE_NEED);
                low = need < low ? need : low;
                high = need > high ? need : high;
                poll(NULL, 0, 2);
        }
        assert_in_range(low, 128 * MIB, 150 * MIB);
        assert_in_range(high, 128 * MIB, 150 * MIB);
        /* Copies on write show in no counter of a process. */
        go_on(&j);
        wait_for(&j, 1, NULL);
        look_until(&j, AFZ_PULSE_NEED, 1050 * MIB, 1250 * MIB);
        finish(&j);
}

static void test_shared_memory_once(void **state)
{
        struct job j;
        (void)state;
        start(&j, "shm");
        wait_for(&j, 1, NULL);
        look_until(&j, AFZ_PULSE_PROCESSES, 4, 4);
        for (int settled = 0; settled < 100; settled++) {
                uint64_t need = figure(&j, AFZ_PULSE_NEED);
                assert_in_range(need, 64 * MIB, 4 * 72 * MIB);
                if (need > 72 * MIB) { /* another's shared memory grew as well: PSS will tell */
                        look_until(&j, AFZ_PULSE_NEED, 64 * MIB, 72 * MIB);
                        settled = 0;
                }
                poll(NULL, 0, 2);
        }
        finish(&j);
}

static void test_growth_and_exec(void **state)
{
        struct job j;
        (void)state;
        start(&j, "grow");
        look_until(&j, AFZ_PULSE_NEED, 0, 8 * MIB);
        go_on(&j);
        wait_for(&j, 1, NULL);
        assert_in_range(figure(&j, AFZ_PULSE_NEED), 64 * MIB, 72 * MIB);
        go_on(&j); /* runs itself again: the memory is gone */
        look_until(&j, AFZ_PULSE_NEED, 0, 8 * MIB);
        go_on(&j);
        wait_for(&j, 1, NULL);
        assert_in_range(figure(&j, AFZ_PULSE_NEED), 64 * MIB, 72 * MIB);
        finish(&j);
}

static void test_orphan_is_found(void **state)
{
        struct job j;
        (void)state;
        start(&j, "orphan");
        look_until(&j, AFZ_PULSE_PROCESSES, 1, 1);
        pid_t helper = fork(); /* of ours: no orphan of the job */
        if (helper == 0) {
                idle();
        }
        afz_none_spare(&j.hold, helper);
        go_on(&j);
        wait_for(&j, 1, NULL);
        look_until(&j, AFZ_PULSE_PROCESSES, 2, 2);
        pid_t orphan = j.hold.row->other(j.hold.state, j.spawn.pid);
        assert_true(orphan > 0 && orphan != helper);
        assert_int_equal(j.hold.row->kill(j.hold.state), 0);
        assert_int_equal(waitpid(orphan, NULL, 0), orphan); /* it was given to us */
        assert_int_equal(waitpid(helper, NULL, WNOHANG), 0);
        kill(helper, SIGKILL);
        finish(&j);
}

static void test_brake(void **state)
{
        struct job j;
        pid_t theirs;
        (void)state;
        start(&j, "stopped");
        wait_for(&j, sizeof theirs, &theirs);
        look_until(&j, AFZ_PULSE_PROCESSES, 3, 3);
        for (int i = 0; i < 3; i++) {
                assert_int_equal(j.hold.row->brake(j.hold.state), 0);
                wait_running(&j, 0, 0);
                assert_int_equal(j.hold.row->release(j.hold.state), 0);
                wait_running(&j, (uint64_t)theirs, 2);
                assert_int_equal(state_of(&j, (uint64_t)theirs), 'T'); /* not ours to let go */
        }
        finish(&j);
}

static void test_brake_and_kill_a_storm(void **state)
{
        struct job j;
        (void)state;
        start(&j, "storm");
        wait_for(&j, 1, NULL);
        look_until(&j, AFZ_PULSE_PROCESSES, 30, UINT64_MAX);
        assert_int_equal(j.hold.row->brake(j.hold.state), 0);
        wait_running(&j, 0, 0);
        assert_int_equal(j.hold.row->release(j.hold.state), 0);
        finish(&j);
}

static void test_parts(void **state)
{
        struct job j;
        uint64_t need;
        (void)state;
        start(&j, "parts");
        wait_for(&j, 4, NULL);
        look_until(&j, AFZ_PULSE_PROCESSES, 5, 5);
        struct afz_roster *roster = ((struct afz_none *)j.hold.state)->roster;
        pid_t kernel[2] = {0};
        for (size_t i = 0, n = 0; i < afz_roster_slots(roster); i++)
                if (afz_roster_at(roster, i)->ppid == (uint64_t)j.spawn.pid && n < 2)
                        kernel[n++] = (pid_t)afz_roster_at(roster, i)->pid;
        assert_int_equal(j.hold.row->split(j.hold.state, kernel[0]), 0);
        assert_int_equal(j.hold.row->split(j.hold.state, kernel[1]), 1);
        assert_int_equal(j.hold.row->look_part(j.hold.state, 0, &need), 0);
        assert_true(need > 8 * MIB && need < 48 * MIB);
        assert_int_equal(j.hold.row->look_part(j.hold.state, 7, &need), -ESRCH);
        assert_int_equal(j.hold.row->kill_part(j.hold.state, 0), 0);
        look_until(&j, AFZ_PULSE_PROCESSES, 3, 3);
        assert_int_equal(j.hold.row->look_part(j.hold.state, 0, &need), -ESRCH);
        assert_int_equal(j.hold.row->look_part(j.hold.state, 1, &need), 0);
        char other = state_of(&j, (uint64_t)kernel[1]);
        assert_true(other == 'S' || other == 'R'); /* alive, and not stopped */
        finish(&j);
}

/* The guard dies while the job is braked: the job goes on, and the aide is gone. */
static void test_guard_dies_braked(void **state)
{
        int told[2];
        pid_t pid[2];
        (void)state;
        assert_int_equal(pipe2(told, O_CLOEXEC), 0);
        pid_t guard = fork();
        if (guard == 0) {
                struct job j;
                prctl(PR_SET_CHILD_SUBREAPER, 1);
                start(&j, "grow");
                (void)figure(&j, AFZ_PULSE_NEED);
                j.hold.row->brake(j.hold.state);
                pid[0] = j.spawn.pid;
                pid[1] = afz_none_aide(&j.hold);
                (void)!write(told[1], pid, sizeof pid);
                raise(SIGKILL);
        }
        assert_int_equal(read(told[0], pid, sizeof pid), sizeof pid);
        assert_int_equal(waitpid(guard, NULL, 0), guard);
        struct job j;
        assert_int_equal(afz_env_open_live(&j.env), 0);
        uint64_t until = afz_clock_ns(CLOCK_MONOTONIC) + 10 * AFZ_NS_PER_S;
        int status;
        assert_int_equal(waitpid(pid[1], &status, 0), pid[1]); /* we are the next subreaper */
        assert_true(WIFEXITED(status));
        while (state_of(&j, (uint64_t)pid[0]) == 'T')
                assert_true(afz_clock_ns(CLOCK_MONOTONIC) < until);
        kill(pid[0], SIGKILL);
        assert_int_equal(waitpid(pid[0], NULL, 0), pid[0]);
        afz_env_done(&j.env);
        close(told[0]);
        close(told[1]);
}

static void test_nothing_left_behind(void **state)
{
        struct job j;
        size_t fds = afz_fixture_open_fds();
        (void)state;
        for (int i = 0; i < 3; i++) {
                start(&j, "grow");
                (void)figure(&j, AFZ_PULSE_NEED);
                finish(&j);
        }
        assert_int_equal(afz_fixture_open_fds(), fds);
}

static void test_what_it_cannot_do(void **state)
{
        struct job j;
        char place[AFZ_HOLD_PLACE_CAP];
        (void)state;
        start(&j, "grow");
        assert_int_equal(j.hold.row->limit(j.hold.state, &(struct afz_budget){0}), -EOPNOTSUPP);
        assert_int_equal(j.hold.row->slow(j.hold.state, 0), -EOPNOTSUPP);
        assert_int_equal(j.hold.row->oom_fd(j.hold.state), -1);
        j.hold.row->place(j.hold.state, place);
        assert_string_equal(place, "");
        assert_int_equal(j.hold.row->split(j.hold.state, getpid()), -ESRCH);
        finish(&j);
}

int main(int argc, char **argv)
{
        if (argc == 3 && strcmp(argv[1], "actor") == 0)
                for (size_t i = 0; i < sizeof actors / sizeof actors[0]; i++)
                        if (strcmp(argv[2], actors[i].name) == 0)
                                actors[i].act();
#if defined __SANITIZE_THREAD__ /* whose own memory is many times that of the processes here */
        return 77;
#endif
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_growth_and_exec),
                cmocka_unit_test(test_forks_share),
                cmocka_unit_test(test_shared_memory_once),
                cmocka_unit_test(test_orphan_is_found),
                cmocka_unit_test(test_brake),
                cmocka_unit_test(test_brake_and_kill_a_storm),
                cmocka_unit_test(test_parts),
                cmocka_unit_test(test_guard_dies_braked),
                cmocka_unit_test(test_nothing_left_behind),
                cmocka_unit_test(test_what_it_cannot_do),
        };
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
