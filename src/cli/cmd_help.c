/* help, completion, man: what the rows say, for people, shells and man(1). */
#include <errno.h>
#include <stdio.h>

#include "commands.h"
#include "completion.h"
#include "help.h"
#include "manpage.h"

static int wrote(int r)
{
        return r < 0 ? afz_fail(AFZ_EXIT_USAGE, "cannot write to stdout") : 0;
}

static int run_help(const struct afz_invocation *inv)
{
        struct afz_usage_error error;
        if (inv->argc == 0)
                return wrote(afz_help_program(stdout, inv->program, afz_columns()));
        const struct afz_command *command = afz_command_find(inv->program, inv->argv[0]);
        if (!command) {
                afz_command_unknown(inv->program, inv->argv[0], &error);
                return afz_fail(AFZ_EXIT_USAGE, "%s", error.text);
        }
        return wrote(afz_help_command(stdout, inv->program, command, afz_columns()));
}

static int run_completion(const struct afz_invocation *inv)
{
        int r = afz_completion_write(stdout, inv->program, inv->argv[0]);
        if (r == -ENOENT)
                return afz_fail(AFZ_EXIT_USAGE,
                                "completion: no script for '%s'; there are bash, zsh and fish",
                                inv->argv[0]);
        return wrote(r);
}

static int run_man(const struct afz_invocation *inv)
{
        return wrote(afz_manpage_write(stdout, inv->program));
}

static const struct afz_operand help_operands[] = {
        {.name = "COMMAND", .complete = AFZ_COMPLETE_COMMAND, .optional = true},
        {0},
};

const struct afz_command afz_command_help = {
        .name = "help",
        .summary = "show help on a command",
        .description = "Shows the commands, or one command with its options and examples.",
        .operands = help_operands,
        .run = run_help,
};

static const struct afz_operand completion_operands[] = {
        {.name = "SHELL", .choices = afz_completion_shells},
        {0},
};

static const struct afz_example completion_examples[] = {
        {"eval \"$(antifreeze completion bash)\"", "Completion in this bash."},
        {"antifreeze completion fish > ~/.config/fish/completions/antifreeze.fish",
         "Completion in every fish to come."},
        {0},
};

const struct afz_command afz_command_completion = {
        .name = "completion",
        .summary = "print the completion script of a shell",
        .description =
                "Prints a script that completes Antifreeze's commands, options and processes "
                "in bash, zsh or fish.",
        .operands = completion_operands,
        .examples = completion_examples,
        .run = run_completion,
};

const struct afz_command afz_command_man = {
        .name = "man",
        .summary = "print the manual page",
        .description = "Prints antifreeze(1) in man(7) form, as `make install` puts it.",
        .run = run_man,
        .hidden = true,
};
