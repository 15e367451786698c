/* Lines that hold memory: at an instant, at the peak, as they grew; and as flame graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "export.h"
#include "flight_fixture.h"
#include "site_top.h"

static void put(struct afz_flight *f, uint64_t id, const char *name, const char *where,
                const char *function, uint32_t t_ms, int64_t mega)
{
        const struct afz_subject subject = {.kind = AFZ_KIND_SITE, .id = id};
        struct afz_track *track = afz_flight_track(f, &subject, name, where, function);
        struct afz_point point = {.t_ms = t_ms};
        assert_non_null(track);
        point.least = point.most = point.mean = mega << 20;
        assert_int_equal(afz_flight_add(f, track, AFZ_SITE_LIVE, &point), 0);
}

/* Two stacks of one line, one of another, one of the same name in another file, and the rest. */
static void make(struct afz_flight *f)
{
        afz_flight_init(f);
        put(f, 0, "everywhere else", "", "", 1000, 10);
        for (uint32_t s = 1; s <= 10; s++) {
                put(f, 11, "train.py:33 in load()", "/a/train.py:33", "load", s * 1000, 10 * s);
                put(f, 12, "train.py:33 in load()", "/a/train.py:33", "load", s * 1000, 2 * s);
                put(f, 14, "train.py:33 in load()", "/b/train.py:33", "load", s * 1000, 1);
        }
        put(f, 13, "net.py:5", "/a/net.py:5", "<module>", 1000, 40);
        put(f, 13, "net.py:5", "/a/net.py:5", "<module>", 6000, 0);
        assert_int_equal(afz_flight_mark(f, 1000, AFZ_MARK_SITE, 11, "numeric.py:1\nmain.py:2", 22),
                         0);
        assert_int_equal(afz_flight_mark(f, 9000, AFZ_MARK_SITE, 0, "it was there", 12), 0);
}

static void test_at(void **state)
{
        struct afz_flight f;
        struct afz_site_top top;
        (void)state;
        make(&f);
        assert_false(afz_site_top_at(&f, 500, &top));
        assert_true(afz_site_top_at(&f, 2500, &top));
        assert_int_equal(top.rows, 3);
        assert_string_equal(top.row[0].track->name, "net.py:5");
        assert_int_equal((int)(top.row[1].bytes / (1 << 20)), 24);
        assert_int_equal(top.row[1].track->subject.id, 11); /* its larger stack */
        assert_int_equal((int)(top.seen_bytes / (1 << 20)), 40 + 24 + 1 + 10);
        assert_true(afz_site_top_at(&f, UINT32_MAX, &top));
        assert_int_equal(top.rows, 2);
        afz_flight_done(&f);
}

static void test_when(void **state)
{
        struct afz_flight f;
        uint32_t t_ms;
        (void)state;
        make(&f);
        assert_true(afz_site_peak(&f, &t_ms));
        assert_int_equal(t_ms, 10000);
        assert_true(afz_site_end(&f, &t_ms));
        assert_int_equal(t_ms, 10000);
        /* It ends by itself, and frees. */
        put(&f, 11, "", "", "", 10500, 0);
        put(&f, 12, "", "", "", 10500, 0);
        assert_true(afz_site_end(&f, &t_ms));
        assert_int_equal(t_ms, 10000);
        assert_true(afz_site_peak(&f, &t_ms));
        assert_int_equal(t_ms, 10000);
        afz_flight_done(&f);
        afz_flight_init(&f);
        assert_false(afz_site_peak(&f, &t_ms));
        assert_false(afz_site_end(&f, &t_ms));
        afz_flight_done(&f);
}

static uint32_t end_of(const int *mega, unsigned n, uint32_t every_ms)
{
        struct afz_flight f;
        uint32_t t_ms = 0;
        afz_flight_init(&f);
        for (unsigned i = 0; i < n; i++)
                put(&f, 11, "a.py:3", "/a.py:3", "", (i + 1) * every_ms, mega[i]);
        assert_true(afz_site_end(&f, &t_ms));
        afz_flight_done(&f);
        return t_ms / every_ms;
}

/* An interpreter that ends takes many looks for it; a program that needs less is another matter. */
static void test_end_of_a_long_fall(void **state)
{
        static const int torn_down[] = {100, 600, 664, 660, 500, 503, 300, 120, 85};
        static const int less[] = {100, 664, 600, 500, 450, 400};
        static const int again[] = {600, 10, 20, 30, 40};
        static const int flat[] = {600, 600, 600};
        (void)state;
        assert_int_equal(end_of(torn_down, 9, 1000), 3);
        assert_int_equal(end_of(torn_down, 9, 30000), 9); /* nobody ends for minutes */
        assert_int_equal(end_of(less, 6, 1000), 6);
        assert_int_equal(end_of(again, 5, 1000), 5);
        assert_int_equal(end_of(flat, 3, 1000), 3);
        assert_int_equal(end_of(flat, 1, 1000), 1);
}

static void test_growth(void **state)
{
        struct afz_flight f;
        struct afz_site_top top;
        struct afz_where where = {0};
        (void)state;
        make(&f);
        put(&f, 11, "", "", "", 10500, 0); /* it was told to end, and frees */
        assert_true(afz_site_growth(&f, 2000, 10000, &top));
        assert_int_equal(top.rows, 1); /* what shrinks or stays is none */
        assert_int_equal((int)(top.row[0].bytes / (1 << 20)), 12 * 8);
        assert_true(top.row[0].bytes >= 0.99 * top.seen_bytes);
        afz_site_where(top.row[0].track, &where);
        assert_string_equal(where.file, "/a/train.py");
        assert_int_equal(where.line, 33);
        assert_string_equal(where.function, "load");
        assert_string_equal(afz_site_stack(&f, 11), "numeric.py:1\nmain.py:2");
        assert_string_equal(afz_site_stack(&f, 12), "");
        assert_string_equal(afz_site_stack(&f, 0), "");
        assert_string_equal(afz_site_probe(&f), "it was there");
        afz_flight_done(&f);
}

/* In which parts of the time it rose, how old it is, and what memory it is. */
static void test_growth_in_parts(void **state)
{
        struct afz_flight f;
        struct afz_site_top top;
        (void)state;
        make(&f);
        fly_point(&f, AFZ_KIND_SITE, 11, AFZ_SITE_MEMORY, 10000, AFZ_MEMORY_OBJECTS);
        fly_point(&f, AFZ_KIND_SITE, 12, AFZ_SITE_MEMORY, 10000, 77); /* of a later version */
        fly_point(&f, AFZ_KIND_SITE, 11, AFZ_SITE_AGE, 10000, INT64_C(4000000000));
        fly_point(&f, AFZ_KIND_SITE, 12, AFZ_SITE_AGE, 10000, INT64_C(10000000000));
        fly_point(&f, AFZ_KIND_SITE, 12, AFZ_SITE_AGE_STEPS, 10000, 60);
        fly_point(&f, AFZ_KIND_SITE, 11, AFZ_SITE_AGE, 10500, INT64_C(9000000000)); /* it frees */
        assert_true(afz_site_growth(&f, 2000, 10000, &top));
        assert_int_equal(top.row[0].parts, AFZ_SITE_PARTS);
        assert_int_equal((int)top.row[0].age_ms, 5000);  /* ten parts of 4 s, two of 10 s */
        assert_int_equal((int)top.row[0].age_steps, 60); /* of those that tell it */
        assert_int_equal((int)(top.memory_bytes[AFZ_MEMORY_OBJECTS] / (1 << 20)), 80);
        assert_int_equal(afz_site_memory_of(top.row[0].track), AFZ_MEMORY_OBJECTS);
        /* Once, and never again: one part. */
        put(&f, 15, "once.py:1", "/a/once.py:1", "", 5500, 500);
        assert_true(afz_site_growth(&f, 2000, 10000, &top));
        assert_string_equal(top.row[0].track->name, "once.py:1");
        assert_int_equal(top.row[0].parts, 1);
        assert_int_equal((int)top.row[0].age_ms, 0);
        assert_false(afz_site_growth(&f, 10000, 10000, &top));
        assert_false(afz_site_growth(&f, 10000, 2000, &top));
        assert_true(afz_site_growth(&f, 0, UINT32_MAX, &top));
        afz_flight_done(&f);
}

static void test_where_is_not_known(void **state)
{
        static const char *const bad[] = {
                "", ":", ":0", "x", "x:", "x:0", "x:-4", ":33", "x:99999999999999999999"};
        (void)state;
        for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
                struct afz_where where = {0};
                struct afz_track track = {.name = (char *)(uintptr_t) "x",
                                          .detail = (char *)(uintptr_t)bad[i],
                                          .note = (char *)(uintptr_t) ""};
                afz_site_where(&track, &where);
                assert_int_equal(where.line, 0);
                assert_string_equal(where.file, "");
        }
}

/* A program that was built without lines: its name and the function. */
static void test_where_without_lines(void **state)
{
        static const struct {
                const char *name, *function, *file;
        } rows[] = {
                {"keep() in server", "keep", "server"},
                {"a::b<c>() in server", "a::b<c>", "server"},
                {"malloc() in libc.so.6", "malloc", ""}, /* of no use to anybody */
                {"server+0x1234", "", ""},
                {"() in ", "", ""},
                {"", "", ""},
        };
        (void)state;
        for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct afz_where where = {0};
                struct afz_track track = {.name = (char *)(uintptr_t)rows[i].name,
                                          .detail = (char *)(uintptr_t) ":0",
                                          .note = (char *)(uintptr_t)rows[i].function};
                afz_site_where(&track, &where);
                assert_string_equal(where.file, rows[i].file);
                assert_string_equal(where.function, rows[i].file[0] ? rows[i].function : "");
                assert_int_equal(where.line, 0);
        }
}

static size_t export_as(const struct afz_flight *f, const char *format, char *buf, size_t cap)
{
        struct afz_out out = afz_out_to(-1, buf, cap - 1);
        for (const struct afz_exporter *e = afz_exporters; e->name; e++)
                if (strcmp(e->name, format) == 0)
                        e->put(f, &out);
        buf[out.len] = '\0';
        return out.len;
}

static void test_exports(void **state)
{
        struct afz_flight f;
        char text[8192];
        (void)state;
        make(&f);
        (void)afz_flight_mark(&f, 9500, AFZ_MARK_SITE, 12, "a;b\nc\nc", 7);
        export_as(&f, "collapsed", text, sizeof text);
        assert_non_null(strstr(text, "main.py:2;numeric.py:1 104857600\n"));
        assert_non_null(strstr(text, "c;c;a,b 20971520\n"));
        assert_non_null(strstr(text, "everywhere else 10485760\n"));
        assert_null(strstr(text, "net.py:5")); /* it held nothing at the peak */
        export_as(&f, "speedscope", text, sizeof text);
        assert_non_null(strstr(text, "\"weights\":[10485760,104857600,20971520,1048576]"));
        assert_non_null(strstr(text, "{\"name\":\"a;b\"}"));
        /* The first sample type, and the last string. */
        size_t n = export_as(&f, "pprof", text, sizeof text);
        static const unsigned char type[] = {0x0a, 4, 0x08, 1, 0x10, 2};
        assert_true(n > 100 && memcmp(text, type, sizeof type) == 0);
        afz_flight_done(&f);
        afz_flight_init(&f);
        assert_int_equal(export_as(&f, "collapsed", text, sizeof text), 0);
        export_as(&f, "speedscope", text, sizeof text);
        assert_non_null(strstr(text, "\"samples\":[]"));
        export_as(&f, "pprof", text, sizeof text);
        afz_flight_done(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_at),
                cmocka_unit_test(test_when),
                cmocka_unit_test(test_end_of_a_long_fall),
                cmocka_unit_test(test_growth),
                cmocka_unit_test(test_growth_in_parts),
                cmocka_unit_test(test_where_is_not_known),
                cmocka_unit_test(test_where_without_lines),
                cmocka_unit_test(test_exports),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
