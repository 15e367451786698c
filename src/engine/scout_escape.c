#include "scout_escape.h"

#include <string.h>

#include "count_of.h"
#include "span.h"

enum { MAX_WORDS = 24 };

/* A row: the program, the words of which one must follow (none: the program alone will do), and
 * words that make it harmless. A word that ends in '*' stands for all that begin so. */
struct row {
        const char *program;
        const char *verb[6];
        const char *harmless[8];
};

static const struct row rows[] = {
        {"docker", {"run", "exec", "start", "up"}, {0}}, /* "docker compose up" too */
        {"docker-compose", {"run", "exec", "start", "up"}, {0}},
        {"podman", {"run", "exec", "start", "up"}, {0}},
        {"nerdctl", {"run", "exec", "start", "up"}, {0}},
        {"kubectl", {"run", "exec", "apply", "create"}, {"--dry-run*"}},
        {"sbatch", {0}, {"--help", "--version"}},
        {"srun", {0}, {"--help", "--version"}},
        {"salloc", {0}, {0}},
        {"qsub", {0}, {0}},
        {"bsub", {0}, {0}},
        {"condor_submit", {0}, {0}},
        /* What copies files over ssh or holds a tunnel open does no work there. */
        {"ssh", {0}, {"git-*", "git", "rsync", "scp", "sftp", "-N", "-W", "-V"}},
        {"mosh", {0}, {0}},
        {"tmux", {"new", "new-session", "new-window", "neww", "send-keys", "send"}, {0}},
        {"screen", {"-d*", "-S", "-X", "-m"}, {"-ls", "-list", "-r", "-x"}},
        /* A scope is made around the caller's own child; a service is the manager's. */
        {"systemd-run", {0}, {"--scope"}},
};

/* Who starts an ssh only to move data. */
static const char *const movers[] = {"git", "git-remote-http", "rsync", "scp", "sftp"};

struct words {
        struct afz_span word[MAX_WORDS];
        size_t count;
};

static void split(const char *command, struct words *ret)
{
        struct afz_span text = afz_span_str(command);
        ret->count = 0;
        while (ret->count < MAX_WORDS && afz_span_take_word(&text, &ret->word[ret->count]) == 0)
                ret->count++;
}

static bool fits(struct afz_span word, const char *pattern)
{
        size_t n = strlen(pattern);
        if (n > 0 && pattern[n - 1] == '*')
                return word.n >= n - 1 && memcmp(word.p, pattern, n - 1) == 0;
        return afz_span_eq(word, pattern);
}

static bool fits_any(struct afz_span word, const char *const *pattern, size_t n)
{
        for (size_t i = 0; i < n && pattern[i]; i++)
                if (fits(word, pattern[i]))
                        return true;
        return false;
}

/* A verb is the first word that is no option, where the value of an option before it ("docker
 * --context far run") and words that only lead to it ("docker compose up") are passed over. What
 * follows are arguments, which may be called anything. */
static const struct afz_span *find_verb(const struct words *w, const struct row *row)
{
        static const char *const leading[] = {"compose", "container"};
        for (size_t i = 1; i < w->count; i++) {
                struct afz_span word = w->word[i];
                if (fits_any(word, row->verb, AFZ_COUNT_OF(row->verb)))
                        return &w->word[i];
                bool is_option = word.p[0] == '-';
                bool is_value = i > 1 && w->word[i - 1].p[0] == '-';
                if (!is_option && !is_value && !fits_any(word, leading, AFZ_COUNT_OF(leading)))
                        return NULL;
        }
        return NULL;
}

static bool is_harmless(const struct words *w, const struct row *row)
{
        for (size_t i = 1; i < w->count; i++)
                if (fits_any(w->word[i], row->harmless, AFZ_COUNT_OF(row->harmless)))
                        return true;
        return false;
}

static const struct row *row_of(struct afz_span program)
{
        for (size_t i = 0; i < AFZ_COUNT_OF(rows); i++)
                if (afz_span_eq(program, rows[i].program))
                        return &rows[i];
        return NULL;
}

static bool moves_data(const struct row *row, const char *parent)
{
        for (size_t i = 0; parent && i < AFZ_COUNT_OF(movers); i++)
                if (strcmp(row->program, "ssh") == 0 && strcmp(parent, movers[i]) == 0)
                        return true;
        return false;
}

bool afz_scout_escape(const char *command, const char *parent, char *ret_name, size_t cap)
{
        struct words w;
        split(command, &w);
        if (w.count == 0)
                return false;
        const struct row *row = row_of(afz_span_base_name(w.word[0]));
        if (!row || moves_data(row, parent))
                return false;
        const struct afz_span *verb = find_verb(&w, row);
        if ((row->verb[0] && !verb) || is_harmless(&w, row))
                return false;
        size_t n = afz_span_copy(afz_span_str(row->program), ret_name, cap);
        if (verb && verb->p[0] != '-' && n + 2 < cap) {
                ret_name[n++] = ' ';
                afz_span_copy(*verb, ret_name + n, cap - n);
        }
        return true;
}
