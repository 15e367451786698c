/* Why a run ended as it did: whole answers against golden texts, and the ways on which they come
 * about (live, lost, recorded; with and without a recording).
 *
 * The golden texts are tests/golden/why-*.txt. AFZ_GOLDEN_WRITE=1 in the environment writes them
 * anew; look at what changed before you commit it. */
#include <signal.h>
#include <time.h>

#include "run_fixture.h"

#include "explain.h"
#include "flight_file.h"
#include "flight_fixture.h"
#include "pack.h"

#define MIB        (UINT64_C(1) << 20)
#define SECONDS(n) ((uint64_t)(n)*1000000000)
#define TEXT_CAP   16384

/* ---- a run, and what was seen of it ---- */

static void describe(struct afz_run_known *known, struct afz_end end, unsigned seconds)
{
        *known = (struct afz_run_known){
                .page = first_page(), .outcome.end = end, .duration_ns = SECONDS(seconds)};
        memcpy(known->page.id, "20261115-063745-kxqz", 21);
        known->page.started_s = 1794724665;
        known->page.facts = (struct afz_facts){.end = end, .hard_bytes = 5 * GIB};
}

/* The guard's looks, ten in a second: need along a line, and the lines it may not cross. */
static void need(struct afz_flight *f, uint32_t from_ms, uint32_t to_ms, int64_t first,
                 double per_s)
{
        struct fly_times times = fly_every(from_ms, to_ms, 100);
        fly_line(f, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, times, first, per_s);
        fly_flat(f, AFZ_KIND_HOLD, 0, AFZ_HOLD_BUDGET, times, FLY_GB(4));
        fly_flat(f, AFZ_KIND_HOLD, 0, AFZ_HOLD_HARD, times, FLY_GB(5));
        fly_flat(f, AFZ_KIND_HOLD, 0, AFZ_HOLD_AVAILABLE, times, FLY_GB(8));
}

static void stopped(struct afz_run_known *known, uint64_t at)
{
        known->page.peak_bytes = at;
        known->page.did[AFZ_ACTION_TELL] = 1;
        known->page.did[AFZ_ACTION_BRAKE] = 3;
        known->page.did[AFZ_ACTION_TERMINATE] = 1;
        known->page.facts.stop_cause = AFZ_CAUSE_BUDGET;
        known->page.facts.stop_need_bytes = at;
        known->page.facts.slope_bytes_per_s = (int64_t)(40 * MIB);
        known->page.facts.largest.pid = 4711;
        known->page.facts.largest.bytes = at - 100 * MIB;
        memcpy(known->page.facts.largest.name, "python", 7);
}

static void fly_leak(struct afz_run_known *known, struct afz_flight *f)
{
        describe(known, (struct afz_end){AFZ_END_STOPPED, SIGTERM}, 120);
        need(f, 0, 120000, FLY_MB(800), (double)FLY_MB(32));
        stopped(known, 4640 * MIB);
}

static void fly_exhaustion(struct afz_run_known *known, struct afz_flight *f)
{
        describe(known, (struct afz_end){AFZ_END_STOPPED, SIGTERM}, 63);
        need(f, 0, 60000, FLY_GB(1), 0);
        need(f, 60000, 63000, FLY_GB(1), (double)FLY_MB(1200));
        stopped(known, 4700 * MIB);
}

static void fly_oom(struct afz_run_known *known, struct afz_flight *f)
{
        describe(known, (struct afz_end){AFZ_END_OOM_KILLED, SIGKILL}, 20);
        known->page.peak_bytes = 4 * GIB;
        need(f, 0, 20000, FLY_GB(1), 0);
        fly_point(f, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, 20000, FLY_GB(4));
        fly_point(f, AFZ_KIND_HOLD, 0, AFZ_HOLD_OOM_KILLS, 20000, 1);
}

static void fly_clean(struct afz_run_known *known, struct afz_flight *f)
{
        describe(known, (struct afz_end){AFZ_END_EXIT, 0}, 300);
        known->page.peak_bytes = 2 * GIB;
        need(f, 0, 300000, FLY_GB(2), 0);
}

static void fly_lost(struct afz_run_known *known, struct afz_flight *f)
{
        describe(known, (struct afz_end){AFZ_END_LOST, -1}, 0);
        known->page.facts = (struct afz_facts){0}; /* it had no time to tell */
        f->head.tier = AFZ_TIER_CGROUP2;
        need(f, 0, 41000, FLY_GB(3), (double)FLY_MB(2));
        need(f, 41000, 46000, FLY_GB(3.2), (double)FLY_MB(80));
        fly_mark(f, 45000, AFZ_MARK_ACTION, AFZ_ACTION_BRAKE, NULL);
}

static void fly_crash(struct afz_run_known *known, struct afz_flight *f)
{
        describe(known, (struct afz_end){AFZ_END_SIGNAL, SIGSEGV}, 12);
        known->page.peak_bytes = GIB;
        need(f, 0, 12000, FLY_GB(1), 0);
        fly_event(f, 11900, AFZ_EVENT_SEGFAULT, 4711,
                  "python[4711]: segfault at 0 ip 00007f in _fast.so");
}

/* ---- golden texts ---- */

static void check_golden(const char *name, const char *text)
{
        static char want[TEXT_CAP];
        char path[512];
        const char *fixtures = getenv("AFZ_FIXTURES");
        snprintf(path, sizeof path, "%s/../golden/why-%s.txt", fixtures ? fixtures : "fixtures",
                 name);
        FILE *file = fopen(path, getenv("AFZ_GOLDEN_WRITE") ? "w" : "r");
        if (!file)
                fail_msg("no %s", path);
        if (getenv("AFZ_GOLDEN_WRITE")) {
                fputs(text, file);
                fclose(file);
                return;
        }
        want[fread(want, 1, sizeof want - 1, file)] = '\0';
        fclose(file);
        if (strcmp(text, want) != 0)
                fail_msg("why-%s.txt differs; this was said:\n%s", name, text);
}

static const char *words(const struct afz_run_known *known)
{
        static char buf[TEXT_CAP];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
        afz_run_put_text(&out, &known->page, &known->outcome, known->duration_ns);
        assert_int_equal(out.err, 0);
        buf[out.len] = '\0';
        return buf;
}

static const struct {
        const char *name;
        void (*fly)(struct afz_run_known *known, struct afz_flight *f);
        const char *first, *holds; /* the first verdict; one that is there, too */
} flights[] = {
        {"leak", fly_leak, "leak", "host-exhaustion"},
        {"host-exhaustion", fly_exhaustion, "host-exhaustion", NULL},
        {"oom-killed", fly_oom, "oom-killed", NULL},
        {"clean", fly_clean, "clean", NULL},
        {"lost", fly_lost, "lost", NULL},
        {"crash", fly_crash, "crash", NULL},
};

/* Every line fits a terminal but the first, and no word is lost in the turning over. */
static void test_rows_are_turned_over(void **state)
{
        (void)state;
        static const struct {
                const char *text, *want;
        } rows_of[] = {
                {"", "  title      \n"},
                {"short", "  title      short\n"},
                {"1234567 101234567 201234567 301234567 401234567 501234567 601234567 ",
                 "  title      1234567 101234567 201234567 301234567 401234567 501234567 "
                 "601234567\n"},
                {"1234567 101234567 201234567 301234567 401234567 501234567 6012345678 x",
                 "  title      1234567 101234567 201234567 301234567 401234567 501234567\n"
                 "             6012345678 x\n"},
                {"/a/path/that/is/longer/than/a/line/and/has/no/blank/in/it/at/all/0123456789 x",
                 "  title      "
                 "/a/path/that/is/longer/than/a/line/and/has/no/blank/in/it/at/all/0123456789\n"
                 "             x\n"},
                {"\x1b[31m\n", "  title      ?[31m?\n"},
        };
        for (size_t i = 0; i < sizeof rows_of / sizeof rows_of[0]; i++) {
                char buf[1024];
                struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
                afz_run_put_row(&out, "title", rows_of[i].text);
                buf[out.len] = '\0';
                assert_string_equal(buf, rows_of[i].want);
        }
}

static void test_golden_words(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof flights / sizeof flights[0]; i++) {
                struct afz_run_known known;
                struct afz_flight flight;
                afz_flight_init(&flight);
                flights[i].fly(&known, &flight);
                struct afz_end end = known.outcome.end;
                afz_explain_flight(&known, &flight);
                assert_true(known.outcome.verdicts > 0);
                assert_string_equal(known.outcome.verdict[0].id, flights[i].first);
                if (flights[i].holds) {
                        const struct afz_verdict *v =
                                afz_outcome_find(&known.outcome, flights[i].holds);
                        assert_non_null(v);
                        assert_string_equal(v->caused_by, flights[i].first);
                }
                assert_int_equal(known.outcome.end.how, end.how);
                assert_int_equal(known.outcome.end.code, end.code);
                check_golden(flights[i].name, words(&known));
                afz_flight_done(&flight);
        }
}

static bool has_evidence(const struct afz_outcome *outcome, const char *text)
{
        for (unsigned i = 0; i < outcome->verdicts; i++)
                for (int e = 0; e < AFZ_EVIDENCE_MAX; e++)
                        if (strcmp(outcome->verdict[i].evidence[e], text) == 0)
                                return true;
        return false;
}

/* Nobody told the page: what the recording knows is told. */
static void test_lost_is_completed(void **state)
{
        (void)state;
        struct afz_run_known known;
        struct afz_flight flight;
        afz_flight_init(&flight);
        fly_lost(&known, &flight);
        afz_explain_flight(&known, &flight);
        assert_true(known.page.peak_bytes > 3 * GIB);
        assert_int_equal(known.duration_ns / 1000000000, 45);
        assert_int_equal(known.page.did[AFZ_ACTION_BRAKE], 1);
        assert_true(has_evidence(&known.outcome, "the recording ends at 06:38:30, 46 s into the "
                                                 "run; it needed 3.6G then, and rising"));
        known.rebooted = true;
        afz_explain_flight(&known, &flight);
        assert_non_null(afz_outcome_find(&known.outcome, "machine-lost"));
        afz_flight_done(&flight);
}

/* A run that goes on: what can be said so far, and no end. */
static void test_live(void **state)
{
        (void)state;
        struct afz_run_known known;
        struct afz_flight flight;
        char buf[TEXT_CAP];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
        afz_flight_init(&flight);
        describe(&known, (struct afz_end){AFZ_END_RUNNING, -1}, 10);
        need(&flight, 0, 10000, FLY_GB(1), 0);
        afz_explain_flight(&known, &flight);
        assert_int_equal(known.outcome.end.how, AFZ_END_RUNNING);
        assert_has(words(&known), "still running");
        afz_run_put_json(&out, &known.page, &known.outcome, known.duration_ns);
        buf[out.len] = '\0';
        assert_has(buf, "\"end\":null");
        afz_flight_done(&flight);
}

/* Where the judges only know that they do not know, the guard's own words stand. */
static void test_guard_knows_more(void **state)
{
        (void)state;
        struct afz_run_known known;
        struct afz_flight flight;
        afz_flight_init(&flight);
        describe(&known, (struct afz_end){AFZ_END_UNKNOWN, -1}, 10);
        struct afz_verdict *v = afz_outcome_add(&known.outcome, "not-known", AFZ_LEVEL_UNKNOWN, 1);
        snprintf(v->summary, sizeof v->summary, "it was let go and runs on");
        afz_explain_flight(&known, &flight);
        assert_string_equal(known.outcome.verdict[0].summary, "it was let go and runs on");
        afz_flight_done(&flight);
}

/* ---- verdict.json, there and back ---- */

static size_t json_of(const struct afz_run_known *known, char *buf)
{
        struct afz_out out = afz_out_to(-1, buf, TEXT_CAP - 1);
        afz_run_put_json(&out, &known->page, &known->outcome, known->duration_ns);
        assert_int_equal(out.err, 0);
        buf[out.len] = '\0';
        return out.len;
}

static void test_json_comes_back(void **state)
{
        (void)state;
        char there[TEXT_CAP], back[TEXT_CAP];
        for (size_t i = 0; i < sizeof flights / sizeof flights[0]; i++) {
                struct afz_run_known known, again;
                struct afz_flight flight;
                afz_flight_init(&flight);
                flights[i].fly(&known, &flight);
                afz_explain_flight(&known, &flight);
                known.outcome.verdict[0].from_ms = 1234;
                known.outcome.verdict[0].to_ms = 4000000;
                known.page.facts.storm = true;
                memcpy(known.page.facts.saved, "\"saved\"\n\t\\ \x01", 13);
                memcpy(known.page.facts.not_again, "it leaks", 9);
                known.page.cpu_ns = known.duration_ns / 100000 * 123;
                size_t n = json_of(&known, there);
                assert_int_equal(afz_run_known_parse((struct afz_span){there, n}, &again), 0);
                json_of(&again, back);
                assert_string_equal(there, back);
                assert_true(again.recorded);
                assert_int_equal(again.page.facts.end.how,
                                 known.page.facts.end.how); /* RUNNING: none were told */
                afz_flight_done(&flight);
        }
}

static void test_hostile_json(void **state)
{
        (void)state;
        static const char id[] = "\"run\":\"20261115-063745-kxqz\"";
        static const struct {
                const char *text;
                bool has_id;
                int want;
        } hostile[] = {
                {"", false, -EBADMSG},
                {"[]", false, -EBADMSG},
                {"{}", false, -EPROTO},
                {"{\"schema\":2,", true, -EPROTO},
                {"{\"schema\":1}", false, -EBADMSG},
                {"{\"schema\":1,\"run\":\"../../etc/passwd\"}", false, -EBADMSG},
                {"{\"schema\":1,\"end\":7,\"verdicts\":{},\"peak\":[],", true, 0},
                {"{\"schema\":1,\"end\":{\"how\":\"eaten\",\"code\":-5},\"verdicts\":[3,{}],", true,
                 0},
                {"{\"schema\":1,\"tier\":\"cloud\",\"duration_s\":1e300,\"did\":{\"kill\":-1},",
                 true, 0},
                {"{\"schema\":1,\"verdicts\":[{\"confidence\":1e9,\"level\":\"loud\",\"evidence\":"
                 "[1,null,\"a\",[]],\"from_s\":-1,\"to_s\":1e99}],",
                 true, 0},
                {"{\"schema\":1,\"facts\":{\"stop_cause\":5,\"storm\":\"yes\",\"batch\":1e3,"
                 "\"largest\":7,\"saved\":null},",
                 true, 0},
        };
        for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
                struct afz_run_known known;
                char text[512], json[TEXT_CAP];
                snprintf(text, sizeof text, "%s%s%s", hostile[i].text, hostile[i].has_id ? id : "",
                         hostile[i].has_id ? "}" : "");
                int r = afz_run_known_parse(afz_span_str(text), &known);
                if (r != hostile[i].want)
                        fail_msg("%s: %d", text, r);
                if (r == 0)
                        json_of(&known, json); /* and whatever came of it can be told */
        }
}

static void test_cut_json(void **state)
{
        (void)state;
        struct afz_run_known known, again;
        struct afz_flight flight;
        char text[TEXT_CAP];
        afz_flight_init(&flight);
        fly_exhaustion(&known, &flight);
        afz_explain_flight(&known, &flight);
        size_t n = json_of(&known, text);
        for (size_t cut = 0; cut + 1 < n; cut++)
                assert_int_equal(afz_run_known_parse((struct afz_span){text, cut}, &again),
                                 -EBADMSG);
        afz_flight_done(&flight);
}

/* ---- with a folder, and a recording in it ---- */

/* Ten seconds of a need that rises. */
static void record(const struct afz_run *run, const char *id)
{
        static unsigned char buf[65536];
        struct afz_flight_writer *writer;
        struct afz_pack pack = {.buf = buf, .cap = sizeof buf};
        struct afz_flight_head head = {
                .cmd = (char *)"python", .cwd = (char *)"", .git = (char *)""};
        pack.seen = calloc(AFZ_PACK_SUBJECTS, sizeof *pack.seen);
        assert_non_null(pack.seen);
        snprintf(head.run, sizeof head.run, "%s", id);
        head.started_s = run->page->started_s;
        uint64_t start = run->page->started_ns;
        assert_int_equal(afz_flight_create(run->dir_fd, &head, start, &writer), 0);
        afz_pack_start(&pack, start, start);
        for (unsigned i = 0; i < 100; i++) {
                struct afz_sample s = {.t_ns = start + i * UINT64_C(100000000),
                                       .subject.kind = AFZ_KIND_HOLD,
                                       .name = "hold"};
                afz_sample_set(&s, AFZ_HOLD_NEED, (int64_t)(GIB + i * 10 * MIB));
                assert_int_equal(afz_pack_sample(&pack, s.t_ns, &s), 0);
        }
        assert_int_equal(afz_flight_write(writer, pack.buf, pack.len), 0);
        assert_int_equal(afz_flight_close(writer), 0);
        free(pack.seen);
}

static void test_lost_run_on_disk(void **state)
{
        (void)state;
        struct afz_run run;
        struct afz_run_ref ref;
        struct afz_run_known known;
        struct afz_outcome outcome;
        struct afz_flight flight;
        char why[AFZ_RUN_WHY_CAP];

        start(NULL, &run);
        record(&run, run.page->id);
        lose(&run);
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_int_equal(afz_explain(&ref, NULL, &outcome, &flight, why), 0);
        assert_string_equal(why, "");
        assert_true(flight.tracks > 0);
        assert_int_equal(outcome.end.how, AFZ_END_LOST);
        afz_flight_done(&flight);

        /* The next run records the end in its own few words; who asks later looks once more. */
        assert_int_equal(afz_run_collect(NULL, NULL, NULL), 1);
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_int_equal(afz_run_recall(&ref, &known), 0);
        assert_true(known.recorded);
        assert_null(strstr(told(&ref, false), "the recording ends"));
        int dir_fd = open(ref.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(afz_explain_known(&known, dir_fd, NULL, why), 0);
        close(dir_fd);
        assert_int_equal(afz_run_retell(&ref, &known), 0);
        assert_has(told(&ref, false), "the recording ends");
        assert_has(told(&ref, true), "\"ram_bytes\":2111832064"); /* 1G + 990M */
}

static void test_no_recording(void **state)
{
        (void)state;
        struct afz_run run;
        struct afz_run_ref ref;
        struct afz_outcome outcome;
        struct afz_flight flight;
        char why[AFZ_RUN_WHY_CAP];
        static const char *const broken[] = {NULL, "", "afz", "not a recording at all"};

        for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
                start(NULL, &run);
                if (broken[i]) {
                        int fd = openat(run.dir_fd, "flight.afz", O_WRONLY | O_CREAT, 0600);
                        assert_int_equal(write(fd, broken[i], strlen(broken[i])),
                                         strlen(broken[i]));
                        close(fd);
                }
                run.page->tier = AFZ_TIER_CGROUP2;
                lose(&run);
                assert_int_equal(afz_run_find(NULL, &ref), 0);
                assert_int_equal(afz_explain(&ref, NULL, &outcome, &flight, why), 0);
                assert_int_equal(flight.tracks, 0);
                assert_non_null(afz_outcome_find(&outcome, "lost"));
                afz_flight_done(&flight);
                assert_int_equal(afz_run_collect(NULL, NULL, NULL), 1);
        }
}

/* A recording that another run left in a folder is not this one's. */
static void test_foreign_recording(void **state)
{
        (void)state;
        struct afz_run run;
        struct afz_run_ref ref;
        struct afz_outcome outcome;
        struct afz_flight flight;
        char why[AFZ_RUN_WHY_CAP];
        start(NULL, &run);
        record(&run, "20001231-235959-aaaa");
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_int_equal(afz_explain(&ref, NULL, &outcome, &flight, why), 0);
        assert_has(why, "another run");
        assert_int_equal(flight.tracks, 0);
        afz_flight_done(&flight);
        finish(&run, 0);
}

/* What the front found replaces what the guard said, and never the end. */
static void test_better_words_stand(void **state)
{
        (void)state;
        struct afz_run run;
        struct afz_run_ref ref;
        struct afz_outcome guard = {.end = {AFZ_END_STOPPED, SIGTERM}}, none = guard, rich = guard,
                           other = {.end = {AFZ_END_EXIT, 0}};
        snprintf(afz_outcome_add(&guard, "host-exhaustion", AFZ_LEVEL_ACT, 0.9)->summary, 64,
                 "stopped");
        snprintf(afz_outcome_add(&rich, "leak", AFZ_LEVEL_ACT, 0.9)->summary, 64, "it leaks");
        snprintf(afz_outcome_add(&other, "clean", AFZ_LEVEL_OK, 0.9)->summary, 64, "all is well");
        start(NULL, &run);
        assert_int_equal(afz_run_write(&run, &guard), 0);
        assert_int_equal(afz_run_write(&run, &rich), 0);
        assert_int_equal(afz_run_write(&run, &none), 0);
        assert_int_equal(afz_run_write(&run, &other), 0);
        assert_int_equal(afz_run_find(NULL, &ref), 0);
        assert_has(told(&ref, false), ": it leaks\n");
        assert_has(told(&ref, true), "\"how\":\"stopped\"");
        afz_run_done(&run);
}

int main(void)
{
        setenv("TZ", "UTC", 1);
        tzset();
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rows_are_turned_over),
                cmocka_unit_test(test_golden_words),
                cmocka_unit_test(test_lost_is_completed),
                cmocka_unit_test(test_live),
                cmocka_unit_test(test_guard_knows_more),
                cmocka_unit_test(test_json_comes_back),
                cmocka_unit_test(test_hostile_json),
                cmocka_unit_test(test_cut_json),
                ROW(test_lost_run_on_disk),
                ROW(test_no_recording),
                ROW(test_foreign_recording),
                ROW(test_better_words_stand),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
