/* Captures a small machine that is a fixture itself, and looks at the capture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "engine.h"
#include "fixture.h"

#define STAT(pid, comm, ppid)                                                                      \
#pid " (" comm ") S " #ppid " " #pid " " #pid                                              \
             " 0 -1 0 5 0 1 0 7 3 0 0 20 0 1 0 99 4096 2 "                                         \
             "18446744073709551615 111 222 333 444 555 0 0 0 0 0 0 0 17 0 0 0 0 0 0 666 0 0\n"

/* 100 is the job, 200 a stranger, 300 ends while we look; 7 is Antifreeze. */
static const struct afz_fixture_row machine[] = {
        {"machine", "page_bytes 4096\nclock_ticks 100\nself_pid 7\n"},
        {"fs_space", "1000 500 400 10 5 /mnt/acme\n64 32 32 10 5 /dev/shm\n"},
        {"not-read", "EACCES proc/100/io\nEPERM dev/kmsg\n"},
        {"proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n"},
        {"proc/vmstat", "pgmajfault 5\noom_kill 0\n"},
        {"proc/stat", "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n"},
        {"proc/loadavg", "0.10 0.20 0.30 1/9 300\n"},
        {"proc/diskstats", "   8 0 sda 1 2 3 4 5 6 7 8 0 9 10\n"},
        {"proc/net/dev", "  acme0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"},
        {"sys/class/net/acme0/operstate", "up\n"},
        {"proc/7/statm", "10 5 1 0 0 0 0\n"},
        {"proc/7/cgroup", "0::/acme.slice\n"},
        {"proc/100/stat", STAT(100, "python3", 1)},
        {"proc/100/statm", "100 50 20 0 0 0 0\n"},
        {"proc/100/status", "Name:\tpython3\nVmHWM:\t 300 kB\nGroups:\t4 24\n"},
        {"proc/100/cmdline", "/opt/acme/python3\0acme.py\0--key=acme\0", 38},
        {"proc/100/environ", "TOKEN=acme\0RANK=2\0", 18},
        {"proc/100/cgroup", "0::/acme.slice/job-acme.scope\n"},
        {"proc/100/cwd", "-> /mnt/acme/run"},
        {"proc/100/root", "-> /"},
        {"proc/100/mountinfo", "1 0 8:0 / / rw - ext4 /dev/sda rw\n"
                               "2 1 8:1 / /mnt/acme rw - ext4 /dev/mapper/acme rw,acme\n"},
        {"dev/mapper/acme", "-> ../sda"},
        {"proc/100/fd/0", "-> /mnt/acme/data"},
        {"proc/100/fd/1", "-> socket:[17]"},
        {"proc/100/fdinfo/0", "pos:\t0\nflags:\t0100002\nmnt_id:\t2\n"},
        {"proc/100/fdinfo/1", "pos:\t0\nflags:\t02\nmnt_id:\t1\n"},
        {"proc/100/task/100/stat", STAT(100, "python3", 1)},
        {"proc/200/stat", STAT(200, "acmed", 1)},
        {"cgroup/cgroup.controllers", "memory\n"},
        {"cgroup/acme.slice/memory.max", "819200\n"},
        {"cgroup/acme.slice/memory.current", "4096\n"},
        {"cgroup/acme.slice/job-acme.scope/memory.max", "max\n"},
        {"cgroup/acme.slice/job-acme.scope/memory.current", "2048\n"},
        {0},
};

struct place {
        struct afz_fixture *f;
        char dir[256]; /* where to capture */
};

static int set_up(void **state)
{
        static struct place place;
        char parent[] = "/tmp/afz-capture-tree-XXXXXX";
        if (!mkdtemp(parent))
                return -1;
        place.f = afz_fixture_new(machine);
        snprintf(place.dir, sizeof place.dir, "%s/new", parent);
        *state = &place;
        return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st, (void)type, (void)ftw;
        return remove(path);
}

static int tear_down(void **state)
{
        struct place *p = *state;
        afz_fixture_free(p->f);
        *strrchr(p->dir, '/') = '\0';
        return nftw(p->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int capture(struct place *p, uint64_t pid)
{
        struct afz_capture_result result;
        return afz_capture(afz_fixture_env(p->f),
                           &(struct afz_capture_request){p->dir, pid, "1.2.3"}, &result);
}

static int leaks;

static int look_for_acme(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        char buf[8192];
        ssize_t n = 0;
        int fd;
        if (type == FTW_SL) {
                n = readlink(path, buf, sizeof buf);
        } else if (S_ISREG(st->st_mode) && (fd = open(path, O_RDONLY)) >= 0) {
                n = read(fd, buf, sizeof buf);
                close(fd);
        }
        if (strstr(path + ftw->base, "acme") || (n > 0 && memmem(buf, (size_t)n, "acme", 4))) {
                print_error("private: %s\n", path);
                leaks++;
        }
        return 0;
}

/* Every value of every sense, in order. */
static void dump(const struct afz_env *env, FILE *out)
{
        struct afz_engine *engine;
        assert_int_equal(afz_engine_new(env, &(struct afz_target){100}, &engine), 0);
        afz_engine_tick(engine);
        const struct afz_window *w = afz_engine_window(engine);
        for (size_t i = 0; i < w->sources; i++) {
                const struct afz_source *s = &w->source[i];
                fprintf(out, "%s: %s\n", s->name, s->why ? s->why : "ok");
                for (size_t k = 0; s->now && k < s->now->count; k++) {
                        const struct afz_sample *x = &s->now->sample[k];
                        if (x->subject.kind == AFZ_KIND_SELF)
                                continue;
                        for (unsigned m = 0; m < AFZ_METRICS_PER_KIND; m++)
                                if (x->present >> m & 1)
                                        fprintf(out, "%u %u %lld\n", x->subject.kind, m,
                                                (long long)x->value[m]);
                }
        }
        afz_engine_free(engine);
}

static void assert_same_lines(char *got, char *want)
{
        char *g, *w;
        while ((g = strsep(&got, "\n")), (w = strsep(&want, "\n")), g && w)
                if (strcmp(g, w) != 0)
                        fail_msg("'%s' and not '%s'", g, w);
        assert_ptr_equal(g, w); /* both at their end */
}

static void test_capture_shows_the_same_and_nothing_private(void **state)
{
        struct place *p = *state;
        struct afz_env copy;
        char *a = NULL, *b = NULL;
        size_t n;
        assert_int_equal(capture(p, 100), 0);
        leaks = 0;
        assert_int_equal(nftw(p->dir, look_for_acme, 16, FTW_PHYS), 0);
        assert_int_equal(leaks, 0);

        FILE *out = open_memstream(&a, &n);
        dump(afz_fixture_env(p->f), out);
        fclose(out);
        assert_int_equal(afz_env_open_fixture(p->dir, &copy), 0);
        copy.now_ns = afz_fixture_env(p->f)->now_ns;
        copy.ctx = afz_fixture_env(p->f)->ctx;
        out = open_memstream(&b, &n);
        dump(&copy, out);
        fclose(out);
        afz_env_done(&copy);
        assert_non_null(strstr(a, "819200")); /* or both would be empty */
        assert_same_lines(b, a);
        free(a);
        free(b);
}

static void assert_missing(const struct place *p, const char *path)
{
        char full[512];
        struct stat st;
        snprintf(full, sizeof full, "%s/%s", p->dir, path);
        if (lstat(full, &st) == 0)
                fail_msg("%s is there", path);
}

static void test_strangers_are_only_their_stat(void **state)
{
        struct place *p = *state;
        char path[512];
        afz_fixture_set(p->f, "proc/200/cmdline", "stranger");
        assert_int_equal(capture(p, 100), 0);
        snprintf(path, sizeof path, "%s/proc/200/stat", p->dir);
        assert_int_equal(access(path, F_OK), 0);
        assert_missing(p, "proc/200/cmdline");
        assert_missing(p, "proc/100/io"); /* might not be read: listed, not there */
}

/* What stands in a mount table is anybody's. */
static void test_no_path_leads_out(void **state)
{
        struct place *p = *state;
        char path[512], text[4096];
        afz_fixture_set(p->f, "sys/link", "-> ../sda");
        afz_fixture_set(p->f, "proc/100/mountinfo",
                        "1 0 8:0 / / rw - ext4 /dev/sda rw\n"
                        "2 1 0:9 / /mnt/acme rw - btrfs /dev/../sys/link rw\n");
        assert_int_equal(capture(p, 100), 0);
        snprintf(path, sizeof path, "%s/not-read", p->dir);
        int fd = open(path, O_RDONLY);
        ssize_t n = read(fd, text, sizeof text - 1);
        close(fd);
        assert_true(n > 0);
        text[n] = '\0';
        assert_non_null(strstr(text, "\nEXDEV dev/../sys/"));
}

static void test_folders_that_are_taken(void **state)
{
        struct place *p = *state;
        char path[256];
        assert_int_equal(mkdir(p->dir, 0755), 0);
        assert_int_equal(capture(p, 12345), -ESRCH);
        assert_missing(p, "about");
        assert_int_equal(rmdir(p->dir), 0); /* still empty */

        assert_int_equal(mkdir(p->dir, 0755), 0);
        assert_int_equal(capture(p, 100), 0); /* an empty one is filled */
        assert_int_equal(capture(p, 100), -EEXIST);

        snprintf(path, sizeof path, "%s", p->dir);
        snprintf(p->dir, sizeof p->dir, "%.200s/about", path);
        assert_int_equal(capture(p, 100), -ENOTDIR);
        snprintf(p->dir, sizeof p->dir, "%.200s/a/b", path);
        assert_int_equal(capture(p, 100), -ENOENT);
        snprintf(p->dir, sizeof p->dir, "%s", path);
}

static void test_denied_stays_denied(void **state)
{
        struct place *p = *state;
        struct afz_env copy;
        char target[8];
        assert_int_equal(capture(p, 100), 0);
        assert_int_equal(afz_env_open_fixture(p->dir, &copy), 0);
        assert_int_equal(afz_env_open(&copy, AFZ_ROOT_PROC, "100/io", 0), -EACCES);
        assert_int_equal(afz_env_open(&copy, AFZ_ROOT_PROC, "./100/io", 0), -EACCES);
        assert_int_equal(afz_env_open(&copy, AFZ_ROOT_DEV, "kmsg", 0), -EPERM);
        assert_int_equal(afz_env_open(&copy, AFZ_ROOT_PROC, "100/i", 0), -ENOENT);
        assert_int_equal(afz_env_open(&copy, AFZ_ROOT_PROC, "00/io", 0), -ENOENT);
        assert_int_equal(afz_env_readlink(&copy, AFZ_ROOT_PROC, "100/io", target, sizeof target),
                         -EACCES);
        afz_env_done(&copy);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(test_capture_shows_the_same_and_nothing_private),
                TEST(test_strangers_are_only_their_stat),
                TEST(test_no_path_leads_out),
                TEST(test_folders_that_are_taken),
                TEST(test_denied_stays_denied),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
