/* The JSON object of a tick: that it is valid JSON, has no key twice, and says what the window
 * says. The checker below is strict and knows nothing of our writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json_view.h"
#include "view_fixture.h"

enum { CAP = 1 << 21, MAX_KEYS = 128 };

static const char *check_value(const char *s, int depth);

static const char *check_string(const char *s)
{
        assert_int_equal(*s, '"');
        for (s++; *s != '"'; s++) {
                assert_true((unsigned char)*s >= 0x20);
                if (*s == '\\') {
                        s++;
                        assert_non_null(strchr("\"\\/bfnrtu", *s));
                        if (*s == 'u') {
                                assert_int_equal(strspn(s + 1, "0123456789abcdefABCDEF") >= 4, 1);
                                s += 4;
                        }
                }
        }
        return s + 1;
}

static const char *check_number(const char *s)
{
        size_t n;
        if (*s == '-')
                s++;
        n = strspn(s, "0123456789");
        assert_true(n > 0 && (n == 1 || *s != '0'));
        s += n;
        if (*s == '.') {
                n = strspn(s + 1, "0123456789");
                assert_true(n > 0);
                s += n + 1;
        }
        return s;
}

static const char *check_object(const char *s, int depth)
{
        const char *key[MAX_KEYS];
        size_t length[MAX_KEYS];
        int keys = 0;
        if (s[1] == '}')
                return s + 2;
        do {
                s++;
                assert_true(keys < MAX_KEYS);
                key[keys] = s;
                s = check_string(s);
                length[keys] = (size_t)(s - key[keys]);
                for (int i = 0; i < keys; i++)
                        if (length[i] == length[keys] && !memcmp(key[i], key[keys], length[i]))
                                fail_msg("key twice: %.*s", (int)length[i], key[i]);
                keys++;
                assert_int_equal(*s, ':');
                s = check_value(s + 1, depth + 1);
        } while (*s == ',');
        assert_int_equal(*s, '}');
        return s + 1;
}

static const char *check_array(const char *s, int depth)
{
        if (s[1] == ']')
                return s + 2;
        do
                s = check_value(s + 1, depth + 1);
        while (*s == ',');
        assert_int_equal(*s, ']');
        return s + 1;
}

static const char *check_value(const char *s, int depth)
{
        static const char *const words[] = {"null", "true", "false"};
        assert_true(depth < 8);
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
                if (strncmp(s, words[i], strlen(words[i])) == 0)
                        return s + strlen(words[i]);
        return *s == '{'   ? check_object(s, depth)
               : *s == '[' ? check_array(s, depth)
               : *s == '"' ? check_string(s)
                           : check_number(s);
}

static char *tick(struct afz_json_view *view, const struct fix *fix)
{
        static char buf[CAP];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
        afz_json_tick(view, &out, &fix->window, 1234567890);
        buf[out.len] = 0;
        assert_int_equal(out.err, 0);
        assert_int_equal(buf[0], '{');
        const char *end = check_value(buf, 0);
        assert_string_equal(end, "\n"); /* one line, and nothing behind it */
        return buf;
}

static void has(const char *text, const char *part)
{
        if (!strstr(text, part))
                fail_msg("not there: %s", part);
}

static void test_valid_and_true(void **state)
{
        struct fix_want want = {.gpus = 2, .procs = 6, .cores = 4, .unseen = 1};
        struct fix *fix = fix_new(&want);
        struct afz_json_view view = {0};
        const char *text = tick(&view, fix);
        (void)state;
        has(text, "{\"schema\":1,\"t_ns\":100000000000000,\"wall_ns\":1234567890,\"tick\":2,");
        has(text, "\"job_pid\":4242,\"limit\":{\"kind\":\"disk\",\"text\":\"waiting for disk vda "
                  "(94 % busy)\"}");
        has(text, "\"host\":{\"mem_total_bytes\":17179869184,");
        has(text, "\"dirty_bytes\":null");
        has(text, "\"rates\":{\"swap_in_bytes_per_s\":3145728.000,\"swap_out_bytes_per_s\":0.000,"
                  "\"major_faults_count_per_s\":null");
        has(text, "\"cpus\":[{\"core\":0,\"name\":\"core\",");
        has(text,
            "\"processes\":[{\"pid\":4242,\"start\":900,\"name\":\"python3\","
            "\"command\":\"/usr/bin/python3 train.py --epochs 90\",\"note\":null,\"ppid\":1,");
        has(text, "\"state\":\"R\",\"role\":\"main\"");
        has(text, "\"gpus\":[{\"gpu\":0,\"name\":\"NVIDIA H200\",\"uuid\":\"GPU-");
        has(text, "\"cgroups\":[]");
        has(text, "\"events\":[],\"events_missed\":0");
        has(text, "\"unavailable\":[{\"sense\":\"gpu\",\"why\":\"no driver is "
                  "loaded\"},{\"sense\":\"kmsg\",");
        fix_free(fix);
}

/* Absent is null, everywhere; nothing known may never come out as a number. */
static void test_absent_is_null(void **state)
{
        struct fix_want want = {.gpus = 1, .procs = 2, .cores = 1, .blank = 1, .no_job = 1};
        struct fix *fix = fix_new(&want);
        struct afz_json_view view = {0};
        const char *text = tick(&view, fix);
        (void)state;
        has(text, "\"job_pid\":null");
        has(text, "\"job\":null");
        has(text, "\"mem_available_bytes\":null");
        has(text, "\"state\":null,\"role\":null");
        assert_null(strstr(text, "_bytes\":0"));
        assert_null(strstr(text, "_per_s\":0"));
        fix_free(fix);
}

static void test_events_come_once(void **state)
{
        struct fix_want want = {.procs = 1, .cores = 1};
        struct fix *fix = fix_new(&want);
        struct afz_window *w = &fix->window;
        struct afz_json_view view = {0};
        (void)state;
        w->event[0] = (struct afz_event){
                .t_ns = 5, .kind = AFZ_EVENT_XID, .code = 79, .text = "GPU has fallen off the bus"};
        w->events = 1;
        has(tick(&view, fix), "\"events\":[{\"t_ns\":5,\"kind\":\"xid\",\"code\":79,"
                              "\"text\":\"GPU has fallen off the bus\"}],\"events_missed\":0");
        has(tick(&view, fix), "\"events\":[],\"events_missed\":0");
        w->events += AFZ_WINDOW_EVENTS + 3;
        has(tick(&view, fix), "\"events_missed\":3");
        has(tick(&view, fix), "\"events\":[],\"events_missed\":0");
        fix_free(fix);
}

static void test_hostile_names(void **state)
{
        static const char *const names[] = {
                "\"},{\"x\":1", "back\\slash", "\033[2J\n\t\x01", "\xff\xfe", "\xe6\x97",
                "训练🔥",        "foo) Z ",     "\u202e",          "",
        };
        (void)state;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                struct fix_want want = {.gpus = 1,
                                        .procs = 3,
                                        .cores = 1,
                                        .name = names[i],
                                        .detail = names[i],
                                        .note = names[i]};
                struct fix *fix = fix_new(&want);
                struct afz_json_view view = {0};
                tick(&view, fix);
                fix_free(fix);
        }
}

static void test_odd_values(void **state)
{
        struct fix_want want = {.procs = 2, .cores = 1};
        struct fix *fix = fix_new(&want);
        struct afz_json_view view = {0};
        (void)state;
        for (size_t i = 0; i < fix->now->count; i++) {
                struct afz_sample *s = &fix->now->sample[i];
                if (s->subject.kind != AFZ_KIND_PROC)
                        continue;
                afz_sample_set(s, AFZ_PROC_ROLE, -7);
                afz_sample_set(s, AFZ_PROC_STATE, '"');
                afz_sample_set(s, AFZ_PROC_RSS, INT64_MIN);
                afz_sample_set(s, AFZ_PROC_NICE, -5);
        }
        const char *text = tick(&view, fix);
        has(text, "\"state\":\"\\\"\",\"role\":null");
        has(text, "\"rss_bytes\":-9223372036854775808");
        has(text, "\"nice\":-5");
        fix_free(fix);
}

static void test_lines_of_the_program(void **state)
{
        struct fix_want want = {.procs = 1, .cores = 1};
        struct fix *fix = fix_new(&want);
        struct afz_lines_now lines = {
                .known = true,
                .live_bytes = 300,
                .processes = 2,
                .rows = 1,
                .words = "the probe is in 2 processes",
                .row = {{"t\"\xff.py:3 in f()", 200, -5, "heap", 2}},
        };
        struct afz_json_view view = {.lines = &lines};
        (void)state;
        has(tick(&view, fix),
            "\"lines\":{\"live_bytes\":300,\"step_count\":null,\"growth_s\":null,"
            "\"processes_count\":2,\"probe\":\"the probe is in 2 processes\",\"top\":[{\"name\":");
        has(tick(&view, fix), ".py:3 in f()\",\"live_bytes\":200,\"growth_bytes\":null,"
                              "\"memory\":\"heap\",\"processes_count\":2}],\"used_for\":null}");
        lines.growth_s = 60, lines.step = 7;
        has(tick(&view, fix), "\"step_count\":7,\"growth_s\":60,");
        has(tick(&view, fix), "\"growth_bytes\":-5,");
        lines.known = false;
        has(tick(&view, fix), "\"lines\":null}");
        view.lines = NULL;
        has(tick(&view, fix), "\"lines\":null}");
        fix_free(fix);
}

static void test_metric_table(void **state)
{
        static char buf[CAP];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
        size_t rows = 0, want = 0;
        (void)state;
        afz_json_metrics(&out);
        buf[out.len] = 0;
        assert_int_equal(out.err, 0);
        assert_string_equal(check_value(buf, 0), "\n");
        for (const char *s = buf; (s = strstr(s, "{\"kind\":")); s++)
                rows++;
        for (int k = 0; k < AFZ_KIND_COUNT; k++)
                want += afz_kind_table[k].metrics;
        assert_int_equal(rows, want);
        has(buf,
            "{\"kind\":\"process\",\"key\":\"processes\",\"name\":\"rss_bytes\",\"unit\":\"bytes\","
            "\"type\":\"gauge\",\"meaning\":\"");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_valid_and_true),       cmocka_unit_test(test_absent_is_null),
                cmocka_unit_test(test_events_come_once),     cmocka_unit_test(test_hostile_names),
                cmocka_unit_test(test_odd_values),           cmocka_unit_test(test_metric_table),
                cmocka_unit_test(test_lines_of_the_program),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
