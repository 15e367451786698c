/* links: model */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "limit.h"
#include "metric.h"
#include "sample.h"
#include "series.h"
#include "span.h"
#include "window.h"

#define S UINT64_C(1000000000)

/* ---- the table of metrics ---- */

static void check_name(const struct afz_metric_info *m)
{
        const char *unit = afz_unit_name(m->unit);
        size_t n = strlen(m->name), u = strlen(unit);
        if (u > 0 && (n <= u || strcmp(m->name + n - u, unit) != 0 || m->name[n - u - 1] != '_'))
                fail_msg("%s does not end in _%s", m->name, unit);
        /* One without a unit must not look as if it had one. */
        for (int i = 0; u == 0 && i < AFZ_UNITS; i++) {
                const char *other = afz_unit_name((enum afz_unit)i);
                size_t o = strlen(other);
                if (o > 0 && n > o && m->name[n - o - 1] == '_' &&
                    afz_span_ends(afz_span_str(m->name), other))
                        fail_msg("%s has no unit and ends in %s", m->name, other);
        }
        if (strspn(m->name, "abcdefghijklmnopqrstuvwxyz0123456789_") != n)
                fail_msg("%s is no plain name", m->name);
}

static void test_metric_table(void **state)
{
        (void)state;
        for (int k = AFZ_KIND_NONE + 1; k < AFZ_KIND_COUNT; k++) {
                const struct afz_kind_info *kind = &afz_kind_table[k];
                assert_non_null(kind->name);
                assert_non_null(kind->what);
                assert_true(kind->metrics > 0 && kind->metrics <= AFZ_METRICS_PER_KIND);
                for (unsigned i = 0; i < kind->metrics; i++) {
                        const struct afz_metric_info *m = &kind->metric[i];
                        assert_int_equal(afz_metric_kind(m->id), k);
                        assert_int_equal(afz_metric_index(m->id), i);
                        assert_ptr_equal(afz_metric_info(m->id), m);
                        assert_true(m->meaning[0] != '\0' && !strchr(m->meaning, '\n'));
                        check_name(m);
                        for (unsigned j = 0; j < i; j++)
                                assert_string_not_equal(m->name, kind->metric[j].name);
                }
        }
}

static void test_kinds_have_names_of_their_own(void **state)
{
        (void)state;
        for (int k = 1; k < AFZ_KIND_COUNT; k++)
                for (int j = 0; j < k; j++) {
                        const struct afz_kind_info *a = &afz_kind_table[k], *b = &afz_kind_table[j];
                        assert_string_not_equal(a->name, b->name);
                        if (a->plural && b->plural)
                                assert_string_not_equal(a->plural, b->plural);
                        /* Both are keys of the same JSON object. */
                        if (a->plural)
                                assert_string_not_equal(a->plural, b->name);
                        if (b->plural)
                                assert_string_not_equal(b->plural, a->name);
                }
}

/* A counter is a rate's source: of a flag, a code or a letter there is none. */
static void test_counters_are_amounts(void **state)
{
        (void)state;
        for (int k = 1; k < AFZ_KIND_COUNT; k++)
                for (unsigned i = 0; i < afz_kind_table[k].metrics; i++) {
                        const struct afz_metric_info *m = &afz_kind_table[k].metric[i];
                        if (m->type == AFZ_COUNTER && m->unit != AFZ_UNIT_BYTES &&
                            m->unit != AFZ_UNIT_NS && m->unit != AFZ_UNIT_COUNT &&
                            m->unit != AFZ_UNIT_MICROJOULES)
                                fail_msg("%s is counted in %s", m->name, afz_unit_name(m->unit));
                }
}

static void test_names_of_enums(void **state)
{
        (void)state;
        for (int i = 0; i < AFZ_EVENT_COUNT; i++)
                assert_true(afz_event_name((enum afz_event_kind)i)[0] != '\0');
        for (int i = 0; i < AFZ_LIMIT_COUNT; i++)
                assert_true(afz_limit_name((enum afz_limit_kind)i)[0] != '\0');
        assert_string_equal(afz_event_name((enum afz_event_kind)99), "unknown");
        assert_string_equal(afz_limit_name((enum afz_limit_kind)99), "unknown");
        assert_string_equal(afz_unit_name((enum afz_unit)99), "");
}

/* ---- samples and batches ---- */

static void test_absent_is_not_zero(void **state)
{
        struct afz_sample s = {.subject.kind = AFZ_KIND_HOST}, more = s;
        int64_t v = 7;
        (void)state;
        assert_false(afz_sample_get(&s, AFZ_HOST_MEM_FREE, &v));
        assert_int_equal(v, 7);
        afz_sample_set(&s, AFZ_HOST_MEM_FREE, 0);
        assert_true(afz_sample_get(&s, AFZ_HOST_MEM_FREE, &v));
        assert_int_equal(v, 0);
        afz_sample_set_u64(&s, AFZ_HOST_MEM_TOTAL, (uint64_t)INT64_MAX + 1);
        assert_false(afz_sample_has(&s, AFZ_HOST_MEM_TOTAL));
        afz_sample_set_scaled(&s, AFZ_HOST_MEM_TOTAL, UINT64_MAX / 2, 4096);
        assert_false(afz_sample_has(&s, AFZ_HOST_MEM_TOTAL));
        afz_sample_set_scaled(&s, AFZ_HOST_MEM_TOTAL, 3, 4096);
        assert_int_equal(afz_sample_or(&s, AFZ_HOST_MEM_TOTAL, -1), 12288);
        assert_int_equal(afz_sample_or(NULL, AFZ_HOST_MEM_TOTAL, -1), -1);
        uint64_t amount = 7;
        assert_false(afz_sample_get_u64(NULL, AFZ_HOST_MEM_TOTAL, &amount));
        assert_false(afz_sample_get_u64(&s, AFZ_HOST_MLOCKED, &amount));
        afz_sample_set(&s, AFZ_HOST_MLOCKED, -5); /* below zero is no amount, and not 0 either */
        assert_false(afz_sample_get_u64(&s, AFZ_HOST_MLOCKED, &amount));
        afz_sample_forget(&s, AFZ_HOST_MLOCKED);
        assert_int_equal(amount, 7);
        assert_true(afz_sample_get_u64(&s, AFZ_HOST_MEM_TOTAL, &amount) && amount == 12288);
        afz_sample_forget(&s, AFZ_HOST_MEM_TOTAL);
        assert_int_equal(afz_sample_or(&s, AFZ_HOST_MEM_TOTAL, -1), -1);
        /* The last place of a word of 64 bits. */
        assert_true(afz_kind_table[AFZ_KIND_HOST].metrics <= 64);

        afz_sample_set(&more, AFZ_HOST_MEM_FREE, 5);
        afz_sample_set(&more, AFZ_HOST_SHM_USED, 6);
        afz_sample_merge(&s, &more);
        assert_int_equal(afz_sample_or(&s, AFZ_HOST_MEM_FREE, -1), 0); /* its own value stays */
        assert_int_equal(afz_sample_or(&s, AFZ_HOST_SHM_USED, -1), 6);
}

static void test_batch_full(void **state)
{
        struct afz_batch *b;
        (void)state;
        assert_int_equal(afz_batch_new(1, &b), 0);
        afz_batch_start(b, 5);
        struct afz_sample *s = afz_batch_add(b, (struct afz_subject){AFZ_KIND_PSI, 0, 0}, "psi");
        assert_int_equal(s->t_ns, 5);
        assert_int_equal(s->present, 0);
        afz_sample_set(s, AFZ_PSI_IO_SOME, 1);
        assert_null(afz_batch_add(b, (struct afz_subject){AFZ_KIND_PSI, 0, 0}, "psi"));
        assert_int_equal(b->dropped, 1);
        for (int i = 0; i < AFZ_BATCH_EVENTS + 3; i++)
                afz_batch_event(b, AFZ_EVENT_XID, i, "a\nb", 3);
        assert_int_equal(b->events, AFZ_BATCH_EVENTS);
        assert_int_equal(b->dropped, 4);
        assert_string_equal(b->event[0].text, "a?b");
        afz_batch_start(b, 6); /* the next reading begins with nothing, and forgets no loss */
        assert_int_equal(b->count, 0);
        assert_int_equal(b->events, 0);
        assert_int_equal(b->dropped, 4);
        s = afz_batch_add(b, (struct afz_subject){AFZ_KIND_PSI, 0, 0}, "psi");
        assert_int_equal(s->present, 0);
        afz_batch_free(b);
        afz_batch_free(NULL);
}

static void test_event_text_is_cut(void **state)
{
        static char text[1000];
        struct afz_batch *b;
        (void)state;
        memset(text, 'x', sizeof text);
        assert_int_equal(afz_batch_new(1, &b), 0);
        afz_batch_start(b, 1);
        afz_batch_event(b, AFZ_EVENT_OOM_KILL, 1, text, sizeof text);
        assert_int_equal(strlen(b->event[0].text), sizeof b->event[0].text - 1);
        afz_batch_free(b);
}

/* ---- series ---- */

static void test_series_gaps(void **state)
{
        struct afz_series s;
        int64_t v = 0;
        (void)state;
        afz_series_init(&s, S);
        assert_false(afz_series_get(&s, 0, &v));
        afz_series_add(&s, 10 * S, 5);
        afz_series_add(&s, 10 * S + 1, 3); /* the highest of an interval counts */
        assert_true(afz_series_get(&s, 0, &v) && v == 5);
        afz_series_add(&s, 13 * S, -2);
        assert_true(afz_series_get(&s, 0, &v) && v == -2);
        assert_false(afz_series_get(&s, 1, &v)); /* nothing was known: not a zero */
        assert_false(afz_series_get(&s, 2, &v));
        assert_true(afz_series_get(&s, 3, &v) && v == 5);
        assert_false(afz_series_get(&s, 4, &v));
}

static void test_series_time_jumps(void **state)
{
        struct afz_series s;
        int64_t v = 0;
        (void)state;
        afz_series_init(&s, S);
        afz_series_add(&s, 0, 1);
        afz_series_add(&s, 100 * S, 2);
        afz_series_add(&s, 50 * S, 9); /* back: into the newest interval */
        assert_true(afz_series_get(&s, 0, &v) && v == 9);
        assert_false(afz_series_get(&s, 50, &v));
        afz_series_add(&s, UINT64_MAX, 3); /* far ahead: all that was is too long ago */
        assert_true(afz_series_get(&s, 0, &v) && v == 3);
        for (size_t i = 1; i < 2 * AFZ_SERIES_POINTS; i++)
                assert_false(afz_series_get(&s, i, &v));
        afz_series_init(&s, 0);
        afz_series_add(&s, 5, 5);
        assert_false(afz_series_get(&s, 0, &v));
}

static void test_series_ring(void **state)
{
        struct afz_series s;
        int64_t v = 0;
        (void)state;
        afz_series_init(&s, S);
        for (int64_t i = 0; i < 3 * AFZ_SERIES_POINTS; i++)
                afz_series_add(&s, (uint64_t)i * S, i);
        for (size_t i = 0; i < AFZ_SERIES_POINTS; i++)
                assert_true(afz_series_get(&s, i, &v) &&
                            v == 3 * AFZ_SERIES_POINTS - 1 - (int64_t)i);
        assert_false(afz_series_get(&s, AFZ_SERIES_POINTS, &v));
}

/* ---- windows ---- */

struct two {
        struct afz_window w;
        struct afz_batch *b[2];
};

static struct two *two_new(void)
{
        struct two *t = calloc(1, sizeof *t);
        assert_non_null(t);
        afz_window_init(&t->w, S);
        for (int i = 0; i < 2; i++)
                assert_int_equal(afz_batch_new(8, &t->b[i]), 0);
        t->w.sources = 1;
        t->w.source[0] = (struct afz_source){.name = "x", .now = t->b[1], .before = t->b[0]};
        return t;
}

static void two_free(struct two *t)
{
        afz_batch_free(t->b[0]);
        afz_batch_free(t->b[1]);
        free(t);
}

static struct afz_sample *put(struct afz_batch *b, enum afz_kind kind, uint64_t id, uint64_t start)
{
        struct afz_sample *s = afz_batch_add(b, (struct afz_subject){kind, id, start}, "x");
        assert_non_null(s);
        return s;
}

static void test_rates(void **state)
{
        static const struct {
                const char *what;
                uint64_t t0, t1;
                int64_t v0, v1; /* -1: absent */
                uint64_t start0, start1;
                bool has_rate;
                double rate;
        } cases[] = {
                {"grows", 1 * S, 3 * S, 10, 30, 5, 5, true, 10},
                {"stands still", 1 * S, 2 * S, 10, 10, 5, 5, true, 0},
                {"half a second", 1 * S, S + S / 2, 0, 10, 5, 5, true, 20},
                {"went backwards", 1 * S, 2 * S, 30, 10, 5, 5, false, 0},
                {"no time went by", 2 * S, 2 * S, 10, 30, 5, 5, false, 0},
                {"the clock went back", 3 * S, 2 * S, 10, 30, 5, 5, false, 0},
                {"a pid used again", 1 * S, 2 * S, 10, 30, 5, 6, false, 0},
                {"absent before", 1 * S, 2 * S, -1, 30, 5, 5, false, 0},
                {"absent now", 1 * S, 2 * S, 10, -1, 5, 5, false, 0},
                {"the clock leapt ahead", 1 * S, 1000001 * S, 0, 1000000, 5, 5, true, 1},
        };
        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct two *t = two_new();
                double rate = -7;
                afz_batch_start(t->b[0], cases[i].t0);
                put(t->b[0], AFZ_KIND_PROC, 1, 1); /* another one, so that places differ */
                struct afz_sample *old = put(t->b[0], AFZ_KIND_PROC, 42, cases[i].start0);
                afz_batch_start(t->b[1], cases[i].t1);
                struct afz_sample *now = put(t->b[1], AFZ_KIND_PROC, 42, cases[i].start1);
                if (cases[i].v0 >= 0)
                        afz_sample_set(old, AFZ_PROC_USER, cases[i].v0);
                if (cases[i].v1 >= 0)
                        afz_sample_set(now, AFZ_PROC_USER, cases[i].v1);
                bool has = afz_window_rate(&t->w, now, AFZ_PROC_USER, &rate);
                if (has != cases[i].has_rate)
                        fail_msg("%s: %d", cases[i].what, has);
                assert_true(has ? rate == cases[i].rate : rate == -7);
                two_free(t);
        }
}

static void test_rate_of_nothing(void **state)
{
        struct two *t = two_new();
        double rate;
        (void)state;
        afz_batch_start(t->b[0], S);
        afz_batch_start(t->b[1], 2 * S);
        struct afz_sample *now = put(t->b[1], AFZ_KIND_PROC, 42, 5);
        afz_sample_set(now, AFZ_PROC_USER, 1);
        assert_false(afz_window_rate(&t->w, NULL, AFZ_PROC_USER, &rate));
        assert_false(afz_window_rate(&t->w, now, AFZ_PROC_USER, &rate)); /* it is new */
        t->w.source[0].before = NULL;
        assert_false(afz_window_rate(&t->w, now, AFZ_PROC_USER, &rate));
        struct afz_sample stray = *now; /* a sample that is in no window */
        assert_false(afz_window_rate(&t->w, &stray, AFZ_PROC_USER, &rate));
        two_free(t);
}

static void test_find_and_walk(void **state)
{
        struct two *t = two_new();
        size_t cursor = 0;
        uint64_t ids = 0;
        const struct afz_sample *s;
        (void)state;
        t->w.sources = 4;
        t->w.source[0] = (struct afz_source){.name = "none"};
        t->w.source[1] = (struct afz_source){.name = "a", .now = t->b[0]};
        t->w.source[2] = (struct afz_source){.name = "gone"};
        t->w.source[3] = (struct afz_source){.name = "b", .now = t->b[1]};
        assert_null(afz_window_one(&t->w, AFZ_KIND_PROC));
        put(t->b[0], AFZ_KIND_JOB, 0, 0);
        put(t->b[0], AFZ_KIND_PROC, 1, 0);
        put(t->b[0], AFZ_KIND_DISK, 2, 0);
        put(t->b[1], AFZ_KIND_PROC, 4, 0);
        put(t->b[1], AFZ_KIND_HOST, 0, 0);
        put(t->b[1], AFZ_KIND_PROC, 8, 0);
        while ((s = afz_window_next(&t->w, AFZ_KIND_PROC, &cursor)))
                ids += s->subject.id;
        assert_int_equal(ids, 1 + 4 + 8);
        assert_null(afz_window_next(&t->w, AFZ_KIND_PROC, &cursor)); /* the end stays the end */
        assert_int_equal(afz_window_find(&t->w, AFZ_KIND_PROC, 8)->subject.id, 8);
        assert_null(afz_window_find(&t->w, AFZ_KIND_PROC, 2));
        assert_int_equal(afz_window_one(&t->w, AFZ_KIND_DISK)->subject.id, 2);
        two_free(t);
}

static void test_strips(void **state)
{
        struct two *t = two_new();
        int64_t v = 0;
        (void)state;
        afz_batch_start(t->b[0], 10 * S);
        struct afz_sample *psi = put(t->b[0], AFZ_KIND_PSI, 0, 0);
        afz_sample_set(psi, AFZ_PSI_MEMORY_SOME, 0);
        afz_batch_start(t->b[1], 11 * S);
        psi = put(t->b[1], AFZ_KIND_PSI, 0, 0);
        afz_sample_set(psi, AFZ_PSI_MEMORY_SOME, (int64_t)(S / 4));
        struct afz_sample *host = put(t->b[1], AFZ_KIND_HOST, 0, 0);
        afz_sample_set(host, AFZ_HOST_MEM_TOTAL, 100);
        afz_sample_set(host, AFZ_HOST_MEM_AVAILABLE, 40);
        afz_sample_set(host, AFZ_HOST_SWAP_TOTAL, 10); /* free is not known: no strip */
        struct afz_sample *gpu = put(t->b[1], AFZ_KIND_GPU, 0, 0);
        afz_sample_set(gpu, AFZ_GPU_MEM_USED, 7);
        afz_sample_set(gpu, AFZ_GPU_UTIL, 4000);
        struct afz_sample *mig = put(t->b[1], AFZ_KIND_GPU, 1, 0);
        afz_sample_set(mig, AFZ_GPU_MEM_USED, 5);
        afz_sample_set(mig, AFZ_GPU_PARENT, 0); /* is in its GPU's already */
        gpu = put(t->b[1], AFZ_KIND_GPU, 2, 0);
        afz_sample_set(gpu, AFZ_GPU_MEM_USED, 1);
        afz_sample_set(gpu, AFZ_GPU_UTIL, 2000);
        afz_window_advance(&t->w, 11 * S);
        assert_true(afz_series_get(&t->w.strip[AFZ_STRIP_RAM_USED], 0, &v) && v == 60);
        assert_true(afz_series_get(&t->w.strip[AFZ_STRIP_PSI_MEMORY], 0, &v) && v == 2500);
        assert_true(afz_series_get(&t->w.strip[AFZ_STRIP_GPU_MEM], 0, &v) && v == 8);
        assert_true(afz_series_get(&t->w.strip[AFZ_STRIP_GPU_UTIL], 0, &v) && v == 3000);
        assert_false(afz_series_get(&t->w.strip[AFZ_STRIP_SWAP_USED], 0, &v));
        assert_false(afz_series_get(&t->w.strip[AFZ_STRIP_JOB_NEED], 0, &v));
        assert_false(afz_series_get(&t->w.strip[AFZ_STRIP_CPU_BUSY], 0, &v));
        assert_int_equal(t->w.ticks, 1);
        two_free(t);
}

static void test_events_are_taken_once(void **state)
{
        struct two *t = two_new();
        (void)state;
        afz_batch_start(t->b[1], 5 * S);
        afz_batch_event(t->b[1], AFZ_EVENT_XID, 79, "fell off the bus", 16);
        afz_window_advance(&t->w, 5 * S);
        afz_window_advance(&t->w, 6 * S); /* the batch was not read anew */
        assert_int_equal(t->w.events, 1);
        assert_int_equal(t->w.event[0].code, 79);
        for (uint64_t i = 7; i < 7 + AFZ_WINDOW_EVENTS; i++) {
                afz_batch_start(t->b[1], i * S);
                afz_batch_event(t->b[1], AFZ_EVENT_SEGFAULT, (int64_t)i, "x", 1);
                afz_window_advance(&t->w, i * S);
        }
        assert_int_equal(t->w.events, 1 + AFZ_WINDOW_EVENTS);
        assert_int_equal(t->w.event[0].code, 6 + AFZ_WINDOW_EVENTS); /* the oldest made room */
        two_free(t);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_metric_table),
                cmocka_unit_test(test_kinds_have_names_of_their_own),
                cmocka_unit_test(test_counters_are_amounts),
                cmocka_unit_test(test_names_of_enums),
                cmocka_unit_test(test_absent_is_not_zero),
                cmocka_unit_test(test_batch_full),
                cmocka_unit_test(test_event_text_is_cut),
                cmocka_unit_test(test_series_gaps),
                cmocka_unit_test(test_series_time_jumps),
                cmocka_unit_test(test_series_ring),
                cmocka_unit_test(test_rates),
                cmocka_unit_test(test_rate_of_nothing),
                cmocka_unit_test(test_find_and_walk),
                cmocka_unit_test(test_strips),
                cmocka_unit_test(test_events_are_taken_once),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
