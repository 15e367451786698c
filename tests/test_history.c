/* The history of runs: what is found, what is believed, what changed, what is removed. */
#include <sys/file.h>
#include <time.h>

#include "run_fixture.h"

#include "count_of.h"
#include "history.h"
#include "secret.h"

#define RUNS "state/antifreeze/runs/"

/* With a runtime folder of its own: other runs of this machine are not seen. */
static int setup_alone(void **state)
{
        int r = setup(state);
        return r == 0 ? mkdir(at("run/antifreeze"), 0700) : r;
}

#define ALONE(test) cmocka_unit_test_setup_teardown(test, setup_alone, teardown)

/* A run's folder by hand. */
static void put_run(const char *id, const char *json)
{
        char path[512];
        snprintf(path, sizeof path, RUNS "%s/verdict.json", id);
        afz_fixture_set(fixture, path, json);
}

/* As an ended run has it. */
static const char *verdict(const char *id, int code, uint64_t peak, const char *cmd)
{
        static char json[1024];
        snprintf(json, sizeof json,
                 "{\"schema\":1,\"run\":\"%s\",\"end\":{\"how\":\"exit\",\"code\":%d},\"peak\":{"
                 "\"ram_bytes\":%llu,\"gpu_bytes\":null},\"tier\":\"none\",\"cost\":{"
                 "\"cpu_fraction\":0.00100},\"verdicts\":[{\"id\":\"clean\",\"level\":\"ok\","
                 "\"confidence\":0.90,\"summary\":\"fine\",\"evidence\":[\"a\",\"b\"],\"where\":"
                 "null,\"fix\":null}],\"attempts\":1,\"did\":{\"tell\":0},\"budget_bytes\":"
                 "4294967296,\"swap_bytes\":0,\"cmd\":\"%s\",\"started\":\"2026-11-15T06:37:45Z\","
                 "\"duration_s\":12.500,\"later\":[{}]}\n",
                 id, code, (unsigned long long)peak, cmd);
        return json;
}

static void good(const char *id, uint64_t peak, const char *cmd)
{
        put_run(id, verdict(id, 0, peak, cmd));
}

static void test_none(void **state)
{
        struct afz_history *h;
        char since[AFZ_RUN_ID_CAP], text[AFZ_CHANGED_CAP];
        (void)state;
        assert_int_equal(afz_history_new(&h), 0);
        assert_int_equal(afz_history_count(h), 0);
        afz_history_free(h);
        afz_history_free(NULL);
        assert_int_equal(afz_history_changed("x", since, text), -ENOENT);
        assert_false(is_there(at("state/antifreeze")));
}

static void test_read(void **state)
{
        struct afz_history *h;
        (void)state;
        good("20261115-063745-kxqz", 3 * GIB, "python train.py --batch 32");
        assert_int_equal(afz_history_new(&h), 0);
        assert_int_equal(afz_history_count(h), 1);
        const struct afz_history_run *run = afz_history_get(h, 0);
        assert_non_null(run);
        assert_int_equal(run->life, AFZ_HISTORY_ENDED);
        assert_int_equal(run->end.how, AFZ_END_EXIT);
        assert_int_equal(run->end.code, 0);
        assert_int_equal(run->peak_bytes, 3 * GIB);
        assert_int_equal(run->gpu_peak_bytes, UINT64_MAX);
        assert_int_equal(run->budget_bytes, 4 * GIB);
        assert_int_equal(run->started_s, 1794724665);
        assert_int_equal(run->duration_ns, UINT64_C(12500000000));
        assert_string_equal(run->verdict, "clean");
        assert_int_equal(run->level, AFZ_LEVEL_OK);
        assert_string_equal(run->cmd, "python train.py --batch 32");
        assert_string_equal(run->git, "");
        assert_ptr_equal(run, afz_history_get(h, 0));
        afz_history_free(h);
}

/* What stands there by accident or by malice hides no run and is not believed. */
static void test_hostile(void **state)
{
        static const struct {
                const char *id, *json;
                bool listed; /* as damaged */
        } cases[] = {
                {"20261115-000000-aaaa", "", true},
                {"20261115-000001-aaaa", "{", true},
                {"20261115-000002-aaaa", "[]", true},
                {"20261115-000003-aaaa", "{}", true},
                {"20261115-000004-aaaa", "{\"schema\":2,\"run\":\"20261115-000004-aaaa\"}", true},
                {"20261115-000005-aaaa", "{\"schema\":1}", true},
                {"20261115-000006-aaaa",
                 "{\"schema\":1,\"schema\":1,\"run\":\"20261115-000006-aaaa\"}", true},
                {"20261115-000007-aaaa",
                 "{\"schema\":1,\"run\":\"20261115-000007-aaaa\",\"end\":3}", true},
                {"20261115-000008-aaaa",
                 "{\"schema\":1,\"run\":\"20261115-000008-aaaa\",\"duration_s\":-1}", true},
                {"20261115-000009-aaaa",
                 "{\"schema\":1,\"run\":\"20261115-000009-aaaa\",\"cmd\":\"a\",\"cmd\":\"b\"}",
                 true},
                {"20261115-000010-aaaa",
                 "{\"schema\":1,\"run\":\"20261115-000010-aaaa\",\"peak\":{\"ram_bytes\":-5,"
                 "\"gpu_bytes\":1}}",
                 true},
                {"20261115-000011-aaaa", "{\"schema\":1,\"run\":\"20200101-000000-zzzz\"}", false},
                {"20261115-000012-aaaa", "{\"schema\":1,\"run\":7}", true},
        };
        struct afz_history *h;
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++)
                put_run(cases[i].id, cases[i].json);
        afz_fixture_set(fixture, RUNS "readme", "x");
        afz_fixture_set(fixture, RUNS "20261115-000013-AAAA/verdict.json", "{}");
        afz_fixture_set(fixture, RUNS "20261115-000014-aaaa", "a file");
        assert_int_equal(symlink("/nonexistent", at(RUNS "20261115-000015-aaaa")), 0);
        assert_int_equal(mkdir(at(RUNS "20261115-000016-aaaa"), 0700), 0);
        afz_fixture_break(fixture, RUNS "20261115-000017-aaaa/verdict.json");
        assert_int_equal(mkdir(at(RUNS "20261115-000018-aaaa"), 0700), 0);
        assert_int_equal(symlink("/etc/passwd", at(RUNS "20261115-000018-aaaa/verdict.json")), 0);
        good("20261114-000000-aaaa", GIB, "x");
        assert_int_equal(afz_history_new(&h), 0);
        size_t damaged = 0, want = 2; /* a folder and a link in its place */
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++)
                want += cases[i].listed;
        for (size_t i = 0; i < afz_history_count(h); i++) {
                const struct afz_history_run *run = afz_history_get(h, i);
                if (i > 0)
                        assert_true(strcmp(afz_history_id(h, i - 1), afz_history_id(h, i)) > 0);
                damaged += run && run->life == AFZ_HISTORY_DAMAGED;
                if (run && run->life != AFZ_HISTORY_DAMAGED)
                        assert_string_equal(run->id, "20261114-000000-aaaa");
        }
        assert_int_equal(damaged, want);
        assert_non_null(afz_history_get(h, afz_history_count(h) - 1));
        afz_history_free(h);
}

static void test_lives(void **state)
{
        struct afz_history *h;
        struct afz_run ended, live, left;
        (void)state;
        start(NULL, &ended);
        finish(&ended, 0);
        start(NULL, &left);
        lose(&left);
        start(NULL, &live);
        assert_int_equal(afz_history_new(&h), 0);
        assert_int_equal(afz_history_count(h), 3);
        assert_int_equal(afz_history_get(h, 0)->life, AFZ_HISTORY_LIVE);
        assert_int_equal(afz_history_get(h, 1)->life, AFZ_HISTORY_LOST);
        assert_int_equal(afz_history_get(h, 2)->life, AFZ_HISTORY_ENDED);
        assert_string_equal(afz_history_get(h, 2)->verdict, "clean");
        assert_string_equal(afz_history_get(h, 0)->cmd, "python train.py --token secret");
        afz_history_free(h);
        finish(&live, 0);
}

static void test_same(void **state)
{
        static const struct {
                const char *a, *b;
                bool same;
        } cases[] = {
                {"python train.py", "python train.py --batch 3", true},
                {"/usr/bin/python3.11 -u train.py", "python ./train.py x", true},
                {"python train.py", "python eval.py", false},
                {"python -m pkg.train -x", "python3 -m pkg.train", true},
                {"python -m pkg.train", "python -m pkg.eval", false},
                {"python -c pass", "python -c fail", false},
                {"python -c pass", "python train.py", false},
                {"./trainer leak --batch 3", "/opt/trainer --batch 4", true},
                {"torchrun --nproc 2 train.py", "torchrun --nproc 4 train.py", true},
                {"bash run.sh", "sh run.sh", false},
                {"sh -c exit 3", "sh -c sleep 3", false},
                {"sh -c exit 3", "sh -c exit 4", false},
                {"sh -c exit 3", "/bin/sh -c exit 3", true},
                {"bash -lc make all", "bash -lc make test", false},
                {"bash -c python train.py --bs 3", "bash -c python train.py --bs 4", true},
                {"bash -c lint train.py", "bash -c python train.py", false},
                {"python -c import a; a.x()", "python -c import b; b.x()", false},
                {"python -u -c import a", "python3 -c import a", true},
                {"perl -e 1", "perl -e 2", false},
                {"sh -c", "sh", true},
                {"", "", false},
                {"", "python", false},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++)
                if (afz_history_same(cases[i].a, cases[i].b) != cases[i].same ||
                    afz_history_same(cases[i].b, cases[i].a) != cases[i].same)
                        fail_msg("%s | %s", cases[i].a, cases[i].b);
        assert_true(afz_history_matches("python x/train.py --a", "train.py"));
        assert_true(afz_history_matches("python train.py", "python"));
        assert_true(afz_history_matches("python train.py --b", "python train.py"));
        assert_true(afz_history_matches("sh -c cd x; python train.py --b", "train.py"));
        assert_false(afz_history_matches("python train.py", "eval.py"));
        assert_false(afz_history_matches("python train.py", ""));
        assert_false(afz_history_matches("", "x"));
}

static void test_diff(void **state)
{
        static const struct {
                const char *before, *now, *text;
        } cases[] = {
                {"python t.py --batch 32", "python t.py --batch 64", "batch 32 -> 64"},
                {"python t.py --batch=32", "python t.py --batch 64", "batch 32 -> 64"},
                {"python t.py batch=32 lr=0.1", "python t.py lr=0.1 batch=64", "batch 32 -> 64"},
                {"t -b 1 x", "t -b 2 x", "b 1 -> 2"},
                {"t a.csv", "t b.csv", "a.csv -> b.csv"},
                {"t", "t --fp16", "with --fp16"},
                {"t --fp16 --x 1", "t --x 1", "without --fp16"},
                {"t --lr -1", "t --lr -0.5", "lr -1 -> -0.5"},
                {"t --i 1 --i 2", "t --i 1 --i 3", "i 2 -> 3"},
                {"t --token a", "t --token b", "token changed"},
                {"t API_KEY=a", "t API_KEY=b", "API_KEY changed"},
                {"t", "t --password hunter2", "with --password"},
                {"t u=http://me:a@h/", "t u=http://me:b@h/", "u http://***@h/ -> http://***@h/"},
                {"t a b c d e f g", "t 1 2 3 4 5 6 7",
                 "a -> 1, b -> 2, c -> 3, d -> 4, 3 more arguments"},
                {"t --a 1", "t --a 1", ""},
                {"python -u t.py", "python t.py", "without -u"},
                {"sh -c python t.py --bs 3", "sh -c python t.py --bs 4", "bs 3 -> 4"},
                {"", "", ""},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                char text[AFZ_CHANGED_CAP], git[] = "";
                struct afz_history_run before = {.cmd = strdup(cases[i].before), .git = git};
                struct afz_history_run now = {.cmd = strdup(cases[i].now), .git = git};
                unsigned n = afz_history_diff(&before, &now, text);
                assert_string_equal(text, cases[i].text);
                assert_int_equal(n > 0, text[0] != '\0');
                free(before.cmd);
                free(now.cmd);
        }
}

static void test_diff_numbers(void **state)
{
        char cmd[] = "t", cmd2[] = "t \x1b[31m", old[] = "d9f680b111111111", new[] = "2eaead8",
             none[] = "";
        char text[AFZ_CHANGED_CAP];
        struct afz_history_run a = {
                .cmd = cmd, .git = old, .peak_bytes = 21 * GIB / 10, .budget_bytes = 4 * GIB};
        struct afz_history_run b = {
                .cmd = cmd, .git = new, .peak_bytes = 52 * GIB / 10, .budget_bytes = 8 * GIB};
        (void)state;
        assert_int_equal(afz_history_diff(&a, &b, text), 3);
        assert_string_equal(text,
                            "revision d9f680b11111 -> 2eaead8, budget 4.0G -> 8.0G, peak 2.1G "
                            "-> 5.2G (+3.1G)");
        assert_int_equal(afz_history_diff(&b, &a, text), 3);
        assert_has(text, "peak 5.2G -> 2.1G (-3.1G)");
        b = a; /* what comes and goes from day to day is not told */
        b.peak_bytes = a.peak_bytes / 100 * 103;
        b.budget_bytes = a.budget_bytes / 100 * 95;
        b.git = none;
        assert_int_equal(afz_history_diff(&a, &b, text), 0);
        b.peak_bytes = b.budget_bytes = UINT64_MAX; /* nor what is not known */
        assert_int_equal(afz_history_diff(&a, &b, text), 0);
        b.cmd = cmd2;
        assert_int_equal(afz_history_diff(&a, &b, text), 1);
        assert_string_equal(text, "with ?[31m");
}

static void test_changed(void **state)
{
        char since[AFZ_RUN_ID_CAP], text[AFZ_CHANGED_CAP];
        (void)state;
        good("20261110-000000-aaaa", GIB, "python train.py --batch 16");
        good("20261111-000000-aaaa", GIB, "python train.py --batch 32");
        good("20261112-000000-aaaa", 9 * GIB, "python eval.py");
        put_run("20261113-000000-aaaa",
                verdict("20261113-000000-aaaa", 1, 9 * GIB, "python train.py --batch 99"));
        put_run("20261113-000001-aaaa", "{");
        good("20261114-000000-aaaa", 2 * GIB, "python train.py --batch 64");
        assert_int_equal(afz_history_changed("20261114-000000-aaaa", since, text), 1);
        assert_string_equal(since, "20261111-000000-aaaa");
        assert_string_equal(text, "batch 32 -> 64, peak 1.0G -> 2.0G (+1.0G)");
        assert_int_equal(afz_history_changed("20261110-000000-aaaa", since, text), -ENOENT);
        assert_int_equal(afz_history_changed("20261112-000000-aaaa", since, text), -ENOENT);
        assert_int_equal(afz_history_changed("20261113-000001-aaaa", since, text), -ENOENT);
        good("20261115-000000-aaaa", 2 * GIB, "python train.py --batch 64");
        assert_int_equal(afz_history_changed("20261115-000000-aaaa", since, text), 0);
        assert_string_equal(since, "20261114-000000-aaaa");
        assert_string_equal(text, "");
}

static struct afz_pruned prune(struct afz_prune_rule rule)
{
        struct afz_history *h;
        struct afz_pruned done;
        assert_int_equal(afz_history_new(&h), 0);
        assert_int_equal(afz_history_prune(h, &rule, &done), 0);
        afz_history_free(h);
        return done;
}

static void test_prune_count(void **state)
{
        struct afz_run live;
        (void)state;
        good("20261110-000000-aaaa", GIB, "a");
        put_run("20261111-000000-aaaa", "{");
        good("20261112-000000-aaaa", GIB, "c");
        assert_int_equal(mkdir(at(RUNS "20261109-000000-aaaa"), 0700), 0);
        start(NULL, &live);
        struct afz_pruned done = prune((struct afz_prune_rule){.keep = 1});
        assert_int_equal(done.runs, 3);
        assert_int_equal(done.refused, 0);
        assert_true(done.bytes > 0);
        assert_true(is_there(at(RUNS "20261112-000000-aaaa")));
        assert_false(is_there(at(RUNS "20261111-000000-aaaa")));
        assert_false(is_there(at(RUNS "20261110-000000-aaaa")));
        assert_false(is_there(at(RUNS "20261109-000000-aaaa")));
        done = prune((struct afz_prune_rule){.keep = 0});
        assert_int_equal(done.runs, 1);
        assert_true(is_there(live.page->dir)); /* a run that lives stays, always */
        finish(&live, 0);
        done = prune((struct afz_prune_rule){.keep = 0});
        assert_int_equal(done.runs, 1);
}

static void test_prune_age(void **state)
{
        (void)state;
        good("20261110-000000-aaaa", GIB, "a"); /* all began 2026-11-15T06:37:45Z, took 12 s */
        struct afz_pruned done =
                prune((struct afz_prune_rule){.by_age = true, .before_s = 1794724665 + 12});
        assert_int_equal(done.runs, 0);
        done = prune((struct afz_prune_rule){.by_age = true, .before_s = 1794724665 + 13});
        assert_int_equal(done.runs, 1);
}

/* A run of another version: nothing of its state can be read, but somebody holds it. */
static void test_prune_held(void **state)
{
        (void)state;
        good("20261110-000000-aaaa", GIB, "a");
        afz_fixture_set(fixture, RUNS "20261110-000000-aaaa/run.state", "as of tomorrow");
        int fd = open(at(RUNS "20261110-000000-aaaa/run.state"), O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
        struct afz_pruned done = prune((struct afz_prune_rule){.keep = 0});
        assert_int_equal(done.runs + done.refused, 0);
        assert_true(is_there(at(RUNS "20261110-000000-aaaa/verdict.json")));
        close(fd);
        done = prune((struct afz_prune_rule){.keep = 0});
        assert_int_equal(done.runs, 1);
}

static void test_prune_foreign(void **state)
{
        struct afz_run mine;
        (void)state;
        good("20261110-000000-aaaa", GIB, "a");
        afz_fixture_set(fixture, RUNS "20261110-000000-aaaa/notes.txt", "dear diary");
        good("20261111-000000-aaaa", GIB, "a");
        afz_fixture_set(fixture, RUNS "20261111-000000-aaaa/flight.afz/deep", "x");
        afz_fixture_set(fixture, RUNS "20261112-000000-aaaa", "a file");
        /* Files of ours that are links to others' files. */
        good("20261113-000000-aaaa", GIB, "a");
        afz_fixture_set(fixture, "state/precious", "x");
        assert_int_equal(symlink(at("state/precious"), at(RUNS "20261113-000000-aaaa/report.html")),
                         0);
        /* A run in a folder of its own, and a link that is nobody's. */
        start(at("mine"), &mine);
        char id[AFZ_RUN_ID_CAP];
        memcpy(id, mine.page->id, sizeof id);
        finish(&mine, 0);
        assert_int_equal(symlink("/etc", at(RUNS "20261114-000000-aaaa")), 0);

        struct afz_pruned done = prune((struct afz_prune_rule){.keep = 0});
        assert_int_equal(done.refused, 3);
        assert_string_equal(done.first_refused, "20261112-000000-aaaa");
        assert_string_equal(done.why, "it is not a folder");
        assert_int_equal(done.runs, 3);
        assert_int_equal(done.links, 2);
        assert_true(is_there(at(RUNS "20261110-000000-aaaa/notes.txt")));
        assert_true(is_there(at(RUNS "20261110-000000-aaaa/verdict.json")));
        assert_true(is_there(at(RUNS "20261111-000000-aaaa/flight.afz/deep")));
        assert_true(is_there(at("state/precious")) && is_there("/etc"));
        assert_false(is_there(at(RUNS "20261113-000000-aaaa")));
        assert_true(is_there(at("mine/verdict.json")));
        char link[128];
        snprintf(link, sizeof link, RUNS "%s", id);
        assert_false(is_there(at(link)));
}

static void test_secrets(void **state)
{
        static const struct {
                const char *cmd, *shown;
        } cases[] = {
                {"python train.py --batch 32", "python train.py --batch 32"},
                {"t --token hunter2 --lr 1", "t --token *** --lr 1"},
                {"t --token=hunter2", "t --token=***"},
                {"t --hf-token hunter2", "t --hf-token ***"},
                {"t --api_key hunter2", "t --api_key ***"},
                {"t -p hunter2", "t -p ***"},
                {"WANDB_API_KEY=hunter2 t", "WANDB_API_KEY=*** t"},
                {"env AWS_SECRET_ACCESS_KEY=hunter2 t", "env AWS_SECRET_ACCESS_KEY=*** t"},
                {"t db.password=hunter2", "t db.password=***"},
                {"t --PASSWORD hunter2", "t --PASSWORD ***"},
                {"t http://me:hunter2@host/x?a@b", "t http://***@host/x?a@b"},
                {"t --db=postgres://me:hunter2@host", "t --db=postgres://***@host"},
                {"t https://hunter2@host", "t https://***@host"},
                {"t -H Authorization: Bearer hunter2", "t -H Authorization: Bearer ***"},
                {"t hf_abcdefghijklmnopqrstuvwx", "t ***"},
                {"t --x=ghp_abcdefghijklmnopqrstuvwx", "t --x=***"},
                {"t --auth --verbose", "t --auth --verbose"},
                {"t --max-tokens 512 --tokenizer gpt2", "t --max-tokens 512 --tokenizer gpt2"},
                {"t --top-p 0.9 --bypass 1", "t --top-p 0.9 --bypass 1"},
                {"t http://host/a@b", "t http://host/a@b"},
                {"t --token", "t --token"},
                {"t --token=", "t --token="},
                {"  t   x ", "  t   x "},
                {"t \x1b[31m\n", "t ?[31m?"},
                {"=x = -", "=x = -"},
                {"", ""},
        };
        char text[128];
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++)
                assert_string_equal(afz_secret_text(cases[i].cmd, text, sizeof text),
                                    cases[i].shown);
        assert_string_equal(afz_secret_text("t --token hunter2", text, 5), "t --");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ALONE(test_none),         ALONE(test_read),       ALONE(test_hostile),
                ALONE(test_lives),        ALONE(test_same),       ALONE(test_diff),
                ALONE(test_diff_numbers), ALONE(test_changed),    ALONE(test_prune_count),
                ALONE(test_prune_age),    ALONE(test_prune_held), ALONE(test_prune_foreign),
                ALONE(test_secrets),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
