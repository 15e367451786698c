#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "commands.h"
#include "find_python.h"
#include "help.h"
#include "program.h"
#include "version.h"

/* Room for any command's options. */
#define OPTIONS_BYTES 1024

struct globals {
        bool version;
};

static const struct afz_option global_rows[] = {
        {.name = "version",
         .letter = 'V',
         .offset = offsetof(struct globals, version),
         .help = "Print the version, and which parts and libraries are there."},
        {0},
};

static int run_command(const struct afz_program *program, int argc, char **argv)
{
        alignas(max_align_t) char options[OPTIONS_BYTES];
        struct afz_usage_error error;
        struct afz_invocation invocation;
        const struct afz_command *command = afz_command_find(program, argv[0]);
        if (!command) {
                afz_command_unknown(program, argv[0], &error);
                return afz_fail(AFZ_EXIT_USAGE, "%s", error.text);
        }
        if (command->options_size > sizeof options)
                return afz_fail(AFZ_EXIT_OWN, "internal: options of %s do not fit", command->name);
        if (afz_command_parse(program, command, argc - 1, argv + 1, options, &invocation, &error) <
            0)
                return afz_fail(afz_command_usage_status(command), "%s: %s", command->name,
                                error.text);
        if (invocation.help)
                return afz_help_command(stdout, program, command, afz_columns()) < 0
                               ? AFZ_EXIT_USAGE
                               : 0;
        return command->run(&invocation);
}

/* Started as antifreeze-python: all arguments are Python's, and the link's own place says which. */
static int run_as_python(const struct afz_program *program, int argc, char **argv)
{
        char name[] = "python";
        if (setenv("ANTIFREEZE_LINK", argv[0], 1) < 0)
                return afz_fail(AFZ_EXIT_OWN, "python: no memory");
        argv[0] = name;
        return run_command(program, argc, argv);
}

/* What demo starts. It is in here so that a demo needs nothing but this file, and it is called by a
 * name of its own, as the program of somebody else would be. */
static int run_trainer(int argc, char **argv)
{
        (void)prctl(PR_SET_NAME, "afz-trainer");
        return afz_trainer_main(argc, argv);
}

int main(int argc, char **argv)
{
        struct afz_program program = afz_program;
        struct globals globals = {0};
        struct afz_usage_error error;
        struct afz_parsed parsed;
        program.options = global_rows;
        if (argc > 0 && afz_python_is_link(argv[0]))
                return run_as_python(&program, argc, argv);
        if (argc > 1 && strcmp(argv[1], AFZ_TRAINER_NAME) == 0)
                return run_trainer(argc - 1, argv + 1);
        if (argc < 1 || afz_options_parse(global_rows, AFZ_OPERANDS_LAST, argc - 1, argv + 1,
                                          &globals, &parsed, &error) < 0)
                return afz_fail(AFZ_EXIT_USAGE, "%s", argc < 1 ? "no arguments" : error.text);
        if (globals.version) {
                afz_version_print(stdout);
                if (fflush(stdout) != 0 || ferror(stdout))
                        return afz_fail(AFZ_EXIT_USAGE, "cannot write to stdout");
                return 0;
        }
        if (parsed.help)
                return afz_help_program(stdout, &program, afz_columns()) < 0 ? AFZ_EXIT_USAGE : 0;
        if (parsed.argc == 0) {
                (void)afz_help_program(stderr, &program, afz_columns());
                return AFZ_EXIT_USAGE;
        }
        return run_command(&program, parsed.argc, parsed.argv);
}
