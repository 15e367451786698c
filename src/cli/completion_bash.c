#include "completion_parts.h"

/* Works without the bash-completion package, and hands over to it where a program's own arguments
 * are completed. */

/* A line of C is a line of the script. */
/* clang-format off */
static const char head[] =
        "# bash completion for ^, made by '^ completion bash'.\n"
        "\n"
        "# In 'offer': words stand for themselves, :kinds for what is looked up.\n";

static const char walk[] =
        "\n"
        "# Puts into COMPREPLY what 'offer' holds and begins with $cur.\n"
        "_^_reply() {\n"
        "    local word found\n"
        "    local -a words=()\n"
        "    for word in \"${offer[@]}\"; do\n"
        "        case $word in\n"
        "        :pid) for found in $(pgrep -u \"$EUID\" 2>/dev/null); do words+=(\"$found\"); done ;;\n"
        "        :run)\n"
        "            for found in \"${XDG_STATE_HOME:-$HOME/.local/state}\"/^/runs/*/; do\n"
        "                [[ -d $found ]] || continue\n"
        "                found=${found%/}\n"
        "                found=${found##*/}\n"
        "                # bash would put $(...) into the line as it stands\n"
        "                [[ $found == *[!A-Za-z0-9._-]* ]] && continue\n"
        "                words+=(\"$found\")\n"
        "                # a run may be called by its last letters\n"
        "                [[ -n $cur && $found == *-\"$cur\" ]] && COMPREPLY+=(\"$prefix$found\")\n"
        "            done\n"
        "            ;;\n"
        "        :dir | :file)\n"
        "            compopt -o filenames 2>/dev/null\n"
        "            while IFS= read -r found; do\n"
        "                COMPREPLY+=(\"$prefix$found\")\n"
        "            done < <(if [[ $word == :dir ]]; then compgen -d -- \"$cur\"; else compgen -f -- \"$cur\"; fi)\n"
        "            ;;\n"
        "        :command) words+=(\"${commands[@]}\") ;;\n"
        "        *) words+=(\"$word\") ;;\n"
        "        esac\n"
        "    done\n"
        "    for word in \"${words[@]}\"; do\n"
        "        [[ $word == \"$cur\"* ]] && COMPREPLY+=(\"$prefix$word\")\n"
        "    done\n"
        "    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then\n"
        "        compopt -o nospace 2>/dev/null\n"
        "    fi\n"
        "    return 0\n"
        "}\n"
        "\n"
        "# The words from number $1 on are another program and its arguments.\n"
        "_^_program() {\n"
        "    local found kind=-f\n"
        "    if declare -F _comp_command_offset >/dev/null; then\n"
        "        _comp_command_offset \"$1\"\n"
        "        return\n"
        "    elif declare -F _command_offset >/dev/null; then\n"
        "        _command_offset \"$1\"\n"
        "        return\n"
        "    fi\n"
        "    [[ $1 -eq $COMP_CWORD ]] && kind=-c\n"
        "    compopt -o filenames 2>/dev/null\n"
        "    while IFS= read -r found; do COMPREPLY+=(\"$found\"); done < <(compgen \"$kind\" -- \"$cur\")\n"
        "}\n"
        "\n"
        "_^() {\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} prefix='' command='' option='' ended='' word\n"
        "    local -i i operands=0\n"
        "    local -a offer=() commands=()\n"
        "    local IFS=$' \\t\\n'\n"
        "    COMPREPLY=()\n"
        "    _^_commands\n"
        "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
        "        word=${COMP_WORDS[i]}\n"
        "        if [[ -n $option ]]; then\n"
        "            # bash hands over --name=value in three words\n"
        "            [[ $word == '=' ]] || option=''\n"
        "        elif [[ -z $ended && $word == -- ]]; then\n"
        "            ended=1\n"
        "        elif [[ -z $ended && $word == -?* ]]; then\n"
        "            _^_value \"$command\" \"$word\" && option=$word\n"
        "        elif [[ -z $command ]]; then\n"
        "            command=$word\n"
        "        else\n"
        "            _^_operand \"$command\" \"$operands\"\n"
        "            if [[ ${offer[*]} == :program ]]; then\n"
        "                _^_program \"$i\"\n"
        "                return\n"
        "            fi\n"
        "            operands+=1\n"
        "        fi\n"
        "    done\n"
        "    if [[ -n $option && $cur == '=' ]]; then\n"
        "        cur=''\n"
        "    elif [[ -z $option && -z $ended && $cur == --*=* ]]; then\n"
        "        option=${cur%%=*}\n"
        "        prefix=$option=\n"
        "        cur=${cur#*=}\n"
        "    fi\n"
        "    offer=()\n"
        "    if [[ -n $option ]]; then\n"
        "        _^_value \"$command\" \"$option\"\n"
        "    elif [[ -z $ended && $cur == -* ]]; then\n"
        "        _^_options \"$command\"\n"
        "    elif [[ -z $command ]]; then\n"
        "        offer=(:command)\n"
        "    else\n"
        "        _^_operand \"$command\" \"$operands\"\n"
        "        if [[ ${offer[*]} == :program ]]; then\n"
        "            _^_program \"$COMP_CWORD\"\n"
        "            return\n"
        "        fi\n"
        "    fi\n"
        "    _^_reply\n"
        "}\n"
        "\n"
        "complete -F _^ ^\n";
/* clang-format on */

static void put_offer(FILE *out, const char *const *choices, unsigned complete)
{
        const char *joint = "";

        fputs(" offer=(", out);
        for (; choices && *choices; choices++, joint = " ")
                fprintf(out, "%s%s", joint, *choices);
        for (const struct afz_completion_kind *kind = afz_completion_kinds; kind->bit; kind++) {
                if (!(complete & kind->bit))
                        continue;
                fprintf(out, "%s:%s", joint, kind->word);
                joint = " ";
        }
        fputs(") ;;\n", out);
}

static void put_values_of(FILE *out, const char *command, const struct afz_option *rows)
{
        for (const struct afz_option *row = rows; row && row->name; row++) {
                if (row->hidden || row->type == AFZ_OPTION_FLAG)
                        continue;
                fprintf(out, "    '%s --%s'", command, row->name);
                if (row->letter)
                        fprintf(out, " | '%s -%c'", command, row->letter);
                fputc(')', out);
                put_offer(out, row->choices, row->complete);
        }
}

static void put_operands_of(FILE *out, const struct afz_command *command)
{
        int i = 0;

        for (const struct afz_operand *at = command->operands; at && at->name; at++, i++) {
                if (at->repeats)
                        fprintf(out, "    '%s '*)", command->name);
                else
                        fprintf(out, "    '%s %d')", command->name, i);
                put_offer(out, at->choices, at->complete);
        }
}

static void put_options_of(FILE *out, const char *command, const struct afz_option *rows)
{
        fprintf(out, "    '%s') offer=(", command);
        for (const struct afz_option *row = rows; row && row->name; row++) {
                if (row->hidden)
                        continue;
                fprintf(out, "--%s%s ", row->name, row->type == AFZ_OPTION_FLAG ? "" : "=");
                if (row->negatable)
                        fprintf(out, "--no-%s ", row->name);
        }
        fprintf(out, "--%s) ;;\n", afz_option_help.name);
}

static void put_commands(FILE *out, const struct afz_program *program)
{
        afz_completion_put_script(out, program, "_^_commands() {\n    commands=(");
        for (const struct afz_command *const *at = program->commands; *at; at++)
                if (!(*at)->hidden)
                        fprintf(out, "%s ", (*at)->name);
        fputs(")\n}\n", out);
}

void afz_completion_bash(FILE *out, const struct afz_program *program)
{
        const struct afz_command *const *at;

        afz_completion_put_script(out, program, head);
        put_commands(out, program);
        afz_completion_put_script(out, program, "\n_^_options() {\n    case $1 in\n");
        put_options_of(out, "", program->options);
        for (at = program->commands; *at; at++)
                if (!(*at)->hidden)
                        put_options_of(out, (*at)->name, (*at)->options);
        afz_completion_put_script(out, program,
                                  "    esac\n}\n\n_^_value() {\n    case \"$1 $2\" in\n");
        put_values_of(out, "", program->options);
        for (at = program->commands; *at; at++)
                if (!(*at)->hidden)
                        put_values_of(out, (*at)->name, (*at)->options);
        afz_completion_put_script(out, program,
                                  "    *) return 1 ;;\n    esac\n}\n\n_^_operand() {\n"
                                  "    case \"$1 $2\" in\n");
        for (at = program->commands; *at; at++)
                if (!(*at)->hidden)
                        put_operands_of(out, *at);
        fputs("    *) _", out);
        afz_completion_put_script(out, program, "^_options \"$1\" ;;\n    esac\n}\n");
        afz_completion_put_script(out, program, walk);
}
