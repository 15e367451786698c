/* links: sense, fixture */
/* The job sense on real processes, which are born and die under it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "job_fixture.h"
#include "role.h"

#define MS  UINT64_C(1000000)
#define S   UINT64_C(1000000000)
#define KIB INT64_C(1024)

static uint64_t moved_now(void *ctx)
{
        return *(uint64_t *)ctx;
}

struct live {
        struct afz_env env;
        uint64_t now_ns;
        int told[2];
};

static void live_start(struct live *l)
{
        assert_int_equal(afz_env_open_live(&l->env), 0);
        l->now_ns = S;
        l->env.now_ns = moved_now;
        l->env.ctx = &l->now_ns;
        assert_int_equal(pipe(l->told), 0);
}

static void live_done(struct live *l)
{
        close(l->told[0]);
        close(l->told[1]);
        afz_env_done(&l->env);
}

static void tell(int fd, int64_t v)
{
        if (write(fd, &v, sizeof v) != sizeof v)
                _exit(1);
}

static int64_t hear(struct live *l)
{
        int64_t v;
        assert_int_equal(read(l->told[0], &v, sizeof v), sizeof v);
        return v;
}

static _Noreturn void wait_for_the_end(void)
{
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed assertion must not leave anybody behind */
        for (;;)
                pause();
}

static void end(pid_t pid)
{
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
}

/* Killed and reaped while we hold its files: -ESRCH, and not a zero to be seen. */
static void test_live_vanishes(void **state)
{
        struct live l;
        struct afz_reading r;
        (void)state;
        live_start(&l);
        pid_t pid = fork();
        if (pid == 0)
                wait_for_the_end();
        assert_int_equal(afz_reading_open(&r, &afz_sense_job, &l.env, (uint64_t)pid), 0);
        assert_int_equal(afz_reading_take(&r), 0);
        assert_true(afz_value(proc_of(&r, (uint64_t)pid), AFZ_PROC_RSS) > 0);
        kill(pid, SIGKILL);
        siginfo_t info;
        waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
        l.now_ns += 100 * MS;
        assert_int_equal(afz_reading_take(&r), 0);
        assert_int_equal(afz_value(proc_of(&r, (uint64_t)pid), AFZ_PROC_STATE), 'Z');
        assert_int_equal(afz_value(proc_of(&r, (uint64_t)pid), AFZ_PROC_RSS), AFZ_ABSENT);
        waitpid(pid, NULL, 0);
        l.now_ns += 100 * MS;
        assert_int_equal(afz_reading_take(&r), 0);
        assert_null(proc_of(&r, (uint64_t)pid));
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_PROCESSES), 0);
        afz_reading_done(&r);
        live_done(&l);
}

static int64_t live_status_kib(struct live *l, pid_t pid, const char *key)
{
        char path[64], buf[8192];
        struct afz_span text, line, name;
        uint64_t v;
        assert_true(afz_path(path, sizeof path, "%d/status", (int)pid) > 0);
        assert_int_equal(afz_env_read(&l->env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text), 0);
        while (afz_span_take_line(&text, &line) == 0)
                if (afz_span_take_word(&line, &name) == 0 && afz_span_eq(name, key) &&
                    afz_span_take_u64(&line, &v) == 0)
                        return (int64_t)v;
        return -1;
}

/* 64 MiB touched by a parent and shared with three forks: each has it in its RSS, and the job needs
 * it once. */
static void test_live_shared_memory_counts_once(void **state)
{
        enum { FORKS = 3, MIB64 = 64 << 20 };
        struct live l;
        struct afz_reading r;
        pid_t kid[FORKS];
        (void)state;
        live_start(&l);
        pid_t pid = fork();
        if (pid == 0) {
                char *p = mmap(NULL, MIB64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                               0);
                if (p == MAP_FAILED)
                        _exit(1);
                memset(p, 1, MIB64);
                for (int i = 0; i < FORKS; i++) {
                        pid_t k = fork();
                        if (k == 0)
                                wait_for_the_end();
                        tell(l.told[1], k);
                }
                wait_for_the_end();
        }
        for (int i = 0; i < FORKS; i++)
                kid[i] = (pid_t)hear(&l);
        assert_int_equal(afz_reading_open(&r, &afz_sense_job, &l.env, (uint64_t)pid), 0);
        int64_t before = live_status_kib(&l, pid, "VmRSS:");
        assert_int_equal(afz_reading_take(&r), 0);
        int64_t after = live_status_kib(&l, pid, "VmRSS:");
        int64_t rss = afz_value(proc_of(&r, (uint64_t)pid), AFZ_PROC_RSS) / KIB;
        /* Kernels since 6.2 keep the counter on each core: it may lag by a few pages. */
        assert_true(rss >= before - 2048 && rss <= after + 2048);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_PROCESSES), 1 + FORKS);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_NEED_BOUND), 0);
        int64_t sum = afz_value(job_of(&r), AFZ_JOB_RSS),
                need = afz_value(job_of(&r), AFZ_JOB_NEED);
        assert_true(sum > 4 * (int64_t)MIB64);
        assert_true(need >= (int64_t)MIB64 - (4 << 20));
        /* Of the four times 64 MiB, three are not there (whatever else a sanitizer adds to both).
         */
        assert_true(sum - need > 2 * (int64_t)MIB64);
        for (int i = 0; i < FORKS; i++)
                kill(kid[i], SIGKILL);
        end(pid);
        afz_reading_done(&r);
        live_done(&l);
}

/* Processor time and faults of a child that works, between what the kernel says before and after.
 */
static void test_live_counters(void **state)
{
        struct live l;
        struct afz_reading r;
        clockid_t clock;
        struct timespec before, after;
        (void)state;
        live_start(&l);
        pid_t pid = fork();
        if (pid == 0) {
                tell(l.told[1], 1);
                for (volatile unsigned i = 0;; i++)
                        ;
        }
        (void)hear(&l);
        assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
        assert_int_equal(afz_reading_open(&r, &afz_sense_job, &l.env, (uint64_t)pid), 0);
        do /* until it has had 50 ms: the kernel counts in ticks of 10 */
                clock_gettime(clock, &before);
        while (before.tv_sec == 0 && before.tv_nsec < 50000000);
        assert_int_equal(afz_reading_take(&r), 0);
        clock_gettime(clock, &after);
        int64_t ours = afz_value(job_of(&r), AFZ_JOB_CPU);
        int64_t least = before.tv_sec * (int64_t)S + before.tv_nsec - (int64_t)(20 * MS);
        int64_t most = after.tv_sec * (int64_t)S + after.tv_nsec + (int64_t)(20 * MS);
        assert_true(least <= ours && ours <= most);
        assert_int_equal(afz_value(proc_of(&r, (uint64_t)pid), AFZ_PROC_STATE), 'R');
        assert_true(afz_value(proc_of(&r, (uint64_t)pid), AFZ_PROC_MINOR_FAULTS) > 0);
        end(pid);
        afz_reading_done(&r);
        live_done(&l);
}

static rlim_t raise_files(rlim_t want)
{
        struct rlimit lim;
        getrlimit(RLIMIT_NOFILE, &lim);
        struct rlimit more = {want, lim.rlim_max > want ? lim.rlim_max : want};
        if (setrlimit(RLIMIT_NOFILE, &more) < 0) { /* root may; others get what there is */
                lim.rlim_cur = lim.rlim_max < want ? lim.rlim_max : want;
                (void)setrlimit(RLIMIT_NOFILE, &lim);
        }
        getrlimit(RLIMIT_NOFILE, &lim);
        return lim.rlim_cur;
}

struct counted {
        uint64_t now_ns;
        unsigned opens;
};

static void count_opens(void *ctx, enum afz_root root, enum afz_open_kind kind, const char *path,
                        int err)
{
        (void)root, (void)kind, (void)path, (void)err;
        ((struct counted *)ctx)->opens++;
}

/* 100,000 open files, or as many as we may have: the count is right (or absent, on kernels that
 * make one count by hand), and it takes no more looks than a process with ten of them. */
static void test_live_100000_files(void **state)
{
        enum { FILES = 100000 };
        struct live l;
        unsigned opens[2];
        (void)state;
        live_start(&l);
        for (int round = 0; round < 2; round++) {
                struct afz_reading r;
                struct counted counted = {.now_ns = S};
                struct afz_env env = l.env;
                env.ctx = &counted;
                env.on_open = count_opens;
                pid_t pid = fork();
                if (pid == 0) {
                        rlim_t limit = round == 0 ? 64 : raise_files(FILES + 64);
                        int last = 0;
                        for (rlim_t i = 0; i + 32 < limit && i < FILES && last >= 0; i++)
                                last = dup(l.told[1]);
                        tell(l.told[1], (int64_t)afz_fixture_open_fds());
                        wait_for_the_end();
                }
                /* opendir() had one open itself, and . and .. were counted with the rest. */
                int64_t files = hear(&l) - 3;
                assert_int_equal(afz_reading_open(&r, &afz_sense_job, &env, (uint64_t)pid), 0);
                counted.opens = 0;
                assert_int_equal(afz_reading_take(&r), 0);
                opens[round] = counted.opens;
                int64_t ours = afz_value(proc_of(&r, (uint64_t)pid), AFZ_PROC_FDS);
                if (ours != files && !(ours == AFZ_ABSENT && files > 4096))
                        fail_msg("%lld of %lld files", (long long)ours, (long long)files);
                print_message("%lld files: %lld counted, %u opens\n", (long long)files,
                              (long long)ours, counted.opens);
                end(pid);
                afz_reading_done(&r);
        }
        assert_in_range(opens[1], 1,
                        opens[0] + 8); /* who is born beside us costs one or the other */
        live_done(&l);
}

/* As an ordinary user, looking at root's process: only root can play both, so others skip. */
static void test_live_not_ours(void **state)
{
        int status;
        (void)state;
        if (getuid() != 0)
                skip();
        pid_t target = fork();
        if (target == 0)
                wait_for_the_end();
        pid_t looker = fork();
        if (looker == 0) {
                struct afz_env env;
                struct afz_reading r;
                if (setgid(65534) < 0 || setuid(65534) < 0 || afz_env_open_live(&env) < 0 ||
                    afz_reading_open(&r, &afz_sense_job, &env, (uint64_t)target) < 0 ||
                    afz_reading_take(&r) < 0)
                        _exit(1);
                const struct afz_sample *s = proc_of(&r, (uint64_t)target);
                if (!s || afz_value(s, AFZ_PROC_RSS) <= 0)
                        _exit(2);
                if (afz_value(s, AFZ_PROC_READ) != AFZ_ABSENT ||
                    afz_value(s, AFZ_PROC_FDS) != AFZ_ABSENT ||
                    afz_value(s, AFZ_PROC_PSS) != AFZ_ABSENT)
                        _exit(3);
                if (afz_value(job_of(&r), AFZ_JOB_UNREADABLE) != 1 ||
                    afz_value(job_of(&r), AFZ_JOB_READ) != AFZ_ABSENT ||
                    afz_value(job_of(&r), AFZ_JOB_FDS) != AFZ_ABSENT)
                        _exit(4);
                _exit(0);
        }
        assert_int_equal(waitpid(looker, &status, 0), looker);
        end(target);
        assert_int_equal(status, 0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_live_vanishes),
                cmocka_unit_test(test_live_shared_memory_counts_once),
                cmocka_unit_test(test_live_counters),
                cmocka_unit_test(test_live_100000_files),
                cmocka_unit_test(test_live_not_ours),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
