#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "control.h"
#include "control_line.h"

#define BOTH (AFZ_ABILITY_CHECKPOINT | AFZ_ABILITY_SHRINK)

struct good_case {
        const char *packet;
        enum afz_control_verb verb;
        uint64_t number;
        uint32_t abilities;
        int which;
        const char *name, *text;
        enum afz_agent_event event;
};

static void test_lines(void **state)
{
        static const struct good_case cases[] = {
                {"hello agent 1", AFZ_CONTROL_HELLO, 1, .name = "agent"},
                {"hello agent 1\n", AFZ_CONTROL_HELLO, 1, .name = "agent"},
                {"hello a 1 checkpoint", AFZ_CONTROL_HELLO, 1, AFZ_ABILITY_CHECKPOINT, .name = "a"},
                {"hello a.b-c_D9 1 shrink checkpoint", AFZ_CONTROL_HELLO, 1, BOTH,
                 .name = "a.b-c_D9"},
                {"hello a 1 fly shrink", AFZ_CONTROL_HELLO, 1, AFZ_ABILITY_SHRINK, .name = "a"},
                {"hello a 1 less", AFZ_CONTROL_HELLO, 1, AFZ_ABILITY_LESS, .name = "a"},
                {"hello a 1 less shrink lesser", AFZ_CONTROL_HELLO, 1,
                 AFZ_ABILITY_LESS | AFZ_ABILITY_SHRINK, .name = "a"},
                {"  hello   a  1  ", AFZ_CONTROL_HELLO, 1, .name = "a"},
                {"saving 7", AFZ_CONTROL_SAVING, 7},
                {"saved 7", AFZ_CONTROL_SAVED, 7, .text = ""},
                {"saved 7 /a b/c.pt", AFZ_CONTROL_SAVED, 7, .text = "/a b/c.pt"},
                {"saved 7 /tr\xc3\xa4ining", AFZ_CONTROL_SAVED, 7, .text = "/tr\xc3\xa4ining"},
                {"cannot 7 no space left", AFZ_CONTROL_CANNOT, 7, .text = "no space left"},
                {"set budget 1073741824", AFZ_CONTROL_SET, 1073741824,
                 .which = AFZ_CONTROL_SET_BUDGET},
                {"set swap 0", AFZ_CONTROL_SET, 0, .which = AFZ_CONTROL_SET_SWAP},
                {"set budget 18446744073709551615", AFZ_CONTROL_SET, UINT64_MAX},
                {"status", AFZ_CONTROL_STATUS},
                {"event oom", AFZ_CONTROL_EVENT, .text = "", .event = AFZ_AGENT_OOM},
                {"event oom step=3: no room", AFZ_CONTROL_EVENT, .text = "step=3: no room"},
                {"event split step=3 batch=64 micro=32\n", AFZ_CONTROL_EVENT,
                 .text = "step=3 batch=64 micro=32", .event = AFZ_AGENT_SPLIT},
                {"event note: a sentence: two", AFZ_CONTROL_EVENT, .text = ": a sentence: two",
                 .event = AFZ_AGENT_NOTE},
                {"event refuse:", AFZ_CONTROL_EVENT, .text = ":", .event = AFZ_AGENT_REFUSE},
                {"event  grow   : x", AFZ_CONTROL_EVENT, .text = ": x", .event = AFZ_AGENT_GROW},
                {"event oom at=/a b/c.py:3:f swallowed=0", AFZ_CONTROL_EVENT,
                 .text = "at=/a b/c.py:3:f swallowed=0"},
                {"event newer x=1", AFZ_CONTROL_EVENT, .text = "x=1", .event = AFZ_AGENT_NOTE},
        };
        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                const struct good_case *c = &cases[i];
                struct afz_control_line line;
                const char *why = "";
                if (afz_control_line_parse(afz_span_str(c->packet), &line, &why) < 0)
                        fail_msg("'%s': %s", c->packet, why);
                assert_int_equal(line.verb, c->verb);
                assert_int_equal(line.number, c->number);
                assert_int_equal(line.abilities, c->abilities);
                assert_int_equal(line.which, c->which);
                assert_int_equal(line.event, c->event);
                assert_true(!c->name || afz_span_eq(line.name, c->name));
                assert_true(!c->text || afz_span_eq(line.text, c->text));
        }
}

static void check_refused(struct afz_span packet, int error)
{
        struct afz_control_line line;
        const char *why = NULL;
        memset(&line, 0x5a, sizeof line);
        struct afz_control_line before = line;
        int r = afz_control_line_parse(packet, &line, &why);
        if (r != error || !why || memcmp(&line, &before, sizeof line) != 0)
                fail_msg("'%.*s': %d", (int)packet.n, packet.p, r);
}

static void test_nonsense(void **state)
{
        static const char *const cases[] = {
                "",
                " ",
                "\n",
                "status\n\n",
                "sta\ntus",
                "status\r\n",
                "status now",
                "STATUS",
                "statu",
                "statuses",
                "hello",
                "hello agent",
                "hello 1",
                "hello agent one",
                "hello agent 1x",
                "hello ag/ent 1",
                "hello agent 1 check/point",
                "hello agent 18446744073709551616",
                "hello abcdefghijklmnopqrstuvwxyz0123456 1",
                "saving",
                "saving x",
                "saving -1",
                "saving 1 2",
                "saved",
                "saved /x",
                "cannot 1",
                "cannot why",
                "set",
                "set budget",
                "set budget 12G",
                "set budget -1",
                "set budget 1 2",
                "set budget 18446744073709551616",
                "set Budget 1",
                "set grace 1",
                "set 1 budget",
                "event",
                "event :",
                "event : x",
                "event oom/x",
                "event oom what",
                "event oom 3",
                "event oom Step=3",
                "event abcdefghijklmnopqrstuvwxyz0123456",
                "event note: \x1b[31m",
                "events oom",
                "saved 1 /a\tb",
                "saved 1 \x1b[31m",
                "saved 1 \x7f",
                "saved 1 \x9b"
                "31m", /* one byte of no character */
                "saved 1 \xc2\x9b"
                "31m",                      /* U+009B */
                "saved 1 \xc0\xaf",         /* overlong */
                "saved 1 \xe0\x80\xaf",     /* overlong */
                "saved 1 \xed\xa0\x80",     /* half of a surrogate pair */
                "saved 1 \xf4\x90\x80\x80", /* beyond the last character */
                "saved 1 \xc3",             /* cut off */
                "saved 1 \xe2\x82",
        };
        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
                check_refused(afz_span_str(cases[i]), -EINVAL);
        check_refused(AFZ_SPAN("status\0"), -EINVAL);
        check_refused(AFZ_SPAN("\0status"), -EINVAL);
        check_refused((struct afz_span){NULL, 0}, -EINVAL);
}

static void test_versions(void **state)
{
        struct afz_control_line line;
        const char *why = NULL;
        (void)state;
        check_refused(afz_span_str("hello agent 2 checkpoint"), -EPROTONOSUPPORT);
        check_refused(afz_span_str("hello agent 0"), -EPROTONOSUPPORT);
        /* What another version says behind its number is not ours to judge. */
        check_refused(afz_span_str("hello agent 3 {}/\\"), -EPROTONOSUPPORT);
        (void)afz_control_line_parse(afz_span_str("hello agent 2"), &line, &why);
        assert_non_null(strstr(why, "version 1"));
}

/* A packet need not end in a NUL, and nothing beyond it is read. */
static void test_cut(void **state)
{
        static const char text[] = "set budget 4096999";
        struct afz_control_line line;
        const char *why;
        (void)state;
        assert_int_equal(afz_control_line_parse((struct afz_span){text, 15}, &line, &why), 0);
        assert_int_equal(line.number, 4096);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines),
                cmocka_unit_test(test_nonsense),
                cmocka_unit_test(test_versions),
                cmocka_unit_test(test_cut),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
