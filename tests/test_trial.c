/* The trial itself: it proves tier none, which is to be had everywhere, and finds out a tier that
 * only pretends. The pretenders are tier none with one deed left out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "clock.h"
#include "fixture.h"
#include "trial.h"

/* A stage takes 2 s at most; more is for a sanitizer on a machine that is busy with other tests. */
#define PROMISED_NS (20 * AFZ_NS_PER_S)

static int does_nothing(void *hold)
{
        (void)hold;
        return 0;
}

static int fails(void *hold)
{
        (void)hold;
        return -EPERM;
}

static int sees_nothing(void *hold, struct afz_pulse *ret)
{
        (void)hold;
        afz_pulse_set(ret, AFZ_PULSE_PROCESSES, 0);
        return 0;
}

static int is_not_here(const struct afz_env *env, const struct afz_hold_plan *plan, pid_t pid,
                       pid_t keeper, void **ret, char *why)
{
        (void)env, (void)plan, (void)pid, (void)keeper, (void)ret;
        snprintf(why, AFZ_HOLD_WHY_CAP, "no such thing here");
        return -ENODATA;
}

static struct afz_trial try_it(const struct afz_hold_tier *row)
{
        struct afz_env env;
        struct afz_trial trial;
        assert_int_equal(afz_env_open_live(&env), 0);
        size_t fds = afz_fixture_open_fds();
        uint64_t start = afz_clock_ns(CLOCK_MONOTONIC);
        assert_int_equal(afz_trial_run(&env, row, &trial), 0);
        assert_true(afz_clock_ns(CLOCK_MONOTONIC) - start < PROMISED_NS);
        assert_int_equal(afz_fixture_open_fds(), fds);
        /* No child is left, not even a zombie. */
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
        afz_env_done(&env);
        return trial;
}

static void none_is_proved(void **state)
{
        (void)state;
        struct afz_trial t = try_it(&afz_hold_none);
        if (!afz_trial_proved(&t))
                fail_msg("braked %d limited %d killed %d clean %d: %s", t.braked, t.limited,
                         t.killed, t.clean, t.why);
        assert_int_equal(t.tier, AFZ_TIER_NONE);
        assert_string_equal(t.why, "");
        assert_true(t.took_ns > 0);
}

static void pretenders_are_found_out(void **state)
{
        (void)state;
        enum deed { OPEN, BRAKE, RELEASE, LOOK, KILL, TIER };
        static const struct {
                enum deed deed;
                int (*as)(void *hold);
                bool opened, braked, limited, killed;
                const char *why;
        } row[] = {
                {OPEN, NULL, false, false, false, false, "no such thing here"},
                {BRAKE, does_nothing, true, false, false, true, "the brake does not stop it"},
                {BRAKE, fails, true, false, false, true, "it cannot be braked: Operation not"},
                {RELEASE, does_nothing, true, false, false, true, "it does not go on when rel"},
                {LOOK, NULL, true, true, false, true, "its need is not seen"},
                {KILL, does_nothing, true, true, false, false, "it does not die"},
                {KILL, fails, true, true, false, false, "it cannot be killed: Operation not"},
                /* Called a container of the kernel, which limits by itself. */
                {TIER, NULL, true, true, false, true, "the limit does not stop it"},
        };
        for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
                struct afz_hold_tier tier = afz_hold_none;
                if (row[i].deed == OPEN)
                        tier.open = is_not_here;
                else if (row[i].deed == BRAKE)
                        tier.brake = row[i].as;
                else if (row[i].deed == RELEASE)
                        tier.release = row[i].as;
                else if (row[i].deed == LOOK)
                        tier.look = sees_nothing;
                else if (row[i].deed == KILL)
                        tier.kill = row[i].as;
                else
                        tier.tier = AFZ_TIER_CGROUP2;
                struct afz_trial t = try_it(&tier);
                if (t.opened != row[i].opened || t.braked != row[i].braked ||
                    t.limited != row[i].limited || t.killed != row[i].killed ||
                    strncmp(t.why, row[i].why, strlen(row[i].why)) != 0)
                        fail_msg("row %zu: opened %d braked %d limited %d killed %d: %s", i,
                                 t.opened, t.braked, t.limited, t.killed, t.why);
                assert_false(afz_trial_proved(&t));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(none_is_proved),
                cmocka_unit_test(pretenders_are_found_out),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
