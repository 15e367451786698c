/* The exports: exact texts for a small flight, well-formed ones for a hostile flight. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "count_of.h"
#include "export.h"
#include "flight_fixture.h"
#include "json_read.h"
#include "utf8.h"

enum { ROOM = 1 << 20 };
static char buf[ROOM];

static const char hostile[] = "=cmd|'/c'!A1,\"q\"\n\x1b[31m\\ \xff\xc3 \xc3\xa9}";

static const char *exported(const struct afz_flight *flight, const char *format)
{
        struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
        for (const struct afz_exporter *e = afz_exporters; e->name; e++)
                if (strcmp(e->name, format) == 0) {
                        e->put(flight, &out);
                        assert_int_equal(out.err, 0);
                        buf[out.len] = '\0';
                        assert_int_equal(strlen(buf), out.len);
                        return buf;
                }
        fail_msg("no format %s", format);
        return NULL;
}

static void start(struct afz_flight *f, const char *cmd)
{
        afz_flight_init(f);
        snprintf(f->head.run, sizeof f->head.run, "20261115-063745-kxqz");
        snprintf(f->head.host, sizeof f->head.host, "box");
        f->head.cmd = strdup(cmd);
        f->head.cwd = strdup("/home/me");
        f->head.git = strdup("d9f680b");
        f->head.started_s = 1700000000;
        f->head.cores = 8;
        f->head.budget_bytes = 4096;
        f->head.tier = AFZ_TIER_CGROUP2;
}

static void make_small(struct afz_flight *f)
{
        start(f, "python train.py --token hunter2");
        fly_named(f, AFZ_KIND_PROC, 42, "python3", "python3 --password=hunter2", "root");
        fly_span(f, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, 0, 1000, 100, 300, 200);
        fly_point(f, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, 1500, 400);
        fly_point(f, AFZ_KIND_HOLD, 0, AFZ_HOLD_STALL, 0, 1000000);
        fly_point(f, AFZ_KIND_HOLD, 0, AFZ_HOLD_STALL, 1500, 4000000);
        fly_point(f, AFZ_KIND_PROC, 42, AFZ_PROC_STATE, 1500, 'D');
        fly_point(f, AFZ_KIND_DISK, 8 << 20 | 16, AFZ_DISK_FIRST_ + 1, 1500, 7);
        fly_mark(f, 900, AFZ_MARK_ACTION, AFZ_ACTION_BRAKE, "it needs 300");
        fly_mark(f, 1200, AFZ_MARK_ACTION, AFZ_ACTION_RELEASE, "");
        fly_event(f, 1400, AFZ_EVENT_XID, 42, "killed");
        f->ended = true;
}

static void test_csv(void **state)
{
        struct afz_flight f;
        char want[1024];
        (void)state;
        make_small(&f);
        snprintf(want, sizeof want,
                 "t_s,kind,id,name,metric,value,min,max\n"
                 "1.500,process,42,python3,%s,D,,\n"
                 "0.000,hold,,,need_bytes,200,100,300\n"
                 "1.500,hold,,,need_bytes,400,,\n"
                 "0.000,hold,,,stall_ns,1000000,,\n"
                 "1.500,hold,,,stall_ns,4000000,,\n"
                 "1.500,disk,8:16,,%s,7,,\n"
                 "0.900,mark,action,it needs 300,brake,%d,,\n"
                 "1.200,mark,action,,release,%d,,\n"
                 "1.400,mark,event,killed,xid,42,,\n",
                 afz_metric_info(AFZ_PROC_STATE)->name, afz_metric_info(AFZ_DISK_FIRST_ + 1)->name,
                 AFZ_ACTION_BRAKE, AFZ_ACTION_RELEASE);
        assert_string_equal(exported(&f, "csv"), want);
        afz_flight_done(&f);
}

static void test_jsonl(void **state)
{
        struct afz_flight f;
        (void)state;
        make_small(&f);
        const char *text = exported(&f, "jsonl");
        const char *lines[] = {
                "{\"type\":\"run\",\"schema\":1,\"run\":\"20261115-063745-kxqz\",\"host\":\"box\",",
                "\"cmd\":\"python train.py --token ***\",",
                "\"tier\":\"cgroup2\"}\n",
                "{\"type\":\"subject\",\"kind\":\"process\",\"id\":\"42\",\"name\":\"python3\","
                "\"detail\":\"python3 --password=***\",\"note\":\"root\",\"first_s\":1.500,"
                "\"last_s\":1.500}\n",
                "{\"type\":\"sample\",\"t_s\":0.000,\"kind\":\"hold\",\"id\":null,\"name\":null,"
                "\"span_s\":1.000,\"values\":{\"need_bytes\":200},\"min\":{\"need_bytes\":100},"
                "\"max\":{\"need_bytes\":300}}\n",
                "{\"type\":\"sample\",\"t_s\":1.500,\"kind\":\"hold\",\"id\":null,\"name\":null,"
                "\"values\":{\"need_bytes\":400,\"stall_ns\":4000000}}\n",
                "{\"type\":\"mark\",\"t_s\":1.400,\"mark\":\"event\",\"name\":\"xid\","
                "\"code\":42,\"text\":\"killed\"}\n",
        };
        for (size_t i = 0; i < AFZ_COUNT_OF(lines); i++)
                if (!strstr(text, lines[i]))
                        fail_msg("not in it: %s\n%s", lines[i], text);
        afz_flight_done(&f);
}

static void test_openmetrics(void **state)
{
        struct afz_flight f;
        (void)state;
        make_small(&f);
        const char *text = exported(&f, "openmetrics");
        const char *parts[] = {
                "# TYPE antifreeze_run info\n",
                "antifreeze_run_info{run=\"20261115-063745-kxqz\",host=\"box\",cmd=\"python "
                "train.py --token ***\",git=\"d9f680b\"} 1 1700000000.000\n",
                "# TYPE antifreeze_hold_need_bytes gauge\n# UNIT antifreeze_hold_need_bytes "
                "bytes\n# HELP antifreeze_hold_need_bytes anon + shmem",
                "\nantifreeze_hold_need_bytes{run=\"20261115-063745-kxqz\"} 200 1700000000.000\n"
                "antifreeze_hold_need_bytes{run=\"20261115-063745-kxqz\"} 400 1700000001.500\n"
                "# TYPE antifreeze_hold_need_lowest_bytes gauge\n",
                "\nantifreeze_hold_need_highest_bytes{run=\"20261115-063745-kxqz\"} 300 "
                "1700000000.000\n",
                "# TYPE antifreeze_hold_stall_seconds counter\n",
                "antifreeze_hold_stall_seconds_total{run=\"20261115-063745-kxqz\"} 0.004000000 "
                "1700000001.500\n",
                "antifreeze_marks_total{run=\"20261115-063745-kxqz\",mark=\"action\","
                "name=\"brake\"} 1 1700000000.900\n",
                "# EOF\n",
        };
        for (size_t i = 0; i < AFZ_COUNT_OF(parts); i++)
                if (!strstr(text, parts[i]))
                        fail_msg("not in it: %s\n%s", parts[i], text);
        assert_string_equal(text + strlen(text) - 6, "# EOF\n");
        assert_null(strstr(text, "hunter2"));
        afz_flight_done(&f);
}

static void test_chrome_trace(void **state)
{
        struct afz_flight f;
        struct afz_json_value doc, events;
        (void)state;
        make_small(&f);
        const char *text = exported(&f, "chrome-trace");
        assert_int_equal(afz_json_read(afz_span_str(text), &doc), 0);
        assert_true(afz_json_member(doc, "traceEvents", &events));
        assert_int_equal(events.type, AFZ_JSON_ARRAY);
        const char *parts[] = {
                "\"ts\":900000,\"name\":\"braked\",\"dur\":300000,",
                "\"ph\":\"C\"",
                "\"name\":\"need_bytes\",\"args\":{\"value\":200}}",
                "\"name\":\"need_bytes (most)\",\"args\":{\"value\":300}}",
                "\"name\":\"stall_ns/s\",\"args\":{\"value\":2000000.000}}",
                "\"ph\":\"X\",\"pid\":42,\"tid\":42,\"ts\":1500000,\"name\":\"python3\",",
                "\"name\":\"xid\",\"s\":\"t\",\"cat\":\"event\",\"args\":{\"text\":\"killed\"",
                "\"name\":\"process_name\",\"args\":{\"name\":\"python3\"}}",
        };
        for (size_t i = 0; i < AFZ_COUNT_OF(parts); i++)
                if (!strstr(text, parts[i]))
                        fail_msg("not in it: %s\n%s", parts[i], text);
        assert_null(strstr(text, "hunter2"));
        afz_flight_done(&f);
}

/* Everything that a damaged or foreign recording could hold. */
static void make_hostile(struct afz_flight *f)
{
        struct afz_subject strange = {.kind = (enum afz_kind)200, .id = 1};
        struct afz_point point = {.t_ms = 5, .least = INT64_MIN, .most = INT64_MAX, .mean = -1};
        start(f, hostile);
        f->head.started_s = INT64_MAX;
        f->head.tier = 99;
        memset(f->head.host, 0xff, sizeof f->head.host - 1);
        assert_non_null(afz_flight_track(f, &strange, hostile, hostile, hostile));
        fly_named(f, AFZ_KIND_PROC, UINT64_MAX, hostile, hostile, hostile);
        fly_named(f, AFZ_KIND_CPU, AFZ_CPU_ALL, hostile, NULL, NULL); /* no point at all */
        for (int i = 0; i < 2; i++)                                   /* twice at the same time */
                fly_must(afz_flight_add(f, fly_track(f, AFZ_KIND_PROC, UINT64_MAX), AFZ_PROC_RSS,
                                        &point));
        fly_must(
                afz_flight_add(f, fly_track(f, AFZ_KIND_PROC, UINT64_MAX), AFZ_PROC_STATE, &point));
        /* Metrics of another kind and beyond the table. */
        fly_must(afz_flight_add(f, fly_track(f, AFZ_KIND_PROC, UINT64_MAX), AFZ_HOLD_NEED, &point));
        fly_must(afz_flight_add(f, fly_track(f, AFZ_KIND_PROC, UINT64_MAX),
                                (enum afz_metric)(AFZ_KIND_PROC << 8 | 255), &point));
        for (int64_t code = -1; code < 3; code++)
                for (int kind = -1; kind <= AFZ_MARK_COUNT; kind++)
                        fly_mark(f, 7, (enum afz_mark_kind)kind, code * 99 * (INT64_C(1) << 32),
                                 hostile);
        fly_mark(f, UINT32_MAX, AFZ_MARK_ACTION, AFZ_ACTION_BRAKE, hostile);
}

static void test_hostile_json(void **state)
{
        struct afz_flight f;
        struct afz_json_value doc;
        (void)state;
        make_hostile(&f);
        assert_int_equal(afz_json_read(afz_span_str(exported(&f, "chrome-trace")), &doc), 0);
        struct afz_span text = afz_span_str(exported(&f, "jsonl")), line;
        unsigned lines = 0;
        for (; afz_span_take_line(&text, &line) == 0; lines++)
                if (afz_json_read(line, &doc) < 0 || doc.type != AFZ_JSON_OBJECT)
                        fail_msg("no JSON: %.*s", (int)line.n, line.p);
        assert_int_equal(text.n, 0);
        assert_true(lines > 10);
        afz_flight_done(&f);
}

static void check_text(struct afz_span line)
{
        for (size_t i = 0, n; i < line.n; i += n) {
                n = afz_utf8_length(line.p + i, line.n - i);
                unsigned char c = (unsigned char)line.p[i];
                if (n == 0 || c < 0x20 || c == 0x7f)
                        fail_msg("byte %u in: %.*s", c, (int)line.n, line.p);
        }
}

static void test_hostile_csv(void **state)
{
        struct afz_flight f;
        struct afz_span text, line;
        (void)state;
        make_hostile(&f);
        text = afz_span_str(exported(&f, "csv"));
        while (afz_span_take_line(&text, &line) == 0) {
                unsigned commas = 0;
                bool quoted = false;
                check_text(line);
                for (size_t i = 0; i < line.n; i++) {
                        quoted ^= line.p[i] == '"';
                        commas += line.p[i] == ',' && !quoted;
                }
                assert_int_equal(commas, 7);
                assert_false(quoted);
        }
        assert_int_equal(text.n, 0);
        assert_non_null(strstr(exported(&f, "csv"), ",\"'=cmd|")); /* no formula */
        afz_flight_done(&f);
}

/* "name{labels} value time": the quotes are in order, and no series has two values at a time. */
static void check_sample(struct afz_span line)
{
        bool quoted = false;
        size_t i = 0, blanks = 0;
        for (; i < line.n; i++) {
                if (quoted && line.p[i] == '\\')
                        i++;
                else if (line.p[i] == '"')
                        quoted = !quoted;
                else if (!quoted && line.p[i] == ' ')
                        blanks++;
        }
        if (quoted || i != line.n || blanks != 2)
                fail_msg("no sample: %.*s", (int)line.n, line.p);
}

static void test_hostile_openmetrics(void **state)
{
        struct afz_flight f;
        struct afz_span text, line;
        char before[4096] = "";
        (void)state;
        make_hostile(&f);
        text = afz_span_str(exported(&f, "openmetrics"));
        while (afz_span_take_line(&text, &line) == 0) {
                check_text(line);
                if (!afz_span_starts(line, "#"))
                        check_sample(line);
                if (line.n == strlen(before) && memcmp(line.p, before, line.n) == 0)
                        fail_msg("twice: %s", before);
                snprintf(before, sizeof before, "%.*s", (int)line.n, line.p);
        }
        assert_string_equal(before, "# EOF");
        afz_flight_done(&f);
}

/* Every metric there is: names are of the allowed form, and no two families are called the same. */
static void test_all_families(void **state)
{
        static char names[2048][128];
        struct afz_flight f;
        struct afz_span text, line;
        size_t count = 0;
        (void)state;
        start(&f, "x");
        for (int k = 1; k < AFZ_KIND_COUNT; k++)
                for (unsigned m = 0; m < afz_kind_table[k].metrics; m++)
                        fly_span(&f, (enum afz_kind)k, 0, afz_kind_table[k].metric[m].id, 0, 1000,
                                 1, 3, 2);
        text = afz_span_str(exported(&f, "openmetrics"));
        while (afz_span_take_line(&text, &line) == 0) {
                struct afz_span name;
                if (afz_span_take_prefix(&line, "# TYPE ") < 0)
                        continue;
                assert_int_equal(afz_span_take_word(&line, &name), 0);
                assert_true(count < AFZ_COUNT_OF(names));
                snprintf(names[count], sizeof names[0], "%.*s", (int)name.n, name.p);
                assert_int_equal(strspn(names[count], "abcdefghijklmnopqrstuvwxyz0123456789_"),
                                 name.n);
                bool counter = afz_span_has(line, "counter");
                assert_false(!counter && afz_span_ends(name, "_total"));
                assert_false(afz_span_ends(name, "_count") || afz_span_ends(name, "_sum"));
                for (size_t i = 0; i < count; i++)
                        assert_string_not_equal(names[i], names[count]);
                count++;
        }
        assert_true(count > 200);
        afz_flight_done(&f);
}

static void test_nothing(void **state)
{
        struct afz_flight f;
        struct afz_json_value doc;
        (void)state;
        afz_flight_init(&f); /* no head, no tracks, no marks: all texts NULL */
        assert_string_equal(exported(&f, "csv"), "t_s,kind,id,name,metric,value,min,max\n");
        assert_int_equal(afz_json_read(afz_span_str(exported(&f, "jsonl")), &doc), 0);
        assert_int_equal(afz_json_read(afz_span_str(exported(&f, "chrome-trace")), &doc), 0);
        assert_non_null(strstr(exported(&f, "openmetrics"), "# EOF\n"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_csv),
                cmocka_unit_test(test_jsonl),
                cmocka_unit_test(test_openmetrics),
                cmocka_unit_test(test_chrome_trace),
                cmocka_unit_test(test_hostile_json),
                cmocka_unit_test(test_hostile_csv),
                cmocka_unit_test(test_hostile_openmetrics),
                cmocka_unit_test(test_all_families),
                cmocka_unit_test(test_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
