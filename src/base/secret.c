#include "secret.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "count_of.h"

/* A name is one of these, or ends in one behind a '-', '_' or '.'. Lower case, with '_'. */
static const char *const names[] = {
        "token",  "password",   "passwd",     "passphrase",  "pass",        "pwd",
        "secret", "secrets",    "apikey",     "api_key",     "auth_key",    "access_key",
        "auth",   "secret_key", "credential", "private_key", "account_key", "credentials",
};

/* What many programs call it for short; only alone, or --top-p were one. */
static const char short_name[] = "p";

/* How tokens of well-known services begin, and how long they are at least. */
static const struct {
        const char *begins;
        size_t least;
} tokens[] = {
        {"ghp_", 20}, {"gho_", 20},  {"github_pat_", 20}, {"glpat-", 16}, {"hf_", 20},
        {"sk-", 20},  {"xoxb-", 20}, {"xoxp-", 20},       {"AKIA", 16},   {"eyJ", 20},
};

static const char hidden[] = "***";

static char plain(char c)
{
        return c == '-' || c == '.' ? '_' : (char)tolower((unsigned char)c);
}

static bool ends_in(struct afz_span name, const char *word)
{
        size_t n = strlen(word);
        if (name.n < n || (name.n > n && plain(name.p[name.n - n - 1]) != '_'))
                return false;
        for (size_t i = 0; i < n; i++)
                if (plain(name.p[name.n - n + i]) != word[i])
                        return false;
        return true;
}

bool afz_secret_is_name(struct afz_span name)
{
        while (name.n > 0 && *name.p == '-')
                name = (struct afz_span){name.p + 1, name.n - 1};
        for (size_t i = 0; i < AFZ_COUNT_OF(names); i++)
                if (ends_in(name, names[i]))
                        return true;
        return afz_span_eq(name, short_name);
}

/* "--token", or the "Bearer" of a header: the next word is the secret. */
static bool announces(struct afz_span word)
{
        static const char *const schemes[] = {"bearer", "basic"};
        for (size_t i = 0; i < AFZ_COUNT_OF(schemes); i++) {
                size_t n = strlen(schemes[i]);
                if (word.n >= n && strncasecmp(word.p + word.n - n, schemes[i], n) == 0)
                        return true;
        }
        return word.n > 1 && word.p[0] == '-' && afz_secret_is_name(word);
}

static bool is_token(struct afz_span word)
{
        for (size_t i = 0; i < AFZ_COUNT_OF(tokens); i++)
                if (word.n >= tokens[i].least && afz_span_starts(word, tokens[i].begins))
                        return true;
        return false;
}

/* Who a URL is opened as: what stands between "://" and the last '@' of its authority. */
static bool find_user(struct afz_span word, size_t *ret_from, size_t *ret_to)
{
        const char *mark = word.n > 3 ? memmem(word.p, word.n, "://", 3) : NULL;
        if (!mark)
                return false;
        size_t from = (size_t)(mark - word.p) + 3, to = 0;
        for (size_t i = from; i < word.n && !strchr("/?#", word.p[i]); i++)
                if (word.p[i] == '@')
                        to = i;
        *ret_from = from;
        *ret_to = to;
        return to > 0;
}

static void put_word(struct afz_out *out, struct afz_span word)
{
        size_t from, to;
        const char *equals = word.n > 0 ? memchr(word.p, '=', word.n) : NULL;
        struct afz_span name = {word.p, equals ? (size_t)(equals - word.p) : 0};
        struct afz_span value = {word.p + name.n + (equals ? 1 : 0),
                                 word.n - name.n - (equals ? 1 : 0)};

        if (find_user(word, &from, &to)) {
                afz_out_bytes(out, word.p, from);
                afz_out_str(out, hidden);
                afz_out_bytes(out, word.p + to, word.n - to);
        } else if (is_token(value) || (equals && value.n > 0 && afz_secret_is_name(name))) {
                afz_out_bytes(out, word.p, word.n - value.n);
                afz_out_str(out, hidden);
        } else {
                afz_out_bytes(out, word.p, word.n);
        }
}

void afz_secret_put(struct afz_out *out, struct afz_span cmd)
{
        bool secret = false;
        while (cmd.n > 0) {
                size_t n = 0;
                bool blank = *cmd.p == ' ';
                while (n < cmd.n && (cmd.p[n] == ' ') == blank)
                        n++;
                struct afz_span word = {cmd.p, n};
                cmd = (struct afz_span){cmd.p + n, cmd.n - n};
                if (blank) {
                        afz_out_bytes(out, word.p, word.n);
                } else if (secret && !afz_span_starts(word, "--")) {
                        afz_out_str(out, hidden);
                        secret = false;
                } else {
                        put_word(out, word);
                        secret = announces(word);
                }
        }
}

char *afz_secret_text(const char *cmd, char *buf, size_t cap)
{
        struct afz_out out = afz_out_to(-1, buf, cap - 1);
        afz_secret_put(&out, afz_span_str(cmd));
        afz_span_copy((struct afz_span){buf, out.len}, buf, cap);
        return buf;
}
