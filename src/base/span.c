#include "span.h"

#include <errno.h>
#include <string.h>

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* A number that runs into a letter or a point is not that number. */
static bool ends_number(const struct afz_span *s)
{
        if (s->n == 0)
                return true;
        char c = *s->p;
        return !(afz_is_digit(c) || c == '.' || c == '_' || (c >= 'a' && c <= 'z') ||
                 (c >= 'A' && c <= 'Z'));
}

static void advance(struct afz_span *s, size_t n)
{
        s->p += n;
        s->n -= n;
}

static void skip_blanks(struct afz_span *s)
{
        while (s->n > 0 && is_blank(*s->p))
                advance(s, 1);
}

struct afz_span afz_span_str(const char *s)
{
        return (struct afz_span){s, strlen(s)};
}

bool afz_span_eq(struct afz_span a, const char *s)
{
        return a.n == strlen(s) && afz_span_starts(a, s);
}

bool afz_span_starts(struct afz_span a, const char *prefix)
{
        size_t n = strlen(prefix); /* an empty span may have no pointer, which memcmp forbids */
        return n == 0 || (a.n >= n && memcmp(a.p, prefix, n) == 0);
}

bool afz_span_ends(struct afz_span a, const char *suffix)
{
        size_t n = strlen(suffix);
        return n == 0 || (a.n >= n && memcmp(a.p + a.n - n, suffix, n) == 0);
}

bool afz_span_has(struct afz_span a, const char *needle)
{
        size_t n = strlen(needle);
        return n == 0 || (a.n >= n && memmem(a.p, a.n, needle, n) != NULL);
}

struct afz_span afz_span_trim(struct afz_span s)
{
        skip_blanks(&s);
        while (s.n > 0 && is_blank(s.p[s.n - 1]))
                s.n--;
        return s;
}

struct afz_span afz_span_base_name(struct afz_span path)
{
        const char *slash = path.n > 0 ? memrchr(path.p, '/', path.n) : NULL;
        if (!slash)
                return path;
        return (struct afz_span){slash + 1, path.n - (size_t)(slash + 1 - path.p)};
}

size_t afz_span_copy(struct afz_span s, char *buf, size_t cap)
{
        if (cap == 0)
                return 0;
        size_t n = s.n < cap - 1 ? s.n : cap - 1;
        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char)s.p[i];
                unsigned char next = (unsigned char)(i + 1 < s.n ? s.p[i + 1] : 0);
                /* U+0080 to U+009F are controls too: in UTF-8 C2 9B begins a terminal's escape. */
                bool c1 = c == 0xc2 && next >= 0x80 && next <= 0x9f;
                buf[i] = (char)(c < 0x20 || c == 0x7f || c1 ? '?' : c);
                if (c1 && i + 1 < n)
                        buf[++i] = '?';
        }
        buf[n] = '\0';
        return n;
}

int afz_span_take_line(struct afz_span *s, struct afz_span *ret)
{
        const char *end = s->n > 0 ? memchr(s->p, '\n', s->n) : NULL;
        if (!end)
                return -ENODATA;
        size_t n = (size_t)(end - s->p);
        *ret = (struct afz_span){s->p, n};
        advance(s, n + 1);
        return 0;
}

int afz_span_take_word(struct afz_span *s, struct afz_span *ret)
{
        struct afz_span rest = *s;
        skip_blanks(&rest);
        size_t n = 0;
        while (n < rest.n && !is_blank(rest.p[n]))
                n++;
        if (n == 0)
                return -ENODATA;
        *ret = (struct afz_span){rest.p, n};
        advance(&rest, n);
        *s = rest;
        return 0;
}

int afz_span_take_until(struct afz_span *s, char sep, struct afz_span *ret)
{
        const char *end = s->n > 0 ? memchr(s->p, sep, s->n) : NULL;
        if (!end)
                return s->n == 0 ? -ENODATA : -EINVAL;
        size_t n = (size_t)(end - s->p);
        *ret = (struct afz_span){s->p, n};
        advance(s, n + 1);
        return 0;
}

int afz_span_take_prefix(struct afz_span *s, const char *prefix)
{
        if (!afz_span_starts(*s, prefix))
                return s->n == 0 ? -ENODATA : -EINVAL;
        advance(s, strlen(prefix));
        return 0;
}

/* Digits only, no sign, no blanks; says how a number starts but not how it must end. Nineteen
 * digits always fit; only what is longer needs a look at each step. This is the hottest loop we
 * have: a process's stat alone has fifty numbers. */
static int take_digits(struct afz_span *s, uint64_t *ret)
{
        if (s->n == 0)
                return -ENODATA;
        if (!afz_is_digit(*s->p))
                return -EINVAL;
        const char *p = s->p, *end = p + s->n, *safe = s->n > 19 ? p + 19 : end;
        uint64_t value = 0;
        for (; p < safe && afz_is_digit(*p); p++)
                value = value * 10 + (uint64_t)(*p - '0');
        for (; p < end && afz_is_digit(*p); p++) {
                if (__builtin_mul_overflow(value, 10U, &value) ||
                    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
                        return -ERANGE;
        }
        advance(s, (size_t)(p - s->p));
        *ret = value;
        return 0;
}

int afz_span_take_u64(struct afz_span *s, uint64_t *ret)
{
        struct afz_span rest = *s;
        uint64_t value;
        skip_blanks(&rest);
        int r = take_digits(&rest, &value);
        if (r < 0)
                return r;
        if (!ends_number(&rest))
                return -EINVAL;
        *ret = value;
        *s = rest;
        return 0;
}

int afz_span_take_i64(struct afz_span *s, int64_t *ret)
{
        struct afz_span rest = *s;
        uint64_t value;
        skip_blanks(&rest);
        bool negative = rest.n > 0 && *rest.p == '-';
        if (negative)
                advance(&rest, 1);
        int r = take_digits(&rest, &value);
        if (r < 0)
                return negative && r == -ENODATA ? -EINVAL : r;
        if (!ends_number(&rest))
                return -EINVAL;
        if (value > (uint64_t)INT64_MAX + (negative ? 1U : 0U))
                return -ERANGE;
        *ret = negative ? (int64_t)(0 - value) : (int64_t)value;
        *s = rest;
        return 0;
}

static int hex_digit(char c)
{
        if (afz_is_digit(c))
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

int afz_span_take_hex(struct afz_span *s, uint64_t *ret)
{
        struct afz_span rest = *s;
        uint64_t value = 0;
        skip_blanks(&rest);
        (void)afz_span_take_prefix(&rest, "0x");
        size_t digits = 0;
        for (int d; rest.n > 0 && (d = hex_digit(*rest.p)) >= 0; digits++) {
                if (value >> 60)
                        return -ERANGE;
                value = value << 4 | (uint64_t)d;
                advance(&rest, 1);
        }
        if (digits == 0)
                return afz_span_trim(*s).n == 0 ? -ENODATA : -EINVAL;
        if (!ends_number(&rest))
                return -EINVAL;
        *ret = value;
        *s = rest;
        return 0;
}

int afz_span_take_hundredths(struct afz_span *s, uint64_t *ret)
{
        struct afz_span rest = *s;
        uint64_t whole, value;
        skip_blanks(&rest);
        int r = take_digits(&rest, &whole);
        if (r < 0)
                return r;
        uint64_t fraction = 0;
        if (rest.n > 1 && *rest.p == '.' && afz_is_digit(rest.p[1])) {
                advance(&rest, 1);
                for (uint64_t weight = 10; rest.n > 0 && afz_is_digit(*rest.p); weight /= 10) {
                        fraction += (uint64_t)(*rest.p - '0') * weight;
                        advance(&rest, 1);
                }
        }
        if (!ends_number(&rest))
                return -EINVAL;
        if (__builtin_mul_overflow(whole, 100U, &value) ||
            __builtin_add_overflow(value, fraction, &value))
                return -ERANGE;
        *ret = value;
        *s = rest;
        return 0;
}

int afz_span_u64(struct afz_span s, uint64_t *ret)
{
        uint64_t value;
        int r = afz_span_take_u64(&s, &value);
        if (r < 0)
                return r;
        if (afz_span_trim(s).n > 0)
                return -EINVAL;
        *ret = value;
        return 0;
}

int afz_span_i64(struct afz_span s, int64_t *ret)
{
        int64_t value;
        int r = afz_span_take_i64(&s, &value);
        if (r < 0)
                return r;
        if (afz_span_trim(s).n > 0)
                return -EINVAL;
        *ret = value;
        return 0;
}

static const struct afz_key *find_key(struct afz_span name, const struct afz_key *table,
                                      size_t rows, size_t *hint)
{
        for (size_t i = 0; i < rows; i++) {
                const struct afz_key *key = &table[(*hint + i) % rows];
                if (key->name[0] == name.p[0] && afz_span_eq(name, key->name)) {
                        *hint = (size_t)(key - table) + 1;
                        return key;
                }
        }
        return NULL;
}

size_t afz_span_each_key(struct afz_span text, const struct afz_key *table, size_t rows,
                         void (*each)(void *ctx, int id, uint64_t value), void *ctx)
{
        size_t found = 0, hint = 0;
        struct afz_span line;
        while (afz_span_take_line(&text, &line) == 0) {
                struct afz_span name;
                if (afz_span_take_word(&line, &name) < 0)
                        continue;
                if (name.n > 1 && name.p[name.n - 1] == ':')
                        name.n--;
                const struct afz_key *key = find_key(name, table, rows, &hint);
                if (!key)
                        continue;
                uint64_t value;
                if (afz_span_take_u64(&line, &value) < 0)
                        continue;
                line = afz_span_trim(line);
                if (line.n > 0 && !afz_span_eq(line, "kB"))
                        continue;
                if (line.n > 0 && __builtin_mul_overflow(value, 1024U, &value))
                        continue;
                if (key->scale > 1 && __builtin_mul_overflow(value, key->scale, &value))
                        continue;
                each(ctx, key->id, value);
                found++;
        }
        return found;
}
