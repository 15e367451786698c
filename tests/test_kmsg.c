#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "kmsg_parse.h"
#include "sense.h"

static void test_records(void **state)
{
        (void)state;
        struct afz_kmsg k;
        assert_int_equal(afz_kmsg_parse(AFZ_SPAN("6,1234,5678901,-;hello; world\n SUBSYSTEM=pci\n"
                                                 " DEVICE=+pci:0\n"),
                                        &k),
                         0);
        assert_int_equal(k.facility, 0);
        assert_int_equal(k.level, 6);
        assert_int_equal(k.sequence, 1234);
        assert_int_equal(k.usec, 5678901);
        assert_true(afz_span_eq(k.text, "hello; world"));
        assert_int_equal(afz_kmsg_parse(AFZ_SPAN("12,1,2,c,caller=T123,later;x"), &k), 0);
        assert_int_equal(k.facility, 1);
        assert_int_equal(k.level, 4);
        assert_true(afz_span_eq(k.text, "x"));
        assert_int_equal(afz_kmsg_parse(AFZ_SPAN("6,1,2,-;"), &k), 0);
        assert_int_equal(k.text.n, 0);
        static const char *const bad[] = {
                "",         "hello",      " SUBSYSTEM=pci", ";",
                "6;text",   "6,1;text",   "6,1,2;text",     "x,1,2,-;text",
                "6,x,2,-;", "6,1,2x,-;t", "-6,1,2,-;text",  "6,1,99999999999999999999,-;t",
                "6,1,2,-",
        };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_int_equal(afz_kmsg_parse(afz_span_str(bad[i]), &k), -EINVAL);
}

#define NOTHING ((enum afz_event_kind)AFZ_EVENT_COUNT)

static const struct {
        const char *text;
        enum afz_event_kind kind;
        int64_t code;
} lines[] = {
        {"Out of memory: Killed process 4242 (python3) total-vm:9kB, anon-rss:8kB, file-rss:0kB",
         AFZ_EVENT_OOM_KILL, 4242},
        {"Out of memory (oom_kill_allocating_task): Killed process 7 (x) total-vm:9kB",
         AFZ_EVENT_OOM_KILL, 7},
        {"Memory cgroup out of memory: Killed process 43 (a) b) total-vm:9kB", AFZ_EVENT_OOM_KILL,
         43},
        {"Memory cgroup out of memory: OOM victim 43 (x) is already exiting", NOTHING, 0},
        /* The first of two lines about one kill. */
        {"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
         "oom_memcg=/a,task_memcg=/a,task=python3,pid=43,uid=0",
         NOTHING, 0},
        {"NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the "
         "bus.",
         AFZ_EVENT_XID, 79},
        {"NVRM: Xid (PCI:0000:01:00): 13, Graphics Exception: ESR 0x404490=0x80000002",
         AFZ_EVENT_XID, 13},
        {"NVRM: Xid (PCI:0000:01:00): x", NOTHING, 0},
        {"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.0", NOTHING, 0},
        {"mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 5: be00000000800400",
         AFZ_EVENT_MACHINE_CHECK, 0},
        {"{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1",
         AFZ_EVENT_MACHINE_CHECK, 0},
        {"mce: CPU0: Thermal monitoring enabled (TM1)", NOTHING, 0},
        {"INFO: task kworker/0:1:123 blocked for more than 120 seconds.", AFZ_EVENT_HUNG_TASK, 123},
        {"INFO: task a 9: b:77 blocked for more than 241 seconds.", AFZ_EVENT_HUNG_TASK, 77},
        {"INFO: task x blocked for more than 120 seconds.", NOTHING, 0},
        {"python3[55]: segfault at 0 ip 00 sp 00 error 4 in libc.so[1,2]", AFZ_EVENT_SEGFAULT, 55},
        {"x[1]: y[56]: segfault at 0 ip 00", AFZ_EVENT_SEGFAULT, 56},
        {"]: segfault at [57]: segfault at 0 ip 00", AFZ_EVENT_SEGFAULT, 57},
        {"x[58]: segfault at 0 ip 00 error 4 in y[9]: segfault at [1,2]", AFZ_EVENT_SEGFAULT, 58},
        {"traps: python3[59] general protection fault ip:0 sp:0 error:0", AFZ_EVENT_SEGFAULT, 59},
        {"traps: python3[60] trap invalid opcode ip:0 sp:0 error:0", AFZ_EVENT_SEGFAULT, 60},
        {"I/O error, dev sda, sector 123 op 0x0:(READ)", AFZ_EVENT_IO_ERROR, 0},
        {"blk_update_request: I/O error, dev sda, sector 123", AFZ_EVENT_IO_ERROR, 0},
        {"blk_update_request: critical medium error, dev nvme0n1, sector 1", AFZ_EVENT_IO_ERROR, 0},
        {"Buffer I/O error on dev sda1, logical block 0", AFZ_EVENT_IO_ERROR, 0},
        {"usb 1-1: Product: I/O error, dev sda", NOTHING, 0},
        {"systemd[1]: Out of memory: Killed process 1 (x)", NOTHING, 0},
        {"Out of memory: Killed process 99999999999999999999 (x)", NOTHING, 0},
        {"Out of memory: Killed process 9223372036854775808 (x)", NOTHING, 0},
        {"Out of memory: Killed process ", NOTHING, 0},
        {"", NOTHING, 0},
};

static void test_lines(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
                struct afz_kmsg k = {.text = afz_span_str(lines[i].text)};
                struct afz_kmsg_event event = {NOTHING, 0};
                int r = afz_kmsg_recognise(&k, &event);
                if (event.kind != lines[i].kind || event.code != lines[i].code)
                        fail_msg("taken for %s %lld: %s", afz_event_name(event.kind),
                                 (long long)event.code, lines[i].text);
                assert_int_equal(r, lines[i].kind == NOTHING ? -ENODATA : 0);
                /* The same words from a user are not believed. */
                k.facility = 1;
                assert_int_equal(afz_kmsg_recognise(&k, &event), -ENODATA);
        }
}

/* The sense */

static struct afz_fixture *f;
static struct afz_batch *batch;
static void *sense;

static void start(const char *log)
{
        struct afz_fixture_row rows[] = {{"dev/kmsg", log}, {0}};
        struct afz_target target = {0};
        f = afz_fixture_new(rows);
        assert_int_equal(afz_batch_new(afz_sense_kmsg.max_samples, &batch), 0);
        assert_int_equal(afz_sense_kmsg.open(afz_fixture_env(f), &target, &sense), 0);
}

static void finish(void)
{
        afz_sense_kmsg.close(sense);
        afz_batch_free(batch);
        afz_fixture_free(f);
}

static size_t look(void)
{
        afz_batch_start(batch, 5);
        assert_int_equal(afz_sense_kmsg.read(sense, batch), 0);
        return batch->events;
}

static void test_log(void **state)
{
        (void)state;
        start("6,1,10,-;Linux version 6\n"
              " SUBSYSTEM=x\n"
              "6,2,20,-;oom-kill:constraint=CONSTRAINT_NONE,task=python3,pid=42,uid=0\n"
              "3,3,20,-;Out of memory: Killed process 42 (python3) total-vm:9kB\n"
              "11,4,30,-;Out of memory: Killed process 1 (init) total-vm:9kB\n" /* forged */
              "garbage\n"
              "3,5,40,-;NVRM: Xid (PCI:0000:01:00): 79, pid=42\n");
        assert_int_equal(look(), 2);
        assert_int_equal(batch->event[0].kind, AFZ_EVENT_OOM_KILL);
        assert_int_equal(batch->event[0].code, 42);
        assert_int_equal(batch->event[0].t_ns, 5);
        assert_string_equal(batch->event[0].text,
                            "Out of memory: Killed process 42 (python3) total-vm:9kB");
        assert_int_equal(batch->event[1].kind, AFZ_EVENT_XID);
        assert_int_equal(batch->event[1].code, 79);
        /* Nothing is told twice, and a line counts when it is whole. */
        assert_int_equal(look(), 0);
        afz_fixture_append(f, "dev/kmsg", "6,6,50,-;python3[7]: segf");
        assert_int_equal(look(), 0);
        afz_fixture_append(f, "dev/kmsg", "ault at 0 ip 0\n");
        assert_int_equal(look(), 1);
        assert_int_equal(batch->event[0].code, 7);
        finish();
}

static void test_flood(void **state)
{
        (void)state;
        enum { KILLS = 100 };
        static const char line[] = "3,3,20,-;Out of memory: Killed process 42 (x) total\n";
        char *log = calloc(KILLS, sizeof line);
        assert_non_null(log);
        for (int i = 0; i < KILLS; i++)
                memcpy(log + (size_t)i * (sizeof line - 1), line, sizeof line);
        start(log);
        size_t seen = 0;
        for (size_t n; (n = look()) > 0;)
                seen += n;
        assert_int_equal(seen, KILLS); /* late, but none is lost */
        assert_int_equal(batch->dropped, 0);
        finish();
        free(log);
}

static void test_long_line(void **state)
{
        (void)state;
        enum { LONG = 20000 };
        char *log = malloc(LONG + 100);
        assert_non_null(log);
        memset(log, 'x', LONG);
        strcpy(log + LONG, "\n3,3,20,-;Out of memory: Killed process 42 (x) total\n");
        start(log);
        assert_int_equal(look(), 1);
        finish();
        free(log);
}

static void test_no_log(void **state)
{
        (void)state;
        static const struct afz_fixture_row rows[][2] = {
                {{"proc/", NULL}, {0}},
                {{"dev/null", ""}, {0}},
                {{"dev/kmsg/", NULL}, {0}},
        };
        size_t before = afz_fixture_open_fds();
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct afz_fixture *empty = afz_fixture_new(rows[i]);
                struct afz_target target = {0};
                void *none;
                assert_int_equal(afz_sense_kmsg.open(afz_fixture_env(empty), &target, &none),
                                 -ENODATA);
                afz_fixture_free(empty);
        }
        afz_sense_kmsg.close(NULL);
        assert_int_equal(afz_fixture_open_fds(), before);
        assert_non_null(afz_sense_kmsg.denied);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_records),   cmocka_unit_test(test_lines),
                cmocka_unit_test(test_log),       cmocka_unit_test(test_flood),
                cmocka_unit_test(test_long_line), cmocka_unit_test(test_no_log),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
