/* python: an interpreter that runs what it is given under `antifreeze run`. */
#include <errno.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "find_python.h"

#define OPTIONS_BYTES 1024 /* of run, as main has them */
enum { WORDS = 32 };       /* options of run in the environment */

static int exec_python(char *python, char **args, int argc)
{
        char **argv = calloc((size_t)argc + 2, sizeof *argv);
        if (!argv)
                return afz_fail(AFZ_EXIT_OWN, "python: no memory");
        argv[0] = python;
        memcpy(argv + 1, args, (size_t)argc * sizeof *argv);
        execv(python, argv);
        free(argv);
        return afz_fail(errno == ENOENT ? 127 : 126, "python: %s: %s", python, strerror(errno));
}

static int run_under(const struct afz_invocation *inv, char **argv, int argc)
{
        alignas(max_align_t) char options[OPTIONS_BYTES];
        const struct afz_command *run = afz_command_find(inv->program, "run");
        struct afz_usage_error error;
        struct afz_invocation own;
        if (!run || run->options_size > sizeof options)
                return afz_fail(AFZ_EXIT_OWN, "internal: python cannot run");
        if (afz_command_parse(inv->program, run, argc, argv, options, &own, &error) < 0)
                return afz_fail(AFZ_EXIT_OWN, "python: ANTIFREEZE_OPTIONS: %s", error.text);
        return run->run(&own);
}

/* All of it in one array: options from the environment, Python, its arguments. */
static int run_held(const struct afz_invocation *inv, char *python)
{
        const char *given = getenv("ANTIFREEZE_OPTIONS");
        char *words = strdup(given && *given ? given : "--quiet"), *rest = words;
        char **argv = calloc((size_t)inv->argc + WORDS + 3, sizeof *argv);
        int argc = 0, status = AFZ_EXIT_OWN;
        if (!words || !argv) {
                afz_say("python: no memory");
                goto out;
        }
        for (char *word; argc < WORDS && (word = strtok_r(rest, " \t\n", &rest));)
                argv[argc++] = word;
        argv[argc++] = (char[]){"--"};
        argv[argc++] = python;
        memcpy(argv + argc, inv->argv, (size_t)inv->argc * sizeof *argv);
        status = run_under(inv, argv, argc + inv->argc);
out:
        free(argv);
        free(words);
        return status;
}

/* A socket that is gone is of a run that is over: its environment was kept by somebody (a terminal
 * multiplexer, an IDE that was started inside). */
static bool is_held(void)
{
        const char *path = getenv("ANTIFREEZE_SOCKET");
        return path && *path && access(path, F_OK) == 0;
}

static int run_python(const struct afz_invocation *inv)
{
        char python[1024];
        const char *link = getenv("ANTIFREEZE_LINK");
        int r = afz_find_python(link, python, sizeof python);
        (void)unsetenv("ANTIFREEZE_LINK");
        if (r < 0)
                return afz_fail(127, "python: no python3 or python was found beside this program, "
                                     "in VIRTUAL_ENV or on PATH; ANTIFREEZE_PYTHON names one");
        /* What is inside of a run is held already. */
        if (is_held() || !afz_python_is_program((const char *const *)inv->argv))
                return exec_python(python, inv->argv, inv->argc);
        return run_held(inv, python);
}

static const struct afz_operand operands[] = {
        {.name = "ARG", .complete = AFZ_COMPLETE_FILE, .optional = true, .repeats = true},
        {0},
};

static const struct afz_example examples[] = {
        {"antifreeze python train.py", "As `antifreeze run --quiet -- python train.py`."},
        {"ln -s $(command -v antifreeze) .venv/bin/antifreeze-python",
         "Makes an interpreter of it that an IDE can be told to use."},
        {"ANTIFREEZE_OPTIONS='--budget 8G --policy adapt' antifreeze python train.py",
         "With options of run."},
        {0},
};

const struct afz_command afz_command_python = {
        .name = "python",
        .summary = "Python, with every program that it runs held",
        .description =
                "Runs the Python of the active virtual environment (else that of PATH) with the "
                "arguments that follow, under `antifreeze run`. All of them are Python's own; "
                "options of run come from the environment's ANTIFREEZE_OPTIONS.\n\n"
                "Where a program is started by a button and no command can be put in front of it, "
                "make a link named antifreeze-python to this program, best in the bin folder of "
                "the virtual environment, and choose it as the interpreter: it runs the Python "
                "beside it. What an IDE asks an interpreter all day (its version, a line of code, "
                "what pip has) is passed on and not held, and neither is a Python inside of a run: "
                "that is held already.",
        .operands = operands,
        .examples = examples,
        .usage_status = AFZ_EXIT_OWN,
        .raw = true,
        .run = run_python,
};
