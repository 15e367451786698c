#ifndef AFZ_COMMAND_H
#define AFZ_COMMAND_H
/* A command is a row: its operands, options, words and the function that runs it. Help, the man
 * page and the completions are made from these rows, so that they cannot say something else than
 * the parser does.
 *
 * All texts are plain: no mark-up, paragraphs separated by an empty line; they are wrapped and
 * escaped where they are shown. Every table ends with a row whose first field is NULL, so `{0}`
 * closes it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "option.h"

struct afz_program;
struct afz_command;

/* Exit statuses that scripts rely on. */
enum {
        AFZ_EXIT_USAGE = 2, /* a usage error of most commands */
        AFZ_EXIT_OWN = 125, /* own failure, or a usage error of a command that passes on another
                               program's status */
};

/* One operand in its place. Required ones come before optional ones; only the last may repeat. */
struct afz_operand {
        const char *name;           /* "PID" */
        unsigned complete;          /* enum afz_complete */
        const char *const *choices; /* words to offer, or NULL; the command itself checks them */
        bool optional;
        bool repeats; /* one or more (or none, if optional); with AFZ_COMPLETE_PROGRAM it ends the
                         options */
};

struct afz_example {
        const char *line; /* "antifreeze watch 4242" */
        const char *help; /* what it does */
};

/* What a command's function is given. All of it lives at least until the function returns. */
struct afz_invocation {
        const struct afz_program *program;
        const struct afz_command *command;
        const void *options; /* the command's options struct, filled in */
        uint64_t given;      /* see afz_invocation_given() */
        bool help;           /* --help was asked for: show it instead of running */
        int argc;
        char **argv; /* operands, as many as the rows allow, ending with NULL */
};

struct afz_command {
        const char *name;
        const char *summary;     /* one line, no full stop: "show the machine and a job live" */
        const char *description; /* paragraphs for the man page and --help */
        const struct afz_operand *operands; /* NULL: none */
        const struct afz_option *options;   /* NULL: none but --help */
        const struct afz_example *examples; /* NULL: none */
        size_t options_size;                /* of the options struct; 0: none */
        const void *defaults;               /* an options struct; NULL: all zero */
        int usage_status; /* exit status of a usage error; 0 means AFZ_EXIT_USAGE */
        bool hidden;      /* works, but is shown and offered nowhere */
        bool raw;         /* all that follows is another program's; only --help alone is ours */
        int (*run)(const struct afz_invocation *); /* returns the exit status */
};

struct afz_note {
        const char *term; /* "NO_COLOR", "125", "~/.local/state/antifreeze" */
        const char *text;
};

/* Everything that is told about the program as a whole. */
struct afz_program {
        const char *name;
        const char *version;
        const char *date;        /* of the man page, "2025-01-31"; "" if unknown */
        const char *summary;     /* one line, no full stop */
        const char *description; /* paragraphs */
        const struct afz_command *const *commands; /* ends with NULL */
        const struct afz_option *options;          /* before the command: --version */
        const struct afz_note *exit_status;
        const struct afz_note *environment;
        const struct afz_note *files;
        const struct afz_example *examples;
        const char *const *see_also; /* "systemd-oomd(8)"; ends with NULL */
};

/* The command of that exact name, hidden ones too, or NULL. */
const struct afz_command *afz_command_find(const struct afz_program *program, const char *name);

/* -EINVAL, after putting "unknown command 'wathc'; did you mean 'watch'?" into *error. */
int afz_command_unknown(const struct afz_program *program, const char *name,
                        struct afz_usage_error *error);

/* Parses what follows the command's name into *ret. values is storage for the options struct,
 * suitably aligned and at least command->options_size large; the defaults are put there first. Too
 * few or too many operands are errors, unless help was asked for. 0 or -EINVAL, as
 * afz_options_parse(). */
int afz_command_parse(const struct afz_program *program, const struct afz_command *command,
                      int argc, char **argv, void *values, struct afz_invocation *ret,
                      struct afz_usage_error *error);

/* Whether an option was on the command line. */
bool afz_invocation_given(const struct afz_invocation *invocation, const char *name);

/* Whether an operand is another program's command line, so that options after it are not ours. */
bool afz_command_runs_program(const struct afz_command *command);

/* How its operands are written: "", "[PID]", "DIR [PID]", "-- CMD...". Cut if it does not fit;
 * returns buf. */
char *afz_command_operands(const struct afz_command *command, char *buf, size_t cap);

/* The exit status for a usage error of this command; NULL for an error before any command is known.
 */
int afz_command_usage_status(const struct afz_command *command);

/* Looks for mistakes in the tables that a compiler cannot see: two options of one name or letter, a
 * value without a name, a field outside the options struct, an operand that can never be reached.
 * 0, or -EINVAL with *error naming the row. Meant for a test; nothing at run time needs it. */
int afz_program_check(const struct afz_program *program, struct afz_usage_error *error);

#endif
