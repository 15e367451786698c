#ifndef AFZ_OPTION_H
#define AFZ_OPTION_H
/* Options are data: one row describes an option for the parser, the help text, the man page and the
 * shell completions.
 *
 * A table ends with a row whose name is NULL, so `{0}` closes it, and has at most AFZ_OPTIONS_MAX
 * rows. Each row stores into a field of the command's own options struct:
 *
 *         struct watch_options { uint64_t interval_ns; bool json; };
 *         static const struct afz_option watch_rows[] = {
 *                 {.name = "interval",
 *                  .letter = 'i',
 *                  .arg = "TIME",
 *                  .type = AFZ_OPTION_DURATION,
 *                  .offset = offsetof(struct watch_options, interval_ns),
 *                  .min = 10 * MS,
 *                  .default_text = "1s",
 *                  .help = "Time between two looks at the machine."},
 *                 {.name = "json",
 *                  .offset = offsetof(struct watch_options, json),
 *                  .help = "One JSON object a tick."},
 *                 {0},
 *         };
 *
 * What the parser accepts: `--name=value`, `--name value`, `-x value`, `-xvalue`, clusters of
 * letters (`-qj`), `--` to end the options, `-` alone as an operand. Names are never abbreviated,
 * because a script that abbreviates breaks when an option is added. `--help` and `-h` are always
 * there and need no row. A flag may be repeated; an option with a value may not, because which one
 * was meant is a guess.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AFZ_OPTIONS_MAX = 64 }; /* rows in a table: one bit each in afz_parsed.given */

/* What a row stores at its offset. */
enum afz_option_type {
        AFZ_OPTION_FLAG,            /* bool */
        AFZ_OPTION_STRING,          /* const char *, into argv */
        AFZ_OPTION_U64,             /* uint64_t */
        AFZ_OPTION_SIZE,            /* uint64_t, bytes */
        AFZ_OPTION_SIZE_OR_PERCENT, /* struct afz_size_or_percent (quantity.h) */
        AFZ_OPTION_DURATION,        /* uint64_t, ns */
        AFZ_OPTION_CHOICE,          /* int, the index in choices */
};

/* What a shell may offer for a value or an operand; several may be joined with |. */
enum afz_complete {
        AFZ_COMPLETE_PID = 1 << 0,     /* the user's processes */
        AFZ_COMPLETE_RUN = 1 << 1,     /* names in the folder of recorded runs */
        AFZ_COMPLETE_DIR = 1 << 2,     /* directories */
        AFZ_COMPLETE_FILE = 1 << 3,    /* files and directories */
        AFZ_COMPLETE_PROGRAM = 1 << 4, /* a program and then its own arguments */
        AFZ_COMPLETE_COMMAND = 1 << 5, /* Antifreeze's own commands */
};

struct afz_option {
        const char *name; /* long name without dashes */
        char letter;      /* 0: none */
        const char *arg;  /* "SIZE": how the value is called; NULL for a flag */
        const char *help; /* one or more sentences; wrapped where shown */
        enum afz_option_type type;
        size_t offset;              /* in the options struct */
        uint64_t min, max;          /* U64, SIZE, DURATION; max 0: no upper bound */
        const char *const *choices; /* CHOICE: ends with NULL */
        const char *default_text;   /* shown after the help; NULL: none */
        const char *alone;          /* STRING: its value as the last word; NULL: it wants one */
        unsigned complete;          /* enum afz_complete, for STRING */
        bool negatable;             /* FLAG: --no-NAME turns it off again */
        bool hidden;                /* works, but is shown and offered nowhere */
};

/* Where options end and operands begin. */
enum afz_operand_order {
        AFZ_OPERANDS_MIXED, /* options may follow operands; only `--` ends them */
        AFZ_OPERANDS_LAST,  /* the first operand ends the options: all that follows belongs to a
                               program to run */
};

struct afz_parsed {
        bool help;      /* --help was met; nothing after it was looked at */
        uint64_t given; /* bit i: row i was given */
        int argc;       /* operands */
        char **argv;    /* the operands, in order, ending with NULL like main's argv */
};

/* One line for the user, without prefix and newline; control characters of the input are replaced
 * by '?'. */
struct afz_usage_error {
        char text[256];
};

/* Parses argv[0..argc), which does not include the program's or command's name. values points to
 * the options struct and must hold the defaults beforehand; it is changed as rows are met, also
 * when a later argument fails. argv must have room for argc + 1 pointers, as main's has: operands
 * are moved together in place. 0, or -EINVAL with *error saying what is wrong and what to do. *ret
 * is set only on success. */
int afz_options_parse(const struct afz_option *rows, enum afz_operand_order order, int argc,
                      char **argv, void *values, struct afz_parsed *ret,
                      struct afz_usage_error *error);

/* Whether the option was on the command line (as opposed to its default standing). Unknown names
 * were not given. */
bool afz_options_given(const struct afz_option *rows, uint64_t given, const char *name);

/* Number of rows before the closing one; NULL has none. */
size_t afz_options_count(const struct afz_option *rows);

/* The row of --help and -h, which every command has, for those who show or offer options. */
extern const struct afz_option afz_option_help;

/* What is to be known beside the help: "watch, protect or adapt; default protect", "default 1s",
 * or "". Cut if it does not fit; returns buf. */
char *afz_option_notes(const struct afz_option *row, char *buf, size_t cap);

/* Fills *error like printf, keeping it to one printable line. Returns -EINVAL, so that it can be
 * returned. */
int afz_usage_error_set(struct afz_usage_error *error, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

#endif
