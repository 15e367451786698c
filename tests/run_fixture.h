#ifndef AFZ_RUN_FIXTURE_H
#define AFZ_RUN_FIXTURE_H
/* For tests of runs: runtime and state folders of their own, and runs to put there. A test that
 * leaves a descriptor open fails. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "run.h"
#include "run_state.h"

#define GIB (UINT64_C(1) << 30)

static const struct afz_fixture_row rows[] = {{"run/", NULL}, {"state/", NULL}, {0}};
static struct afz_fixture *fixture;
static size_t open_fds;

static inline const char *at(const char *path)
{
        static char buf[32][1024]; /* some are kept for the length of a test */
        static unsigned next;
        char *p = buf[next++ % 32];
        snprintf(p, sizeof buf[0], "%s/%s", afz_fixture_dir(fixture), path);
        return p;
}

static inline int setup(void **state)
{
        (void)state;
        fixture = afz_fixture_new(rows);
        setenv("XDG_RUNTIME_DIR", at("run"), 1);
        setenv("XDG_STATE_HOME", at("state"), 1);
        setenv("HOME", "/nonexistent", 1);
        open_fds = afz_fixture_open_fds();
        return 0;
}

static inline int teardown(void **state)
{
        (void)state;
        size_t now = afz_fixture_open_fds();
        afz_fixture_free(fixture);
        if (now != open_fds)
                fprintf(stderr, "%zu descriptors were open, now %zu\n", open_fds, now);
        return now == open_fds ? 0 : -1;
}

static inline struct afz_run_page first_page(void)
{
        return (struct afz_run_page){
                .cmd = "python train.py --token secret",
                .place = "/sys/fs/cgroup/antifreeze-x",
                .tier = AFZ_TIER_CGROUP2,
                .policy = AFZ_POLICY_PROTECT,
                .budget_bytes = 4 * GIB,
                .swap_bytes = GIB,
        };
}

static inline void start(const char *run_dir, struct afz_run *ret)
{
        struct afz_run_page first = first_page();
        struct afz_outcome running = {.end = {AFZ_END_RUNNING, -1}};
        char why[AFZ_RUN_WHY_CAP];
        int r = afz_run_new(run_dir, &first, ret, why);
        if (r != 0)
                fail_msg("afz_run_new: %d, %s", r, why);
        assert_int_equal(afz_run_write(ret, &running), 0);
}

static inline void finish(struct afz_run *run, int code)
{
        struct afz_outcome outcome = {.end = {AFZ_END_EXIT, code}, .verdicts = 1};
        outcome.verdict[0] = (struct afz_verdict){.id = "clean",
                                                  .level = AFZ_LEVEL_OK,
                                                  .confidence = 0.9,
                                                  .summary = "nothing is wrong",
                                                  .evidence = {"it fits"}};
        assert_int_equal(afz_run_write(run, &outcome), 0);
        afz_run_done(run);
}

/* Its guard is killed: the locks go, everything else stays. */
static inline void lose(struct afz_run *run)
{
        afz_run_leave(run);
}

static inline const char *told(const struct afz_run_ref *ref, bool json)
{
        static char buf[16384];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
        assert_int_equal(afz_run_tell(ref, json, &out), 0);
        assert_int_equal(out.err, 0);
        buf[out.len] = '\0';
        return buf;
}

static inline void assert_has(const char *text, const char *part)
{
        if (!strstr(text, part))
                fail_msg("'%s' is not in: %s", part, text);
}

static inline mode_t mode_of(const char *path)
{
        struct stat st;
        if (lstat(path, &st) < 0)
                fail_msg("%s: %s", path, strerror(errno));
        return st.st_mode & 07777;
}

static inline bool is_there(const char *path)
{
        struct stat st;
        return lstat(path, &st) == 0;
}

static inline int take_sum(void *ctx, uint64_t promised_bytes)
{
        *(uint64_t *)ctx = promised_bytes;
        return 7;
}

static inline uint64_t promised(void)
{
        uint64_t sum = 0;
        assert_int_equal(afz_run_ledger("", take_sum, &sum, NULL), 7);
        return sum;
}

static inline int open_state(const struct afz_run *run)
{
        int fd = openat(run->dir_fd, AFZ_RUN_STATE, O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0);
        return fd;
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
