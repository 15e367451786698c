/* links: sense, fixture */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "count_of.h"
#include "fixture.h"
#include "psi_parse.h"
#include "reading.h"

#define SOME "some avg10=1.23 avg60=0.00 avg300=0.00 total=5\n"
#define FULL "full avg10=0.50 avg60=0.00 avg300=0.00 total=3\n"

static void test_parse(void **state)
{
        static const struct {
                const char *text;
                int error;
                bool has_full;
        } cases[] = {
                {SOME FULL, 0, true},
                {SOME, 0, false}, /* the cpu file of kernels before 5.13 */
                {FULL SOME, 0, true},
                {"some total=5 avg10=1.23\n" FULL, 0, true},
                {"some avg10=1.23 total=5 new=1\n", 0, false},
                {"", -EINVAL, false},
                {FULL, -EINVAL, false},
                {SOME SOME, -EINVAL, false},
                {SOME FULL FULL, -EINVAL, false},
                {SOME "more avg10=0.00 total=1\n", -EINVAL, false},
                {"some\n", -EINVAL, false},
                {"some avg10=1.23\n", -EINVAL, false},
                {"some total=5\n", -EINVAL, false},
                {"some avg10=1.23 total=5 total=5\n", -EINVAL, false},
                {"some avg10=1.23 avg10=1.23 total=5\n", -EINVAL, false},
                {"some avg10=x total=5\n", -EINVAL, false},
                {"some avg10=1.23,9 total=5\n", -EINVAL, false},
                {"some avg10=1.23 total=5x\n", -EINVAL, false},
                {"some avg10=1.23 total=\n", -EINVAL, false},
                {"some avg10=1.23 total=-5\n", -EINVAL, false},
                {"some avg10=1.23 total=99999999999999999999\n", -EINVAL, false},
                {"some avg10=1.23 total=18446744073709551615\n", -EINVAL, false}, /* in ns */
                {"some avg10=1.23 total=5", -EINVAL, false},
                {SOME "full avg10=0.50 avg60=0.00 avg300=0.00 total=3", -EINVAL, false},
                {SOME "ful", -EINVAL, false},
                {"\n" SOME, -EINVAL, false},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                struct afz_psi psi = {.some.total_ns = 77};
                int r = afz_psi_parse(afz_span_str(cases[i].text), &psi);
                if (r != cases[i].error)
                        fail_msg("'%s': %d", cases[i].text, r);
                assert_int_equal(psi.some.total_ns, r < 0 ? 77 : 5000);
                if (r < 0)
                        continue;
                assert_int_equal(psi.some.avg10_permyriad, 123);
                assert_int_equal(psi.has_full, cases[i].has_full);
                assert_int_equal(psi.full.total_ns, cases[i].has_full ? 3000 : 0);
        }
}

static void test_sense(void **state)
{
        static const struct afz_fixture_row rows[] = {
                {"proc/pressure/cpu", SOME},
                {"proc/pressure/memory", SOME FULL},
                {"proc/pressure/io", "some avg10=1.00 avg60=0.00 avg300=0.00 tot"},
                {0},
        };
        struct afz_fixture *f = afz_fixture_new(rows);
        struct afz_reading r;
        size_t fds = afz_fixture_open_fds();
        (void)state;
        assert_int_equal(afz_reading_open(&r, &afz_sense_psi, afz_fixture_env(f), 0), 0);
        assert_int_equal(afz_reading_take(&r), 0);
        const struct afz_sample *s = afz_reading_of(&r, AFZ_KIND_PSI, 0);
        assert_int_equal(afz_value(s, AFZ_PSI_CPU_SOME), 5000);
        assert_int_equal(afz_value(s, AFZ_PSI_CPU_FULL), AFZ_ABSENT);
        assert_int_equal(afz_value(s, AFZ_PSI_MEMORY_SOME), 5000);
        assert_int_equal(afz_value(s, AFZ_PSI_MEMORY_FULL), 3000);
        assert_int_equal(afz_value(s, AFZ_PSI_MEMORY_FULL_AVG10), 50);
        assert_int_equal(afz_value(s, AFZ_PSI_IO_SOME), AFZ_ABSENT); /* cut: not zero */
        afz_fixture_set(f, "proc/pressure/memory", "some avg10=1.23 total=6\n");
        assert_int_equal(afz_reading_take(&r), 0);
        s = afz_reading_of(&r, AFZ_KIND_PSI, 0);
        assert_int_equal(afz_value(s, AFZ_PSI_MEMORY_SOME), 6000);
        assert_int_equal(afz_value(s, AFZ_PSI_MEMORY_FULL), AFZ_ABSENT);
        /* Nothing at all is an error: no pressure must not look like no pressure. */
        afz_fixture_set(f, "proc/pressure/memory", "");
        afz_fixture_set(f, "proc/pressure/cpu", "garbage\n");
        assert_int_equal(afz_reading_take(&r), -ENODATA);
        afz_reading_done(&r);
        assert_int_equal(afz_fixture_open_fds(), fds);
        afz_fixture_free(f);
}

static void test_missing(void **state)
{
        static const struct afz_fixture_row none[] = {{"proc/meminfo", ""}, {0}};
        /* With psi=0 the files are there and cannot be read: a folder does the same here. */
        static const struct afz_fixture_row off[] = {{"proc/pressure/cpu/", NULL},
                                                     {"proc/pressure/memory/", NULL},
                                                     {"proc/pressure/io/", NULL},
                                                     {0}};
        static const struct afz_fixture_row denied[] = {
                {"proc/meminfo", ""},
                {"not-read", "EACCES proc/pressure/cpu\nEACCES proc/pressure/memory\n"
                             "EACCES proc/pressure/io\n"},
                {0}};
        static const struct afz_fixture_row no_proc[] = {{"sys/block/", NULL}, {0}};
        static const struct {
                const struct afz_fixture_row *rows;
                int error;
        } cases[] = {{none, -ENODATA}, {off, -ENODATA}, {denied, -EACCES}, {no_proc, -ENODATA}};
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                struct afz_fixture *f = afz_fixture_new(cases[i].rows);
                struct afz_reading r;
                size_t fds = afz_fixture_open_fds();
                assert_int_equal(afz_reading_open(&r, &afz_sense_psi, afz_fixture_env(f), 0),
                                 cases[i].error);
                afz_reading_done(&r);
                assert_int_equal(afz_fixture_open_fds(), fds);
                afz_fixture_free(f);
        }
}

static int64_t live_total(const struct afz_env *env, const char *path)
{
        char buf[256];
        struct afz_span text;
        struct afz_psi psi;
        assert_int_equal(afz_env_read(env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text), 0);
        assert_int_equal(afz_psi_parse(text, &psi), 0);
        return (int64_t)psi.some.total_ns;
}

/* What the kernel says right before and right after holds our figure between them. */
static void test_live(void **state)
{
        struct afz_env env;
        struct afz_reading r;
        (void)state;
        assert_int_equal(afz_env_open_live(&env), 0);
        if (afz_reading_open(&r, &afz_sense_psi, &env, 0) < 0) {
                afz_reading_done(&r);
                afz_env_done(&env);
                skip();
        }
        for (int i = 0; i < 20; i++) {
                int64_t before = live_total(&env, "pressure/memory");
                int64_t io = live_total(&env, "pressure/io");
                assert_int_equal(afz_reading_take(&r), 0);
                const struct afz_sample *s = afz_reading_of(&r, AFZ_KIND_PSI, 0);
                int64_t ours = afz_value(s, AFZ_PSI_MEMORY_SOME);
                assert_true(before <= ours && ours <= live_total(&env, "pressure/memory"));
                ours = afz_value(s, AFZ_PSI_IO_SOME);
                assert_true(io <= ours && ours <= live_total(&env, "pressure/io"));
        }
        afz_reading_done(&r);
        afz_env_done(&env);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_sense),
                cmocka_unit_test(test_missing),
                cmocka_unit_test(test_live),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
