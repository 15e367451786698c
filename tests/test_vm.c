/* links: sense, fixture */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "count_of.h"
#include "fixture.h"
#include "reading.h"

static const struct afz_fixture_row machine[] = {
        {"proc/vmstat", "nr_free_pages 5\nworkingset_refault_anon 21\nworkingset_refault_file 22\n"
                        "pswpin 3\npswpout 4\nallocstall_dma 1\nallocstall_normal 400\n"
                        "allocstall_movable 32\npgmajfault 9\npgscan_direct 10\noom_kill 2\n"},
        {"machine", "page_bytes 4096\n"},
        {0},
};

static const struct afz_sample *take(struct afz_fixture *f, struct afz_reading *r)
{
        assert_int_equal(afz_reading_open(r, &afz_sense_vm, afz_fixture_env(f), 0), 0);
        assert_int_equal(afz_reading_take(r), 0);
        return afz_reading_of(r, AFZ_KIND_VM, 0);
}

static void test_values(void **state)
{
        static const struct {
                enum afz_metric metric;
                int64_t value;
        } cases[] = {
                {AFZ_VM_SWAP_IN, 3 * 4096}, {AFZ_VM_SWAP_OUT, 4 * 4096}, {AFZ_VM_MAJOR_FAULTS, 9},
                {AFZ_VM_ALLOC_STALLS, 433}, {AFZ_VM_SCAN_DIRECT, 10},    {AFZ_VM_REFAULT_ANON, 21},
                {AFZ_VM_REFAULT_FILE, 22},  {AFZ_VM_OOM_KILLS, 2},
        };
        struct afz_fixture *f = afz_fixture_new(machine);
        struct afz_reading r;
        (void)state;
        const struct afz_sample *s = take(f, &r);
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++)
                assert_int_equal(afz_value(s, cases[i].metric), cases[i].value);
        afz_reading_done(&r);
        afz_fixture_free(f);
}

/* Too much once it is in bytes, too much for a number, cut off in the middle, not there: absent. */
static void test_broken(void **state)
{
        struct afz_fixture *f = afz_fixture_new(machine);
        struct afz_reading r;
        (void)state;
        afz_fixture_set(f, "proc/vmstat",
                        "pswpin 9223372036854775807\npswpout 99999999999999999999\n"
                        "pgmajfault x\nallocstall_normal 1\noom_kill 1");
        const struct afz_sample *s = take(f, &r);
        assert_int_equal(afz_value(s, AFZ_VM_SWAP_IN), AFZ_ABSENT);
        assert_int_equal(afz_value(s, AFZ_VM_SWAP_OUT), AFZ_ABSENT);
        assert_int_equal(afz_value(s, AFZ_VM_MAJOR_FAULTS), AFZ_ABSENT);
        assert_int_equal(afz_value(s, AFZ_VM_OOM_KILLS), AFZ_ABSENT);
        assert_int_equal(afz_value(s, AFZ_VM_SCAN_DIRECT), AFZ_ABSENT);
        assert_int_equal(afz_value(s, AFZ_VM_ALLOC_STALLS), 1);
        afz_reading_done(&r);
        afz_fixture_free(f);
}

static void test_absent(void **state)
{
        static const struct afz_fixture_row none[] = {{"proc/meminfo", "MemTotal: 1 kB\n"}, {0}};
        static const struct afz_fixture_row denied[] = {
                {"proc/meminfo", ""}, {"not-read", "EACCES proc/vmstat\n"}, {0}};
        struct afz_reading r;
        (void)state;
        struct afz_fixture *f = afz_fixture_new(none);
        assert_int_equal(afz_reading_open(&r, &afz_sense_vm, afz_fixture_env(f), 0), -ENODATA);
        afz_reading_done(&r);
        afz_fixture_free(f);
        f = afz_fixture_new(denied);
        assert_int_equal(afz_reading_open(&r, &afz_sense_vm, afz_fixture_env(f), 0), -EACCES);
        afz_reading_done(&r);
        afz_fixture_free(f);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_values),
                cmocka_unit_test(test_broken),
                cmocka_unit_test(test_absent),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
