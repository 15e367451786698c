/* links: base */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "count_of.h"
#include "span.h"

#define UNTOUCHED UINT64_C(0x5ca1ab1e)

struct number_case {
        const char *text;
        int error; /* 0: value holds */
        uint64_t value;
        const char *rest; /* of the span, when it was taken */
};

static void check_numbers(const struct number_case *c, size_t n,
                          int (*take)(struct afz_span *, uint64_t *))
{
        for (; n > 0; c++, n--) {
                struct afz_span s = afz_span_str(c->text), before = s;
                uint64_t value = UNTOUCHED;
                int r = take(&s, &value);
                if (r != c->error || value != (r < 0 ? UNTOUCHED : c->value))
                        fail_msg("'%s': %d, %llu", c->text, r, (unsigned long long)value);
                if (r < 0 && (s.p != before.p || s.n != before.n))
                        fail_msg("'%s': refused, but the span moved", c->text);
                if (r == 0 && !afz_span_eq(s, c->rest))
                        fail_msg("'%s': left '%.*s'", c->text, (int)s.n, s.p);
        }
}

static void test_take_u64(void **state)
{
        static const struct number_case cases[] = {
                {"0", 0, 0, ""},
                {"12 34", 0, 12, " 34"},
                {" \t\n7", 0, 7, ""},
                {"0012:", 0, 12, ":"},
                {"5-9", 0, 5, "-9"},
                {"18446744073709551615", 0, UINT64_MAX, ""},
                {"18446744073709551616", -ERANGE, 0, NULL},
                {"99999999999999999999999999", -ERANGE, 0, NULL},
                {"", -ENODATA, 0, NULL},
                {"  \n", -ENODATA, 0, NULL},
                {"x", -EINVAL, 0, NULL},
                {"-1", -EINVAL, 0, NULL},
                {"+1", -EINVAL, 0, NULL},
                {"12x", -EINVAL, 0, NULL},
                {"12.5", -EINVAL, 0, NULL},
                {"12_000", -EINVAL, 0, NULL},
                {"0x10", -EINVAL, 0, NULL},
                {"max", -EINVAL, 0, NULL},
        };
        (void)state;
        check_numbers(cases, AFZ_COUNT_OF(cases), afz_span_take_u64);
}

static int take_i64(struct afz_span *s, uint64_t *ret)
{
        int64_t v;
        int r = afz_span_take_i64(s, &v);
        if (r == 0)
                *ret = (uint64_t)v;
        return r;
}

static void test_take_i64(void **state)
{
        static const struct number_case cases[] = {
                {"0", 0, 0, ""},
                {"-1 2", 0, (uint64_t)-1, " 2"},
                {"9223372036854775807", 0, INT64_MAX, ""},
                {"-9223372036854775808", 0, (uint64_t)INT64_MIN, ""},
                {"9223372036854775808", -ERANGE, 0, NULL},
                {"-9223372036854775809", -ERANGE, 0, NULL},
                {"-99999999999999999999", -ERANGE, 0, NULL},
                {"-", -EINVAL, 0, NULL},
                {"--1", -EINVAL, 0, NULL},
                {"- 1", -EINVAL, 0, NULL},
                {"-1e3", -EINVAL, 0, NULL},
                {"", -ENODATA, 0, NULL},
        };
        (void)state;
        check_numbers(cases, AFZ_COUNT_OF(cases), take_i64);
}

static void test_take_hex(void **state)
{
        static const struct number_case cases[] = {
                {"ff", 0, 255, ""},
                {"0xDeadBeef,", 0, 0xdeadbeef, ","},
                {"  10", 0, 16, ""},
                {"ffffffffffffffff", 0, UINT64_MAX, ""},
                {"0x00000000000000000001", 0, 1, ""},
                {"10000000000000000", -ERANGE, 0, NULL},
                {"0x", -EINVAL, 0, NULL},
                {"0xg", -EINVAL, 0, NULL},
                {"12g", -EINVAL, 0, NULL},
                {"", -ENODATA, 0, NULL},
                {"  ", -ENODATA, 0, NULL},
        };
        (void)state;
        check_numbers(cases, AFZ_COUNT_OF(cases), afz_span_take_hex);
}

static void test_take_hundredths(void **state)
{
        static const struct number_case cases[] = {
                {"0.00", 0, 0, ""},
                {"1.5 x", 0, 150, " x"},
                {"12.34", 0, 1234, ""},
                {"12.349999999999999999999999", 0, 1234, ""},
                {"7", 0, 700, ""},
                {"0.05", 0, 5, ""},
                {"184467440737095516.15", 0, UINT64_MAX, ""},
                {"184467440737095516.16", -ERANGE, 0, NULL},
                {"18446744073709551615", -ERANGE, 0, NULL},
                {"1.", -EINVAL, 0, NULL},
                {".5", -EINVAL, 0, NULL},
                {"1.x", -EINVAL, 0, NULL},
                {"1.2.3", -EINVAL, 0, NULL},
                {"1.2%", 0, 120, "%"},
                {"-1.0", -EINVAL, 0, NULL},
                {"nan", -EINVAL, 0, NULL},
        };
        (void)state;
        check_numbers(cases, AFZ_COUNT_OF(cases), afz_span_take_hundredths);
}

static void test_whole_numbers(void **state)
{
        static const struct {
                const char *text;
                int error;
                uint64_t value;
        } cases[] = {
                {" 12 \n", 0, 12},
                {"12 13", -EINVAL, 0},
                {"12\n13\n", -EINVAL, 0},
                {"", -ENODATA, 0},
                {"max", -EINVAL, 0},
                {"1,2", -EINVAL, 0},
                {"18446744073709551616", -ERANGE, 0},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                uint64_t v = UNTOUCHED;
                assert_int_equal(afz_span_u64(afz_span_str(cases[i].text), &v), cases[i].error);
                assert_int_equal(v, cases[i].error ? UNTOUCHED : cases[i].value);
        }
        uint64_t v = UNTOUCHED;
        int64_t i = 7;
        assert_int_equal(afz_span_u64(AFZ_SPAN("12\0"), &v), -EINVAL);
        assert_int_equal(afz_span_i64(AFZ_SPAN("-5 x"), &i), -EINVAL);
        assert_int_equal(i, 7);
        assert_int_equal(afz_span_i64(AFZ_SPAN("-1000\n"), &i), 0);
        assert_int_equal(i, -1000);
}

static void test_lines_that_are_cut(void **state)
{
        struct afz_span s = AFZ_SPAN("one\n\ntwo\nthr"), line;
        (void)state;
        assert_int_equal(afz_span_take_line(&s, &line), 0);
        assert_true(afz_span_eq(line, "one"));
        assert_int_equal(afz_span_take_line(&s, &line), 0);
        assert_int_equal(line.n, 0);
        assert_int_equal(afz_span_take_line(&s, &line), 0);
        assert_true(afz_span_eq(line, "two"));
        assert_int_equal(afz_span_take_line(&s, &line), -ENODATA);
        assert_true(afz_span_eq(line, "two"));
        assert_true(afz_span_eq(s, "thr"));
}

static void test_words_and_parts(void **state)
{
        struct afz_span s = AFZ_SPAN("  a\tbc \n"), w;
        (void)state;
        assert_int_equal(afz_span_take_word(&s, &w), 0);
        assert_true(afz_span_eq(w, "a"));
        assert_int_equal(afz_span_take_word(&s, &w), 0);
        assert_true(afz_span_eq(w, "bc"));
        assert_int_equal(afz_span_take_word(&s, &w), -ENODATA);
        s = AFZ_SPAN("k=v=w");
        assert_int_equal(afz_span_take_until(&s, ':', &w), -EINVAL);
        assert_int_equal(afz_span_take_until(&s, '=', &w), 0);
        assert_true(afz_span_eq(w, "k") && afz_span_eq(s, "v=w"));
        assert_int_equal(afz_span_take_prefix(&s, "v=w!"), -EINVAL);
        assert_int_equal(afz_span_take_prefix(&s, "v=w"), 0);
        assert_int_equal(afz_span_take_prefix(&s, "v"), -ENODATA);
        assert_int_equal(afz_span_take_until(&s, '=', &w), -ENODATA);
}

/* A span that holds nothing may have no pointer; UBSan watches. */
static void test_nothing_at_all(void **state)
{
        struct afz_span none = {NULL, 0}, w;
        uint64_t v;
        (void)state;
        assert_true(afz_span_eq(none, "") && !afz_span_eq(none, "a"));
        assert_true(afz_span_starts(none, "") && !afz_span_starts(none, "a"));
        assert_true(afz_span_ends(none, "") && !afz_span_ends(none, "a"));
        assert_true(afz_span_has(none, "") && !afz_span_has(none, "a"));
        assert_int_equal(afz_span_trim(none).n, 0);
        assert_int_equal(afz_span_take_line(&none, &w), -ENODATA);
        assert_int_equal(afz_span_take_u64(&none, &v), -ENODATA);
        assert_int_equal(afz_span_each_key(none, NULL, 0, NULL, NULL), 0);
}

static void test_copies_are_printable(void **state)
{
        static const struct {
                const char *text;
                size_t cap;
                const char *want;
        } cases[] = {
                {"plain", 16, "plain"},
                {"plain", 3, "pl"},
                {"plain", 1, ""},
                {"a\nb\x1b[31m\x7f", 16, "a?b?[31m?"},
                {"gr\xc3\xbc\xc3\x9f", 16, "gr\xc3\xbc\xc3\x9f"},
                {"\xc2\x9b"
                 "31m",
                 16, "??31m"}, /* U+009B begins an escape, as ESC [ does */
                {"\xc2\xa0", 16, "\xc2\xa0"},
                {"x\xc2\x9b", 3, "x?"},
        };
        char buf[16];
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                memset(buf, 'X', sizeof buf);
                size_t n = afz_span_copy(afz_span_str(cases[i].text), buf, cases[i].cap);
                assert_string_equal(buf, cases[i].want);
                assert_int_equal(n, strlen(cases[i].want));
        }
        buf[0] = 'X';
        assert_int_equal(afz_span_copy(AFZ_SPAN("abc"), buf, 0), 0);
        assert_int_equal(buf[0], 'X');
        assert_int_equal(afz_span_copy(AFZ_SPAN("a\0b"), buf, sizeof buf), 3);
        assert_string_equal(buf, "a?b");
}

struct seen {
        int id[8];
        uint64_t value[8];
        size_t n;
};

static void note(void *ctx, int id, uint64_t value)
{
        struct seen *s = ctx;
        assert_true(s->n < 8);
        s->id[s->n] = id;
        s->value[s->n++] = value;
}

static void test_each_key(void **state)
{
        static const struct afz_key keys[] = {{"MemTotal", 1, 0},
                                              {"MemFree", 2, 0},
                                              {"usec", 3, 1000},
                                              {"HugePages_Total", 4, 0}};
        static const struct {
                const char *text;
                size_t n;
                int id;
                uint64_t value;
        } cases[] = {
                {"MemTotal:       16 kB\n", 1, 1, 16384},
                {"HugePages_Total:       3\n", 1, 4, 3},
                {"MemTotal 16\n", 1, 1, 16},
                {"usec 5\n", 1, 3, 5000},
                {"MemFree: 1 kB\nMemTotal: 2 kB\n", 2, 2, 1024}, /* not in the table's order */
                {"MemTotalX: 1 kB\nemTotal: 1 kB\n", 0, 0, 0},
                {"MemTotal:\n", 0, 0, 0},
                {"MemTotal: kB\n", 0, 0, 0},
                {"MemTotal: 12", 0, 0, 0}, /* cut: there may have been more digits */
                {"MemTotal: 12 k", 0, 0, 0},
                {"MemTotal: 12 MB\n", 0, 0, 0},
                {"MemTotal: 12 kB kB\n", 0, 0, 0},
                {"MemTotal: 12kB\n", 0, 0, 0},
                {"MemTotal: -1 kB\n", 0, 0, 0},
                {"MemTotal: 1.5 kB\n", 0, 0, 0},
                {"MemTotal: 18446744073709551615 kB\n", 0, 0, 0},
                {"usec 18446744073709551615\n", 0, 0, 0},
                {"MemTotal: 99999999999999999999 kB\nMemFree: 2 kB\n", 1, 2, 2048},
                {"\n\n: 5\n:\n  MemFree: 2 kB\n", 1, 2, 2048},
                {"MemTotal:12\n", 0, 0, 0},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                struct seen seen = {.n = 0};
                size_t n = afz_span_each_key(afz_span_str(cases[i].text), keys, AFZ_COUNT_OF(keys),
                                             note, &seen);
                if (n != cases[i].n || seen.n != n ||
                    (n > 0 && (seen.id[0] != cases[i].id || seen.value[0] != cases[i].value)))
                        fail_msg("'%s': %zu found", cases[i].text, n);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_take_u64),
                cmocka_unit_test(test_take_i64),
                cmocka_unit_test(test_take_hex),
                cmocka_unit_test(test_take_hundredths),
                cmocka_unit_test(test_whole_numbers),
                cmocka_unit_test(test_lines_that_are_cut),
                cmocka_unit_test(test_words_and_parts),
                cmocka_unit_test(test_nothing_at_all),
                cmocka_unit_test(test_copies_are_printable),
                cmocka_unit_test(test_each_key),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
