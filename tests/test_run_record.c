/* Runs on disk and in the runtime folder: made, found, told, ended. */
#include <signal.h>

#include "run_fixture.h"
#include "run_id.h"

static void test_ids(void **state)
{
        (void)state;
        static const char *const no[] = {
                "",
                "1",
                "12345678901234567890",
                "20261115-063745-kxq",
                "20261115-063745-kxqzz",
                "20261115-063745-kxqZ",
                "20261115-063745-kx/z",
                "2026111x-063745-kxqz",
                "20261115_063745-kxqz",
                "../../../../etc/passw",
        };
        const uint64_t wall = UINT64_C(1794724665) * 1000000000;
        char id[AFZ_RUN_ID_CAP], next[AFZ_RUN_ID_CAP];

        afz_run_id_make(wall, id);
        assert_string_equal(id, "20261115-063745-aaaa");
        for (uint64_t ns = 0; ns < 3000000000; ns += 7000003) {
                afz_run_id_make(wall + ns, id);
                afz_run_id_make(wall + ns + 3000, next);
                assert_true(afz_run_id_is(id));
                assert_true(strcmp(id, next) < 0);
        }
        afz_run_id_make(UINT64_MAX, id);
        assert_true(afz_run_id_is(id));
        for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
                assert_false(afz_run_id_is(no[i]));
}

static void test_made_and_ended(void **state)
{
        (void)state;
        struct afz_run run;
        struct afz_run_ref ref;
        char dir[1024], page[1100];

        assert_int_equal(afz_run_find(NULL, &ref), -ENOENT);
        start(NULL, &run);
        snprintf(dir, sizeof dir, "%s", run.page->dir);
        snprintf(page, sizeof page, "%s", run.page_path);
        assert_int_equal(mode_of(dir), 0700);
        assert_int_equal(mode_of(at("run/antifreeze")), 0700);
        assert_int_equal(mode_of(page), 0600);
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_true(ref.live);
        assert_string_equal(ref.dir, dir);
        assert_string_equal(ref.socket, run.socket);
        run.page->peak_bytes = 3 * GIB;
        assert_has(told(&ref, true), "\"end\":null");
        assert_has(told(&ref, true), "\"ram_bytes\":3221225472");
        assert_has(told(&ref, false), "still running");
        assert_int_equal(afz_run_sync(run.dir_fd), 0);

        finish(&run, 3);
        assert_false(is_there(page));
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_false(ref.live);
        assert_has(told(&ref, true), "\"end\":{\"how\":\"exit\",\"code\":3}");
        assert_has(told(&ref, false), ": nothing is wrong\n");
        assert_int_equal(afz_run_peek(&ref, &(struct afz_run_page){0}), -ENOENT);
        snprintf(page, sizeof page, "%s/verdict.json", dir);
        assert_int_equal(mode_of(page), 0600);
        snprintf(page, sizeof page, "%s/" AFZ_RUN_STATE, dir);
        assert_false(is_there(page));
}

static void test_json_is_the_contract(void **state)
{
        (void)state;
        struct afz_run_page page = first_page();
        struct afz_outcome outcome = {.end = {AFZ_END_STOPPED, -1}, .verdicts = 1};
        char buf[4096];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);

        memcpy(page.id, "20261115-063745-kxqz", 21);
        memcpy(page.cmd, "a\x1b[31m\"\xff", 9);
        page.started_s = 1794724665;
        page.peak_bytes = 5;
        page.cpu_ns = 12345678;
        page.did[AFZ_ACTION_BRAKE] = 2;
        page.did[AFZ_ACTION_RESTART] = 1;
        outcome.verdict[0] = (struct afz_verdict){
                .id = "host-exhaustion",
                .level = AFZ_LEVEL_ACT,
                .confidence = 0.95,
                .summary = "the budget was met",
                .fix = "a smaller batch",
                .evidence = {"one", "two"},
                .from_ms = 1500,
                .to_ms = 60000,
        };
        afz_run_put_json(&out, &page, &outcome, 10000000000);
        buf[out.len] = '\0';
        assert_string_equal(
                buf,
                "{\"schema\":1,\"run\":\"20261115-063745-kxqz\",\"end\":{\"how\":\"stopped\","
                "\"code\":null},\"peak\":{\"ram_bytes\":5,\"gpu_bytes\":null},\"tier\":\"cgroup2\","
                "\"cost\":{\"cpu_fraction\":0.00123},\"verdicts\":[{\"id\":\"host-exhaustion\","
                "\"level\":\"act\",\"confidence\":0.95,\"summary\":\"the budget was met\","
                "\"evidence\":[\"one\",\"two\"],\"where\":null,\"fix\":\"a smaller batch\","
                "\"caused_by\":null,\"from_s\":1.500,\"to_s\":60.000}],"
                "\"attempts\":2,\"did\":{\"tell\":0,\"brake\":2,\"release\":0,\"squeeze\":0,"
                "\"shrink\":0,\"checkpoint\":0,\"interrupt\":0,\"terminate\":0,\"kill\":0,"
                "\"restart\":1},\"budget_bytes\":4294967296,\"swap_bytes\":1073741824,"
                "\"cmd\":\"a\\u001b[31m\\\"\xef\xbf\xbd\",\"started\":\"2026-11-15T06:37:45Z\","
                "\"duration_s\":10.000,\"facts\":null}\n");
        out = afz_out_to(-1, buf, sizeof buf - 1);
        afz_run_put_text(&out, &page, &outcome, 10000000000);
        buf[out.len] = '\0';
        assert_null(strchr(buf, '\x1b'));
        assert_has(buf, "peak 5B of a budget of 4.0G");
        assert_has(buf, "slowed it down 2 x, started it again, smaller");
}

static void test_find(void **state)
{
        (void)state;
        struct afz_run one, two;
        struct afz_run_ref ref;
        char text[AFZ_RUN_ID_CAP], old[AFZ_RUN_ID_CAP], path[AFZ_RUN_PATH_CAP];

        start(NULL, &one);
        start(NULL, &two);
        one.page->root_pid = 4242;
        one.page->guard_pid = 4243;
        memcpy(old, one.page->id, sizeof old);
        memcpy(path, one.page->dir, sizeof path);
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_string_equal(ref.id, two.page->id);
        assert_int_equal(afz_run_find(old, &ref), 0);
        assert_string_equal(ref.id, old);
        memcpy(text, old, sizeof text);
        text[10] = '\0'; /* "20261115-0" */
        assert_int_equal(afz_run_find(text, &ref), -ENOTUNIQ);
        assert_int_equal(afz_run_find("20", &ref), -ENOENT);
        assert_int_equal(afz_run_find("", &ref), -ENOENT);
        assert_int_equal(afz_run_find("0", &ref), -ENOENT);
        assert_int_equal(afz_run_find("99999999999999999999999", &ref), -ENOENT);
        assert_int_equal(afz_run_find("4294971538", &ref), -ENOENT); /* 4242 + 2^32 */
        assert_int_equal(afz_run_find("zzz", &ref), -ENOENT);
        assert_int_equal(afz_run_find("/proc", &ref), -ENOENT);
        assert_int_equal(afz_run_find("4242", &ref), 0);
        assert_string_equal(ref.id, old);
        assert_int_equal(afz_run_find("4243", &ref), 0);
        assert_int_equal(afz_run_find(path, &ref), 0);
        assert_string_equal(ref.id, old);
        assert_true(ref.live);
        finish(&one, 0);
        assert_int_equal(afz_run_find("4242", &ref), -ENOENT);
        assert_int_equal(afz_run_find(path, &ref), 0);
        assert_string_equal(ref.id, old);
        assert_false(ref.live);
        finish(&two, 0);
}

/* Guard and front both write; whoever comes late does not undo the end. */
static void test_end_stands(void **state)
{
        (void)state;
        struct afz_run run;
        struct afz_run_ref ref;
        struct afz_outcome running = {.end = {AFZ_END_RUNNING, -1}},
                           lost = {.end = {AFZ_END_LOST, -1}},
                           end = {.end = {AFZ_END_SIGNAL, SIGSEGV}};
        start(NULL, &run);
        assert_int_equal(afz_run_write(&run, &end), 0);
        assert_int_equal(afz_run_write(&run, &running), 0);
        assert_int_equal(afz_run_write(&run, &lost), 0);
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_false(ref.live); /* though it is held: the guard clears up */
        assert_has(told(&ref, true), "{\"how\":\"signal\",\"code\":11}");
        assert_has(told(&ref, false), "signal 11");
        afz_run_done(&run);
}

static void test_run_dir(void **state)
{
        (void)state;
        struct afz_run_page first = first_page();
        struct afz_run run, other;
        struct afz_run_ref ref;
        char why[AFZ_RUN_WHY_CAP], old[AFZ_RUN_ID_CAP], dir[1024];

        snprintf(dir, sizeof dir, "%s", at("mine"));
        assert_int_equal(afz_run_new(at("no/such/parent"), &first, &run, why), -ENOENT);
        assert_has(why, "no/such/parent");
        start(dir, &run);
        memcpy(old, run.page->id, sizeof old);
        assert_int_equal(afz_run_new(dir, &first, &other, why), -EBUSY);
        assert_has(why, "a run lives in");
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_string_equal(ref.id, old);
        assert_string_equal(ref.dir, dir);
        finish(&run, 1);
        assert_int_equal(afz_run_find(old, &ref), 0);
        assert_has(told(&ref, true), "\"code\":1");

        /* One that comes to nothing leaves the old one as it was. */
        assert_int_equal(afz_run_new(dir, &first, &run, why), 0);
        afz_run_done(&run);
        assert_int_equal(afz_run_find(old, &ref), 0);
        assert_has(told(&ref, true), "\"code\":1");

        afz_fixture_set(fixture, "mine/report.html", "of the old run");
        start(dir, &run);
        assert_false(is_there(at("mine/report.html")));
        finish(&run, 2);
        assert_int_equal(afz_run_find(old, &ref), -ENOENT); /* it was replaced */
        assert_int_equal(mkdir(at("state/antifreeze/runs/29990101-000000-aaaa"), 0700), 0);
        assert_int_equal(afz_run_find(NULL, &ref), 0); /* a start that was cut off is no run */
        assert_has(told(&ref, true), "\"code\":2");
        assert_int_equal(afz_run_find(dir, &ref), 0);
        assert_has(told(&ref, true), "\"code\":2");

        afz_fixture_set(fixture, "mine/thesis.tex", "precious");
        assert_int_equal(afz_run_new(dir, &first, &run, why), -ENOTEMPTY);
        assert_has(why, "thesis.tex");
        assert_true(is_there(at("mine/thesis.tex")));
        assert_true(is_there(at("mine/verdict.json")));
        assert_int_equal(afz_run_new(at("mine/thesis.tex"), &first, &run, why), -ENOTDIR);
}

static void test_came_to_nothing(void **state)
{
        (void)state;
        struct afz_run_page first = first_page();
        struct afz_run run;
        struct afz_run_ref ref;
        assert_int_equal(afz_run_new(NULL, &first, &run, NULL), 0);
        afz_run_done(&run);
        assert_int_equal(afz_run_find(NULL, &ref), -ENOENT);
        assert_int_equal(rmdir(at("state/antifreeze/runs")), 0);
}

static void test_no_state_folder(void **state)
{
        (void)state;
        struct afz_run_page first = first_page();
        struct afz_outcome outcome = {.end = {AFZ_END_EXIT, 0}};
        struct afz_run run;
        struct afz_run_ref ref;
        char why[AFZ_RUN_WHY_CAP];

        afz_fixture_set(fixture, "state", "a file where the folder should be");
        assert_int_equal(afz_run_new(NULL, &first, &run, why), 1);
        assert_has(why, "/state/antifreeze/runs: ");
        assert_string_equal(run.page->dir, "");
        assert_int_equal(afz_run_write(&run, &outcome), -ENOENT);
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_true(ref.live);
        assert_string_equal(ref.socket, run.socket);
        assert_has(told(&ref, true), "\"end\":null");
        lose(&run);
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_has(told(&ref, true), "\"how\":\"lost\"");
        assert_int_equal(afz_run_collect(NULL, NULL, NULL), 1);
        assert_int_equal(afz_run_find(NULL, &ref), -ENOENT);

        unsetenv("XDG_STATE_HOME");
        unsetenv("HOME");
        assert_int_equal(afz_run_new(NULL, &first, &run, why), 1);
        assert_has(why, "HOME is not set");
        afz_run_done(&run);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ROW(test_ids),
                ROW(test_made_and_ended),
                ROW(test_json_is_the_contract),
                ROW(test_find),
                ROW(test_end_stands),
                ROW(test_run_dir),
                ROW(test_came_to_nothing),
                ROW(test_no_state_folder),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
