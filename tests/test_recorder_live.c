/* links: engine */
/* The recorder as processes: what the writer holds, what it outlives, when it ends. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "clock.h"
#include "flight_file.h"
#include "recorder.h"
#include "run_fixture.h"

/* Nothing here takes so long; who waits until then has found an error. */
#define PATIENCE_NS (UINT64_C(20) * AFZ_NS_PER_S)

static void nap(void)
{
        const struct timespec ms = {0, 2000000};
        nanosleep(&ms, NULL);
}

static uint64_t now_ns(void)
{
        return afz_clock_ns(CLOCK_MONOTONIC);
}

/* What the two sides of a test share. */
static struct {
        _Atomic int done;
        _Atomic int32_t writer;
} * shared;

static int setup_live(void **state)
{
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                      0);
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* orphans are given to us */
        return shared == MAP_FAILED ? -1 : setup(state);
}

static int teardown_live(void **state)
{
        munmap(shared, sizeof *shared);
        return teardown(state);
}

static struct afz_recorder *record(struct afz_run *run)
{
        struct afz_recorder *r;
        char cmd[] = "cmd", cwd[] = "/", git[] = "";
        struct afz_flight_head head = {.run = "r", .host = "h", .cmd = cmd, .cwd = cwd, .git = git};
        int err = afz_recorder_start(run, &head, &r);
        return err < 0 ? NULL : r;
}

static void put_need(struct afz_recorder *r, uint64_t bytes)
{
        struct afz_sample s = {.t_ns = now_ns(), .subject = {.kind = AFZ_KIND_HOLD}, .name = "job"};
        afz_sample_set_u64(&s, AFZ_HOLD_NEED, bytes);
        afz_recorder_pulse(r, &s);
}

static bool has_ended(pid_t pid)
{
        uint64_t end_ns = now_ns() + PATIENCE_NS;
        while (waitpid(pid, NULL, WNOHANG) == 0) {
                if (now_ns() > end_ns)
                        return false;
                nap();
        }
        return true;
}

static void read_flight(const struct afz_run *run, struct afz_flight *ret)
{
        char why[256] = "";
        afz_flight_init(ret);
        int r = afz_flight_read(run->dir_fd, NULL, ret, why);
        if (r < 0)
                fail_msg("%d: %s", r, why);
}

static size_t points(const struct afz_flight *flight)
{
        const struct afz_column *c =
                afz_track_column(afz_flight_one(flight, AFZ_KIND_HOLD), AFZ_HOLD_NEED);
        return c ? c->count : 0;
}

static void test_from_start_to_end(void **state)
{
        struct afz_run run;
        struct afz_flight flight;
        (void)state;
        start(at("d"), &run);
        struct afz_recorder *r = record(&run);
        assert_non_null(r);
        pid_t writer = afz_recorder_pid(r);
        afz_recorder_go(r, AFZ_TIER_CGROUP2);
        for (uint64_t i = 0; i < 50; i++)
                put_need(r, i);
        afz_recorder_mark(r, now_ns(), AFZ_MARK_SAID, 0, "warn: it grows");
        afz_recorder_stop(r, 0);
        put_need(r, 99); /* too late */
        uint64_t begin_ns = now_ns();
        afz_recorder_stop(r, PATIENCE_NS);
        assert_true(now_ns() - begin_ns < PATIENCE_NS);
        read_flight(&run, &flight); /* at once: who has waited may read */
        assert_true(flight.ended);
        assert_int_equal(flight.holes, 0);
        assert_int_equal(points(&flight), 50);
        assert_int_equal(flight.marks, 1);
        assert_string_equal(flight.mark[0].text, "warn: it grows");
        assert_int_equal(flight.head.tier, AFZ_TIER_CGROUP2);
        assert_string_equal(flight.head.cmd, "cmd");
        afz_flight_done(&flight);
        assert_int_equal(afz_recorder_trouble(r), 0);
        afz_recorder_free(r);
        assert_true(has_ended(writer));
        assert_int_equal(mode_of(at("d/" AFZ_FLIGHT_NAME)), 0600);
        finish(&run, 0);
}

/* A command that is not there, --dry-run: nothing is written. */
static void test_a_job_that_never_ran(void **state)
{
        struct afz_run run;
        (void)state;
        start(at("d"), &run);
        struct afz_recorder *r = record(&run);
        pid_t writer = afz_recorder_pid(r);
        put_need(r, 1);
        afz_recorder_free(r);
        assert_true(has_ended(writer));
        assert_false(is_there(at("d/" AFZ_FLIGHT_NAME)));
        finish(&run, 0);
        struct afz_run none = {.dir_fd = -1};
        assert_int_equal(afz_recorder_start(&none, NULL, &r), -ENOENT);
}

/* Whoever waits for the guard's descriptors to be closed, or for the run's lock, does not wait for
 * the writer; and a signal from the terminal is not meant for it. */
static void test_it_holds_nothing_of_ours(void **state)
{
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGUSR1, SIGPIPE};
        struct afz_run run;
        char page[AFZ_RUN_PATH_CAP];
        int fd[2];
        (void)state;
        start(at("d"), &run);
        snprintf(page, sizeof page, "%s", run.page_path);
        assert_int_equal(pipe(fd), 0);
        int high = fcntl(fd[1], F_DUPFD, 200), out = dup(1);
        dup2(fd[1], 1); /* as when the guard's output is a pipe */
        struct afz_recorder *r = record(&run);
        dup2(out, 1);
        close(out);
        close(high);
        close(fd[1]);
        afz_recorder_go(r, AFZ_TIER_NONE);
        struct pollfd p = {.fd = fd[0], .events = POLLIN};
        assert_int_equal(poll(&p, 1, 20000), 1);
        assert_true(p.revents & POLLHUP);
        close(fd[0]);
        for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
                assert_int_equal(kill(afz_recorder_pid(r), signals[i]), 0);
        afz_run_leave(&run);
        int lock = open(page, O_RDWR | O_CLOEXEC);
        assert_true(lock >= 0);
        assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
        close(lock);
        assert_int_equal(waitpid(afz_recorder_pid(r), NULL, WNOHANG), 0); /* lives */
        assert_int_equal(getpgid(afz_recorder_pid(r)), getpgrp());
        assert_true(getpriority(PRIO_PROCESS, (id_t)afz_recorder_pid(r)) >= 0);
        pid_t writer = afz_recorder_pid(r);
        afz_recorder_free(r);
        assert_true(has_ended(writer));
        assert_true(is_there(at("d/" AFZ_FLIGHT_NAME)));
}

/* A guard that records so many looks, forks something that holds all it has, and waits. */
_Noreturn static void be_guard(struct afz_run *run, unsigned looks)
{
        struct afz_recorder *r = record(run);
        if (!r)
                _exit(1);
        atomic_store(&shared->writer, (int32_t)afz_recorder_pid(r));
        afz_recorder_go(r, AFZ_TIER_NONE);
        for (unsigned i = 0; i < looks; i++)
                put_need(r, i);
        pid_t self = getpid();
        if (fork() == 0) {
                prctl(PR_SET_PDEATHSIG, SIGUSR2);
                while (getppid() == self)
                        pause();
                for (int i = 0; i < 100; i++) /* longer than its parent */
                        nap();
                _exit(0);
        }
        atomic_store(&shared->done, 1);
        for (;;)
                pause();
}

/* It is killed: what it had put is there to the last, and the file is closed. */
static void test_it_outlives_the_guard(void **state)
{
        for (unsigned looks = 1; looks < 300; looks += 149) {
                struct afz_run run;
                struct afz_flight flight;
                (void)state;
                start(NULL, &run);
                atomic_store(&shared->done, 0);
                pid_t guard = fork();
                if (guard == 0)
                        be_guard(&run, looks);
                uint64_t end_ns = now_ns() + PATIENCE_NS;
                while (!atomic_load(&shared->done) && now_ns() < end_ns)
                        nap();
                kill(guard, SIGKILL);
                assert_int_equal(waitpid(guard, NULL, 0), guard);
                assert_true(has_ended((pid_t)atomic_load(&shared->writer)));
                read_flight(&run, &flight);
                assert_true(flight.ended);
                assert_int_equal(points(&flight), looks);
                afz_flight_done(&flight);
                while (waitpid(-1, NULL, 0) > 0)
                        ;
                finish(&run, 0);
        }
}

/* Killed itself: what it wrote stays, the guard is none the worse. */
static void test_a_writer_that_was_killed(void **state)
{
        struct afz_run run;
        struct afz_flight flight;
        (void)state;
        start(at("d"), &run);
        struct afz_recorder *r = record(&run);
        afz_recorder_go(r, AFZ_TIER_NONE);
        put_need(r, 1);
        uint64_t end_ns = now_ns() + PATIENCE_NS;
        size_t seen = 0;
        while (seen == 0 && now_ns() < end_ns) { /* read while it is written */
                char why[256];
                afz_flight_init(&flight);
                if (afz_flight_read(run.dir_fd, NULL, &flight, why) >= 0)
                        seen = points(&flight);
                assert_false(seen && flight.ended);
                afz_flight_done(&flight);
                nap();
        }
        assert_int_equal(seen, 1);
        kill(afz_recorder_pid(r), SIGKILL);
        assert_int_equal(waitpid(afz_recorder_pid(r), NULL, 0), afz_recorder_pid(r));
        for (uint64_t i = 0; i < 20000; i++)
                put_need(r, i << 12); /* nobody takes them */
        afz_recorder_go(r, AFZ_TIER_NONE);
        afz_recorder_stop(r, PATIENCE_NS);
        read_flight(&run, &flight);
        assert_false(flight.ended);
        assert_int_equal(points(&flight), 1);
        afz_flight_done(&flight);
        afz_recorder_free(r);
        finish(&run, 0);
}

/* The disk takes no more (a limit is as good, and nobody need be root for it): the guard can tell,
 * and all ends in order. */
static void test_a_full_disk(void **state)
{
        struct rlimit before, small;
        struct stat file;
        struct afz_run run;
        (void)state;
        start(at("d"), &run);
        struct afz_recorder *r = record(&run);
        pid_t writer = afz_recorder_pid(r);
        uint64_t end_ns = now_ns() + PATIENCE_NS;
        afz_recorder_go(r, AFZ_TIER_NONE);
        while (stat(at("d/" AFZ_FLIGHT_NAME), &file) < 0 || file.st_size == 0) {
                assert_true(now_ns() < end_ns);
                nap();
        }
        assert_int_equal(prlimit(writer, RLIMIT_FSIZE, NULL, &before), 0);
        small = (struct rlimit){.rlim_cur = (rlim_t)file.st_size, .rlim_max = before.rlim_max};
        assert_int_equal(prlimit(writer, RLIMIT_FSIZE, &small, NULL), 0);
        for (uint64_t i = 0; afz_recorder_trouble(r) == 0 && now_ns() < end_ns; i++) {
                put_need(r, i * 1234567);
                nap();
        }
        assert_true(afz_recorder_trouble(r) < 0);

        /* There is room again, and the loss is told. */
        assert_int_equal(prlimit(writer, RLIMIT_FSIZE, &before, NULL), 0);
        while (afz_recorder_trouble(r) < 0 && now_ns() < end_ns) {
                put_need(r, 1);
                nap();
        }
        assert_int_equal(afz_recorder_trouble(r), 0);
        afz_recorder_stop(r, PATIENCE_NS);
        struct afz_flight flight;
        read_flight(&run, &flight);
        assert_true(flight.ended);
        assert_true(points(&flight) > 0);
        bool told = false;
        for (size_t i = 0; i < flight.marks; i++)
                told |= flight.mark[i].kind == AFZ_MARK_GAP;
        afz_flight_done(&flight);
        afz_recorder_free(r);
        assert_true(has_ended(writer));
        assert_true(told);
        finish(&run, 0);
}

/* After a power cut the disk's own time counts, so it stands in the recording while it is written.
 */
static void test_the_disk_is_told(void **state)
{
        struct afz_run run;
        struct afz_flight flight;
        int64_t took_ns = 0;
        (void)state;
        start(at("d"), &run);
        struct afz_recorder *r = record(&run);
        pid_t writer = afz_recorder_pid(r);
        uint64_t end_ns = now_ns() + PATIENCE_NS;
        afz_recorder_go(r, AFZ_TIER_NONE);
        while (took_ns == 0 && now_ns() < end_ns) {
                put_need(r, 1);
                nap();
                if (afz_flight_read(run.dir_fd, NULL, &flight, NULL) < 0)
                        continue;
                const struct afz_track *own = afz_flight_one(&flight, AFZ_KIND_SELF);
                if (own && strcmp(own->name, "afz-writer") == 0)
                        (void)afz_column_last(afz_track_column(own, AFZ_SELF_TICK), UINT32_MAX,
                                              &took_ns);
                afz_flight_done(&flight);
        }
        assert_true(took_ns > 0);
        assert_int_equal(afz_recorder_trouble(r), 0);
        afz_recorder_stop(r, PATIENCE_NS);
        afz_recorder_free(r);
        assert_true(has_ended(writer));
        finish(&run, 0);
}

int main(void)
{
#define LIVE(test) cmocka_unit_test_setup_teardown(test, setup_live, teardown_live)
        const struct CMUnitTest tests[] = {
                LIVE(test_from_start_to_end),        LIVE(test_a_job_that_never_ran),
                LIVE(test_it_holds_nothing_of_ours), LIVE(test_it_outlives_the_guard),
                LIVE(test_a_writer_that_was_killed), LIVE(test_a_full_disk),
                LIVE(test_the_disk_is_told),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
