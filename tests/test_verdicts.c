/* All judges together: causes before symptoms, the strongest first, and always an answer; and the
 * words of the leak. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "count_of.h"
#include "leak.h"
#include "role.h"
#include "verdicts.h"
#include "work_signs.h"

#define MIB (INT64_C(1) << 20)

/* ---- the table ---- */

static const char *const end_ids[] = {"host-exhaustion",   "fork-storm", "oom-killed",  "crash",
                                      "killed-externally", "exception",  "machine-lost"};

static bool stands_below(unsigned row, const char *id)
{
        for (unsigned i = row + 1; i < afz_judges_count; i++)
                if (strcmp(afz_judges[i].id, id) == 0)
                        return true;
        for (unsigned i = 0; i < AFZ_COUNT_OF(end_ids); i++)
                if (strcmp(end_ids[i], id) == 0)
                        return true;
        return false;
}

/* So a chain of causes can have no ring. */
static void rows_explain_what_is_below(void **state)
{
        (void)state;
        for (unsigned i = 0; i < afz_judges_count; i++) {
                const struct afz_judge *row = &afz_judges[i];
                assert_non_null(row->judge);
                for (unsigned k = 0; k < i; k++)
                        assert_string_not_equal(row->id, afz_judges[k].id);
                for (unsigned k = 0; k < AFZ_COUNT_OF(row->explains) && row->explains[k]; k++)
                        if (!stands_below(i, row->explains[k]))
                                fail_msg("%s explains %s", row->id, row->explains[k]);
        }
        assert_string_equal(afz_judges[afz_judges_count - 1].id, "end");
}

/* ---- order ---- */

struct said {
        const char *id;
        enum afz_level level;
        double confidence;
};

#define ACT     AFZ_LEVEL_ACT
#define WARN    AFZ_LEVEL_WARN
#define FINE    AFZ_LEVEL_OK
#define UNKNOWN AFZ_LEVEL_UNKNOWN

static void causes_before_symptoms(void **state)
{
        (void)state;
        static const struct {
                struct said in[5];
                const char *out[5], *cause[5];
        } rows[] = {
                /* The rest of its chain follows the leak. */
                {{{"leak", ACT, 0.7}, {"swap-thrash", ACT, 0.9}, {"host-exhaustion", ACT, 0.95}},
                 {"leak", "host-exhaustion", "swap-thrash"},
                 {"", "leak", "leak"}},
                /* A cause said more weakly comes first all the same. */
                {{{"log-growth", WARN, 0.8}, {"disk-full", ACT, 0.95}, {"exception", WARN, 0.6}},
                 {"log-growth", "disk-full", "exception"},
                 {"", "log-growth", "disk-full"}},
                /* A guess explains nothing. */
                {{{"leak", WARN, 0.4}, {"host-exhaustion", ACT, 0.95}},
                 {"host-exhaustion", "leak"},
                 {"", ""}},
                /* What was not serious does not explain an end that may have any cause. */
                {{{"fd-leak", WARN, 0.9}, {"exception", WARN, 0.6}},
                 {"exception", "fd-leak"},
                 {"", ""}},
                {{{"fd-leak", ACT, 0.9}, {"exception", WARN, 0.6}},
                 {"fd-leak", "exception"},
                 {"", "fd-leak"}},
                /* How it ended is what was asked, where nobody explains it. */
                {{{"data-stall", WARN, 0.9}, {"crash", WARN, 0.8}}, {"crash", "data-stall"}, {""}},
                {{{"data-stall", WARN, 0.9}, {"machine-lost", UNKNOWN, 1}},
                 {"machine-lost", "data-stall"},
                 {""}},
                {{{"data-stall", WARN, 0.9}, {"not-known", UNKNOWN, 1}},
                 {"data-stall", "not-known"},
                 {""}},
                /* Ended by hand, and that was all right. */
                {{{"hang:deadlock", ACT, 0.9}, {"killed-externally", FINE, 0.8}},
                 {"hang:deadlock", "killed-externally"},
                 {"", ""}},
                {{{"hang:deadlock", ACT, 0.9}, {"killed-externally", WARN, 0.8}},
                 {"hang:deadlock", "killed-externally"},
                 {"", "hang:deadlock"}},
                /* By level, then by how sure. */
                {{{"power-limit", WARN, 0.7}, {"data-stall", WARN, 0.8}, {"clean", FINE, 0.9}},
                 {"data-stall", "power-limit", "clean"},
                 {""}},
                /* One of a family. */
                {{{"hang:spin", WARN, 0.7}, {"hang:deadlock", ACT, 0.9}}, {"hang:deadlock"}, {""}},
                {{{"leak", WARN, 0.7}, {"leak", ACT, 0.6}}, {"leak"}, {""}},
        };
        for (unsigned r = 0; r < AFZ_COUNT_OF(rows); r++) {
                struct afz_outcome o = {0};
                unsigned n = 0;
                for (unsigned i = 0; i < 5 && rows[r].in[i].id; i++)
                        assert_non_null(afz_outcome_add(&o, rows[r].in[i].id, rows[r].in[i].level,
                                                        rows[r].in[i].confidence));
                afz_verdicts_settle(&o);
                for (; n < 5 && rows[r].out[n]; n++) {
                        const char *cause = rows[r].cause[n] ? rows[r].cause[n] : "";
                        if (n >= o.verdicts || strcmp(o.verdict[n].id, rows[r].out[n]) != 0 ||
                            strcmp(o.verdict[n].caused_by, cause) != 0)
                                fail_msg("row %u, place %u: %s by '%s'", r, n, o.verdict[n].id,
                                         o.verdict[n].caused_by);
                }
                assert_int_equal(o.verdicts, n);
        }
}

/* ---- always an answer ---- */

static void every_end_has_a_verdict(void **state)
{
        (void)state;
        static const int codes[] = {-1, 0, 1, 2, 9, 11, 15, 130, 137, 255};
        struct afz_flight flight;
        afz_flight_init(&flight);
        for (int how = 0; how < AFZ_END_COUNT; how++)
                for (unsigned i = 0; i < AFZ_COUNT_OF(codes); i++)
                        for (unsigned cause = 0; cause < AFZ_CAUSE_COUNT; cause++) {
                                struct afz_case c = {.flight = &flight, .rebooted = i % 2};
                                struct afz_outcome o;
                                c.facts.end = (struct afz_end){(enum afz_end_how)how, codes[i]};
                                c.facts.stop_cause = cause;
                                afz_verdicts_of(&c, &o);
                                assert_int_equal(o.end.how, how);
                                if (how == AFZ_END_RUNNING)
                                        continue;
                                assert_true(o.verdicts >= 1);
                                assert_true(o.verdict[0].summary[0] != '\0');
                        }
}

/* ---- the leak's words ---- */

struct run {
        struct afz_flight flight;
        bool is_mute; /* it never writes a line */
        struct afz_track *hold, *main, *worker;
};

static void point(struct run *r, struct afz_track *track, enum afz_metric metric, uint32_t t_ms,
                  int64_t value)
{
        struct afz_point p = {t_ms, 0, value, value, value};
        assert_int_equal(afz_flight_add(&r->flight, track, metric, &p), 0);
}

static struct afz_track *track_of(struct run *r, enum afz_kind kind, uint64_t id, const char *name)
{
        struct afz_subject subject = {.kind = kind, .id = id};
        struct afz_track *track = afz_flight_track(&r->flight, &subject, name, "", "");
        assert_non_null(track);
        return track;
}

/* `seconds` of it, from 200 MiB on: by `main` and `worker` MiB a second, of at most 4 GiB. */
static void leaking(struct run *r, uint32_t from_ms, uint32_t seconds, double by_main,
                    double by_worker)
{
        for (uint32_t t = 0; t < seconds * 1000; t += 100) {
                double m = 150 + by_main * t / 1000, w = 50 + by_worker * t / 1000;
                r->hold = track_of(r, AFZ_KIND_HOLD, 0, "");
                point(r, r->hold, AFZ_HOLD_NEED, from_ms + t, (int64_t)(m + w) * MIB);
                point(r, r->hold, AFZ_HOLD_HARD, from_ms + t, 4096 * MIB);
                if (t % 1000 != 0)
                        continue;
                struct afz_track *job = track_of(r, AFZ_KIND_JOB, 0, "");
                point(r, job, AFZ_JOB_CPU, from_ms + t, (from_ms + t) * INT64_C(1000000));
                point(r, job, AFZ_JOB_WRITE_CALLS, from_ms + t, r->is_mute ? 0 : from_ms + t);
                r->main = track_of(r, AFZ_KIND_PROC, 100, "python3");
                point(r, r->main, AFZ_PROC_NEED, from_ms + t, (int64_t)m * MIB);
                point(r, r->main, AFZ_PROC_ROLE, from_ms + t, AFZ_ROLE_MAIN);
                for (uint64_t pid = 101; pid <= 102; pid++) {
                        r->worker = track_of(r, AFZ_KIND_PROC, pid, "pt_data_worker");
                        point(r, r->worker, AFZ_PROC_NEED, from_ms + t, (int64_t)(w / 2) * MIB);
                        point(r, r->worker, AFZ_PROC_ROLE, from_ms + t, AFZ_ROLE_WORKER);
                }
        }
}

static void mark(struct run *r, uint32_t t_ms, enum afz_mark_kind kind, int64_t code)
{
        assert_int_equal(afz_flight_mark(&r->flight, t_ms, kind, code, "", 0), 0);
}

static struct afz_outcome judge(const struct run *r, enum afz_end_how how, int code)
{
        struct afz_case c = {.flight = &r->flight, .budget_bytes = 4096ULL << 20};
        struct afz_outcome o;
        c.facts.end = (struct afz_end){how, code};
        c.facts.hard_bytes = c.budget_bytes;
        if (how == AFZ_END_STOPPED)
                c.facts.stop_cause = AFZ_CAUSE_BUDGET;
        afz_verdicts_of(&c, &o);
        return o;
}

static void has(const char *text, const char *words)
{
        if (!strstr(text, words))
                fail_msg("no '%s' in: %s", words, text);
}

static bool noted(const struct afz_verdict *v, const char *words)
{
        for (int i = 0; i < AFZ_EVIDENCE_MAX; i++)
                if (strstr(v->evidence[i], words))
                        return true;
        return false;
}

static void a_leak_that_ended_it(void **state)
{
        (void)state;
        struct run r = {0};
        leaking(&r, 0, 60, 60, 1);
        mark(&r, 59900, AFZ_MARK_ACTION, AFZ_ACTION_KILL);
        struct afz_outcome o = judge(&r, AFZ_END_STOPPED, -1);
        const struct afz_verdict *v = &o.verdict[0];
        assert_string_equal(v->id, "leak");
        assert_int_equal(v->level, AFZ_LEVEL_ACT);
        assert_true(v->confidence >= 0.85);
        has(v->summary, "61M every second");
        has(v->summary, "when it was stopped");
        has(v->fix, "loss.item()");
        assert_true(noted(v, "python3 (main, pid 100) grew by"));
        const struct afz_verdict *end = afz_outcome_find(&o, "host-exhaustion");
        assert_non_null(end);
        assert_string_equal(end->caused_by, "leak");
        afz_flight_done(&r.flight);
}

static void seconds_to_the_line(void **state)
{
        (void)state;
        struct run r = {0};
        leaking(&r, 0, 5, 700, 1);
        struct afz_outcome o = judge(&r, AFZ_END_OOM_KILLED, -1);
        assert_string_equal(o.verdict[0].id, "leak");
        has(o.verdict[0].summary, "grew steadily");
        assert_true(o.verdict[0].confidence < 0.8);
        /* The same growth in a run that ended well is nothing yet. */
        o = judge(&r, AFZ_END_EXIT, 0);
        assert_null(afz_outcome_find(&o, "leak"));
        afz_flight_done(&r.flight);
}

static void workers_that_leak(void **state)
{
        (void)state;
        struct run r = {0};
        leaking(&r, 0, 90, 0.01, 4);
        struct afz_outcome o = judge(&r, AFZ_END_EXIT, 0);
        const struct afz_verdict *v = afz_outcome_find(&o, "leak");
        assert_non_null(v);
        assert_int_equal(v->level, AFZ_LEVEL_WARN);
        has(v->summary, "at the end");
        has(v->fix, "loader workers grow");
        assert_true(noted(v, "2 loader workers grew by"));
        assert_null(afz_outcome_find(&o, "clean"));
        afz_flight_done(&r.flight);
}

static void a_live_leak_and_its_forecast(void **state)
{
        (void)state;
        struct run r = {0};
        struct afz_trend trend;
        struct afz_forecast when;
        leaking(&r, 0, 400, 4, 1); /* 2200 MiB now, 1896 to go: 379 s */
        struct afz_outcome o = judge(&r, AFZ_END_RUNNING, -1);
        const struct afz_verdict *v = afz_outcome_find(&o, "leak");
        assert_non_null(v);
        assert_true(noted(v, "it meets the 4.0G it may use in 6 min"));
        assert_true(afz_leak_forecast(&r.flight, AFZ_TREND_LIVE, &trend, &when));
        assert_true(when.at_ms > 360000 && when.at_ms < 400000);
        afz_flight_done(&r.flight);

        memset(&r, 0, sizeof r);
        leaking(&r, 0, 100, 4, 1); /* too early to say */
        assert_false(afz_leak_forecast(&r.flight, AFZ_TREND_LIVE, &trend, &when));
        afz_flight_done(&r.flight);
}

/* The first attempt leaked; the last one, with a smaller batch, did not. */
static void only_the_last_attempt(void **state)
{
        (void)state;
        struct run r = {0};
        mark(&r, 0, AFZ_MARK_ATTEMPT, 1);
        leaking(&r, 0, 60, 50, 1);
        mark(&r, 60000, AFZ_MARK_ATTEMPT, 2);
        leaking(&r, 60000, 60, 0, 0);
        struct afz_outcome o = judge(&r, AFZ_END_EXIT, 0);
        assert_null(afz_outcome_find(&o, "leak"));
        afz_flight_done(&r.flight);
}

/* Nothing written, nothing given back, no pause: a list that is being built looks like that. After
 * a minute it would be done. */
static void building_up_is_no_leak(void **state)
{
        (void)state;
        struct run r = {.is_mute = true};
        leaking(&r, 0, 30, 100, 0);
        struct afz_outcome o = judge(&r, AFZ_END_STOPPED, -1);
        assert_null(afz_outcome_find(&o, "leak"));
        o = judge(&r, AFZ_END_EXIT, 0);
        assert_null(afz_outcome_find(&o, "leak"));
        afz_flight_done(&r.flight);

        r = (struct run){.is_mute = true};
        leaking(&r, 0, 90, 40, 0);
        o = judge(&r, AFZ_END_STOPPED, -1);
        assert_string_equal(o.verdict[0].id, "leak");
        afz_flight_done(&r.flight);
}

/* Ten seconds by 100 MiB each, in different ways. */
static void signs_of_work(void **state)
{
        (void)state;
        static const struct {
                unsigned pause, fall, running; /* looks of ten that rest; MiB; processes */
                int64_t line_bytes, cpu_percent;
                enum afz_work work;
        } rows[] = {
                {0, 0, 1, 0, 100, AFZ_WORK_NONE},
                {0, 0, 1, 80, 100, AFZ_WORK_SEEN},
                {6, 0, 1, 0, 100, AFZ_WORK_HINTED},
                {0, 30, 1, 0, 100, AFZ_WORK_SEEN},
                {0, 0, 0, 0, 20, AFZ_WORK_HINTED},
                {0, 0, 1, 0, 20, AFZ_WORK_NONE}, /* no core free */
        };
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                struct run r = {0};
                double mib = 100;
                const char *sign = NULL;
                for (uint32_t look = 0; look < 100; look++) {
                        uint32_t t = look * 100;
                        struct afz_track *hold = track_of(&r, AFZ_KIND_HOLD, 0, "");
                        mib += look % 10 < rows[i].pause ? 0 : 100.0 / (10 - rows[i].pause);
                        point(&r, hold, AFZ_HOLD_NEED, t,
                              (int64_t)(mib - (look % 5 == 4 ? rows[i].fall : 0)) * MIB);
                        if (look % 10 != 0)
                                continue;
                        struct afz_track *job = track_of(&r, AFZ_KIND_JOB, 0, "");
                        point(&r, job, AFZ_JOB_CPU, t, t * INT64_C(10000) * rows[i].cpu_percent);
                        point(&r, job, AFZ_JOB_RUNNING, t, rows[i].running);
                        point(&r, job, AFZ_JOB_READ_CALLS, t, 0);
                        point(&r, job, AFZ_JOB_WRITE_CALLS, t, t * rows[i].line_bytes / 1000);
                }
                enum afz_work work = afz_work_in(&r.flight, 0, 10000, &sign);
                if (work != rows[i].work || (work >= AFZ_WORK_HINTED) != (sign[0] != '\0'))
                        fail_msg("row %u: %d, %s", i, work, sign);
                assert_int_equal(afz_work_in(&r.flight, 20000, 30000, NULL), AFZ_WORK_UNKNOWN);
                assert_int_equal(afz_work_in(&r.flight, 5, 5, NULL), AFZ_WORK_UNKNOWN);
                afz_flight_done(&r.flight);
        }
}

/* What grows is what read() hands out: a data set on its way into memory, not a leak. */
static void loading_is_no_leak(void **state)
{
        (void)state;
        struct run r = {0};
        leaking(&r, 0, 8, 400, 0);
        struct afz_track *job = track_of(&r, AFZ_KIND_JOB, 0, "");
        for (uint32_t t = 0; t < 8000; t += 1000)
                point(&r, job, AFZ_JOB_READ_CALLS, t, (int64_t)(400 * t / 1000) * MIB);
        struct afz_outcome o = judge(&r, AFZ_END_STOPPED, -1);
        assert_null(afz_outcome_find(&o, "leak"));
        assert_string_equal(o.verdict[0].id, "host-exhaustion");
        afz_flight_done(&r.flight);
}

/* A run of less than a minute that says nothing and never rests: by what it computed for what it
 * kept. */
static void computing_is_a_sign(void **state)
{
        (void)state;
        static const struct {
                double mib_per_s;
                int64_t read_share; /* of the growth, in hundredths */
                enum afz_end_how how;
                bool leaks;
        } rows[] = {
                {10, 0, AFZ_END_EXIT, true},
                {90, 0, AFZ_END_EXIT, false},    /* a core makes more than that of text */
                {10, 5, AFZ_END_EXIT, false},    /* it reads pictures */
                {10, 0, AFZ_END_STOPPED, false}, /* how it ended says what is known */
        };
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                struct run r = {.is_mute = true};
                leaking(&r, 0, 40, rows[i].mib_per_s, 0);
                struct afz_track *job = track_of(&r, AFZ_KIND_JOB, 0, "");
                for (uint32_t t = 0; t < 40000; t += 1000) {
                        point(&r, job, AFZ_JOB_RUNNING, t, 1);
                        point(&r, job, AFZ_JOB_READ_CALLS, t,
                              (int64_t)(rows[i].mib_per_s * t / 1000) * MIB / 100 *
                                      rows[i].read_share);
                }
                struct afz_outcome o = judge(&r, rows[i].how, rows[i].how == AFZ_END_EXIT ? 0 : -1);
                if (rows[i].leaks != (afz_outcome_find(&o, "leak") != NULL))
                        fail_msg("row %u: %s", i, o.verdict[0].id);
                afz_flight_done(&r.flight);
        }
}

/* An index that is built from what is read takes its time; after three minutes it is a leak. */
static void parsing_takes_longer_than_loading(void **state)
{
        (void)state;
        for (uint32_t seconds = 100; seconds <= 200; seconds += 100) {
                struct run r = {0};
                leaking(&r, 0, seconds, 5, 0);
                struct afz_track *job = track_of(&r, AFZ_KIND_JOB, 0, "");
                for (uint32_t t = 0; t < seconds * 1000; t += 1000)
                        point(&r, job, AFZ_JOB_READ_CALLS, t, (int64_t)t * MIB / 1000);
                struct afz_outcome o = judge(&r, AFZ_END_EXIT, 0);
                assert_int_equal(afz_outcome_find(&o, "leak") != NULL, seconds == 200);
                afz_flight_done(&r.flight);
        }
}

/* The weaker the sign of work, the straighter the line of a brief run: who only waits may neither
 * fade nor bend up, who writes lines may. */
static void brief_lines_are_straight(void **state)
{
        (void)state;
        static const struct {
                double late; /* MiB a second after 25 s; before: 10 */
                bool tells, leaks;
        } rows[] = {{10, false, true}, {13, false, true}, {25, false, false},
                    {7, false, false}, {25, true, true},  {8, true, true}};
        for (unsigned i = 0; i < AFZ_COUNT_OF(rows); i++) {
                struct run r = {0};
                double mib = 200;
                for (uint32_t t = 0; t < 40000; t += 100) {
                        struct afz_track *hold = track_of(&r, AFZ_KIND_HOLD, 0, "");
                        point(&r, hold, AFZ_HOLD_NEED, t, (int64_t)(mib * (double)MIB));
                        mib += (t < 25000 ? 10 : rows[i].late) / 10;
                        if (t % 1000 != 0)
                                continue;
                        struct afz_track *job = track_of(&r, AFZ_KIND_JOB, 0, "");
                        point(&r, job, AFZ_JOB_WRITE_CALLS, t, rows[i].tells ? t : 0);
                        point(&r, job, AFZ_JOB_CPU, t, t * INT64_C(200000));
                        point(&r, job, AFZ_JOB_RUNNING, t, 0);
                        point(&r, job, AFZ_JOB_READ_CALLS, t, 0);
                }
                struct afz_outcome o = judge(&r, AFZ_END_EXIT, 0);
                if (rows[i].leaks != (afz_outcome_find(&o, "leak") != NULL))
                        fail_msg("row %u: %s", i, o.verdict[0].id);
                afz_flight_done(&r.flight);
        }
}

/* A machine that runs out lets nobody grow: the last seconds of a leak are no plateau. */
static void a_leak_that_crawls_at_its_end(void **state)
{
        (void)state;
        struct run r = {0};
        leaking(&r, 0, 40, 20, 0);
        for (uint32_t t = 40000; t < 48000; t += 100)
                point(&r, track_of(&r, AFZ_KIND_HOLD, 0, ""), AFZ_HOLD_NEED, t, 1001 * MIB);
        struct afz_outcome o = judge(&r, AFZ_END_OOM_KILLED, 9);
        assert_string_equal(o.verdict[0].id, "leak");
        afz_flight_done(&r.flight);
}

static void files_in_memory_are_no_leak(void **state)
{
        (void)state;
        for (int shm = 0; shm < 2; shm++) {
                struct run r = {0};
                leaking(&r, 0, 40, 10, 0);
                struct afz_subject subject = {.kind = AFZ_KIND_FS, .id = 30};
                struct afz_track *fs = afz_flight_track(
                        &r.flight, &subject, shm ? "/dev/shm" : "/scratch", "tmpfs tmpfs", "");
                assert_non_null(fs);
                for (uint32_t t = 0; t < 40000; t += 1000) {
                        point(&r, fs, AFZ_FS_AVAILABLE, t, (4000 - (int64_t)t / 100) * MIB);
                        point(&r, fs, AFZ_FS_JOB_WRITES, t, 1);
                }
                struct afz_outcome o = judge(&r, AFZ_END_EXIT, 0);
                assert_int_equal(afz_outcome_find(&o, "leak") != NULL, shm);
                afz_flight_done(&r.flight);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(rows_explain_what_is_below),
                cmocka_unit_test(causes_before_symptoms),
                cmocka_unit_test(every_end_has_a_verdict),
                cmocka_unit_test(a_leak_that_ended_it),
                cmocka_unit_test(seconds_to_the_line),
                cmocka_unit_test(workers_that_leak),
                cmocka_unit_test(a_live_leak_and_its_forecast),
                cmocka_unit_test(only_the_last_attempt),
                cmocka_unit_test(building_up_is_no_leak),
                cmocka_unit_test(signs_of_work),
                cmocka_unit_test(loading_is_no_leak),
                cmocka_unit_test(computing_is_a_sign),
                cmocka_unit_test(parsing_takes_longer_than_loading),
                cmocka_unit_test(brief_lines_are_straight),
                cmocka_unit_test(a_leak_that_crawls_at_its_end),
                cmocka_unit_test(files_in_memory_are_no_leak),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
