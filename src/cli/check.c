#include <string.h>

#include "command.h"
#include "count_of.h"
#include "quantity.h"

static const size_t stored_bytes[] = {
        [AFZ_OPTION_FLAG] = sizeof(bool),
        [AFZ_OPTION_STRING] = sizeof(const char *),
        [AFZ_OPTION_U64] = sizeof(uint64_t),
        [AFZ_OPTION_SIZE] = sizeof(uint64_t),
        [AFZ_OPTION_SIZE_OR_PERCENT] = sizeof(struct afz_size_or_percent),
        [AFZ_OPTION_DURATION] = sizeof(uint64_t),
        [AFZ_OPTION_CHOICE] = sizeof(int),
};

static const char *option_mistake(const struct afz_option *row)
{
        bool is_flag = row->type == AFZ_OPTION_FLAG;

        if ((size_t)row->type >= AFZ_COUNT_OF(stored_bytes))
                return "is of no known type";
        if (row->name[0] == '-' || row->name[strcspn(row->name, "= ")])
                return "has a name that cannot be typed";
        if (!row->help || !row->help[0])
                return "has no help";
        if (is_flag == (row->arg != NULL))
                return is_flag ? "is a flag, but names a value" : "does not name its value";
        if ((row->type == AFZ_OPTION_CHOICE) != (row->choices != NULL))
                return "has choices and another type, or the type and no choices";
        if (row->negatable && !is_flag)
                return "is no flag, so it cannot be negated";
        if (row->max && row->max < row->min)
                return "has its largest value below its smallest";
        if (strcmp(row->name, afz_option_help.name) == 0 || row->letter == afz_option_help.letter)
                return "takes the place of --help";
        return NULL;
}

static bool clashes(const struct afz_option *a, const struct afz_option *b)
{
        if (strcmp(a->name, b->name) == 0 || (a->letter && a->letter == b->letter))
                return true;
        return (a->negatable && strncmp(b->name, "no-", 3) == 0 &&
                strcmp(a->name, b->name + 3) == 0) ||
               (b->negatable && strncmp(a->name, "no-", 3) == 0 &&
                strcmp(b->name, a->name + 3) == 0);
}

static int check_options(const char *owner, const struct afz_option *rows, size_t struct_bytes,
                         struct afz_usage_error *error)
{
        size_t count = afz_options_count(rows);

        if (count > AFZ_OPTIONS_MAX)
                return afz_usage_error_set(error, "%s has more than %d options", owner,
                                           AFZ_OPTIONS_MAX);
        for (size_t i = 0; i < count; i++) {
                const char *mistake = option_mistake(&rows[i]);

                if (!mistake && struct_bytes &&
                    rows[i].offset + stored_bytes[rows[i].type] > struct_bytes)
                        mistake = "is stored outside the options struct";
                for (size_t j = 0; j < i && !mistake; j++)
                        if (clashes(&rows[i], &rows[j]))
                                mistake = "shares its name or letter with another";
                if (mistake)
                        return afz_usage_error_set(error, "%s: --%s %s", owner, rows[i].name,
                                                   mistake);
        }
        return 0;
}

static int check_operands(const struct afz_command *command, struct afz_usage_error *error)
{
        const struct afz_operand *before = NULL;

        for (const struct afz_operand *at = command->operands; at && at->name; before = at++) {
                if (before && before->repeats)
                        return afz_usage_error_set(error, "%s: %s follows an operand that repeats",
                                                   command->name, at->name);
                if (before && before->optional && !at->optional)
                        return afz_usage_error_set(error, "%s: %s follows an optional operand",
                                                   command->name, at->name);
        }
        return 0;
}

static int check_command(const struct afz_command *command, struct afz_usage_error *error)
{
        int r;

        if (!command->summary || !command->summary[0] || !command->run)
                return afz_usage_error_set(error, "%s lacks a summary or its function",
                                           command->name);
        if (afz_options_count(command->options) > 0 && command->options_size == 0)
                return afz_usage_error_set(error, "%s has options, but no struct for them",
                                           command->name);
        r = check_options(command->name, command->options, command->options_size, error);
        return r < 0 ? r : check_operands(command, error);
}

int afz_program_check(const struct afz_program *program, struct afz_usage_error *error)
{
        int r = check_options(program->name, program->options, 0, error);

        for (const struct afz_command *const *at = program->commands; *at && r == 0; at++) {
                r = check_command(*at, error);
                if (r == 0 && afz_command_find(program, (*at)->name) != *at)
                        r = afz_usage_error_set(error, "two commands are called %s", (*at)->name);
        }
        return r;
}
