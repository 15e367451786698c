/* Stacks that held memory at the peak, whose code their frames are, and profiles made of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "export.h"
#include "flight_fixture.h"
#include "stacks.h"

static void site(struct afz_flight *f, uint64_t id, const char *name, const char *where,
                 const char *stack, int64_t mega)
{
        struct afz_track *track = fly_named(f, AFZ_KIND_SITE, id, name, where, "");
        struct afz_point point = {.t_ms = 1000};
        point.least = point.most = point.mean = mega * (1 << 20);
        fly_must(afz_flight_add(f, track, AFZ_SITE_LIVE, &point));
        if (stack)
                fly_must(
                        afz_flight_mark(f, 1000, AFZ_MARK_SITE, (int64_t)id, stack, strlen(stack)));
}

static void test_frames(void **state)
{
        static const struct {
                const char *stack;
                const char *frames; /* outermost first, with '|' between */
        } rows[] = {
                {"a\nb\nc", "c|b|a"}, {"a", "a"},          {"a\n", "a"}, {NULL, "the name"},
                {"", "the name"},     {"a\n\nc", "c|?|a"}, {"\n", "?"},  {"\n\n\n", "?|?|?"},
        };
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct afz_flight f;
                struct afz_stacks all;
                char text[100] = "";
                afz_flight_init(&f);
                site(&f, 4, "the name", "", rows[i].stack, 1);
                assert_true(afz_stacks_at_peak(&f, &all));
                assert_int_equal(all.count, 1);
                assert_int_equal(all.bytes, 1 << 20);
                for (unsigned k = 0; k < all.stack[0].frames; k++) {
                        strcat(text, k ? "|" : "");
                        strcat(text, all.stack[0].frame[k]);
                }
                assert_string_equal(text, rows[i].frames);
                afz_stacks_free(&all);
                afz_flight_done(&f);
        }
}

static void test_long_stack_keeps_its_inside(void **state)
{
        enum { LINES = 300 };
        static char text[LINES * 8];
        struct afz_flight f;
        struct afz_stacks all;
        size_t n = 0;
        (void)state;
        for (int i = 0; i < LINES; i++)
                n += (size_t)snprintf(text + n, sizeof text - n, "%sf%d", i ? "\n" : "", i);
        afz_flight_init(&f);
        site(&f, 4, "f0", "", text, 1);
        assert_true(afz_stacks_at_peak(&f, &all));
        assert_int_equal(all.stack[0].frames, AFZ_STACK_FRAMES);
        assert_string_equal(all.stack[0].frame[AFZ_STACK_FRAMES - 1], "f0");
        assert_string_equal(all.stack[0].frame[0], "f127");
        afz_stacks_free(&all);
        afz_flight_done(&f);
}

static void test_nothing(void **state)
{
        struct afz_flight f;
        struct afz_stacks all;
        (void)state;
        afz_flight_init(&f);
        assert_false(afz_stacks_at_peak(&f, &all));
        site(&f, 1, "a", "", "a\nb", 0);
        assert_false(afz_stacks_at_peak(&f, &all));
        site(&f, 2, "b", "", NULL, -5);
        assert_false(afz_stacks_at_peak(&f, &all));
        afz_flight_done(&f);
}

static void test_owners(void **state)
{
        static const struct {
                const char *frame;
                enum afz_stack_owner owner;
        } rows[] = {
                {"train.py:33 in load()", AFZ_STACK_USER},
                {"main.py:2", AFZ_STACK_USER},
                {"<ipython-input-3-1f>:2 in f()", AFZ_STACK_USER},
                {"python3.11/argparse.py:7 in fit()", AFZ_STACK_LIBRARY},
                {"bits/new_allocator.h:137 in allocate()", AFZ_STACK_LIBRARY},
                {"array_empty() in _umath.so", AFZ_STACK_LIBRARY},
                {"<frozen importlib._bootstrap>:241 in f()", AFZ_STACK_RUNTIME},
                {"at::empty() in libtorch_cpu.so", AFZ_STACK_LIBRARY},
                {"torch/nn/module.py:12 in f()", AFZ_STACK_LIBRARY},
                {"python3.11+0x1f3a", AFZ_STACK_RUNTIME},
                {"libc.so.6+0x0", AFZ_STACK_RUNTIME},
                {"grow() in trainer", AFZ_STACK_USER},
                {"imports of modules", AFZ_STACK_REST},
                {"a+0xzz", AFZ_STACK_REST},
                {"", AFZ_STACK_REST},
        };
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
                if (afz_stack_owner(rows[i].frame) != rows[i].owner)
                        fail_msg("%s: %d", rows[i].frame, (int)afz_stack_owner(rows[i].frame));
}

static void test_places(void **state)
{
        static const struct {
                const char *frame;
                size_t file;
                uint32_t line; /* 0: there is none */
        } rows[] = {
                {"train.py:33 in load()", 8, 33},
                {"<string>:3", 8, 3},
                {"at::empty() in libx.so", 0, 0},
                {"a::b.cpp:7 in f()", 8, 7},
                {":33", 0, 0},
                {"x:", 0, 0},
                {"x:0", 0, 0},
                {"x:99999999999999999999", 0, 0},
                {"", 0, 0},
        };
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                size_t file = 0;
                uint32_t line = 0;
                assert_int_equal(afz_stack_place(rows[i].frame, &file, &line), rows[i].line > 0);
                assert_int_equal(file, rows[i].file);
                assert_int_equal(line, rows[i].line);
        }
}

/* As docs/sampling.md has it. */
static void test_off(void **state)
{
        struct afz_flight f;
        (void)state;
        afz_flight_init(&f);
        struct afz_site_row row = {.bytes = 100e6};
        assert_true(fabs(afz_line_off(&f, &row) - 0.102) < 0.001);
        row.counted_bytes = 100e6;
        assert_true(afz_line_off(&f, &row) <= 0);
        row = (struct afz_site_row){.bytes = 10};
        assert_true(afz_line_off(&f, &row) >= 1);
        row.bytes = 0;
        assert_true(afz_line_off(&f, &row) <= 0);
        f.head.ram_total_bytes = UINT64_C(512) << 30; /* 16 MiB apart */
        row.bytes = 100e6;
        assert_true(fabs(afz_line_off(&f, &row) - 0.41) < 0.01);
        afz_flight_done(&f);
}

/* ---- pprof, read back by who knows nothing of the writer ---- */

struct bytes {
        const unsigned char *p, *end;
};

static uint64_t take_varint(struct bytes *b)
{
        uint64_t v = 0;
        for (unsigned shift = 0;; shift += 7) {
                assert_true(b->p < b->end && shift < 64);
                v |= (uint64_t)(*b->p & 0x7f) << shift;
                if (!(*b->p++ & 0x80))
                        return v;
        }
}

/* The next field: its number, and its value or its bytes. */
static unsigned take_field(struct bytes *b, uint64_t *value, struct bytes *inner)
{
        uint64_t key = take_varint(b);
        *inner = (struct bytes){0};
        *value = take_varint(b);
        if ((key & 7) == 2) {
                assert_true(*value <= (uint64_t)(b->end - b->p));
                *inner = (struct bytes){b->p, b->p + *value};
                b->p = inner->end;
        } else {
                assert_int_equal(key & 7, 0);
        }
        return (unsigned)(key >> 3);
}

static void test_pprof(void **state)
{
        static char text[65536];
        struct afz_out out = afz_out_to(-1, text, sizeof text);
        struct afz_flight f;
        unsigned of[16] = {0};
        uint64_t sum = 0, value, line = 0;
        struct bytes inner, in2;
        bool named = false, filed = false;
        (void)state;
        afz_flight_init(&f);
        f.head.started_s = 1794738403;
        site(&f, 1, "train.py:33 in load()", "/a/train.py:33",
             "numeric.py:232 in ones()\ntrain.py:33 in load()\nmain.py:200", 300);
        site(&f, 2, "train.py:34 in load()", "/a/train.py:34",
             "numeric.py:232 in ones()\ntrain.py:34 in load()\nmain.py:200", 40);
        for (const struct afz_exporter *e = afz_exporters; e->name; e++)
                if (strcmp(e->name, "pprof") == 0)
                        e->put(&f, &out);
        assert_int_equal(out.err, 0);
        struct bytes b = {(unsigned char *)text, (unsigned char *)text + out.len};
        while (b.p < b.end) {
                unsigned field = take_field(&b, &value, &inner);
                of[field < 16 ? field : 0]++;
                struct bytes all = inner;
                while (field == 2 && inner.p < inner.end) /* Sample */
                        if (take_field(&inner, &value, &in2) == 2)
                                sum += take_varint(&in2);
                while (field == 4 && inner.p < inner.end) /* Location.line.line */
                        if (take_field(&inner, &value, &in2) == 4)
                                while (in2.p < in2.end) {
                                        struct bytes none;
                                        if (take_field(&in2, &value, &none) == 2)
                                                line = line > value ? line : value;
                                }
                if (field == 6) { /* string_table */
                        size_t n = (size_t)(all.end - all.p);
                        named |= n == 21 && memcmp(all.p, "train.py:33 in load()", n) == 0;
                        filed |= n == 8 && memcmp(all.p, "train.py", n) == 0;
                }
        }
        assert_int_equal(of[1], 1);
        assert_int_equal(of[2], 2);
        assert_int_equal(of[4], 4); /* each line once */
        assert_int_equal(of[5], 4);
        assert_int_equal(of[6], 3 + 2 * 4);
        assert_int_equal(of[9], 1);
        assert_int_equal(sum, (uint64_t)340 << 20);
        assert_int_equal(line, 232);
        assert_true(named && filed);
        afz_flight_done(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_frames),  cmocka_unit_test(test_long_stack_keeps_its_inside),
                cmocka_unit_test(test_nothing), cmocka_unit_test(test_owners),
                cmocka_unit_test(test_places),  cmocka_unit_test(test_off),
                cmocka_unit_test(test_pprof),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
