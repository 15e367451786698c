#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"
#include "optim.h"

enum value_kind { FLAG, COUNT, SIZE, REAL, CHOICE, TEXT };

struct row {
        const char *name;
        const char *value; /* how the help calls the value; in brackets: may be left out, and is
                              given by "=" only */
        enum value_kind kind;
        size_t field;
        uint64_t lowest, highest;
        uint64_t initial; /* the field's value when the option is not given */
        uint64_t implied; /* the value of an option with "[=…]" that is given without one */
        bool pitfall;
        const char *help;
};

#define KIB         UINT64_C(1024)
#define MIB         (1024 * KIB)
#define GIB         (1024 * MIB)
#define FIELD(name) offsetof(struct afz_options, name)

/* A billion is far beyond any machine, and products of two such still fit 64 bits. */
#define MANY UINT64_C(1000000000)

/* clang-format off */
static const struct row rows[] = {
        {.name = "epochs", .value = "N", .kind = COUNT, .field = FIELD(epochs), .lowest = 1, .highest = MANY, .initial = 5,
         .help = "rounds through the training set (5)"},
        {.name = "steps", .value = "N", .kind = COUNT, .field = FIELD(steps), .lowest = 1, .highest = MANY,
         .help = "stop after N steps"},
        {.name = "batch", .value = "N", .kind = COUNT, .field = FIELD(batch), .lowest = 1, .highest = MANY, .initial = 64,
         .help = "samples in a step (64); activations grow with it"},
        {.name = "lr", .value = "X", .kind = REAL, .field = FIELD(rate),
         .help = "learning rate (sgd 0.05, adam 0.001)"},
        {.name = "optimizer", .value = "NAME", .kind = CHOICE, .field = FIELD(optimizer), .initial = AFZ_OPTIM_ADAM,
         .help = "sgd or adam (adam)"},
        {.name = "seed", .value = "N", .kind = COUNT, .field = FIELD(seed), .highest = UINT64_MAX, .initial = 1,
         .help = "of the weights and the digits (1)"},
        {.name = "threads", .value = "N", .kind = COUNT, .field = FIELD(threads), .lowest = 1, .highest = 256, .initial = 1,
         .help = "that compute (1)"},
        {.name = "workers", .value = "N", .kind = COUNT, .field = FIELD(workers), .highest = 256,
         .help = "processes that draw batches ahead (0: none)"},
        {.name = "samples", .value = "N", .kind = COUNT, .field = FIELD(samples), .lowest = 1, .highest = MANY, .initial = 40000,
         .help = "size of the training set (40000)"},
        {.name = "log-every", .value = "N", .kind = COUNT, .field = FIELD(log_every), .lowest = 1, .highest = MANY,
         .help = "steps for each line (about 3200 samples)"},
        {.name = "data-dir", .value = "DIR", .kind = TEXT, .field = FIELD(data_dir),
         .help = "for logs and data files (a new one in $TMPDIR)"},
        {.name = "quiet", .kind = FLAG, .field = FIELD(quiet), .help = "print the last line only"},
        {.name = "list-pitfalls", .kind = FLAG, .field = FIELD(list_pitfalls), .help = "print the pitfalls, a line each"},
        {.name = "help", .kind = FLAG, .field = FIELD(help), .help = "print this text"},

        {.name = "retain-history", .value = "[BYTES]", .kind = SIZE, .field = FIELD(retain_history_bytes), .pitfall = true,
         .lowest = 1, .highest = UINT64_C(1) << 40, .implied = MIB,
         .help = "append each step's activations to a list that nothing empties (1M a step)"},
        {.name = "whole-dataset", .value = "[SIZE]", .kind = SIZE, .field = FIELD(whole_dataset_bytes), .pitfall = true,
         .lowest = 1, .highest = UINT64_C(1) << 42, .implied = GIB,
         .help = "load all samples before the first step, as double, then copy to float and keep both (1G)"},
        {.name = "large-batch", .value = "[N]", .kind = COUNT, .field = FIELD(large_batch), .pitfall = true,
         .lowest = 1, .highest = MANY, .implied = 32768,
         .help = "a batch whose activations fill memory in each step (32768 samples)"},
        {.name = "retain-intermediate", .kind = FLAG, .field = FIELD(retain_intermediate), .pitfall = true,
         .help = "keep outputs x outputs^T of every step"},
        {.name = "leaky-layer", .value = "[N]", .kind = COUNT, .field = FIELD(leaky_layers), .pitfall = true,
         .lowest = 1, .highest = 1000000, .implied = 64,
         .help = "N layers, each with a 4 MiB buffer that is no parameter (64)"},
        {.name = "spin", .value = "[STEP]", .kind = COUNT, .field = FIELD(spin_step), .pitfall = true,
         .lowest = 1, .highest = MANY, .implied = 500,
         .help = "after STEP, loop for ever on a tolerance that cannot be met (500)"},
        {.name = "deadlock", .value = "[STEP]", .kind = COUNT, .field = FIELD(deadlock_step), .pitfall = true,
         .lowest = 1, .highest = MANY, .implied = 500,
         .help = "after STEP, two threads take two locks in opposite order (500)"},
        {.name = "log-everything", .kind = FLAG, .field = FIELD(log_everything), .pitfall = true,
         .help = "write every activation of every step to a log file"},
        {.name = "slow-disk", .value = "[RATE]", .kind = SIZE, .field = FIELD(slow_disk_bytes), .pitfall = true,
         .lowest = 1, .highest = UINT64_C(1) << 40, .implied = 256 * KIB,
         .help = "read each sample from a file at RATE bytes a second, so that steps wait for data (256K)"},
};
/* clang-format on */

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static bool value_is_optional(const struct row *row)
{
        return row->value && row->value[0] == '[';
}

/* The text may quote an argument, so whatever would break the line or the terminal becomes a
 * question mark. */
__attribute__((format(printf, 2, 3))) static int refuse(char error[AFZ_OPTIONS_ERROR_SIZE],
                                                        const char *format, ...)
{
        va_list args;

        va_start(args, format);
        vsnprintf(error, AFZ_OPTIONS_ERROR_SIZE, format, args);
        va_end(args);
        for (unsigned char *p = (unsigned char *)error; *p; p++)
                if (*p < 0x20 || *p >= 0x7f)
                        *p = '?';
        return -EINVAL;
}

/* Digits only: strtoull would take blanks, a sign and base 16. *ret_end is the first character that
 * is no digit. */
static int parse_digits(const char *text, uint64_t *ret, const char **ret_end)
{
        uint64_t number = 0;
        const char *p = text;

        for (; *p >= '0' && *p <= '9'; p++)
                if (__builtin_mul_overflow(number, UINT64_C(10), &number) ||
                    __builtin_add_overflow(number, (uint64_t)(*p - '0'), &number))
                        return -ERANGE;
        if (p == text)
                return -EINVAL;
        *ret = number;
        *ret_end = p;
        return 0;
}

static int parse_count(const char *text, uint64_t *ret)
{
        uint64_t number;
        const char *end;
        const int rc = parse_digits(text, &number, &end);

        if (rc < 0)
                return rc;
        if (*end)
                return -EINVAL;
        *ret = number;
        return 0;
}

int afz_trainer_options_parse_size(const char *text, uint64_t *ret)
{
        static const struct {
                char letter;
                uint64_t bytes;
        } units[] = {{'\0', 1}, {'K', KIB}, {'M', MIB}, {'G', GIB}};
        uint64_t number, bytes;
        const char *end;
        const int rc = parse_digits(text, &number, &end);

        if (rc < 0)
                return rc;
        if (*end && end[1])
                return -EINVAL;
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
                if (*end != units[i].letter)
                        continue;
                if (__builtin_mul_overflow(number, units[i].bytes, &bytes))
                        return -ERANGE;
                *ret = bytes;
                return 0;
        }
        return -EINVAL;
}

/* A positive decimal number, as "0.01" or "1e-3". */
static int parse_real(const char *text, double *ret)
{
        char *end;

        if (!*text || strspn(text, "0123456789.eE+-") != strlen(text) || text[0] == '-' ||
            text[0] == '+')
                return -EINVAL;

        const double number = strtod(text, &end);

        if (*end)
                return -EINVAL;
        if (!isfinite(number) || !isfinite((float)number) || !((float)number > 0))
                return -ERANGE;
        *ret = number;
        return 0;
}

static int parse_optimizer(const char *text, uint64_t *ret)
{
        for (unsigned kind = 0; kind < AFZ_OPTIM_COUNT; kind++)
                if (strcmp(text, afz_optim_name((enum afz_optim_kind)kind)) == 0) {
                        *ret = kind;
                        return 0;
                }
        return -EINVAL;
}

static const char *const wanted[] = {
        [COUNT] = "a whole number",
        [SIZE] = "a size as 512K, 4M or 2G",
        [REAL] = "a positive number",
        [CHOICE] = "sgd or adam",
        [TEXT] = "a name",
};

static int store_value(struct afz_options *options, const struct row *row, const char *text,
                       char error[AFZ_OPTIONS_ERROR_SIZE])
{
        void *field = (char *)options + row->field;
        uint64_t number = 0;
        double real = 0;
        int rc = 0;

        switch (row->kind) {
        case TEXT:
                rc = *text ? 0 : -EINVAL;
                break;
        case REAL:
                rc = parse_real(text, &real);
                break;
        case CHOICE:
                rc = parse_optimizer(text, &number);
                break;
        case SIZE:
                rc = afz_trainer_options_parse_size(text, &number);
                break;
        default:
                rc = parse_count(text, &number);
        }
        if (rc == 0 && (row->kind == COUNT || row->kind == SIZE) &&
            (number < row->lowest || number > row->highest))
                rc = -ERANGE;
        if (rc == -ERANGE)
                return refuse(error, "--%s: %.60s is out of range", row->name, text);
        if (rc < 0)
                return refuse(error, "--%s wants %s, not '%.60s'", row->name, wanted[row->kind],
                              text);

        if (row->kind == TEXT)
                *(const char **)field = text;
        else if (row->kind == REAL)
                *(double *)field = real;
        else
                *(uint64_t *)field = number;
        return 0;
}

static const struct row *find_row(const char *name, size_t length)
{
        for (size_t i = 0; i < ROWS; i++)
                if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
                        return &rows[i];
        return NULL;
}

/* Takes one option, and its value where that is an argument of its own. Returns how many arguments
 * it took. */
static int parse_option(struct afz_options *options, char *const argv[],
                        char error[AFZ_OPTIONS_ERROR_SIZE])
{
        if (strcmp(argv[0], "-h") == 0) {
                options->help = true;
                return 1;
        }
        if (strncmp(argv[0], "--", 2) != 0 || !argv[0][2])
                return refuse(error, "unexpected argument '%.60s'; --help lists the options",
                              argv[0]);

        const char *name = argv[0] + 2;
        const size_t length = strcspn(name, "=");
        const char *value = name[length] ? name + length + 1 : NULL;
        const struct row *row = find_row(name, length);
        void *field;

        if (!row)
                return refuse(error, "unknown option '%.60s'; --help lists the options", argv[0]);
        field = (char *)options + row->field;
        if (row->kind == FLAG) {
                if (value)
                        return refuse(error, "--%s takes no value", row->name);
                *(bool *)field = true;
                return 1;
        }
        if (!value && value_is_optional(row)) {
                *(uint64_t *)field = row->implied;
                return 1;
        }
        if (value) {
                const int rc = store_value(options, row, value, error);

                return rc < 0 ? rc : 1;
        }
        if (!argv[1])
                return refuse(error, "--%s wants %s", row->name, wanted[row->kind]);

        const int rc = store_value(options, row, argv[1], error);

        return rc < 0 ? rc : 2;
}

static void settle(struct afz_options *options)
{
        /* A pixel as double and again as float. */
        const uint64_t sample_bytes = AFZ_DIGIT_PIXELS * (sizeof(double) + sizeof(float));

        if (options->large_batch)
                options->batch = options->large_batch;
        if (options->whole_dataset_bytes)
                options->samples = options->whole_dataset_bytes / sample_bytes;
        if (options->samples < options->batch)
                options->samples = options->batch;
        if (!options->log_every)
                options->log_every = options->batch < 3200 ? 3200 / options->batch : 1;
}

int afz_trainer_options_parse(int argc, char *const argv[], struct afz_options *ret,
                              char error[AFZ_OPTIONS_ERROR_SIZE])
{
        struct afz_options options = {0};

        for (size_t i = 0; i < ROWS; i++)
                if (rows[i].kind == COUNT || rows[i].kind == SIZE || rows[i].kind == CHOICE)
                        *(uint64_t *)(void *)((char *)&options + rows[i].field) = rows[i].initial;

        for (int i = 1; i < argc;) {
                const int taken = parse_option(&options, &argv[i], error);

                if (taken < 0)
                        return taken;
                i += taken;
        }
        if (options.whole_dataset_bytes && options.slow_disk_bytes)
                return refuse(error, "--whole-dataset and --slow-disk exclude each other");
        settle(&options);
        *ret = options;
        return 0;
}

static void print_rows(FILE *out, bool pitfall)
{
        for (size_t i = 0; i < ROWS; i++) {
                const struct row *row = &rows[i];
                char left[64];

                if (row->pitfall != pitfall)
                        continue;
                if (value_is_optional(row))
                        snprintf(left, sizeof(left), "--%s[=%.*s]", row->name,
                                 (int)strlen(row->value) - 2, row->value + 1);
                else
                        snprintf(left, sizeof(left), "--%s%s%s", row->name, row->value ? " " : "",
                                 row->value ? row->value : "");
                fprintf(out, "  %-25s %s\n", left, row->help);
        }
}

void afz_trainer_options_print_help(FILE *out)
{
        fputs("usage: afz-trainer [OPTION]...\n"
              "Trains a 784-1024-10 perceptron on digits that it draws itself.\n\n",
              out);
        print_rows(out, false);
        fputs("\nPitfalls, each one that real training programs fall into:\n", out);
        print_rows(out, true);
        fputs("\nSizes take K, M and G, of 1024. Exit status: 0 done, 1 failed, 2 wrong usage,\n"
              "128 + N stopped by signal N; a second signal of the same kind ends it at once.\n",
              out);
}

void afz_trainer_options_print_pitfalls(FILE *out)
{
        for (size_t i = 0; i < ROWS; i++)
                if (rows[i].pitfall)
                        fprintf(out, "%s\t%s\n", rows[i].name, rows[i].help);
}
