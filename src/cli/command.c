#include "command.h"

#include <stdio.h>
#include <string.h>

#include "suggest.h"

const struct afz_command *afz_command_find(const struct afz_program *program, const char *name)
{
        for (const struct afz_command *const *at = program->commands; *at; at++)
                if (strcmp((*at)->name, name) == 0)
                        return *at;
        return NULL;
}

int afz_command_unknown(const struct afz_program *program, const char *name,
                        struct afz_usage_error *error)
{
        struct afz_suggestion near = {.typed = name};

        for (const struct afz_command *const *at = program->commands; *at; at++)
                if (!(*at)->hidden)
                        afz_suggestion_offer(&near, (*at)->name);
        if (near.best)
                return afz_usage_error_set(error, "unknown command '%.48s'; did you mean '%s'?",
                                           name, near.best);
        return afz_usage_error_set(error, "unknown command '%.48s'; '%s --help' lists them", name,
                                   program->name);
}

bool afz_command_runs_program(const struct afz_command *command)
{
        for (const struct afz_operand *at = command->operands; at && at->name; at++)
                if (at->complete & AFZ_COMPLETE_PROGRAM)
                        return true;
        return false;
}

static int check_operands(const struct afz_program *program, const struct afz_command *command,
                          const struct afz_parsed *parsed, struct afz_usage_error *error)
{
        const struct afz_operand *at = command->operands;
        int count = 0;

        for (; at && at->name; at++, count++) {
                if (parsed->argc <= count && !at->optional)
                        return afz_usage_error_set(error, "%s is missing; see '%s %s --help'",
                                                   at->name, program->name, command->name);
                if (at->repeats)
                        return 0;
        }
        if (parsed->argc <= count)
                return 0;
        return afz_usage_error_set(error, "'%.48s' is one argument too many; see '%s %s --help'",
                                   parsed->argv[count], program->name, command->name);
}

static bool is_raw(const struct afz_command *command, int argc, char **argv)
{
        return command->raw && !(argc == 1 && strcmp(argv[0], "--help") == 0);
}

int afz_command_parse(const struct afz_program *program, const struct afz_command *command,
                      int argc, char **argv, void *values, struct afz_invocation *ret,
                      struct afz_usage_error *error)
{
        enum afz_operand_order order =
                afz_command_runs_program(command) ? AFZ_OPERANDS_LAST : AFZ_OPERANDS_MIXED;
        struct afz_parsed parsed;
        int r;

        if (command->defaults)
                memcpy(values, command->defaults, command->options_size);
        else if (command->options_size)
                memset(values, 0, command->options_size);
        if (is_raw(command, argc, argv)) {
                parsed = (struct afz_parsed){.argc = argc, .argv = argv};
        } else {
                r = afz_options_parse(command->options, order, argc, argv, values, &parsed, error);
                if (r < 0)
                        return r;
        }
        if (!parsed.help) {
                r = check_operands(program, command, &parsed, error);
                if (r < 0)
                        return r;
        }
        *ret = (struct afz_invocation){
                .program = program,
                .command = command,
                .options = values,
                .given = parsed.given,
                .help = parsed.help,
                .argc = parsed.argc,
                .argv = parsed.argv,
        };
        return 0;
}

bool afz_invocation_given(const struct afz_invocation *invocation, const char *name)
{
        return afz_options_given(invocation->command->options, invocation->given, name);
}

char *afz_command_operands(const struct afz_command *command, char *buf, size_t cap)
{
        size_t used = 0;

        buf[0] = '\0';
        for (const struct afz_operand *at = command->operands; at && at->name && used < cap; at++) {
                used += (size_t)snprintf(buf + used, cap - used, "%s%s%s%s%s%s", used ? " " : "",
                                         at->complete & AFZ_COMPLETE_PROGRAM ? "-- " : "",
                                         at->optional ? "[" : "", at->name,
                                         at->repeats ? "..." : "", at->optional ? "]" : "");
        }
        return buf;
}

int afz_command_usage_status(const struct afz_command *command)
{
        return command && command->usage_status ? command->usage_status : AFZ_EXIT_USAGE;
}
