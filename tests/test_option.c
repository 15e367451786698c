#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli_fixture.h"
#include "suggest.h"

enum { WORDS_MAX = 12 };

/* Splits a line at its blanks, as argv; "" stands for an empty argument. */
struct words {
        char line[512];
        char *argv[WORDS_MAX + 1];
        int argc;
};

static void split(struct words *words, const char *line)
{
        char *rest = NULL;

        *words = (struct words){0};
        assert_true(strlen(line) < sizeof(words->line));
        memcpy(words->line, line, strlen(line));
        for (char *word = strtok_r(words->line, " ", &rest); word;
             word = strtok_r(NULL, " ", &rest)) {
                assert_true(words->argc < WORDS_MAX);
                if (strcmp(word, "\"\"") == 0)
                        word[0] = '\0';
                words->argv[words->argc++] = word;
        }
}

static struct fixture_options values;
static struct afz_invocation invocation;
static struct afz_usage_error error;

/* The words must outlive the parse, since strings and operands point into them. */
static struct words typed;

static int parse(const struct afz_command *command, const char *line)
{
        split(&typed, line);
        memset(&values, 0xAA, sizeof(values));
        memset(&error, 0, sizeof(error));
        return afz_command_parse(&fixture_program, command, typed.argc, typed.argv, &values,
                                 &invocation, &error);
}

static void parse_ok(const struct afz_command *command, const char *line)
{
        if (parse(command, line) != 0)
                fail_msg("%s: %s", line, error.text);
}

static void test_defaults_stand(void **state)
{
        (void)state;
        parse_ok(&fixture_run, "true");
        assert_int_equal(values.policy, 1);
        assert_true(values.color);
        assert_null(values.run_dir);
        assert_int_equal(invocation.given, 0);
        assert_ptr_equal(invocation.options, &values);
        assert_ptr_equal(invocation.command, &fixture_run);
        assert_false(afz_invocation_given(&invocation, "budget"));
        assert_false(invocation.help);
}

static void test_all_forms_of_a_value(void **state)
{
        (void)state;
        parse_ok(&fixture_run, "--budget=75% --swap 2G --restarts=3 --policy=adapt --run-dir d x");
        assert_true(values.budget.is_percent);
        assert_int_equal(values.budget.permyriad, 7500);
        assert_int_equal(values.swap_bytes, UINT64_C(2) << 30);
        assert_int_equal(values.restarts, 3);
        assert_int_equal(values.policy, 2);
        assert_string_equal(values.run_dir, "d");
        assert_true(afz_invocation_given(&invocation, "budget"));
        assert_false(afz_invocation_given(&invocation, "quiet"));
        assert_false(afz_invocation_given(&invocation, "no-such-option"));

        parse_ok(&fixture_run, "-b12G -qj -p watch x");
        assert_int_equal(values.budget.bytes, UINT64_C(12) << 30);
        assert_true(values.quiet && values.json);
        assert_int_equal(values.policy, 0);

        parse_ok(&fixture_run, "-qb 1M x");
        assert_true(values.quiet);
        assert_int_equal(values.budget.bytes, 1 << 20);

        parse_ok(&fixture_watch, "--interval=250ms --output=a=b");
        assert_int_equal(values.interval_ns, 250000000);
        assert_string_equal(values.output, "a=b");
        parse_ok(&fixture_watch, "-o -");
        assert_string_equal(values.output, "-");
}

static void test_flags(void **state)
{
        (void)state;
        parse_ok(&fixture_run, "--no-color x");
        assert_false(values.color);
        assert_true(afz_invocation_given(&invocation, "color"));
        parse_ok(&fixture_run, "--no-color --color -q -q --secret x");
        assert_true(values.color && values.quiet && values.secret);
}

static void assert_operands(const char *const *wanted)
{
        int count = 0;

        for (; wanted[count]; count++) {
                assert_true(count < invocation.argc);
                assert_string_equal(invocation.argv[count], wanted[count]);
        }
        assert_int_equal(invocation.argc, count);
        assert_null(invocation.argv[count]);
}

#define OPERANDS(...) assert_operands((const char *const[]){__VA_ARGS__, NULL})

static void test_operands_move_together(void **state)
{
        (void)state;
        parse_ok(&fixture_capture, "out 42");
        OPERANDS("out", "42");
        parse_ok(&fixture_watch, "--json 42 --interval 5");
        OPERANDS("42");
        assert_int_equal(values.interval_ns, UINT64_C(5000000000));
        parse_ok(&fixture_watch, "-- --json");
        OPERANDS("--json");
        assert_false(values.json);
        parse_ok(&fixture_watch, "-");
        OPERANDS("-");
        parse_ok(&fixture_watch, "");
        assert_int_equal(invocation.argc, 0);
        assert_null(invocation.argv[0]);
}

static void test_a_program_keeps_its_options(void **state)
{
        (void)state;
        parse_ok(&fixture_run, "-q python train.py --json -- --help -x");
        OPERANDS("python", "train.py", "--json", "--", "--help", "-x");
        assert_false(values.json || invocation.help);
        parse_ok(&fixture_run, "-q -- -odd --json");
        OPERANDS("-odd", "--json");
        assert_false(values.json);
}

static void test_a_value_that_may_be_left_out(void **state)
{
        (void)state;
        parse_ok(&fixture_watch, "4242 --output");
        assert_string_equal(values.output, "-");
        OPERANDS("4242");
        parse_ok(&fixture_watch, "-o");
        assert_string_equal(values.output, "-");
        parse_ok(&fixture_watch, "--output file 4242");
        assert_string_equal(values.output, "file");
        OPERANDS("4242");
}

static void test_help(void **state)
{
        static const char *const lines[] = {"--help", "-h", "-qh", "--json --help --nonsense"};

        (void)state;
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
                parse_ok(&fixture_run, lines[i]);
                assert_true(invocation.help);
        }
}

struct error_case {
        const struct afz_command *command;
        const char *line, *text;
};

static const struct error_case error_cases[] = {
        {&fixture_run, "--bugdet=1G x", "unknown option '--bugdet'; did you mean '--budget'?"},
        {&fixture_run, "--budge 1G x", "unknown option '--budge'; did you mean '--budget'?"},
        {&fixture_run, "--bud=1G x", "unknown option '--bud'; did you mean '--budget'?"},
        {&fixture_run, "--hlep", "unknown option '--hlep'; did you mean '--help'?"},
        {&fixture_run, "--zzz", "unknown option '--zzz'; --help lists them"},
        {&fixture_run, "--secre x", "unknown option '--secre'; --help lists them"},
        {&fixture_run, "--=x", "unknown option '--'; --help lists them"},
        {&fixture_run, "-x", "unknown option '-x'; --help lists them"},
        {&fixture_run, "-qx", "unknown option '-x'; --help lists them"},
        {&fixture_run, "-swap=1G", "unknown option '-s'; did you mean '--swap'?"},
        {&fixture_run, "--no-json x", "unknown option '--no-json'; --help lists them"},
        {&fixture_run, "--json=1 x", "--json takes no value, but got '1'"},
        {&fixture_run, "--help=1", "--help takes no value, but got '1'"},
        {&fixture_run, "--no-color=1 x", "--no-color takes no value, but got '1'"},
        {&fixture_run, "--budget",
         "--budget wants a size such as 12G, or a share such as 75%: --budget=SIZE"},
        {&fixture_run, "-b",
         "--budget wants a size such as 12G, or a share such as 75%: --budget=SIZE"},
        {&fixture_run, "--policy", "--policy wants watch, protect or adapt: --policy=POLICY"},
        {&fixture_run, "--policy=Adapt x", "--policy wants watch, protect or adapt, not 'Adapt'"},
        {&fixture_run, "--budget=lots x",
         "--budget wants a size such as 12G, or a share such as 75%, not 'lots'"},
        {&fixture_run, "--budget=101% x", "--budget must be at most 100%, not '101%'"},
        {&fixture_run, "--budget=99E x", "--budget is too large: '99E'"},
        {&fixture_run, "--swap=-1 x", "--swap wants a size such as 512M or 12G, not '-1'"},
        {&fixture_run, "--swap=2T x", "--swap must be at most 1.0T, not '2T'"},
        {&fixture_run, "--swap=99E x", "--swap must be at most 1.0T, not '99E'"},
        {&fixture_run, "--restarts=101 x", "--restarts must be at most 100, not '101'"},
        {&fixture_run, "--restarts=3x x", "--restarts wants a whole number, not '3x'"},
        {&fixture_run, "--restarts= x", "--restarts wants a whole number, not ''"},
        {&fixture_run, "--run-dir= x", "--run-dir wants a value, not an empty one"},
        {&fixture_run, "--run-dir \"\" x", "--run-dir wants a value, not an empty one"},
        {&fixture_watch, "--output=", "--output wants a value, not an empty one"},
        {&fixture_run, "--run-dir", "--run-dir wants a value: --run-dir=DIR"},
        {&fixture_run, "--swap=1G --swap=1G x", "--swap is given twice; keep one of them"},
        {&fixture_run, "-p watch --policy=watch x", "--policy is given twice; keep one of them"},
        {&fixture_watch, "--interval 10x",
         "--interval wants a duration such as 100ms or 30s, not '10x'"},
        {&fixture_watch, "--interval=1ns",
         "--interval must be between 10 ms and 1 h 00 min, not '1ns'"},
        {&fixture_watch, "--interval=2h",
         "--interval must be between 10 ms and 1 h 00 min, not '2h'"},
        {&fixture_run, "", "CMD is missing; see 'antifreeze run --help'"},
        {&fixture_run, "-q --", "CMD is missing; see 'antifreeze run --help'"},
        {&fixture_watch, "1 2", "'2' is one argument too many; see 'antifreeze watch --help'"},
        {&fixture_doctor, "now", "'now' is one argument too many; see 'antifreeze doctor --help'"},
        {&fixture_capture, "", "DIR is missing; see 'antifreeze capture --help'"},
        {&fixture_run, "--a\nb\033[31m", "unknown option '--a?b?[31m'; --help lists them"},
        {0},
};

static void test_errors(void **state)
{
        struct afz_invocation untouched;

        (void)state;
        for (const struct error_case *at = error_cases; at->command; at++) {
                memset(&invocation, 0x55, sizeof(invocation));
                untouched = invocation;
                assert_int_equal(parse(at->command, at->line), -EINVAL);
                assert_string_equal(error.text, at->text);
                assert_memory_equal(&invocation, &untouched, sizeof(invocation));
        }
}

static void test_long_words_are_cut_not_overrun(void **state)
{
        char line[400] = "--swap=";

        (void)state;
        memset(line + strlen(line), '9', 300);
        assert_int_equal(parse(&fixture_run, line), -EINVAL);
        assert_non_null(strstr(error.text, "must be at most"));
        memset(line, '-', 300);
        assert_int_equal(parse(&fixture_run, line), -EINVAL);
        assert_non_null(strstr(error.text, "--help lists them"));
}

static void test_commands(void **state)
{
        (void)state;
        assert_ptr_equal(afz_command_find(&fixture_program, "watch"), &fixture_watch);
        assert_ptr_equal(afz_command_find(&fixture_program, "helper-internal"), &fixture_hidden);
        assert_null(afz_command_find(&fixture_program, "wat"));
        assert_null(afz_command_find(&fixture_program, ""));
        assert_int_equal(afz_command_unknown(&fixture_program, "wathc", &error), -EINVAL);
        assert_string_equal(error.text, "unknown command 'wathc'; did you mean 'watch'?");
        afz_command_unknown(&fixture_program, "doc", &error);
        assert_string_equal(error.text, "unknown command 'doc'; did you mean 'doctor'?");
        afz_command_unknown(&fixture_program, "", &error);
        assert_string_equal(error.text, "unknown command ''; 'antifreeze --help' lists them");
        assert_int_equal(afz_command_usage_status(&fixture_run), 125);
        assert_int_equal(afz_command_usage_status(&fixture_watch), 2);
        assert_int_equal(afz_command_usage_status(NULL), 2);
}

static void test_edit_distance(void **state)
{
        static const struct {
                const char *a, *b;
                int distance;
        } cases[] = {
                {"", "", 0},
                {"a", "", 1},
                {"", "abc", 3},
                {"watch", "watch", 0},
                {"wtach", "watch", 1},
                {"wathc", "watch", 1},
                {"bugdet", "budget", 1},
                {"watchh", "watch", 1},
                {"kitten", "sitting", 3},
                {"ab", "ba", 1},
                {"abc", "ca", 3},
                {"0123456789012345678901234567890123", "a", -1},
                {"a", "0123456789012345678901234567890123", -1},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                assert_int_equal(afz_edit_distance(cases[i].a, cases[i].b), cases[i].distance);
                assert_int_equal(afz_edit_distance(cases[i].b, cases[i].a), cases[i].distance);
        }
}

static void check_row(const struct afz_option *rows, const char *mistake)
{
        const struct afz_command command = {.name = "c",
                                            .summary = "s",
                                            .options = rows,
                                            .options_size = 8,
                                            .run = fixture_nothing};
        const struct afz_command *const commands[] = {&command, NULL};
        const struct afz_program program = {.name = "p", .commands = commands};

        assert_int_equal(afz_program_check(&program, &error), -EINVAL);
        if (!strstr(error.text, mistake))
                fail_msg("'%s' does not say '%s'", error.text, mistake);
}

#define CHECK_ROWS(mistake, ...) check_row((const struct afz_option[]){__VA_ARGS__, {0}}, mistake)

static void test_check_finds_mistakes(void **state)
{
        (void)state;
        if (afz_program_check(&fixture_program, &error) != 0)
                fail_msg("%s", error.text);
        CHECK_ROWS("has no help", {.name = "a"});
        CHECK_ROWS("names a value", {.name = "a", .help = "h", .arg = "A"});
        CHECK_ROWS("does not name its value", {.name = "a", .help = "h", .type = AFZ_OPTION_U64});
        CHECK_ROWS("choices", {.name = "a", .help = "h", .arg = "A", .type = AFZ_OPTION_CHOICE});
        CHECK_ROWS("--help", {.name = "help", .help = "h"});
        CHECK_ROWS("--help", {.name = "host", .letter = 'h', .help = "h"});
        CHECK_ROWS("outside", {.name = "a", .help = "h", .offset = 8});
        CHECK_ROWS("shares", {.name = "a", .help = "h"}, {.name = "a", .help = "h"});
        CHECK_ROWS("shares", {.name = "a", .help = "h", .letter = 'x'},
                   {.name = "b", .help = "h", .letter = 'x'});
        CHECK_ROWS("shares", {.name = "a", .help = "h", .negatable = true},
                   {.name = "no-a", .help = "h"});
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_defaults_stand),
                cmocka_unit_test(test_all_forms_of_a_value),
                cmocka_unit_test(test_flags),
                cmocka_unit_test(test_operands_move_together),
                cmocka_unit_test(test_a_program_keeps_its_options),
                cmocka_unit_test(test_a_value_that_may_be_left_out),
                cmocka_unit_test(test_help),
                cmocka_unit_test(test_errors),
                cmocka_unit_test(test_long_words_are_cut_not_overrun),
                cmocka_unit_test(test_commands),
                cmocka_unit_test(test_edit_distance),
                cmocka_unit_test(test_check_finds_mistakes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
