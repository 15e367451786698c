#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent_event.h"

static void names(void **state)
{
        (void)state;
        for (unsigned i = 0; i < AFZ_AGENT_EVENTS; i++) {
                const char *name = afz_agent_event_name((enum afz_agent_event)i);
                assert_true(*name != '\0');
                assert_int_equal(afz_agent_event_of(afz_span_str(name)), i);
        }
        assert_string_equal(afz_agent_event_name(AFZ_AGENT_EVENTS), "");
        assert_string_equal(afz_agent_event_name((enum afz_agent_event) - 1), "");
        assert_int_equal(afz_agent_event_of(afz_span_str("ooms")), AFZ_AGENT_NOTE);
        assert_int_equal(afz_agent_event_of(afz_span_str("")), AFZ_AGENT_NOTE);
}

/* One key of each text, and the sentence; NULL: it is not there. */
static void texts(void **state)
{
        static const struct {
                const char *text, *key, *value, *sentence;
        } rows[] = {
                {"", "step", NULL, ""},
                {":", "step", NULL, ""},
                {": a sentence", "step", NULL, "a sentence"},
                {"step=3", "step", "3", ""},
                {"step=3:", "step", "3", ""},
                {"step=3: done", "step", "3", "done"},
                {"step=3 : done", "step", "3", "done"},
                {"  step=3   batch=64  ", "batch", "64", ""},
                {"step=3 batch=64: step=9", "step", "3", "step=9"},
                {"step=3: batch=64", "batch", NULL, "batch=64"},
                {"step= batch=64", "step", "", ""},
                {"step=3 step=4", "step", "3", ""},
                {"steps=3", "step", NULL, ""},
                {"at=/a b/c d.py:3:f swallowed=0: x", "at", "/a b/c d.py:3:f", "x"},
                {"at=/a b/c d.py:3:f swallowed=0: x", "swallowed", "0", "x"},
                {"at=C:\\x:3:f", "at", "C:\\x:3:f", ""},
                {"at=/x=y/z.py:1:f", "at", "/x=y/z.py:1:f", ""},
                {"at=\xc3\xa4: \xc3\xb6", "at", "\xc3\xa4", "\xc3\xb6"},
                {"step=3: first: second", "step", "3", "first: second"},
        };
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct afz_span text = afz_span_str(rows[i].text), value;
                if (!afz_agent_event_is_text(text))
                        fail_msg("'%s' is none", rows[i].text);
                bool there = afz_agent_event_value(text, rows[i].key, &value);
                if (there != (rows[i].value != NULL) ||
                    (there && !afz_span_eq(value, rows[i].value)))
                        fail_msg("'%s': %s", rows[i].text, rows[i].key);
                if (!afz_span_eq(afz_agent_event_sentence(text), rows[i].sentence))
                        fail_msg("'%s': its sentence", rows[i].text);
        }
}

static void nonsense(void **state)
{
        static const char *const rows[] = {
                "step", "step 3", "=3", "Step=3", "step3=3", "3=step", "hello step=3", "\xc3\xa4=1",
        };
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                if (afz_agent_event_is_text(afz_span_str(rows[i])))
                        fail_msg("'%s' is taken", rows[i]);
}

static void numbers(void **state)
{
        struct afz_span text =
                afz_span_str("step=3 batch=64x micro=-1 asked_bytes=18446744073709551615 "
                             "allocated_bytes=18446744073709551616 reserved_bytes= swallowed=1");
        uint64_t value = 7;
        (void)state;
        assert_true(afz_agent_event_number(text, "step", &value));
        assert_int_equal(value, 3);
        assert_true(afz_agent_event_number(text, "asked_bytes", &value));
        assert_true(value == UINT64_MAX);
        value = 7;
        static const char *const none[] = {"batch",          "micro",   "allocated_bytes",
                                           "reserved_bytes", "missing", ""};
        for (size_t i = 0; i < sizeof none / sizeof *none; i++)
                assert_false(afz_agent_event_number(text, none[i], &value));
        assert_int_equal(value, 7);
}

static void an_oom_in_words(void **state)
{
        static const struct {
                const char *text, *words;
        } row[] = {
                {"device=gpu step=12 batch=64 asked_bytes=2684354560 swallowed=0",
                 "the GPU's memory ran out in step 12, with 64 samples at once: 2.5G were asked "
                 "for"},
                {"device=host batch=64 micro=1 swallowed=1",
                 "memory ran out, with 1 sample at once; the program caught the error"},
                {"", "memory ran out"},
                {"step=x batch=-1", "memory ran out"},
        };
        char buf[200];
        (void)state;
        for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
                assert_string_equal(
                        afz_agent_event_oom_words(afz_span_str(row[i].text), buf, sizeof buf),
                        row[i].words);
        assert_true(strlen(afz_agent_event_oom_words(afz_span_str(row[0].text), buf, 12)) < 12);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_oom_in_words), cmocka_unit_test(names),
                cmocka_unit_test(texts),           cmocka_unit_test(nonsense),
                cmocka_unit_test(numbers),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
