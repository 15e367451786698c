/* What changed between two runs of the same command. Pure. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "count_of.h"
#include "history.h"
#include "out.h"
#include "quantity.h"
#include "secret.h"
#include "span.h"

enum {
        WORDS = 512,    /* of a command line; what follows is not compared */
        SHOWN = 4,      /* arguments that are named; the others are counted */
        VALUE_CAP = 41, /* of a value, as it is shown */
};

/* Less is how the same run differs from day to day. Parts of 100. */
static const struct {
        uint64_t peak, budget;
} noise = {.peak = 5, .budget = 10};

/* ---- which command it is ---- */

static const char *const script_ends[] = {".py",  ".ipynb", ".sh", ".jl", ".R",  ".r",
                                          ".lua", ".pl",    ".rb", ".js", ".ts", ".m"};

struct words {
        size_t count;
        struct afz_span word[WORDS];
};

static void split(const char *cmd, struct words *ret)
{
        struct afz_span text = afz_span_str(cmd);
        ret->count = 0;
        while (ret->count < WORDS && afz_span_take_word(&text, &ret->word[ret->count]) == 0)
                ret->count++;
        /* The record cuts long ones: the last word may be half of one. */
        if (strlen(cmd) == AFZ_RUN_CMD_CAP - 1 && ret->count > 1)
                ret->count--;
}

static bool is_script(struct afz_span word)
{
        for (size_t i = 0; i < AFZ_COUNT_OF(script_ends); i++)
                if (word.n > 0 && *word.p != '-' && afz_span_ends(word, script_ends[i]))
                        return true;
        return false;
}

static bool same_text(struct afz_span a, struct afz_span b)
{
        return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* "python3.11" and "python" are the same program. */
static struct afz_span program_of(const struct words *w)
{
        struct afz_span name = w->count ? afz_span_base_name(w->word[0]) : AFZ_SPAN("");
        if (afz_span_starts(name, "python"))
                name.n = strlen("python");
        return name;
}

/* Who takes code on the command line, behind which letter. */
static const struct {
        const char *program;
        char letter;
        bool shell;
} coded[] = {
        {"python", 'c', false}, {"perl", 'e', false},    {"ruby", 'e', false}, {"node", 'e', false},
        {"julia", 'e', false},  {"Rscript", 'e', false}, {"sh", 'c', true},    {"bash", 'c', true},
        {"dash", 'c', true},    {"zsh", 'c', true},      {"ksh", 'c', true},   {"fish", 'c', true},
};

/* The words that say what is run; to == 0: the program itself does. */
struct subject {
        size_t from, to;
};

static size_t first_script(const struct words *w, size_t from)
{
        while (from < w->count && !is_script(w->word[from]))
                from++;
        return from;
}

/* What stands behind -c, -lc, -e: where it ends and its arguments begin is not to be seen any more,
 * so that all of it counts. What a shell is told to run counts up to the script in it. */
static bool is_code(const struct words *w, size_t i, struct subject *ret)
{
        struct afz_span program = program_of(w), word = w->word[i];
        if (i + 1 >= w->count || word.n < 2 || *word.p != '-' || word.p[1] == '-')
                return false;
        for (size_t k = 0; k < AFZ_COUNT_OF(coded); k++) {
                if (!afz_span_eq(program, coded[k].program) ||
                    word.p[word.n - 1] != coded[k].letter)
                        continue;
                size_t script = coded[k].shell ? first_script(w, i + 1) : w->count;
                *ret = (struct subject){i + 1, script < w->count ? script + 1 : w->count};
                return true;
        }
        return false;
}

/* A script, the module behind -m, code; else the program itself. */
static struct subject subject_of(const struct words *w)
{
        struct subject ret = {0};
        for (size_t i = 1; i < w->count; i++) {
                if (i + 1 < w->count && afz_span_eq(w->word[i], "-m") &&
                    afz_span_eq(program_of(w), "python"))
                        return (struct subject){i + 1, i + 2};
                if (is_code(w, i, &ret))
                        return ret;
                if (is_script(w->word[i]))
                        return (struct subject){i, i + 1};
        }
        return ret;
}

bool afz_history_same(const char *cmd, const char *other)
{
        struct words a, b;
        split(cmd, &a);
        split(other, &b);
        struct subject i = subject_of(&a), k = subject_of(&b);
        if (a.count == 0 || b.count == 0 || !same_text(program_of(&a), program_of(&b)) ||
            i.to - i.from != k.to - k.from)
                return false;
        if (i.to - i.from == 1)
                return same_text(afz_span_base_name(a.word[i.from]),
                                 afz_span_base_name(b.word[k.from]));
        for (size_t n = 0; n < i.to - i.from; n++)
                if (!same_text(a.word[i.from + n], b.word[k.from + n]))
                        return false;
        return true;
}

bool afz_history_matches(const char *cmd, const char *wanted)
{
        struct words have, want;
        split(cmd, &have);
        split(wanted, &want);
        if (have.count == 0 || want.count == 0)
                return false;
        if (want.count > 1 || is_script(want.word[0]) == false) {
                if (!same_text(program_of(&have), program_of(&want)))
                        return false;
                return want.count == 1 || afz_history_same(cmd, wanted);
        }
        struct subject what = subject_of(&have);
        size_t last = what.to ? what.to - 1 : 0;
        return same_text(afz_span_base_name(have.word[last]), afz_span_base_name(want.word[0]));
}

/* ---- its arguments ---- */

struct argument {
        struct afz_span name, value; /* of an option, as it was written; name "": by its place */
        unsigned nth;                /* of those of this name */
        bool matched;
};

struct arguments {
        size_t count;
        struct argument arg[WORDS];
};

static bool is_option(struct afz_span word)
{
        return word.n > 1 && *word.p == '-' && !afz_is_digit(word.p[1]) && word.p[1] != '.';
}

/* "key" of "key=value" and "--key=value". */
static bool cut_value(struct afz_span word, struct argument *ret)
{
        const char *equals = word.n ? memchr(word.p, '=', word.n) : NULL;
        if (!equals || equals == word.p)
                return false;
        for (const char *c = word.p; c < equals; c++)
                if (!isalnum((unsigned char)*c) && !strchr("-_.+", *c))
                        return false;
        size_t n = (size_t)(equals - word.p);
        ret->name = (struct afz_span){word.p, n};
        ret->value = (struct afz_span){equals + 1, word.n - n - 1};
        return true;
}

static void read_arguments(const struct words *w, struct arguments *ret)
{
        struct subject what = subject_of(w);
        ret->count = 0;
        for (size_t i = 1; i < w->count; i++) {
                struct argument *arg = &ret->arg[ret->count];
                if (i >= what.from && i < what.to)
                        continue;
                *arg = (struct argument){.name = {"", 0}, .value = {"", 0}};
                if (!cut_value(w->word[i], arg)) {
                        if (!is_option(w->word[i])) {
                                arg->value = w->word[i];
                        } else {
                                arg->name = w->word[i];
                                if (i + 1 < w->count && i + 1 != what.from &&
                                    !is_option(w->word[i + 1]))
                                        arg->value = w->word[++i];
                        }
                }
                for (size_t k = 0; k < ret->count; k++)
                        arg->nth += same_text(ret->arg[k].name, arg->name);
                ret->count++;
        }
}

static struct argument *counterpart(struct arguments *in, const struct argument *arg)
{
        for (size_t i = 0; i < in->count; i++)
                if (same_text(in->arg[i].name, arg->name) && in->arg[i].nth == arg->nth)
                        return &in->arg[i];
        return NULL;
}

/* ---- telling ---- */

struct telling {
        struct afz_out *out;
        unsigned count, arguments;
};

/* The comma before the next difference. */
static void next(struct telling *t)
{
        if (t->count++ > 0)
                afz_out_str(t->out, ", ");
}

/* One value, short and printable, its secrets hidden. */
static const char *shown(struct afz_span value, char buf[VALUE_CAP])
{
        char text[1024];
        struct afz_out out = afz_out_to(-1, text, sizeof text - 1);
        afz_secret_put(&out, value);
        size_t n = afz_span_copy((struct afz_span){text, out.len}, buf, VALUE_CAP);
        if (out.len > n)
                memcpy(buf + n - 3, "...", 3);
        return buf;
}

static struct afz_span without_dashes(struct afz_span name)
{
        while (name.n > 1 && *name.p == '-')
                name = (struct afz_span){name.p + 1, name.n - 1};
        return name;
}

static void tell_other_value(struct telling *t, const struct argument *a, const struct argument *b)
{
        char name[VALUE_CAP], from[VALUE_CAP], to[VALUE_CAP];
        if (t->arguments++ >= SHOWN)
                return;
        next(t);
        shown(without_dashes(b->name), name);
        if (b->name.n > 0 && afz_secret_is_name(b->name))
                afz_out_fmt(t->out, "%s changed", name);
        else
                afz_out_fmt(t->out, "%s%s%s -> %s", name, name[0] ? " " : "",
                            a->value.n ? shown(a->value, from) : "(none)",
                            b->value.n ? shown(b->value, to) : "(none)");
}

static void tell_one_sided(struct telling *t, const char *word, const struct argument *arg)
{
        char name[VALUE_CAP], value[VALUE_CAP];
        bool secret = arg->name.n > 0 && afz_secret_is_name(arg->name);
        if (t->arguments++ >= SHOWN)
                return;
        next(t);
        shown(arg->name, name);
        shown(arg->value, value);
        afz_out_fmt(t->out, "%s %s%s%s", word, name, name[0] && value[0] && !secret ? " " : "",
                    secret ? "" : value);
}

static void tell_arguments(struct telling *t, const char *before, const char *now)
{
        struct words words;
        struct arguments *a = malloc(sizeof *a), *b = malloc(sizeof *b);
        if (a && b) {
                split(before, &words);
                read_arguments(&words, a);
                split(now, &words);
                read_arguments(&words, b);
                for (size_t i = 0; i < b->count; i++) {
                        struct argument *was = counterpart(a, &b->arg[i]);
                        if (!was)
                                tell_one_sided(t, "with", &b->arg[i]);
                        else if (!same_text(was->value, b->arg[i].value))
                                tell_other_value(t, was, &b->arg[i]);
                        if (was)
                                was->matched = true;
                }
                for (size_t i = 0; i < a->count; i++)
                        if (!a->arg[i].matched)
                                tell_one_sided(t, "without", &a->arg[i]);
        }
        if (t->arguments > SHOWN) {
                next(t);
                afz_out_fmt(t->out, "%u more argument%s", t->arguments - SHOWN,
                            t->arguments - SHOWN == 1 ? "" : "s");
        }
        free(a);
        free(b);
}

static bool differs(uint64_t a, uint64_t b, uint64_t percent)
{
        uint64_t more = a > b ? a : b, apart = a > b ? a - b : b - a;
        return a != UINT64_MAX && b != UINT64_MAX && apart > more / 100 * percent && apart > 0;
}

static void tell_bytes(struct telling *t, const char *what, uint64_t a, uint64_t b, bool difference)
{
        char from[AFZ_SIZE_TEXT_CAP], to[AFZ_SIZE_TEXT_CAP], apart[AFZ_SIZE_TEXT_CAP];
        next(t);
        afz_out_fmt(t->out, "%s %s -> %s", what, afz_format_size(from, sizeof from, a),
                    afz_format_size(to, sizeof to, b));
        if (difference)
                afz_out_fmt(t->out, " (%c%s)", b > a ? '+' : '-',
                            afz_format_size(apart, sizeof apart, b > a ? b - a : a - b));
}

unsigned afz_history_diff(const struct afz_history_run *before, const struct afz_history_run *now,
                          char text[AFZ_CHANGED_CAP])
{
        struct afz_out out = afz_out_to(-1, text, AFZ_CHANGED_CAP - 1);
        struct telling t = {.out = &out};
        char from[VALUE_CAP], to[VALUE_CAP];

        tell_arguments(&t, before->cmd, now->cmd);
        if (before->git[0] && now->git[0] && strcmp(before->git, now->git) != 0) {
                next(&t);
                shown(afz_span_str(before->git), from);
                afz_out_fmt(&out, "revision %.12s -> %.12s", from,
                            shown(afz_span_str(now->git), to));
        }
        if (differs(before->budget_bytes, now->budget_bytes, noise.budget))
                tell_bytes(&t, "budget", before->budget_bytes, now->budget_bytes, false);
        if (differs(before->peak_bytes, now->peak_bytes, noise.peak))
                tell_bytes(&t, "peak", before->peak_bytes, now->peak_bytes, true);
        text[out.len] = '\0';
        return t.count;
}
