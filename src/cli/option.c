#include "option.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "quantity.h"
#include "suggest.h"

/* How much of a user's word an error quotes: enough to recognise it, and the way out still fits. */
#define QUOTED "'%.48s'"

const struct afz_option afz_option_help = {
        .name = "help",
        .letter = 'h',
        .help = "Show this help and exit.",
};

struct parser {
        const struct afz_option *rows;
        char **argv;
        int argc;
        int next; /* the argument to look at */
        char *values;
        struct afz_parsed parsed;
        struct afz_usage_error *error;
};

int afz_usage_error_set(struct afz_usage_error *error, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
        for (char *c = error->text; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        *c = '?';
        return -EINVAL;
}

size_t afz_options_count(const struct afz_option *rows)
{
        size_t count = 0;

        while (rows && rows[count].name)
                count++;
        return count;
}

bool afz_options_given(const struct afz_option *rows, uint64_t given, const char *name)
{
        for (size_t i = 0; rows && rows[i].name; i++)
                if (strcmp(rows[i].name, name) == 0)
                        return given >> i & 1;
        return false;
}

/* An example of each kind teaches more than its grammar would. */
static const char *const wants[] = {
        [AFZ_OPTION_FLAG] = "no value",
        [AFZ_OPTION_STRING] = "a value",
        [AFZ_OPTION_U64] = "a whole number",
        [AFZ_OPTION_SIZE] = "a size such as 512M or 12G",
        [AFZ_OPTION_SIZE_OR_PERCENT] = "a size such as 12G, or a share such as 75%",
        [AFZ_OPTION_DURATION] = "a duration such as 100ms or 30s",
};

static void list_choices(const struct afz_option *row, char *buf, size_t cap)
{
        size_t used = 0;

        buf[0] = '\0';
        for (size_t i = 0; row->choices[i] && used < cap; i++) {
                const char *joint = i == 0 ? "" : row->choices[i + 1] ? ", " : " or ";

                used += (size_t)snprintf(buf + used, cap - used, "%s%s", joint, row->choices[i]);
        }
}

char *afz_option_notes(const struct afz_option *row, char *buf, size_t cap)
{
        size_t used;

        buf[0] = '\0';
        if (row->choices)
                list_choices(row, buf, cap);
        used = strlen(buf);
        if (row->default_text)
                snprintf(buf + used, cap - used, "%sdefault %s", used ? "; " : "",
                         row->default_text);
        return buf;
}

/* The option as the user should write it, in front of what it wants and what it got. */
static int bad_value(const struct parser *p, const struct afz_option *row, const char *value)
{
        char choices[128];

        if (row->type != AFZ_OPTION_CHOICE)
                return afz_usage_error_set(p->error, "--%s wants %s, not " QUOTED, row->name,
                                           wants[row->type], value);
        list_choices(row, choices, sizeof choices);
        return afz_usage_error_set(p->error, "--%s wants %s, not " QUOTED, row->name, choices,
                                   value);
}

static int missing_value(const struct parser *p, const struct afz_option *row)
{
        char choices[128];

        if (row->type != AFZ_OPTION_CHOICE)
                return afz_usage_error_set(p->error, "--%s wants %s: --%s=%s", row->name,
                                           wants[row->type], row->name, row->arg);
        list_choices(row, choices, sizeof choices);
        return afz_usage_error_set(p->error, "--%s wants %s: --%s=%s", row->name, choices,
                                   row->name, row->arg);
}

static char *format_bound(const struct afz_option *row, uint64_t bound, char *buf, size_t cap)
{
        if (row->type == AFZ_OPTION_SIZE)
                return afz_format_size(buf, cap, bound);
        if (row->type == AFZ_OPTION_DURATION)
                return afz_format_duration(buf, cap, bound);
        snprintf(buf, cap, "%" PRIu64, bound);
        return buf;
}

static int out_of_range(const struct parser *p, const struct afz_option *row, const char *value)
{
        char min[24], max[24];

        format_bound(row, row->min, min, sizeof min);
        format_bound(row, row->max, max, sizeof max);
        if (row->max && row->min)
                return afz_usage_error_set(p->error, "--%s must be between %s and %s, not " QUOTED,
                                           row->name, min, max, value);
        if (row->max)
                return afz_usage_error_set(p->error, "--%s must be at most %s, not " QUOTED,
                                           row->name, max, value);
        return afz_usage_error_set(p->error, "--%s must be at least %s, not " QUOTED, row->name,
                                   min, value);
}

static int store_number(const struct parser *p, const struct afz_option *row, const char *value,
                        int (*parse)(const char *, uint64_t *))
{
        uint64_t number;
        int r = parse(value, &number);

        if (r == -ERANGE && row->max == 0)
                return afz_usage_error_set(p->error, "--%s is too large: " QUOTED, row->name,
                                           value);
        if (r == -ERANGE || (r == 0 && (number < row->min || (row->max && number > row->max))))
                return out_of_range(p, row, value);
        if (r < 0)
                return bad_value(p, row, value);
        memcpy(p->values + row->offset, &number, sizeof number);
        return 0;
}

static int store_size_or_percent(const struct parser *p, const struct afz_option *row,
                                 const char *value)
{
        struct afz_size_or_percent amount;
        int r = afz_parse_size_or_percent(value, &amount);

        if (r == -ERANGE && strchr(value, '%'))
                return afz_usage_error_set(p->error, "--%s must be at most 100%%, not " QUOTED,
                                           row->name, value);
        if (r == -ERANGE)
                return afz_usage_error_set(p->error, "--%s is too large: " QUOTED, row->name,
                                           value);
        if (r < 0)
                return bad_value(p, row, value);
        memcpy(p->values + row->offset, &amount, sizeof amount);
        return 0;
}

static int store_choice(const struct parser *p, const struct afz_option *row, const char *value)
{
        for (int i = 0; row->choices[i]; i++) {
                if (strcmp(row->choices[i], value) != 0)
                        continue;
                memcpy(p->values + row->offset, &i, sizeof i);
                return 0;
        }
        return bad_value(p, row, value);
}

static int store_string(const struct parser *p, const struct afz_option *row, const char *value)
{
        /* `--run-dir "$UNSET"` in a script is a mistake, and never means the current folder. */
        if (!*value && value != row->alone)
                return afz_usage_error_set(p->error, "--%s wants a value, not an empty one",
                                           row->name);
        memcpy(p->values + row->offset, &value, sizeof value);
        return 0;
}

static void store_flag(const struct parser *p, const struct afz_option *row, bool on)
{
        memcpy(p->values + row->offset, &on, sizeof on);
}

static int store_value(struct parser *p, const struct afz_option *row, const char *value)
{
        uint64_t bit = UINT64_C(1) << (row - p->rows);

        if (p->parsed.given & bit)
                return afz_usage_error_set(p->error, "--%s is given twice; keep one of them",
                                           row->name);
        p->parsed.given |= bit;
        switch (row->type) {
        case AFZ_OPTION_U64:
                return store_number(p, row, value, afz_parse_u64);
        case AFZ_OPTION_SIZE:
                return store_number(p, row, value, afz_parse_size);
        case AFZ_OPTION_DURATION:
                return store_number(p, row, value, afz_parse_duration);
        case AFZ_OPTION_SIZE_OR_PERCENT:
                return store_size_or_percent(p, row, value);
        case AFZ_OPTION_CHOICE:
                return store_choice(p, row, value);
        case AFZ_OPTION_STRING:
                return store_string(p, row, value);
        case AFZ_OPTION_FLAG:
                break;
        }
        return -EINVAL;
}

/* value is what was attached to the option (`=value` or the rest of a cluster), or NULL to take the
 * next argument. */
static int take_value(struct parser *p, const struct afz_option *row, const char *value)
{
        if (!value && p->next < p->argc)
                value = p->argv[p->next++];
        if (!value && !row->alone)
                return missing_value(p, row);
        return store_value(p, row, value ? value : row->alone);
}

static void set_flag(struct parser *p, const struct afz_option *row, bool on)
{
        p->parsed.given |= UINT64_C(1) << (row - p->rows);
        store_flag(p, row, on);
}

static bool name_is(const char *name, const char *text, size_t len)
{
        return strlen(name) == len && memcmp(name, text, len) == 0;
}

static const struct afz_option *find_name(const struct parser *p, const char *text, size_t len)
{
        for (const struct afz_option *row = p->rows; row && row->name; row++)
                if (name_is(row->name, text, len))
                        return row;
        return NULL;
}

static const struct afz_option *find_negated(const struct parser *p, const char *text, size_t len)
{
        const struct afz_option *row = NULL;

        if (len > 3 && memcmp(text, "no-", 3) == 0)
                row = find_name(p, text + 3, len - 3);
        return row && row->negatable ? row : NULL;
}

static int unknown_long(const struct parser *p, const char *text, size_t len)
{
        char typed[64];
        struct afz_suggestion near = {.typed = typed};

        snprintf(typed, sizeof typed, "%.*s", (int)(len < sizeof typed ? len : sizeof typed), text);
        afz_suggestion_offer(&near, afz_option_help.name);
        for (const struct afz_option *row = p->rows; row && row->name; row++)
                if (!row->hidden)
                        afz_suggestion_offer(&near, row->name);
        if (near.best)
                return afz_usage_error_set(p->error,
                                           "unknown option '--%.48s'; did you mean '--%s'?", typed,
                                           near.best);
        return afz_usage_error_set(p->error, "unknown option '--%.48s'; --help lists them", typed);
}

static int parse_long(struct parser *p, const char *text)
{
        size_t len = strcspn(text, "=");
        const char *value = text[len] ? text + len + 1 : NULL;
        const struct afz_option *row = find_name(p, text, len);
        const struct afz_option *negated = row ? NULL : find_negated(p, text, len);
        bool help = !row && name_is(afz_option_help.name, text, len);

        if (!row && !negated && !help)
                return unknown_long(p, text, len);
        if (row && row->type != AFZ_OPTION_FLAG)
                return take_value(p, row, value);
        if (value)
                return afz_usage_error_set(p->error, "--%.*s takes no value, but got " QUOTED,
                                           (int)len, text, value);
        if (help)
                p->parsed.help = true;
        else
                set_flag(p, row ? row : negated, row != NULL);
        return 0;
}

static const struct afz_option *find_letter(const struct parser *p, char letter)
{
        for (const struct afz_option *row = p->rows; row && row->name; row++)
                if (row->letter == letter)
                        return row;
        return NULL;
}

static int unknown_letter(const struct parser *p, const char *cluster, char letter)
{
        size_t len = strcspn(cluster, "=");

        /* `-json` is a slip of one dash, and reads as four letters. */
        if (len > 1 && find_name(p, cluster, len))
                return afz_usage_error_set(p->error, "unknown option '-%c'; did you mean '--%.*s'?",
                                           letter, (int)len, cluster);
        return afz_usage_error_set(p->error, "unknown option '-%c'; --help lists them", letter);
}

static int parse_cluster(struct parser *p, const char *cluster)
{
        for (const char *c = cluster; *c && !p->parsed.help; c++) {
                const struct afz_option *row = find_letter(p, *c);

                if (!row && *c == afz_option_help.letter)
                        p->parsed.help = true;
                else if (!row)
                        return unknown_letter(p, cluster, *c);
                else if (row->type == AFZ_OPTION_FLAG)
                        set_flag(p, row, true);
                else
                        return take_value(p, row, c[1] ? c + 1 : NULL);
        }
        return 0;
}

/* Options are read before operands are written over them, since operands only ever move down. */
static void keep_operand(struct parser *p, char *operand)
{
        p->argv[p->parsed.argc++] = operand;
}

int afz_options_parse(const struct afz_option *rows, enum afz_operand_order order, int argc,
                      char **argv, void *values, struct afz_parsed *ret,
                      struct afz_usage_error *error)
{
        struct parser p = {.rows = rows, .argv = argv, .argc = argc, .values = values};
        bool options_end = false;

        p.error = error;
        p.parsed.argv = argv;
        while (p.next < argc && !p.parsed.help) {
                char *word = argv[p.next++];
                bool is_operand = options_end || word[0] != '-' || !word[1];
                int r = 0;

                if (is_operand)
                        keep_operand(&p, word);
                else if (strcmp(word, "--") == 0)
                        options_end = true;
                else if (word[1] == '-')
                        r = parse_long(&p, word + 2);
                else
                        r = parse_cluster(&p, word + 1);
                if (r < 0)
                        return r;
                options_end |= is_operand && order == AFZ_OPERANDS_LAST;
        }
        argv[p.parsed.argc] = NULL;
        *ret = p.parsed;
        return 0;
}
