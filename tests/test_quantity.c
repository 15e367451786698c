#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "quantity.h"

#define KIB       (UINT64_C(1) << 10)
#define MIB       (UINT64_C(1) << 20)
#define GIB       (UINT64_C(1) << 30)
#define TIB       (UINT64_C(1) << 40)
#define MS        UINT64_C(1000000)
#define S         UINT64_C(1000000000)
#define UNTOUCHED UINT64_C(0xdeadbeef)

struct parse_case {
        const char *text;
        int error; /* 0: value holds */
        uint64_t value;
};

static void check_parse(const struct parse_case *cases, int (*parse)(const char *, uint64_t *))
{
        for (; cases->text; cases++) {
                uint64_t value = UNTOUCHED;
                int r = parse(cases->text, &value);

                if (r != cases->error || value != (r < 0 ? UNTOUCHED : cases->value))
                        fail_msg("'%s': %d, %llu", cases->text, r, (unsigned long long)value);
        }
}

static void test_sizes(void **state)
{
        static const struct parse_case cases[] = {
                {"0", 0, 0},
                {"4096", 0, 4096},
                {"7B", 0, 7},
                {"12G", 0, 12 * GIB},
                {"12g", 0, 12 * GIB},
                {"512k", 0, 512 * KIB},
                {"512KB", 0, 512 * KIB},
                {"512KiB", 0, 512 * KIB},
                {"3MiB", 0, 3 * MIB},
                {"2T", 0, 2 * TIB},
                {"1.5G", 0, GIB + GIB / 2},
                {"0.1K", 0, 102},
                {"0.999999999T", 0, UINT64_C(1099511626676)},
                {"007M", 0, 7 * MIB},
                {"18446744073709551615", 0, UINT64_MAX},
                {"15.999999999E", 0, UINT64_C(18446744072556630111)},
                {"18446744073709551616", -ERANGE, 0},
                {"16E", -ERANGE, 0},
                {"99999999999999999999999G", -ERANGE, 0},
                {"99999999999999999999999 zebras", -EINVAL, 0},
                {"", -EINVAL, 0},
                {" 12G", -EINVAL, 0},
                {"12G ", -EINVAL, 0},
                {"12 G", -EINVAL, 0},
                {"12G\n", -EINVAL, 0},
                {"-1", -EINVAL, 0},
                {"+1", -EINVAL, 0},
                {"G", -EINVAL, 0},
                {"1.G", -EINVAL, 0},
                {".5G", -EINVAL, 0},
                {"1,5G", -EINVAL, 0},
                {"1.5", -EINVAL, 0},
                {"1.5B", -EINVAL, 0},
                {"1..5G", -EINVAL, 0},
                {"1.5.5G", -EINVAL, 0},
                {"1.0000000001G", -EINVAL, 0},
                {"1e3", -EINVAL, 0},
                {"0x10", -EINVAL, 0},
                {"12GG", -EINVAL, 0},
                {"12Gib2", -EINVAL, 0},
                {"12iB", -EINVAL, 0},
                {"75%", -EINVAL, 0},
                {"\xc2\xb2", -EINVAL, 0},
                {0},
        };

        (void)state;
        check_parse(cases, afz_parse_size);
}

static void test_durations(void **state)
{
        static const struct parse_case cases[] = {
                {"0", 0, 0},
                {"30", 0, 30 * S},
                {"1.5", 0, S + S / 2},
                {"250ms", 0, 250 * MS},
                {"30s", 0, 30 * S},
                {"7us", 0, 7000},
                {"7ns", 0, 7},
                {"2m", 0, 120 * S},
                {"2min", 0, 120 * S},
                {"1.5h", 0, 5400 * S},
                {"3d", 0, 259200 * S},
                {"0.0000015ms", 0, 1},
                {"18446744073s", 0, UINT64_C(18446744073000000000)},
                {"18446744074s", -ERANGE, 0},
                {"213504d", -ERANGE, 0},
                {"1.5ns", -EINVAL, 0},
                {"10x", -EINVAL, 0},
                {"10S", -EINVAL, 0},
                {"10M", -EINVAL, 0},
                {"1h30m", -EINVAL, 0},
                {"1 s", -EINVAL, 0},
                {"-1s", -EINVAL, 0},
                {"", -EINVAL, 0},
                {"s", -EINVAL, 0},
                {"infinity", -EINVAL, 0},
                {0},
        };

        (void)state;
        check_parse(cases, afz_parse_duration);
}

static void test_numbers(void **state)
{
        static const struct parse_case cases[] = {
                {"0", 0, 0},
                {"42", 0, 42},
                {"18446744073709551615", 0, UINT64_MAX},
                {"18446744073709551616", -ERANGE, 0},
                {"18446744073709551616x", -EINVAL, 0},
                {"4.2", -EINVAL, 0},
                {"-1", -EINVAL, 0},
                {"4 ", -EINVAL, 0},
                {"", -EINVAL, 0},
                {0},
        };

        (void)state;
        check_parse(cases, afz_parse_u64);
}

static void test_sizes_or_percents(void **state)
{
        static const struct {
                const char *text;
                int error;
                struct afz_size_or_percent amount;
        } cases[] = {
                {"12G", 0, {.bytes = 12 * GIB}},
                {"75%", 0, {.is_percent = true, .permyriad = 7500}},
                {"12.5%", 0, {.is_percent = true, .permyriad = 1250}},
                {"0.01%", 0, {.is_percent = true, .permyriad = 1}},
                {"100%", 0, {.is_percent = true, .permyriad = 10000}},
                {"0%", 0, {.is_percent = true}},
                {"100.01%", -ERANGE, {0}},
                {"101%", -ERANGE, {0}},
                {"18446744073709551616%", -ERANGE, {0}},
                {"1.234%", -EINVAL, {0}},
                {"%", -EINVAL, {0}},
                {"75%%", -EINVAL, {0}},
                {"75%G", -EINVAL, {0}},
                {"-5%", -EINVAL, {0}},
                {"75 %", -EINVAL, {0}},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct afz_size_or_percent amount = {.bytes = UNTOUCHED};
                int r = afz_parse_size_or_percent(cases[i].text, &amount);

                if (r != cases[i].error)
                        fail_msg("'%s': %d", cases[i].text, r);
                if (r < 0) {
                        assert_int_equal(amount.bytes, UNTOUCHED);
                        continue;
                }
                assert_int_equal(amount.is_percent, cases[i].amount.is_percent);
                assert_int_equal(amount.bytes, cases[i].amount.bytes);
                assert_int_equal(amount.permyriad, cases[i].amount.permyriad);
        }
}

static void test_share_of_total(void **state)
{
        struct afz_size_or_percent bytes = {.bytes = 5};
        struct afz_size_or_percent half = {.is_percent = true, .permyriad = 5000};
        struct afz_size_or_percent all = {.is_percent = true, .permyriad = 10000};
        struct afz_size_or_percent none = {.is_percent = true};

        (void)state;
        assert_int_equal(afz_size_or_percent_of(bytes, 100), 5);
        assert_int_equal(afz_size_or_percent_of(half, 101), 50);
        assert_int_equal(afz_size_or_percent_of(half, 16 * GIB), 8 * GIB);
        assert_int_equal(afz_size_or_percent_of(none, 16 * GIB), 0);
        assert_true(afz_size_or_percent_of(all, UINT64_MAX) == UINT64_MAX);
        assert_true(afz_size_or_percent_of(half, UINT64_MAX) == UINT64_MAX / 2);
}

static void test_format_size(void **state)
{
        static const struct {
                uint64_t bytes;
                const char *text;
        } cases[] = {
                {0, "0B"},
                {1, "1B"},
                {999, "999B"},
                {1023, "1023B"},
                {1024, "1.0K"},
                {1536, "1.5K"},
                {512 * KIB, "512K"},
                {1023 * KIB, "1023K"},
                {1023 * KIB + 511, "1023K"},
                {1023 * KIB + 512, "1.0M"},
                {MIB - 1, "1.0M"},
                {10 * KIB - 52, "9.9K"},
                {10 * KIB - 51, "10K"},
                {UINT64_C(10522669875), "9.8G"},
                {128 * GIB, "128G"},
                {UINT64_MAX, "16E"},
        };
        char buf[AFZ_SIZE_TEXT_CAP];

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                assert_string_equal(afz_format_size(buf, sizeof(buf), cases[i].bytes),
                                    cases[i].text);
}

/* Every power of two and its neighbours: the text fits, and reads back as something near. */
static void test_format_size_reads_back(void **state)
{
        (void)state;
        for (int bit = 0; bit < 64; bit++) {
                for (int nudge = -1; nudge <= 1; nudge++) {
                        uint64_t bytes = (UINT64_C(1) << bit) + (uint64_t)(int64_t)nudge;
                        char roomy[32];
                        uint64_t back;

                        afz_format_size(roomy, sizeof(roomy), bytes);
                        assert_true(strlen(roomy) < AFZ_SIZE_TEXT_CAP);
                        if (strcmp(roomy, "16E") == 0)
                                continue;
                        assert_int_equal(afz_parse_size(roomy, &back), 0);
                        assert_true(back <= bytes + bytes / 19 && bytes <= back + back / 19);
                }
        }
}

static void test_format_duration(void **state)
{
        static const struct {
                uint64_t ns;
                const char *text;
        } cases[] = {
                {0, "0 s"},
                {1, "1 ns"},
                {999, "999 ns"},
                {1500, "2 us"},
                {850000, "850 us"},
                {999499, "999 us"},
                {999500, "1 ms"},
                {250 * MS, "250 ms"},
                {999 * MS + 499999, "999 ms"},
                {999 * MS + 500000, "1.0 s"},
                {3200 * MS, "3.2 s"},
                {9949 * MS, "9.9 s"},
                {9950 * MS, "10 s"},
                {42 * S, "42 s"},
                {59 * S + 499 * MS, "59 s"},
                {59 * S + 500 * MS, "1 min"},
                {90 * S, "1 min 30 s"},
                {125 * S, "2 min 05 s"},
                {599 * S, "9 min 59 s"},
                {600 * S, "10 min"},
                {660 * S, "11 min"},
                {3569 * S, "59 min"},
                {3570 * S, "1 h 00 min"},
                {7500 * S, "2 h 05 min"},
                {47 * 3600 * S, "47 h 00 min"},
                {76 * 3600 * S, "3 d 04 h"},
                {UINT64_MAX, "213504 d 00 h"},
        };
        char buf[AFZ_DURATION_TEXT_CAP];

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                assert_string_equal(afz_format_duration(buf, sizeof(buf), cases[i].ns),
                                    cases[i].text);
}

static void test_small_buffers(void **state)
{
        char buf[4] = "xyz";

        (void)state;
        assert_string_equal(afz_format_size(buf, sizeof(buf), 1023), "102");
        assert_string_equal(afz_format_duration(buf, sizeof(buf), 90 * S), "1 m");
        assert_string_equal(afz_format_size(buf, 1, 1023), "");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sizes),
                cmocka_unit_test(test_durations),
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_sizes_or_percents),
                cmocka_unit_test(test_share_of_total),
                cmocka_unit_test(test_format_size),
                cmocka_unit_test(test_format_size_reads_back),
                cmocka_unit_test(test_format_duration),
                cmocka_unit_test(test_small_buffers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
