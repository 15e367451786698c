#include <string.h>

#include "completion_parts.h"

/* One `complete` line a row, each under the condition of its place, which __NAME_at finds by
 * walking the words. */

/* A line of C is a line of the script. */
/* clang-format off */
static const char head[] =
        "# fish completion for ^, made by '^ completion fish'.\n"
        "\n"
        "# Whether command $argv[1] runs another program, whose options are not ours.\n"
        "function __^_runs_program\n"
        "    contains -- \"$argv[1]\"";

static const char values_head[] =
        "\n"
        "end\n"
        "\n"
        "# Whether option $argv[2] of command $argv[1] takes the next word.\n"
        "function __^_takes_value\n"
        "    switch \"$argv[1] $argv[2]\"\n"
        "        case ''";

static const char walk[] = "\n"
        "            return 0\n"
        "    end\n"
        "    return 1\n"
        "end\n"
        "\n"
        "# Prints where the cursor is: the command, whether options have ended (0 or 1), the operands so far.\n"
        "function __^_place\n"
        "    set -l words (commandline -opc)\n"
        "    set -l command ''\n"
        "    set -l operands\n"
        "    set -l skip 0\n"
        "    set -l ended 0\n"
        "    for word in $words[2..-1]\n"
        "        if test $skip -eq 1\n"
        "            set skip 0\n"
        "        else if test $ended -eq 0; and string match -q -- -- $word\n"
        "            set ended 1\n"
        "        else if test $ended -eq 0; and string match -q -- '-?*' $word\n"
        "            __^_takes_value \"$command\" $word; and set skip 1\n"
        "        else if test -z \"$command\"\n"
        "            set command $word\n"
        "        else\n"
        "            set -a operands $word\n"
        "            __^_runs_program \"$command\"; and set ended 1\n"
        "        end\n"
        "    end\n"
        "    printf '%s\\n' \"$command\" $ended $operands\n"
        "end\n"
        "\n"
        "# Whether the cursor is in command $argv[1] ('' before any) and, with $argv[2] = N, at\n"
        "# operand N; with +N, at operand N or a later one.\n"
        "function __^_at\n"
        "    set -l place (__^_place)\n"
        "    test \"$place[1]\" = \"$argv[1]\"; or return 1\n"
        "    set -l operands (math (count $place) - 2)\n"
        "    switch \"$argv[2]\"\n"
        "        case ''\n"
        "            test $place[2] -eq 0\n"
        "        case '+*'\n"
        "            test $operands -ge (string sub -s 2 -- $argv[2])\n"
        "        case '*'\n"
        "            test $operands -eq $argv[2]\n"
        "    end\n"
        "end\n"
        "\n"
        "function __^_offer_pid\n"
        "    pgrep -l -u (id -u) 2>/dev/null | string replace ' ' \\t\n"
        "end\n"
        "\n"
        "function __^_offer_run\n"
        "    set -l state $HOME/.local/state\n"
        "    set -q XDG_STATE_HOME; and set state $XDG_STATE_HOME\n"
        "    for run in $state/^/runs/*/\n"
        "        basename $run\n"
        "    end\n"
        "end\n"
        "\n"
        "# The operands are another program's command line. The blank after -C keeps an empty one from\n"
        "# meaning the line that is being completed.\n"
        "function __^_offer_program\n"
        "    set -l place (__^_place)\n"
        "    test $place[2] -eq 0; and string match -q -- '-*' (commandline -ct); and return\n"
        "    set -l words (string escape -- $place[3..-1])\n"
        "    complete '-C '(string join -- ' ' $words (commandline -ct))\n"
        "end\n"
        "\n"
        "complete -c ^ -e\n"
        "complete -c ^ -f\n";
/* clang-format on */

static void put_quoted(FILE *out, const char *text, size_t len)
{
        fputc('\'', out);
        afz_completion_put_escaped(out, text, len, "'\\");
        fputc('\'', out);
}

/* The opening of a line that holds in a command, and at an operand of it if place is not "". */
static void put_line(FILE *out, const struct afz_program *program, const char *command,
                     const char *place)
{
        fprintf(out, "complete -c %s -n '__%s_at \"%s\"%s%s'", program->name, program->name,
                command, place[0] ? " " : "", place);
}

static void put_kind(FILE *out, const struct afz_program *program, const char *word)
{
        if (strcmp(word, "dir") == 0)
                fputs("(__fish_complete_directories (commandline -ct) \"\")", out);
        else
                fprintf(out, "(__%s_offer_%s)", program->name, word);
}

/* Files are what fish offers by itself, unless it is told not to. */
static void put_offer(FILE *out, const struct afz_program *program, const char *const *choices,
                      unsigned complete)
{
        const char *joint = " -a '";

        fputs(complete & AFZ_COMPLETE_FILE ? " -F" : " -f", out);
        for (; choices && *choices; choices++, joint = " ")
                fprintf(out, "%s%s", joint, *choices);
        for (const struct afz_completion_kind *kind = afz_completion_kinds; kind->bit; kind++) {
                if (!(complete & kind->bit & ~(unsigned)AFZ_COMPLETE_FILE))
                        continue;
                fputs(joint, out);
                put_kind(out, program, kind->word);
                joint = " ";
        }
        if (joint[1] == '\0')
                fputc('\'', out);
}

static void put_option(FILE *out, const struct afz_program *program, const char *command,
                       const struct afz_option *row)
{
        put_line(out, program, command, "");
        if (row->letter)
                fprintf(out, " -s %c", row->letter);
        fprintf(out, " -l %s", row->name);
        if (row->type != AFZ_OPTION_FLAG) {
                fputs(" -r", out);
                put_offer(out, program, row->choices, row->complete);
        }
        fputs(" -d ", out);
        put_quoted(out, row->help, afz_completion_brief(row->help));
        fputc('\n', out);
        if (row->negatable) {
                put_line(out, program, command, "");
                fprintf(out, " -l no-%s -d 'Turn --%s off'\n", row->name, row->name);
        }
}

static void put_options(FILE *out, const struct afz_program *program, const char *command,
                        const struct afz_option *rows)
{
        for (const struct afz_option *row = rows; row && row->name; row++)
                if (!row->hidden)
                        put_option(out, program, command, row);
        put_option(out, program, command, &afz_option_help);
}

static void put_operands(FILE *out, const struct afz_program *program,
                         const struct afz_command *command)
{
        int i = 0;

        for (const struct afz_operand *at = command->operands; at && at->name; at++, i++) {
                char place[16];

                snprintf(place, sizeof place, "%s%d", at->repeats ? "+" : "", i);
                put_line(out, program, command->name, place);
                put_offer(out, program, at->choices, at->complete);
                fputc('\n', out);
        }
}

static void put_commands(FILE *out, const struct afz_program *program)
{
        for (const struct afz_command *const *at = program->commands; *at; at++) {
                if ((*at)->hidden)
                        continue;
                put_line(out, program, "", "");
                fprintf(out, " -a %s -d ", (*at)->name);
                put_quoted(out, (*at)->summary, strlen((*at)->summary));
                fputc('\n', out);
        }
}

static void put_command_list(FILE *out, const struct afz_program *program)
{
        afz_completion_put_script(out, program, "\nfunction __^_offer_command\n    printf '%s\\n'");
        for (const struct afz_command *const *at = program->commands; *at; at++)
                if (!(*at)->hidden)
                        fprintf(out, " %s", (*at)->name);
        fputs("\nend\n\n", out);
}

/* One pattern an option, so that a name with a letter is found by both. */
static void put_values_of(FILE *out, const char *command, const struct afz_option *rows)
{
        for (const struct afz_option *row = rows; row && row->name; row++) {
                if (row->hidden || row->type == AFZ_OPTION_FLAG)
                        continue;
                fprintf(out, " '%s --%s'", command, row->name);
                if (row->letter)
                        fprintf(out, " '%s -%c'", command, row->letter);
        }
}

void afz_completion_fish(FILE *out, const struct afz_program *program)
{
        const struct afz_command *const *at;

        afz_completion_put_script(out, program, head);
        for (at = program->commands; *at; at++)
                if (afz_command_runs_program(*at))
                        fprintf(out, " %s", (*at)->name);
        afz_completion_put_script(out, program, values_head);
        put_values_of(out, "", program->options);
        for (at = program->commands; *at; at++)
                put_values_of(out, (*at)->name, (*at)->options);
        afz_completion_put_script(out, program, walk);
        put_command_list(out, program);
        put_commands(out, program);
        put_options(out, program, "", program->options);
        for (at = program->commands; *at; at++) {
                if ((*at)->hidden)
                        continue;
                put_options(out, program, (*at)->name, (*at)->options);
                put_operands(out, program, *at);
        }
}
