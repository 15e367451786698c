#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "mountstats.h"
#include "netdev.h"
#include "sense.h"

#define SECOND UINT64_C(1000000000)
#define HEAD                                                                                       \
        "Inter-|   Receive                  |  Transmit\n"                                         \
        " face |bytes    packets errs drop  |bytes    packets errs drop\n"

static void test_netdev_good(void **state)
{
        (void)state;
        static const struct {
                const char *line, *name;
        } row[] = {
                {"  eth0: 10 20 3 4 0 0 0 0 50 60 7 8 0 0 0 0", "eth0"},
                {"eth0:10 20 3 4 0 0 0 0 50 60 7 8 0 0 0 0", "eth0"}, /* jammed */
                {"eth0:1:10 20 3 4 0 0 0 0 50 60 7 8 0 0 0 0", "eth0:1"},
                {"eth0:1: 10 20 3 4 0 0 0 0 50 60 7 8 0 0 0 0  ", "eth0:1"},
        };
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
                struct afz_netdev d;
                assert_int_equal(afz_netdev_parse(afz_span_str(row[i].line), &d), 0);
                assert_true(afz_span_eq(d.name, row[i].name));
                assert_int_equal(d.received_bytes, 10);
                assert_int_equal(d.received_packets, 20);
                assert_int_equal(d.receive_errors, 3);
                assert_int_equal(d.receive_drops, 4);
                assert_int_equal(d.sent_bytes, 50);
                assert_int_equal(d.sent_packets, 60);
                assert_int_equal(d.send_errors, 7);
                assert_int_equal(d.send_drops, 8);
        }
}

static void test_netdev_hostile(void **state)
{
        (void)state;
        static const struct {
                const char *line;
                int r;
        } row[] = {
                {"Inter-|   Receive     |  Transmit", -ENODATA},
                {" face |bytes    packets errs", -ENODATA},
                {"", -EINVAL},
                {":", -EINVAL},
                {"eth0", -EINVAL},
                {"eth0:", -EINVAL},
                {"eth0: 1 2 3", -EINVAL},
                {"eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", -EINVAL},
                {"eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 x", -EINVAL},
                {"eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17", -EINVAL},
                {"eth0: -1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", -EINVAL},
                {"eth0: 99999999999999999999 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", -EINVAL},
                {" : 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", -EINVAL},
                {"a b: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", -EINVAL},
                {"../x: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", -EINVAL},
        };
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
                struct afz_netdev d = {.sent_bytes = 77};
                assert_int_equal(afz_netdev_parse(afz_span_str(row[i].line), &d), row[i].r);
                assert_int_equal(d.sent_bytes, 77);
        }
}

/* mountstats */

static const char two_mounts[] =
        "device /dev/sda1 mounted on / with fstype ext4\n"
        "no device mounted on /weird with fstype rootfs\n"
        "device srv:/a mounted on /a\\040b with fstype nfs4 statvers=1.1\n"
        "\topts:\trw,vers=4.2,rsize=1048576\n"
        "\tage:\t1234\n"
        "\tevents:\t1 2 3\n"
        "\tbytes:\t100 200 0 0 5000 6000 7 8\n"
        "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"
        "\txprt:\ttcp 0 0 2 0 11 19 19 0 19 0 2 0 0\n"
        "\tper-op statistics\n"
        "\t        NULL: 1 1 0 44 24 0 0 0 0\n"
        "\t        READ: 10 12 0 1600 5001000 5 40 50 0\n"
        "\t       WRITE: 3 3 0 6000 480 1 6 9\n" /* without errors: statvers 1.0 */
        "device srv:/b mounted on /b with fstype nfs statvers=1.1\n"
        "\tbytes:\t0 0 0 0 1 2 0 0\n";

static void test_mountstats(void **state)
{
        (void)state;
        struct afz_mountstats s;
        assert_int_equal(afz_mountstats_find(AFZ_SPAN(two_mounts), AFZ_SPAN("/a\\040b"), &s), 0);
        assert_true(s.has_bytes && s.has_ops);
        assert_int_equal(s.read_bytes, 5000);
        assert_int_equal(s.written_bytes, 6000);
        assert_int_equal(s.ops, 14);
        assert_int_equal(s.wait_ms, 46);
        assert_int_equal(s.resent, 2);
        assert_int_equal(s.read_ops, 10);
        assert_int_equal(s.read_wait_ms, 40);
        assert_int_equal(afz_mountstats_find(AFZ_SPAN(two_mounts), AFZ_SPAN("/b"), &s), 0);
        assert_true(s.has_bytes && !s.has_ops);
        assert_int_equal(s.read_bytes, 1);
        static const char *const none[] = {"/", "/weird", "/a", "/c", ""};
        for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
                assert_int_equal(
                        afz_mountstats_find(AFZ_SPAN(two_mounts), afz_span_str(none[i]), &s),
                        -ENODATA);
}

static void test_mountstats_hostile(void **state)
{
        (void)state;
#define NFS "device s:/a mounted on /a with fstype nfs4 statvers=1.1\n"
        static const struct {
                const char *text;
                int r;
                bool has_bytes, has_ops;
        } row[] = {
                {NFS, -ENODATA, false, false},
                {NFS "\tbytes:\t1 2 3\n", -ENODATA, false, false},
                {NFS "\tbytes:\t1 2 3 4 5 x 7 8\n", -ENODATA, false, false},
                {NFS "\tbytes:\t1 2 3 4 5 6 7 8", -ENODATA, false, false}, /* cut */
                {NFS "\tbytes:\t1 2 3 4 5 6 7 8\n\tper-op statistics\n\tREAD: 1 2 3\n", 0, true,
                 false},
                {NFS "\tper-op statistics\n\tREAD: 1 1 0 1 1 1 1 1\n\tX: garbage\n", -ENODATA,
                 false, false},
                {NFS "\tper-op statistics\n"
                     "\tREAD: 18446744073709551615 1 0 1 1 1 1 1\n"
                     "\tWRITE: 1 1 0 1 1 1 1 1\n",
                 -ENODATA, false, false},
                /* Stacked: the last is the one that is seen. */
                {NFS "\tbytes:\t1 2 3 4 9 6 7 8\n" NFS "\tbytes:\t1 2 3 4 5 6 7 8\n", 0, true,
                 false},
                {"\tbytes:\t1 2 3 4 5 6 7 8\n", -ENODATA, false, false},
                {"device\ndevice \ndevice x\ndevice x mounted on\n", -ENODATA, false, false},
        };
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
                struct afz_mountstats s = {.read_bytes = 77};
                assert_int_equal(afz_mountstats_find(afz_span_str(row[i].text), AFZ_SPAN("/a"), &s),
                                 row[i].r);
                assert_int_equal(s.has_bytes, row[i].has_bytes);
                assert_int_equal(s.has_ops, row[i].has_ops);
                assert_int_equal(s.read_bytes, row[i].r < 0 ? 77 : 5);
        }
}

/* The sense */

static const struct afz_fixture_row machine[] = {
        {"machine", "self_pid 300\n"},
        {"proc/net/dev", HEAD "    lo: 10 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n"
                              "  idle: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
                              "  eth0: 1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0\n"
                              " wlan0: 7 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
                              "broken: 7 1 0\n"
                              "   cut: 7 1 0 0 0 0 0 0 0 0 0"},
        {"sys/class/net/lo/operstate", "unknown\n"},
        {"sys/class/net/eth0/operstate", "up\n"},
        {"sys/class/net/eth0/speed", "10000\n"},
        {"sys/class/net/wlan0/operstate", "down\n"},
        {"sys/class/net/wlan0/speed", "-1\n"},
        {"proc/300/ns/net", "-> net:[1]"},
        {"proc/100/ns/net", "-> net:[1]"},
        {"proc/200/ns/net", "-> net:[2]"},
        {"proc/200/net/dev", HEAD "  eth0: 5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n"},
        {0},
};

static struct afz_fixture *f;
static struct afz_batch *batch;
static void *sense;

static int setup_for(uint64_t pid)
{
        struct afz_target target = {pid};
        f = afz_fixture_new(machine);
        assert_int_equal(afz_batch_new(afz_sense_net.max_samples, &batch), 0);
        return afz_sense_net.open(afz_fixture_env(f), &target, &sense);
}

static int setup(void **state)
{
        (void)state;
        return setup_for(100);
}

static int teardown(void **state)
{
        (void)state;
        afz_sense_net.close(sense);
        afz_batch_free(batch);
        afz_fixture_free(f);
        return 0;
}

static int look(void)
{
        afz_fixture_advance(f, SECOND);
        afz_batch_start(batch, afz_env_now(afz_fixture_env(f)));
        return afz_sense_net.read(sense, batch);
}

#define ABSENT INT64_MIN
static int64_t get(const char *name, enum afz_metric m)
{
        int64_t v;
        for (size_t i = 0; i < batch->count; i++)
                if (strcmp(batch->sample[i].name, name) == 0)
                        return afz_sample_get(&batch->sample[i], m, &v) ? v : ABSENT;
        fail_msg("there is no %s", name);
        return 0;
}

static void test_interfaces(void **state)
{
        (void)state;
        assert_int_equal(look(), 0);
        assert_int_equal(batch->count, 3);
        assert_int_equal(get("eth0", AFZ_NET_RECEIVED), 1000);
        assert_int_equal(get("eth0", AFZ_NET_SENT), 2000);
        assert_int_equal(get("eth0", AFZ_NET_ERRORS), 10);
        assert_int_equal(get("eth0", AFZ_NET_SPEED), INT64_C(10000000000));
        assert_int_equal(get("eth0", AFZ_NET_UP), 1);
        assert_int_equal(get("lo", AFZ_NET_UP), ABSENT);
        assert_int_equal(get("lo", AFZ_NET_SPEED), ABSENT);
        assert_int_equal(get("wlan0", AFZ_NET_UP), 0);
        assert_int_equal(get("wlan0", AFZ_NET_SPEED), ABSENT);
}

static void test_link_changes(void **state)
{
        (void)state;
        assert_int_equal(look(), 0);
        afz_fixture_set(f, "sys/class/net/eth0/operstate", "lowerlayerdown\n");
        assert_int_equal(look(), 0);
        assert_int_equal(get("eth0", AFZ_NET_UP), 0);
        assert_int_equal(get("eth0", AFZ_NET_SPEED), ABSENT);
        afz_fixture_set(f, "sys/class/net/eth0/operstate", "up\n");
        afz_fixture_set(f, "sys/class/net/eth0/speed", "100\n");
        assert_int_equal(look(), 0);
        assert_int_equal(get("eth0", AFZ_NET_SPEED), 100000000);
        afz_fixture_break(f, "sys/class/net/eth0/operstate");
        assert_int_equal(look(), 0);
        assert_int_equal(get("eth0", AFZ_NET_UP), ABSENT);
        assert_int_equal(get("eth0", AFZ_NET_RECEIVED), 1000);
}

static void test_net_faults(void **state)
{
        (void)state;
        static const char *const text[] = {"", "\n\n", "garbage", HEAD, HEAD "eth0: 1 2\n"};
        assert_int_equal(look(), 0);
        for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
                afz_fixture_set(f, "proc/net/dev", text[i]);
                assert_int_equal(look(), 0);
                assert_int_equal(batch->count, 0);
        }
        afz_fixture_set(f, "proc/net/dev",
                        "a: 18446744073709551615 1 18446744073709551615 1 0 0 0 0 5 0 0 0 0 0 0 "
                        "0\n");
        assert_int_equal(look(), 0);
        assert_int_equal(get("a", AFZ_NET_RECEIVED), ABSENT);
        assert_int_equal(get("a", AFZ_NET_ERRORS), ABSENT);
        assert_int_equal(get("a", AFZ_NET_SENT), 5);
}

static void test_other_namespace(void **state)
{
        (void)state;
        assert_int_equal(setup_for(200), 0);
        assert_int_equal(look(), 0);
        assert_int_equal(batch->count, 1);
        assert_int_equal(get("eth0", AFZ_NET_RECEIVED), 5);
        /* Our /sys tells of our own eth0. */
        assert_int_equal(get("eth0", AFZ_NET_SPEED), ABSENT);
        assert_int_equal(get("eth0", AFZ_NET_UP), ABSENT);
        teardown(NULL);
}

static void test_no_net(void **state)
{
        (void)state;
        static const struct afz_fixture_row nothing[] = {{"sys/class/", NULL}, {0}};
        struct afz_fixture *empty = afz_fixture_new(nothing);
        struct afz_target target = {0};
        void *none;
        assert_int_equal(afz_sense_net.open(afz_fixture_env(empty), &target, &none), -ENODATA);
        afz_sense_net.close(NULL);
        afz_fixture_free(empty);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_netdev_good),
                cmocka_unit_test(test_netdev_hostile),
                cmocka_unit_test(test_mountstats),
                cmocka_unit_test(test_mountstats_hostile),
                cmocka_unit_test_setup_teardown(test_interfaces, setup, teardown),
                cmocka_unit_test_setup_teardown(test_link_changes, setup, teardown),
                cmocka_unit_test_setup_teardown(test_net_faults, setup, teardown),
                cmocka_unit_test(test_other_namespace),
                cmocka_unit_test(test_no_net),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
