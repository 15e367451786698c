/* The trainer's options: sizes, hostile arguments, and what follows from what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"
#include "optim.h"
#include "options.h"

enum { MAX_ARGS = 8 };

static int parse(const char *const args[], struct afz_options *ret, char *error)
{
        char *argv[MAX_ARGS + 2] = {(char *)(uintptr_t) "afz-trainer"};
        int argc = 1;

        for (; args[argc - 1]; argc++)
                argv[argc] = (char *)(uintptr_t)args[argc - 1];
        return afz_trainer_options_parse(argc, argv, ret, error);
}

static void sizes(void **state)
{
        static const struct {
                const char *text;
                int rc;
                uint64_t bytes;
        } cases[] = {
                {"0", 0, 0},
                {"1", 0, 1},
                {"4K", 0, 4096},
                {"3M", 0, 3 << 20},
                {"2G", 0, UINT64_C(2) << 30},
                {"18446744073709551615", 0, UINT64_MAX},
                {"17179869183G", 0, UINT64_C(17179869183) << 30},
                {"17179869184G", -ERANGE, 0},
                {"18446744073709551616", -ERANGE, 0},
                {"99999999999999999999K", -ERANGE, 0},
                {"", -EINVAL, 0},
                {"K", -EINVAL, 0},
                {"4KB", -EINVAL, 0},
                {"4k", -EINVAL, 0},
                {"4 K", -EINVAL, 0},
                {" 4", -EINVAL, 0},
                {"+4", -EINVAL, 0},
                {"-4", -EINVAL, 0},
                {"0x10", -EINVAL, 0},
                {"1.5G", -EINVAL, 0},
                {"4\n", -EINVAL, 0},
                {"4\xc2\xb5", -EINVAL, 0},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                uint64_t bytes = 77;

                assert_int_equal(afz_trainer_options_parse_size(cases[i].text, &bytes),
                                 cases[i].rc);
                assert_int_equal(bytes, cases[i].rc == 0 ? cases[i].bytes : 77);
        }
}

static void hostile_arguments(void **state)
{
        static const struct {
                const char *args[MAX_ARGS];
                const char *says;
        } cases[] = {
                {{"--epochs"}, "--epochs wants a whole number"},
                {{"--epochs", "0"}, "out of range"},
                {{"--epochs", "-1"}, "not '-1'"},
                {{"--epochs="}, "not ''"},
                {{"--epochs", ""}, "not ''"},
                {{"--batch", "1000000001"}, "out of range"},
                {{"--batch", "99999999999999999999"}, "out of range"},
                {{"--batch", "64x"}, "not '64x'"},
                {{"--seed", "18446744073709551616"}, "out of range"},
                {{"--threads", "0"}, "out of range"},
                {{"--threads", "257"}, "out of range"},
                {{"--workers", "1000"}, "out of range"},
                {{"--lr", "nan"}, "positive number"},
                {{"--lr", "inf"}, "positive number"},
                {{"--lr", "-0.1"}, "positive number"},
                {{"--lr", "0"}, "out of range"},
                {{"--lr", "1e999"}, "out of range"},
                {{"--lr", "1e-300"}, "out of range"},
                {{"--lr", "0x1p3"}, "positive number"},
                {{"--lr", "1e"}, "positive number"},
                {{"--optimizer", "lbfgs"}, "sgd or adam"},
                {{"--optimizer", "ADAM"}, "sgd or adam"},
                {{"--data-dir", ""}, "a name"},
                {{"--quiet=yes"}, "takes no value"},
                {{"--retain-history=lots"}, "a size"},
                {{"--retain-history=0"}, "out of range"},
                {{"--retain-history", "4M"}, "unexpected argument '4M'"},
                {{"--slow-disk="}, "a size"},
                {{"--spin=0"}, "out of range"},
                {{"--whole-dataset", "--slow-disk"}, "exclude each other"},
                {{"--epoch", "3"}, "unknown option '--epoch'"},
                {{"--epochsx"}, "unknown option"},
                {{"--=3"}, "unknown option"},
                {{"--"}, "unexpected argument"},
                {{"-q"}, "unexpected argument"},
                {{""}, "unexpected argument"},
                {{"--\x1b[31m\n\t\xff"}, "unknown option '--?[31m?"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct afz_options options = {.epochs = 77};
                char error[AFZ_OPTIONS_ERROR_SIZE] = "";

                assert_int_equal(parse(cases[i].args, &options, error), -EINVAL);
                if (!strstr(error, cases[i].says))
                        fail_msg("'%s' does not say \"%s\"", error, cases[i].says);
                for (const char *p = error; *p; p++)
                        assert_in_range(*p, 0x20, 0x7e);
                assert_int_equal(options.epochs, 77);
        }
}

static void endless_argument_fits(void **state)
{
        char error[AFZ_OPTIONS_ERROR_SIZE];
        struct afz_options options;
        char *text = malloc(100001);

        (void)state;
        assert_non_null(text);
        memset(text, '9', 100000);
        text[100000] = '\0';
        assert_int_equal(parse((const char *[]){"--batch", text, NULL}, &options, error), -EINVAL);
        assert_true(strlen(error) < 120);
        assert_int_equal(parse((const char *[]){text, NULL}, &options, error), -EINVAL);
        assert_true(strlen(error) < 120);
        free(text);
}

static void defaults(void **state)
{
        char error[AFZ_OPTIONS_ERROR_SIZE];
        struct afz_options options;

        (void)state;
        assert_int_equal(parse((const char *[]){NULL}, &options, error), 0);
        assert_int_equal(options.batch, 64);
        assert_int_equal(options.threads, 1);
        assert_int_equal(options.workers, 0);
        assert_int_equal(options.optimizer, AFZ_OPTIM_ADAM);
        assert_int_equal(options.log_every, 50);
        assert_int_equal(options.retain_history_bytes | options.whole_dataset_bytes |
                                 options.large_batch | options.leaky_layers | options.spin_step |
                                 options.deadlock_step | options.slow_disk_bytes,
                         0);
        assert_false(options.retain_intermediate || options.log_everything);
}

static void values_both_ways(void **state)
{
        char error[AFZ_OPTIONS_ERROR_SIZE];
        struct afz_options options;

        (void)state;
        assert_int_equal(parse((const char *[]){"--batch=32", "--lr", "1e-3", "--optimizer=sgd",
                                                "--retain-history=1K", "--batch", "16", NULL},
                               &options, error),
                         0);
        assert_int_equal(options.batch, 16); /* the last one wins */
        assert_true(options.rate > .00099 && options.rate < .00101);
        assert_int_equal(options.optimizer, AFZ_OPTIM_SGD);
        assert_int_equal(options.retain_history_bytes, 1024);
}

static void what_follows(void **state)
{
        char error[AFZ_OPTIONS_ERROR_SIZE];
        struct afz_options options;

        (void)state;
        assert_int_equal(parse((const char *[]){"--large-batch=50000", NULL}, &options, error), 0);
        assert_int_equal(options.batch, 50000);
        assert_int_equal(options.samples, 50000);
        assert_int_equal(options.log_every, 1);

        assert_int_equal(parse((const char *[]){"--whole-dataset=1M", NULL}, &options, error), 0);
        assert_int_equal(options.samples, (1 << 20) / (AFZ_DIGIT_PIXELS * 12));
        assert_int_equal(parse((const char *[]){"--whole-dataset=1", NULL}, &options, error), 0);
        assert_int_equal(options.samples, options.batch);
}

/* The main program builds "--NAME" from the first column. */
static void each_listed_pitfall_is_a_flag(void **state)
{
        char *text = NULL, *rest;
        size_t length = 0, count = 0;
        FILE *out = open_memstream(&text, &length);

        (void)state;
        assert_non_null(out);
        afz_trainer_options_print_pitfalls(out);
        fclose(out);
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
                char error[AFZ_OPTIONS_ERROR_SIZE], flag[64];
                struct afz_options options;
                char *tab = strchr(line, '\t');

                assert_non_null(tab);
                assert_true(strlen(tab) > 10);
                *tab = '\0';
                snprintf(flag, sizeof(flag), "--%s", line);
                assert_int_equal(parse((const char *[]){flag, NULL}, &options, error), 0);
                count++;
        }
        assert_int_equal(count, 9);
        free(text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(sizes),
                cmocka_unit_test(hostile_arguments),
                cmocka_unit_test(endless_argument_fits),
                cmocka_unit_test(defaults),
                cmocka_unit_test(values_both_ways),
                cmocka_unit_test(what_follows),
                cmocka_unit_test(each_listed_pitfall_is_a_flag),
        };

        return cmocka_run_group_tests_name("demo_options", tests, NULL, NULL);
}
