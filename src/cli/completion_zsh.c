#include <string.h>

#include "completion_parts.h"

/* Specifications for _arguments, one line a row. Single quotes surround every text, so that only a
 * quote itself must leave them. */

/* A line of C is a line of the script. */
/* clang-format off */
static const char head[] =
        "#compdef ^\n"
        "# zsh completion for ^, made by '^ completion zsh'.\n"
        "\n"
        "_^_offer() {\n"
        "    local kind ret=1\n"
        "    local -a found\n"
        "    for kind; do\n"
        "        case $kind in\n"
        "        pid)\n"
        "            found=(${${(f)\"$(pgrep -l -u $EUID 2>/dev/null)\"}/ /:})\n"
        "            _describe -t processes process found && ret=0\n"
        "            ;;\n"
        "        run)\n"
        "            found=(${XDG_STATE_HOME:-$HOME/.local/state}/^/runs/*(N/:t))\n"
        "            _wanted runs expl run compadd -M 'l:|=*' -a found && ret=0\n"
        "            ;;\n"
        "        dir) _files -/ && ret=0 ;;\n"
        "        file) _files && ret=0 ;;\n"
        "        command) _^_commands && ret=0 ;;\n"
        "        esac\n"
        "    done\n"
        "    return ret\n"
        "}\n"
        "\n";

static const char dispatch_head[] = "\n"
        "_^() {\n"
        "    local curcontext=\"$curcontext\" state line expl ret=1\n"
        "    typeset -A opt_args\n"
        "    _arguments -C -s -S \\\n";

static const char dispatch_tail[] =
        "        '1:command:_^_commands' \\\n"
        "        '*::argument:->argument' && ret=0\n"
        "    if [[ $state == argument ]]; then\n"
        "        curcontext=\"${curcontext%:*:*}:^-$words[1]:\"\n"
        "        (( $+functions[_^-$words[1]] )) && _^-$words[1] && ret=0\n"
        "    fi\n"
        "    return ret\n"
        "}\n"
        "\n"
        "# Autoloaded from fpath this file is the function itself; sourced, it registers it.\n"
        "if [[ $funcstack[1] == _^ ]]; then\n"
        "    _^ \"$@\"\n"
        "else\n"
        "    compdef _^ ^\n"
        "fi\n";
/* clang-format on */

/* special is what _arguments itself would read in this place. */
static void put_quoted(FILE *out, const char *text, size_t len, const char *special)
{
        while (len > 0) {
                const char *quote = memchr(text, '\'', len);
                size_t plain = quote ? (size_t)(quote - text) : len;

                afz_completion_put_escaped(out, text, plain, special);
                text += plain;
                len -= plain;
                if (quote) {
                        fputs("'\\''", out);
                        text++;
                        len--;
                }
        }
}

static void put_brief(FILE *out, const char *help)
{
        fputc('[', out);
        put_quoted(out, help, afz_completion_brief(help), "[]:\\");
        fputc(']', out);
}

static void put_action(FILE *out, const struct afz_program *program, const char *name,
                       const char *const *choices, unsigned complete)
{
        fputc(':', out);
        put_quoted(out, name, strlen(name), ":\\");
        fputc(':', out);
        if (choices) {
                const char *joint = "(";

                for (; *choices; choices++, joint = " ")
                        fprintf(out, "%s%s", joint, *choices);
                fputc(')', out);
        } else if (complete) {
                fprintf(out, " _%s_offer", program->name);
                for (const struct afz_completion_kind *kind = afz_completion_kinds; kind->bit;
                     kind++)
                        if (complete & kind->bit)
                                fprintf(out, " %s", kind->word);
        }
}

static void put_value_option(FILE *out, const struct afz_program *program,
                             const struct afz_option *row)
{
        if (row->letter)
                fprintf(out, "        '(-%c --%s)'{-%c+,--%s=}'", row->letter, row->name,
                        row->letter, row->name);
        else
                fprintf(out, "        '--%s=", row->name);
        put_brief(out, row->help);
        put_action(out, program, row->arg, row->choices, row->complete);
        fputs("' \\\n", out);
}

static void put_flag(FILE *out, const struct afz_option *row)
{
        if (row->letter)
                fprintf(out, "        '(-%c --%s)'{-%c,--%s}'", row->letter, row->name, row->letter,
                        row->name);
        else
                fprintf(out, "        '--%s", row->name);
        put_brief(out, row->help);
        fputs("' \\\n", out);
        if (row->negatable)
                fprintf(out, "        '(--%s)--no-%s[turn --%s off]' \\\n", row->name, row->name,
                        row->name);
}

static void put_options(FILE *out, const struct afz_program *program, const struct afz_option *rows)
{
        for (const struct afz_option *row = rows; row && row->name; row++) {
                if (row->hidden)
                        continue;
                if (row->type == AFZ_OPTION_FLAG)
                        put_flag(out, row);
                else
                        put_value_option(out, program, row);
        }
        fprintf(out, "        '(- *)'{-%c,--%s}'", afz_option_help.letter, afz_option_help.name);
        put_brief(out, afz_option_help.help);
        fputc('\'', out);
}

static void put_operands(FILE *out, const struct afz_program *program,
                         const struct afz_command *command)
{
        int place = 1;

        for (const struct afz_operand *at = command->operands; at && at->name; at++, place++) {
                fputs(" \\\n        '", out);
                if (at->complete & AFZ_COMPLETE_PROGRAM) {
                        fprintf(out, "(-)%d:program: _command_names -e' \\\n", place);
                        fputs("        '*::argument: _normal", out);
                } else {
                        if (at->repeats)
                                fputc('*', out);
                        else
                                fprintf(out, "%d%s", place, at->optional ? ":" : "");
                        put_action(out, program, at->name, at->choices, at->complete);
                }
                fputc('\'', out);
        }
}

static void put_commands(FILE *out, const struct afz_program *program)
{
        afz_completion_put_script(out, program, "_^_commands() {\n    local -a commands=(\n");
        for (const struct afz_command *const *at = program->commands; *at; at++) {
                if ((*at)->hidden)
                        continue;
                fprintf(out, "        '%s:", (*at)->name);
                put_quoted(out, (*at)->summary, strlen((*at)->summary), ":\\");
                fputs("'\n", out);
        }
        fputs("    )\n    _describe -t commands command commands\n}\n", out);
}

void afz_completion_zsh(FILE *out, const struct afz_program *program)
{
        afz_completion_put_script(out, program, head);
        put_commands(out, program);
        for (const struct afz_command *const *at = program->commands; *at; at++) {
                if ((*at)->hidden)
                        continue;
                fprintf(out, "\n_%s-%s() {\n    _arguments -s -S \\\n", program->name, (*at)->name);
                put_options(out, program, (*at)->options);
                put_operands(out, program, *at);
                fputs("\n}\n", out);
        }
        afz_completion_put_script(out, program, dispatch_head);
        put_options(out, program, program->options);
        fputs(" \\\n", out);
        afz_completion_put_script(out, program, dispatch_tail);
}
