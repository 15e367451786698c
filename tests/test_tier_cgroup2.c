/* Tier cgroup2 and the collector on a machine of ordinary folders (fake_cgroup2.h). What the kernel
 * does with what is written is in tests/vm_tiers.py. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cgroup_file.h"
#include "count_of.h"
#include "fake_cgroup2.h"
#include "fixture.h"
#include "hold_tier.h"

enum { SELF = 42, JOB = 50, KEEPER = 51 };

/* Our own cgroup is /top/mine; its processes keep it from passing limits on, so that the hold comes
 * to stand in /top. */
static const struct afz_fixture_row machine[] = {
        {"proc/42/cgroup", "0::/top/mine\n"},
        {"proc/50/cgroup", "0::/top/other\n"},
        {"proc/50/task/50/children", ""},
        {"cgroup/cgroup.controllers", "cpu io memory pids\n"},
        {"cgroup/cgroup.subtree_control", "cpu memory pids\n"},
        {"cgroup/top/cgroup.controllers", "cpu memory pids\n"},
        {"cgroup/top/cgroup.subtree_control", "memory pids\n"},
        {"cgroup/top/mine/cgroup.controllers", "memory pids\n"},
        {"cgroup/top/mine/cgroup.subtree_control", ""},
        {"cgroup/top/mine/cgroup.procs", "42\n51\n"},
        {"cgroup/top/other/cgroup.procs", "50\n"},
        {0},
};

static const struct fake_cgroup2_fault busy = {"/top/mine/cgroup.subtree_control", EBUSY, NULL};

static const struct afz_hold_plan plan = {
        .id = "x1",
        .what = "test",
        .budget = {.ram_bytes = 1 << 24, .swap_bytes = 1 << 20},
        .processes = 77,
        .weight = 50,
        .whole = true,
};

static struct afz_fixture *f;
static struct afz_env *env;
static void *hold;
static char why[AFZ_HOLD_WHY_CAP];
static const struct afz_hold_tier *const row = &afz_hold_cgroup2;
static size_t fds;

static int set_up(void **state)
{
        (void)state;
        fds = afz_fixture_open_fds();
        f = afz_fixture_new(machine);
        env = afz_fixture_env(f);
        env->self_pid = SELF;
        hold = NULL;
        why[0] = '\0';
        fake_cgroup2_fault(&busy);
        fake_cgroup2_without(NULL);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        row->close(hold);
        fake_cgroup2_fault(NULL);
        afz_fixture_free(f);
        return afz_fixture_open_fds() == fds ? 0 : -1;
}

static int open_with(const struct afz_hold_plan *p)
{
        return row->open(env, p, JOB, KEEPER, &hold, why);
}

/* The text of a file below the cgroup root, without its newline; "-" when there is none. */
static const char *text_of(const char *path)
{
        static char buf[4096];
        struct afz_span text;
        if (afz_env_read(env, AFZ_ROOT_CGROUP, path, buf, sizeof buf - 1, &text) < 0)
                return "-";
        buf[text.n] = '\0';
        buf[strcspn(buf, "\n")] = '\0';
        return buf;
}

static bool is_there(const char *path)
{
        return faccessat(env->root_fd[AFZ_ROOT_CGROUP], path, F_OK, 0) == 0;
}

/* For what the reclaimer does, which is another process. */
static void wait_for(const char *path, const char *text)
{
        for (int i = 0; i < 5000 && strcmp(text_of(path), text) != 0; i++)
                poll(NULL, 0, 1);
        assert_string_equal(text_of(path), text);
}

#define BASE "top/antifreeze-x1"

static void builds_and_proves(void **state)
{
        char place[AFZ_HOLD_PLACE_CAP];
        (void)state;
        assert_int_equal(open_with(&plan), 0);
        assert_false(is_there("top/mine/antifreeze-x1"));
        assert_string_equal(text_of(BASE "/job/memory.max"), "16777216");
        assert_string_equal(text_of(BASE "/job/memory.swap.max"), "1048576");
        assert_string_equal(text_of(BASE "/job/pids.max"), "77");
        assert_string_equal(text_of(BASE "/job/memory.oom.group"), "1");
        assert_string_equal(text_of(BASE "/job/main/memory.oom.group"), "0");
        assert_string_equal(text_of(BASE "/cpu.weight"), "50");
        assert_string_equal(text_of(BASE "/io.weight"), "default 50");
        assert_string_equal(text_of(BASE "/job/main/cgroup.procs"), "50");
        assert_string_equal(text_of(BASE "/keeper/cgroup.procs"), "51");
        row->place(hold, place);
        assert_string_equal(place, "/" BASE);
        row->close(hold);
        hold = NULL;
        assert_false(is_there(BASE));
        assert_string_equal(text_of("top/cgroup.subtree_control"), "memory pids");
}

#define STAT(pid, ppid, flags)                                                                     \
        pid " (x) S " ppid " 1 1 0 -1 " flags " 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0 0 0 0 0 0 0 0 0 0 " \
            "0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"

static void parts_are_killed_alone(void **state)
{
        struct afz_hold_plan parts = plan;
        (void)state;
        parts.whole = false;
        assert_int_equal(open_with(&parts), 0);
        assert_string_equal(text_of(BASE "/job/memory.oom.group"), "0");
        assert_string_equal(text_of(BASE "/job/main/memory.oom.group"), "1");
        assert_int_equal(row->split(hold, JOB), -ESRCH); /* not inside: not ours */
        afz_fixture_set(f, "proc/50/cgroup", "0::/" BASE "/job/main\n");
        assert_int_equal(row->split(hold, JOB), 0);
        assert_string_equal(text_of(BASE "/job/part-0/cgroup.procs"), "50");
        assert_string_equal(text_of(BASE "/job/part-0/memory.oom.group"), "1");
        uint64_t need;
        assert_int_equal(row->look_part(hold, 0, &need), -ESRCH); /* nobody is in it */
        afz_fixture_set(f, "cgroup/" BASE "/job/part-0/cgroup.procs", "50\n52\n");
        afz_fixture_set(f, "proc/50/stat", STAT("50", "1", "0"));
        afz_fixture_set(f, "proc/50/status", "RssAnon:\t0 kB\nVmSwap:\t0 kB\n");
        assert_int_equal(row->look_part(hold, 0, &need), 0);
        assert_int_equal(need, 961);
        /* What was charged elsewhere before is found in the processes; a fork's only once. */
        afz_fixture_set(f, "proc/50/status", "RssAnon:\t6 kB\nVmSwap:\t2 kB\n");
        afz_fixture_set(f, "proc/52/stat", STAT("52", "50", "64"));
        afz_fixture_set(f, "proc/52/status", "RssAnon:\t9 kB\nVmSwap:\t0 kB\n");
        assert_int_equal(row->look_part(hold, 0, &need), 0);
        assert_int_equal(need, 9 * 1024);
        assert_int_equal(row->look_part(hold, 1, &need), -ENODEV);
        assert_int_equal(row->look_part(hold, AFZ_HOLD_PARTS, &need), -ENODEV);
        assert_int_equal(row->kill_part(hold, 0), 0);
        assert_string_equal(text_of(BASE "/job/part-0/cgroup.kill"), "1");
        assert_string_equal(text_of(BASE "/job/cgroup.kill"), "");
        assert_int_equal(row->split(hold, JOB), 1);
        /* Empty now: its place is taken again. */
        afz_fixture_set(f, "cgroup/" BASE "/job/part-0/cgroup.events", "populated 0\n");
        assert_int_equal(row->split(hold, JOB), 0);
}

static void looks(void **state)
{
        static const uint64_t expected[AFZ_PULSE_COUNT] = {
                [AFZ_PULSE_NEED] = 961,    [AFZ_PULSE_SWAP] = 200,    [AFZ_PULSE_JOB_STALL] = 5000,
                [AFZ_PULSE_OOM_KILLS] = 2, [AFZ_PULSE_PROCESSES] = 6,
        };
        struct afz_pulse pulse = {0};
        (void)state;
        assert_int_equal(open_with(&plan), 0);
        assert_int_equal(row->look(hold, &pulse), 0);
        for (int i = 0; i < AFZ_PULSE_COUNT; i++) {
                assert_int_equal(pulse.has >> i & 1, expected[i] != 0);
                assert_int_equal(pulse.figure[i], expected[i]);
        }
        /* Only the dead are left, which nobody has reaped. */
        uint64_t processes;
        afz_fixture_set(f, "cgroup/" BASE "/job/cgroup.events", "populated 0\nfrozen 0\n");
        assert_int_equal(row->look(hold, &pulse), 0);
        assert_true(afz_pulse_get(&pulse, AFZ_PULSE_PROCESSES, &processes) && processes == 0);
        afz_fixture_set(f, "cgroup/" BASE "/job/main/memory.stat", "file 5\n");
        assert_int_equal(row->look(hold, &pulse), -EINVAL);
}

static void absent_is_not_zero(void **state)
{
        static const struct {
                const char *file;
                enum afz_pulse_figure figure;
        } cases[] = {
                {"memory.swap.current", AFZ_PULSE_SWAP},
                {"memory.pressure", AFZ_PULSE_JOB_STALL},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                struct afz_pulse pulse = {0};
                uint64_t value;
                fake_cgroup2_without(cases[i].file);
                assert_int_equal(open_with(&plan), 0);
                assert_int_equal(row->look(hold, &pulse), 0);
                assert_false(afz_pulse_get(&pulse, cases[i].figure, &value));
                assert_true(afz_pulse_get(&pulse, AFZ_PULSE_NEED, &value));
                row->close(hold);
                hold = NULL;
        }
}

static void acts(void **state)
{
        (void)state;
        assert_int_equal(open_with(&plan), 0);
        assert_int_equal(row->brake(hold), 0);
        assert_string_equal(text_of(BASE "/job/cgroup.freeze"), "1");
        assert_int_equal(row->release(hold), 0);
        assert_string_equal(text_of(BASE "/job/cgroup.freeze"), "0");
        assert_int_equal(row->kill(hold), 0);
        assert_string_equal(text_of(BASE "/job/cgroup.kill"), "1");
        assert_int_equal(row->other(hold, 1), JOB);
        assert_int_equal(row->other(hold, JOB), 0);
}

static void limits(void **state)
{
        (void)state;
        assert_int_equal(open_with(&plan), 0);
        struct afz_budget budget = {.ram_bytes = 1 << 26, .swap_bytes = 0};
        assert_int_equal(row->limit(hold, &budget), 0);
        assert_string_equal(text_of(BASE "/job/memory.max"), "67108864");
        assert_string_equal(text_of(BASE "/job/memory.swap.max"), "0");
        /* Below what is in use (1000000): the reclaimer does it. */
        budget.ram_bytes = 100 * 4096;
        int r = row->limit(hold, &budget);
        assert_true(r == 0 || r == -EAGAIN);
        wait_for(BASE "/job/memory.max", "40960064"); /* what is left of the longer text */
        budget.ram_bytes = 0;
        assert_int_equal(row->limit(hold, &budget), -EINVAL);
}

static void squeezes_and_slows(void **state)
{
        (void)state;
        assert_int_equal(open_with(&plan), 0);
        assert_int_equal(row->squeeze(hold, 4096), 0);
        wait_for(BASE "/job/memory.reclaim", "4096");
        assert_int_equal(row->slow(hold, 12345), 0);
        wait_for(BASE "/job/memory.high", "12345");
}

static void squeezes_without_reclaim(void **state)
{
        (void)state;
        fake_cgroup2_without("memory.reclaim");
        assert_int_equal(open_with(&plan), 0);
        assert_int_equal(row->squeeze(hold, 999000), 0);
        wait_for(BASE "/job/memory.high", "max0"); /* "1000" was there, and "max" was put back */
}

/* Whatever fails: nothing is left, and the processes are where they were. */
static void fails_clean(void **state)
{
        static const struct {
                struct fake_cgroup2_fault fault;
                int r;
        } cases[] = {
                {{"/job/memory.max", 0, "max\n"}, -EIO},
                {{"/job/memory.max", 0, "4096\n"}, -EIO},
                {{"/job/memory.swap.max", 0, "max\n"}, -EIO},
                {{"/job/memory.oom.group", EACCES, NULL}, -EACCES},
                {{"/main/cgroup.procs", EACCES, NULL}, -EACCES},
                {{"/main/cgroup.procs", ESRCH, NULL}, -ESRCH},
                {{"/keeper/cgroup.procs", EPERM, NULL}, -EPERM},
                {{"/main/cgroup.procs", 0, "1\n"}, -EIO},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                afz_fixture_set(f, "cgroup/top/other/cgroup.procs", "");
                fake_cgroup2_fault(&cases[i].fault);
                assert_int_equal(open_with(&plan), cases[i].r);
                assert_non_null(strchr(why, ':'));
                assert_false(is_there("top/mine/antifreeze-x1"));
                assert_false(is_there(BASE));
                assert_false(is_there("antifreeze-x1"));
        }
        /* This one was inside already when it failed. */
        fake_cgroup2_fault(&(struct fake_cgroup2_fault){"/keeper/cgroup.procs", EPERM, NULL});
        assert_int_equal(open_with(&plan), -EPERM);
        assert_string_equal(text_of("top/other/cgroup.procs"), "50");
}

static void never_takes_what_is_there(void **state)
{
        (void)state;
        afz_fixture_set(f, "cgroup/" BASE "/memory.max", "5\n");
        assert_int_equal(open_with(&plan), -EEXIST);
        assert_string_equal(text_of(BASE "/memory.max"), "5");
}

static void says_why_not(void **state)
{
        (void)state;
        afz_fixture_set(f, "cgroup/top/cgroup.subtree_control", "pids\n");
        afz_fixture_set(f, "cgroup/top/cgroup.controllers", "pids\n");
        afz_fixture_set(f, "cgroup/cgroup.subtree_control", "pids\n");
        afz_fixture_set(f, "cgroup/cgroup.controllers", "pids\n");
        assert_int_equal(open_with(&plan), -ENODATA);
        assert_string_equal(why, "no memory controller in /sys/fs/cgroup/top");

        afz_fixture_remove(f, "cgroup/cgroup.controllers");
        afz_fixture_set(f, "proc/42/cgroup", "3:memory:/\n0::/\n");
        afz_fixture_set(f, "cgroup/memory/memory.limit_in_bytes", "1\n");
        assert_int_equal(open_with(&plan), -ENODATA);
        assert_string_equal(why, "the memory controller is on cgroup v1 here");
        afz_fixture_set(f, "cgroup/unified/cgroup.controllers", "");
        assert_int_equal(open_with(&plan), -ENODATA);
        assert_string_equal(why, "cgroup v2 has no memory controller here (hybrid)");
}

static void collects_only_its_own(void **state)
{
        static const struct {
                const char *place;
                int r;
        } cases[] = {
                {"", 0},
                {"/top/antifreeze-gone", 0},
                {"/nowhere/antifreeze-gone", 0},
                {"/", -EINVAL},
                {"/top", -EINVAL},
                {"/top/mine", -EINVAL},
                {"/top/antifreeze-x1/..", -EINVAL},
                {"/top/../antifreeze-x1", -EINVAL},
                {"/top//antifreeze-x1", -EINVAL},
                {"/top/antifreeze-x1/job", -EINVAL},
        };
        (void)state;
        assert_int_equal(open_with(&plan), 0);
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++)
                assert_int_equal(afz_hold_collect(env, cases[i].place), cases[i].r);
        assert_int_equal(row->brake(hold), 0);
        assert_int_equal(afz_hold_collect(env, "/" BASE), -EBUSY);
        assert_true(is_there(BASE "/job/main"));
        assert_string_equal(text_of(BASE "/job/cgroup.freeze"), "0"); /* nobody else would */
        afz_fixture_set(f, "cgroup/" BASE "/job/main/cgroup.procs", "");
        assert_int_equal(afz_hold_collect(env, "/" BASE), -EBUSY); /* the keeper lives */
        afz_fixture_set(f, "cgroup/" BASE "/keeper/cgroup.procs", "");
        assert_int_equal(afz_hold_collect(env, "/" BASE), 0);
        assert_false(is_there(BASE));
        assert_true(is_there("top/mine"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(builds_and_proves),
                TEST(parts_are_killed_alone),
                TEST(looks),
                TEST(absent_is_not_zero),
                TEST(acts),
                TEST(limits),
                TEST(squeezes_and_slows),
                TEST(squeezes_without_reclaim),
                TEST(fails_clean),
                TEST(never_takes_what_is_there),
                TEST(says_why_not),
                TEST(collects_only_its_own),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
