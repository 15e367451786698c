/* The JSON reader: what is sound, what is not, and what values say. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "count_of.h"
#include "json.h"
#include "json_read.h"

/* In memory of just its size, so that a sanitizer sees a look beyond the end. */
static int read_exact(const char *text, size_t n, struct afz_json_value *ret, char **ret_copy)
{
        char *copy = malloc(n ? n : 1);
        assert_non_null(copy);
        memcpy(copy, text, n);
        *ret_copy = copy;
        return afz_json_read((struct afz_span){copy, n}, ret);
}

static struct afz_json_value parsed(const char *text)
{
        struct afz_json_value value = {0};
        if (afz_json_read(afz_span_str(text), &value) < 0)
                fail_msg("refused: %s", text);
        return value;
}

static void test_sound(void **state)
{
        static const struct {
                const char *text;
                enum afz_json_type type;
        } rows[] = {
                {"null", AFZ_JSON_NULL},
                {" true\n", AFZ_JSON_BOOL},
                {"false", AFZ_JSON_BOOL},
                {"0", AFZ_JSON_NUMBER},
                {"-0", AFZ_JSON_NUMBER},
                {"-12.50e+3", AFZ_JSON_NUMBER},
                {"1E5", AFZ_JSON_NUMBER},
                {"\"\"", AFZ_JSON_STRING},
                {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"", AFZ_JSON_STRING},
                {"\"\\ud83d\\ude00 \xf0\x9f\x98\x80 \x7f\"", AFZ_JSON_STRING},
                {"[]", AFZ_JSON_ARRAY},
                {" [ ] ", AFZ_JSON_ARRAY},
                {"[1,[2,[3]],{}]", AFZ_JSON_ARRAY},
                {"{}", AFZ_JSON_OBJECT},
                {"{ \"a\" : 1 , \"a\" : [ ] }\r\n", AFZ_JSON_OBJECT},
                {"{\"\":{\"\":{}}}", AFZ_JSON_OBJECT},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(rows); i++) {
                struct afz_json_value value = parsed(rows[i].text);
                if (value.type != rows[i].type)
                        fail_msg("%s: type %d", rows[i].text, (int)value.type);
        }
}

static const char *const refused[] = {
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "undefined",
        "NaN",
        "-Infinity",
        "'a'",
        "a",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x10",
        "1 2",
        "--1",
        "-a",
        "1,",
        "\"",
        "\"a",
        "\"\\\"",
        "\"\\x41\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"a\nb\"",
        "\"\t\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\ud800x\"",
        "\"\xff\"",
        "\"\xc0\xaf\"",
        "\"\xed\xa0\x80\"",
        "\"\xe2\x82\"",
        "\"\xf4\x90\x80\x80\"",
        "[",
        "]",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1}",
        "[}",
        "[1]]",
        "[\"a\":1]",
        "{",
        "}",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\" 1}",
        "{1:2}",
        "{\"a\":1]",
        "{\"a\"}",
        "{,}",
        "{\"a\":1 \"b\":2}",
        "{} {}",
        "[]x",
        "/* */ 1",
        "1 // x",
        "\xef\xbb\xbf{}",
};

static void test_refused(void **state)
{
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(refused); i++) {
                struct afz_json_value value = {.type = AFZ_JSON_NONE};
                char *copy;
                int r = read_exact(refused[i], strlen(refused[i]), &value, &copy);
                free(copy);
                if (r != -EBADMSG || value.type != AFZ_JSON_NONE)
                        fail_msg("not refused: %s", refused[i]);
        }
        struct afz_json_value value;
        assert_int_equal(afz_json_read((struct afz_span){"1\0", 2}, &value), -EBADMSG);
        assert_int_equal(afz_json_read((struct afz_span){NULL, 0}, &value), -EBADMSG);
}

static void test_depth(void **state)
{
        char text[2 * (AFZ_JSON_DEPTH + 1) + 1];
        struct afz_json_value value;
        (void)state;
        for (int depth = AFZ_JSON_DEPTH; depth <= AFZ_JSON_DEPTH + 1; depth++) {
                memset(text, '[', (size_t)depth);
                memset(text + depth, ']', (size_t)depth);
                struct afz_span all = {text, 2 * (size_t)depth};
                assert_int_equal(afz_json_read(all, &value), depth > AFZ_JSON_DEPTH ? -EBADMSG : 0);
        }
}

static const char document[] =
        "{\"schema\":1,\"end\":{\"how\":\"exit\",\"code\":-3},\"peak\": {\"ram_bytes\" : "
        "18446744073709551615 , \"gpu_bytes\":null},\"verdicts\":[{\"id\":\"le\\u0061k\","
        "\"confidence\":0.85,\"evidence\":[\"a, ]}\",\"b\\\\\"]}, {}],\"live\":true,\"\":[]}\n";

static void test_walk(void **state)
{
        struct afz_json_value doc = parsed(document), v, inner, key;
        uint64_t u;
        int64_t i;
        double d;
        bool b;
        char text[64];
        (void)state;
        assert_true(afz_json_member(doc, "schema", &v) && afz_json_get_u64(v, &u) && u == 1);
        assert_true(afz_json_member(doc, "end", &v) && afz_json_member(v, "code", &inner));
        assert_true(afz_json_get_i64(inner, &i) && i == -3 && !afz_json_get_u64(inner, &u));
        assert_true(afz_json_member(v, "how", &inner) && afz_json_is(inner, "exit"));
        assert_false(afz_json_is(inner, "exi") || afz_json_is(inner, "exits"));
        assert_true(afz_json_member(doc, "peak", &v) && afz_json_member(v, "ram_bytes", &inner));
        assert_true(afz_json_get_u64(inner, &u) && u == UINT64_MAX && !afz_json_get_i64(inner, &i));
        assert_true(afz_json_member(v, "gpu_bytes", &inner) && inner.type == AFZ_JSON_NULL);
        assert_true(afz_json_member(doc, "live", &v) && afz_json_get_bool(v, &b) && b);
        assert_true(afz_json_member(doc, "", &v) && v.type == AFZ_JSON_ARRAY);
        assert_false(afz_json_member(doc, "missing", &v));
        assert_false(afz_json_member(v, "schema", &inner)); /* not an object */

        assert_true(afz_json_member(doc, "verdicts", &v));
        struct afz_json_walk walk = afz_json_into(v);
        assert_true(afz_json_next(&walk, &key, &inner) && key.type == AFZ_JSON_NONE);
        assert_true(afz_json_member(inner, "id", &v) && afz_json_is(v, "leak"));
        assert_true(afz_json_member(inner, "confidence", &v) && afz_json_get_double(v, &d));
        assert_true(d > 0.8499 && d < 0.8501);
        assert_true(afz_json_member(inner, "evidence", &v));
        struct afz_json_walk lines = afz_json_into(v);
        assert_true(afz_json_next(&lines, NULL, &v) && afz_json_get_text(v, text, sizeof text));
        assert_string_equal(text, "a, ]}");
        assert_true(afz_json_next(&lines, NULL, &v) && afz_json_get_text(v, text, sizeof text));
        assert_string_equal(text, "b\\");
        assert_false(afz_json_next(&lines, NULL, &v));
        assert_true(afz_json_next(&walk, NULL, &inner) && inner.type == AFZ_JSON_OBJECT);
        assert_false(afz_json_next(&walk, NULL, &inner));
        walk = afz_json_into(parsed("12"));
        assert_false(afz_json_next(&walk, NULL, &inner));
}

static void test_cut_anywhere(void **state)
{
        (void)state;
        for (size_t n = 0; n < sizeof document - 2; n++) {
                struct afz_json_value value;
                char *copy;
                assert_int_equal(read_exact(document, n, &value, &copy), -EBADMSG);
                free(copy);
        }
}

static void test_numbers(void **state)
{
        static const struct {
                const char *text;
                double value;
        } rows[] = {
                {"0", 0},
                {"-0.0", 0},
                {"1", 1},
                {"123.456", 123.456},
                {"-1e3", -1000},
                {"1E-3", 0.001},
                {"2.5e+2", 250},
                {"1e-400", 0},
                {"0e999999999999", 0},
                {"0.00000000000000000000000001", 1e-26},
                {"123456789012345678901234567890", 1.2345678901234568e29},
                {"1.7976931348623157e308", 1.7976931348623157e308},
        };
        double d;
        int64_t i;
        uint64_t u;
        (void)state;
        for (size_t k = 0; k < AFZ_COUNT_OF(rows); k++) {
                assert_true(afz_json_get_double(parsed(rows[k].text), &d));
                double off = d - rows[k].value, size = rows[k].value;
                off = off < 0 ? -off : off;
                size = size < 0 ? -size : size;
                if (off > size * 1e-15)
                        fail_msg("%s: %.17g", rows[k].text, d);
        }
        assert_false(afz_json_get_double(parsed("1e309"), &d));
        assert_false(afz_json_get_double(parsed("-1e99999999999999999999"), &d));
        assert_false(afz_json_get_double(parsed("\"1\""), &d));
        assert_false(afz_json_get_u64(parsed("1.0"), &u) || afz_json_get_u64(parsed("1e3"), &u));
        assert_false(afz_json_get_u64(parsed("18446744073709551616"), &u));
        assert_true(afz_json_get_i64(parsed("-9223372036854775808"), &i) && i == INT64_MIN);
        assert_false(afz_json_get_i64(parsed("9223372036854775808"), &i));
        bool b;
        assert_false(afz_json_get_bool(parsed("1"), &b) || afz_json_get_bool(parsed("null"), &b));
}

static void test_texts(void **state)
{
        static const struct {
                const char *text, *means;
        } rows[] = {
                {"\"\"", ""},
                {"\"a\\nb\\u0007\"", "a\nb\a"},
                {"\"\\u00e9\\u20ac\\ud83d\\ude00\"", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
                {"\"x\\u0000y\"", "x?y"},
        };
        char text[16];
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(rows); i++) {
                assert_true(afz_json_get_text(parsed(rows[i].text), text, sizeof text));
                assert_string_equal(text, rows[i].means);
                assert_true(afz_json_is(parsed(rows[i].text), rows[i].means));
        }
        assert_true(afz_json_get_text(parsed("\"ab\xc3\xa9\""), text, 4));
        assert_string_equal(text, "ab"); /* no half character */
        assert_true(afz_json_get_text(parsed("\"abc\""), text, 1));
        assert_string_equal(text, "");
        assert_false(afz_json_get_text(parsed("12"), text, sizeof text));
}

/* What our writer writes, our reader reads. */
static void test_round(void **state)
{
        static const char hostile[] = "\x01\x1f \"\\/ \xc3\xa9 \xf0\x9f\x98\x80 \x7f }]";
        char buf[256], text[64];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf);
        struct afz_json j = {.out = &out};
        struct afz_json_value doc, v;
        int64_t i;
        (void)state;
        afz_json_open(&j, '{');
        afz_json_key(&j, hostile), afz_json_str(&j, hostile);
        afz_json_key(&j, "n"), afz_json_i64(&j, INT64_MIN);
        afz_json_close(&j, '}');
        assert_int_equal(afz_json_read((struct afz_span){buf, out.len}, &doc), 0);
        assert_true(afz_json_member(doc, hostile, &v) && afz_json_get_text(v, text, sizeof text));
        assert_string_equal(text, hostile);
        assert_true(afz_json_member(doc, "n", &v) && afz_json_get_i64(v, &i) && i == INT64_MIN);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sound),        cmocka_unit_test(test_refused),
                cmocka_unit_test(test_depth),        cmocka_unit_test(test_walk),
                cmocka_unit_test(test_cut_anywhere), cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_texts),        cmocka_unit_test(test_round),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
