/* The report: whole pages of runs made by hand (report_fixture.h) must be well-formed, harmless,
 * small and the same each time; and the lines in them must keep what matters. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report_fixture.h"
#include "report_line.h"
#include "report_parts.h"

enum { PAGE_MOST = 2000000 };

/* ---- well-formed ---- */

static bool is_one_of(const char *name, size_t n, const char *const *list)
{
        for (; *list; list++)
                if (strlen(*list) == n && strncmp(*list, name, n) == 0)
                        return true;
        return false;
}

/* A page on its way through the checker. */
struct tags {
        const char *p;
        const char *problem; /* NULL: none so far */
        struct {
                const char *name;
                size_t len;
        } open[64];
        int depth;
        unsigned seen;
        bool loud; /* says what is wrong */
};

static void wrong(struct tags *tags, const char *at, const char *what)
{
        if (!tags->problem && tags->loud)
                print_error("%s: %.60s\n", what, at);
        tags->problem = what;
        tags->p = "";
}

/* Past the attributes, each name="value" without '<' in it, to "/>" or ">". */
static void skip_attributes(struct tags *tags)
{
        for (;;) {
                tags->p += strspn(tags->p, " \n");
                const char *name = tags->p;
                if (*name == '>' || (*name == '/' && name[1] == '>'))
                        return;
                while (isalnum((unsigned char)*tags->p) || *tags->p == '-')
                        tags->p++;
                if (tags->p == name) {
                        wrong(tags, name, "no attribute");
                        return;
                }
                if (*tags->p != '=')
                        continue; /* hidden */
                const char *end =
                        tags->p[1] == '"' ? tags->p + 2 + strcspn(tags->p + 2, "\"<") : "";
                if (*end != '"') {
                        wrong(tags, name, "an open quote");
                        return;
                }
                tags->p = end + 1;
        }
}

static void close_tag(struct tags *tags)
{
        const char *name = tags->p;
        size_t n = strcspn(name, ">");
        if (name[n] == '\0' || tags->depth == 0 || tags->open[tags->depth - 1].len != n ||
            strncmp(tags->open[tags->depth - 1].name, name, n) != 0) {
                wrong(tags, name, "it closes what is not open");
                return;
        }
        tags->depth--;
        tags->p += n + 1;
}

static void open_tag(struct tags *tags)
{
        static const char *const empty[] = {"meta", "br", NULL};
        static const char *const raw[] = {"script", "style", NULL};
        const char *name = tags->p;
        size_t n = strcspn(name, " \n/>");
        tags->p += n;
        tags->seen++;
        skip_attributes(tags);
        if (tags->problem)
                return;
        bool closed = *tags->p == '/';
        tags->p += closed ? 2 : 1;
        if (is_one_of(name, n, raw)) {
                char end[16];
                snprintf(end, sizeof end, "</%.*s>", (int)n, name);
                const char *at = strstr(tags->p, end);
                if (at)
                        tags->p = at + strlen(end);
                else
                        wrong(tags, name, "it never ends");
        } else if (!closed && !is_one_of(name, n, empty)) {
                if (tags->depth == 64) {
                        wrong(tags, name, "too deep");
                        return;
                }
                tags->open[tags->depth].name = name;
                tags->open[tags->depth++].len = n;
        }
}

/* How many tags there are; 0: they do not fit together. */
static unsigned check_balance(const char *text, bool loud)
{
        struct tags tags = {.p = text, .loud = loud};
        if (strncmp(text, "<!DOCTYPE html>\n", 16) == 0)
                tags.p += 16;
        while (*tags.p) {
                if (*tags.p != '<') {
                        tags.p++;
                } else if (tags.p[1] == '/') {
                        tags.p += 2;
                        close_tag(&tags);
                } else {
                        tags.p++;
                        open_tag(&tags);
                }
        }
        return tags.problem || tags.depth ? 0 : tags.seen;
}

static void test_well_formed(void **state)
{
        size_t len;
        (void)state;
        for (int i = 0; i < FIX_RUNS; i++) {
                char *text = fix_page_text(fix_runs[i].name, &len);
                unsigned least = strcmp(fix_runs[i].name, "nothing") == 0 ? 20 : 200;
                assert_in_range(check_balance(text, true), least, 100000);
                assert_int_equal(strlen(text), len);
                free(text);
        }
}

/* A checker that never fails checks nothing. */
static void test_balance_check_can_fail(void **state)
{
        static const struct {
                const char *text;
                unsigned tags;
        } rows[] = {
                {"<html><p class=\"a b\" hidden>x</p><br><g/><script>a<b</script></html>", 5},
                {"<html><p></html>", 0},
                {"<html></p></html>", 0},
                {"<html><p class=\"a></p></html>", 0},
                {"<html><p class='a'></p></html>", 0},
                {"<html><p <b></p></html>", 0},
                {"<html><script></html>", 0},
                {"<html>", 0},
                {"<html></html", 0},
                {"<html><", 0},
        };
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
                assert_int_equal(check_balance(rows[i].text, false), rows[i].tags);
}

/* ---- harmless ---- */

static unsigned count(const char *text, const char *what)
{
        unsigned n = 0;
        for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
                n++;
        return n;
}

static void test_hostile_texts_stay_texts(void **state)
{
        static const char *const never[] = {"<script>alert", "<img",     "onerror=alert(2)>",
                                            "\"'>",          "\x01",     "\xff",
                                            "\xe2\x80\xae",  "{{}}\x01", "nan",
                                            "inf",           "<!--",     "-9223372036854775808"};
        size_t len;
        (void)state;
        char *text = fix_page_text("hostile", &len);
        for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
                if (strstr(text, never[i]))
                        fail_msg("%s: %.80s", never[i], strstr(text, never[i]));
        /* Ours alone: the data and the script. */
        assert_int_equal(count(text, "<script"), 2);
        assert_int_equal(count(text, "</script>"), 2);
        assert_true(count(text, "&lt;/script&gt;") > 20);
        assert_non_null(strstr(text, "\\u003c/script\\u003e"));
        free(text);
}

static void test_asks_nobody(void **state)
{
        static const char *const never[] = {"src=\"",  "href=\"",   "url(",      "@import",
                                            "http://", "https://",  "fetch(",    "XMLHttp",
                                            "eval(",   "innerHTML", " style=\"", " onclick"};
        size_t len;
        (void)state;
        for (int i = 0; i < FIX_RUNS; i++) {
                char *text = fix_page_text(fix_runs[i].name, &len);
                for (size_t k = 0; k < sizeof never / sizeof never[0]; k++) {
                        const char *at = strstr(text, never[k]);
                        /* The name of SVG is an address that nobody asks. */
                        while (at && strncmp(at, "http://www.w3.org/2000/svg", 26) == 0)
                                at = strstr(at + 1, never[k]);
                        if (at)
                                fail_msg("%s in %s: %.60s", never[k], fix_runs[i].name, at);
                }
                assert_non_null(
                        strstr(text, "Content-Security-Policy\" content=\"default-src 'none'"));
                free(text);
        }
}

static void test_text(void **state)
{
        static const struct {
                const char *in, *html, *json;
        } rows[] = {
                {"plain", "plain", "\"plain\""},
                {"a<b>&\"'", "a&lt;b&gt;&amp;&quot;&#39;", "\"a\\u003cb\\u003e\\u0026\\\"'\""},
                {"back\\slash\n\tx", "back\\slash  x", "\"back\\\\slash  x\""},
                {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xa7", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xa7",
                 "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xa7\""},
                {"\xc3", "\xef\xbf\xbd", "\"\xef\xbf\xbd\""},
                {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
                 "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
                {"\xe2\x80\xaegnp", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdgnp",
                 "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdgnp\""},
                {"\x1b[31m", "\xef\xbf\xbd[31m", "\"\xef\xbf\xbd[31m\""},
                {"123456789012345678901", "12345678901234567890…", "\"12345678901234567890…\""},
        };
        char buf[200];
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
                afz_report_text(&out, rows[i].in, 20);
                buf[out.len] = '\0';
                assert_string_equal(buf, rows[i].html);
                out.len = 0;
                afz_report_json_text(&out, rows[i].in, 20);
                buf[out.len] = '\0';
                assert_string_equal(buf, rows[i].json);
        }
}

/* ---- small, the same, and complete ---- */

static void test_small_and_the_same(void **state)
{
        size_t len, again;
        (void)state;
        for (int i = 0; i < FIX_RUNS; i++) {
                char *a = fix_page_text(fix_runs[i].name, &len),
                     *b = fix_page_text(fix_runs[i].name, &again);
                assert_in_range(len, 10000, PAGE_MOST);
                assert_int_equal(len, again);
                assert_memory_equal(a, b, len);
                free(a);
                free(b);
        }
}

static void test_says_it_all(void **state)
{
        static const char *const words[] = {"The program keeps what it no longer needs",
                                            "Why we believe it",
                                            "What to change",
                                            "loss.detach()",
                                            "93&#8239;%",
                                            "Explained by <code>leak</code>",
                                            "swap-thrash</code>",
                                            "Memory of the job",
                                            "budget",
                                            "GPU memory",
                                            "Waiting for memory",
                                            "Training steps",
                                            "4 times",
                                            "What the memory was for",
                                            "<strong>Adapted:</strong> memory ran out 2 times",
                                            "activations<small>grows with the batch",
                                            "3.0 GB</td><td>75 %</td>",
                                            "the GPU&#39;s memory ran out in step 3",
                                            "7.4 GB</td>",
                                            "948 MB</td>",
                                            "46 %</td>",
                                            "train.py:203 in &lt;module&gt;",
                                            "python3 4250, thread 4261",
                                            "held still by Antifreeze",
                                            "<pre>__read\ntrain.py:90 in save()",
                                            "SIGTERM",
                                            "saved",
                                            "Where the memory went",
                                            "unexplained",
                                            "loader worker",
                                            "4250",
                                            "NVIDIA RTX A5000",
                                            "of one core",
                                            "role=\"img\"",
                                            "aria-label=\"Memory of the job over 30 s",
                                            "Memory by line of the program",
                                            "Which lines held it",
                                            "of the 4.2 GB that the job needed then, the probe saw "
                                            "3.4 GB",
                                            "in 5 processes",
                                            "Python's own objects, give or take 18",
                                            "the probe was in 5 processes, CPython 3.11",
                                            "Who called for it",
                                            "<title>train.py:118 in train_step()",
                                            "106, 4.08 a second"};
        size_t len;
        (void)state;
        char *text = fix_page_text("leak", &len);
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
                if (!strstr(text, words[i]))
                        fail_msg("it does not say '%s'", words[i]);
        free(text);
        text = fix_page_text("nothing", &len);
        assert_non_null(strstr(text, "There is no recording"));
        assert_non_null(strstr(text, "Nothing can be said"));
        free(text);
}

static void test_no_room(void **state)
{
        char buf[4096];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf);
        struct fix_page *page = fix_page_new("leak");
        (void)state;
        assert_true(afz_report_put(&out, &page->report) < 0);
        fix_page_free(page);
}

/* ---- lines ---- */

static struct afz_report_line *line_new(uint32_t end_ms)
{
        struct afz_report_line *line = malloc(sizeof *line);
        assert_non_null(line);
        afz_report_line_init(line, end_ms);
        return line;
}

static void test_peaks_survive(void **state)
{
        enum { POINTS = 100000 };
        struct afz_point *point = calloc(POINTS, sizeof *point);
        struct afz_column column = {.metric = AFZ_HOLD_NEED, .count = POINTS, .point = point};
        struct afz_report_line *line = line_new(POINTS * 10);
        (void)state;
        for (uint32_t i = 0; i < POINTS; i++)
                point[i] = (struct afz_point){.t_ms = i * 10, .least = 5, .most = 5, .mean = 5};
        point[41234].most = 900, point[77777].least = 1;
        afz_report_line_gauge(line, &column, 0, 1);
        assert_true(line->peak == 900 && line->peak_ms == 412340);
        assert_true(line->bucket[412].hi == 900 && line->bucket[777].lo == 1);
        assert_true(line->bucket[411].hi == 5 && line->bucket[412].mid == 5);
        assert_int_equal(line->known, AFZ_REPORT_BUCKETS);
        afz_report_line_init(line, POINTS * 10);
        afz_report_line_gauge(line, &column, 1000, -1); /* what is left of 1000 */
        assert_true(line->bucket[412].lo == 100 && line->bucket[777].hi == 999 &&
                    line->peak == 999);
        free(line);
        free(point);
}

static void test_rates(void **state)
{
        /* 0.5 s of waiting in each second, read 100 times a second, begun anew after 3 s. */
        struct afz_point point[600];
        struct afz_column column = {.metric = AFZ_HOLD_STALL, .count = 600, .point = point};
        struct afz_report_line *line = line_new(6000);
        (void)state;
        for (uint32_t i = 0; i < 600; i++) {
                int64_t v = (int64_t)(i < 300 ? i : i - 300) * 5000000;
                point[i] = (struct afz_point){.t_ms = i * 10, .least = v, .most = v, .mean = v};
        }
        afz_report_line_rate(line, &column, 1e-9);
        assert_true(line->peak > 0.499 && line->peak < 0.501);
        for (unsigned i = 0; i < AFZ_REPORT_BUCKETS; i++)
                if (line->bucket[i].weight > 0)
                        assert_true(line->bucket[i].lo > 0.499 && line->bucket[i].hi < 0.501);
        assert_true(line->total > 2.4 && line->total < 3.01);
        free(line);
}

static void test_holes_stay_holes(void **state)
{
        struct afz_point point[] = {
                {.t_ms = 0}, {.t_ms = 1000}, {.t_ms = 2000}, {.t_ms = 900000}, {.t_ms = 901000}};
        struct afz_column column = {.metric = AFZ_HOLD_NEED, .count = 5, .point = point};
        struct afz_report_line *line = line_new(1000000);
        (void)state;
        afz_report_line_gauge(line, &column, 0, 1);
        assert_int_equal(line->known, 5);
        assert_false(afz_report_line_breaks(line, 0, 1));
        assert_false(afz_report_line_breaks(line, 1, 2));
        assert_true(afz_report_line_breaks(line, 2, 900));
        assert_true(line->bucket[400].weight <= 0);
        free(line);
}

static void test_axes(void **state)
{
        static const struct {
                enum afz_report_unit unit;
                double most;
                unsigned ticks;
                double step;
                const char *label; /* of twice the step */
        } rows[] = {
                {AFZ_REPORT_BYTES, 4.0 * 1073741824, 5, 1.0 * 1073741824, "2 GB"},
                {AFZ_REPORT_BYTES, 96.0 * 1073741824, 5, 20.0 * 1073741824, "40 GB"},
                {AFZ_REPORT_BYTES, 700.0 * 1048576, 5, 200.0 * 1048576, "400 MB"},
                {AFZ_REPORT_BYTES, 1.0 * 1073741824, 5, 0.2 * 1073741824, "0.4 GB"},
                {AFZ_REPORT_PERCENT, 0.1, 3, 0.05, "10 %"},
                {AFZ_REPORT_PERCENT, 1, 3, 0.5, "100 %"},
                {AFZ_REPORT_CORES, 8, 3, 5, "10"},
                {AFZ_REPORT_SECONDS, 0.21, 3, 0.1, "0.2 s"},
                {AFZ_REPORT_PER_S, 200e6, 3, 100.0 * 1048576, "200 MB/s"},
        };
        char buf[AFZ_REPORT_TEXT_CAP];
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                double step = afz_report_step(rows[i].unit, rows[i].most, rows[i].ticks);
                if (fabs(step / rows[i].step - 1) > 1e-6)
                        fail_msg("row %zu: a step of %g", i, step);
                assert_string_equal(afz_report_tick(buf, rows[i].unit, 2 * step, rows[i].most),
                                    rows[i].label);
        }
        assert_string_equal(
                afz_report_tick(buf, AFZ_REPORT_BYTES, 200.0 * 1048576, 1200.0 * 1048576),
                "200 MB");
        assert_string_equal(
                afz_report_tick(buf, AFZ_REPORT_BYTES, 0.25 * 1073741824, 1.0 * 1073741824),
                "0.25 GB");
        assert_int_equal(afz_report_time_step(29600, 8), 5000);
        assert_int_equal(afz_report_time_step(86400000, 8), 3 * 3600000);
        assert_string_equal(afz_report_time_tick(buf, 15000, 5000), "15 s");
        assert_string_equal(afz_report_time_tick(buf, 90000, 30000), "1:30");
        assert_string_equal(afz_report_time_tick(buf, 5400000, 1800000), "1:30 h");
        assert_string_equal(afz_report_time_tick(buf, 6 * 3600000, 3 * 3600000), "6 h");
        assert_string_equal(afz_report_value(buf, AFZ_REPORT_BYTES, 3.94 * 1073741824), "3.9 GB");
        assert_string_equal(afz_report_value(buf, AFZ_REPORT_PERCENT, 0.004), "0.4 %");
        assert_string_equal(afz_report_value(buf, AFZ_REPORT_CORES, -3), "0.0 cores");
}

static void test_events(void **state)
{
        struct fix_page *page = fix_page_new("leak");
        struct afz_report_events *events = malloc(sizeof *events);
        unsigned brakes = 0;
        (void)state;
        assert_non_null(events);
        afz_report_events_find(events, &page->flight);
        for (size_t i = 0; i < events->count; i++) {
                const struct afz_report_event *e = &events->event[i];
                assert_true(i == 0 || e->t_ms >= events->event[i - 1].t_ms);
                if (strcmp(e->word, "brake") == 0) {
                        brakes++;
                        /* Four of 320 ms that lie close together, with their ends. */
                        assert_int_equal(e->times, 4);
                        assert_int_equal(e->braked_ms, 4 * 320);
                        assert_int_equal(e->to_ms, 24200 + 3 * 550 + 320);
                }
        }
        assert_int_equal(brakes, 1);
        assert_int_equal(events->count,
                         8); /* start, OOM, warning, brakes, checkpoint, saved, two ends */
        free(events);
        fix_page_free(page);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_well_formed),
                cmocka_unit_test(test_balance_check_can_fail),
                cmocka_unit_test(test_hostile_texts_stay_texts),
                cmocka_unit_test(test_asks_nobody),
                cmocka_unit_test(test_text),
                cmocka_unit_test(test_small_and_the_same),
                cmocka_unit_test(test_says_it_all),
                cmocka_unit_test(test_no_room),
                cmocka_unit_test(test_peaks_survive),
                cmocka_unit_test(test_rates),
                cmocka_unit_test(test_holes_stay_holes),
                cmocka_unit_test(test_axes),
                cmocka_unit_test(test_events),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
