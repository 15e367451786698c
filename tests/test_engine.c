/* links: engine, fixture */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine.h"
#include "proc_fixture.h"

#define MS   UINT64_C(1000000)
#define S    UINT64_C(1000000000)
#define ROOT 100

static const struct afz_fixture_row machine[] = {
        {"machine", "page_bytes 4096\nclock_ticks 100\nself_pid 42\n"},
        {"proc/42/statm", "1000 200 100 1 0 1 0\n"},
        {"proc/loadavg", "0.00 0.00 0.00 1/1 1\n"},
        {"proc/meminfo",
         "MemTotal: 1000 kB\nMemAvailable: 400 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"},
        {"proc/stat", "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n"},
        {"proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"},
        {"sys/class/", NULL},
        {0},
};

static struct afz_engine *engine_on(struct afz_watched *w, uint64_t pid)
{
        struct afz_engine *e = NULL;
        assert_int_equal(afz_engine_new(&w->env, &(struct afz_target){.pid = pid}, &e), 0);
        return e;
}

static void start(struct afz_watched *w)
{
        afz_watched_init(w, afz_fixture_new(machine));
        afz_watched_proc(w, (struct afz_fake_proc){.pid = ROOT, .ppid = 1, .start = 5, .utime = 0});
        afz_watched_set(w, ROOT, "statm", "1000 100 40 1 0 50 0\n");
}

static void tick(struct afz_watched *w, struct afz_engine *e, uint64_t later_ns)
{
        w->now_ns += later_ns;
        afz_engine_tick(e);
}

static const struct afz_source *source(const struct afz_engine *e, const char *name)
{
        const struct afz_window *w = afz_engine_window(e);
        for (size_t i = 0; i < w->sources; i++)
                if (strcmp(w->source[i].name, name) == 0)
                        return &w->source[i];
        fail_msg("no source %s", name);
        return NULL;
}

static void test_what_is_missing_is_said(void **state)
{
        static const struct afz_fixture_row bare[] = {
                {"proc/loadavg", "0 0 0 1/1 1\n"}, {"not-read", "EACCES proc/meminfo\n"}, {0}};
        struct afz_watched w;
        (void)state;
        afz_watched_init(&w, afz_fixture_new(bare));
        size_t fds = afz_fixture_open_fds();
        struct afz_engine *e = engine_on(&w, 0);
        tick(&w, e, S);
        const struct afz_window *win = afz_engine_window(e);
        for (size_t i = 0; i < win->sources; i++) {
                const struct afz_source *s = &win->source[i];
                assert_non_null(s->name);
                assert_true((s->error < 0) == (s->why != NULL));
                if (s->error < 0)
                        assert_null(s->now);
        }
        assert_int_equal(source(e, "host")->error, -EACCES);
        assert_int_equal(source(e, "psi")->error, -ENODATA);
        assert_int_equal(source(e, "self")->error, 0);
        assert_non_null(source(e, "self")->now);
        assert_int_equal(win->limit.kind, AFZ_LIMIT_UNKNOWN);
        assert_true(afz_engine_job_alive(e));
        assert_null(afz_engine_sense(e, "psi"));
        assert_null(afz_engine_sense(e, "nonsense"));
        afz_engine_free(e);
        afz_engine_free(NULL);
        assert_int_equal(afz_fixture_open_fds(), fds);
        afz_watched_done(&w);
}

/* Whether a process on a GPU is the job's: yes, no, and "there is no job" are three answers. */
static void test_gpu_processes_of_the_job(void **state)
{
        static const struct {
                uint64_t watched;
                int ours; /* -1: not told */
        } cases[] = {{ROOT, 1}, {77, 0}, {0, -1}};
        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct afz_watched w;
                int64_t ours = -1;
                start(&w);
                afz_watched_proc(&w, (struct afz_fake_proc){.pid = 77, .ppid = 1, .start = 6});
                afz_fixture_set(w.fixture, "sys/class/drm/card0/device/uevent",
                                "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n");
                afz_watched_set(&w, ROOT, "fd/3", "-> /dev/dri/renderD128");
                afz_watched_set(&w, ROOT, "fdinfo/3",
                                "drm-driver: amdgpu\ndrm-pdev: 0000:03:00.0\n"
                                "drm-client-id: 3\ndrm-memory-vram: 5 KiB\n");
                struct afz_engine *e = engine_on(&w, cases[i].watched);
                tick(&w, e, S);
                const struct afz_sample *s =
                        afz_window_one(afz_engine_window(e), AFZ_KIND_GPU_PROC);
                assert_non_null(s);
                (void)afz_sample_get(s, AFZ_GPU_PROC_IN_JOB, &ours);
                assert_int_equal(ours, cases[i].ours);
                afz_engine_free(e);
                afz_watched_done(&w);
        }
}

static void test_no_such_job(void **state)
{
        struct afz_watched w;
        struct afz_engine *e = (struct afz_engine *)&w;
        (void)state;
        start(&w);
        size_t fds = afz_fixture_open_fds();
        assert_int_equal(afz_engine_new(&w.env, &(struct afz_target){.pid = 4711}, &e), -ESRCH);
        assert_ptr_equal(e, &w);
        assert_int_equal(afz_fixture_open_fds(), fds);
        afz_watched_done(&w);
}

static void test_rates_and_strips(void **state)
{
        struct afz_watched w;
        double rate;
        int64_t v;
        (void)state;
        start(&w);
        struct afz_engine *e = engine_on(&w, ROOT);
        const struct afz_window *win = afz_engine_window(e);
        tick(&w, e, 0);
        assert_false(afz_window_rate(win, afz_window_one(win, AFZ_KIND_JOB), AFZ_JOB_CPU, &rate));
        afz_watched_stat(&w,
                         (struct afz_fake_proc){.pid = ROOT, .ppid = 1, .start = 5, .utime = 200});
        afz_fixture_set(w.fixture, "proc/pressure/memory",
                        "some avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n");
        tick(&w, e, S);
        assert_true(afz_window_rate(win, afz_window_one(win, AFZ_KIND_JOB), AFZ_JOB_CPU, &rate));
        assert_true(rate == 2e9); /* two cores */
        assert_true(afz_series_get(&win->strip[AFZ_STRIP_PSI_MEMORY], 0, &v) && v == 5000);
        assert_true(afz_series_get(&win->strip[AFZ_STRIP_RAM_USED], 0, &v) && v == 600 * 1024);
        assert_int_equal(win->limit.kind, AFZ_LIMIT_MEMORY);
        assert_int_equal(win->ticks, 2);
        const struct afz_sample *self = afz_window_one(win, AFZ_KIND_SELF);
        assert_int_equal(afz_sample_or(self, AFZ_SELF_RSS, -1), 200 * 4096);
        assert_int_equal(afz_sample_or(self, AFZ_SELF_TICKS, -1), 2);
        assert_int_equal(afz_sample_or(self, AFZ_SELF_DROPPED, -1), 0);
        afz_engine_free(e);
        afz_watched_done(&w);
}

/* A watch of the whole machine is read once a second. In the ticks between, what was known stays:
 * the last reading, and the one before it, without which there is no rate. */
static void test_nothing_new_takes_nothing_away(void **state)
{
        struct afz_watched w;
        double rate;
        (void)state;
        start(&w);
        struct afz_engine *e = engine_on(&w, 0);
        const struct afz_window *win = afz_engine_window(e);
        tick(&w, e, 0);
        afz_watched_stat(&w,
                         (struct afz_fake_proc){.pid = ROOT, .ppid = 1, .start = 5, .utime = 100});
        tick(&w, e, S);
        for (int i = 0; i < 9; i++) {
                tick(&w, e, 100 * MS);
                const struct afz_sample *s = afz_window_find(win, AFZ_KIND_PROC, ROOT);
                if (!afz_window_rate(win, s, AFZ_PROC_USER, &rate) || rate != 1e9)
                        fail_msg("no rate %d00 ms after the reading", i + 1);
        }
        afz_engine_free(e);
        afz_watched_done(&w);
}

/* Senses with a pace of their own are left in peace between, and their rates are over their own
 * readings. */
static void test_paces(void **state)
{
        struct afz_watched w;
        double rate;
        (void)state;
        start(&w);
        struct afz_engine *e = engine_on(&w, ROOT);
        const struct afz_window *win = afz_engine_window(e);
        tick(&w, e, 0);
        afz_fixture_set(w.fixture, "proc/stat",
                        "cpu  100 0 0 0 0 0 0 0 0 0\ncpu0 100 0 0 0 0 0 0 0 0 0\n");
        tick(&w, e, afz_sense_cpu.every_ns / 2);
        assert_null(source(e, "cpu")->before);
        tick(&w, e, afz_sense_cpu.every_ns / 2);
        assert_true(afz_window_rate(win, afz_window_find(win, AFZ_KIND_CPU, AFZ_CPU_ALL),
                                    AFZ_CPU_USER, &rate));
        assert_true(rate == 2e9); /* a second of user time in half a second */
        afz_engine_free(e);
        afz_watched_done(&w);
}

static void test_a_sense_that_fails(void **state)
{
        struct afz_watched w;
        int64_t v;
        (void)state;
        start(&w);
        struct afz_engine *e = engine_on(&w, ROOT);
        const struct afz_window *win = afz_engine_window(e);
        tick(&w, e, 0);
        tick(&w, e, S);
        assert_non_null(source(e, "psi")->before);
        afz_fixture_set(w.fixture, "proc/pressure/memory", "");
        tick(&w, e, S);
        assert_int_equal(source(e, "psi")->error, -ENODATA);
        assert_non_null(source(e, "psi")->why);
        assert_null(afz_window_one(win, AFZ_KIND_PSI)); /* what was is not what is */
        afz_fixture_set(w.fixture, "proc/pressure/memory", "some avg10=0.00 total=9\n");
        tick(&w, e, S);
        assert_int_equal(source(e, "psi")->error, 0);
        assert_null(source(e, "psi")->why);
        assert_null(source(e, "psi")->before); /* no rate across the gap */
        assert_true(afz_series_get(&win->strip[AFZ_STRIP_RAM_USED], 0, &v));
        afz_engine_free(e);
        afz_watched_done(&w);
}

static void test_job_alive(void **state)
{
        struct afz_watched w;
        (void)state;
        start(&w);
        struct afz_engine *e = engine_on(&w, ROOT);
        assert_true(afz_engine_job_alive(e)); /* before the first look nothing is known */
        tick(&w, e, 0);
        assert_true(afz_engine_job_alive(e));
        afz_watched_set(&w, ROOT, "stat", "100 (cut"); /* unreadable is not dead */
        tick(&w, e, S);
        assert_true(afz_engine_job_alive(e));
        afz_watched_stat(&w,
                         (struct afz_fake_proc){.pid = ROOT, .ppid = 1, .start = 5, .state = 'Z'});
        tick(&w, e, S);
        assert_false(afz_engine_job_alive(e));
        /* Somebody else under its number does not bring it back. */
        afz_watched_proc(&w, (struct afz_fake_proc){.pid = ROOT, .ppid = 1, .start = 99});
        tick(&w, e, S);
        tick(&w, e, S);
        assert_false(afz_engine_job_alive(e));
        assert_int_equal(afz_engine_window(e)->limit.kind, AFZ_LIMIT_NONE);
        afz_engine_free(e);
        afz_watched_done(&w);
}

/* Forward by a week, back by a day, still: no rate from it, no crash, and life goes on. */
static void test_clock_jumps(void **state)
{
        struct afz_watched w;
        double rate;
        (void)state;
        start(&w);
        struct afz_engine *e = engine_on(&w, ROOT);
        const struct afz_window *win = afz_engine_window(e);
        w.now_ns = 100000 * S;
        tick(&w, e, 0);
        tick(&w, e, 604800 * S);
        assert_true(afz_window_rate(win, afz_window_one(win, AFZ_KIND_JOB), AFZ_JOB_CPU, &rate));
        w.now_ns -= 86400 * S;
        tick(&w, e, 0);
        assert_false(afz_window_rate(win, afz_window_one(win, AFZ_KIND_JOB), AFZ_JOB_CPU, &rate));
        tick(&w, e, 0);
        assert_false(afz_window_rate(win, afz_window_one(win, AFZ_KIND_JOB), AFZ_JOB_CPU, &rate));
        tick(&w, e, S);
        assert_true(afz_window_rate(win, afz_window_one(win, AFZ_KIND_JOB), AFZ_JOB_CPU, &rate));
        afz_engine_free(e);
        afz_watched_done(&w);
}

static uint64_t recorded_now(void *ctx)
{
        return *(uint64_t *)ctx;
}

/* Every machine that was recorded: it can be looked at, says nothing absurd, and keeps nothing
 * open.
 */
static void check_recording(const char *dir)
{
        struct afz_env env;
        struct afz_engine *e;
        uint64_t now = 1000 * S, pid = 0;
        char path[600], buf[32] = "";
        size_t fds = afz_fixture_open_fds();
        snprintf(path, sizeof path, "%s/job", dir);
        FILE *f = fopen(path, "re");
        if (f) {
                (void)!fread(buf, 1, sizeof buf - 1, f);
                fclose(f);
                (void)afz_span_u64(afz_span_str(buf), &pid);
        }
        assert_int_equal(afz_env_open_fixture(dir, &env), 0);
        env.now_ns = recorded_now;
        env.ctx = &now;
        if (afz_engine_new(&env, &(struct afz_target){.pid = pid}, &e) < 0)
                fail_msg("%s does not open", dir);
        for (int i = 0; i < 30; i++, now += 100 * MS)
                afz_engine_tick(e);
        const struct afz_window *w = afz_engine_window(e);
        const struct afz_sample *host = afz_window_one(w, AFZ_KIND_HOST);
        int64_t total = afz_sample_or(host, AFZ_HOST_MEM_TOTAL, -1);
        int64_t rest = afz_sample_or(host, AFZ_HOST_MEM_AVAILABLE, -1);
        if (total <= 0 || rest < 0 || rest > total)
                fail_msg("%s: %lld of %lld bytes", dir, (long long)rest, (long long)total);
        const struct afz_sample *job = afz_window_one(w, AFZ_KIND_JOB);
        if (afz_sample_or(job, AFZ_JOB_PROCESSES, 0) < 1 || !afz_engine_job_alive(e))
                fail_msg("%s: nobody lives there", dir);
        if (pid != 0 && !afz_window_find(w, AFZ_KIND_PROC, pid))
                fail_msg("%s: the root is not seen", dir);
        afz_engine_free(e);
        afz_env_done(&env);
        assert_int_equal(afz_fixture_open_fds(), fds);
}

static void test_recorded_machines(void **state)
{
        const char *dir = getenv("AFZ_FIXTURES");
        char path[512];
        struct stat st;
        (void)state;
        DIR *list = dir ? opendir(dir) : NULL;
        if (!list)
                skip();
        for (struct dirent *d; (d = readdir(list));) {
                snprintf(path, sizeof path, "%.200s/%.200s/proc", dir, d->d_name);
                if (d->d_name[0] == '.' || stat(path, &st) < 0)
                        continue;
                path[strlen(path) - strlen("/proc")] = '\0';
                print_message("%s\n", d->d_name);
                check_recording(path);
        }
        closedir(list);
}

/* The real thing: a child, here, and all that this machine offers. */
static void test_live(void **state)
{
        struct afz_env env;
        struct afz_engine *e;
        (void)state;
        assert_int_equal(afz_env_open_live(&env), 0);
        size_t fds = afz_fixture_open_fds();
        pid_t pid = fork();
        if (pid == 0)
                for (;;)
                        pause();
        assert_int_equal(afz_engine_new(&env, &(struct afz_target){.pid = (uint64_t)pid}, &e), 0);
        for (int i = 0; i < 5; i++)
                afz_engine_tick(e);
        const struct afz_window *win = afz_engine_window(e);
        assert_non_null(afz_window_find(win, AFZ_KIND_PROC, (uint64_t)pid));
        assert_non_null(afz_window_one(win, AFZ_KIND_HOST));
        assert_non_null(afz_window_find(win, AFZ_KIND_CPU, AFZ_CPU_ALL));
        assert_true(afz_engine_job_alive(e));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        afz_engine_tick(e);
        assert_false(afz_engine_job_alive(e));
        afz_engine_free(e);
        assert_int_equal(afz_fixture_open_fds(), fds);
        afz_env_done(&env);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_missing_is_said),
                cmocka_unit_test(test_gpu_processes_of_the_job),
                cmocka_unit_test(test_no_such_job),
                cmocka_unit_test(test_rates_and_strips),
                cmocka_unit_test(test_nothing_new_takes_nothing_away),
                cmocka_unit_test(test_paces),
                cmocka_unit_test(test_a_sense_that_fails),
                cmocka_unit_test(test_job_alive),
                cmocka_unit_test(test_clock_jumps),
                cmocka_unit_test(test_recorded_machines),
                cmocka_unit_test(test_live),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
