/* A recording in memory: made, asked. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flight.h"

static struct afz_track *proc(struct afz_flight *f, uint64_t pid, uint64_t start)
{
        struct afz_track *t = afz_flight_track(f, &(struct afz_subject){AFZ_KIND_PROC, pid, start},
                                               NULL, NULL, NULL);
        assert_non_null(t);
        return t;
}

static int put(struct afz_flight *f, struct afz_track *t, uint32_t t_ms, int64_t v)
{
        return afz_flight_put(f, t, AFZ_PROC_RSS, &(struct afz_point){t_ms, 0, v, v, v});
}

static int add(struct afz_flight *f, uint32_t t_ms, uint32_t span, int64_t least, int64_t most,
               int64_t mean)
{
        return afz_flight_add(f, proc(f, 1, 1), AFZ_PROC_RSS,
                              &(struct afz_point){t_ms, span, least, most, mean});
}

static const struct afz_column *rss(const struct afz_flight *f)
{
        return afz_track_column(afz_flight_find(f, AFZ_KIND_PROC, 1), AFZ_PROC_RSS);
}

static void test_tracks(void **state)
{
        (void)state;
        struct afz_flight f;
        afz_flight_init(&f);
        assert_null(afz_flight_one(&f, AFZ_KIND_PROC));
        /* Many, among them pids that were used again; and found again each. */
        for (uint64_t i = 0; i < 3000; i++)
                assert_int_equal(proc(&f, i % 1000, i / 1000) - f.track, (ptrdiff_t)i);
        for (uint64_t i = 0; i < 3000; i++)
                assert_int_equal(proc(&f, i % 1000, i / 1000) - f.track, (ptrdiff_t)i);
        assert_int_equal(f.tracks, 3000);
        assert_int_equal(afz_flight_find(&f, AFZ_KIND_PROC, 999)->subject.start, 0);
        assert_null(afz_flight_find(&f, AFZ_KIND_PROC, 1000));
        assert_null(afz_flight_find(&f, AFZ_KIND_GPU, 1));

        /* Texts: the last known, and never NULL. */
        struct afz_subject s = {AFZ_KIND_PROC, 5, 0};
        assert_string_equal(afz_flight_find(&f, AFZ_KIND_PROC, 5)->note, "");
        afz_flight_track(&f, &s, "python3", "python3 a.py", NULL);
        afz_flight_track(&f, &s, "", "python3 b.py", NULL);
        assert_string_equal(afz_flight_find(&f, AFZ_KIND_PROC, 5)->name, "python3");
        assert_string_equal(afz_flight_find(&f, AFZ_KIND_PROC, 5)->detail, "python3 b.py");

        size_t cursor = 0, n = 0;
        while (afz_flight_next(&f, AFZ_KIND_PROC, &cursor))
                n++;
        assert_int_equal(n, 3000);
        assert_null(afz_flight_next(&f, AFZ_KIND_PROC, &cursor)); /* at the end for good */
        afz_flight_done(&f);
        afz_flight_done(&f); /* harmless twice */
}

/* Kinds mixed: each is walked alone, in the order in which they came, also while more come. */
static void test_walk(void **state)
{
        static const enum afz_kind kinds[] = {AFZ_KIND_HOLD, AFZ_KIND_PROC, AFZ_KIND_GPU,
                                              AFZ_KIND_PROC, AFZ_KIND_PROC, AFZ_KIND_GPU};
        (void)state;
        struct afz_flight f;
        afz_flight_init(&f);
        assert_null(afz_flight_one(&f, AFZ_KIND_PROC));
        for (uint64_t i = 0; i < 6000; i++)
                afz_flight_track(&f, &(struct afz_subject){kinds[i % 6], i, 0}, "", "", "");
        afz_flight_track(&f, &(struct afz_subject){(enum afz_kind)AFZ_KIND_COUNT, 1, 0}, "", "",
                         "");
        size_t cursor = 0, n[AFZ_KIND_COUNT] = {0};
        for (unsigned kind = 0; kind < AFZ_KIND_COUNT; kind++) {
                const struct afz_track *track;
                uint64_t before = 0;
                for (cursor = 0; (track = afz_flight_next(&f, (enum afz_kind)kind, &cursor));) {
                        assert_int_equal(track->subject.kind, kind);
                        assert_true(n[kind]++ == 0 || track->subject.id > before);
                        before = track->subject.id;
                }
        }
        assert_int_equal(n[AFZ_KIND_HOLD], 1000);
        assert_int_equal(n[AFZ_KIND_PROC], 3000);
        assert_int_equal(n[AFZ_KIND_GPU], 2000);
        assert_int_equal(n[AFZ_KIND_JOB], 0);
        cursor = 0;
        assert_null(afz_flight_next(&f, (enum afz_kind)AFZ_KIND_COUNT, &cursor));
        afz_flight_done(&f);
        assert_null(afz_flight_one(&f, AFZ_KIND_PROC));
}

static void test_order(void **state)
{
        (void)state;
        struct afz_flight f;
        afz_flight_init(&f);
        assert_int_equal(add(&f, 100, 0, 1, 1, 1), 0);
        assert_int_equal(add(&f, 100, 0, 2, 2, 2), 0);
        assert_int_equal(add(&f, 99, 0, 3, 3, 3), -EINVAL);
        assert_int_equal(rss(&f)->count, 2);
        assert_int_equal(f.end_ms, 100);
        afz_flight_done(&f);

        /* In any order, then settled; what came later within a millisecond stays later. */
        afz_flight_init(&f);
        for (uint32_t i = 0; i < 1001; i++)
                assert_int_equal(put(&f, proc(&f, 1, 1), (i * 7919) % 500, i), 0);
        assert_int_equal(afz_flight_settle(&f), 0);
        const struct afz_column *c = rss(&f);
        assert_int_equal(c->count, 1001);
        for (size_t i = 1; i < c->count; i++) {
                assert_true(c->point[i - 1].t_ms <= c->point[i].t_ms);
                if (c->point[i - 1].t_ms == c->point[i].t_ms)
                        assert_true(c->point[i - 1].mean < c->point[i].mean);
        }
        assert_int_equal(put(&f, proc(&f, 1, 1), 600, 7), 0); /* and it can go on */
        assert_int_equal(f.end_ms, 600);
        afz_flight_done(&f);
}

static void test_by_hand(void **state)
{
        (void)state;
        struct afz_flight f;
        afz_flight_init(&f);
        for (uint32_t round = 0; round < 50; round++) {
                struct afz_column *c = afz_flight_column(proc(&f, 1, 1), AFZ_PROC_RSS, 33);
                assert_non_null(c);
                assert_true(c->cap - c->count >= 33);
                for (uint32_t i = 0; i < 33; i++)
                        c->point[c->count++] = (struct afz_point){round * 33 + i, 0, 1, 1, 1};
        }
        afz_flight_seen(&f, proc(&f, 1, 1), 0, 50 * 33 - 1);
        assert_int_equal(rss(&f)->count, 50 * 33);
        assert_int_equal(afz_flight_find(&f, AFZ_KIND_PROC, 1)->last_ms, 50 * 33 - 1);
        assert_int_equal(f.end_ms, 50 * 33 - 1);
        afz_flight_done(&f);
}

static void test_marks(void **state)
{
        (void)state;
        static const uint32_t told[] = {5, 3, 9, 3, 0, 9};
        static const uint32_t want[] = {0, 3, 3, 5, 9, 9};
        static const int64_t code[] = {4, 1, 3, 0, 2, 5};
        struct afz_flight f;
        afz_flight_init(&f);
        for (int64_t i = 0; i < 6; i++)
                assert_int_equal(afz_flight_mark(&f, told[i], AFZ_MARK_SAID, i, "warning", 4), 0);
        assert_int_equal(afz_flight_mark(&f, 10, AFZ_MARK_UNUSED, 1, NULL, 0), 0);
        for (size_t i = 0; i < 6; i++) {
                assert_int_equal(f.mark[i].t_ms, want[i]);
                assert_int_equal(f.mark[i].code, code[i]);
                assert_string_equal(f.mark[i].text, "warn");
        }
        assert_string_equal(f.mark[6].text, "");
        assert_int_equal(f.end_ms, 10);
        afz_flight_done(&f);
}

/* Each before all others: a file that was made to deceive. */
static void test_marks_backwards(void **state)
{
        (void)state;
        enum { MARKS = 300000 }; /* one by one put in their places, they would take minutes */
        struct afz_flight f;
        afz_flight_init(&f);
        for (uint32_t i = 0; i < MARKS; i++)
                assert_int_equal(afz_flight_mark(&f, MARKS - i, AFZ_MARK_UNUSED, i, "", 0), 0);
        assert_int_equal(afz_flight_settle(&f), 0);
        for (uint32_t i = 0; i < MARKS; i++) {
                assert_int_equal(f.mark[i].t_ms, i + 1);
                assert_int_equal(f.mark[i].code, MARKS - 1 - i);
        }
        afz_flight_done(&f);
}

static void test_asking(void **state)
{
        (void)state;
        struct afz_flight f;
        int64_t v = -1;
        double d = -1;
        afz_flight_init(&f);
        assert_int_equal(add(&f, 0, 1000, 10, 30, 20), 0);
        assert_int_equal(add(&f, 1000, 1000, 5, 50, 40), 0);
        assert_int_equal(add(&f, 2000, 0, 60, 60, 60), 0);
        assert_int_equal(add(&f, 2100, 0, 62, 62, 62), 0);
        const struct afz_column *c = rss(&f);
        assert_int_equal(afz_column_at(c, 0), 0);
        assert_int_equal(afz_column_at(c, 1), 1);
        assert_int_equal(afz_column_at(c, 5000), 4);
        assert_true(afz_column_most(c, 0, 2000, &v));
        assert_int_equal(v, 50);
        assert_true(afz_column_least(c, 0, UINT32_MAX, &v));
        assert_int_equal(v, 5);
        assert_true(afz_column_last(c, 2000, &v));
        assert_int_equal(v, 40);
        assert_false(afz_column_last(c, 0, &v));
        assert_true(afz_column_mean(c, 0, 2000, &d));
        assert_true(d > 29.99 && d < 30.01);
        assert_false(afz_column_most(c, 3000, 4000, &v));
        assert_false(afz_column_most(NULL, 0, 4000, &v));
        assert_false(afz_column_mean(NULL, 0, 4000, &d));
        assert_false(afz_column_rate(c, 2100, 4000, &d));
        assert_true(afz_column_rate(c, 2000, 4000, &d));
        assert_true(d > 19.99 && d < 20.01);
        assert_null(afz_track_column(NULL, AFZ_PROC_RSS));
        afz_flight_done(&f);
}

static void test_need(void **state)
{
        (void)state;
        struct afz_flight f;
        struct afz_point p = {0, 0, 1, 1, 1};
        struct afz_subject job = {AFZ_KIND_JOB, 0, 0}, hold = {AFZ_KIND_HOLD, 0, 0};
        afz_flight_init(&f);
        assert_null(afz_flight_need(&f));
        afz_flight_add(&f, afz_flight_track(&f, &job, "", "", ""), AFZ_JOB_NEED, &p);
        assert_int_equal(afz_flight_need(&f)->metric, AFZ_JOB_NEED);
        afz_flight_add(&f, afz_flight_track(&f, &hold, "", "", ""), AFZ_HOLD_NEED, &p);
        assert_int_equal(afz_flight_need(&f)->metric, AFZ_HOLD_NEED);
        afz_flight_done(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_tracks), cmocka_unit_test(test_walk),
                cmocka_unit_test(test_order),  cmocka_unit_test(test_by_hand),
                cmocka_unit_test(test_marks),  cmocka_unit_test(test_marks_backwards),
                cmocka_unit_test(test_asking), cmocka_unit_test(test_need),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
