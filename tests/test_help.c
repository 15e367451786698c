#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli_fixture.h"
#include "help.h"
#include "manpage.h"

/* What a writer wrote, to be freed. width is not used by all of them. */
enum what { PROGRAM_HELP, COMMAND_HELP, MANPAGE, COMPLETION };

static int write_it(FILE *out, enum what what, const void *subject, int width)
{
        switch (what) {
        case PROGRAM_HELP:
                return afz_help_program(out, &fixture_program, width);
        case COMMAND_HELP:
                return afz_help_command(out, &fixture_program, subject, width);
        case MANPAGE:
                return afz_manpage_write(out, &fixture_program);
        case COMPLETION:
                return afz_completion_write(out, &fixture_program, subject);
        }
        return -EINVAL;
}

static char *written(enum what what, const void *subject, int width)
{
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);

        assert_non_null(out);
        assert_int_equal(write_it(out, what, subject, width), 0);
        assert_int_equal(fclose(out), 0);
        return text;
}

static void assert_has(const char *text, const char *part)
{
        if (!strstr(text, part))
                fail_msg("'%s' is not in:\n%s", part, text);
}

static void assert_lacks(const char *text, const char *part)
{
        if (strstr(text, part))
                fail_msg("'%s' is in:\n%s", part, text);
}

static void test_command_help_as_a_whole(void **state)
{
        static const char wanted[] =
                "Usage: antifreeze watch [OPTION]... [RUN|PID]\n"
                "\n"
                "Show the machine and a job live.\n"
                "\n"
                "Options:\n"
                "  -i, --interval=TIME  Time between two looks at the machine. (default 1s)\n"
                "  -o, --output=FILE    Write there.\n"
                "      --json           One JSON object a tick.\n"
                "  -h, --help           Show this help and exit.\n"
                "\n"
                "Examples:\n"
                "  antifreeze watch 4242\n"
                "      Watch the job whose root is process 4242.\n"
                "  antifreeze watch --json | jq -r '.ram\\n'\n"
                "      Feed a tool; backslashes and 'quotes' stay.\n";
        char *text = written(COMMAND_HELP, &fixture_watch, 80);

        (void)state;
        assert_string_equal(text, wanted);
        free(text);
}

static void test_program_help(void **state)
{
        char *text = written(PROGRAM_HELP, NULL, 80);

        (void)state;
        assert_has(text, "Usage: antifreeze COMMAND");
        assert_has(text, "Keep a training job from freezing the machine.\n");
        assert_has(text, "\n  watch       show the machine and a job live\n");
        assert_has(text, "\n  completion  print");
        assert_has(text, "  -V, --version  Print");
        assert_lacks(text, "helper-internal");
        free(text);
}

static void test_hidden_and_special_rows(void **state)
{
        char *text = written(COMMAND_HELP, &fixture_run, 80);

        (void)state;
        assert_has(text, "      --[no-]color ");
        assert_has(text, "(watch, protect or adapt;");
        assert_has(text, "[OPTION]... -- CMD...\n");
        assert_has(text, "watched.\n\n.TH is no macro");
        assert_lacks(text, "secret");
        free(text);
}

/* No line is too long, none ends with a blank, at any width; only what cannot be broken may stick
 * out. */
static void check_lines(const char *text, int width)
{
        for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
                size_t len = strcspn(line, "\n");

                assert_true(len == 0 || line[len - 1] != ' ');
                if ((int)len > width && !strstr(line, "antifreeze"))
                        fail_msg("%zu columns, not %d: %.*s", len, width, (int)len, line);
        }
}

static void test_widths(void **state)
{
        static const struct {
                int asked, kept;
        } widths[] = {{0, 40},  {-7, 40}, {40, 40},   {47, 47},
                      {61, 61}, {80, 80}, {100, 100}, {5000, 100}};

        (void)state;
        for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
                for (const struct afz_command *const *at = fixture_commands; *at; at++) {
                        char *text = written(COMMAND_HELP, *at, widths[i].asked);

                        check_lines(text, widths[i].kept);
                        free(text);
                }
                char *text = written(PROGRAM_HELP, NULL, widths[i].asked);

                check_lines(text, widths[i].kept);
                free(text);
        }
}

static void test_wrapping_counts_characters(void **state)
{
        static const struct afz_command command = {
                .name = "c",
                .summary = "s",
                .description =
                        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4 "
                        "0123456789012345678901234567x9 end\n\n\nnext  one\nline",
        };
        char *text = written(COMMAND_HELP, &command, 40);

        (void)state;
        assert_has(text, "\xc3\xa4 0123456789012345678901234567x9\nend\n\nnext one line\n");
        free(text);
}

static void test_manpage_has_every_section(void **state)
{
        static const char *const parts[] = {
                ".TH ANTIFREEZE 1 2025-01-31 \"antifreeze 0.1.0\" \"User Commands\"\n",
                ".SH NAME\nantifreeze \\- keep",
                ".SH SYNOPSIS\n",
                ".SH DESCRIPTION\n",
                ".SH OPTIONS\n",
                ".SH COMMANDS\n",
                ".SS watch",
                ".SH EXIT STATUS\n.TP\n\\fB75\\fR\n",
                ".SH ENVIRONMENT\n",
                ".SH FILES\n.TP\n\\fB\\(ti/.local/state",
                ".SH EXAMPLES\n",
                ".SH SEE ALSO\n\\fBfree\\fR(1),\n\\fBsystemd\\-oomd\\fR(8)\n",
                "\\fB\\-i\\fR, \\fB\\-\\-\\fR\\fBinterval\\fR=\\fITIME\\fR\n",
                "\n\\&.TH is no macro here.\n\\(aqNor is this.\\(aq\n",
                "jq \\-r \\(aq.ram\\en\\(aq",
        };
        char *text = written(MANPAGE, NULL, 0);

        (void)state;
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
                assert_has(text, parts[i]);
        assert_lacks(text, "secret");
        assert_lacks(text, "helper-internal");
        free(text);
}

static void test_completions_leave_hidden_rows_out(void **state)
{
        (void)state;
        for (const char *const *shell = afz_completion_shells; *shell; shell++) {
                char *text = written(COMPLETION, *shell, 0);

                assert_has(text, "antifreeze");
                assert_has(text, "no-color");
                assert_lacks(text, "secret");
                assert_lacks(text, "helper");
                assert_lacks(text, "^");
                free(text);
        }
        assert_int_equal(afz_completion_write(stderr, &fixture_program, "tcsh"), -ENOENT);
}

static void test_a_full_disk_is_an_error(void **state)
{
        static const struct {
                enum what what;
                const void *subject;
        } writers[] = {{PROGRAM_HELP, NULL},
                       {COMMAND_HELP, &fixture_run},
                       {MANPAGE, NULL},
                       {COMPLETION, "zsh"}};

        (void)state;
        for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
                FILE *out = fopen("/dev/full", "w");

                assert_non_null(out);
                assert_int_equal(write_it(out, writers[i].what, writers[i].subject, 80), -EIO);
                fclose(out);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_command_help_as_a_whole),
                cmocka_unit_test(test_program_help),
                cmocka_unit_test(test_hidden_and_special_rows),
                cmocka_unit_test(test_widths),
                cmocka_unit_test(test_wrapping_counts_characters),
                cmocka_unit_test(test_manpage_has_every_section),
                cmocka_unit_test(test_completions_leave_hidden_rows_out),
                cmocka_unit_test(test_a_full_disk_is_an_error),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
