/* Lines of the program in the report: over time, and as a flame graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report_fixture.h"
#include "report_parts.h"

static unsigned count(const char *text, const char *what)
{
        unsigned n = 0;
        for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
                n++;
        return n;
}

/* The picture between its tags; the caller's to free. */
static char *flame_of(const char *page, unsigned which)
{
        const char *from = page;
        for (unsigned i = 0; from && i <= which; i++)
                from = strstr(from + (i > 0), "<svg class=\"flame\"");
        return from ? strndup(from, (size_t)(strstr(from, "</svg>\n</svg>") - from)) : NULL;
}

static void test_flame(void **state)
{
        size_t len;
        (void)state;
        char *page = fix_page_text("leak", &len);
        char *folded = flame_of(page, 0), *whole = flame_of(page, 1);
        assert_non_null(folded);
        assert_non_null(whole);
        /* The interpreter's inside is folded away, but can be had. */
        assert_null(strstr(folded, "python3.11+0x"));
        assert_null(strstr(folded, "importlib"));
        assert_non_null(strstr(whole, "python3.11+0x1f3a"));
        assert_non_null(strstr(whole, "importlib"));
        /* Whose code: what the user's line called is a library's. */
        static const struct {
                const char *name, *paint;
        } rows[] = {{"train.py:118 in train_step()", "o1"},
                    {"train.py:88 in main()", "o1"},
                    {"data.py:41 in load()", "o1"},
                    {"numpy/_core/numeric.py:232 in ones()", "o2"},
                    {"c10::alloc_cpu() in libc10.so", "o2"},
                    {"torch/__init__.py:9", "o2"},
                    {"everywhere else", "o4"}};
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                char title[80];
                snprintf(title, sizeof title, "<title>%s\n", rows[i].name);
                const char *at = strstr(folded, title);
                if (!at)
                        fail_msg("no box for %s", rows[i].name);
                while (strncmp(at, "class=\"", 7) != 0)
                        at--;
                assert_memory_equal(at + 7, rows[i].paint, 2);
        }
        free(folded);
        free(whole);
        free(page);
}

static void test_flame_stays_small(void **state)
{
        size_t len;
        (void)state;
        char *page = fix_page_text("many", &len), *flame = flame_of(page, 0);
        assert_in_range(len, 100000, 1000000);
        assert_in_range(count(flame, "<title>"), 500, 1400);
        free(flame);
        free(page);
        page = fix_page_text("one", &len);
        flame = flame_of(page, 0);
        assert_int_equal(count(flame, "<title>"), 2);
        assert_non_null(strstr(flame, "trainer+0x1234\n64.0 MB, 100 %"));
        free(flame);
        free(page);
        page = fix_page_text("day", &len); /* without the probe */
        assert_null(strstr(page, "Who called for it"));
        assert_null(strstr(page, "Which lines held it"));
        assert_null(strstr(page, "Memory by line"));
        free(page);
}

static const struct afz_report_panel *panel_of(const struct afz_report_picture *picture,
                                               const char *id)
{
        for (unsigned i = 0; i < picture->count; i++)
                if (strcmp(picture->panel[i].id, id) == 0)
                        return &picture->panel[i];
        fail_msg("no panel %s", id);
        return NULL;
}

/* What is told once holds until it is told again, and layers add up. */
static void test_lines_over_time(void **state)
{
        struct fix_page *page = fix_page_new("leak");
        struct afz_report_picture *picture;
        (void)state;
        assert_int_equal(afz_report_picture_make(&page->report, &picture), 0);
        const struct afz_report_panel *panel = panel_of(picture, "lines");
        assert_int_equal(panel->count, 4); /* two lines, the others, and the job's need */
        assert_string_equal(panel->series[1]->name, "data.py:41 in load()");
        assert_string_equal(panel->series[2]->name, "everywhere else");
        assert_true(panel->series[1]->stacked && !panel->series[3]->stacked);
        const struct afz_report_line *data = &panel->series[1]->line;
        assert_true(data->peak == 360.0 * FIX_MIB && data->peak_ms == 2000);
        assert_true(data->bucket[999].mid == 360.0 * FIX_MIB);
        assert_true(data->bucket[500].mid == 360.0 * FIX_MIB);
        assert_true(data->bucket[30].mid <= 0);
        double sum = 0;
        for (unsigned i = 0; i < 3; i++)
                sum += panel->series[i]->line.bucket[900].mid;
        assert_true(sum > 3.0 * FIX_GIB && sum < panel->most);
        /* Steps are a counter that is looked at once a second. */
        const struct afz_report_line *step = &panel_of(picture, "steps")->series[0]->line;
        assert_true(step->peak == 0.5 && step->bucket[300].mid > 0.19 &&
                    step->bucket[300].mid < 0.26);
        afz_report_picture_free(picture);
        fix_page_free(page);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_flame),
                cmocka_unit_test(test_flame_stays_small),
                cmocka_unit_test(test_lines_over_time),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
