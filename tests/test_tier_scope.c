/* Who is to be put in a scope of systemd's, and who would leave a place that somebody chose for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cgroup_path.h"
#include "count_of.h"
#include "fixture.h"
#include "tier_scope.h"

static const struct afz_fixture_row machine[] = {
        {"proc/self", "-> 42"},
        {"proc/42/cgroup", "0::/\n"},
        {"cgroup/cgroup.controllers", "memory\n"},
        {"cgroup/memory.max", "4294967296\n"}, /* as in a container */
        {"cgroup/user.slice/memory.max", "1073741824\n"},
        {"cgroup/user.slice/user-1000.slice/session-3.scope/memory.max", "max\n"},
        {"cgroup/system.slice/memory.max", "max\n"},
        {"cgroup/system.slice/cron.service/memory.max", "max\n"},
        {"cgroup/system.slice/hub.service/memory.max", "2147483648\n"},
        {"cgroup/system.slice/hub.service/me/memory.max", "max\n"},
        {"cgroup/system.slice/slurmstepd.scope/job_7/step_0/memory.max", "max\n"},
        {0},
};

static void test_would_leave(void **state)
{
        static const struct {
                const char *cgroup, *why;
        } rows[] = {
                {"/", NULL},
                {"/user.slice/user-1000.slice/session-3.scope", NULL},
                {"/system.slice/cron.service", NULL},
                {"/system.slice/hub.service/me", "/system.slice/hub.service/me, one with a limit"},
                {"/system.slice/slurmstepd.scope/job_7/step_0", "a batch job's"},
        };
        struct afz_fixture *f = afz_fixture_new(machine);
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(rows); i++) {
                struct afz_cgroup_path path;
                char why[AFZ_HOLD_WHY_CAP] = "", text[160];
                snprintf(text, sizeof text, "0::%s\n", rows[i].cgroup);
                afz_fixture_set(f, "proc/42/cgroup", text);
                assert_int_equal(afz_cgroup_path_of(afz_fixture_env(f), 42, &path), 0);
                bool leaves = afz_scope_takes_out(afz_fixture_env(f), 42, why);
                if (leaves != (rows[i].why != NULL) || !strstr(why, rows[i].why ? rows[i].why : ""))
                        fail_msg("%s: %s", rows[i].cgroup, why);
        }
        afz_fixture_free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_would_leave)};
        return cmocka_run_group_tests(tests, NULL, NULL);
}
